//! The parts of a connection to a hub.
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use downburst_model::{Epoch, FeedName, WallMicros};
use downburst_session::{FeedPosition, Receipt, RelayReport};
use downburst_site::{Completeness, Feeds, LocalNews, News, Role};
use tokio::sync::{mpsc, watch};

use super::circuits::CircuitPeers;
use super::destination::Destination;
use super::files::Waker;
use super::legs::{Reading, SharedReadings};
use super::network::Via;
use super::relayed::SharedLegs;
use super::siblings::SharedSiblings;
use super::state::{HubPlace, Identity};
use crate::circuits::Keeper as EndKeeper;
use crate::clock::Clock;
use crate::probing::MaySayHello;

/// The parts of a connection to a hub.
pub(crate) struct Parts {
    pub(crate) hub: HubPlace,
    pub(crate) identity: Identity,
    pub(crate) turn: Turn,
    pub(crate) clock: Clock,
    /// The versions of the session that it supports, best first.
    pub(crate) versions: Vec<u16>,
    /// True if all feeds come from the called node, even if the hub has several nodes.
    pub(crate) one_node: bool,
    /// The feeds of this connection, if the hub has several nodes and it leads to one of them; `None`: all.
    pub(crate) only: Option<BTreeSet<FeedName>>,
    /// True if its refusal counts as the hub's: another node may merely not know a new site yet.
    pub(crate) decides: bool,
    pub(crate) ways: Ways,
    pub(crate) destination: Arc<dyn Destination>,
    pub(crate) completeness: SharedCompleteness,
    /// Receipts that earlier connections left unsent.
    pub(crate) owed: Vec<Receipt>,
    pub(crate) local: Local,
    pub(crate) supervisor: Supervisor,
}

/// The ways by which bytes come from the hub.
#[derive(Default)]
pub(crate) struct Ways {
    /// The relays of its connections.
    pub(crate) via: Via,
    /// The way in which groups are read.
    pub(crate) reading: Reading,
    /// How they are read.
    pub(crate) readings: SharedReadings,
    /// The AMT relays that send groups for which the hub names no interface, as [`downburst_amt::interface`] reads
    /// them; `None`: this host joins them.
    pub(crate) amt: Option<String>,
    /// The interfaces that the hub may use for circuits.
    pub(crate) ports: Vec<String>,
    /// The keeper of the ends of circuits, shared by the connections to nodes of one hub; `None`: one of its own.
    pub(crate) ends: Option<EndKeeper>,
    /// The addresses opposite to the ends of these circuits, for the user of them.
    pub(crate) peers: CircuitPeers,
    /// The highest rate of probes of the path, bits per second; `None`: no limit, 0: no probes.
    pub(crate) probes_most_bps: Option<u64>,
    /// The hosts whose sessions a relay carries; `None`: this is no relay.
    pub(crate) carries: Option<MaySayHello>,
    /// The legs that leave here; `None`: this is no relay.
    pub(crate) relayed: Option<SharedLegs>,
    /// The exchange with siblings; `None`: no port is open for them.
    pub(crate) siblings: Option<SharedSiblings>,
    /// The reports of a relay, for its hub.
    pub(crate) reports: Option<mpsc::UnboundedReceiver<RelayReport>>,
}

/// Connections to nodes of one hub share a credential, and only one of them changes it at a time.
pub(crate) type Turn = Arc<tokio::sync::Mutex<()>>;

/// The connection's links to local software.
pub(crate) struct Local {
    /// Wakes the reader of the log; `None`: no files are written.
    pub(crate) files: Option<Waker>,
    pub(crate) done: mpsc::UnboundedReceiver<LocalNews>,
}

/// The supervisor of the connection.
pub(crate) struct Supervisor {
    pub(crate) roles: watch::Receiver<Role>,
    pub(crate) news: mpsc::UnboundedSender<News>,
}

/// The completeness of feeds, shared by the connections to all hubs.
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
