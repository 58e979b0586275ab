//! Resends of stored products to a site: the request to the hub's half, and the messages between the two halves.
use downburst_model::{Epoch, FeedName, IdFilter, Lane, ProductKey, RangeSet, Sequence};
use minicbor::{Decode, Encode};

use crate::{Outcome, ProductBegin};

/// An order to send products of a feed's log to a site again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResendOrder {
    /// The permanent number of the resend: a site delivers each product once under each number.
    pub resend: u64,
    /// The feed.
    pub feed: FeedName,
    /// The epoch of its log.
    pub epoch: Epoch,
    /// The range begins behind this number.
    pub after: Sequence,
    /// The last number of the range.
    pub to: Sequence,
    /// [`Lane::Resend`]: delivered even if the site has the product. [`Lane::Backfill`]: the site drops
    /// products that it has.
    pub lane: Lane,
    /// The ids to send.
    pub wanted: IdFilter,
    /// Except those that match one of these: they were sent already.
    pub had: Vec<IdFilter>,
    /// The site's rights: only products that match one of these. `None`: the whole feed.
    pub within: Option<Vec<IdFilter>>,
    /// The rest that an earlier session with the site left; `None`: a new resend.
    pub left: Option<ResendLeft>,
}

/// The rest of a resend when its session ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResendLeft {
    /// The epoch of the numbers.
    pub epoch: Epoch,
    /// The numbers that the site did not answer.
    pub numbers: RangeSet,
    /// The result until then.
    pub end: ResendEnd,
}

/// The result of a resend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResendEnd {
    /// Its number.
    pub resend: u64,
    /// The number of delivered products.
    pub products: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The number of products that matched, but had no bytes left in the log or were rejected by the site.
    pub expired: u64,
}

/// Hub to site: a product of a resend follows. The message makes no statement about other numbers.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ResentBegin {
    /// The number of the resend.
    #[n(0)]
    pub resend: u64,
    /// The product; its `previous` is absent.
    #[n(1)]
    pub begin: ProductBegin,
}

/// Site to hub: the outcome of a product of a resend. Its receipt is sent as well, as for any other product.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ResentEnded {
    /// The number of the resend.
    #[n(0)]
    pub resend: u64,
    /// The product.
    #[n(1)]
    pub key: ProductKey,
    /// The outcome.
    #[n(2)]
    pub outcome: Outcome,
    /// Its size in bytes.
    #[n(3)]
    pub size: u64,
}

/// Site to hub: products of a resend that could not be stored; they are requested again.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ResentFailed {
    /// The number of the resend.
    #[n(0)]
    pub resend: u64,
    /// Their numbers.
    #[n(1)]
    pub sequences: RangeSet,
}
