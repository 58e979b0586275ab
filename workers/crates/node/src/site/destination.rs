use std::sync::Arc;

use downburst_log::FeedLog;
use downburst_model::{Class, FeedName, Hops, ProductInfo};
use downburst_session::Duplicates;

/// The destination of a session's products: the own logs of a receiving site, or the feeds of a hub that is a site
/// of another hub.
pub(crate) trait Destination: Send + Sync {
    /// The log of a feed; `None` if there is no such feed here.
    fn log(&self, feed: &FeedName) -> Result<Option<Arc<FeedLog>>, String>;

    /// Feeds with products here, regardless of their checkpoints.
    fn held(&self) -> Vec<FeedName> {
        Vec::new()
    }

    /// The class and hops with which a product enters the log; `None` if it is skipped.
    fn admit(&self, product: &ProductInfo) -> Option<(Class, Option<Hops>)> {
        Some((product.class, product.hops.clone()))
    }

    /// Called after a product was appended.
    fn appended(&self, _product: &ProductInfo) {}

    /// The hub's log of the feed began a new epoch: products sent again are recognised by id and content from now on.
    fn guard(&self, _feed: &FeedName) {}

    /// Sets the hub's rule by which two products of the feed are duplicates.
    fn duplicates(&self, _feed: &FeedName, _rule: Duplicates) {}

    /// Sets the hub's name for itself.
    fn hub_is(&self, _name: &str) {}
}
