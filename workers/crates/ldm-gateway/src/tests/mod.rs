//! The gateway with hubs that are no more than logs.
mod between_hubs;
pub(crate) mod rig;
mod taking;
