//! The interface of a session: its inputs, its outputs, and the facts that it looks up.
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use downburst_model::{Epoch, FeedName, LegId, Micros, ProductKey, RangeSet, Sequence, SiteName, WallMicros};
use downburst_session::{
    CircuitFault, CircuitProbed, ClockOffset, Duplicates, Entry, Filter, Forged, Frontier, Hello, HubInput,
    KeyTaken, LegJoin, PathProbed, Purpose, Receipt, Reception, ReferRequest, ReferralReport, Refused,
    RelayLegFailed, RelayLegOpen, ResendEnd, SiblingNews, SiblingPort, StreamId, StreamPath, StreamPlan,
    Stretch,
};
use downburst_vcmtp::Request;

use crate::clock_standing::Reference;
use crate::path_facts::PathFacts;
use crate::relays::RelayLine;
use crate::sites::{ResendLine, SiteLine};

use super::status::StatusChange;

/// An input of a [`Session`](super::Session).
#[derive(Debug)]
pub enum SessionInput {
    /// Bytes from the site, on its first connection.
    Bytes(Bytes),
    /// The site sent bytes on a data connection, where it must not send any.
    Spoke(StreamId),
    /// A socket accepted bytes.
    Taken {
        /// The connection.
        stream: StreamId,
        /// Their number.
        bytes: usize,
    },
    /// A data connection showed its ticket.
    StreamOpened(StreamId),
    /// A data connection ended.
    StreamClosed {
        /// The connection.
        stream: StreamId,
        /// The reason, for people.
        reason: String,
    },
    /// Answer to [`IdentityOutput::Check`]: the credential is valid.
    Known {
        /// The configuration of its site.
        line: Box<SiteLine>,
        /// The credential, as SHA-256 in hex.
        credential_sha256: String,
    },
    /// Answer to [`IdentityOutput::Enrol`] and [`IdentityOutput::Offer`]; `None`: there will be no answer.
    Answered(Option<CredentialAnswer>),
    /// Answer to [`IdentityOutput::Register`]: the session is registered for its site.
    Registered,
    /// The session ends, because the site has no right to enter or to stay, or because the hub stops. Also the
    /// answer to [`IdentityOutput::Check`], [`IdentityOutput::Enrol`] or [`IdentityOutput::Register`].
    Refuse(Refused),
    /// Answer to [`SessionOutput::Believe`]: accepted numbers above all that a log assigned; or the reason why the
    /// site is wrong.
    Believed(Result<BTreeMap<FeedName, Sequence>, String>),
    /// A watched feed has grown, and no leg delivers it.
    Woken,
    /// Answer to [`SessionOutput::Look`], also sent before bytes of the site: the feeds that have grown since the
    /// last look.
    Grown(Vec<FeedStanding>),
    /// Answer to [`SessionOutput::Watch`], also sent when feeds were opened or closed, or when their unicast leg
    /// changed: all subscribed feeds that are open.
    Watched(Vec<FeedStanding>),
    /// Answer to [`SessionOutput::Read`].
    Read(Arc<Stretch>),
    /// Answer to [`SessionOutput::Read`]: the read failed and is repeated later.
    ReadFailed(ReadRequest, ReadFault),
    /// Answer to [`SessionOutput::ReadResend`].
    ResendRead(ResendRead),
    /// The site's subscriptions, their handling, or its assignment to nodes of the hub changed.
    Subscriptions,
    /// The relays by which the site is to come changed.
    Ways,
    /// The site's exchange with siblings changed.
    Siblings,
    /// The site's resends changed.
    Resends,
    /// The rate limit of the site or the hour changed.
    Pace,
    /// Circuits or plans changed: data connections may need another path.
    LookAtPath,
    /// The operator set the number of the site's data connections, or withdrew the setting.
    PinStreams(Option<usize>),
    /// The site's TCP profile sets the number of its data connections, or no longer does. The operator's number for
    /// the site comes first.
    ProfileStreams(Option<usize>),
    /// An imposed plan of data connections in place of the session's own decision: a simulation needs plans that
    /// measurements would never lead to.
    PlanStreams(StreamPlan),
    /// Answer to [`KernelOutput::MeasureRoundTrip`]: the kernel's round trip on the first connection.
    RoundTrip(Option<Micros>),
    /// Answer to [`KernelOutput::MeasurePath`]: the kernel's facts about all connections together.
    Path(Option<PathFacts>),
    /// Answer to [`KernelOutput::LookAtFlood`].
    Flooded {
        /// Segments retransmitted so far, on all connections.
        resent_segments: u64,
        /// A connection waits for a retransmission.
        waits: bool,
    },
    /// Ask the site to join a leg.
    JoinLeg(Box<LegJoin>),
    /// Ask the site to receive a stream up to this sequence beside its leg.
    CatchUp(Box<LegJoin>, Sequence),
    /// The number of receipts from [`Report::Receipts`] without a place in the history of latencies.
    PassedOver(usize),
    /// The site needs another credential.
    WantCredential,
    /// Notify the agent that the site uses this session's credential.
    TellCredential,
    /// Answer to [`IdentityOutput::Take`]: the session's credential from here on.
    CredentialTaken(String),
    /// Passed to the protocol unchanged: tickets, found resends, circuits, keys and repairs of legs, and legs to
    /// leave.
    Pass(HubInput),
}

