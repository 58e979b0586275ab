//! A report for people, and as JSON.
use downburst_stamp::{Clocks, Directions, Report, Spread};
use serde_json::{Value, json};

use crate::sending::{Finished, Run};

pub(crate) fn as_json(run: &Run, finished: &Finished) -> Value {
    let mut value = serde_json::to_value(&finished.report).unwrap_or_default();
    let more = json!({
        "to": run.to,
        "from": finished.local,
        "interval_us": u64::try_from(run.interval.as_micros()).unwrap_or(u64::MAX),
        "kernel_stamps": finished.kernel_stamps,
        "unsent": finished.unsent,
    });
    if let (Some(object), Value::Object(more)) = (value.as_object_mut(), more) {
        object.extend(more);
    }
    value
}

pub(crate) fn as_text(run: &Run, finished: &Finished) -> String {
    let report = &finished.report;
    let mut lines = vec![
        format!("{}: {} sent, {} answered, {} lost", run.to, report.sent, report.answered, report.lost),
        directions(report),
    ];
    let delays = &report.delays;
    lines
        .extend(delays.round_trip_ns.map(|spread| row("round trip", spread, "without the reflector's time")));
    let note = match &delays.clocks {
        Clocks::Synchronized { error_ns } => {
            #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
            let millis = *error_ns as f64 / 1e6;
            format!("+/- {millis:.3} ms, as the clocks claim")
        }
        Clocks::NotKnown { reason } => format!("with an offset of clocks that is not known: {reason}"),
    };
    lines.extend(delays.forward_ns.map(|spread| row("forward", spread, &note)));
    lines.extend(delays.backward_ns.map(|spread| row("backward", spread, &note)));
    lines.extend(delays.offset.map(|offset| {
        format!(
            "clock of the reflector: {} ms ahead, +/- {} ms (half of the shortest round trip)",
            millis(offset.offset_ns),
            millis(offset.bound_ns)
        )
    }));
    lines.extend(report.seen_as.map(|address| format!("seen by the reflector as {address}")));
    lines.join("\n")
}

fn directions(report: &Report) -> String {
    match &report.directions {
        Directions::Yes(figures) => format!(
            "lost forward {}, backward {}, in either direction {}; reordered forward {}, backward {}",
            figures.forward_lost,
            figures.backward_lost,
            figures.either_lost,
            figures.forward_reordered,
            figures.backward_reordered
        ),
        Directions::No { reason } => format!("the direction of losses is not known: {reason}"),
    }
}

fn row(name: &str, spread: Spread, note: &str) -> String {
    let Spread { min, median, p99, max } = spread;
    let [min, median, p99, max] = [min, median, p99, max].map(millis);
    format!("{name}: median {median} ms, min {min}, p99 {p99}, max {max} ({note})")
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn millis(nanos: i64) -> String {
    format!("{:.3}", nanos as f64 / 1e6)
}
