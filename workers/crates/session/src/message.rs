//! The messages of a session. Each is one frame: kind (1 byte), length of the body (4 bytes, big-endian), body (CBOR, fields by
//! number; a number that the receiver does not know is skipped). Slices of products and repaired packets are binary frames.
use downburst_model::{
    Class, Epoch, FeedName, Lane, LegId, Micros, ProductInfo, ProductKey, RangeSet, Sequence, SiteName,
    Transport, WallMicros,
};
use downburst_vcmtp::LegKey;
use minicbor::{Decode, Encode};

/// Site to hub, first frame of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Hello {
    /// Versions the site speaks, best first.
    #[n(0)]
    pub versions: Vec<u16>,
    /// Program and version, for people.
    #[n(1)]
    pub software: String,
    /// Who it is and how it proves it.
    #[n(2)]
    pub proof: Proof,
    /// Where it stands, for each feed it has ever had.
    #[n(3)]
    pub feeds: Vec<FeedPosition>,
    /// `Some(true)`: the site stands by, another hub serves it; it wants to be let in and gets no feeds.
    #[n(4)]
    pub stand_by: Option<bool>,
}

/// How a site proves who it is.
#[derive(Clone, PartialEq, Eq, Encode, Decode)]
pub enum Proof {
    /// First contact: the one-time secret of the enrolment token, and SHA-256 of the credential that the site made for itself.
    /// Saying it again with the same credential is answered the same way, so a lost answer does no harm.
    #[n(0)]
    Token {
        /// From the token.
        #[n(0)]
        secret: String,
        /// SHA-256 of the credential's secret, in hex.
        #[n(1)]
        credential_sha256: String,
    },
    /// Afterwards.
    #[n(1)]
    Credential {
        /// The site's name as the hub told it.
        #[n(0)]
        site: SiteName,
        /// The credential's secret.
        #[n(1)]
        secret: String,
    },
}

/// What a site has of a feed.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct FeedPosition {
    /// The feed.
    #[n(0)]
    pub feed: FeedName,
    /// The life of the hub's log that the numbers belong to.
    #[n(1)]
    pub epoch: Epoch,
    /// Everything settled there: stored, rejected, expired, or not for this site. The end of its first range, if that begins at 0,
    /// is the frontier.
    #[n(2)]
    pub settled: RangeSet,
    /// The hub's stored stamp of the newest product the site holds, for a resume in another epoch.
    #[n(3)]
    pub newest_stored: WallMicros,
}

/// Hub to site, after a [`Hello`] it accepts.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Welcome {
    /// The version in use from here on.
    #[n(0)]
    pub version: u16,
    /// The site's name.
    #[n(1)]
    pub site: SiteName,
    /// The hub's name.
    #[n(2)]
    pub hub: String,
    /// `Some(true)`: the hub knows that the site stands by. A hub that does not say so serves it.
    #[n(3)]
    pub stand_by: Option<bool>,
}

/// Hub to site, before it closes the connection.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Refused {
    /// Why.
    #[n(0)]
    pub code: RefusalCode,
    /// One sentence: what, and what to do.
    #[n(1)]
    pub sentence: String,
}

/// Why a hub refuses a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum RefusalCode {
    /// No version in common.
    #[n(0)]
    Version,
    /// Unknown token, or one that another site used.
    #[n(1)]
    Token,
    /// Unknown or revoked credential.
    #[n(2)]
    Credential,
    /// The credential's time is over.
    #[n(3)]
    Expired,
    /// Another receiver is active under this credential.
    #[n(4)]
    Busy,
    /// The peer broke the protocol.
    #[n(5)]
    Protocol,
    /// The hub stops or can't serve; come back later.
    #[n(6)]
    Unavailable,
}

/// One subscription of a site.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Subscription {
    /// The feed.
    #[n(0)]
    pub feed: FeedName,
    /// Products whose id matches this are wanted.
    #[n(1)]
    pub pattern: String,
    /// Unless their id matches this.
    #[n(2)]
    pub not_pattern: Option<String>,
}

/// Hub to site: the whole set; replaces the former one.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Subscriptions {
    /// All of the site's subscriptions that its allow list covers.
    #[n(0)]
    pub items: Vec<Subscription>,
    /// The last sequence of each feed served when the set changed: the set holds for everything behind it, also where a
    /// multicast leg announced it before the site had this message.
    #[n(1)]
    pub heads: Vec<FeedHead>,
}

/// The end of a feed's log at some moment.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct FeedHead {
    /// The feed.
    #[n(0)]
    pub feed: FeedName,
    /// The life of the hub's log.
    #[n(1)]
    pub epoch: Epoch,
    /// The last sequence.
    #[n(2)]
    pub head: Sequence,
}

