//! A site's settings for the handling of a feed's products, besides its subscriptions.
use std::collections::BTreeMap;

use downburst_model::{Class, Epoch, FeedName, RangeSet, Sequence};
use minicbor::{Decode, Encode};

/// The handling of one feed for one site.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct FeedHandling {
    /// The feed.
    #[n(0)]
    pub feed: FeedName,
    /// Local software sees live products in the order of their numbers; a missing one holds back later ones
    /// for this long, in microseconds.
    #[n(1)]
    pub hold_us: Option<u64>,
    /// Products that the hub stored longer ago than this are no longer sent and expire for the site, microseconds.
    #[n(2)]
    pub max_age_us: Option<i64>,
    /// The feed's deadline, in microseconds from the hub's stored stamp: later products are dropped and counted, by
    /// the hub and by the site. `None`: an ordinary feed.
    #[n(3)]
    pub deadline_us: Option<u64>,
}

/// Hub to site: the handling of its feeds, as a whole set without the feeds that have no settings; replaces the
/// former set.
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
    /// The number of these products.
    #[n(1)]
    pub products: u64,
}

/// The numbers of a feed that a site lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// The epoch of the hub's log.
    pub epoch: Option<Epoch>,
    /// Unfinished numbers up to `to` that may belong to the class.
    pub by_class: BTreeMap<Class, RangeSet>,
    /// Nothing is known of numbers behind this.
    pub to: Sequence,
}
