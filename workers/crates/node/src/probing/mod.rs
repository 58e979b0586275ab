//! The packets of a probe of a path, at either end: one thread receives and counts, one sends a step.
//!
//! By UDP ([`Port`]), or over TCP: records of a constant rate ([`Stream`]) and greedy flows ([`Flows`]).
mod arrivals;
mod counter;
mod port;
mod sending;
mod tcp;
mod way;

pub(crate) use counter::Counter;
pub(crate) use port::{MaySayHello, Port};
pub(crate) use sending::Sending;
pub(crate) use tcp::{Far, Flows, Gathering, Stream, check_control, open_flows};
pub(crate) use way::Way;

/// A read or a write that took as long as a thread may wait.
fn is_quiet(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

/// A thread looks at least so often whether the probe is over.
const PATIENCE: std::time::Duration = std::time::Duration::from_millis(50);
