//! What jobs carry.
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
    /// Holds the logs and the keys.
    pub(crate) data_dir: PathBuf,
    /// Addresses for sites.
    pub(crate) listen: Vec<String>,
    /// The host named as origin of products that name none.
    pub(crate) origin: String,
    /// Address of the interface that multicast legs leave by.
    #[serde(default)]
    pub(crate) multicast_interface: String,
    /// Batch files are written here.
    pub(crate) batch_dir: PathBuf,
    /// How often.
    #[serde(default = "default_batch_seconds")]
    pub(crate) batch_seconds: f64,
    /// Congestion control of the connections with sites; the system's if none is named.
    #[serde(default)]
    pub(crate) tcp_congestion: Option<String>,
    /// What is kept of raw receipts.
    #[serde(flatten)]
    pub(crate) receipts: ReceiptsLine,
    /// The most data connections that a site gets beside its first.
    #[serde(default = "default_data_connections")]
    pub(crate) data_connections: usize,
    /// The supported versions of the session, best first: fewer than all to stand for a hub of an earlier
    /// release.
    #[serde(default = "default_session_versions")]
    pub(crate) session_versions: Vec<u16>,
    /// The store that gives the feeds' products their numbers; absent: this node does, and each feed's log is
    /// on this machine alone.
    #[serde(default)]
    pub(crate) shared_log: Option<serde_json::Value>,
    /// How often a heartbeat goes into each feed that a site takes; 0: never.
    #[serde(default)]
    pub(crate) heartbeat_seconds: f64,
    /// How damage in the logs is looked for.
    #[serde(flatten)]
    pub(crate) scrub: ScrubLine,
    /// Says that this node is one of several that send for a hub; absent: it is the hub's own.
    #[serde(default)]
    pub(crate) sender: Option<SenderLine>,
}

impl Start {
    /// The address by which sites know this node among the nodes of its hub; the hub's own node has none.
    pub(crate) fn own_address(&self) -> &str {
        self.sender.as_ref().map_or("", |sender| &sender.address)
    }
}

/// What is kept of raw receipts.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct ReceiptsLine {
    /// How long they are kept; 0: none are.
    #[serde(rename = "receipt_hours", default = "default_receipt_hours")]
    pub(crate) hours: f64,
    /// How much disk they may take.
    #[serde(rename = "receipt_bytes", default = "default_receipt_bytes")]
    pub(crate) bytes: u64,
}

/// How damage in the logs is looked for.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct ScrubLine {
    /// How many bytes a second are read for it.
    #[serde(rename = "scrub_bytes_per_second", default = "default_scrub_bytes_per_second")]
    pub(crate) bytes_per_second: u64,
    /// How often each log is read through; 0: never.
    #[serde(rename = "scrub_hours", default = "default_scrub_hours")]
    pub(crate) hours: f64,
}

/// A node that sends for a hub.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct SenderLine {
    /// Where sites reach it: `HOST:PORT`, as the other nodes tell them.
    pub(crate) address: String,
    /// What the hub's authority signed for the key of this node, DER in hex.
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
    /// How long bytes are kept.
    pub(crate) retention_hours: f64,
    /// How many bytes are kept.
    pub(crate) retention_bytes: u64,
    /// What an acknowledgement survives.
    pub(crate) durability: DurabilityWord,
    /// What makes two products the same.
    pub(crate) duplicate_rule: DuplicateWord,
    /// The largest product.
    pub(crate) max_product_bytes: u64,
    /// The leg that unicast deliveries are counted under while no plan names one.
    pub(crate) unicast_leg: LegId,
    /// Numbers that its log is known to have given, one for each of its lives that the agent remembers.
    #[serde(default)]
    pub(crate) at_least: Vec<Given>,
    /// LDM's feed types of its products, as an expression; absent: LDMs neither bring nor get them.
    #[serde(default)]
    pub(crate) ldm_feed_type: Option<String>,
    /// Of these types, the products whose identifier matches.
    #[serde(default)]
    pub(crate) ldm_pattern: Option<String>,
}

impl FeedLine {
    /// The highest number that the log of `epoch` is known to have given.
    pub(crate) fn given(&self, epoch: Epoch) -> Option<Sequence> {
        let epoch = epoch.0.to_string();
        self.at_least.iter().filter(|given| given.epoch == epoch).map(|given| given.sequence).max()
    }
}

/// See [`FeedLine::at_least`].
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct Given {
    /// The life of the log, as decimal text.
    pub(crate) epoch: String,
    /// The number.
    pub(crate) sequence: Sequence,
}

/// What an acknowledgement survives, as a word.
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

/// What makes two products the same, as a word.
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

/// Signatures stay at the hub. Sites that take from several hubs compare what they have.
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
    /// What the operator calls it.
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
    /// The spool file; it goes once the product is stored.
    pub(crate) path: PathBuf,
    /// BLAKE3-256 in hex.
    pub(crate) digest: String,
}

/// See [`Action::EnrolAnswer`].
#[derive(Debug, Deserialize)]
pub(crate) struct EnrolAnswer {
    /// From the question.
    pub(crate) ask: u64,
    /// The decision.
    pub(crate) ok: bool,
    /// If ok: who it is.
    pub(crate) site: Option<SiteName>,
    /// If not: one sentence.
    pub(crate) sentence: Option<String>,
    /// Of a credential that was kept: when it ends.
    #[serde(default)]
    pub(crate) ends_us: Option<WallMicros>,
}

fn default_session_versions() -> Vec<u16> {
    downburst_session::VERSIONS.to_vec()
}

const fn default_data_connections() -> usize {
    downburst_session::DATA_STREAMS
}

/// Enough for a national network, and no routed multicast beyond it by accident.
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
