//! The packets of a probe of a path, at either end: one thread receives and counts, one sends a step.
mod arrivals;
mod port;
mod sending;

pub(crate) use port::{MaySayHello, Port};
pub(crate) use sending::Sending;
