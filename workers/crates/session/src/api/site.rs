//! The site's half.
use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use downburst_model::{
    Digest, FeedName, Lane, LegId, ProductInfo, ProductKey, Sequence, SiteName, WallMicros,
};
use downburst_offset::Estimate;
use downburst_vcmtp::{Datagram, LegKey};

use crate::{
    ActionFailed, CircuitEnd, CircuitHeard, CircuitOffer, CircuitProbe, CircuitProbed, CircuitState,
    CredentialKept, CredentialOffered, CredentialShown, CredentialWanted, Datagrams, Duplicates,
    FeedHandling, FeedPosition, Fingerprint, HostReading, LegJoin, LinkedSpace, Nodes, PathProbe, PathProbed,
    Proof, Reception, Refused, RelayLeg, RelayLegFailed, RelayLegOpen, RelayReport, SiblingFault,
    SiblingGrant, SiblingPort, SiblingTerms, SiteClock, StreamId, Subscription, Ticket, Train,
};

/// An input of a [`SiteSession`](crate::SiteSession).
#[derive(Debug)]
pub enum SiteInput {
    /// A connection to the hub is established; send a hello with this proof.
    Connected(Proof),
    /// From the next connection on: true to stand by, so that the hub serves no feeds; false to take them.
    StandBy(bool),
    /// The positions of these feeds in the next hello, in place of the site's own from this hub: another hub
    /// has served them since.
    ResumeAt(Vec<FeedPosition>),
    /// Bytes from the hub.
    Bytes {
        /// The stream that delivered them.
        stream: StreamId,
        /// The bytes.
        bytes: Bytes,
    },
    /// The first connection is lost, and all others with it. Legs end, half-received products are abandoned,
    /// frontiers stay.
    Disconnected,
    /// This side is about to end the connection: unsent receipts are sent now.
    Leave,
    /// A data connection is established.
    StreamOpened(StreamId),
    /// A data connection ended, or could not be opened.
    StreamClosed {
        /// The stream.
        stream: StreamId,
        /// The reason, in readable form.
        reason: String,
    },
    /// A report on an end of a circuit.
    Circuit(CircuitReport),
    /// Answer to [`SiteEvent::PathProbe`].
    PathProbed(Box<PathProbed>),
    /// Answer to [`SiteEvent::RelayLeg`]: the leg's datagrams leave here.
    RelayLegOpen(RelayLegOpen),
    /// Answer to [`SiteEvent::RelayLeg`], or the end of such a leg: its datagrams do not leave here.
    RelayLegFailed(RelayLegFailed),
    /// Answer to [`SiteEvent::CredentialWanted`]: a credential that the site has stored and that survives its
    /// restart.
    OfferCredential(CredentialOffered),
    /// Answer to [`SiteEvent::CredentialKept`]: the credential that the site would show after a restart.
    ShowCredential(CredentialShown),
    /// Datagrams from the group or the repair channel of a leg, received together.
    Datagrams {
        /// The leg.
        leg: LegId,
        /// The datagrams, in order of arrival.
        batch: Vec<Datagram>,
    },
    /// The group was joined. Nothing has been received from it yet.
    GroupJoined {
        /// The leg.
        leg: LegId,
        /// The reception at the host.
        reception: Reception,
    },
    /// Nothing is received from the group.
    Deaf {
        /// The leg.
        leg: LegId,
        /// The reason, as far as the host can know it.
        reason: String,
    },
    /// The group can't be joined.
    JoinFailed {
        /// The leg.
        leg: LegId,
        /// The reason, in one sentence.
        reason: String,
    },
    /// Answer to [`SiteOutput::Complete`]: the outcome.
    Settled {
        /// The product.
        key: ProductKey,
        /// The result of storing it.
        result: StoreResult,
        /// Site's wall clock when the outcome was certain.
        at: WallMicros,
    },
    /// Answer to [`SiteOutput::Train`]: the outcomes of its products, in their order.
    TrainSettled {
        /// The train.
        train: Arc<Train>,
        /// One for each product.
        results: Vec<StoreResult>,
        /// Site's wall clock when the outcome was certain.
        at: WallMicros,
    },
    /// Local software received a product after a later one of its class, against the requested order.
    Late(FeedName),
    /// A stored heartbeat reached the point where products reach consumers.
    HeartbeatOut {
        /// The heartbeat.
        key: ProductKey,
        /// Site's wall clock.
        at: WallMicros,
    },
    /// Local software has a stored product. The time is added to its receipt, or sent after it.
    ActionDone {
        /// The product.
        key: ProductKey,
        /// Site's wall clock at completion.
        at: WallMicros,
    },
    /// The state of failed actions of local software on products of a feed; `None`: no failure is left.
    Acts {
        /// The feed.
        feed: FeedName,
        /// The newest failure.
        failed: Option<ActionFailed>,
    },
    /// The space that products of a feed take after they left the site's log; `None`: none.
    LinkedFiles {
        /// The feed.
        feed: FeedName,
        /// The space.
        space: Option<LinkedSpace>,
    },
    /// The report of a relay, which is a site of the hub.
    RelayReport(RelayReport),
    /// The state of this host's clock.
    Clock(SiteClock),
    /// How this host reads the group of a leg.
    HostReading(HostReading),
    /// News of siblings.
    Sibling(SiblingInput),
    /// A stored product is damaged and can't be used any more: it is requested again.
    Damaged(ProductKey),
}

