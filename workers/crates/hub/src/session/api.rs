//! The border of a session: what its driver tells it, what it asks for, and what it looks up.
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use downburst_model::{Epoch, FeedName, LegId, Micros, ProductKey, RangeSet, Sequence, SiteName, WallMicros};
use downburst_session::{
    CircuitFault, ClockOffset, Duplicates, Entry, Filter, Forged, Frontier, Hello, HubInput, KeyTaken,
    LegJoin, Purpose, Receipt, Reception, Refused, ResendEnd, StreamId, StreamPath, StreamPlan, Stretch,
};
use downburst_vcmtp::Request;

use crate::clock_standing::Reference;
use crate::path_facts::PathFacts;
use crate::sites::{ResendLine, SiteLine};

use super::status::StatusChange;

/// What a [`Session`](super::Session) is told.
#[derive(Debug)]
pub enum SessionInput {
    /// Bytes from the site, on its first connection.
    Bytes(Bytes),
    /// The site said something on a data connection: it has nothing to say there.
    Spoke(StreamId),
    /// A socket took this many bytes.
    Taken {
        /// Of which connection.
        stream: StreamId,
        /// How many.
        bytes: usize,
    },
    /// A data connection showed its ticket.
    StreamOpened(StreamId),
    /// A data connection ended.
    StreamClosed {
        /// Which.
        stream: StreamId,
        /// Why, for people.
        reason: String,
    },
    /// Answer to [`SessionOutput::Check`]: the credential is good.
    Known {
        /// Of the site that it belongs to.
        line: Box<SiteLine>,
        /// The credential, as SHA-256 in hex.
        credential_sha256: String,
    },
    /// Answer to [`SessionOutput::Enrol`] and [`SessionOutput::OfferCredential`]; `None`: there will be none.
    Answered(Option<CredentialAnswer>),
    /// Answer to [`SessionOutput::Register`]: the session is its site's.
    Registered,
    /// The session ends, as the site may not come in or stay, or as the hub stops. Also the answer to
    /// [`SessionOutput::Check`], [`SessionOutput::Enrol`] or [`SessionOutput::Register`].
    Refuse(Refused),
    /// Answer to [`SessionOutput::Believe`]: numbers above all that a log gave, which are believed; or why the site is
    /// wrong.
    Believed(Result<BTreeMap<FeedName, Sequence>, String>),
    /// A watched feed has grown that is not left to a leg.
    Woken,
    /// Answer to [`SessionOutput::Look`], and given before bytes of the site: the feeds that have grown since the last
    /// look.
    Grown(Vec<FeedStanding>),
    /// Answer to [`SessionOutput::Watch`], and given when feeds were opened or closed, or when their unicast leg
    /// changed: all subscribed feeds that are open.
    Watched(Vec<FeedStanding>),
    /// Answer to [`SessionOutput::Read`].
    Read(Arc<Stretch>),
    /// Answer to [`SessionOutput::Read`]: it could not be read and is tried again.
    ReadFailed(ReadRequest, ReadFault),
    /// Answer to [`SessionOutput::ReadResend`].
    ResendRead(ResendRead),
    /// What the site gets, how it is handled or which nodes of the hub serve it changed.
    Subscriptions,
    /// What the site gets once more changed.
    Resends,
    /// How fast the site may be sent to changed, or the hour did.
    Pace,
    /// Circuits or plans changed: data connections may have to go another way.
    LookAtPath,
    /// The operator set how many data connections the site gets, or took that back.
    PinStreams(Option<usize>),
    /// The data connections by decree, in place of the session's own judgement: a simulation plans others than
    /// measurements would ever lead to.
    PlanStreams(StreamPlan),
    /// Answer to [`SessionOutput::MeasureRoundTrip`]: the kernel's round trip on the first connection.
    RoundTrip(Option<Micros>),
    /// Answer to [`SessionOutput::MeasurePath`]: what the kernel knows of all connections together.
    Path(Option<PathFacts>),
    /// Answer to [`SessionOutput::LookAtFlood`].
    Flooded {
        /// Segments sent again so far, on all connections.
        resent_segments: u64,
        /// A connection waits to send again.
        waits: bool,
    },
    /// Have the site join a leg.
    JoinLeg(Box<LegJoin>),
    /// So many of the receipts given by [`SessionOutput::Receipts`] have no place in the history of latencies.
    PassedOver(usize),
    /// The site is to have another credential.
    WantCredential,
    /// The agent should know that the site shows this session's credential.
    TellCredential,
    /// Answer to [`SessionOutput::TakeCredential`]: from here on the session is this credential's.
    CredentialTaken(String),
    /// For the protocol as it is: tickets, found resends, circuits, keys and repairs of legs, and legs to leave.
    Pass(HubInput),
}

