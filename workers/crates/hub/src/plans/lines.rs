//! What the agent tells of plans.
use downburst_model::{FeedName, LegId, SiteName, Transport};
use serde::Deserialize;

/// The plan of a feed.
#[derive(Clone, Debug, Deserialize)]
pub struct PlanLine {
    /// The feed.
    pub feed: FeedName,
    /// Rising per feed; a lower one than the last is refused.
    pub version: u64,
    /// Its legs.
    pub legs: Vec<LegLine>,
}

/// One leg of a plan.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct LegLine {
    /// Its number.
    pub leg: LegId,
    /// How.
    pub transport: Transport,
    /// For whom.
    pub sites: Vec<SiteName>,
    /// For a static circuit: which one carries it to each site.
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
    /// Multicast only: name, number or address of the interface that it leaves by; empty: the hub's.
    #[serde(default)]
    pub interface: String,
    /// Multicast only: the circuit that it leaves by. Its interface is then the circuit's, and its rate the
    /// circuit's shaped rate, or `rate_bps` if that is less: frames of the circuit's tunnel count there.
    #[serde(default)]
    pub circuit: Option<u32>,
    /// Multicast only: how far it may travel (TTL, hop limit).
    #[serde(default = "default_hops")]
    pub hops: u8,
    /// Multicast only: beyond the rate at most so many bytes of frames leave; absent: 10 ms of the rate.
    #[serde(default)]
    pub burst_bytes: Option<u64>,
    /// Multicast only: so many percent of symbols at most are sent before anybody asks.
    #[serde(default)]
    pub parity_percent: f64,
    /// Multicast only: the rate follows the site that this share of the others lose no more than.
    #[serde(default = "default_loss_quantile")]
    pub loss_quantile: f64,
    /// Multicast only: what is older is not repaired by the group; the session brings it.
    #[serde(default)]
    pub repair_seconds: Option<u32>,
    /// Multicast only: whether trains may leave in one call.
    #[serde(default = "default_offload")]
    pub offload: bool,
}

/// The circuit that carries a leg to a site.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct CarrierLine {
    /// The site.
    pub site: SiteName,
    /// The circuit.
    pub lease: u32,
}

const fn default_hops() -> u8 {
    32
}

const fn default_loss_quantile() -> f64 {
    0.5
}

fn default_offload() -> bool {
    true
}
