//! What a connection to a hub is made of.
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use downburst_model::{Epoch, FeedName, WallMicros};
use downburst_session::{FeedPosition, Receipt};
use downburst_site::{Completeness, Feeds, LocalNews, News, Role};
use tokio::sync::{mpsc, watch};

use super::destination::Destination;
use super::drive::Turn;
use super::files::Waker;
use super::legs::Reading;
use super::state::{HubPlace, Identity};
use crate::clock::Clock;

/// What the connection to a hub is made of.
pub(crate) struct Parts {
    pub(crate) hub: HubPlace,
    pub(crate) identity: Identity,
    pub(crate) turn: Turn,
    pub(crate) clock: Clock,
    /// The versions of the session that it speaks, best first.
    pub(crate) versions: Vec<u16>,
    /// All feeds come from the node that is called, even if the hub has several.
    pub(crate) one_node: bool,
    /// The feeds that come by it, where the hub is several nodes and this connection leads to one of them; `None`: all.
    pub(crate) only: Option<BTreeSet<FeedName>>,
    /// A refusal by it is the hub's: another node may only not have heard yet of a site that is new.
    pub(crate) decides: bool,
    /// How groups are read.
    pub(crate) reading: Reading,
    /// The interfaces that the hub may use for circuits.
    pub(crate) ports: Vec<String>,
    pub(crate) destination: Arc<dyn Destination>,
    pub(crate) completeness: SharedCompleteness,
    /// Receipts that connections before this one had left to say.
    pub(crate) owed: Vec<Receipt>,
    pub(crate) local: Local,
    pub(crate) supervisor: Supervisor,
}

/// Local software, as a connection knows it.
pub(crate) struct Local {
    /// Wakes what reads the log; `None`: no files are written.
    pub(crate) files: Option<Waker>,
    pub(crate) done: mpsc::UnboundedReceiver<LocalNews>,
}

/// Whoever keeps the connection.
pub(crate) struct Supervisor {
    pub(crate) roles: watch::Receiver<Role>,
    pub(crate) news: mpsc::UnboundedSender<News>,
}

/// Shared by the connections to all hubs.
#[derive(Clone, Default)]
pub(crate) struct SharedCompleteness(Arc<Mutex<Completeness>>);

impl SharedCompleteness {
    pub(super) fn reached(&self, feed: &FeedName, epoch: Epoch, to: WallMicros) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).reached(feed, epoch, to);
    }

    pub(super) fn resume(&self, feeds: &Feeds) -> Vec<FeedPosition> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).resume(|feed| feeds.brought(feed))
    }
}