/// The agent's answer to a token, or to another credential.
#[derive(Clone, Debug)]
pub struct CredentialAnswer {
    /// The decision.
    pub ok: bool,
    /// The site, if a token was accepted.
    pub site: Option<SiteName>,
    /// One sentence, if the answer is negative.
    pub sentence: Option<String>,
    /// The expiry of a stored credential.
    pub ends: Option<WallMicros>,
}

/// The present state of a feed's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedStanding {
    /// The feed.
    pub feed: FeedName,
    /// The life of its log.
    pub epoch: Epoch,
    /// The last number in the log; 0 if there is none.
    pub head: Sequence,
    /// The leg under which unicast deliveries of the feed are counted.
    pub unicast_leg: LegId,
    /// The rule for duplicate products of the feed.
    pub rule: Duplicates,
    /// The feed's deadline, in microseconds from the stored stamp; `None`: an ordinary feed.
    pub deadline_us: Option<u64>,
}

/// A read of a feed's log.
#[derive(Clone, Debug)]
pub struct ReadRequest {
    /// The feed.
    pub feed: FeedName,
    /// Entries after this sequence.
    pub after: Sequence,
    /// The site's filter of the feed.
    pub filter: Arc<Filter>,
    /// The number of failed attempts.
    pub failures: u32,
}

/// The result of a read for a resend.
#[derive(Debug)]
pub struct ResendRead {
    /// As in the request.
    pub resend: u64,
    /// As in the request.
    pub feed: FeedName,
    /// As in the request.
    pub after: Sequence,
    /// All entries of the log in `after+1..=read_to`, in order, and `read_to`; or the reason of a failed read.
    pub read: Result<(Vec<Entry>, Sequence), ReadFault>,
}

/// The reason of a failed read, as a sentence for the operator; `None`: the feed is closed, which needs no report.
pub type ReadFault = Option<String>;

