//! The watches of a session over the feeds that it reads.
use std::collections::BTreeSet;
use std::sync::Arc;

use downburst_hub::{FeedStanding, FeedWatch, WatchedFeeds};
use downburst_model::FeedName;
use tokio::sync::Notify;

use crate::hub::feeds::wake_ups::LogListener;
use crate::hub::feeds::{Feed, Feeds, head};

/// The subscribed feeds that are open.
#[derive(Default)]
pub(in crate::hub) struct Watched {
    /// Notified when one of them has grown.
    bell: Arc<Notify>,
    pub(in crate::hub) feeds: WatchedFeeds<Watch>,
}

pub(in crate::hub) struct Watch {
    feed: Arc<Feed>,
    listener: LogListener,
}

impl Watched {
    /// Waits until a feed grows that is not left to a leg.
    pub(in crate::hub) async fn notified(&self) {
        self.bell.notified().await;
    }

    /// Watches these feeds from now on, as far as they are open.
    pub(in crate::hub) fn subscribe(
        &mut self,
        subscribed: &BTreeSet<FeedName>,
        open: &Feeds,
    ) -> Vec<FeedStanding> {
        let begin = |name: &FeedName| Some(Watch::begin(open.find(name)?, &self.bell));
        self.feeds.subscribe(subscribed, begin)
    }

    /// Picks up feeds that were opened, closed or reopened.
    pub(in crate::hub) fn look_for(
        &mut self,
        subscribed: &BTreeSet<FeedName>,
        open: &Feeds,
    ) -> Vec<FeedStanding> {
        let is_current =
            |name: &FeedName, watch: &Watch| open.find(name).is_some_and(|it| Arc::ptr_eq(&it, &watch.feed));
        let begin = |name: &FeedName| Some(Watch::begin(open.find(name)?, &self.bell));
        self.feeds.look_for(subscribed, is_current, begin)
    }
}

impl Watch {
    fn begin(feed: Arc<Feed>, bell: &Arc<Notify>) -> Self {
        let bell = Arc::clone(bell);
        let listener = feed.wake_ups.register(move || bell.notify_one());
        Self { feed, listener }
    }
}

impl FeedWatch for Watch {
    fn standing(&self) -> FeedStanding {
        FeedStanding {
            feed: self.feed.name(),
            epoch: self.feed.epoch(),
            head: head(&self.feed),
            unicast_leg: self.feed.unicast_leg(),
            rule: self.feed.duplicate_rule(),
            deadline_us: self.feed.deadline_us(),
        }
    }

    fn take_growth(&self) -> bool {
        self.listener.take()
    }

    fn mute(&self, muted: bool) {
        self.listener.mute(muted);
    }
}
