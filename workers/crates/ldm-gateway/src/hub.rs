//! The hub as the gateway knows it.
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use downburst_clock::Clock;
use downburst_hub::SiteLine;
use downburst_ldm6::Mode;
use downburst_log::{FeedLog, LogError};
use downburst_model::{Class, FeedName, LdmStamp, LegId, Origin, ProductId, SiteName, WallMicros};

/// What the gateway needs of the hub that it serves.
pub trait Hub: Send + Sync {
    /// The hub's clock.
    fn clock(&self) -> Clock;

    /// The directory of the hub's own files; the gateway keeps its own below `ldm` there.
    fn data_dir(&self) -> &Path;

    /// The host named as origin of the hub's own products.
    fn origin(&self) -> &str;

    /// The open feeds, in order of name.
    fn feeds(&self) -> Vec<Arc<dyn Feed>>;

    /// The sites, some of which keep their LDM.
    fn sites(&self) -> Vec<SiteLine>;

    /// Tells the agent.
    fn tell(&self, event: Event);

    /// Tells the agent and the log something that an operator should see, in a sentence.
    fn fault(&self, sentence: String);

    /// A feed's log can't be read: says so with advice.
    fn unreadable(&self, feed: &FeedName, error: &LogError);

    /// So many bytes went out on the wire.
    fn count_wire(&self, bytes: usize);

    /// Products of a feed went out.
    fn count_sent(&self, sent: &Sent);
}

/// A feed of the hub.
pub trait Feed: Send + Sync {
    /// Its log, to be read.
    fn log(&self) -> &FeedLog;

    /// Its priority.
    fn class(&self) -> Class;

    /// The largest product that it takes.
    fn largest_bytes(&self) -> u64;

    /// The leg that deliveries are counted under.
    fn unicast_leg(&self) -> LegId;

    /// LDM's feed types of its products, as an expression, and the pattern of their identifiers; `None`: LDMs neither
    /// bring nor get them.
    fn types(&self) -> Option<(String, Option<String>)>;

    /// Has `wake` called after an append, once until [`LogListener::take`].
    fn listen(&self, wake: Box<dyn Fn() + Send + Sync>) -> Box<dyn LogListener>;

    /// Hands a product to the feed's writer. What became of it may be waited for.
    fn write(&self, product: Product) -> Writing;
}

/// A reader's registration with a feed's log, until dropped.
pub trait LogListener: Send + Sync {
    /// True if the log has grown since the last call, or was never looked at.
    fn take(&self) -> bool;
}

/// A product that an LDM brought.
#[derive(Debug)]
pub struct Product {
    /// Its identifier in the hub's form.
    pub id: ProductId,
    /// Its origin with the last hop.
    pub origin: Origin,
    /// When it was made, by its first ingester.
    pub created: WallMicros,
    /// What else LDM said of it.
    pub stamp: LdmStamp,
    /// All of it.
    pub bytes: ProductBytes,
}

/// A product's bytes.
#[derive(Debug)]
pub enum ProductBytes {
    /// In memory: a small one.
    AtHand(Bytes),
    /// In a spool file, which goes when it is stored.
    File(PathBuf),
}

/// What becomes of a product; `None`: the log is being closed.
pub type Writing = Pin<Box<dyn Future<Output = Option<Result<Written, Failure>>> + Send>>;

/// What became of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// It is stored.
    Stored {
        /// Its size.
        bytes: u64,
    },
    /// The log has it already.
    Duplicate,
}

/// Why something can't be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// One of a closed list of words, for programs.
    pub code: &'static str,
    /// One sentence: what, where, what to do.
    pub sentence: String,
}

/// What went out of a feed to an LDM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The feed.
    pub feed: FeedName,
    /// The leg that it is counted under.
    pub leg: LegId,
    /// Products that were begun.
    pub products: u64,
    /// Bytes of products.
    pub bytes: u64,
    /// The same with what calls and descriptions take beside them, about.
    pub wire_bytes: u64,
}

/// What the agent is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The connection to an upstream LDM changed.
    Source {
        /// What the operator calls the source.
        source: String,
        /// `HOST[:PORT]`.
        upstream: String,
        /// `connected`, `refused` or `closed`.
        state: &'static str,
        /// `primary` or `alternate`.
        mode: &'static str,
        /// Why it is away.
        reason: Option<String>,
    },
    /// A connection of an LDM to this hub began, ended or was refused.
    Peer {
        /// Its name, or its address.
        peer: String,
        /// The site whose LDM it is.
        site: Option<SiteName>,
        /// `connected`, `refused` or `closed`.
        state: &'static str,
        /// `feedme`, `notifyme` or `hiya`; empty before it said.
        what: &'static str,
        /// Why it ended or was refused.
        reason: Option<String>,
    },
    /// An LDM said what can't be: its connection ended.
    Violation {
        /// Its name, or its address.
        peer: String,
        /// The source that asks it.
        source: Option<String>,
        /// The site that it belongs to.
        site: Option<SiteName>,
        /// What it said.
        sentence: String,
    },
    /// An rtstats line came: how late products are at a host that is none of ours.
    Rtstats {
        /// As it came.
        line: String,
    },
}

/// How an upstream sends, as events and logs have it.
pub(super) fn word(mode: Mode) -> &'static str {
    match mode {
        Mode::Primary => "primary",
        Mode::Alternate => "alternate",
    }
}
