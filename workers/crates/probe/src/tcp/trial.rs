//! A trial of greedy flows, and the figures of each.
use downburst_model::Micros;
use minicbor::{Decode, Encode};

use super::{Control, fairness};

/// A flow of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Flow {
    /// The congestion control of its sender.
    #[n(0)]
    pub control: Control,
    /// True: the site sends it; else the node.
    #[n(1)]
    pub from_site: bool,
}

/// The figures of a flow: of an end, or of both together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct FlowFigures {
    /// The payload that arrived between begin and end, by the receiver.
    #[n(0)]
    pub received_bytes: u64,
    /// The time from begin to end, by the receiver.
    #[n(1)]
    pub elapsed_us: u64,
    /// The repeated segments, by the sender's `TCP_INFO`.
    #[n(2)]
    pub retransmits: Option<u64>,
    /// The shortest round trip, by the sender's.
    #[n(3)]
    pub least_round_trip_us: Option<u64>,
    /// The mean of the sender's smoothed round trips.
    #[n(4)]
    pub mean_round_trip_us: Option<u64>,
    /// The time for which the probe's own limit held the sender back.
    #[n(5)]
    pub held_us: u64,
}

/// A trial that ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trial {
    /// The figures of each flow, with whether it goes the opposite way.
    pub flows: Vec<(FlowFigures, bool)>,
}

impl FlowFigures {
    /// The figures of a flow from those of both its ends.
    pub fn merged(sender: Self, receiver: Self) -> Self {
        Self { received_bytes: receiver.received_bytes, elapsed_us: receiver.elapsed_us, ..sender }
    }

    /// The rate of the payload that arrived, bits per second.
    pub fn goodput_bps(&self) -> u64 {
        let bits = u128::from(self.received_bytes).saturating_mul(8_000_000);
        bits.checked_div(self.elapsed_us.into()).map_or(0, |bps| u64::try_from(bps).unwrap_or(u64::MAX))
    }
}

impl Trial {
    /// Jain's index of the flows that go the probe's way.
    pub fn fairness(&self) -> Option<f64> {
        let forward = self.flows.iter().filter(|(_, reverse)| !reverse);
        fairness(&forward.map(|(figures, _)| figures.goodput_bps()).collect::<Vec<u64>>())
    }

    /// True if the probe's own limit, and not the path, was the bottleneck of a flow: it held the flow back for more
    /// than a tenth of the time.
    pub fn is_limited(&self) -> bool {
        self.flows.iter().any(|(figures, _)| figures.held_us > figures.elapsed_us / 10)
    }
}

/// The most trials of a probe.
pub const MOST_TRIALS: usize = 32;
/// The most flows of a trial that go the probe's way.
pub const MOST_FLOWS: usize = 4;
/// The most that go the opposite way.
pub const MOST_REVERSE_FLOWS: usize = 2;
/// The shortest trial.
pub const SHORTEST_TRIAL: Micros = Micros::from_millis(500);
/// The longest trial: greedy flows harm other traffic of the path.
pub const LONGEST_TRIAL: Micros = Micros::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(received_bytes: u64, held_us: u64) -> FlowFigures {
        FlowFigures { received_bytes, elapsed_us: 1_000_000, held_us, ..FlowFigures::default() }
    }

    #[test]
    fn a_flow_has_the_bytes_of_its_receiver_and_the_kernel_figures_of_its_sender() {
        let sender = FlowFigures { retransmits: Some(3), held_us: 7, ..flow(1, 7) };
        let merged = FlowFigures::merged(sender, FlowFigures { held_us: 99, ..flow(1_000_000, 99) });
        assert_eq!((merged.goodput_bps(), merged.retransmits, merged.held_us), (8_000_000, Some(3), 7));
        assert_eq!(FlowFigures::default().goodput_bps(), 0);
        let absurd = FlowFigures { received_bytes: u64::MAX, elapsed_us: 1, ..FlowFigures::default() };
        assert_eq!(absurd.goodput_bps(), u64::MAX);
    }

    #[test]
    fn reverse_flows_count_for_the_limit_and_not_for_fairness() {
        let trial =
            Trial { flows: vec![(flow(5, 0), false), (flow(5, 0), false), (flow(900, 100_000), true)] };
        assert_eq!((trial.fairness(), trial.is_limited()), (Some(1.0), false));
        let held = Trial { flows: vec![(flow(5, 100_001), false)] };
        assert_eq!((held.fairness(), held.is_limited()), (None, true));
    }
}