/// An output of a [`Session`](super::Session).
#[derive(Debug)]
pub enum SessionOutput {
    /// Send bytes.
    Write {
        /// The connection.
        stream: StreamId,
        /// The bytes, in order.
        bytes: Bytes,
        /// Their purpose, for the egress account.
        purpose: Purpose,
    },
    /// Draw a ticket for a data connection; answer with [`HubInput::Ticket`].
    DrawTicket(StreamId),
    /// Close this data connection after everything written was sent.
    CloseStream(StreamId),
    /// Close all connections after everything written was sent.
    Close,
    /// Admission and credentials.
    Identity(IdentityOutput),
    /// Measurements and settings of the connections in the kernel.
    Kernel(KernelOutput),
    /// Watch these feeds, and no others; answer with [`SessionInput::Watched`].
    Watch(BTreeSet<FeedName>),
    /// Stop waking the session for appends of a feed that a leg delivers (true), or start again (false).
    LeaveToLeg(FeedName, bool),
    /// Answer with [`SessionInput::Grown`].
    Look,
    /// Read a log, immediately or after fetching; answer with [`SessionInput::Read`] or
    /// [`SessionInput::ReadFailed`].
    Read(ReadRequest),
    /// Read a log for a resend; answer with [`SessionInput::ResendRead`].
    ReadResend {
        /// The number of the resend.
        resend: u64,
        /// The feed.
        feed: FeedName,
        /// Entries after this sequence.
        after: Sequence,
        /// Up to this sequence at most.
        to: Sequence,
        /// Stop after about this many product bytes.
        limit_bytes: usize,
    },
    /// The exchange with siblings.
    Sibling(SiblingOutput),
    /// Find the positions of resends in their logs; answer with [`HubInput::Resends`].
    FindResends(Vec<ResendLine>),
    /// Check the positions in a hello against the logs; answer with [`SessionInput::Believed`].
    Believe(Box<Hello>),
    /// The site was admitted: place it on the legs of its plans, and offer it its circuits.
    Arrived,
    /// Place the site on the legs of its plans: it may try again.
    Place,
    /// Keep the site off this leg for a while: the leg was too fast for it.
    Rest(LegId),
    /// The site requests packets of a leg: pass the request to the leg's sender.
    Nak {
        /// The leg.
        leg: LegId,
        /// The life of the leg.
        leg_epoch: u64,
        /// The request.
        request: Request,
    },
    /// The site received packets that the leg's sender did not make: notify the sender.
    Forged(Forged),
    /// The site, a relay, sends a leg into its network.
    RelayLegOpen(RelayLegOpen),
    /// The site, a relay, does not send a leg.
    RelayLegFailed(RelayLegFailed),
    /// Datagrams for the relay were dropped: its connection is slower than the leg.
    RelayDropped {
        /// The leg.
        leg: LegId,
        /// Their number.
        datagrams: u64,
    },
    /// The site confirmed a key that was sent in advance.
    KeyTaken(KeyTaken),
    /// The site's report of its end of a circuit: ready, or the reason why not.
    Circuit {
        /// The number of its lease.
        lease: u32,
        /// The report, shown to people unchanged.
        said: Result<(), CircuitFault>,
    },
    /// The site's report on the other end of a circuit that it watches: it answers, or the reason why not.
    CircuitHeard {
        /// The number of its lease.
        lease: u32,
        /// The report, shown to people unchanged.
        said: Result<(), CircuitFault>,
    },
    /// The site's measurement of a circuit.
    CircuitProbed(Box<CircuitProbed>),
    /// The site's answer in a probe of its path.
    PathProbed(Box<PathProbed>),
    /// News for the rest of the hub.
    Report(Report),
}

/// A request of a session about its site's siblings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SiblingOutput {
    /// Look for a sibling that holds products, and grant them; answer with [`HubInput::Referred`].
    Refer(ReferRequest),
    /// Siblings reach the site at this port; answer with [`HubInput::Refers`].
    Port(SiblingPort),
    /// A referral is over.
    Ended(ReferralReport),
}

impl SiblingOutput {
    pub(super) fn of(news: SiblingNews) -> Self {
        match news {
            SiblingNews::Port(port) => Self::Port(port),
            SiblingNews::Ended(report) => Self::Ended(report),
        }
    }
}

