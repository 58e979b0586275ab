use downburst_model::{Epoch, FeedName, Sequence};
use minicbor::{Decode, Encode};

/// Site to hub: its position in a feed, sent after receipts and at least once a second while it changes.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Frontier {
    /// The feed.
    #[n(0)]
    pub feed: FeedName,
    /// The epoch of the hub's log.
    #[n(1)]
    pub epoch: Epoch,
    /// Everything up to here is settled.
    #[n(2)]
    pub settled_to: Sequence,
    /// The number of products that are known and not settled.
    #[n(3)]
    pub pending: u64,
    /// Why the site stores nothing of this feed at the moment (its disk is full, say), in one sentence.
    #[n(4)]
    pub trouble: Option<String>,
    /// The newest failure of the site's own actions with a product of this feed.
    #[n(5)]
    pub action_failed: Option<ActionFailed>,
    /// Space that products take after they left the site's log. Absent: none.
    #[n(6)]
    pub linked: Option<LinkedSpace>,
}

/// The space of products of a feed that left the site's log: their files for local software, which were second names of
/// the log's bodies, still exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct LinkedSpace {
    /// The bytes of these files at present.
    #[n(0)]
    pub bytes: u64,
    /// The bytes that are free on their disk.
    #[n(1)]
    pub free_bytes: u64,
}

/// A failed action of a site's rules on a product.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ActionFailed {
    /// The rule's file and line.
    #[n(0)]
    pub rule: String,
    /// The exit status of its program, or minus the signal that ended it.
    #[n(1)]
    pub exit: Option<i32>,
    /// The error, in one sentence.
    #[n(2)]
    pub last_error: String,
    /// The product's identifier.
    #[n(3)]
    pub product: String,
    /// Its number at the hub.
    #[n(4)]
    pub sequence: Sequence,
    /// The epoch of these numbers. Absent: the site's log does not name one.
    #[n(5)]
    pub epoch: Option<Epoch>,
    /// The number of products of the feed for which rules failed and which no operator there has dealt with
    /// yet, including this one.
    #[n(6)]
    #[cbor(default)]
    pub count: u64,
    /// The sequences of the newest of the others, in rising order.
    #[n(7)]
    #[cbor(default, skip_if = "Vec::is_empty")]
    pub others: Vec<Sequence>,
}

impl ActionFailed {
    /// The maximum number of sequences reported besides the newest one.
    pub const MOST_OTHERS: usize = 64;
}
