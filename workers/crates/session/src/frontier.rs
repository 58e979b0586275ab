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
    /// What the site's own actions could not do with a product of this feed, the newest one.
    #[n(5)]
    pub action_failed: Option<ActionFailed>,
}

/// Something that a site's rules wanted done with a product, and that failed.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ActionFailed {
    /// The rule's file and line.
    #[n(0)]
    pub rule: String,
    /// The exit status of its program, or minus the signal that ended it.
    #[n(1)]
    pub exit: Option<i32>,
    /// What went wrong, in one sentence.
    #[n(2)]
    pub last_error: String,
    /// The product's identifier.
    #[n(3)]
    pub product: String,
    /// Its number at the hub.
    #[n(4)]
    pub sequence: Sequence,
    /// The life of the hub's log that these numbers are of. Absent: the site's log does
    /// not name one.
    #[n(5)]
    pub epoch: Option<Epoch>,
    /// For how many products of the feed rules failed, and nobody there has looked after it yet; this one counts.
    #[n(6)]
    #[cbor(default)]
    pub count: u64,
    /// The numbers of the newest of the others, rising.
    #[n(7)]
    #[cbor(default, skip_if = "Vec::is_empty")]
    pub others: Vec<Sequence>,
}

impl ActionFailed {
    /// The most numbers that are told beside the newest one.
    pub const MOST_OTHERS: usize = 64;
}
