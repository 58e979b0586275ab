//! The bounds of a job: values that no agent sends on purpose are refused with one sentence before anything
//! is done. The bounds are those of `downburst_model::bounds`; if a narrower one applies, the code that executes
//! the job reports it.
use downburst_hub::CatchUpLine;
use downburst_model::WallMicros;
use downburst_model::bounds::{INTEGER_MAX, LINE_BYTES_MAX, OFFSET_MAX_US};
use downburst_session::{FIRST_CATCH_UP, is_catch_up};

use super::{
    Action, ExportLine, FeedLine, IngestLine, Job, LdmLine, LeaseLine, LegLine, PlanLine, ProbeLine,
    ProveLine, SiteLine, Start, WantedLine,
};

impl Job {
    /// Checks every number, time and length; the error is a sentence that names the value out of bounds.
    pub(crate) fn check(&self) -> Result<(), String> {
        most("id", self.id, INTEGER_MAX)?;
        match &self.action {
            Action::Start(start) => check_start(start),
            Action::Feeds { feeds } => each("feeds", feeds, check_feed),
            Action::Sites { sites } => each("sites", sites, check_site),
            Action::Plan(plan) => check_plan(plan),
            Action::Ingest(line) => check_ingest(line),
            Action::Fetch(line) => line.check(),
            Action::Prove(ProveLine { path, .. }) | Action::Export(ExportLine { path, .. }) => {
                text("path", &path.to_string_lossy())
            }
            Action::Upstreams { upstreams } => many("upstreams", upstreams.len()),
            Action::Ldm(line) => check_ldm(line),
            Action::CheckPattern { pattern } => text("pattern", pattern),
            Action::TcpProfiles { profiles } => downburst_hub::check_profiles(profiles),
            Action::Silences { feeds } => downburst_hub::check_silences(feeds),
            Action::Circuits { circuits } => each("circuits", circuits, check_lease),
            Action::CircuitUp { circuit } => check_lease(circuit),
            Action::CircuitProbe(probe) => check_train(probe),
            Action::Probe(probe) => probe.check(),
            Action::ProbeStop(stop) => text("reason", &stop.reason),
            Action::Drain { seconds } => between("seconds", *seconds, SECONDS_MAX),
            Action::Clock(standing) => {
                most("ahead_us", standing.ahead_us.unsigned_abs(), OFFSET_MAX_US)?;
                most("bound_us", standing.bound_us, OFFSET_MAX_US)
            }
            Action::EnrolAnswer(answer) => answer.ends_us.map_or(Ok(()), |at| moment("ends_us", at)),
            // Queries are not stored; the other jobs carry names only.
            Action::Deliveries(_)
            | Action::Products(_)
            | Action::Browse(_)
            | Action::Follow(_)
            | Action::Tracer(_)
            | Action::Status
            | Action::Logs
            | Action::CircuitDown { .. }
            | Action::CircuitHost
            | Action::SenderKey { .. }
            | Action::Certify { .. }
            | Action::BatchLoaded { .. }
            | Action::Stop => Ok(()),
        }
    }
}

/// Refuses a line longer than any job needs, before it is parsed.
pub(crate) fn check_length(line: &str) -> Result<(), String> {
    if line.len() <= LINE_BYTES_MAX {
        return Ok(());
    }
    Err(format!("a line has {} bytes; at most {LINE_BYTES_MAX} are read: send less in a line", line.len()))
}

fn check_start(start: &Start) -> Result<(), String> {
    between("batch_seconds", start.batch_seconds, SECONDS_MAX)?;
    between("heartbeat_seconds", start.heartbeat_seconds, SECONDS_MAX)?;
    between("receipt_hours", start.records.receipt_hours, HOURS_MAX)?;
    most("receipt_bytes", start.records.receipt_bytes, INTEGER_MAX)?;
    most("data_connections", start.data_connections as u64, CONNECTIONS_MAX)?;
    many("listen", start.listen.len())
}

fn check_plan(plan: &PlanLine) -> Result<(), String> {
    most("version", plan.version, INTEGER_MAX)?;
    many("legs", plan.legs.len())?;
    plan.legs.iter().try_for_each(check_leg)
}

