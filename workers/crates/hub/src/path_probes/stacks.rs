//! Trials of greedy flows: what is asked, and their result.
use downburst_probe::{
    Control, LONGEST_TRIAL, MOST_FLOWS, MOST_REVERSE_FLOWS, MOST_TRIALS, SHORTEST_TRIAL, Trial,
};
use serde::{Deserialize, Serialize};

/// An asked trial. Its names are those of congestion controls.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct TrialLine {
    /// A flow each, that goes the way of the probe.
    pub flows: Vec<String>,
    /// A flow each, that goes the opposite way.
    #[serde(default)]
    pub reverse: Vec<String>,
    /// Its length in time.
    pub duration_ms: u64,
}

/// The result of a trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrialEndedLine {
    /// Its length in time, as asked.
    pub duration_ms: u64,
    /// Why it did not run; `None`: it did.
    pub reason: Option<String>,
    /// Jain's index of the flows that go the way of the probe; `None` for fewer than two.
    pub fairness: Option<f64>,
    /// Whether the probe's own limit, and not the path, was the bottleneck.
    pub limited: bool,
    /// The flows; none if it did not run.
    pub flows: Vec<FlowLine>,
}

/// A flow of a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FlowLine {
    /// Its congestion control.
    pub congestion: String,
    /// Whether it went the opposite way.
    pub reverse: bool,
    /// The rate of its payload that arrived between begin and end, bits per second.
    pub goodput_bps: u64,
    /// The repeated segments; `None`: its sender's kernel does not report them.
    pub retransmits: Option<u64>,
    /// Its round trips.
    pub round_trip_us: RoundTripLine,
}

/// The round trips of a flow, by the sender's kernel; `None`: not reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RoundTripLine {
    /// The shortest.
    pub min: Option<u64>,
    /// The mean of the smoothed ones.
    pub mean: Option<u64>,
}

impl TrialLine {
    /// The flows, with whether each goes the opposite way.
    pub fn controls(&self) -> impl Iterator<Item = (Control, bool)> {
        let forward = self.flows.iter().map(|name| (name, false));
        let all = forward.chain(self.reverse.iter().map(|name| (name, true)));
        all.filter_map(|(name, reverse)| Some((Control::parse(name)?, reverse)))
    }

    /// The result of one that did not run.
    pub fn refused(&self, reason: String) -> TrialEndedLine {
        let duration_ms = self.duration_ms;
        let reason = Some(reason);
        TrialEndedLine { duration_ms, reason, fairness: None, limited: false, flows: Vec::new() }
    }

    /// The result of one that ran.
    pub fn ran(&self, trial: &Trial) -> TrialEndedLine {
        let flow =
            |((control, reverse), (figures, _)): ((Control, bool), &(downburst_probe::FlowFigures, bool))| {
                let round_trip_us =
                    RoundTripLine { min: figures.least_round_trip_us, mean: figures.mean_round_trip_us };
                FlowLine {
                    congestion: control.to_string(),
                    reverse,
                    goodput_bps: figures.goodput_bps(),
                    retransmits: figures.retransmits,
                    round_trip_us,
                }
            };
        TrialEndedLine {
            duration_ms: self.duration_ms,
            reason: None,
            fairness: trial.fairness(),
            limited: trial.is_limited(),
            flows: self.controls().zip(&trial.flows).map(flow).collect(),
        }
    }

    fn check(&self) -> Result<(), String> {
        if !(1..=MOST_FLOWS).contains(&self.flows.len()) {
            return Err(format!("a trial has {} `flows`; it takes 1 to {MOST_FLOWS}", self.flows.len()));
        }
        if self.reverse.len() > MOST_REVERSE_FLOWS {
            let many = self.reverse.len();
            return Err(format!(
                "a trial has {many} flows in `reverse`; it takes at most {MOST_REVERSE_FLOWS}"
            ));
        }
        self.flows.iter().chain(&self.reverse).try_for_each(|name| check_control(name))?;
        let (shortest_ms, longest_ms) = (SHORTEST_TRIAL.0 / 1_000, LONGEST_TRIAL.0 / 1_000);
        if (shortest_ms..=longest_ms).contains(&self.duration_ms) {
            return Ok(());
        }
        Err(format!("`duration_ms` of a trial is {}; it is {shortest_ms} to {longest_ms}", self.duration_ms))
    }
}

/// Checks the trials of a probe; the error is one sentence.
pub(super) fn check_trials(trials: &[TrialLine]) -> Result<(), String> {
    if !(1..=MOST_TRIALS).contains(&trials.len()) {
        return Err(format!("a probe has {} `trials`; it takes 1 to {MOST_TRIALS}", trials.len()));
    }
    trials.iter().try_for_each(TrialLine::check)
}

/// Checks the name of a congestion control; the error is one sentence.
pub(super) fn check_control(name: &str) -> Result<(), String> {
    Control::parse(name).map(|_| ()).ok_or_else(|| {
        let shown = crate::shown(name);
        format!("{shown:?} names no congestion control; a name has 1 to 15 of a to z, 0 to 9, _ and -")
    })
}

#[cfg(test)]
mod tests {
    use downburst_probe::FlowFigures;
    use serde_json::json;

    use super::*;

    fn trial(flows: &[&str], reverse: &[&str], duration_ms: u64) -> TrialLine {
        serde_json::from_value(json!({"flows": flows, "reverse": reverse, "duration_ms": duration_ms}))
            .unwrap()
    }

    #[test]
    fn a_trial_has_a_few_named_flows_and_an_end() {
        assert_eq!(check_trials(&[trial(&["bbr"; 4], &["reno"; 2], 500)]), Ok(()));
        assert!(check_trials(&[]).unwrap_err().contains("0 `trials`"));
        assert!(check_trials(&vec![trial(&["bbr"], &[], 500); 33]).unwrap_err().contains("33"));
        assert!(check_trials(&[trial(&[], &["bbr"], 500)]).unwrap_err().contains("0 `flows`"));
        assert!(check_trials(&[trial(&["bbr"; 5], &[], 500)]).unwrap_err().contains("5 `flows`"));
        assert!(check_trials(&[trial(&["bbr"], &["bbr"; 3], 500)]).unwrap_err().contains("`reverse`"));
        assert!(check_trials(&[trial(&["BBR"], &[], 500)]).unwrap_err().contains("names no congestion"));
        for millis in [499, 60_001] {
            assert!(check_trials(&[trial(&["bbr"], &[], millis)]).unwrap_err().contains("`duration_ms`"));
        }
    }

    #[test]
    fn a_result_names_each_flow() {
        let asked = trial(&["cubic", "bbr"], &["reno"], 1_000);
        let flow = |received_bytes, reverse| {
            let figures = FlowFigures {
                received_bytes,
                elapsed_us: 1_000_000,
                least_round_trip_us: Some(40_000),
                ..FlowFigures::default()
            };
            (figures, reverse)
        };
        let result = asked.ran(&Trial { flows: vec![flow(3, false), flow(1, false), flow(9, true)] });
        let names: Vec<(&str, bool, u64)> = result
            .flows
            .iter()
            .map(|flow| (flow.congestion.as_str(), flow.reverse, flow.goodput_bps))
            .collect();
        assert_eq!(names, [("cubic", false, 24), ("bbr", false, 8), ("reno", true, 72)]);
        assert!((result.fairness.unwrap() - 0.8).abs() < 1e-9 && !result.limited);
        assert_eq!(asked.refused("no".to_owned()).reason.as_deref(), Some("no"));
    }
}
