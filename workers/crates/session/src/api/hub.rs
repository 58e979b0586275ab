//! The hub's half.
use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use downburst_model::{
    Epoch, FeedName, Lane, LegId, ProductInfo, ProductKey, RangeSet, Sequence, SiteName, WallMicros,
};
use downburst_vcmtp::Request;

use crate::{
    CircuitEnd, CircuitOffer, CircuitState, Classes, ClockOffset, CredentialKept, CredentialOffered,
    CredentialShown, CredentialWanted, Duplicates, FeedHandling, Filter, Forged, Frontier, HeartbeatOut,
    Hello, KeyTaken, Late, LegJoin, LegLeft, NextKey, Nodes, Proof, Receipt, Reception, Refused, ResendEnd,
    ResendOrder, StreamId, StreamPath, Stretch, Subscription, Ticket,
};

/// What a [`HubSession`](crate::HubSession) is told.
#[derive(Debug)]
pub enum HubInput {
    /// Bytes from the site.
    Bytes {
        /// The stream they came on.
        stream: StreamId,
        /// The bytes.
        bytes: Bytes,
    },
    /// A stream takes this many more bytes. `Write` outputs never exceed what was granted in total by more
    /// than one frame.
    Room {
        /// The stream.
        stream: StreamId,
        /// How many.
        bytes: usize,
    },
    /// The maximum rate to the site from now on, in bits per second of the wire; `None`: as fast as its path
    /// takes it. Control and warnings do not wait for that, but count.
    Pace(Option<u64>),
    /// The part of that rate for products that are not live, in bits per second of the wire; `None`: as fast
    /// as the rest. Live products go before them anyway on this session; this is for their cost to others.
    PaceLate(Option<u64>),
    /// The data connections that this session is to have from now on. Ignored where the site does not know them.
    PlanStreams(StreamPlan),
    /// Answer to [`HubOutput::DrawTicket`].
    Ticket {
        /// As in the request.
        stream: StreamId,
        /// Fresh random bits, known to nobody but the driver, which lets in whoever shows them once within
        /// [`TICKET_LIFE`](crate::TICKET_LIFE).
        ticket: Ticket,
    },
    /// Somebody showed the ticket of this stream.
    StreamOpened(StreamId),
    /// A data connection ended.
    StreamClosed {
        /// Which.
        stream: StreamId,
        /// Why, for people.
        reason: String,
    },
    /// Answer to [`HubOutput::Authenticate`]: the site may come in.
    Admit {
        /// Its name.
        site: SiteName,
        /// Its subscriptions, already reduced to what its allow list covers.
        subscriptions: Vec<Subscription>,
    },
    /// Answer to [`HubOutput::Authenticate`]: it may not. Also ends an admitted session (revoked, replaced, hub stops).
    Refuse(Refused),
    /// The site's message contradicts the driver's knowledge: numbers that its log never gave. Ends the
    /// session like any violation.
    Violation(String),
    /// The site's subscriptions changed; the whole set.
    Subscriptions(Vec<Subscription>),
    /// What makes two products of a feed the same. Given before [`HubInput::Feed`]; without it id and content do.
    Duplicates {
        /// The feed.
        feed: FeedName,
        /// Its rule.
        rule: Duplicates,
    },
    /// A feed's log as it is. Given for every subscribed feed after `Admit` or `Subscriptions`, and again
    /// when a head moves.
    Feed {
        /// The feed.
        feed: FeedName,
        /// The life of its log.
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
        /// Everything the log holds in `after+1..=read_to`, in order: at least one entry, unless there is none.
        entries: Vec<Entry>,
        /// How far the log was read.
        read_to: Sequence,
    },
    /// Answer to [`HubOutput::Read`], matched and encoded with the filter of the request, or an equal one: a
    /// driver keeps it and hands it to several sessions. Begins at or before `after`, and ends behind it.
    Stretch(Arc<Stretch>),
    /// Answer to [`HubOutput::FindTime`].
    FoundTime {
        /// The feed.
        feed: FeedName,
        /// The last sequence stored before the asked time; 0 if none.
        after: Sequence,
    },
    /// How feeds are handled for the site: the whole set, given before the subscriptions that it goes with.
    Handling(Vec<FeedHandling>),
    /// The assignment of the site's feeds to the hub's nodes; feeds of others are not in the subscriptions.
    /// Sent to a site that knows of nodes where it changed, before the subscriptions that go with it.
    Nodes(Nodes),
    /// Stored products that the site gets once more: the whole set.
    Resends(Vec<ResendOrder>),
    /// Answer to [`HubOutput::ReadResend`].
    ResendEntries {
        /// As in the request.
        resend: u64,
        /// Everything the log holds in `after+1..=read_to`, in order.
        entries: Vec<Entry>,
        /// As in the request.
        after: Sequence,
        /// How far the log was read; `after` if it could not be read, which is tried again.
        read_to: Sequence,
    },
    /// Have the site make its end of a circuit.
    OfferCircuit(Box<CircuitOffer>),
    /// Have the site take its end of a circuit away.
    EndCircuit(CircuitEnd),
    /// Ask the site for another credential.
    WantCredential(CredentialWanted),
    /// Answer to [`HubEvent::CredentialOffered`]: it is kept where it survives whatever happens to the hub, and good.
    KeepCredential(CredentialKept),
    /// Offer a multicast leg to the site. A repeated offer of the same leg and leg epoch changes nothing.
    JoinLeg(Box<LegJoin>),
    /// Take the site off the leg; unicast takes over.
    LeaveLeg(LegId),
    /// A leg is about to be sealed with this key: tell it to a site that takes part in the leg.
    NextKey(NextKey),
    /// A packet of the leg that the site asked for.
    Repair {
        /// The leg.
        leg: LegId,
        /// The life of the leg.
        leg_epoch: u64,
        /// Packet number.
        packet: u64,
        /// The packet in clear.
        payload: Bytes,
    },
    /// Packets of the leg that can't be repaired.
    PacketsGone {
        /// The leg.
        leg: LegId,
        /// The life of the leg.
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
    /// Its bytes, shared with the log. `None`: evicted, only the memory of it is left.
    pub bytes: Option<Bytes>,
}

/// The data connections that a session should have: [`DATA_STREAMS`](crate::DATA_STREAMS) at most, those on
/// paths of their own first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamPlan {
    /// By the path of the first connection, each with the classes it carries; warnings stay on the first.
    pub routed: Vec<Classes>,
    /// By other paths. A path that has gone is dead: its connections end, and products on their way there are
    /// owed again. Connections that the routed path no longer needs finish the products that they began.
    pub rides: Vec<Ride>,
}