/// Hub to site: from here on the numbers of this feed belong to `epoch`, and everything up to `after` is settled (before the
/// subscription's start, or in the position the site reported).
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct FeedStart {
    /// The feed.
    #[n(0)]
    pub feed: FeedName,
    /// The life of the hub's log.
    #[n(1)]
    pub epoch: Epoch,
    /// Nothing up to here is owed to the site beyond what it reported as not settled.
    #[n(2)]
    pub after: Sequence,
    /// The feed's rule for duplicates, for sites that take the feed from several hubs. Absent: id and content.
    #[n(3)]
    pub duplicates: Option<Duplicates>,
}

/// What makes two products of a feed the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum Duplicates {
    /// Equal identifier and equal bytes.
    #[default]
    #[n(0)]
    IdAndContent,
    /// Equal bytes.
    #[n(1)]
    Content,
    /// Equal bytes behind the WMO starting line.
    #[n(2)]
    ContentWithoutWmoStart,
    /// Equal identifier.
    #[n(3)]
    Id,
    /// Nothing: every product counts.
    #[n(4)]
    None,
}

/// Hub to site: a product follows in slices (none if it is empty).
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ProductBegin {
    /// The product.
    #[n(0)]
    pub info: ProductInfo,
    /// Between this and the product nothing matches. `None` where the product answers a [`Want`].
    #[n(1)]
    pub previous: Option<Sequence>,
    /// Why it travels.
    #[n(2)]
    pub lane: Lane,
    /// The leg it travels by.
    #[n(3)]
    pub leg: LegId,
    /// What its slices are marked with. Rising within a session.
    #[n(4)]
    pub transfer: u32,
}

/// Hub to site: nothing that matches lies in `from..=to`, beyond what was sent on this session before this frame.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Covered {
    /// The feed.
    #[n(0)]
    pub feed: FeedName,
    /// The life of the hub's log.
    #[n(1)]
    pub epoch: Epoch,
    /// First number.
    #[n(2)]
    pub from: Sequence,
    /// Last number.
    #[n(3)]
    pub to: Sequence,
}

/// Hub to site: these matched and are no longer in the log. They become `expired`.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Expired {
    /// The feed.
    #[n(0)]
    pub feed: FeedName,
    /// The life of the hub's log.
    #[n(1)]
    pub epoch: Epoch,
    /// Their numbers.
    #[n(2)]
    pub sequences: RangeSet,
}

/// Hub to site: take part in a multicast leg.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct LegJoin {
    /// The leg.
    #[n(0)]
    pub leg: LegId,
    /// The feed it carries.
    #[n(1)]
    pub feed: FeedName,
    /// The life of the hub's log that its sequences belong to.
    #[n(2)]
    pub epoch: Epoch,
    /// The life of the leg.
    #[n(3)]
    pub leg_epoch: u64,
    /// The group's address, IPv4 or IPv6, as text.
    #[n(4)]
    pub group: String,
    /// The group's UDP port.
    #[n(5)]
    pub port: u16,
    /// The leg's key.
    #[n(6)]
    pub key: LegKey,
    /// Address or name of the interface to join on; empty: the one that reaches the hub.
    #[n(7)]
    pub interface: String,
    /// What the leg may send, in Ethernet-frame bits per second.
    #[n(8)]
    pub rate_bps: u64,
}

/// Site to hub: the leg was heard; everything after `after` comes by it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct LegJoined {
    /// The leg.
    #[n(0)]
    pub leg: LegId,
    /// The life of the leg.
    #[n(1)]
    pub leg_epoch: u64,
    /// The leg's coverage begins behind this.
    #[n(2)]
    pub after: Sequence,
}

/// Hub to site: the leg ends for this site; it answers [`LegLeft`].
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct LegLeave {
    /// The leg.
    #[n(0)]
    pub leg: LegId,
}

/// Site to hub: the site does not listen to the leg (any more).
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct LegLeft {
    /// The leg.
    #[n(0)]
    pub leg: LegId,
    /// What the leg announced without a hole ends here; the hub serves by unicast from behind it. `None`: the leg was never heard.
    #[n(1)]
    pub known_to: Option<Sequence>,
    /// Why, for people: asked by the hub, silence, could not join.
    #[n(2)]
    pub reason: String,
}

/// Site to hub: packets of a leg that the site lacks.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Nak {
    /// The leg.
    #[n(0)]
    pub leg: LegId,
    /// The life of the leg.
    #[n(1)]
    pub leg_epoch: u64,
    /// Packet numbers.
    #[n(2)]
    pub packets: RangeSet,
}