/// The agent's answer to a token, or to another credential.
#[derive(Clone, Debug)]
pub struct CredentialAnswer {
    /// The decision.
    pub ok: bool,
    /// If ok, of a token: who it is.
    pub site: Option<SiteName>,
    /// If not: one sentence.
    pub sentence: Option<String>,
    /// Of a credential that was kept: when it ends.
    pub ends: Option<WallMicros>,
}

/// A feed's log as it is.
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
    /// What makes two products of the feed the same.
    pub rule: Duplicates,
}

/// A read of a feed's log.
#[derive(Clone, Debug)]
pub struct ReadRequest {
    /// The feed.
    pub feed: FeedName,
    /// Entries behind this.
    pub after: Sequence,
    /// What the site wants of the feed.
    pub filter: Arc<Filter>,
    /// How often it could not be read.
    pub failures: u32,
}

/// What a read for a resend found.
#[derive(Debug)]
pub struct ResendRead {
    /// As in the request.
    pub resend: u64,
    /// As in the request.
    pub feed: FeedName,
    /// As in the request.
    pub after: Sequence,
    /// Everything that the log holds in `after+1..=read_to`, in order, and `read_to`; or why it can't be read.
    pub read: Result<(Vec<Entry>, Sequence), ReadFault>,
}

/// Why a log can't be read, as a sentence for the operator; `None`: the feed is closed, which is no news.
pub type ReadFault = Option<String>;

/// What a [`Session`](super::Session) asks for.
#[derive(Debug)]
pub enum SessionOutput {
    /// Send these bytes.
    Write {
        /// On this connection.
        stream: StreamId,
        /// In order.
        bytes: Bytes,
        /// What they are, for the egress account.
        purpose: Purpose,
    },
    /// Draw a ticket for a data connection; answer with [`HubInput::Ticket`].
    DrawTicket(StreamId),
    /// Close this data connection once what was written is out.
    CloseStream(StreamId),
    /// Close all connections once what was written is out.
    Close,
    /// Admission and credentials.
    Identity(IdentityOutput),
    /// What the kernel knows of the connections, and how they are to send.
    Kernel(KernelOutput),
    /// Watch these feeds, and no others; answer with [`SessionInput::Watched`].
    Watch(BTreeSet<FeedName>),
    /// Sleep through the appends of a feed that a leg brings (true), or no longer.
    LeaveToLeg(FeedName, bool),
    /// Answer with [`SessionInput::Grown`].
    Look,
    /// Read a log, now or after fetching; answer with [`SessionInput::Read`] or [`SessionInput::ReadFailed`].
    Read(ReadRequest),
    /// Read a log for a resend; answer with [`SessionInput::ResendRead`].
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
    /// Find the places of resends in their logs; answer with [`HubInput::Resends`].
    FindResends(Vec<ResendLine>),
    /// Check the positions in a hello against the logs; answer with [`SessionInput::Believed`].
    Believe(Box<Hello>),
    /// The site has come in: put it on the legs where it belongs, and offer it its circuits.
    Arrived,
    /// Put the site on the legs where it belongs: it may try again.
    Place,
    /// The site may not come back to this leg for a while: it was too fast for it.
    Rest(LegId),
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
    /// The site has a key that was told ahead.
    KeyTaken(KeyTaken),
    /// What the site said of its end of a circuit: it stands, or why it does not.
    Circuit {
        /// The number of its lease.
        lease: u32,
        /// Shown to people as it is.
        said: Result<(), CircuitFault>,
    },
    /// News for the rest of the hub.
    Report(Report),
}

