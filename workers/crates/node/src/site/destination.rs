use std::sync::Arc;

use downburst_log::FeedLog;
use downburst_model::{Class, FeedName, Hops, ProductInfo};
use downburst_session::Duplicates;

/// The place of a session's products: the own logs of a receiving site, or the feeds of a hub that is a site
/// of another hub.
pub(crate) trait Destination: Send + Sync {
    /// The log of a feed; `None` if there is no such feed here.
    fn log(&self, feed: &FeedName) -> Result<Option<Arc<FeedLog>>, String>;

    /// Feeds of which something lies here, whatever a checkpoint says of them.
    fn held(&self) -> Vec<FeedName> {
        Vec::new()
    }

    /// How a product goes into the log; `None` if it is passed over.
    fn admit(&self, product: &ProductInfo) -> Option<(Class, Option<Hops>)> {
        Some((product.class, product.hops.clone()))
    }

    /// A product has been appended.
    fn appended(&self, _product: &ProductInfo) {}

    /// The hub's log of the feed began anew: what it sends again is known by id and content from here on.
    fn guard(&self, _feed: &FeedName) {}

    /// What makes two products of the feed the same at the hub.
    fn duplicates(&self, _feed: &FeedName, _rule: Duplicates) {}

    /// The hub goes by this name.
    fn hub_is(&self, _name: &str) {}
}