/// News of siblings.
#[derive(Debug)]
pub enum SiblingInput {
    /// Siblings reach this site at this port.
    Port(SiblingPort),
    /// Bytes of a product, in their order. The last ones come only if the digest of all of them is right.
    Piece {
        /// The referral.
        number: u32,
        /// The product.
        sequence: Sequence,
        /// Their offset in the product.
        offset: u64,
        /// The bytes.
        bytes: Bytes,
    },
    /// The bytes of a product do not match its digest.
    Spoilt {
        /// The referral.
        number: u32,
        /// The product.
        sequence: Sequence,
    },
    /// No more comes from the sibling.
    Ended {
        /// The referral.
        number: u32,
        /// Its fault.
        fault: Option<SiblingFault>,
    },
}

/// Products to fetch from a sibling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// The referral.
    pub number: u32,
    /// For the sibling.
    pub ticket: Ticket,
    /// The sibling, for the log.
    pub sibling: SiteName,
    /// Its address, `HOST:PORT`.
    pub address: String,
    /// The certificate that it shows.
    pub fingerprint: Fingerprint,
    /// The products, by rising sequence.
    pub products: Vec<FetchProduct>,
}

/// A product to fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchProduct {
    /// Its number in the hub's log.
    pub sequence: Sequence,
    /// Its size.
    pub size: u64,
    /// Its digest.
    pub digest: Digest,
}

/// The result of storing a complete product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreResult {
    /// The digest matches, and the product is in the site's log.
    Stored,
    /// The site already held it, by duplicate key.
    Held,
    /// The bytes did not match the digest and were dropped: the product is received again from the first byte,
    /// and is rejected after three failures.
    DigestMismatch,
    /// The site could not store it (disk full, for example) and dropped the bytes: it is received again after a
    /// pause.
    Failed(String),
}

/// An output of a [`SiteSession`](crate::SiteSession): a request to its driver.
#[derive(Debug)]
pub enum SiteOutput {
    /// Send these bytes to the hub.
    Write {
        /// The stream.
        stream: StreamId,
        /// Whole frames.
        bytes: Bytes,
    },
    /// Open a data connection to the hub; answer with `StreamOpened` or `StreamClosed`.
    OpenStream(StreamId),
    /// Close a data connection.
    CloseStream(StreamId),
    /// Join a group; its datagrams are passed as [`SiteInput::Datagrams`].
    JoinGroup(LegJoin),
    /// Send this datagram to the hub's address, at the port of the leg's repair channel; answers are passed as
    /// [`SiteInput::Datagrams`].
    Ask {
        /// The leg.
        leg: LegId,
        /// The datagram.
        bytes: Bytes,
    },
    /// The group's datagrams are about to be under this key, too.
    LegKey(LegId, LegKey),
    /// Leave a group.
    LeaveGroup(LegId),
    /// The reception of a product begins. Blocks follow in any order, possibly repeated, and from several legs
    /// concurrently.
    Begin(ProductInfo),
    /// Bytes of a product whose reception has begun.
    Block {
        /// The product.
        key: ProductKey,
        /// Their offset in the product.
        offset: u64,
        /// The bytes.
        bytes: Bytes,
    },
    /// All bytes are present: verify and store, then report [`SiteInput::Settled`].
    Complete {
        /// The product.
        info: ProductInfo,
        /// Site's wall clock at the arrival of the last byte.
        last_byte: WallMicros,
        /// Its lane: the reason for the transmission.
        lane: Lane,
        /// The number of the resend that delivered it: the product is stored again, but only once for each number.
        resend: Option<u64>,
    },
    /// Products arrived whole and together: verify and store each, then report [`SiteInput::TrainSettled`].
    Train {
        /// The products.
        train: Arc<Train>,
        /// Site's wall clock at their arrival.
        last_byte: WallMicros,
    },
    /// Drop the bytes of this product: they will not be completed.
    Abandon(ProductKey),
    /// Store this position soon, so that it survives a restart; numbers whose record is lost are requested again.
    Checkpoint(FeedPosition),
    /// Send these datagrams of a relayed leg into the network here.
    Relay(Datagrams),
    /// An event for the log file and for operators.
    Event(SiteEvent),
    /// Close all connections.
    Close,
}

