//! The fields of jobs.
use std::path::PathBuf;

use downburst_log::{DuplicateRule, Durability};
use downburst_model::{Class, Epoch, FeedName, LegId, Sequence, SiteName, WallMicros};
use downburst_session::Duplicates;
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
    /// The address of the interface for multicast legs.
    #[serde(default)]
    pub(crate) multicast_interface: String,
    /// The directory of batch files.
    pub(crate) batch_dir: PathBuf,
    /// The interval between batch files.
    #[serde(default = "default_batch_seconds")]
    pub(crate) batch_seconds: f64,
    /// Congestion control of the connections with sites; the system's if none is named.
    #[serde(default)]
    pub(crate) tcp_congestion: Option<String>,
    /// The retention of raw receipts.
    #[serde(flatten)]
    pub(crate) receipts: ReceiptsLine,
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

/// The retention of raw receipts.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct ReceiptsLine {
    /// The age at which they are removed; 0: none are kept.
    #[serde(rename = "receipt_hours", default = "default_receipt_hours")]
    pub(crate) hours: f64,
    /// The disk space that they may use.
    #[serde(rename = "receipt_bytes", default = "default_receipt_bytes")]
    pub(crate) bytes: u64,
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

/// See [`Action::Feeds`].
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct FeedLine {
    /// Its name.
    pub(crate) feed: FeedName,
    /// Its priority.
    pub(crate) class: Class,
    /// The age up to which bytes are kept.
    pub(crate) retention_hours: f64,
    /// The number of bytes that are kept.
    pub(crate) retention_bytes: u64,
    /// The failure that acknowledged products survive.
    pub(crate) durability: DurabilityWord,
    /// The rule by which two products are duplicates.
    pub(crate) duplicate_rule: DuplicateWord,
    /// The largest product.
    pub(crate) max_product_bytes: u64,
    /// The leg under which unicast deliveries are counted while no plan names one.
    pub(crate) unicast_leg: LegId,
    /// Sequences that its log is known to have assigned, one for each of its epochs that the agent remembers.
    #[serde(default)]
    pub(crate) at_least: Vec<Given>,
    /// LDM feed types of its products, as an expression; absent: LDMs neither send nor get them.
    #[serde(default)]
    pub(crate) ldm_feed_type: Option<String>,
    /// A pattern for the identifiers of these products.
    #[serde(default)]
    pub(crate) ldm_pattern: Option<String>,
}

impl FeedLine {
    /// The highest sequence that the log of `epoch` is known to have assigned.
    pub(crate) fn given(&self, epoch: Epoch) -> Option<Sequence> {
        let epoch = epoch.0.to_string();
        self.at_least.iter().filter(|given| given.epoch == epoch).map(|given| given.sequence).max()
    }
}

/// See [`FeedLine::at_least`].
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct Given {
    /// The epoch, as decimal text.
    pub(crate) epoch: String,
    /// The sequence.
    pub(crate) sequence: Sequence,
}

/// The failure that acknowledged products survive, as a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DurabilityWord {
    /// See [`Durability::Process`].
    Process,
    /// See [`Durability::Power`].
    Power,
}

impl From<DurabilityWord> for Durability {
    fn from(word: DurabilityWord) -> Self {
        match word {
            DurabilityWord::Process => Self::Process,
            DurabilityWord::Power => Self::Power,
        }
    }
}

/// The rule by which two products are duplicates, as a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DuplicateWord {
    /// See [`DuplicateRule::Content`].
    Content,
    /// See [`DuplicateRule::ContentWithoutWmoStart`].
    ContentWithoutWmoStart,
    /// See [`DuplicateRule::Id`].
    Id,
    /// See [`DuplicateRule::IdAndContent`].
    IdAndContent,
    /// See [`DuplicateRule::Signature`].
    Signature,
    /// See [`DuplicateRule::None`].
    None,
}

impl From<DuplicateWord> for DuplicateRule {
    fn from(word: DuplicateWord) -> Self {
        match word {
            DuplicateWord::Content => Self::Content,
            DuplicateWord::ContentWithoutWmoStart => Self::ContentWithoutWmoStart,
            DuplicateWord::Id => Self::Id,
            DuplicateWord::IdAndContent => Self::IdAndContent,
            DuplicateWord::Signature => Self::Signature,
            DuplicateWord::None => Self::None,
        }
    }
}

/// Signatures stay at the hub. Sites of several hubs compare the attributes that they have.
impl From<DuplicateWord> for Duplicates {
    fn from(word: DuplicateWord) -> Self {
        match word {
            DuplicateWord::Content => Self::Content,
            DuplicateWord::ContentWithoutWmoStart => Self::ContentWithoutWmoStart,
            DuplicateWord::Id => Self::Id,
            DuplicateWord::IdAndContent | DuplicateWord::Signature => Self::IdAndContent,
            DuplicateWord::None => Self::None,
        }
    }
}

/// See [`Action::Upstreams`].
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct UpstreamLine {
    /// The operator's name for it.
    pub(crate) upstream: String,
    /// Its address for sites.
    pub(crate) address: String,
    /// The enrolment token from its operator.
    pub(crate) token: String,
    /// The feeds to take; empty: all that exist here.
    #[serde(default)]
    pub(crate) feeds: Vec<FeedName>,
}

/// See [`Action::Ingest`].
#[derive(Debug, Deserialize)]
pub(crate) struct IngestLine {
    /// The spool file.
    pub(crate) path: PathBuf,
    /// The feed, checked against the known ones.
    pub(crate) feed: String,
    /// The product's id, checked here.
    pub(crate) product_id: String,
    /// The first ingester's stamp; the moment of ingest if absent.
    pub(crate) created_us: Option<WallMicros>,
    /// The first ingester; the hub's own name if absent.
    pub(crate) origin: Option<String>,
    /// BLAKE3-256 in hex, if the source knows it.
    pub(crate) digest: Option<String>,
    /// Unlink the spool file once the product is stored.
    #[serde(default)]
    pub(crate) remove: bool,
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

const fn default_batch_seconds() -> f64 {
    1.0
}
