//! How a site wants a feed's products handled, beyond which of them it wants.
use std::collections::BTreeMap;

use downburst_model::{Class, Epoch, FeedName, RangeSet, Sequence};
use minicbor::{Decode, Encode};

/// How one feed is handled for one site.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct FeedHandling {
    /// The feed.
    #[n(0)]
    pub feed: FeedName,
    /// Local software sees live products in the order of their numbers; a missing one holds back later ones
    /// for this long, in microseconds.
    #[n(1)]
    pub hold_us: Option<u64>,
    /// What the hub stored longer ago than this is not sent any more and expires for the site, microseconds.
    #[n(2)]
    pub max_age_us: Option<i64>,
}

/// Hub to site: how its feeds are handled, all of those of which there is something to say; replaces the former set.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Handling {
    /// Each feed at most once.
    #[n(0)]
    pub items: Vec<FeedHandling>,
}

/// Site to hub: the number of products of a feed that local software saw after a later one, against the
/// requested order, since the site started.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Late {
    /// The feed.
    #[n(0)]
    pub feed: FeedName,
    /// How many.
    #[n(1)]
    pub products: u64,
}

/// What a site lacks of a feed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// The life of the hub's log.
    pub epoch: Option<Epoch>,
    /// Numbers that did not end and may belong to the class, up to `to`.
    pub by_class: BTreeMap<Class, RangeSet>,
    /// Nothing is known of numbers behind this.
    pub to: Sequence,
}
