//! Stored products that go to a site once more: the request to the hub's half, and the messages between the
//! two halves.
use downburst_model::{Epoch, FeedName, IdFilter, Lane, ProductKey, RangeSet, Sequence};
use minicbor::{Decode, Encode};

use crate::{Outcome, ProductBegin};

/// Products of a feed's log that a site gets once more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResendOrder {
    /// Names the resend for good: a site delivers each product once under each number.
    pub resend: u64,
    /// The feed.
    pub feed: FeedName,
    /// The life of its log.
    pub epoch: Epoch,
    /// Numbers behind this.
    pub after: Sequence,
    /// Not beyond this.
    pub to: Sequence,
    /// [`Lane::Resend`]: delivered whether the site has it or not. [`Lane::Backfill`]: the site drops products
    /// that it has.
    pub lane: Lane,
    /// Ids that go.
    pub wanted: IdFilter,
    /// Unless one of these had them go already.
    pub had: Vec<IdFilter>,
    /// And only if one of these wants them; `None`: the site may take all of the feed.
    pub within: Option<Vec<IdFilter>>,
    /// Where an earlier session with the site left it; `None`: it begins.
    pub left: Option<ResendLeft>,
}

/// What is left of a resend when its session ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResendLeft {
    /// The life of the log that the numbers belong to.
    pub epoch: Epoch,
    /// What the site did not answer.
    pub numbers: RangeSet,
    /// What it came to until then.
    pub end: ResendEnd,
}

/// What a resend came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResendEnd {
    /// Its number.
    pub resend: u64,
    /// Delivered.
    pub products: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Matched, but the log had only the memory of them, or the site rejected them.
    pub expired: u64,
}

/// Hub to site: a product begins to come once more. It says nothing about other numbers.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ResentBegin {
    /// The number of the resend.
    #[n(0)]
    pub resend: u64,
    /// The product; its `previous` is absent.
    #[n(1)]
    pub begin: ProductBegin,
}

/// Site to hub: how a product of a resend ended. Its receipt goes beside this, as any other.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ResentEnded {
    /// The number of the resend.
    #[n(0)]
    pub resend: u64,
    /// The product.
    #[n(1)]
    pub key: ProductKey,
    /// How.
    #[n(2)]
    pub outcome: Outcome,
    /// Bytes.
    #[n(3)]
    pub size: u64,
}

/// Site to hub: products of a resend that could not be kept; they are asked once more.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ResentFailed {
    /// The number of the resend.
    #[n(0)]
    pub resend: u64,
    /// Their numbers.
    #[n(1)]
    pub sequences: RangeSet,
}
