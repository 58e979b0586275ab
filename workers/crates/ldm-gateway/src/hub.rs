//! The gateway's view of the hub.
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use downburst_clock::Clock;
use downburst_hub::SiteLine;
use downburst_ldm6::Mode;
use downburst_log::{FeedLog, LogError};
use downburst_model::{Class, FeedName, LdmStamp, LegId, Origin, ProductId, SiteName, WallMicros};

/// The hub's functions that the gateway uses.
pub trait Hub: Send + Sync {
    /// The hub's clock.
    fn clock(&self) -> Clock;

    /// The directory of the hub's own files; the gateway keeps its files below `ldm` there.
    fn data_dir(&self) -> &Path;

    /// The host that is the origin of the hub's own products.
    fn origin(&self) -> &str;

    /// The open feeds, sorted by name.
    fn feeds(&self) -> Vec<Arc<dyn Feed>>;

    /// All sites, including those that keep their LDM.
    fn sites(&self) -> Vec<SiteLine>;

    /// Sends an event to the agent.
    fn tell(&self, event: Event);

    /// Reports a sentence for the operator to the agent and the log.
    fn fault(&self, sentence: String);

    /// Reports that a feed's log can't be read, with advice.
    fn unreadable(&self, feed: &FeedName, error: &LogError);

    /// Counts bytes sent on the wire.
    fn count_wire(&self, bytes: usize);

    /// Counts products of a feed sent to an LDM.
    fn count_sent(&self, sent: &Sent);
}

/// A feed of the hub.
pub trait Feed: Send + Sync {
    /// Its log, for reading.
    fn log(&self) -> &FeedLog;

    /// Its priority.
    fn class(&self) -> Class;

    /// The size of the largest product that it accepts.
    fn largest_bytes(&self) -> u64;

    /// The leg under which deliveries are counted.
    fn unicast_leg(&self) -> LegId;

    /// LDM's feed types of its products, as an expression, and the pattern of their identifiers; `None`: the feed is
    /// closed to LDMs in both directions.
    fn types(&self) -> Option<(String, Option<String>)>;

    /// Registers `wake` for calls after an append, one at most until [`LogListener::take`].
    fn listen(&self, wake: Box<dyn Fn() + Send + Sync>) -> Box<dyn LogListener>;

    /// Hands a product to the feed's writer, and returns a future of the outcome.
    fn write(&self, product: Product) -> Writing;
}

/// A reader's registration with a feed's log, until dropped.
pub trait LogListener: Send + Sync {
    /// True if the log has grown since the last call, and at the first call.
    fn take(&self) -> bool;
}

/// A product received from an LDM.
#[derive(Debug)]
pub struct Product {
    /// Its identifier in the hub's form.
    pub id: ProductId,
    /// Its origin with the last hop.
    pub origin: Origin,
    /// Its time of creation, set by its first ingester.
    pub created: WallMicros,
    /// The other fields of LDM's description.
    pub stamp: LdmStamp,
    /// Its content.
    pub bytes: ProductBytes,
}

/// A product's bytes.
#[derive(Debug)]
pub enum ProductBytes {
    /// In memory, for a small product.
    AtHand(Bytes),
    /// In a spool file, which is removed when the product is stored.
    File(PathBuf),
}

/// The pending outcome of a write; `None`: the log is being closed.
pub type Writing = Pin<Box<dyn Future<Output = Option<Result<Written, Failure>>> + Send>>;

/// The outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// The product is stored.
    Stored {
        /// Its size.
        bytes: u64,
    },
    /// The log already has it.
    Duplicate,
}

/// A failure, with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// One of a closed list of words, for programs.
    pub code: &'static str,
    /// One sentence: the fault, its place, the remedy.
    pub sentence: String,
}

/// Counts of a feed's products that were sent to an LDM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The feed.
    pub feed: FeedName,
    /// The leg under which they are counted.
    pub leg: LegId,
    /// Products whose transmission began.
    pub products: u64,
    /// Bytes of products.
    pub bytes: u64,
    /// Bytes of products, plus an estimate for calls and descriptions.
    pub wire_bytes: u64,
}

/// An event for the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The connection to an upstream LDM changed.
    Source {
        /// The source's name, chosen by the operator.
        source: String,
        /// `HOST[:PORT]`.
        upstream: String,
        /// `connected`, `refused` or `closed`.
        state: &'static str,
        /// `primary` or `alternate`.
        mode: &'static str,
        /// The reason of a refusal or loss.
        reason: Option<String>,
    },
    /// A connection of an LDM to this hub began, ended or was refused.
    Peer {
        /// Its name, or its address.
        peer: String,
        /// The site that the LDM belongs to.
        site: Option<SiteName>,
        /// `connected`, `refused` or `closed`.
        state: &'static str,
        /// `feedme`, `notifyme` or `hiya`; empty before its request.
        what: &'static str,
        /// The reason of the end or refusal.
        reason: Option<String>,
    },
    /// An LDM violated the protocol, which ended its connection.
    Violation {
        /// Its name, or its address.
        peer: String,
        /// The source that requests from it.
        source: Option<String>,
        /// The site that it belongs to.
        site: Option<SiteName>,
        /// The violation.
        sentence: String,
    },
    /// An rtstats line arrived: latencies of products at a host outside this hub.
    Rtstats {
        /// The line as received.
        line: String,
    },
}

/// The name of an upstream's mode in events and logs.
pub(super) fn word(mode: Mode) -> &'static str {
    match mode {
        Mode::Primary => "primary",
        Mode::Alternate => "alternate",
    }
}