impl StreamPlan {
    /// Connections by the path of the first alone.
    pub fn routed(streams: Vec<Classes>) -> Self {
        Self { routed: streams, rides: Vec::new() }
    }
}

/// A path that some feeds take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ride {
    /// The path.
    pub path: StreamPath,
    /// Whose products go there, warnings as well, as soon as a connection stands; until then by the first.
    pub feeds: BTreeSet<FeedName>,
    /// The connections, each with the classes it carries.
    pub streams: Vec<Classes>,
}

/// What a [`HubSession`](crate::HubSession) asks for.
#[derive(Debug)]
pub enum HubOutput {
    /// Send these bytes.
    Write {
        /// On this stream.
        stream: StreamId,
        /// Whole frames or parts of frames, in order.
        bytes: Bytes,
        /// What they are, for the egress account.
        purpose: Purpose,
    },
    /// Decide on this site; answer with `Admit` or `Refuse`.
    Authenticate(Proof),
    /// Read the log; answer with `Stretch` or `Entries`. At most one read per feed is out.
    Read {
        /// The feed.
        feed: FeedName,
        /// Entries behind this.
        after: Sequence,
        /// Not beyond this.
        to: Sequence,
        /// Stop after about this many product bytes.
        limit_bytes: usize,
        /// What the site wants of the feed.
        filter: Arc<Filter>,
    },
    /// Read the log for a resend; answer with `ResendEntries`. At most one such read is out.
    ReadResend {
        /// Its number.
        resend: u64,
        /// The feed.
        feed: FeedName,
        /// Entries behind this.
        after: Sequence,
        /// Not beyond this.
        to: Sequence,
        /// Stop after about this many product bytes.
        limit_bytes: usize,
    },
    /// Find the place of a time in the log; answer with `FoundTime`.
    FindTime {
        /// The feed.
        feed: FeedName,
        /// Hub's wall clock.
        time: WallMicros,
    },
    /// Draw a ticket for a data connection; answer with `Ticket`.
    DrawTicket(StreamId),
    /// Close this data connection once what was written is out.
    CloseStream(StreamId),
    /// Something the rest of the hub wants to know.
    Event(HubEvent),
    /// Close all connections once what was written is out.
    Close,
}

