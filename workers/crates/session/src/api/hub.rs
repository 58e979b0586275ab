//! The hub's half.
use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use downburst_model::{
    Content, Epoch, FeedName, Lane, LegId, Micros, ProductInfo, ProductKey, RangeSet, Sequence, SiteName,
    WallMicros,
};
use downburst_vcmtp::Request;

use crate::{
    CircuitEnd, CircuitHeard, CircuitOffer, CircuitProbe, CircuitProbed, CircuitSet, CircuitState, Classes,
    ClockOffset, CredentialKept, CredentialOffered, CredentialShown, CredentialWanted, Datagrams, Duplicates,
    FeedHandling, Filter, Fingerprint, Forged, Frontier, HeartbeatOut, Hello, HostReading, KeyTaken, Late,
    LegJoin, LegLeft, NextKey, Nodes, PathProbe, PathProbed, Proof, Receipt, Reception, Refused, RelayLeg,
    RelayLegFailed, RelayLegOpen, RelayReport, ResendEnd, ResendOrder, SiblingFault, SiblingGrant,
    SiblingPort, SiblingTerms, SiblingWithdrawn, SiteClock, StreamId, StreamPath, Stretch, Subscription,
    Ticket,
};

/// An input of a [`HubSession`](crate::HubSession).
#[derive(Debug)]
pub enum HubInput {
    /// Bytes from the site.
    Bytes {
        /// The stream that delivered them.
        stream: StreamId,
        /// The bytes.
        bytes: Bytes,
    },
    /// A stream can take this many more bytes. `Write` outputs never exceed the total granted by more than one
    /// frame.
    Room {
        /// The stream.
        stream: StreamId,
        /// The number of bytes.
        bytes: usize,
    },
    /// The maximum rate to the site from now on, in bits per second of the wire; `None`: as fast as the path
    /// allows. Control messages and warnings are not delayed, but count.
    Pace(Option<u64>),
    /// The share of that rate for products that are not live, in bits per second of the wire; `None`: as fast
    /// as the rest. Live products go before them on this session in any case; this limit bounds their cost to
    /// others.
    PaceLate(Option<u64>),
    /// The data connections that this session is to have from now on. Ignored if the site does not support them.
    PlanStreams(StreamPlan),
    /// Answer to [`HubOutput::DrawTicket`].
    Ticket {
        /// As in the request.
        stream: StreamId,
        /// Fresh random bits, known only to the driver, which admits the first connection that shows them
        /// within [`TICKET_LIFE`](crate::TICKET_LIFE).
        ticket: Ticket,
    },
    /// A connection showed the ticket of this stream.
    StreamOpened(StreamId),
    /// A data connection ended.
    StreamClosed {
        /// The stream.
        stream: StreamId,
        /// The reason, in readable form.
        reason: String,
    },
    /// Answer to [`HubOutput::Authenticate`]: the site is admitted.
    Admit {
        /// Its name.
        site: SiteName,
        /// Its subscriptions, already reduced to its allow list.
        subscriptions: Vec<Subscription>,
    },
    /// Answer to [`HubOutput::Authenticate`]: the site is refused. Also ends an admitted session (revoked,
    /// replaced, hub stops).
    Refuse(Refused),
    /// The site's message contradicts the driver's records: it has numbers that its log never assigned. Ends
    /// the session like any violation.
    Violation(String),
    /// The site's subscriptions changed; the whole set.
    Subscriptions(Vec<Subscription>),
    /// The feed's rule for duplicates. Given before [`HubInput::Feed`]; the default is id and content.
    Duplicates {
        /// The feed.
        feed: FeedName,
        /// Its rule.
        rule: Duplicates,
    },
    /// The feed's deadline, in microseconds from the hub's stored stamp; `None`: an ordinary feed. Given before
    /// [`HubInput::Feed`], and again when it changes.
    Deadline {
        /// The feed.
        feed: FeedName,
        /// Its deadline.
        deadline_us: Option<u64>,
    },
    /// The state of a feed's log. Given for every subscribed feed after `Admit` or `Subscriptions`, and again
    /// when a head moves.
    Feed {
        /// The feed.
        feed: FeedName,
        /// The epoch of its log.
        epoch: Epoch,
        /// The last sequence in the log; 0 if there is none.
        head: Sequence,
        /// The leg id under which unicast deliveries of this feed are counted.
        unicast_leg: LegId,
    },
    /// Answer to [`HubOutput::Read`].
    Entries {
        /// The feed.
        feed: FeedName,
        /// As in the request.
        after: Sequence,
        /// The whole content of the log in `after+1..=read_to`, in order: at least one entry, unless there is none.
        entries: Vec<Entry>,
        /// The last sequence of the read.
        read_to: Sequence,
    },
    /// Answer to [`HubOutput::Read`], matched and encoded with the filter of the request or an equal one: a
    /// driver caches it and passes it to several sessions. Begins at or before `after`, and ends behind it.
    Stretch(Arc<Stretch>),
    /// Answer to [`HubOutput::FindTime`].
    FoundTime {
        /// The feed.
        feed: FeedName,
        /// The last sequence stored before the requested time; 0 if none.
        after: Sequence,
    },
    /// The handling of feeds for the site: the whole set, given before the subscriptions that it belongs to.
    Handling(Vec<FeedHandling>),
    /// The assignment of the site's feeds to the hub's nodes; the subscriptions exclude the feeds of other
    /// nodes. Sent to a site that supports several nodes if it changed, before the subscriptions that belong to
    /// it.
    Nodes(Nodes),
    /// The chains of relays by which the site is to come: the whole set, given before the subscriptions that it
    /// belongs to, and at each change.
    Ways(Vec<String>),
    /// The resends to the site: the whole set.
    Resends(Vec<ResendOrder>),
    /// Answer to [`HubOutput::ReadResend`].
    ResendEntries {
        /// As in the request.
        resend: u64,
        /// The whole content of the log in `after+1..=read_to`, in order.
        entries: Vec<Entry>,
        /// As in the request.
        after: Sequence,
        /// The last sequence of the read; `after` if the log could not be read, which is retried.
        read_to: Sequence,
    },
    /// Have the site set up its end of a circuit.
    OfferCircuit(Box<CircuitOffer>),
    /// Have the site remove its end of a circuit.
    EndCircuit(CircuitEnd),
    /// Have the site keep these ends alone.
    KeepCircuits(CircuitSet),
    /// Have the site measure a circuit that it watches.
    ProbeCircuit(CircuitProbe),
    /// An order in a probe of the path to the site.
    ProbePath(PathProbe),
    /// Request another credential from the site.
    WantCredential(CredentialWanted),
    /// Answer to [`HubEvent::CredentialOffered`]: the credential is stored durably and valid.
    KeepCredential(CredentialKept),
    /// The site's exchange with siblings, given before the subscriptions that it belongs to, and at each change.
    SiblingTerms(SiblingTerms),
    /// Whether late and requested products are offered to siblings first: [`HubOutput::Refer`].
    Refers(bool),
    /// Answer to [`HubOutput::Refer`].
    Referred {
        /// As in the request.
        number: u32,
        /// The sibling to which the grant was sent; `None`: no sibling holds any of the products.
        sibling: Option<SiblingChoice>,
    },
    /// Have the site give products to a sibling.
    GrantSibling(Box<SiblingGrant>),
    /// End grants of the site's siblings.
    WithdrawSiblings(SiblingWithdrawn),
    /// Offer a multicast leg to the site. A repeated offer of the same leg and leg epoch changes nothing.
    JoinLeg(Box<LegJoin>),
    /// Offer a stream that repeats the log up to `to` beside the feed's leg. The site stays on the other leg.
    CatchUp {
        /// The parameters of the stream, as of a leg.
        join: Box<LegJoin>,
        /// Its last number; later ones are no matter of the stream.
        to: Sequence,
    },
    /// Send no backfill of the feed before this time: several sites may get it by one stream.
    HoldBackfill {
        /// The feed.
        feed: FeedName,
        /// The end of the hold.
        until: Micros,
    },
    /// Send the feed's backfill now.
    ReleaseBackfill(FeedName),
    /// Remove the site from the leg; unicast takes over.
    LeaveLeg(LegId),
    /// A leg is about to be sealed with this key: send it to the site if it is in the leg.
    NextKey(NextKey),
    /// A packet of the leg that the site requested.
    Repair {
        /// The leg.
        leg: LegId,
        /// The leg's epoch.
        leg_epoch: u64,
        /// Packet number.
        packet: u64,
        /// The packet in clear.
        payload: Bytes,
    },
    /// Have the relay send a leg into its network.
    RelayLeg(RelayLeg),
    /// The relay's leg ends; its waiting datagrams are dropped.
    EndRelayLeg(LegId),
    /// Datagrams of a leg for the relay. They are dropped, with [`HubEvent::RelayDropped`], if more than
    /// `queue_bytes` of the leg wait already.
    Datagrams {
        /// The datagrams.
        train: Datagrams,
        /// The maximum of waiting bytes. One train always has room.
        queue_bytes: usize,
    },
    /// Packets of the leg that can't be repaired.
    PacketsGone {
        /// The leg.
        leg: LegId,
        /// The leg's epoch.
        leg_epoch: u64,
        /// Packet numbers.
        packets: RangeSet,
    },
}