fn check_ingest(line: &IngestLine) -> Result<(), String> {
    line.created_us.map_or(Ok(()), |at| moment("created_us", at))?;
    text("path", &line.path.to_string_lossy())?;
    text("product_id", &line.product_id)
}

/// The bounds of one product of a job, which hurts no other one.
pub(crate) fn check_wanted(line: &WantedLine) -> Result<(), String> {
    line.created_us.map_or(Ok(()), |at| moment("created_us", at))?;
    most("size", line.size.unwrap_or(0), INTEGER_MAX)?;
    text("url", &line.url)?;
    text("product_id", &line.product_id)
}

fn check_ldm(line: &LdmLine) -> Result<(), String> {
    most("connections", line.connections as u64, CONNECTIONS_MAX)?;
    many("sources", line.sources.len())?;
    many("accept", line.accept.len())?;
    line.sources.iter().try_for_each(|it| most("max_age_seconds", it.max_age_seconds, SECONDS_MAX))
}

fn check_feed(line: &FeedLine) -> Result<(), String> {
    between("retention_hours", line.retention_hours, HOURS_MAX)?;
    most("retention_bytes", line.retention_bytes, INTEGER_MAX)?;
    most("max_product_bytes", line.max_product_bytes, INTEGER_MAX)?;
    most("deadline_ms", line.deadline_ms.unwrap_or(0), DEADLINE_MS_MAX)?;
    many("at_least", line.at_least.len())?;
    line.at_least.iter().try_for_each(|given| most("sequence", given.sequence.0, INTEGER_MAX))
}

fn check_site(line: &SiteLine) -> Result<(), String> {
    let bytes = line.access_rate_bps.iter().chain(&line.ceiling_bps_by_hour);
    bytes.copied().try_for_each(|rate| most("a site's rate", rate, RATE_BPS_MAX))?;
    most("data_connections", line.data_connections.unwrap_or(0) as u64, CONNECTIONS_MAX)?;
    most("nodes_version", line.nodes_version, INTEGER_MAX)?;
    many("positions", line.positions.len())?;
    line.positions.iter().try_for_each(|told| most("settled_to", told.settled_to.0, INTEGER_MAX))?;
    for credential in &line.credentials {
        let moments = credential.expires_us.into_iter().chain(credential.renew_us);
        moments.into_iter().try_for_each(|at| moment("expires_us or renew_us", at))?;
    }
    for wish in &line.subscriptions {
        text("pattern", &wish.pattern)?;
        most("hold_us", wish.hold_us.unwrap_or(0), OFFSET_MAX_US)?;
        let age_us = u64::try_from(wish.max_age_us.unwrap_or(0)).map_err(|_| "`max_age_us` is below 0")?;
        most("max_age_us", age_us, OFFSET_MAX_US)?;
    }
    line.resends.iter().try_for_each(|resend| {
        most("resend", resend.resend, INTEGER_MAX)?;
        moment("from_us", resend.from_us)?;
        moment("to_us", resend.to_us)
    })
}

fn check_leg(leg: &LegLine) -> Result<(), String> {
    most("rate_bps", leg.rate_bps, RATE_BPS_MAX)?;
    most("burst_bytes", leg.burst_bytes.unwrap_or(0), INTEGER_MAX)?;
    most("repair_seconds", u64::from(leg.losses.repair_seconds.unwrap_or(0)), SECONDS_MAX)?;
    between("parity_percent", leg.losses.parity_percent, 100)?;
    between("loss_quantile", leg.losses.loss_quantile, 1)?;
    leg.losses.catch_up.as_ref().map_or(Ok(()), check_catch_up)?;
    many("sites", leg.sites.len())
}

fn check_catch_up(line: &CatchUpLine) -> Result<(), String> {
    if !is_catch_up(line.leg) {
        return Err(format!("catch_up.leg is {}, and has to be at least {}", line.leg.0, FIRST_CATCH_UP));
    }
    most("least_bytes", line.least_bytes, INTEGER_MAX)?;
    most("wait_ms", line.wait_ms, CATCH_UP_WAIT_MS_MAX)?;
    most("streams", line.streams as u64, CATCH_UP_STREAMS_MAX)
}

