//! Messages about repair between sites (decision 73): the hub refers a site to a sibling that holds what it lacks.
use downburst_model::{Epoch, FeedName, LegId, ProductInfo, RangeSet, Sequence, SiteName};
use minicbor::{Decode, Encode};

use crate::Ticket;

/// SHA-256 of a self-made certificate of a site, as DER.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(transparent)]
pub struct Fingerprint(#[cbor(n(0), with = "minicbor::bytes")] pub [u8; 32]);

/// Site to hub, in answer to [`SiblingTerms`] that are on: siblings reach this site at this port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SiblingPort {
    /// The TCP port.
    #[n(0)]
    pub port: u16,
    /// The certificate that the site shows there, and where it asks siblings.
    #[n(1)]
    pub fingerprint: Fingerprint,
}

/// Hub to site: whether the site exchanges products with siblings, and the ceiling of its uploads to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct SiblingTerms {
    /// False: it neither gives nor asks, and all grants end.
    #[n(0)]
    pub on: bool,
    /// The most bytes per second to all siblings together.
    #[n(1)]
    pub upload_bytes_per_second: u64,
    /// The most bytes in a day (UTC).
    #[n(2)]
    pub upload_bytes_per_day: u64,
}

/// Hub to the giving site: a sibling may fetch these products.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SiblingGrant {
    /// Presented by the sibling; valid for one connection.
    #[n(0)]
    pub ticket: Ticket,
    /// The sibling, for the log.
    #[n(1)]
    pub sibling: SiteName,
    /// The certificate that it shows.
    #[n(2)]
    pub fingerprint: Fingerprint,
    /// The feed.
    #[n(3)]
    pub feed: FeedName,
    /// The epoch of the hub's log.
    #[n(4)]
    pub epoch: Epoch,
    /// The numbers of the products.
    #[n(5)]
    pub sequences: RangeSet,
}

/// Hub to the giving site: these grants end, and so do transfers under them.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SiblingWithdrawn {
    /// Their tickets, at most [`MOST_WITHDRAWN`].
    #[n(0)]
    pub tickets: Vec<Ticket>,
}

/// Hub to site: a sibling holds these products; fetch them there. The descriptions prove what comes.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Referral {
    /// Rising within a session.
    #[n(0)]
    pub number: u32,
    /// For the sibling.
    #[n(1)]
    pub ticket: Ticket,
    /// The sibling, for the log.
    #[n(2)]
    pub sibling: SiteName,
    /// Its address, `HOST:PORT`.
    #[n(3)]
    pub address: String,
    /// The certificate that it shows.
    #[n(4)]
    pub fingerprint: Fingerprint,
    /// The leg under which the products are counted.
    #[n(5)]
    pub leg: LegId,
    /// The products, at most [`MOST_REFERRED`], of one feed and epoch, by rising sequence.
    #[n(6)]
    pub items: Vec<Referred>,
}

/// A product of a [`Referral`].
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Referred {
    /// The product.
    #[n(0)]
    pub info: ProductInfo,
    /// No product between this number and this product matches.
    #[n(1)]
    pub previous: Sequence,
    /// No product behind this one and up to this number matches. Absent: nothing is known of them.
    #[n(2)]
    pub to: Option<Sequence>,
}

/// Site to hub: the referral is over.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ReferralEnded {
    /// As in the referral.
    #[n(0)]
    pub number: u32,
    /// The products that did not come: the hub sends them.
    #[n(1)]
    pub missing: RangeSet,
    /// The sibling's fault, if it has one.
    #[n(2)]
    pub fault: Option<SiblingFault>,
}

/// The fault of a sibling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(index_only)]
pub enum SiblingFault {
    /// It can't be reached, or shows another certificate.
    #[n(0)]
    Unreachable,
    /// It refused: the grant is unknown there, or its uploads are at their ceiling.
    #[n(1)]
    Refused,
    /// It no longer has all products.
    #[n(2)]
    Lacking,
    /// It sent too little in the time.
    #[n(3)]
    Slow,
    /// It sent bytes that do not match the hub's digest, or no answer of the protocol.
    #[n(4)]
    Rubbish,
}

/// The most products of a referral.
pub const MOST_REFERRED: usize = 256;
/// The most open referrals of a session.
pub const MOST_REFERRALS: usize = 16;
/// The most tickets of one [`SiblingWithdrawn`].
pub const MOST_WITHDRAWN: usize = 4_096;
