//! The agent's jobs: their failures, and the wait for all sites.
mod drain;
mod failure;

pub use drain::{Drain, DrainStep, Drained, behind};
pub use failure::Failure;
