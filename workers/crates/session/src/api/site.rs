//! The site's half.
use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use downburst_model::{FeedName, Lane, LegId, ProductInfo, ProductKey, SiteName, WallMicros};

use crate::{
    ActionFailed, CircuitEnd, CircuitOffer, CircuitState, ClockOffset, CredentialKept, CredentialOffered,
    CredentialShown, CredentialWanted, Duplicates, FeedHandling, FeedPosition, LegJoin, Nodes, Proof,
    Reception, Refused, StreamId, Subscription, Train,
};

/// What a [`SiteSession`](crate::SiteSession) is told.
#[derive(Debug)]
pub enum SiteInput {
    /// A connection to the hub stands; say hello with this proof.
    Connected(Proof),
    /// From the next connection on: stand by, so that the hub serves no feeds, or take them.
    StandBy(bool),
    /// The next hello gives this position for these feeds in place of the site's own from this hub: another
    /// hub served them since.
    ResumeAt(Vec<FeedPosition>),
    /// Bytes from the hub.
    Bytes {
        /// The stream they came on.
        stream: StreamId,
        /// The bytes.
        bytes: Bytes,
    },
    /// The first connection is gone, and all others with it. Legs end, half-received products are abandoned,
    /// frontiers stay.
    Disconnected,
    /// The connection is about to end, as this side wants it: the receipts that were not said yet are said now.
    Leave,
    /// A data connection stands.
    StreamOpened(StreamId),
    /// A data connection ended, or could not be opened.
    StreamClosed {
        /// Which.
        stream: StreamId,
        /// Why, for people.
        reason: String,
    },
    /// How an end of a circuit stands, after the hub asked for it or since it changed.
    Circuit(CircuitState),
    /// Answer to [`SiteEvent::CredentialWanted`]: a credential that survives a restart of the site.
    OfferCredential(CredentialOffered),
    /// Answer to [`SiteEvent::CredentialKept`]: after a restart the site would show this one.
    ShowCredential(CredentialShown),
    /// Datagrams from the group or the repair channel of a leg, as many as came together.
    Datagrams {
        /// The leg.
        leg: LegId,
        /// The datagrams, in the order they came.
        batch: Vec<BytesMut>,
    },
    /// The group was joined; whether it is heard shows later.
    GroupJoined {
        /// The leg.
        leg: LegId,
        /// How.
        reception: Reception,
    },
    /// Nothing comes from the group.
    Deaf {
        /// The leg.
        leg: LegId,
        /// Why, as far as the host can know.
        reason: String,
    },
    /// The group can't be joined.
    JoinFailed {
        /// The leg.
        leg: LegId,
        /// One sentence.
        reason: String,
    },
    /// Answer to [`SiteOutput::Complete`]: how it ended.
    Settled {
        /// The product.
        key: ProductKey,
        /// What became of it.
        result: StoreResult,
        /// Site's wall clock when that was certain.
        at: WallMicros,
    },
    /// Answer to [`SiteOutput::Train`]: how each of its products ended, in their order.
    TrainSettled {
        /// The train.
        train: Arc<Train>,
        /// One for each product.
        results: Vec<StoreResult>,
        /// Site's wall clock when that was certain.
        at: WallMicros,
    },
    /// Local software saw a product after a later one of its class, against the order it asked for.
    Late(FeedName),
    /// A heartbeat that was stored came out where products reach consumers.
    HeartbeatOut {
        /// The heartbeat.
        key: ProductKey,
        /// Site's wall clock.
        at: WallMicros,
    },
    /// Local software has a stored product. Goes into its receipt, or follows it.
    ActionDone {
        /// The product.
        key: ProductKey,
        /// Site's wall clock when it was over.
        at: WallMicros,
    },
    /// What local software could not do with a product of a feed; `None`: nothing is left of that kind.
    Acts {
        /// The feed.
        feed: FeedName,
        /// The newest failure.
        failed: Option<ActionFailed>,
    },
}

/// What became of a complete product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreResult {
    /// Digest good, in the site's log.
    Stored,
    /// The site held it already, by duplicate key.
    Held,
    /// The bytes did not match the digest, and were dropped: the product begins again from the first byte,
    /// and is rejected after three failures.
    DigestMismatch,
    /// The site could not store it (disk full, say), and dropped the bytes: it begins again after a pause.
    Failed(String),
}

