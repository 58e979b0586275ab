//! The site's interface for its actions.
use std::path::Path;
use std::sync::Arc;

use downburst_log::FeedLog;
use downburst_model::{Content, FeedName};
use downburst_session::ActionFailed;

use super::files::{DoneTo, Placing};
use super::store::Logs;

/// A site with actions on its products.
pub(super) struct ActedOn {
    pub(super) logs: Arc<Logs>,
    pub(super) done_to: DoneTo,
    /// The way in which files get their bytes; `None`: by writing them.
    pub(super) placing: Option<Placing>,
}

impl downburst_pqact::Site for ActedOn {
    fn logs(&self) -> Vec<(FeedName, Arc<FeedLog>)> {
        self.logs.all()
    }

    fn report(&self, feed: &FeedName, failed: Option<ActionFailed>) {
        self.done_to.acts(feed, failed);
    }

    fn share(&self, product: &Content, to: &Path) -> bool {
        self.placing.as_ref().is_some_and(|placing| placing.share(product, to))
    }
}
