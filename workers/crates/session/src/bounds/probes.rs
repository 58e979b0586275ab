//! The bounds of probes of a path.
use downburst_model::bounds::OFFSET_MAX_US;
use downburst_probe::{
    Figures, FlowFigures, LONGEST_TRIAL, MOST_EXCESSES, MOST_FLOWS, MOST_REVERSE_FLOWS, check_packet,
};

use super::number;
use crate::{LONGEST_PROBE_STEP, PathProbe, PathProbed, ProbeOrder, ProbeSaid, ProbeTrial};

/// Checks an order, before it becomes packets.
pub(super) fn check_order(probe: &PathProbe) -> Result<(), String> {
    match &probe.order {
        ProbeOrder::Open(open) => {
            number("most_bps", "a probe", open.most_bps)?;
            check_packet(open.packet_bytes.into())
        }
        ProbeOrder::Step(step) => {
            number("rate_bps", "a probe", step.rate_bps)?;
            let longest_ms = LONGEST_PROBE_STEP.0 / 1_000;
            if step.duration_ms > longest_ms {
                let took_ms = step.duration_ms;
                return Err(format!(
                    "`duration_ms` of a probe is {took_ms}; the longest step takes {longest_ms} ms"
                ));
            }
            Ok(())
        }
        ProbeOrder::Sent { packets, .. } => number("packets", "a probe", *packets),
        ProbeOrder::Trial(trial) => check_trial(trial),
        ProbeOrder::Hold | ProbeOrder::Close | ProbeOrder::Begin { .. } => Ok(()),
    }
}

fn check_trial(trial: &ProbeTrial) -> Result<(), String> {
    number("rate_bps", "a probe", trial.rate_bps)?;
    let (longest_ms, took_ms) = (LONGEST_TRIAL.0 / 1_000, trial.duration_ms);
    if took_ms > longest_ms {
        return Err(format!("`duration_ms` of a trial is {took_ms}; the longest one takes {longest_ms} ms"));
    }
    check_flows(trial.flows.len())
}

fn check_flows(many: usize) -> Result<(), String> {
    let most = MOST_FLOWS + MOST_REVERSE_FLOWS;
    if many > most {
        return Err(format!("`flows` of a trial has {many} entries; it has at most {most}"));
    }
    Ok(())
}

/// Checks an answer.
pub(super) fn check_said(probed: &PathProbed) -> Result<(), String> {
    match &probed.said {
        // Texts are truncated where they are shown.
        ProbeSaid::Ready { .. }
        | ProbeSaid::Refused(_)
        | ProbeSaid::TrialReady { .. }
        | ProbeSaid::Listening { .. }
        | ProbeSaid::Heard { .. } => Ok(()),
        ProbeSaid::Sent { sent, .. } => {
            number("packets", "a probe", sent.packets)?;
            number("elapsed_us", "a probe", sent.elapsed_us)?;
            number("lag_us", "a probe", sent.lag_us)?;
            number("retransmits", "a probe", sent.tcp.and_then(|tcp| tcp.retransmits).unwrap_or(0))
        }
        ProbeSaid::Second { second, figures, .. } => {
            number("second", "a probe", *second)?;
            check_figures(figures)
        }
        ProbeSaid::Arrived { figures, .. } => check_figures(figures),
        ProbeSaid::TrialEnded { flows, .. } => {
            check_flows(flows.len())?;
            flows.iter().try_for_each(check_flow)
        }
    }
}

fn check_flow(flow: &FlowFigures) -> Result<(), String> {
    let counts = [
        ("received_bytes", flow.received_bytes),
        ("elapsed_us", flow.elapsed_us),
        ("retransmits", flow.retransmits.unwrap_or(0)),
        ("least_round_trip_us", flow.least_round_trip_us.unwrap_or(0)),
        ("mean_round_trip_us", flow.mean_round_trip_us.unwrap_or(0)),
        ("held_us", flow.held_us),
    ];
    counts.into_iter().try_for_each(|(field, value)| number(field, "a flow of a probe", value))
}