/// What a session wants of those who know credentials.
pub enum IdentityOutput {
    /// Look at a credential; answer with [`SessionInput::Known`] or [`SessionInput::Refuse`].
    Check {
        /// The site that it names.
        site: SiteName,
        /// The secret.
        secret: String,
    },
    /// Ask the agent about a token; answer with [`SessionInput::Answered`] or [`SessionInput::Refuse`].
    Enrol {
        /// The token.
        secret: String,
        /// The credential that it is to be traded for, as SHA-256 in hex.
        credential_sha256: String,
    },
    /// Make the session its site's; answer with [`SessionInput::Registered`] or [`SessionInput::Refuse`].
    Register {
        /// The site.
        site: SiteName,
        /// The credential that it showed.
        credential_sha256: String,
        /// The site takes its feeds from another hub for now.
        stand_by: bool,
    },
    /// Ask the agent whether a credential is kept in the place of the session's; answer with
    /// [`SessionInput::Answered`].
    Offer {
        /// As SHA-256 in hex.
        offered_sha256: String,
    },
    /// The site shows another credential: if it was kept in the place of the session's, answer with
    /// [`SessionInput::CredentialTaken`].
    Take {
        /// The secret.
        secret: String,
    },
    /// Tell the agent that the site shows this credential.
    Tell {
        /// As SHA-256 in hex.
        credential_sha256: String,
    },
    /// A credential that the site offered was not kept, and why; `None`: there was no answer. The site goes on as it
    /// is.
    NotKept(Option<String>),
}

impl fmt::Debug for IdentityOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdentityOutput(..)")
    }
}

/// What a session asks of the kernel, and of its connections.
#[derive(Debug)]
pub enum KernelOutput {
    /// Answer with [`SessionInput::Path`].
    MeasurePath,
    /// Answer with [`SessionInput::RoundTrip`].
    MeasureRoundTrip,
    /// Answer with [`SessionInput::Flooded`].
    LookAtFlood,
    /// Have all connections try each second to send again, or as usual.
    TryAgainEachSecond(bool),
    /// Have all connections measure the path anew.
    MeasureAnew,
    /// Have the data connections of a path share a rate, in bits per second.
    Pace(StreamPath, u64),
}

/// News of a session for the rest of the hub.
#[derive(Debug)]
pub enum Report {
    /// The session stands: the agent is told.
    Connected,
    /// Its status changed.
    Status(StatusChange),
    /// Where the site stands in a feed: everything that it settled.
    Settled(FeedName, Epoch, RangeSet),
    /// The same as the site reports it, for the latency figures.
    Frontier(Frontier),
    /// Products ended at the site: their receipts of logs that exist, and that the site may take.
    Receipts {
        /// The site's clock, on the reference.
        clock: Option<ClockOffset>,
        /// With the times of their first bytes.
        items: Vec<NotedReceipt>,
    },
    /// Files stood at the site after their receipts had left.
    Filed(Vec<Receipt>),
    /// Rejected products: the log may be damaged there.
    Recheck(Vec<ProductKey>),
    /// Products were written whole.
    Sent {
        /// The feed.
        feed: FeedName,
        /// The leg they are counted under.
        leg: LegId,
        /// How many.
        products: u64,
        /// Their bytes.
        bytes: u64,
    },
    /// So many bytes of late products were sent.
    LateSent(u64),
    /// The site joined or left a leg.
    Leg(LegReport),
    /// A resend is over.
    Resent(ResendEnd),
    /// The site said something that can't be.
    Violation {
        /// One sentence.
        sentence: String,
        /// The session ends of it.
        ends: bool,
    },
    /// Products of some feeds go by a circuit from here on, or leave it.
    Ride {
        /// The circuit's address at the hub.
        to: String,
        /// Names of feeds.
        feeds: String,
        /// False: they leave it.
        begins: bool,
    },
    /// A data connection ended.
    StreamEnded {
        /// Which.
        stream: StreamId,
        /// Why.
        reason: String,
    },
    /// Something that an operator should see.
    Fault {
        /// One sentence.
        sentence: String,
        /// The feed that it is about.
        feed: Option<FeedName>,
        /// True if it is about this site.
        of_site: bool,
    },
}