/// A request of a session about identities and credentials.
pub enum IdentityOutput {
    /// Check a credential; answer with [`SessionInput::Known`] or [`SessionInput::Refuse`].
    Check {
        /// The claimed site.
        site: SiteName,
        /// The secret.
        secret: String,
    },
    /// Ask the agent to check a token; answer with [`SessionInput::Answered`] or [`SessionInput::Refuse`].
    Enrol {
        /// The token.
        secret: String,
        /// The credential that replaces it, as SHA-256 in hex.
        credential_sha256: String,
    },
    /// Register the session for its site; answer with [`SessionInput::Registered`] or [`SessionInput::Refuse`].
    Register {
        /// The site.
        site: SiteName,
        /// The site's credential.
        credential_sha256: String,
        /// The site currently receives its feeds from another hub.
        stand_by: bool,
    },
    /// Ask the agent to store a credential that replaces the session's; answer with [`SessionInput::Answered`].
    Offer {
        /// The credential, as SHA-256 in hex.
        offered_sha256: String,
    },
    /// The site presents another credential: if it was stored as the replacement of the session's, answer with
    /// [`SessionInput::CredentialTaken`].
    Take {
        /// The secret.
        secret: String,
    },
    /// Notify the agent that the site uses this credential.
    Tell {
        /// The credential, as SHA-256 in hex.
        credential_sha256: String,
    },
    /// An offered credential was not stored, with the reason; `None`: there was no answer. The site continues with
    /// its present one.
    NotKept(Option<String>),
}

impl fmt::Debug for IdentityOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdentityOutput(..)")
    }
}

/// A request of a session to the kernel and its connections.
#[derive(Debug)]
pub enum KernelOutput {
    /// Answer with [`SessionInput::Path`].
    MeasurePath,
    /// Answer with [`SessionInput::RoundTrip`].
    MeasureRoundTrip,
    /// Answer with [`SessionInput::Flooded`].
    LookAtFlood,
    /// Have all connections retransmit each second (true), or by the usual timers (false).
    TryAgainEachSecond(bool),
    /// Have all connections measure the path again.
    MeasureAnew,
    /// Divide a rate among the data connections of a path, in bits per second.
    Pace(StreamPath, u64),
}

/// News of a session for the rest of the hub.
#[derive(Debug)]
pub enum Report {
    /// The session is established: notify the agent.
    Connected,
    /// Its status changed.
    Status(StatusChange),
    /// The site's position in a feed: all settled numbers.
    Settled(FeedName, Epoch, RangeSet),
    /// The position as the site reports it, for the latency figures.
    Frontier(Frontier),
    /// Receipts of products that are settled at the site, limited to existing logs that the site may read.
    Receipts {
        /// The offset of the site's clock against the reference.
        clock: Option<ClockOffset>,
        /// The receipts, with the times of the products' first bytes.
        items: Vec<NotedReceipt>,
    },
    /// Files that the site completed after their receipts had left.
    Filed(Vec<Receipt>),
    /// Rejected products: the log may be damaged at these.
    Recheck(Vec<ProductKey>),
    /// Products were written completely.
    Sent {
        /// The feed.
        feed: FeedName,
        /// The leg that they count for.
        leg: LegId,
        /// Their number.
        products: u64,
        /// Their bytes.
        bytes: u64,
    },
    /// The number of bytes of late products that were sent.
    LateSent(u64),
    /// The site joined or left a leg.
    Leg(LegReport),
    /// The site receives a stream beside its leg, or receives it no longer.
    CatchUp {
        /// The stream.
        leg: LegId,
        /// False: no longer.
        hears: bool,
    },
    /// A resend ended.
    Resent(ResendEnd),
    /// The site sent an impossible value.
    Violation {
        /// One sentence.
        sentence: String,
        /// True if the session ends because of it.
        ends: bool,
    },
    /// Products of some feeds use a circuit from here on, or stop using it.
    Ride {
        /// The circuit's address at the hub.
        to: String,
        /// Names of feeds.
        feeds: String,
        /// False: they stop using it.
        begins: bool,
    },
    /// A data connection ended.
    StreamEnded {
        /// The connection.
        stream: StreamId,
        /// The reason.
        reason: String,
    },
    /// The site is a relay, and this is its report.
    Relay(RelayLine),
    /// A fault for the operator.
    Fault {
        /// One sentence.
        sentence: String,
        /// The feed that it concerns.
        feed: Option<FeedName>,
        /// True if it concerns this site.
        of_site: bool,
    },
}

