//! Probes of the path between this node and a site: their lines, and the result in them.
mod ended;
mod lines;
mod stacks;

pub use ended::{ClockOf, Conclusion, Outcome, StepLine, second_line};
pub use lines::{
    DelayLine, ExcessLine, PathProbeKind, PathProbeLine, ProbeEndedLine, ProbeSecondLine, ProbeStepLine,
    ProbeTransport,
};
pub use stacks::{FlowLine, RoundTripLine, TrialEndedLine, TrialLine};
