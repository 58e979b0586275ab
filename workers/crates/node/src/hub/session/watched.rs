//! The feeds that a session reads, and their growth.
use std::collections::BTreeSet;
use std::sync::Arc;

use downburst_hub::FeedStanding;
use downburst_model::FeedName;
use tokio::sync::Notify;

use crate::hub::ByFeed;
use crate::hub::feeds::wake_ups::LogListener;
use crate::hub::feeds::{Feed, Feeds, head};

/// The subscribed feeds that are open.
pub(in crate::hub) struct Watched {
    /// Notified when one of them has grown.
    bell: Arc<Notify>,
    feeds: ByFeed<Watch>,
}

struct Watch {
    feed: Arc<Feed>,
    listener: LogListener,
}

impl Watched {
    pub(in crate::hub) fn new() -> Self {
        Self { bell: Arc::default(), feeds: ByFeed::new() }
    }

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
        self.feeds.clear();
        self.look_for(subscribed, open)
    }

    /// Picks up feeds that were opened, closed or reopened.
    pub(in crate::hub) fn look_for(
        &mut self,
        subscribed: &BTreeSet<FeedName>,
        open: &Feeds,
    ) -> Vec<FeedStanding> {
        self.feeds.retain(|name, watch| {
            open.find(name).is_some_and(|feed| subscribed.contains(name) && Arc::ptr_eq(&feed, &watch.feed))
        });
        for feed in subscribed.iter().filter_map(|name| open.find(name)) {
            let bell = &self.bell;
            self.feeds.entry(feed.name()).or_insert_with(|| Watch {
                listener: feed.wake_ups.register({
                    let bell = Arc::clone(bell);
                    move || bell.notify_one()
                }),
                feed,
            });
        }
        self.feeds.values().map(Watch::standing).collect()
    }

    /// The feeds that have grown since the last call.
    pub(in crate::hub) fn grown(&self) -> Vec<FeedStanding> {
        self.feeds.values().filter(|watch| watch.listener.take()).map(Watch::standing).collect()
    }

    /// Mutes or unmutes the appends of a feed that a leg carries. The machine's next input must follow
    /// [`grown`](Self::grown), which returns the muted appends.
    pub(in crate::hub) fn leave_to_leg(&self, feed: &FeedName, left: bool) {
        if let Some(watch) = self.feeds.get(feed) {
            watch.listener.mute(left);
        }
    }
}

impl Watch {
    fn standing(&self) -> FeedStanding {
        FeedStanding {
            feed: self.feed.name(),
            epoch: self.feed.epoch(),
            head: head(&self.feed),
            unicast_leg: self.feed.unicast_leg(),
            rule: self.feed.duplicate_rule(),
        }
    }
}
