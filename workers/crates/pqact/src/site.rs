//! The actions' view of a site.
use std::path::Path;
use std::sync::Arc;

use downburst_log::FeedLog;
use downburst_model::{Content, FeedName};
use downburst_session::ActionFailed;

/// A site, as far as its actions need it.
pub trait Site: Send + Sync {
    /// The site's feeds whose logs are open now, with these logs.
    fn logs(&self) -> Vec<(FeedName, Arc<FeedLog>)>;

    /// Makes the file `to` share the bytes of a product in the site's log; false if that is not possible or not wanted.
    fn share(&self, product: &Content, to: &Path) -> bool;

    /// Reports to the hub that actions on a feed fail; `None`: they no longer do.
    fn report(&self, feed: &FeedName, failed: Option<ActionFailed>);
}
