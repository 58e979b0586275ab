//! What a connection is for, and what it tells whoever keeps it.
use std::collections::BTreeSet;
use std::sync::Arc;

use downburst_model::FeedName;
use downburst_session::{Nodes, Receipt};
use tokio::sync::{mpsc, watch};

use super::complete::Completeness;
use super::drive::Turn;
use super::files::{Told, Waker};
use super::group::Reading;
use super::identity::Identity;
use super::shelf::Shelf;
use super::state::HubPlace;
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
    pub(crate) shelf: Arc<dyn Shelf>,
    pub(crate) completeness: Arc<Completeness>,
    /// Receipts that connections before this one had left to say.
    pub(crate) owed: Vec<Receipt>,
    /// Wakes what reads the log.
    pub(crate) files: Option<Waker>,
    pub(crate) done: mpsc::UnboundedReceiver<Told>,
    pub(crate) roles: watch::Receiver<Role>,
    pub(crate) news: mpsc::UnboundedSender<News>,
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Feeds come by it.
    Serve,
    /// Another hub serves; this one is kept at hand.
    StandBy,
    /// It ends, and another one goes on: all that came by it is settled, and said here or left to the other one.
    Leave,
    /// It ends.
    End,
}

/// What happened to a connection.
#[derive(Debug)]
pub(crate) enum News {
    /// The hub let the site in.
    Well { hub: String, role: Role },
    /// There is no connection. `silent`: because nothing was heard.
    Away { sentence: String, silent: bool },
    /// The hub does not take the site.
    Refused(String),
    /// What the hub said can't be kept.
    Unkept(String),
    /// The hub is several nodes, which serve these feeds.
    Nodes(Nodes),
}
