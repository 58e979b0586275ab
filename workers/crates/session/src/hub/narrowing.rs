use std::sync::Arc;

use downburst_model::FeedName;

use super::HubSession;
use super::feeds::Feed;
use crate::patterns::Patterns;

/// What a site is sent follows what it may take and wants at this moment: what was queued before is looked at again.
impl HubSession {
    /// Takes back what is queued and not begun of feeds whose patterns changed, as far as they do not want it any more. A train is
    /// taken back whole. Their numbers are read again: what the site is to have goes, of the rest it is told that nothing is for it.
    pub(super) fn take_back_unwanted(&mut self, before: &Patterns) {
        let changed = |feed: &&FeedName| before.filter(feed) != self.patterns.filter(feed);
        let changed: Vec<FeedName> = self.feeds.keys().filter(changed).cloned().collect();
        for feed in changed {
            let Some(filter) = self.patterns.filter(&feed).map(Arc::clone) else {
                continue;
            };
            let gone = self.parcels.take_back_unwanted(&mut self.outbox, &feed, |id| filter.wants(id));
            let Some(Feed::Serving(serve)) = self.feeds.get_mut(&feed) else {
                continue;
            };
            let epoch = serve.epoch;
            for item in gone.iter().filter(|item| item.epoch == epoch) {
                serve.read_again(item.previous, item.first, item.last);
            }
        }
    }

    /// Takes back what is queued and not begun of resends, as far as nobody wants it any more: the order is gone, or what it may
    /// bring is less than it was.
    pub(super) fn take_back_resent(&mut self) {
        let Self { resends, parcels, outbox, .. } = self;
        let gone = parcels.take_back_resent(outbox, |resend, _, id| !resends.want(resend, id));
        for (resend, number) in gone {
            resends.leave_out(resend, number);
        }
    }
}