/// One entry read from the hub's log.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The product.
    pub info: ProductInfo,
    /// Its bytes, shared with the log. `None`: evicted, only its description is left.
    pub bytes: Option<Content>,
}

/// The data connections that a session should have: [`DATA_STREAMS`](crate::DATA_STREAMS) at most, those on
/// separate paths first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamPlan {
    /// Connections by the path of the first connection, each with its classes; warnings stay on the first.
    pub routed: Vec<Classes>,
    /// Connections by other paths. A path removed from the plan is dead: its connections end, and products in
    /// flight there are owed again. Connections that the routed path no longer needs finish the products that
    /// they began.
    pub rides: Vec<Ride>,
}

impl StreamPlan {
    /// A plan with connections by the path of the first only.
    pub fn routed(streams: Vec<Classes>) -> Self {
        Self { routed: streams, rides: Vec::new() }
    }
}

/// A separate path of some feeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ride {
    /// The path.
    pub path: StreamPath,
    /// The feeds whose products, including warnings, take this path once a connection is established; until
    /// then they take the first.
    pub feeds: BTreeSet<FeedName>,
    /// The connections, each with its classes.
    pub streams: Vec<Classes>,
}

/// An output of a [`HubSession`](crate::HubSession): a request to its driver.
#[derive(Debug)]
pub enum HubOutput {
    /// Send these bytes.
    Write {
        /// The stream.
        stream: StreamId,
        /// Whole frames or parts of frames, in order.
        bytes: Bytes,
        /// Their purpose, for the egress account.
        purpose: Purpose,
    },
    /// Decide on this site; answer with `Admit` or `Refuse`.
    Authenticate(Proof),
    /// Read the log; answer with `Stretch` or `Entries`. At most one read per feed is outstanding.
    Read {
        /// The feed.
        feed: FeedName,
        /// The range begins behind this number.
        after: Sequence,
        /// The last number of the range.
        to: Sequence,
        /// Stop after about this many product bytes.
        limit_bytes: usize,
        /// The site's filter for the feed.
        filter: Arc<Filter>,
    },
    /// Read the log for a resend; answer with `ResendEntries`. At most one such read is outstanding.
    ReadResend {
        /// Its number.
        resend: u64,
        /// The feed.
        feed: FeedName,
        /// The range begins behind this number.
        after: Sequence,
        /// The last number of the range.
        to: Sequence,
        /// Stop after about this many product bytes.
        limit_bytes: usize,
    },
    /// Find the position of a time in the log; answer with `FoundTime`.
    FindTime {
        /// The feed.
        feed: FeedName,
        /// Hub's wall clock.
        time: WallMicros,
    },
    /// Look for a sibling that holds these products; answer with `Referred`.
    Refer(ReferRequest),
    /// Draw a ticket for a data connection; answer with `Ticket`.
    DrawTicket(StreamId),
    /// Close this data connection once the written bytes are sent.
    CloseStream(StreamId),
    /// An event for the rest of the hub.
    Event(HubEvent),
    /// Close all connections once the written bytes are sent.
    Close,
}

