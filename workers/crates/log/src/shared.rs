//! The interface to a store that several nodes share: it assigns sequences to a feed's products, and each node
//! keeps a copy.

use std::{path::PathBuf, sync::Arc};

use bytes::Bytes;
use downburst_model::{FeedName, Sequence};

use crate::{FeedLog, LogError, LogOptions, ProductLog, Recovery};

/// Opens the logs of feeds in a shared store.
pub trait SharedLogs: Send + Sync {
    /// Opens a feed's log and its copy. If the node ingests, the copy is as long as the store when this
    /// returns.
    fn open(&self, wanted: Wanted) -> Result<Opened, LogError>;
}

/// A feed's log in a shared store. Reading is done in the copy.
pub trait SharedLog: ProductLog {
    /// The local copy.
    fn copy(&self) -> &Arc<FeedLog>;

    /// Applies these limits, in the store too if this node ingests. Does not wait for the store.
    fn set_options(&self, options: LogOptions);

    /// Fetches from the store the bytes of products that the copy no longer has: one answer for each of the first
    /// of `wanted`, which are in order, until a limit is reached, but at least one. `None`: the store no longer
    /// has them. Waits for the store, and for earlier callers.
    fn fetch(&self, wanted: &[Lacking], limit_bytes: u64) -> Result<Vec<Option<Bytes>>, LogError>;

    /// Recovers from an outage of the store once the store is back. Called from time to time while nothing is
    /// appended.
    fn tend(&self);

    /// Ends all waits for the store; nothing is appended from then on. The copy stays open.
    fn stop(&self);
}

/// A product whose bytes the copy lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lacking {
    /// Its number.
    pub sequence: Sequence,
    /// Its size in bytes.
    pub size: u64,
}

/// The parameters for opening a log.
pub struct Wanted {
    /// The feed.
    pub feed: FeedName,
    /// The directory of the copy.
    pub directory: PathBuf,
    /// How the log is kept.
    pub options: LogOptions,
    /// Becomes the epoch if nothing was ever stored.
    pub random: u64,
    /// Receives sentences for operators.
    pub say: Arc<dyn Fn(String) + Send + Sync>,
}

/// An opened log.
pub struct Opened {
    /// The log.
    pub log: Arc<dyn SharedLog>,
    /// The recovery of its copy.
    pub recovery: Recovery,
}
