//! The site as its actions know it.
use std::sync::Arc;

use downburst_log::FeedLog;
use downburst_model::FeedName;
use downburst_session::ActionFailed;

/// What actions need of the site whose products they are for.
pub trait Site: Send + Sync {
    /// The site's feeds with their logs, as many as are open now.
    fn logs(&self) -> Vec<(FeedName, Arc<FeedLog>)>;

    /// Tells the hub what the actions can't do with a feed; `None`: they can again.
    fn report(&self, feed: &FeedName, failed: Option<ActionFailed>);
}
