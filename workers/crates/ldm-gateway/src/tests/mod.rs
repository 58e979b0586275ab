//! The gateway with hubs that consist of logs alone.
mod between_hubs;
pub(crate) mod rig;
mod taking;