/// What bytes on the wire were for.
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
    /// Repair of a multicast leg, or a product the leg failed to bring.
    Repair {
        /// The leg.
        leg: LegId,
    },
}

/// News of a session for the rest of the hub.
#[derive(Debug)]
pub enum HubEvent {
    /// The site said hello.
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
        /// Why it travelled.
        lane: Lane,
        /// Bytes.
        size: u64,
    },
    /// A train was written whole.
    TrainSent(TrainSent),
    /// Local software at the site saw products after later ones.
    Late(Late),
    /// Files stood at the site after their receipts had left: the receipts once more, with `action_done`.
    Filed(Vec<Receipt>),
    /// A heartbeat came out at the site.
    HeartbeatOut(HeartbeatOut),
    /// The site made another credential: keep it beside the one in use, and give
    /// [`HubInput::KeepCredential`]. If that is impossible, give nothing: the site goes on unchanged, and
    /// offers the same one at the next request.
    CredentialOffered(CredentialOffered),
    /// The site will show this one from here on: if it is one that was kept, the one before it is needed no more.
    CredentialShown(CredentialShown),
    /// A resend is over: everything of it was answered.
    Resent(ResendEnd),
    /// What came once more is not what was announced: the log may be damaged there.
    ResentRejected(ProductKey),
    /// The site hears the leg; its unicast ends behind `after`.
    LegJoined {
        /// The leg.
        leg: LegId,
        /// Its coverage begins behind this.
        after: Sequence,
        /// How its host receives the group, if it says.
        reception: Option<Reception>,
    },
    /// The site left the leg; unicast serves it.
    LegLeft(LegLeft),
    /// The site has a key that was told ahead.
    KeyTaken(KeyTaken),
    /// The site lacks packets of a leg: pass it to the leg's sender.
    Nak {
        /// The leg.
        leg: LegId,
        /// The life of the leg.
        leg_epoch: u64,
        /// What it asks for.
        request: Request,
    },
    /// The site sees packets that the leg's sender did not make: tell the sender.
    Forged(Forged),
    /// Products ended at the site.
    Receipts {
        /// The site's clock.
        clock: Option<ClockOffset>,
        /// What ended.
        items: Vec<Receipt>,
    },
    /// Where the site stands.
    Frontier(Frontier),
    /// How the site's end of a circuit stands.
    Circuit(CircuitState),
    /// A data connection stands.
    StreamOpened(StreamId),
    /// A data connection ended.
    StreamClosed {
        /// Which.
        stream: StreamId,
        /// Why.
        reason: String,
    },
    /// The site broke the protocol; the sentence says how. `Close` follows.
    Violation(String),
    /// Nothing came from the site for the liveness limit. `Close` follows.
    Dead,
}

/// Where a product stands in a session, as far as the hub's half knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The feed is not served to this site, or not in this epoch, or not yet.
    NotServed,
    /// The site said that it is done with it: stored, held, rejected, expired or not wanted.
    Settled,
    /// It waits in the outbox, or is being written.
    Queued {
        /// The site asked for it: what should have brought it did not.
        asked: bool,
    },
    /// It will be read from the log once the outbox has room.
    Owed {
        /// The lane it will go in.
        lane: Lane,
        /// As above.
        asked: bool,
        /// How many numbers of the log are read before it.
        numbers_before: u64,
    },
    /// A multicast leg brings it.
    LeftToLeg,
    /// Everything about it was written to the site, which has not answered yet.
    Said,
}

/// A train that was written to a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrainSent {
    /// The feed.
    pub feed: FeedName,
    /// The life of its log.
    pub epoch: Epoch,
    /// The first of its products.
    pub first: Sequence,
    /// The last of its products; not every number between them is one.
    pub last: Sequence,
    /// The leg they are counted under.
    pub leg: LegId,
    /// Why they travelled.
    pub lane: Lane,
    /// How many they are.
    pub products: u64,
    /// Their bytes.
    pub product_bytes: u64,
}