/// What a [`SiteSession`](crate::SiteSession) asks for.
#[derive(Debug)]
pub enum SiteOutput {
    /// Send these bytes to the hub.
    Write {
        /// On this stream.
        stream: StreamId,
        /// Whole frames.
        bytes: Bytes,
    },
    /// Open a data connection to the hub; say `StreamOpened` or `StreamClosed`.
    OpenStream(StreamId),
    /// Close a data connection.
    CloseStream(StreamId),
    /// Listen to a group; datagrams come as [`SiteInput::Datagrams`].
    JoinGroup(LegJoin),
    /// Send this datagram to the hub's address, at the port of the leg's repair channel; answers come as
    /// [`SiteInput::Datagrams`].
    Ask {
        /// The leg.
        leg: LegId,
        /// The datagram.
        bytes: Bytes,
    },
    /// Stop listening.
    LeaveGroup(LegId),
    /// A product begins to come in. Blocks follow, in any order, possibly repeated, from several legs at once.
    Begin(ProductInfo),
    /// Bytes of a product that was begun.
    Block {
        /// The product.
        key: ProductKey,
        /// Where in it.
        offset: u64,
        /// The bytes.
        bytes: Bytes,
    },
    /// All bytes are there: verify and store, then say [`SiteInput::Settled`].
    Complete {
        /// The product.
        info: ProductInfo,
        /// Site's wall clock when the last byte came.
        last_byte: WallMicros,
        /// Why it travelled.
        lane: Lane,
        /// The number of the resend that brought it: it is stored once more, and once only.
        resend: Option<u64>,
    },
    /// Products came whole and together: verify and store each, then say [`SiteInput::TrainSettled`].
    Train {
        /// The products.
        train: Arc<Train>,
        /// Site's wall clock when they came.
        last_byte: WallMicros,
    },
    /// The product will not be completed from these bytes: drop them.
    Abandon(ProductKey),
    /// Keep this where it survives a restart, soon; what is lost of it is asked again.
    Checkpoint(FeedPosition),
    /// News for the log file and for people.
    Event(SiteEvent),
    /// Close all connections.
    Close,
}

/// News of a site.
#[derive(Debug)]
pub enum SiteEvent {
    /// The hub let the site in under this name.
    Welcome {
        /// The site's name at the hub.
        site: SiteName,
        /// The hub's name.
        hub: String,
        /// The hub serves no feeds on this connection.
        stand_by: bool,
    },
    /// What makes two products of a feed the same at the hub.
    Duplicates {
        /// The feed.
        feed: FeedName,
        /// Its rule.
        rule: Duplicates,
    },
    /// The hub refused.
    Refused(Refused),
    /// The whole set of subscriptions.
    Subscriptions(Vec<Subscription>),
    /// How feeds are to be handled: the whole set.
    Handling(Vec<FeedHandling>),
    /// Which nodes of the hub serve which feeds.
    Nodes(Nodes),
    /// The clock was compared.
    Clock(ClockOffset),
    /// The hub wants an end of a circuit here; say how it stands.
    CircuitOffered(Box<CircuitOffer>),
    /// The hub wants an end of a circuit gone.
    CircuitEnded(CircuitEnd),
    /// The hub wants the site to have another credential; see [`Secrets`](crate::Secrets).
    CredentialWanted(CredentialWanted),
    /// An offered credential is good.
    CredentialKept(CredentialKept),
    /// A data connection carries products.
    StreamAttached(StreamId),
    /// A data connection ended.
    StreamEnded {
        /// Which.
        stream: StreamId,
        /// Why.
        reason: String,
    },
    /// A leg is heard.
    LegJoined {
        /// The leg.
        leg: LegId,
        /// The feed it carries.
        feed: FeedName,
    },
    /// A leg ended.
    LegLeft {
        /// The leg.
        leg: LegId,
        /// Why.
        reason: String,
    },
    /// Requests for a leg's packets go by datagrams from here on, or datagrams do not get through and they go
    /// by the session.
    RepairChannel {
        /// The leg.
        leg: LegId,
        /// Whether datagrams get through.
        open: bool,
    },
    /// A product was rejected or expired.
    Lost {
        /// Which.
        key: ProductKey,
        /// Why.
        reason: String,
    },
    /// The hub broke the protocol; the sentence says how. `Close` follows.
    Violation(String),
    /// Nothing came from the hub for the liveness limit. `Close` follows.
    Dead,
}

/// What a site knows when it starts: read by the driver from the state directory and the site's log.
#[derive(Clone, Debug, Default)]
pub struct SiteState {
    /// The last checkpoints, with what the log stored since added to them.
    pub feeds: BTreeMap<FeedName, FeedPosition>,
}