/// Products that a sibling may give to the site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferRequest {
    /// The number of the referral.
    pub number: u32,
    /// The feed.
    pub feed: FeedName,
    /// The epoch of its log.
    pub epoch: Epoch,
    /// Their numbers.
    pub sequences: RangeSet,
}

/// A sibling for a referral.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiblingChoice {
    /// Its name.
    pub site: SiteName,
    /// Its address, `HOST:PORT`.
    pub address: String,
    /// The certificate that it shows.
    pub fingerprint: Fingerprint,
    /// The ticket that it knows.
    pub ticket: Ticket,
    /// The products that it holds.
    pub holds: RangeSet,
}

/// News of a site's exchange with siblings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SiblingNews {
    /// Siblings reach the site at this port.
    Port(SiblingPort),
    /// A referral is over.
    Ended(ReferralReport),
}

/// The end of a referral.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferralReport {
    /// As in the request.
    pub number: u32,
    /// The feed.
    pub feed: FeedName,
    /// The number of products that the sibling gave.
    pub products: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The sibling's fault.
    pub fault: Option<SiblingFault>,
}

/// The purpose of bytes on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Hello, legs, clock, heads.
    Control,
    /// A product (or a slice of one) by unicast.
    Product {
        /// The feed.
        feed: FeedName,
        /// The leg it is counted under.
        leg: LegId,
    },
    /// Datagrams of a multicast leg for a relay; the leg counts them itself.
    Relayed,
    /// Repair of a multicast leg, or a product that the leg failed to deliver.
    Repair {
        /// The leg.
        leg: LegId,
    },
}

