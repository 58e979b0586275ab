//! The fields of jobs.
use std::net::SocketAddr;
use std::path::PathBuf;

use downburst_model::{SiteName, WallMicros};
use serde::Deserialize;

/// See [`Action::Start`].
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Start {
    /// The hub's name, shown to sites.
    pub(crate) name: String,
    /// The directory of the logs and the keys.
    pub(crate) data_dir: PathBuf,
    /// Addresses for sites.
    pub(crate) listen: Vec<String>,
    /// The host that counts as the origin of products without one.
    pub(crate) origin: String,
    /// The use of this host's network beside the addresses for sites.
    #[serde(flatten)]
    pub(crate) network: Box<NetworkLine>,
    /// The directory of batch files.
    pub(crate) batch_dir: PathBuf,
    /// The interval between batch files.
    #[serde(default = "default_batch_seconds")]
    pub(crate) batch_seconds: f64,
    /// Congestion control of the connections with sites; the system's if none is named.
    #[serde(default)]
    pub(crate) tcp_congestion: Option<String>,
    /// The records kept beside the logs.
    #[serde(flatten)]
    pub(crate) records: RecordsLine,
    /// The most data connections of a site beside its first connection.
    #[serde(default = "default_data_connections")]
    pub(crate) data_connections: usize,
    /// The supported versions of the session, best first: fewer than all to act as a hub of an earlier
    /// release.
    #[serde(default = "default_session_versions")]
    pub(crate) session_versions: Vec<u16>,
    /// The store that assigns the sequences of the feeds' products; absent: this node assigns them, and each feed's
    /// log is on this machine only.
    #[serde(default)]
    pub(crate) shared_log: Option<serde_json::Value>,
    /// The interval of heartbeats in each feed that a site takes; 0: never.
    #[serde(default)]
    pub(crate) heartbeat_seconds: f64,
    /// The search for damage in the logs.
    #[serde(flatten)]
    pub(crate) scrub: ScrubLine,
    /// Present if this node is one of several that send for a hub; absent: it is the hub's own node.
    #[serde(default)]
    pub(crate) sender: Option<SenderLine>,
}

impl Start {
    /// The address by which sites know this node among the nodes of its hub; the hub's own node has none.
    pub(crate) fn own_address(&self) -> &str {
        self.sender.as_ref().map_or("", |sender| &sender.address)
    }
}

/// The use of this host's network beside the addresses for sites.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct NetworkLine {
    /// The address of the interface for multicast legs.
    #[serde(default)]
    pub(crate) multicast_interface: String,
    /// The address at which STAMP requests are answered; absent: nowhere.
    #[serde(default)]
    pub(crate) stamp_listen: Option<SocketAddr>,
    /// A file of certificates in PEM: authorities of servers of announced products, besides those of the host.
    #[serde(default)]
    pub(crate) fetch_ca_file: Option<PathBuf>,
}

/// The records kept beside the logs.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct RecordsLine {
    /// The age at which raw receipts are removed; 0: none are kept.
    #[serde(default = "default_receipt_hours")]
    pub(crate) receipt_hours: f64,
    /// The disk space that they may use.
    #[serde(default = "default_receipt_bytes")]
    pub(crate) receipt_bytes: u64,
    /// Whether the counters of this host are recorded.
    #[serde(default = "default_host_counters")]
    pub(crate) host_counters: bool,
}

/// The search for damage in the logs.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct ScrubLine {
    /// The reading rate, in bytes per second.
    #[serde(rename = "scrub_bytes_per_second", default = "default_scrub_bytes_per_second")]
    pub(crate) bytes_per_second: u64,
    /// The interval at which each log is read through; 0: never.
    #[serde(rename = "scrub_hours", default = "default_scrub_hours")]
    pub(crate) hours: f64,
}

/// A node that sends for a hub.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct SenderLine {
    /// Its address for sites, `HOST:PORT`, as the other nodes send it to them.
    pub(crate) address: String,
    /// The certificate of this node's key, signed by the hub's authority, DER in hex.
    pub(crate) certificate: String,
    /// The authority's own certificate, DER in hex.
    pub(crate) authority: String,
}

/// See [`Action::ProbeStop`].
#[derive(Debug, Deserialize)]
pub(crate) struct StopProbeLine {
    /// Its name.
    pub(crate) probe: String,
    /// The reason, for people.
    pub(crate) reason: String,
}

/// See [`Action::Prove`].
#[derive(Debug, Deserialize)]
pub(crate) struct ProveLine {
    /// The spool file; it is unlinked once the product is stored.
    pub(crate) path: PathBuf,
    /// BLAKE3-256 in hex.
    pub(crate) digest: String,
}

/// See [`Action::EnrolAnswer`].
#[derive(Debug, Deserialize)]
pub(crate) struct EnrolAnswer {
    /// The number of the request.
    pub(crate) ask: u64,
    /// The decision.
    pub(crate) ok: bool,
    /// If ok: the name of the site.
    pub(crate) site: Option<SiteName>,
    /// If not: one sentence.
    pub(crate) sentence: Option<String>,
    /// For an accepted credential: the end of its time.
    #[serde(default)]
    pub(crate) ends_us: Option<WallMicros>,
}

fn default_session_versions() -> Vec<u16> {
    downburst_session::VERSIONS.to_vec()
}

const fn default_data_connections() -> usize {
    downburst_session::DATA_STREAMS
}

/// Ten megabytes a second.
const fn default_scrub_bytes_per_second() -> u64 {
    10_000_000
}

const fn default_scrub_hours() -> f64 {
    24.0
}

const fn default_receipt_hours() -> f64 {
    24.0
}

const fn default_receipt_bytes() -> u64 {
    4_000_000_000
}

const fn default_host_counters() -> bool {
    true
}

const fn default_batch_seconds() -> f64 {
    1.0
}
