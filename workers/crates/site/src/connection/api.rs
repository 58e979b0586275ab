//! Inputs and outputs of a connection.
use std::collections::BTreeSet;

use bytes::Bytes;
use downburst_model::{Epoch, FeedName, LegId, WallMicros};
use downburst_session::{
    CircuitReport, Datagrams, FeedPosition, HostReading, LegJoin, PathProbed, Receipt, Reception,
    RelayLegFailed, RelayLegOpen, RelayReport, SiblingInput, SiteClock, SiteEvent, StreamId, StreamPath,
};
use downburst_vcmtp::{Datagram, LegKey};

use crate::credentials::{CredentialsAnswer, CredentialsOrder};
use crate::reconnect::Ended;
use crate::release::local::{LocalNews, ShowOrder};
use crate::role::{News, Role};
use crate::storage::StoredPosition;
use crate::storage::{PlaceOrder, StoreRequest, Stored};

/// The settings of a connection.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address of the hub, or of one of its nodes: `HOST:PORT`.
    pub address: String,
    /// The site's software, for display at the hub.
    pub software: String,
    /// The supported versions of the session, best first.
    pub versions: Vec<u16>,
    /// True if all feeds come from the contacted node, even if the hub has several.
    pub one_node: bool,
    /// The feeds of this connection, if it leads to one of several nodes of the hub; `None`: all.
    pub only: Option<BTreeSet<FeedName>>,
    /// True if a refusal on this connection counts for the hub. Other nodes may refuse a new site only because
    /// they do not know it yet.
    pub decides: bool,
    /// True if products become files, which is then also the last stage of heartbeats; otherwise storage is the last
    /// stage.
    pub has_files: bool,
    /// Larger products are received into places of their own.
    pub memory_limit_bytes: usize,
}

/// An input for a connection.
#[derive(Debug)]
pub enum Input {
    /// Answer to [`Output::Dial`].
    Dialled(Result<Linked, NoLink>),
    /// Bytes from the hub, in order of arrival.
    Bytes {
        /// Their stream.
        stream: StreamId,
        /// The bytes.
        bytes: Bytes,
    },
    /// The first connection ended, for this reason.
    Closed(String),
    /// Answer to [`Output::HangUp`] and [`Output::Farewell`]: all connections are closed.
    HungUp {
        /// A random number in 0..1 that spreads the attempts of many sites.
        random: f64,
    },
    /// A data connection is open.
    StreamOpened(StreamId),
    /// A data connection ended, or could not be opened.
    StreamClosed {
        /// Its stream.
        stream: StreamId,
        /// The reason, as text.
        reason: String,
    },
    /// News of a multicast leg.
    Leg(LegId, LegNews),
    /// Answer to [`Output::Store`].
    Stored(Stored),
    /// News of local software.
    Local(LocalNews),
    /// A report on a circuit's end.
    Circuit(CircuitReport),
    /// An answer in a probe of the path.
    PathProbed(Box<PathProbed>),
    /// Answer to [`SiteEvent::RelayLeg`].
    RelayLeg(Result<RelayLegOpen, RelayLegFailed>),
    /// Answer to [`Output::Credentials`].
    Credentials(CredentialsAnswer),
    /// The report of a relay, which is a site of the hub.
    RelayReport(RelayReport),
    /// The state of this host's clock.
    Clock(SiteClock),
    /// News of siblings.
    Sibling(SiblingInput),
    /// Another way to the hub is open: end the session properly, and make the next one at once.
    Move,
    /// The connection's new role.
    Role(Role),
}

/// An established connection.
#[derive(Debug)]
pub struct Linked {
    /// Where to resume the feeds in which another hub was ahead: see
    /// [`Completeness::resume`](crate::Completeness::resume).
    pub resume_at: Vec<FeedPosition>,
}

/// A failed attempt to connect, with the reason.
#[derive(Debug)]
pub struct NoLink {
    /// The reason, as text.
    pub sentence: String,
    /// How the attempt ended.
    pub ended: Ended,
}

/// News of a leg's group.
#[derive(Debug)]
pub enum LegNews {
    /// The group was joined.
    Joined(Reception),
    /// It can't be joined, for this reason.
    NotJoined(String),
    /// Nothing arrives from it, for this reason.
    Deaf(String),
    /// The host reads the group otherwise than before, or dropped datagrams of it.
    Read(HostReading),
    /// Datagrams from the group or the repair channel that arrived together.
    Datagrams(Vec<Datagram>),
}

/// An output of a connection.
#[derive(Debug)]
pub enum Output {
    /// Connect to the hub; answered by [`Input::Dialled`].
    Dial,
    /// Close everything: attempts, the first connection, data connections, groups; answered by [`Input::HungUp`].
    HangUp,
    /// Send all pending bytes, and close once the hub has closed too; answered by [`Input::HungUp`],
    /// unless that takes too long.
    Farewell,
    /// The connection has ended, with these receipts unreported.
    Over(Vec<Receipt>),
    /// Send these bytes.
    Write {
        /// On this stream.
        stream: StreamId,
        /// Whole frames.
        bytes: Bytes,
    },
    /// Open a data connection.
    OpenStream {
        /// Its stream.
        stream: StreamId,
        /// Over this path; `None`: the path of the first connection.
        path: Option<StreamPath>,
    },
    /// Close a data connection.
    CloseStream(StreamId),
    /// Listen to a group.
    JoinGroup(LegJoin),
    /// Open the group's datagrams with this key, too.
    LegKey(LegId, LegKey),
    /// Stop listening.
    LeaveGroup(LegId),
    /// Send this datagram over the leg's repair channel.
    Ask {
        /// The leg.
        leg: LegId,
        /// The datagram.
        bytes: Bytes,
    },
    /// Send these datagrams of a relayed leg into the network here.
    Relay(Datagrams),
    /// An operation on the place of an incoming product.
    Place(PlaceOrder),
    /// Verify and store products.
    Store(StoreRequest),
    /// Store this checkpoint durably, after everything that it covers is stored.
    Checkpoint(StoredPosition),
    /// The hub's log of the feed began a new epoch: from now on repeats are recognised by id and content.
    Guard(FeedName),
    /// All products of a feed that the hub had stored up to a stamp are settled here.
    Reached {
        /// The feed.
        feed: FeedName,
        /// The epoch of the hub's log.
        epoch: Epoch,
        /// The stamp.
        to: WallMicros,
    },
    /// An order for local software.
    Show(ShowOrder),
    /// An operation on the site's credentials.
    Credentials(CredentialsOrder),
    /// For the owner of the connection.
    News(News),
    /// For the log file, and for the driver's own tasks: the hub's name, rules and circuits.
    Event(SiteEvent),
}
