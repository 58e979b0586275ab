//! Circuits on this host: the code that a hub's node and a site's node share.
//!
//! [`Keeper`] holds the halves of circuits in the kernel. An [`Endpoint`] on one of them exchanges packets with the
//! other ends, to find out whether the circuit carries traffic, and how much. The list of circuits is decided
//! elsewhere.
mod endpoint;
mod gathering;
mod keeper;
mod measure;
mod packet;
mod rate;
mod tool;

pub(crate) use endpoint::Endpoint;
pub(crate) use keeper::Keeper;
pub use keeper::describe_host;
pub(crate) use measure::{Measured, measure};
pub use tool::{CircuitTool, run};
