//! The result of a probe as lines.
use downburst_probe::{Delays, Excess, Figures, Knee, StepResult};
use downburst_session::ClockOffset;
use serde::Serialize;

use super::TrialEndedLine;
use super::lines::{DelayLine, ExcessLine, PathProbeKind, PathProbeLine, ProbeEndedLine, ProbeSecondLine};
use crate::circuits::Direction;

/// The way in which a probe ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All steps were run.
    Done,
    /// It was ended for this reason.
    Stopped(String),
    /// It can't go on for this reason.
    Failed(String),
}

/// All that is known at the end of a probe.
#[derive(Debug)]
pub struct Conclusion<'a> {
    /// The probe.
    pub line: &'a PathProbeLine,
    /// The way in which it ended.
    pub outcome: Outcome,
    /// The steps that were run.
    pub results: &'a [StepResult],
    /// The trials that were run.
    pub trials: &'a [TrialEndedLine],
    /// Of a sweep that was run to its end.
    pub knee: Option<Knee>,
    /// The bytes of each frame.
    pub frame_bytes: u64,
    /// The clocks.
    pub clock: ClockOf,
}

/// The clocks of sender and receiver.
#[derive(Clone, Copy, Debug)]
pub struct ClockOf {
    /// The site's clock minus this node's; `None`: not known.
    pub site: Option<ClockOffset>,
    /// The direction of the packets.
    pub direction: Direction,
}

/// A step that was run.
#[derive(Debug, Serialize)]
pub struct StepLine {
    /// The asked rate.
    pub rate_bps: u64,
    /// The rate at which packets left.
    pub sent_bps: u64,
    /// The rate at which they arrived.
    pub received_bps: u64,
    /// The packets sent.
    pub sent: u64,
    /// Those that arrived.
    pub received: u64,
    /// Those that the path lost.
    pub lost: u64,
    /// Those that the receiver's own host dropped.
    pub receiver_dropped: u64,
    /// Those that arrived after a later one.
    pub reordered: u64,
    /// Further arrivals of a packet.
    pub duplicated: u64,
    /// From the first arrival to the last.
    pub elapsed_us: u64,
    /// One-way delays by clocks that agree; `None`: the offset of the clocks is not known.
    pub delay_us: Option<DelayLine>,
    /// The interarrival jitter.
    pub jitter_us: Option<u64>,
}

impl Conclusion<'_> {
    /// The line about it.
    pub fn line(&self) -> ProbeEndedLine {
        let (outcome, reason) = match &self.outcome {
            Outcome::Done => ("done", None),
            Outcome::Stopped(reason) => ("stopped", Some(reason.clone())),
            Outcome::Failed(reason) => ("failed", Some(reason.clone())),
        };
        let (knee_bps, knee_reason) = self.knee();
        let (kind, tcp) = (self.line.kind, self.results.iter().find_map(|result| result.sent.tcp));
        let is_one_rate = matches!(kind, PathProbeKind::Cbr | PathProbeKind::Soak);
        let all_excess = self.results.iter().flat_map(|result| &result.figures.excess);
        ProbeEndedLine {
            probe: self.line.probe.clone(),
            outcome,
            reason,
            sender_lag_us: self.results.iter().map(|result| result.sent.lag_us).max().unwrap_or(0),
            steps: self.results.iter().map(|result| self.step(result)).collect(),
            knee_bps,
            knee_reason,
            losses: self.results.iter().fold(0, |sum, it| sum.saturating_add(it.figures.losses)),
            congestion: tcp.and_then(|tcp| tcp.control).map(|control| control.to_string()),
            retransmits: tcp.and_then(|tcp| tcp.retransmits),
            trials: (kind == PathProbeKind::Stacks).then(|| self.trials.to_vec()),
            excess: is_one_rate.then(|| all_excess.map(excess_line).collect()),
            delay_bound_us: self.clock.site.map(|offset| offset.bound_us),
        }
    }

    fn knee(&self) -> (Option<u64>, Option<String>) {
        match &self.knee {
            Some(Knee { bps, reason }) => (*bps, reason.clone()),
            None if self.line.kind == PathProbeKind::Knee => {
                (None, Some("the probe ended before its sweep did".to_owned()))
            }
            None => (None, None),
        }
    }

    fn step(&self, StepResult { step, sent, figures }: &StepResult) -> StepLine {
        StepLine {
            rate_bps: step.rate_bps,
            sent_bps: sent.bps(self.frame_bytes),
            received_bps: figures.bps(self.frame_bytes),
            sent: figures.sent,
            received: figures.received,
            lost: figures.lost,
            receiver_dropped: figures.dropped_here,
            reordered: figures.reordered,
            duplicated: figures.duplicated,
            elapsed_us: figures.elapsed_us,
            delay_us: self.clock.corrected(figures.delay),
            jitter_us: figures.jitter_us,
        }
    }
}