fn check_figures(figures: &Figures) -> Result<(), String> {
    let counts = [
        ("sent", figures.sent),
        ("received", figures.received),
        ("lost", figures.lost),
        ("reordered", figures.reordered),
        ("duplicated", figures.duplicated),
        ("bytes", figures.bytes),
        ("elapsed_us", figures.elapsed_us),
        ("jitter_us", figures.jitter_us.unwrap_or(0)),
        ("losses", figures.losses),
        ("dropped_here", figures.dropped_here),
    ];
    counts.into_iter().try_for_each(|(field, value)| number(field, "a probe", value))?;
    if let Some(delay) = figures.delay {
        [delay.min, delay.median, delay.p99, delay.max].into_iter().try_for_each(check_delay)?;
    }
    if figures.excess.len() > MOST_EXCESSES {
        let many = figures.excess.len();
        return Err(format!("`excess` of a probe has {many} entries; at most {MOST_EXCESSES} are kept"));
    }
    figures.excess.iter().try_for_each(|excess| {
        let always = [excess.at_us, excess.lost, excess.excess_us];
        let at_times = [excess.recovery_us, excess.peak_bps, excess.backlog_bytes, excess.predicted_us];
        let mut values = always.into_iter().chain(at_times.into_iter().flatten());
        values.try_for_each(|value| number("excess", "a probe", value))
    })
}

/// A delay is the difference of two clocks.
fn check_delay(delay_us: i64) -> Result<(), String> {
    if delay_us.unsigned_abs() <= OFFSET_MAX_US {
        return Ok(());
    }
    Err(format!("`delay` of a probe is {delay_us} µs; clocks differ by at most {OFFSET_MAX_US} µs"))
}

#[cfg(test)]
mod tests {
    use downburst_probe::{Control, Delays, Excess, Flow, Key, Sent, SentByTcp};

    use super::*;
    use crate::{ProbeOpen, ProbeStep};

    fn order(order: ProbeOrder) -> Result<(), String> {
        check_order(&PathProbe { run: 1, order })
    }

    fn open(packet_bytes: u16, most_bps: u64) -> ProbeOrder {
        ProbeOrder::Open(ProbeOpen {
            key: Key([1; 32]),
            port: 9,
            out: true,
            packet_bytes,
            most_bps,
            tcp: None,
            other_end: None,
        })
    }

    fn step(rate_bps: u64, duration_ms: u64) -> ProbeOrder {
        ProbeOrder::Step(ProbeStep { step: 0, rate_bps, duration_ms })
    }

    fn arrived(change: impl FnOnce(&mut Figures)) -> Result<(), String> {
        let mut figures = Figures::default();
        change(&mut figures);
        check_said(&PathProbed { run: 1, said: ProbeSaid::Arrived { step: 0, figures } })
    }

    #[test]
    fn an_order_has_packets_that_fit_and_an_end() {
        assert!([open(64, 1), step(1, 691_200_000), ProbeOrder::Hold].map(order).iter().all(Result::is_ok));
        assert!(order(open(63, 1)).unwrap_err().contains("`packet_bytes`"));
        assert!(order(open(64, u64::MAX)).unwrap_err().contains("`most_bps`"));
        assert!(order(step(u64::MAX, 1)).unwrap_err().contains("`rate_bps`"));
        assert!(order(step(1, 691_200_001)).unwrap_err().contains("`duration_ms`"));
        assert!(order(ProbeOrder::Sent { step: 0, packets: u64::MAX }).is_err());
    }

