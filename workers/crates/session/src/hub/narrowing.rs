use std::sync::Arc;

use downburst_model::FeedName;

use super::feeds::Feed;
use super::{HubSession, Line};
use crate::patterns::Patterns;

/// Deliveries follow the site's present rights and subscriptions: products queued earlier are checked again.
impl HubSession {
    /// Takes back queued products that have not begun, of feeds whose patterns changed and no longer match
    /// them. A train is taken back whole. Their numbers are read again: wanted products are sent, and the site
    /// learns that the rest is not for it.
    pub(super) fn take_back_unwanted(&mut self, before: &Patterns) {
        let changed = |feed: &&FeedName| before.filter(feed) != self.serving.patterns.filter(feed);
        let changed: Vec<FeedName> = self.serving.feeds.keys().filter(changed).cloned().collect();
        for feed in changed {
            let Some(filter) = self.serving.patterns.filter(&feed).map(Arc::clone) else {
                continue;
            };
            let gone =
                self.line.parcels.take_back_unwanted(&mut self.line.outbox, &feed, |id| filter.wants(id));
            let Some(Feed::Serving(serve)) = self.serving.feeds.get_mut(&feed) else {
                continue;
            };
            let epoch = serve.epoch;
            for item in gone.iter().filter(|item| item.epoch == epoch) {
                serve.read_again(item.previous, item.first, item.last);
            }
        }
    }

    /// Takes back queued products of resends that have not begun and are no longer wanted: the order was
    /// removed or narrowed.
    pub(super) fn take_back_resent(&mut self) {
        let (resends, Line { parcels, outbox, .. }) = (&mut self.resends, &mut self.line);
        let gone = parcels.take_back_resent(outbox, |resend, _, id| !resends.want(resend, id));
        for (resend, number) in gone {
            resends.leave_out(resend, number);
        }
    }
}
