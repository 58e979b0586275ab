use downburst_model::FeedName;
use minicbor::{Decode, Encode};

/// Hub to site: the assignment of the site's feeds to the hub's nodes, as a whole set. Of two such messages the
/// one with the higher version applies, whichever node sent it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Nodes {
    /// The version of the assignment; rises with each change.
    #[n(0)]
    pub version: u64,
    /// The nodes, including the sender of this message; empty: the sender serves all feeds.
    #[n(1)]
    pub items: Vec<NodeFeeds>,
}

/// One node of a hub, as a site sees it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct NodeFeeds {
    /// Its address for sites: `HOST:PORT`.
    #[n(0)]
    pub address: String,
    /// The feeds of the site that it serves.
    #[n(1)]
    pub feeds: Vec<FeedName>,
}
