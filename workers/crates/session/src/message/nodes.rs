use downburst_model::FeedName;
use minicbor::{Decode, Encode};

/// Hub to site: the hub is several nodes; the assignment of the site's feeds to them. The whole set. Of two
/// such messages the one with the higher number holds, whichever node sent it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Nodes {
    /// Rises with each change.
    #[n(0)]
    pub version: u64,
    /// The nodes, the one that says so among them; none: that one serves all.
    #[n(1)]
    pub items: Vec<NodeFeeds>,
}

/// One node of a hub, as a site sees it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct NodeFeeds {
    /// Where sites connect to it: `HOST:PORT`.
    #[n(0)]
    pub address: String,
    /// The site's feeds that it serves.
    #[n(1)]
    pub feeds: Vec<FeedName>,
}