/// A receipt, and when the hub sent the product's first byte, if it still knows.
#[derive(Clone, Debug)]
pub struct NotedReceipt {
    /// The receipt.
    pub receipt: Receipt,
    /// On the reference clock.
    pub first_byte: Option<WallMicros>,
}

/// How a site and a leg come together or part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegReport {
    /// The feed.
    pub feed: FeedName,
    /// The leg.
    pub leg: LegId,
    /// One word.
    pub state: &'static str,
    /// Where the leg's coverage begins or ends.
    pub after: Option<Sequence>,
    /// Why, for people.
    pub reason: Option<String>,
    /// How the site's host receives the group.
    pub reception: Option<Reception>,
}

/// What the session does at a hub: the same for all sessions of a node.
#[derive(Clone, Debug)]
pub struct SessionSettings {
    /// The hub's name.
    pub hub: String,
    /// The versions of the session that it speaks, best first.
    pub versions: Vec<u16>,
    /// It puts heartbeats into its feeds.
    pub heartbeats: bool,
    /// The address of a node that sends for a hub; `None`: the hub's own node.
    pub sender: Option<String>,
    /// How many data connections a site gets at most, unless its operator says.
    pub data_connections: usize,
    /// What a connection takes before it reports what its socket took, in bytes.
    pub room_bytes: usize,
}

/// Facts of the hub as they are at the moment, which sessions look up and which others change.
pub trait HubFacts {
    /// A site, as its operator set it up.
    fn line(&self, site: &SiteName) -> Option<SiteLine>;

    /// True if the site's allow list covers the feed.
    fn may_take(&self, site: &SiteName, feed: &FeedName) -> bool;

    /// True if the feed's log is open here.
    fn is_open(&self, feed: &FeedName) -> bool;

    /// The highest number of the log of `epoch` that a site may have; `None` where there is no such log here.
    fn highest(&self, feed: &FeedName, epoch: Epoch) -> Option<Sequence>;

    /// The last number stored before a time; 0 if none.
    fn find_time(&self, feed: &FeedName, time: WallMicros) -> Sequence;

    /// The feed of a leg that runs.
    fn feed_of(&self, leg: LegId) -> Option<FeedName>;

    /// True while a site rests from a leg that was too fast for it.
    fn is_too_slow(&self, now: Micros, site: &SiteName, leg: LegId) -> bool;

    /// When the first byte of a product left by a multicast leg, if that is still known.
    fn first_byte(&self, leg: LegId, sequence: Sequence) -> Option<WallMicros>;

    /// How this node's clock stands to that of the node which stamps products.
    fn reference(&self) -> Reference;

    /// How fast each session may send late products, in bits per second.
    fn late_bps(&self) -> Option<u64>;

    /// The circuits to a site that plans name for some of its feeds, and that answer.
    fn ways_to(&self, site: &SiteName) -> Vec<Way>;

    /// How many data connections helped the site when it was last here.
    fn learnt(&self, site: &SiteName) -> usize;

    /// True if requests by UDP are heard at this port.
    fn hears(&self, port: u16) -> bool;
}

/// A circuit as feeds ride on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// The path of its data connections.
    pub path: StreamPath,
    /// The feeds.
    pub feeds: BTreeSet<FeedName>,
    /// What they may send together, where nobody else keeps the circuit to its rate.
    pub paced_bps: Option<u64>,
}