/// A receipt, with the time at which the hub sent the product's first byte, if still known.
#[derive(Clone, Debug)]
pub struct NotedReceipt {
    /// The receipt.
    pub receipt: Receipt,
    /// The time of the first byte, on the reference clock.
    pub first_byte: Option<WallMicros>,
    /// Its feed has a deadline.
    pub has_deadline: bool,
}

/// A change in a site's membership of a leg.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegReport {
    /// The feed.
    pub feed: FeedName,
    /// The leg.
    pub leg: LegId,
    /// The new state, as one word.
    pub state: &'static str,
    /// The sequence after which the leg's coverage begins or ends.
    pub after: Option<Sequence>,
    /// The reason, for people.
    pub reason: Option<String>,
    /// The site's report of its host's reception of the group.
    pub reception: Option<Reception>,
}

/// Settings of sessions, the same for all sessions of a node.
#[derive(Clone, Debug)]
pub struct SessionSettings {
    /// The hub's name.
    pub hub: String,
    /// The supported versions of the session protocol, best first.
    pub versions: Vec<u16>,
    /// True if the hub writes heartbeats into its feeds.
    pub heartbeats: bool,
    /// The address of this node if it is a sender; `None`: it is the hub's own node.
    pub sender: Option<String>,
    /// The maximum number of data connections of a site, unless its operator sets a number.
    pub data_connections: usize,
    /// The number of bytes that a connection accepts before it reports what its socket accepted.
    pub room_bytes: usize,
}

/// The hub's present facts for sessions to look up; other parts of the hub change them.
pub trait HubFacts {
    /// The configuration of a site.
    fn line(&self, site: &SiteName) -> Option<SiteLine>;

    /// True if the site's allow list covers the feed.
    fn may_take(&self, site: &SiteName, feed: &FeedName) -> bool;

    /// True if the feed's log is open on this node.
    fn is_open(&self, feed: &FeedName) -> bool;

    /// The highest number of the log of `epoch` that a site may have; `None` if this node has no such log.
    fn highest(&self, feed: &FeedName, epoch: Epoch) -> Option<Sequence>;

    /// The last number stored before a time; 0 if none.
    fn find_time(&self, feed: &FeedName, time: WallMicros) -> Sequence;

    /// The feed of a running leg.
    fn feed_of(&self, leg: LegId) -> Option<FeedName>;

    /// True while a site is kept off a leg that was too fast for it.
    fn is_too_slow(&self, now: Micros, site: &SiteName, leg: LegId) -> bool;

    /// The time at which the first byte of a product left over a multicast leg, if still known.
    fn first_byte(&self, leg: LegId, sequence: Sequence) -> Option<WallMicros>;

    /// The offset of this node's clock from that of the node which stamps products.
    fn reference(&self) -> Reference;

    /// The rate limit of each session for late products, in bits per second.
    fn late_bps(&self) -> Option<u64>;

    /// The responding circuits to a site that plans name for some of its feeds.
    fn ways_to(&self, site: &SiteName) -> Vec<Way>;

    /// The number of data connections that helped in the site's last session.
    fn learnt(&self, site: &SiteName) -> usize;

    /// The site with a connection of this peer.
    fn site_at(&self, peer: SocketAddr) -> Option<SiteName>;

    /// True if the node receives requests over UDP at this port.
    fn hears(&self, port: u16) -> bool;
}

/// A circuit with the feeds that use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// The path of its data connections.
    pub path: StreamPath,
    /// The feeds.
    pub feeds: BTreeSet<FeedName>,
    /// The rate limit of these feeds together, if nothing else keeps the circuit to its rate.
    pub paced_bps: Option<u64>,
}
