//! Probes over TCP. The site connects to a port of the node that is open for one probe, and shows the probe's key
//! first.
mod entrance;
mod flows;
mod gathering;
mod stream;

pub(crate) use entrance::{Far, check_control};
pub(crate) use flows::{Flows, open_flows};
pub(crate) use gathering::Gathering;
pub(crate) use stream::Stream;
