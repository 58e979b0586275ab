//! What a connection is told and what it asks for.
use std::collections::BTreeSet;

use bytes::{Bytes, BytesMut};
use downburst_model::{Epoch, FeedName, LegId, WallMicros};
use downburst_session::{
    CircuitState, FeedPosition, LegJoin, Receipt, Reception, SiteEvent, StreamId, StreamPath,
};

use crate::credentials::{CredentialsAnswer, CredentialsOrder};
use crate::reconnect::Ended;
use crate::release::local::{LocalNews, ShowOrder};
use crate::role::{News, Role};
use crate::storage::StoredPosition;
use crate::storage::{PlaceOrder, StoreRequest, Stored};

/// What a connection is made for.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The hub, or one of its nodes, as people call it: `HOST:PORT`.
    pub address: String,
    /// Told to the hub, for people.
    pub software: String,
    /// The versions of the session that it speaks, best first.
    pub versions: Vec<u16>,
    /// All feeds come from the node that is called, even if the hub has several.
    pub one_node: bool,
    /// The feeds that come by it, where the hub is several nodes and this connection leads to one of them; `None`: all.
    pub only: Option<BTreeSet<FeedName>>,
    /// A refusal by it is the hub's: another node may only not have heard yet of a site that is new.
    pub decides: bool,
    /// Products become files, and heartbeats come out there; without, storage is the end of the way.
    pub has_files: bool,
    /// Larger products go to places of their own.
    pub memory_limit_bytes: usize,
}

/// What a connection is told.
#[derive(Debug)]
pub enum Input {
    /// Answer to [`Output::Dial`].
    Dialled(Result<Linked, NoLink>),
    /// Bytes from the hub, in the order they came.
    Bytes {
        /// The stream they came on.
        stream: StreamId,
        /// The bytes.
        bytes: Bytes,
    },
    /// The first connection is over, for this reason.
    Closed(String),
    /// Answer to [`Output::HangUp`] and [`Output::Farewell`]: all connections are closed.
    HungUp {
        /// Spreads the attempts of many sites; in 0..1.
        random: f64,
    },
    /// A data connection stands.
    StreamOpened(StreamId),
    /// A data connection ended, or could not be opened.
    StreamClosed {
        /// Which.
        stream: StreamId,
        /// Why, for people.
        reason: String,
    },
    /// Something of a multicast leg.
    Leg(LegId, LegNews),
    /// Answer to [`Output::Store`].
    Stored(Stored),
    /// Something of local software.
    Local(LocalNews),
    /// How an end of a circuit stands.
    Circuit(CircuitState),
    /// Answer to [`Output::Credentials`].
    Credentials(CredentialsAnswer),
    /// What the connection is for from here on.
    Role(Role),
}

/// A connection that stands.
#[derive(Debug)]
pub struct Linked {
    /// Where to go on, of feeds that another hub brought further: see
    /// [`Completeness::resume`](crate::Completeness::resume).
    pub resume_at: Vec<FeedPosition>,
}

/// Why there is no connection.
#[derive(Debug)]
pub struct NoLink {
    /// For people.
    pub sentence: String,
    /// Whether anything answered.
    pub ended: Ended,
}

/// What is known of a leg's group.
#[derive(Debug)]
pub enum LegNews {
    /// The group was joined.
    Joined(Reception),
    /// It can't be joined, for this reason.
    NotJoined(String),
    /// Nothing comes from it, for this reason.
    Deaf(String),
    /// Datagrams from the group or the repair channel, as many as came together.
    Datagrams(Vec<BytesMut>),
}

/// What a connection asks for.
#[derive(Debug)]
pub enum Output {
    /// Connect to the hub; answered by [`Input::Dialled`].
    Dial,
    /// Close everything: an attempt, the first connection, data connections, groups; answered by [`Input::HungUp`].
    HangUp,
    /// Send what was written, and close once the hub has closed too: answered by [`Input::HungUp`], unless that takes
    /// too long.
    Farewell,
    /// The connection's work is over. These receipts are left to say.
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
        /// Which.
        stream: StreamId,
        /// By this path, or the first connection's.
        path: Option<StreamPath>,
    },
    /// Close a data connection.
    CloseStream(StreamId),
    /// Listen to a group.
    JoinGroup(LegJoin),
    /// Stop listening.
    LeaveGroup(LegId),
    /// Send this datagram by the leg's repair channel.
    Ask {
        /// The leg.
        leg: LegId,
        /// The datagram.
        bytes: Bytes,
    },
    /// Of a product that is coming in.
    Place(PlaceOrder),
    /// Verify and keep.
    Store(StoreRequest),
    /// Keep this where it survives a restart, after everything that it says is stored.
    Checkpoint(StoredPosition),
    /// The hub's log of the feed began anew: what it sends again is known by id and content from here on.
    Guard(FeedName),
    /// All that the hub had stored of a feed up to a stamp is settled here.
    Reached {
        /// The feed.
        feed: FeedName,
        /// The life of the hub's log.
        epoch: Epoch,
        /// The stamp.
        to: WallMicros,
    },
    /// Of local software.
    Show(ShowOrder),
    /// Of what the site proves itself with.
    Credentials(CredentialsOrder),
    /// For whoever keeps the connection.
    News(News),
    /// For the log file, and for what the driver does by itself: the hub's name, rules and circuits.
    Event(SiteEvent),
}
