//! The agent's lines about plans.
use downburst_model::{FeedName, LegId, SiteName, Transport};
use serde::Deserialize;

use crate::catch_ups::CatchUpLine;

/// The plan of a feed.
#[derive(Clone, Debug, Deserialize)]
pub struct PlanLine {
    /// The feed.
    pub feed: FeedName,
    /// Increases per feed; a version lower than the last is refused.
    pub version: u64,
    /// Its legs.
    pub legs: Vec<LegLine>,
}

/// One leg of a plan.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct LegLine {
    /// Its number.
    pub leg: LegId,
    /// Its transport.
    pub transport: Transport,
    /// Its sites.
    pub sites: Vec<SiteName>,
    /// Static circuit only: the circuit that carries it to each site.
    #[serde(default)]
    pub circuits: Vec<CarrierLine>,
    /// Multicast only: the group's address.
    #[serde(default)]
    pub group: String,
    /// Multicast only: the group's port.
    #[serde(default)]
    pub port: u16,
    /// Multicast only: Ethernet-frame bits per second.
    #[serde(default)]
    pub rate_bps: u64,
    /// Multicast only: name, number or address of the outgoing interface; empty: the hub's.
    #[serde(default)]
    pub interface: String,
    /// Multicast only: the circuit that it leaves over. Its interface is then the circuit's, and its rate the
    /// circuit's shaped rate, or `rate_bps` if that is lower: frames of the circuit's tunnel count for it.
    #[serde(default)]
    pub circuit: Option<u32>,
    /// Multicast only: the relay that sends it into its network; absent: the hub sends it itself.
    #[serde(default)]
    pub relay: Option<SiteName>,
    /// Legs of relays only: the way from the relay to the sites.
    #[serde(default)]
    pub fan_out: FanOut,
    /// Multicast only: the number of hops that its packets may travel (TTL, hop limit).
    #[serde(default = "default_hops")]
    pub hops: u8,
    /// Multicast only: the maximum burst above the rate, in bytes of frames; absent: 10 ms of the rate.
    #[serde(default)]
    pub burst_bytes: Option<u64>,
    /// Multicast only: the losses of its sites.
    #[serde(flatten)]
    pub losses: LossLine,
    /// Multicast only: true if trains may leave in one call.
    #[serde(default = "default_offload")]
    pub offload: bool,
}

/// The way in which a relay hands out the one copy of a leg.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FanOut {
    /// To a multicast group of its network.
    #[default]
    Group,
    /// To each site by unicast.
    Unicast,
}

/// The treatment of losses on a multicast leg.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct LossLine {
    /// The maximum percentage of symbols that are sent before any request.
    #[serde(default)]
    pub parity_percent: f64,
    /// The quantile of the sites' losses that the rate follows.
    #[serde(default = "default_loss_quantile")]
    pub loss_quantile: f64,
    /// The age up to which the group repairs packets; the session delivers older ones.
    #[serde(default)]
    pub repair_seconds: Option<u32>,
    /// How sites that return from an outage get what they all lack; absent: each by its session.
    #[serde(default)]
    pub catch_up: Option<CatchUpLine>,
}

/// The circuit that carries a leg to a site.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct CarrierLine {
    /// The site.
    pub site: SiteName,
    /// The circuit.
    pub lease: u32,
}

/// Enough for a national network; multicast is not routed beyond it by accident.
const fn default_hops() -> u8 {
    32
}

const fn default_loss_quantile() -> f64 {
    0.5
}

fn default_offload() -> bool {
    true
}