fn check_lease(line: &LeaseLine) -> Result<(), String> {
    for rate in [line.rate_out_bps, line.rate_in_bps] {
        most("a circuit's rate", rate, RATE_BPS_MAX)?;
    }
    between("shaped_share", line.shaped_share, 1)?;
    line.until_us.map_or(Ok(()), |at| moment("until_us", at))?;
    many("ends", line.ends.len())?;
    line.ends.iter().try_for_each(|end| most("port_rate_bps", end.port_rate_bps.unwrap_or(0), RATE_BPS_MAX))
}

fn check_train(line: &ProbeLine) -> Result<(), String> {
    most("rate_bps", line.rate_bps, RATE_BPS_MAX)?;
    most("duration_ms", line.duration_ms, SECONDS_MAX)
}

fn most(field: &str, value: u64, bound: u64) -> Result<(), String> {
    if value <= bound { Ok(()) } else { Err(format!("`{field}` is {value}; at most {bound} can be")) }
}

fn between(field: &str, value: f64, bound: u64) -> Result<(), String> {
    if (0.0..=bound as f64).contains(&value) {
        return Ok(());
    }
    Err(format!("`{field}` is {value:e}; it is a number from 0 to {bound}"))
}

fn moment(field: &str, at: WallMicros) -> Result<(), String> {
    if at.has_a_date() {
        return Ok(());
    }
    Err(format!("`{field}` is {}, and no date: microseconds since 1970 of the years 1 to 9999", at.0))
}

fn each<T>(name: &str, all: &[T], check: impl FnMut(&T) -> Result<(), String>) -> Result<(), String> {
    many(name, all.len())?;
    all.iter().try_for_each(check)
}

fn many(field: &str, entries: usize) -> Result<(), String> {
    if entries <= ENTRIES_MAX {
        return Ok(());
    }
    Err(format!("`{field}` has {entries} entries; at most {ENTRIES_MAX} can be"))
}

fn text(field: &str, value: &str) -> Result<(), String> {
    if value.len() <= TEXT_BYTES_MAX {
        return Ok(());
    }
    Err(format!("`{field}` has {} bytes; at most {TEXT_BYTES_MAX} can be", value.len()))
}

/// A thousand terabits per second.
const RATE_BPS_MAX: u64 = 1_000_000_000_000_000;

