//! What jobs of circuits carry, and what is told of them.
use std::net::IpAddr;

use downburst_model::{SiteName, WallMicros};
use serde::{Deserialize, Serialize};

/// One circuit as this node is to hold it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct LeaseLine {
    /// Its number.
    pub(crate) lease: u32,
    /// Whether it is made here.
    pub(crate) driver: CircuitDriver,
    /// How frames reach several ends.
    #[serde(default)]
    pub(crate) replication: Option<Replication>,
    /// For replication by the underlay: the group.
    #[serde(default)]
    pub(crate) group: Option<IpAddr>,
    /// The tunnel's network identifier; absent: the ends' tags carry it.
    #[serde(default)]
    pub(crate) vni: Option<u32>,
    /// Whether it may have what its ports leave over.
    pub(crate) cap: Cap,
    /// From the hub to each of the others, Ethernet-frame bits per second.
    pub(crate) rate_out_bps: u64,
    /// From each of the others to the hub.
    pub(crate) rate_in_bps: u64,
    /// The classes are this share of the rates.
    #[serde(default = "default_shaped_share")]
    pub(crate) shaped_share: f64,
    /// How much may leave at once; absent: the node decides.
    #[serde(default)]
    pub(crate) burst_bytes: Option<u32>,
    /// It goes by itself then.
    #[serde(default)]
    pub(crate) until_us: Option<WallMicros>,
    /// The hub's first.
    pub(crate) ends: Vec<EndLine>,
}

/// An end of a circuit.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct EndLine {
    /// The name of its port.
    pub(crate) end: String,
    /// Whose it is; absent: this hub's.
    #[serde(default)]
    pub(crate) site: Option<SiteName>,
    /// The port's interface.
    pub(crate) interface: String,
    /// The port's address, between which tunnels are laid.
    #[serde(default)]
    pub(crate) underlay: Option<IpAddr>,
    /// The tag on the port.
    #[serde(default)]
    pub(crate) vlan: Option<u16>,
    /// The end's address inside the circuit, with the length of its prefix.
    pub(crate) address: String,
    /// The rate of the port, if somebody knows it.
    #[serde(default)]
    pub(crate) port_rate_bps: Option<u64>,
}

/// Who makes a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CircuitDriver {
    /// The nodes of its ends.
    Linux,
    /// Somebody else did.
    Declared,
}

/// Who copies frames for several ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Replication {
    /// The sending node.
    HeadEnd,
    /// The network below.
    Underlay,
}

/// What happens beyond the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Cap {
    /// It waits.
    Hard,
    /// It goes where the port is idle.
    Soft,
}

/// See [`Action::CircuitProbe`](super::Action::CircuitProbe).
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct ProbeLine {
    /// Which circuit.
    pub(crate) lease: u32,
    /// Which of its ends.
    pub(crate) site: SiteName,
    /// What to find out.
    pub(crate) kind: ProbeKind,
    /// Of the train, Ethernet-frame bits per second.
    #[serde(default)]
    pub(crate) rate_bps: u64,
    /// Of the train.
    #[serde(default)]
    pub(crate) duration_ms: u64,
    /// Which way it goes.
    #[serde(default)]
    pub(crate) direction: Option<Direction>,
}

/// What a probe finds out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ProbeKind {
    /// Whether packets go there and back.
    Reach,
    /// How much arrives of a train.
    Rate,
}

/// Seen from the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Direction {
    /// To the other end.
    Out,
    /// From it.
    In,
}

/// How a circuit stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Standing {
    pub(crate) lease: u32,
    pub(crate) state: &'static str,
    pub(crate) took_ms: u64,
    pub(crate) ends: Vec<EndStanding>,
}

/// How an end of it stands.
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

/// What a circuit carried since the last line.
#[derive(Debug, Serialize)]
pub(crate) struct CircuitTraffic {
    pub(crate) lease: u32,
    pub(crate) site: Option<SiteName>,
    pub(crate) out_bytes: u64,
    pub(crate) in_bytes: u64,
}

/// DYNES: shaped to nine tenths a circuit carried 36 times what it did without.
const fn default_shaped_share() -> f64 {
    0.9
}