/// Hub to site: packets the leg can't repair any more.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct PacketsGone {
    /// The leg.
    #[n(0)]
    pub leg: LegId,
    /// The life of the leg.
    #[n(1)]
    pub leg_epoch: u64,
    /// Packet numbers.
    #[n(2)]
    pub packets: RangeSet,
}

/// Site to hub: sequences of a feed that the site lacks; the repair of last resort. The hub answers with products,
/// [`Covered`] and [`Expired`] until every number is accounted for.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Want {
    /// The feed.
    #[n(0)]
    pub feed: FeedName,
    /// The life of the hub's log.
    #[n(1)]
    pub epoch: Epoch,
    /// The numbers.
    #[n(2)]
    pub sequences: RangeSet,
}

/// How a product ended at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(index_only)]
pub enum Outcome {
    /// In the site's log.
    #[n(0)]
    Stored,
    /// Its digest failed three times, or the site can't hold it.
    #[n(1)]
    Rejected,
    /// The hub had it no longer.
    #[n(2)]
    Expired,
    /// The site had it already, by duplicate key, from another epoch.
    #[n(3)]
    Held,
}

/// Site to hub: a product ended here. Stamps are the site's wall clock.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Receipt {
    /// The product.
    #[n(0)]
    pub key: ProductKey,
    /// How.
    #[n(1)]
    pub outcome: Outcome,
    /// Why it travelled.
    #[n(2)]
    pub lane: Lane,
    /// The leg that carried most of it.
    #[n(3)]
    pub leg: LegId,
    /// That leg's transport.
    #[n(4)]
    pub transport: Transport,
    /// Its class, so that the hub need not look it up.
    #[n(5)]
    pub class: Class,
    /// Bytes.
    #[n(6)]
    pub size: u64,
    /// Origin's clock.
    #[n(7)]
    pub created: WallMicros,
    /// Hub's clock: complete and verified in the hub's log.
    #[n(8)]
    pub hub_stored: WallMicros,
    /// Site's clock: last byte received.
    #[n(9)]
    pub last_byte: WallMicros,
    /// Site's clock: verified and stored.
    #[n(10)]
    pub site_stored: WallMicros,
    /// True if the bytes came by repair in part.
    #[n(11)]
    pub repaired: bool,
    /// Site's clock: local software has it (a file stands). `None` if that was not over when the receipt left.
    #[n(12)]
    pub action_done: Option<WallMicros>,
}

impl Receipt {
    /// The receipt of a product of which the site never learned more than its number: everything else is zero.
    pub fn undescribed(key: ProductKey, outcome: Outcome, at: WallMicros) -> Self {
        Self {
            key,
            outcome,
            lane: Lane::Backfill,
            leg: LegId(0),
            transport: Transport::Unicast,
            class: Class::Bulk,
            size: 0,
            created: WallMicros(0),
            hub_stored: WallMicros(0),
            last_byte: at,
            site_stored: at,
            repaired: false,
            action_done: None,
        }
    }
}

/// Site to hub: what ended since the last batch.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Receipts {
    /// The site's clock against the hub's, if measured.
    #[n(0)]
    pub clock: Option<ClockOffset>,
    /// What ended.
    #[n(1)]
    pub items: Vec<Receipt>,
}

/// A clock compared by four timestamps (RFC 5905 §8, RFC 8762).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ClockOffset {
    /// Site's clock minus the hub's, microseconds.
    #[n(0)]
    pub offset_us: i64,
    /// Half the smallest round trip: the offset is within this of the truth, whatever the asymmetry. Microseconds.
    #[n(1)]
    pub bound_us: u64,
    /// The smallest round trip of the window, microseconds.
    #[n(2)]
    pub round_trip_us: u64,
}

/// Site to hub: a clock request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ClockRequest {
    /// Site's wall clock at sending.
    #[n(0)]
    pub sent: WallMicros,
}

/// Hub to site: the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ClockReply {
    /// From the request.
    #[n(0)]
    pub request_sent: WallMicros,
    /// Hub's wall clock at receipt.
    #[n(1)]
    pub received: WallMicros,
    /// Hub's wall clock at sending.
    #[n(2)]
    pub sent: WallMicros,
}

impl std::fmt::Debug for Proof {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Token { .. } => f.write_str("Token(..)"),
            Self::Credential { site, .. } => write!(f, "Credential({site})"),
        }
    }
}

/// How long a side waits for any frame before it takes the other for dead; a keep-alive (the clock exchange) comes each 5 s, and may
/// be 4 s late on a path that stalls. With less patience a path's hiccup would cost a session, with more a dead peer stays for over 10 s.
pub const LIVENESS_LIMIT: Micros = Micros::from_secs(9);
