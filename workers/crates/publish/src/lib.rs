//! A site's connection to its MQTT broker, by which it announces products in WIS2.
//!
//! [`Outlet`] has a thread that connects, comes back after each loss with growing pauses, and reports the broker's
//! answer to each notification. A lost connection loses what was under way: the caller sends it again with the same
//! id, as it does after a crash. Nothing is kept here.
#![forbid(unsafe_code)]
// The purpose of this crate is a thread, with the time limits of its connection.
#![allow(clippy::disallowed_methods)]

mod options;
mod outlet;
mod pauses;
mod sentences;
mod state;
#[cfg(test)]
mod tests;

pub use outlet::Outlet;
pub use state::Answer;