/// An event of a site.
#[derive(Debug)]
pub enum SiteEvent {
    /// The hub admitted the site under this name.
    Welcome {
        /// The site's name at the hub.
        site: SiteName,
        /// The hub's name.
        hub: String,
        /// The hub serves no feeds on this connection.
        stand_by: bool,
    },
    /// The hub's rule for duplicates of a feed.
    Duplicates {
        /// The feed.
        feed: FeedName,
        /// Its rule.
        rule: Duplicates,
    },
    /// The hub refused the session.
    Refused(Refused),
    /// The whole set of subscriptions.
    Subscriptions(Vec<Subscription>),
    /// The handling of feeds: the whole set.
    Handling(Vec<FeedHandling>),
    /// The assignment of feeds to the hub's nodes.
    Nodes(Nodes),
    /// The chains of relays by which the hub wants the site to come: the whole set.
    Ways(Vec<String>),
    /// The terms of the exchange with siblings; if they are on, answer with [`SiblingInput::Port`] once it is open.
    SiblingTerms(SiblingTerms),
    /// A sibling may fetch products here.
    SiblingGrant(Box<SiblingGrant>),
    /// Grants end, and so do transfers under them.
    SiblingWithdrawn(Vec<Ticket>),
    /// Fetch products from a sibling; answer with pieces, and with [`SiblingInput::Ended`].
    Fetch(Box<Fetch>),
    /// The result of a clock comparison.
    Clock(Estimate),
    /// The hub requests an end of a circuit here; report its state.
    CircuitOffered(Box<CircuitOffer>),
    /// The hub requests the removal of an end of a circuit.
    CircuitEnded(CircuitEnd),
    /// The hub orders these ends alone: the whole set, by lease.
    CircuitSet(Vec<u32>),
    /// The hub requests a measurement of a circuit; report it.
    CircuitProbe(CircuitProbe),
    /// An order of the hub in a probe of the path; answer with [`SiteInput::PathProbed`].
    PathProbe(PathProbe),
    /// The hub requests that a leg's datagrams leave here; report its state.
    RelayLeg(RelayLeg),
    /// A relayed leg ended.
    RelayLegEnded(LegId),
    /// The hub requests another credential; see [`Secrets`](crate::Secrets).
    CredentialWanted(CredentialWanted),
    /// An offered credential is valid.
    CredentialKept(CredentialKept),
    /// A data connection is ready for products.
    StreamAttached(StreamId),
    /// A data connection ended.
    StreamEnded {
        /// The stream.
        stream: StreamId,
        /// The reason.
        reason: String,
    },
    /// The first packet of a leg was received.
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
        /// The reason.
        reason: String,
    },
    /// The path of requests for a leg's packets changed: datagrams, or the session if datagrams do not get through.
    RepairChannel {
        /// The leg.
        leg: LegId,
        /// True if datagrams get through.
        open: bool,
    },
    /// A product was rejected or expired.
    Lost {
        /// The product.
        key: ProductKey,
        /// The reason.
        reason: String,
    },
    /// The hub violated the protocol, as the sentence describes. `Close` follows.
    Violation(String),
    /// Nothing was received from the hub for the liveness limit. `Close` follows.
    Dead,
}

/// A report on an end of a circuit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CircuitReport {
    /// The state of an end, after the hub's request or after a change.
    State(CircuitState),
    /// Whether the other end of a circuit that this one watches answers.
    Heard(CircuitHeard),
    /// Answer to [`SiteEvent::CircuitProbe`].
    Probed(Box<CircuitProbed>),
}

/// The state of a site at its start: read by the driver from the state directory and the site's log.
#[derive(Clone, Debug, Default)]
pub struct SiteState {
    /// The last checkpoints, including the products that the log has stored since.
    pub feeds: BTreeMap<FeedName, FeedPosition>,
}
