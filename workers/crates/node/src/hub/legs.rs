//! Multicast legs: their plans, their threads, and the repair channels of their sites.
pub(super) mod catch_up;
pub(super) mod channels;
pub(super) mod leg;
pub(super) mod plans;
pub(super) mod relayed;

use std::collections::BTreeMap;
use std::sync::Mutex;

use downburst_hub::CatchUps;
use downburst_model::LegId;

use channels::Channels;
use plans::Plans;

/// All legs of a hub.
#[derive(Default)]
pub(super) struct Legs {
    pub(super) plans: Mutex<Plans>,
    pub(super) channels: Channels,
    /// Sites that catch up together. Its lock is taken before that of the plans, never after it.
    pub(super) catch_ups: Mutex<CatchUps>,
    /// Datagrams of each leg that found no room on the way to its relay.
    pub(super) relay_dropped: Mutex<BTreeMap<LegId, u64>>,
}
