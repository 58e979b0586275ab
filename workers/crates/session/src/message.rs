//! The messages of a session. Each is one frame: kind (1 byte), length of the body (4 bytes, big-endian), body
//! (CBOR with numbered fields; the receiver skips unknown numbers). Slices of products and repaired packets are
//! binary frames.
use downburst_model::{
    Epoch, FeedName, IdFilter, Lane, LegId, Micros, ProductInfo, RangeSet, Sequence, SiteName, WallMicros,
};
use minicbor::{Decode, Encode};

mod circuits;
mod clocks;
mod credentials;
mod legs;
mod nodes;
mod probes;
mod receipts;
mod relays;
mod siblings;
mod ways;

pub use circuits::*;
pub use clocks::*;
pub use credentials::*;
pub use legs::*;
pub use nodes::*;
pub use probes::*;
pub use receipts::*;
pub use relays::*;
pub use siblings::*;
pub use ways::*;

/// Site to hub, first frame of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Hello {
    /// The versions that the site supports, best first.
    #[n(0)]
    pub versions: Vec<u16>,
    /// Program and version, in readable form.
    #[n(1)]
    pub software: String,
    /// The site's identity and its proof.
    #[n(2)]
    pub proof: Proof,
    /// The position in each feed that the site has ever had.
    #[n(3)]
    pub feeds: Vec<FeedPosition>,
    /// `Some(true)`: the site stands by, since another hub serves it; it asks for admission and gets no feeds.
    #[n(4)]
    pub stand_by: Option<bool>,
    /// `Some(true)`: the site takes all its feeds from the node that it connects to, even if the hub has several.
    #[n(5)]
    pub one_node: Option<bool>,
}

/// A site's proof of its identity.
#[derive(Clone, PartialEq, Eq, Encode, Decode)]
pub enum Proof {
    /// First contact: the one-time secret of the enrolment token, and SHA-256 of the credential that the site
    /// generated. A repetition with the same credential gets the same answer, so a lost answer does no harm.
    #[n(0)]
    Token {
        /// The secret from the token.
        #[n(0)]
        secret: String,
        /// SHA-256 of the credential's secret, in hex.
        #[n(1)]
        credential_sha256: String,
    },
    /// Every later contact.
    #[n(1)]
    Credential {
        /// The site's name, as received from the hub.
        #[n(0)]
        site: SiteName,
        /// The credential's secret.
        #[n(1)]
        secret: String,
    },
}

/// A site's position in a feed.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct FeedPosition {
    /// The feed.
    #[n(0)]
    pub feed: FeedName,
    /// The epoch of the numbers.
    #[n(1)]
    pub epoch: Epoch,
    /// All settled numbers of that epoch: stored, rejected, expired, or not for this site. The end of the first
    /// range, if that begins at 0, is the frontier.
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
    /// `Some(true)`: the hub knows that the site stands by. Absent: the hub serves it.
    #[n(3)]
    pub stand_by: Option<bool>,
}

/// Hub to site, before it closes the connection.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Refused {
    /// The reason.
    #[n(0)]
    pub code: RefusalCode,
    /// One sentence with the fault and its remedy.
    #[n(1)]
    pub sentence: String,
}

/// The reason for which a hub refuses a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum RefusalCode {
    /// No version in common.
    #[n(0)]
    Version,
    /// Unknown token, or a token used by another site.
    #[n(1)]
    Token,
    /// Unknown or revoked credential.
    #[n(2)]
    Credential,
    /// The credential has expired.
    #[n(3)]
    Expired,
    /// Another receiver is active under this credential.
    #[n(4)]
    Busy,
    /// The peer broke the protocol.
    #[n(5)]
    Protocol,
    /// The hub is stopping or can't serve now; try again later.
    #[n(6)]
    Unavailable,
}

/// One subscription of a site.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Subscription {
    /// The feed.
    #[n(0)]
    pub feed: FeedName,
    /// The subscribed products: those whose id matches this.
    #[n(1)]
    pub pattern: String,
    /// Except those whose id matches this.
    #[n(2)]
    pub not_pattern: Option<String>,
    /// The site's rights: only products that match one of these. Absent: the whole feed.
    #[n(3)]
    pub within: Option<Vec<IdFilter>>,
}

