//! The circuits of a hub: leases, the reports of the sites on their ends, and whether these answer.
//!
//! The kernel's half of an end, its probes and its listener are the driver's.
mod door;
mod ends;
mod faults;
mod held;
mod lease;
mod lines;
mod pair;
mod probes;
mod standings;
mod tags;
mod traffic;
mod transit;

pub use door::is_covered;
pub use ends::{CircuitEnds, EndChange, EndLook, EndReport};
pub use faults::{no_endpoint, no_listener, no_random_bits};
pub use held::{HeldCircuit, not_up};
pub use lease::{EndShape, EndWay, HubEnd, Lease, OwnEnd, PROBE_FRAME_BYTES};
pub use lines::{
    Cap, CircuitDriver, CircuitStanding, CircuitTraffic, CircuitWord, CircuitsAnswer, Direction, EndLine,
    EndStanding, EndWord, HopLine, LeaseLine, LeftBehind, ProbeKind, ProbeLine, Replication, TransitLine,
};
pub use pair::{PairLook, PairWatch};
pub use probes::{ProbeAnswer, ProbeOrder, RateAnswer, ReachAnswer, Train, TrainMeasured};
pub use standings::{Attempt, attempt_result, failed_begin};
pub use traffic::CarriedBytes;