    #[test]
    fn figures_are_those_of_a_count_of_packets() {
        assert_eq!(arrived(|_| {}), Ok(()));
        let changes: [fn(&mut Figures); 14] = [
            |figures| figures.dropped_here = u64::MAX,
            |figures| figures.sent = u64::MAX,
            |figures| figures.received = u64::MAX,
            |figures| figures.lost = u64::MAX,
            |figures| figures.reordered = u64::MAX,
            |figures| figures.duplicated = u64::MAX,
            |figures| figures.bytes = u64::MAX,
            |figures| figures.elapsed_us = u64::MAX,
            |figures| figures.jitter_us = Some(u64::MAX),
            |figures| figures.losses = u64::MAX,
            |figures| figures.delay = Some(Delays { min: 0, median: 0, p99: 0, max: i64::MIN }),
            |figures| figures.excess = vec![Excess { lost: 1, ..Excess::default() }; 101],
            |figures| figures.excess = vec![Excess { at_us: u64::MAX, ..Excess::default() }],
            |figures| figures.excess = vec![Excess { predicted_us: Some(u64::MAX), ..Excess::default() }],
        ];
        for change in changes {
            assert!(arrived(change).is_err());
        }
    }

    #[test]
    fn a_sender_says_what_it_can_have_sent() {
        let said = |packets, elapsed_us, lag_us| {
            let sent = Sent { packets, elapsed_us, lag_us, tcp: None };
            check_said(&PathProbed { run: 1, said: ProbeSaid::Sent { step: 0, sent } })
        };
        assert_eq!(said(1, 2, 3), Ok(()));
        assert!(
            said(u64::MAX, 2, 3).is_err() && said(1, u64::MAX, 3).is_err() && said(1, 2, u64::MAX).is_err()
        );
        let figures = Figures::default();
        let second = ProbeSaid::Second { step: 0, second: u64::MAX, figures };
        assert!(check_said(&PathProbed { run: 1, said: second }).is_err());
    }

    fn trial(rate_bps: u64, duration_ms: u64, flows: usize) -> ProbeOrder {
        let flow = Flow { control: Control::parse("bbr").unwrap(), from_site: true };
        ProbeOrder::Trial(ProbeTrial { trial: 0, rate_bps, duration_ms, flows: vec![flow; flows] })
    }

    #[test]
    fn a_trial_has_few_flows_and_an_end() {
        assert!([trial(1, 60_000, 6), ProbeOrder::Begin { trial: 9 }].map(order).iter().all(Result::is_ok));
        assert!(order(trial(u64::MAX, 1, 1)).unwrap_err().contains("`rate_bps`"));
        assert!(order(trial(1, 60_001, 1)).unwrap_err().contains("60000 ms"));
        assert!(order(trial(1, 1, 7)).unwrap_err().contains("7 entries"));
    }

    #[test]
    fn the_figures_of_flows_and_of_a_kernel_are_bounded() {
        let ended =
            |flows| check_said(&PathProbed { run: 1, said: ProbeSaid::TrialEnded { trial: 0, flows } });
        assert_eq!(ended(vec![FlowFigures::default(); 6]), Ok(()));
        assert!(ended(vec![FlowFigures::default(); 7]).is_err());
        let much = Some(u64::MAX);
        let absurd = [
            FlowFigures { received_bytes: u64::MAX, ..FlowFigures::default() },
            FlowFigures { elapsed_us: u64::MAX, ..FlowFigures::default() },
            FlowFigures { retransmits: much, ..FlowFigures::default() },
            FlowFigures { least_round_trip_us: much, ..FlowFigures::default() },
            FlowFigures { mean_round_trip_us: much, ..FlowFigures::default() },
            FlowFigures { held_us: u64::MAX, ..FlowFigures::default() },
        ];
        assert!(absurd.into_iter().all(|flow| ended(vec![flow]).is_err()));
        let sent = Sent { tcp: Some(SentByTcp { control: None, retransmits: much }), ..Sent::default() };
        let said = ProbeSaid::Sent { step: 0, sent };
        assert!(check_said(&PathProbed { run: 1, said }).is_err());
    }
}