/// Three hundred years.
const SECONDS_MAX: u64 = 10_000_000_000;
const HOURS_MAX: u64 = 3_000_000;
/// A day.
const DEADLINE_MS_MAX: u64 = 86_400_000;
const CONNECTIONS_MAX: u64 = 1_000_000;
const CATCH_UP_WAIT_MS_MAX: u64 = 60_000;
const CATCH_UP_STREAMS_MAX: u64 = 1_000;
const ENTRIES_MAX: usize = 100_000;
const TEXT_BYTES_MAX: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// One job of each kind that carries numbers, as an agent sends it.
    fn jobs() -> Vec<Value> {
        let filter = json!({"pattern": "x", "not_pattern": null});
        let resend = json!({
            "resend": 1, "feed": "A", "kind": "resend", "from_us": 0, "to_us": 9, "wanted": filter, "had": []
        });
        let wish = json!({"feed": "A", "pattern": ".*", "not_pattern": null, "hold_us": 5, "max_age_us": 7});
        let credential = json!({"sha256": "a", "expires_us": 5, "renew_us": 4});
        let knobs = json!({"send_buffer_bytes": 9_000, "receive_buffer_bytes": 9_000, "pacing_bps": 9_000,
            "connections": 3});
        let lease = json!({
            "lease": 1, "driver": "linux", "cap": "hard", "rate_out_bps": 5, "rate_in_bps": 5,
            "shaped_share": 0.9, "until_us": 5,
            "ends": [{"end": "p", "interface": "eth0", "address": "10.0.0.1/30", "port_rate_bps": 9}],
        });
        vec![
            json!({"id": 1, "do": "start", "name": "h", "data_dir": "/d", "listen": [], "origin": "o",
                "batch_dir": "/b", "batch_seconds": 1.0, "receipt_hours": 24.0, "receipt_bytes": 9,
                "data_connections": 4, "heartbeat_seconds": 10.0}),
            json!({"id": 1, "do": "feeds", "feeds": [{"feed": "A", "class": "grid", "retention_hours": 2.0,
                "retention_bytes": 9, "durability": "power", "duplicate_rule": "id", "max_product_bytes": 9,
                "unicast_leg": 1, "deadline_ms": 500,
                "at_least": [{"epoch": "5", "sequence": 7}]}]}),
            json!({"id": 1, "do": "sites", "sites": [{"site": "a", "credentials": [credential], "active": true,
                "subscriptions": [wish], "resends": [resend], "data_connections": 3, "access_rate_bps": 9,
                "ceiling_bps_by_hour": [1, 2], "nodes_version": 3}]}),
            json!({"id": 1, "do": "plan", "feed": "A", "version": 3, "legs": [{"leg": 1, "transport": "multicast",
                "sites": ["a"], "rate_bps": 5, "burst_bytes": 5, "parity_percent": 1.0, "loss_quantile": 0.5,
                "repair_seconds": 60}]}),
            json!({"id": 1, "do": "ingest", "path": "/p", "feed": "A", "product_id": "x", "created_us": 5,
                "origin": null, "digest": null}),
            json!({"id": 1, "do": "ldm", "connections": 256, "sources": [{"source": "s", "feeds": "ANY", "pattern": "x",
                "upstreams": ["h"], "max_age_seconds": 3600}]}),
            json!({"id": 1, "do": "tcp-profiles", "profiles": [{"name": "a", "prefix": "192.0.2.0/24", "mode": "learn",
                "knobs": knobs, "learnt": knobs}]}),
            json!({"id": 1, "do": "silences", "feeds": [{"feed": "A", "hold_us": 1_000_000}]}),
            json!({"id": 1, "do": "circuit-up", "circuit": lease}),
            json!({"id": 1, "do": "circuit-probe", "lease": 1, "site": "a", "kind": "rate", "rate_bps": 5,
                "duration_ms": 5}),
            json!({"id": 1, "do": "probe", "probe": "p-1", "site": "a", "kind": "knee", "direction": "out",
                "packet_bytes": 1_200, "steps": [{"rate_bps": 9_000_000, "duration_ms": 500}], "seconds": true}),
            json!({"id": 1, "do": "drain", "seconds": 5.0}),
            json!({"id": 1, "do": "clock", "ahead_us": 5, "bound_us": 5}),
            json!({"id": 1, "do": "enrol-answer", "ask": 1, "ok": true, "site": "a", "sentence": null, "ends_us": 5}),
        ]
    }

    fn refusal(job: &Value) -> Option<String> {
        match serde_json::from_str::<Job>(&job.to_string()) {
            Ok(job) => job.check().err(),
            Err(error) => Some(error.to_string()),
        }
    }

    /// The JSON pointers of all numbers in a value.
    fn numbers(value: &Value, at: &str, found: &mut Vec<String>) {
        match value {
            Value::Number(_) => found.push(at.to_owned()),
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(index, it)| numbers(it, &format!("{at}/{index}"), found));
            }
            Value::Object(fields) => {
                fields.iter().for_each(|(name, it)| numbers(it, &format!("{at}/{name}"), found));
            }
            _ => {}
        }
    }

    #[test]
    fn every_number_of_a_job_is_bounded() {
        for job in jobs() {
            assert_eq!(refusal(&job), None, "{job}");
            let mut places = Vec::new();
            numbers(&job, "", &mut places);
            // An ask number is chosen by this node and looked up.
            for place in places.iter().filter(|place| !place.ends_with("/ask")) {
                for absurd in [json!(u64::MAX), json!(-1e300), json!(1e300)] {
                    let mut spoilt = job.clone();
                    *spoilt.pointer_mut(place).unwrap() = absurd.clone();
                    let sentence = refusal(&spoilt);
                    assert!(sentence.is_some_and(|it| it.len() < 300), "{place} = {absurd} of {job}");
                }
            }
        }
    }

    #[test]
    fn a_line_that_no_job_needs_is_not_read() {
        assert!(check_length(&" ".repeat(LINE_BYTES_MAX)).is_ok());
        assert!(check_length(&" ".repeat(LINE_BYTES_MAX + 1)).unwrap_err().contains("at most 16777216"));
    }
}