/// Hub to site: the whole set of subscriptions; replaces the former one.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Subscriptions {
    /// All of the site's subscriptions within its allow list.
    #[n(0)]
    pub items: Vec<Subscription>,
    /// The last sequence of each served feed when the set changed. The set applies to every later product, even
    /// if a multicast leg announced it before the site received this message.
    #[n(1)]
    pub heads: Vec<FeedHead>,
}

/// The end of a feed's log at some moment.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct FeedHead {
    /// The feed.
    #[n(0)]
    pub feed: FeedName,
    /// The epoch of the hub's log.
    #[n(1)]
    pub epoch: Epoch,
    /// The last sequence.
    #[n(2)]
    pub head: Sequence,
}

/// Hub to site: from here on the numbers of this feed belong to `epoch`, and everything up to `after` is
/// settled (before the subscription's start, or in the site's reported position).
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct FeedStart {
    /// The feed.
    #[n(0)]
    pub feed: FeedName,
    /// The epoch of the hub's log.
    #[n(1)]
    pub epoch: Epoch,
    /// Up to this number, the hub owes the site only the numbers that it reported as not settled.
    #[n(2)]
    pub after: Sequence,
    /// The feed's rule for duplicates, for sites that take the feed from several hubs. Absent: id and content.
    #[n(3)]
    pub duplicates: Option<Duplicates>,
}

/// The rule by which two products of a feed are duplicates.
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
    /// No rule: every product counts.
    #[n(4)]
    None,
}

/// Hub to site: a product follows in slices (none if it is empty).
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ProductBegin {
    /// The product.
    #[n(0)]
    pub info: ProductInfo,
    /// No product between this number and this product matches. `None` in an answer to a [`Want`].
    #[n(1)]
    pub previous: Option<Sequence>,
    /// The lane: the reason for the transmission.
    #[n(2)]
    pub lane: Lane,
    /// The leg that carries it.
    #[n(3)]
    pub leg: LegId,
    /// The transfer number of its slices. Rising within a session.
    #[n(4)]
    pub transfer: u32,
}

/// Hub to site: no product in `from..=to` matches, apart from those sent in this session before this frame.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Covered {
    /// The feed.
    #[n(0)]
    pub feed: FeedName,
    /// The epoch of the hub's log.
    #[n(1)]
    pub epoch: Epoch,
    /// First number.
    #[n(2)]
    pub from: Sequence,
    /// Last number.
    #[n(3)]
    pub to: Sequence,
}

/// Hub to site: products that matched and are no longer in the log, or can no longer meet the feed's deadline. They
/// become `expired`, or `late at hub`.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Expired {
    /// The feed.
    #[n(0)]
    pub feed: FeedName,
    /// The epoch of the hub's log.
    #[n(1)]
    pub epoch: Epoch,
    /// Their numbers.
    #[n(2)]
    pub sequences: RangeSet,
    /// True: the hub dropped them, as they can't meet the feed's deadline. Only for feeds with a deadline.
    #[n(3)]
    pub late: Option<bool>,
    /// Of late ones: the beginning of the second in which the hub stored all of them, for the figures of seconds.
    #[n(4)]
    pub stored: Option<WallMicros>,
}

/// Site to hub: a request for sequences of a feed that the site lacks; the repair of last resort. The hub
/// answers with products, [`Covered`] and [`Expired`] until every number is accounted for.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Want {
    /// The feed.
    #[n(0)]
    pub feed: FeedName,
    /// The epoch of the hub's log.
    #[n(1)]
    pub epoch: Epoch,
    /// The numbers.
    #[n(2)]
    pub sequences: RangeSet,
}

impl std::fmt::Debug for Proof {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Token { .. } => f.write_str("Token(..)"),
            Self::Credential { site, .. } => write!(f, "Credential({site})"),
        }
    }
}

/// The time without any frame after which a side takes its peer for dead. A keep-alive (the clock exchange) is
/// due every 5 s, and may be 4 s late on a stalled path. A shorter limit would let a brief stall end a session;
/// a longer one would keep a dead peer for over 10 s.
pub const LIVENESS_LIMIT: Micros = Micros::from_secs(9);
