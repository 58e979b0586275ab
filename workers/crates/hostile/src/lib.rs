//! Messages of an enrolled site that decode but make no sense. A seeded generator makes frames of every kind in
//! a session: with the right shape, with the feeds, epochs and legs that the hub named, and with values that no
//! honest site sends.
//!
//! Nothing here opens a socket: tests of the session's crate drive a machine with these frames,
//! `downburst-swarm --hostile` a hub.
#![forbid(unsafe_code)]

mod absurd;
mod cbor;
mod dice;
mod frames;
mod messages;
mod scene;
mod story;

pub use dice::{Dice, Temper};
pub use frames::{Liar, first_frame};
pub use scene::Scene;
pub use story::{Ending, Opening, Story};
