//! The actions' view of a site.
use std::sync::Arc;

use downburst_log::FeedLog;
use downburst_model::FeedName;
use downburst_session::ActionFailed;

/// A site, as far as its actions need it.
pub trait Site: Send + Sync {
    /// The site's feeds whose logs are open now, with these logs.
    fn logs(&self) -> Vec<(FeedName, Arc<FeedLog>)>;

    /// Reports to the hub that actions on a feed fail; `None`: they no longer do.
    fn report(&self, feed: &FeedName, failed: Option<ActionFailed>);
}