/// The line about a second.
pub fn second_line(probe: &str, second: u64, figures: &Figures, clock: ClockOf) -> ProbeSecondLine {
    ProbeSecondLine {
        probe: probe.to_owned(),
        second,
        sent: figures.sent,
        received: figures.received,
        lost: figures.lost,
        receiver_dropped: figures.dropped_here,
        reordered: figures.reordered,
        duplicated: figures.duplicated,
        bytes: figures.bytes,
        delay_us: clock.corrected(figures.delay),
        jitter_us: figures.jitter_us,
        delay_bound_us: clock.site.map(|offset| offset.bound_us),
    }
}

impl ClockOf {
    /// Delays by clocks that agree; `None`: the offset is not known, or nothing arrived.
    fn corrected(self, delay: Option<Delays>) -> Option<DelayLine> {
        let site_us = self.site?.offset_us;
        let receiver_ahead_us = match self.direction {
            Direction::Out => site_us,
            Direction::In => site_us.saturating_neg(),
        };
        let Delays { min, median, p99, max } = delay?.corrected(receiver_ahead_us);
        Some(DelayLine { min, median, p99, max })
    }
}

fn excess_line(excess: &Excess) -> ExcessLine {
    let Excess { at_us, lost, excess_us, recovery_us, peak_bps, backlog_bytes, predicted_us } = *excess;
    ExcessLine { at_us, lost, excess_us, recovery_us, peak_bps, backlog_bytes, predicted_us }
}

#[cfg(test)]
mod tests {
    use downburst_model::{Micros, SiteName};
    use downburst_probe::{Control, Sent, SentByTcp, Step};

    use super::*;
    use crate::path_probes::{ProbeStepLine, ProbeTransport};

    fn line(kind: PathProbeKind) -> PathProbeLine {
        PathProbeLine {
            probe: "p-1".to_owned(),
            site: SiteName::parse("oslo").unwrap(),
            kind,
            direction: Direction::Out,
            packet_bytes: 954,
            steps: vec![ProbeStepLine { rate_bps: 8_000_000, duration_ms: 1_000 }],
            seconds: true,
            transport: ProbeTransport::Tcp,
            congestion: None,
            rate_bps: 9,
            trials: Vec::new(),
            relay: None,
        }
    }

    fn result() -> StepResult {
        let delay = Some(Delays { min: 1_020, median: 1_030, p99: 1_040, max: 1_050 });
        let excess = vec![Excess { at_us: 5, lost: 1, excess_us: 3, ..Excess::default() }];
        let figures = Figures {
            sent: 1_001,
            received: 1_000,
            lost: 1,
            elapsed_us: 1_000_000,
            delay,
            losses: 1,
            excess,
            ..Figures::default()
        };
        let step = Step { rate_bps: 8_000_000, duration: Micros::from_secs(1) };
        let tcp = Some(SentByTcp { control: Control::parse("bbr"), retransmits: Some(2) });
        StepResult { step, sent: Sent { packets: 1_001, elapsed_us: 1_000_000, lag_us: 70, tcp }, figures }
    }

