//! The site's interface for its actions.
use std::sync::Arc;

use downburst_log::FeedLog;
use downburst_model::FeedName;
use downburst_session::ActionFailed;

use super::files::DoneTo;
use super::store::Logs;

/// A site with actions on its products.
pub(super) struct ActedOn {
    pub(super) logs: Arc<Logs>,
    pub(super) done_to: DoneTo,
}

impl downburst_pqact::Site for ActedOn {
    fn logs(&self) -> Vec<(FeedName, Arc<FeedLog>)> {
        self.logs.all()
    }

    fn report(&self, feed: &FeedName, failed: Option<ActionFailed>) {
        self.done_to.acts(feed, failed);
    }
}
