//! The agent's lines about circuits: the fields of jobs, answers and reports.
use std::net::IpAddr;

use downburst_model::{SiteName, WallMicros};
use serde::{Deserialize, Serialize};

/// One circuit that this node is to hold.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct LeaseLine {
    /// The number of the lease.
    pub lease: u32,
    /// Whether the nodes create the circuit.
    pub driver: CircuitDriver,
    /// The replication of frames for several ends.
    #[serde(default)]
    pub replication: Option<Replication>,
    /// For replication by the underlay: the multicast group.
    #[serde(default)]
    pub group: Option<IpAddr>,
    /// The network identifier of tunnels at ends without one of their own; absent: each end has its own identifier or
    /// tag.
    #[serde(default)]
    pub vni: Option<u32>,
    /// Whether it may use idle bandwidth of its ports beyond its rate.
    pub cap: Cap,
    /// From the near end to each of the others, Ethernet-frame bits per second.
    pub rate_out_bps: u64,
    /// From each of the others to the near end.
    pub rate_in_bps: u64,
    /// The rates of the shaper's classes as a share of the circuit's rates.
    #[serde(default = "default_shaped_share")]
    pub shaped_share: f64,
    /// The largest burst; absent: the node decides.
    #[serde(default)]
    pub burst_bytes: Option<u32>,
    /// The end of the lease: the node then removes the circuit by itself.
    #[serde(default)]
    pub until_us: Option<WallMicros>,
    /// The near end comes first: the hub's, or of two sites that of the nearer one.
    pub ends: Vec<EndLine>,
    /// The sites on its path that join two hops with different tags, from the near end on.
    #[serde(default)]
    pub transits: Vec<TransitLine>,
}

/// A site between two hops of a circuit.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct TransitLine {
    /// The name of its port.
    pub end: String,
    /// The site.
    pub site: SiteName,
    /// The port's interface.
    pub interface: String,
    /// The port's address as an end of tunnels.
    #[serde(default)]
    pub underlay: Option<IpAddr>,
    /// The rate of the port, if known.
    #[serde(default)]
    pub port_rate_bps: Option<u64>,
    /// The hop towards the near end.
    pub near: HopLine,
    /// The hop towards the far end.
    pub far: HopLine,
}

/// A hop of a circuit, seen from a site between two of them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct HopLine {
    /// The tag on the port.
    #[serde(default)]
    pub vlan: Option<u16>,
    /// The network identifier of its tunnel.
    #[serde(default)]
    pub vni: Option<u32>,
    /// The address of the tunnel's other end.
    #[serde(default)]
    pub via: Option<IpAddr>,
}

/// An end of a circuit.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct EndLine {
    /// The name of its port.
    pub end: String,
    /// The site of the end; absent: it is this hub's own.
    #[serde(default)]
    pub site: Option<SiteName>,
    /// The port's interface.
    pub interface: String,
    /// The port's address as an end of tunnels.
    #[serde(default)]
    pub underlay: Option<IpAddr>,
    /// The tag on the port.
    #[serde(default)]
    pub vlan: Option<u16>,
    /// The network identifier of its tunnel: the tag of its hop.
    #[serde(default)]
    pub vni: Option<u32>,
    /// The address of the tunnel's other end, where that is a site between two hops.
    #[serde(default)]
    pub via: Option<IpAddr>,
    /// The end's address inside the circuit, with the length of its prefix.
    pub address: String,
    /// The rate of the port, if known.
    #[serde(default)]
    pub port_rate_bps: Option<u64>,
}

/// The creator of a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CircuitDriver {
    /// The nodes of its ends.
    Linux,
    /// An outside provider.
    Declared,
}

/// The replication of frames for several ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Replication {
    /// The sending node replicates.
    HeadEnd,
    /// The underlay network replicates.
    Underlay,
}

/// The treatment of traffic beyond the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cap {
    /// It is delayed.
    Hard,
    /// It passes after all other traffic of the port, marked as less than best effort.
    Soft,
}

/// A measurement of a circuit.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ProbeLine {
    /// The circuit.
    pub lease: u32,
    /// The site at the other end.
    pub site: SiteName,
    /// The kind of measurement.
    pub kind: ProbeKind,
    /// The rate of the train, Ethernet-frame bits per second.
    #[serde(default)]
    pub rate_bps: u64,
    /// The length of the train.
    #[serde(default)]
    pub duration_ms: u64,
    /// The direction of the train.
    #[serde(default)]
    pub direction: Option<Direction>,
}

/// The kind of measurement of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeKind {
    /// Whether the other end answers packets.
    Reach,
    /// The rate at which a train arrives.
    Rate,
}

/// A direction, from the view of the near end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// To the other end.
    Out,
    /// From the other end.
    In,
}

/// The answer to a job that creates or changes a circuit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CircuitStanding {
    /// The number of the lease.
    pub lease: u32,
    /// The state of the circuit.
    pub state: CircuitWord,
    /// The duration of the job.
    pub took_ms: u64,
    /// The ends, the near one first.
    pub ends: Vec<EndStanding>,
}

/// The state of a circuit, as a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CircuitWord {
    /// Every end is up.
    Up,
    /// The others are up; a site did not report its end.
    Partial,
    /// An end could not be set up.
    Failed,
}

/// The state of one end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EndStanding {
    /// The name of its port.
    pub end: String,
    /// Its site; absent: it is this hub's own.
    pub site: Option<SiteName>,
    /// Its state.
    pub state: EndWord,
    /// The failed step, as a word.
    pub step: Option<String>,
    /// The place of the failure, for people.
    pub hop: Option<String>,
    /// The fault, in one sentence.
    pub sentence: Option<String>,
    /// The remedy.
    pub remedy: Option<String>,
}

/// The state of an end, as a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndWord {
    /// It is set up.
    Up,
    /// Its site did not report it.
    Away,
    /// It could not be set up.
    Failed,
}

/// The answer to a job that names the whole set of circuits.
#[derive(Debug, Serialize)]
pub struct CircuitsAnswer {
    /// The states of the wanted ones.
    pub circuits: Vec<CircuitStanding>,
    /// The leases of those that were removed.
    pub removed: Vec<u32>,
}

/// A part of a removed circuit that stays behind in the kernel.
#[derive(Debug, Serialize)]
pub struct LeftBehind {
    /// The failed step, as a word.
    pub step: String,
    /// The place of the failure, for people.
    pub hop: String,
    /// The fault, in one sentence.
    pub sentence: String,
    /// The remedy.
    pub remedy: String,
}

/// The traffic of a circuit since the last line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CircuitTraffic {
    /// The number of the lease.
    pub lease: u32,
    /// The other end, if there is only one.
    pub site: Option<SiteName>,
    /// Bytes of frames to the other ends.
    pub out_bytes: u64,
    /// Bytes of frames from them.
    pub in_bytes: u64,
}

/// DYNES: shaped to nine tenths of its rate, a circuit carried 36 times as much as without shaping.
const fn default_shaped_share() -> f64 {
    0.9
}
