use downburst_model::{Epoch, FeedName, Sequence};
use minicbor::{Decode, Encode};

/// Site to hub: where it stands in a feed, said after receipts and at least each second while something changes.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Frontier {
    /// The feed.
    #[n(0)]
    pub feed: FeedName,
    /// The life of the hub's log.
    #[n(1)]
    pub epoch: Epoch,
    /// Everything up to here is settled.
    #[n(2)]
    pub settled_to: Sequence,
    /// How many products are known and not settled.
    #[n(3)]
    pub pending: u64,
    /// Why the site stores nothing of this feed at the moment (its disk is full, say), in one sentence.
    #[n(4)]
    pub trouble: Option<String>,
}