    fn clock(direction: Direction) -> ClockOf {
        let site = Some(ClockOffset { offset_us: 1_000, bound_us: 9, round_trip_us: 18 });
        ClockOf { site, direction }
    }

    fn ended(kind: PathProbeKind, outcome: Outcome, knee: Option<Knee>) -> ProbeEndedLine {
        let (line, results) = (line(kind), [result()]);
        let clock = clock(Direction::Out);
        let trials = [];
        Conclusion {
            line: &line,
            outcome,
            results: &results,
            trials: &trials,
            knee,
            frame_bytes: 1_000,
            clock,
        }
        .line()
    }

    #[test]
    fn a_step_has_the_rates_of_both_ends_and_delays_by_one_clock() {
        let ended = ended(PathProbeKind::Cbr, Outcome::Done, None);
        let step = &ended.steps[0];
        assert_eq!((step.rate_bps, step.sent_bps, step.received_bps), (8_000_000, 8_000_000, 7_992_000));
        assert_eq!(step.delay_us, Some(DelayLine { min: 20, median: 30, p99: 40, max: 50 }));
        assert_eq!((ended.outcome, ended.sender_lag_us, ended.losses), ("done", 70, 1));
        assert_eq!(
            (ended.congestion.as_deref(), ended.retransmits, ended.trials),
            (Some("bbr"), Some(2), None)
        );
        assert_eq!(
            (ended.excess.map(|it| it.len()), ended.knee_reason, ended.delay_bound_us),
            (Some(1), None, Some(9))
        );
    }

    #[test]
    fn a_delay_to_this_node_has_the_opposite_offset_and_without_a_clock_there_is_none() {
        let delay = result().figures.delay;
        assert_eq!(clock(Direction::In).corrected(delay).map(|it| it.min), Some(2_020));
        let unknown = ClockOf { site: None, direction: Direction::In };
        assert_eq!(unknown.corrected(delay), None);
        let second = second_line("p-1", 3, &result().figures, unknown);
        assert_eq!((second.second, second.lost, second.delay_us, second.delay_bound_us), (3, 1, None, None));
    }

    #[test]
    fn a_knee_is_that_of_a_whole_sweep() {
        let knee = Some(Knee { bps: Some(7), reason: None });
        let done = ended(PathProbeKind::Knee, Outcome::Done, knee);
        assert_eq!((done.knee_bps, done.knee_reason, done.excess), (Some(7), None, None));
        let stopped = ended(PathProbeKind::Knee, Outcome::Stopped("late".to_owned()), None);
        assert_eq!((stopped.outcome, stopped.reason.as_deref()), ("stopped", Some("late")));
        assert!(stopped.knee_bps.is_none() && stopped.knee_reason.is_some());
        assert_eq!(ended(PathProbeKind::Cbr, Outcome::Failed("gone".to_owned()), None).outcome, "failed");
    }

    #[test]
    fn stacks_have_trials_and_neither_steps_nor_excess() {
        let line = line(PathProbeKind::Stacks);
        assert_eq!((line.most_bps(), line.tcp().unwrap().trials), (9, true));
        let trial =
            crate::path_probes::TrialLine { flows: Vec::new(), reverse: Vec::new(), duration_ms: 500 };
        let trials = [trial.refused("none".to_owned())];
        let clock = clock(Direction::Out);
        let outcome = Outcome::Done;
        let conclusion = Conclusion {
            line: &line,
            outcome,
            results: &[],
            trials: &trials,
            knee: None,
            frame_bytes: 9,
            clock,
        };
        let ended = conclusion.line();
        assert_eq!((ended.trials.as_deref(), ended.excess), (Some(&trials[..]), None));
    }
}
