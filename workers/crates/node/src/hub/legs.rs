//! Multicast legs: their plans, their threads, and the repair channels of their sites.
pub(super) mod channels;
pub(super) mod leg;
pub(super) mod plans;

use std::sync::Mutex;

use channels::Channels;
use plans::Plans;

/// All legs of a hub.
#[derive(Default)]
pub(super) struct Legs {
    pub(super) plans: Mutex<Plans>,
    pub(super) channels: Channels,
}
