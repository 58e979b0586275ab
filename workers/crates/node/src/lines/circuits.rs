//! The fields of circuit jobs, and the reports on circuits.
use std::net::IpAddr;

use downburst_model::{SiteName, WallMicros};
use serde::{Deserialize, Serialize};

/// One circuit that this node is to hold.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct LeaseLine {
    /// The number of the lease.
    pub(crate) lease: u32,
    /// Whether the nodes create the circuit.
    pub(crate) driver: CircuitDriver,
    /// The replication of frames for several ends.
    #[serde(default)]
    pub(crate) replication: Option<Replication>,
    /// For replication by the underlay: the multicast group.
    #[serde(default)]
    pub(crate) group: Option<IpAddr>,
    /// The tunnel's network identifier; absent: VLAN tags of the ends identify the circuit.
    #[serde(default)]
    pub(crate) vni: Option<u32>,
    /// Whether it may use idle bandwidth of its ports beyond its rate.
    pub(crate) cap: Cap,
    /// From the hub to each of the other ends, Ethernet-frame bits per second.
    pub(crate) rate_out_bps: u64,
    /// From each of the other ends to the hub.
    pub(crate) rate_in_bps: u64,
    /// The rates of the shaper's classes as a share of the circuit's rates.
    #[serde(default = "default_shaped_share")]
    pub(crate) shaped_share: f64,
    /// The largest burst; absent: the node decides.
    #[serde(default)]
    pub(crate) burst_bytes: Option<u32>,
    /// The end of the lease: the node then removes the circuit by itself.
    #[serde(default)]
    pub(crate) until_us: Option<WallMicros>,
    /// The hub's end comes first.
    pub(crate) ends: Vec<EndLine>,
}

/// An end of a circuit.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct EndLine {
    /// The name of its port.
    pub(crate) end: String,
    /// The site of the end; absent: it is this hub's own.
    #[serde(default)]
    pub(crate) site: Option<SiteName>,
    /// The port's interface.
    pub(crate) interface: String,
    /// The port's address as an end of tunnels.
    #[serde(default)]
    pub(crate) underlay: Option<IpAddr>,
    /// The tag on the port.
    #[serde(default)]
    pub(crate) vlan: Option<u16>,
    /// The end's address inside the circuit, with the length of its prefix.
    pub(crate) address: String,
    /// The rate of the port, if known.
    #[serde(default)]
    pub(crate) port_rate_bps: Option<u64>,
}

/// The creator of a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CircuitDriver {
    /// The nodes of its ends.
    Linux,
    /// An outside provider.
    Declared,
}

/// The replication of frames for several ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Replication {
    /// The sending node replicates.
    HeadEnd,
    /// The underlay network replicates.
    Underlay,
}

/// The treatment of traffic beyond the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Cap {
    /// It is delayed.
    Hard,
    /// It passes while the port is idle.
    Soft,
}

/// See [`Action::CircuitProbe`](super::Action::CircuitProbe).
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct ProbeLine {
    /// The circuit.
    pub(crate) lease: u32,
    /// The site at the other end.
    pub(crate) site: SiteName,
    /// The kind of measurement.
    pub(crate) kind: ProbeKind,
    /// The rate of the train, Ethernet-frame bits per second.
    #[serde(default)]
    pub(crate) rate_bps: u64,
    /// The length of the train.
    #[serde(default)]
    pub(crate) duration_ms: u64,
    /// The direction of the train.
    #[serde(default)]
    pub(crate) direction: Option<Direction>,
}

/// The kind of measurement of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ProbeKind {
    /// Whether the other end answers packets.
    Reach,
    /// The rate at which a train arrives.
    Rate,
}

/// A direction, from the view of the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Direction {
    /// To the other end.
    Out,
    /// From the other end.
    In,
}

/// The state of a circuit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Standing {
    pub(crate) lease: u32,
    pub(crate) state: &'static str,
    pub(crate) took_ms: u64,
    pub(crate) ends: Vec<EndStanding>,
}

/// The state of one end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct EndStanding {
    pub(crate) end: String,
    pub(crate) site: Option<SiteName>,
    pub(crate) state: &'static str,
    pub(crate) step: Option<String>,
    pub(crate) hop: Option<String>,
    pub(crate) sentence: Option<String>,
    pub(crate) remedy: Option<String>,
}

/// The traffic of a circuit since the last line.
#[derive(Debug, Serialize)]
pub(crate) struct CircuitTraffic {
    pub(crate) lease: u32,
    pub(crate) site: Option<SiteName>,
    pub(crate) out_bytes: u64,
    pub(crate) in_bytes: u64,
}

/// DYNES: shaped to nine tenths of its rate, a circuit carried 36 times as much as without shaping.
const fn default_shaped_share() -> f64 {
    0.9
}