/// An event of a session for the rest of the hub.
#[derive(Debug)]
pub enum HubEvent {
    /// The site sent its hello and was admitted.
    Hello(Hello),
    /// First byte of a unicast product was written.
    FirstByte {
        /// The product.
        key: ProductKey,
    },
    /// A unicast product was written whole.
    Sent {
        /// The product.
        key: ProductKey,
        /// The leg it is counted under.
        leg: LegId,
        /// Its lane: the reason for the transmission.
        lane: Lane,
        /// Its size in bytes.
        size: u64,
    },
    /// A train was written whole.
    TrainSent(TrainSent),
    /// Local software at the site received products after later ones.
    Late(Late),
    /// Files became complete at the site after their receipts were sent: the receipts again, with `action_done`.
    Filed(Vec<Receipt>),
    /// A heartbeat reached the consumers' end at the site.
    HeartbeatOut(HeartbeatOut),
    /// The site generated another credential: store it beside the one in use, and answer with
    /// [`HubInput::KeepCredential`]. If that is impossible, do not answer: the site continues unchanged, and
    /// offers the same one at the next request.
    CredentialOffered(CredentialOffered),
    /// The site will show this credential from here on: if it is a stored one, the previous one is no longer
    /// needed.
    CredentialShown(CredentialShown),
    /// A resend is complete: the site has answered all of it.
    Resent(ResendEnd),
    /// The bytes of a resent product do not match its description: the log may be damaged there.
    ResentRejected(ProductKey),
    /// The site receives the leg; its unicast ends at `after`.
    LegJoined {
        /// The leg.
        leg: LegId,
        /// Its coverage begins behind this.
        after: Sequence,
        /// The reception of the group at its host, if reported.
        reception: Option<Reception>,
    },
    /// The site left the leg; unicast serves it.
    LegLeft(LegLeft),
    /// The site has a key that was announced ahead of its use.
    KeyTaken(KeyTaken),
    /// The site lacks packets of a leg: pass it to the leg's sender.
    Nak {
        /// The leg.
        leg: LegId,
        /// The leg's epoch.
        leg_epoch: u64,
        /// The request.
        request: Request,
    },
    /// The relay sends a leg into its network.
    RelayLegOpen(RelayLegOpen),
    /// The relay does not send a leg.
    RelayLegFailed(RelayLegFailed),
    /// Datagrams for the relay were dropped: its connection is slower than the leg.
    RelayDropped {
        /// The leg.
        leg: LegId,
        /// Their number.
        datagrams: u64,
    },
    /// The site received packets that the leg's sender did not make: notify the sender.
    Forged(Forged),
    /// Outcomes of products at the site.
    Receipts {
        /// The site's clock.
        clock: Option<ClockOffset>,
        /// The receipts.
        items: Vec<Receipt>,
    },
    /// The site's position in a feed.
    Frontier(Frontier),
    /// The state of the site's end of a circuit.
    Circuit(CircuitState),
    /// Whether the other end of a circuit that the site watches answers.
    CircuitHeard(CircuitHeard),
    /// Answer to [`HubInput::ProbeCircuit`].
    CircuitProbed(Box<CircuitProbed>),
    /// Answer to [`HubInput::ProbePath`].
    PathProbed(Box<PathProbed>),
    /// The site is a relay, and this is its report.
    RelayReport(RelayReport),
    /// The state of the site's own clock.
    SiteClock(SiteClock),
    /// How the site's host reads the group of a leg.
    HostReading(HostReading),
    /// News of the exchange with siblings.
    Sibling(SiblingNews),
    /// A data connection is established.
    StreamOpened(StreamId),
    /// A data connection ended.
    StreamClosed {
        /// The stream.
        stream: StreamId,
        /// The reason.
        reason: String,
    },
    /// The site violated the protocol, as the sentence describes. `Close` follows.
    Violation(String),
    /// Nothing was received from the site for the liveness limit. `Close` follows.
    Dead,
}

/// The state of a product in a session, as far as the hub's half knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The feed is not served to this site, or not in this epoch, or not yet.
    NotServed,
    /// The site reported it as settled: stored, held, rejected, expired or not wanted.
    Settled,
    /// Waiting in the outbox, or being written.
    Queued {
        /// The site requested it, since the first delivery failed.
        asked: bool,
    },
    /// To be read from the log once the outbox has room.
    Owed {
        /// Its future lane.
        lane: Lane,
        /// As above.
        asked: bool,
        /// The number of sequences that are read from the log before it.
        numbers_before: u64,
    },
    /// Left to a multicast leg.
    LeftToLeg,
    /// Written completely to the site, which has not answered yet.
    Said,
}

/// A train that was written to a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrainSent {
    /// The feed.
    pub feed: FeedName,
    /// The epoch of its log.
    pub epoch: Epoch,
    /// The first of its products.
    pub first: Sequence,
    /// The last of its products; not every number in between belongs to one.
    pub last: Sequence,
    /// The leg they are counted under.
    pub leg: LegId,
    /// Their lane: the reason for the transmission.
    pub lane: Lane,
    /// The number of products.
    pub products: u64,
    /// Their bytes.
    pub product_bytes: u64,
}
