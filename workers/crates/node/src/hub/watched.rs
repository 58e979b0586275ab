//! The feeds a session looks at, and what its machine was told of them.
use std::collections::BTreeSet;
use std::sync::Arc;

use downburst_model::{FeedName, LegId, Sequence};
use downburst_session::HubInput;
use tokio::sync::Notify;

use super::ByFeed;
use super::feeds::{Feed, Feeds, head};
use super::wake_ups::LogListener;

/// The subscribed feeds that are open.
pub(super) struct Watched {
    /// Rings when one of them has grown.
    bell: Arc<Notify>,
    feeds: ByFeed<Watch>,
}

struct Watch {
    feed: Arc<Feed>,
    listener: LogListener,
    told: Option<(Sequence, LegId)>,
}

impl Watched {
    pub(super) fn new() -> Self {
        Self { bell: Arc::default(), feeds: ByFeed::new() }
    }

    /// Waits until a feed has grown that is not left to a leg.
    pub(super) async fn notified(&self) {
        self.bell.notified().await;
    }

    /// Looks at these feeds from now on, as far as they are open; the machine has to be told of all of them.
    pub(super) fn subscribe(&mut self, subscribed: &BTreeSet<FeedName>, open: &Feeds) -> Vec<HubInput> {
        self.feeds.clear();
        self.look_for(subscribed, open)
    }

    /// Finds feeds that were opened, closed or opened anew, and legs that changed.
    pub(super) fn look_for(&mut self, subscribed: &BTreeSet<FeedName>, open: &Feeds) -> Vec<HubInput> {
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
                told: None,
            });
        }
        self.feeds.values_mut().flat_map(Watch::news).collect()
    }

    /// What has grown since the last time.
    pub(super) fn grown(&mut self) -> Vec<HubInput> {
        self.feeds.values_mut().filter(|watch| watch.listener.take()).flat_map(Watch::news).collect()
    }

    /// Sleeps through the appends of a feed that a leg brings, or no longer. The machine's next input must follow
    /// [`grown`](Self::grown), which has what was slept through.
    pub(super) fn leave_to_leg(&self, feed: &FeedName, left: bool) {
        if let Some(watch) = self.feeds.get(feed) {
            watch.listener.mute(left);
        }
    }
}

impl Watch {
    fn news(&mut self) -> Vec<HubInput> {
        let (head, unicast_leg) = (head(&self.feed), self.feed.unicast_leg());
        let told = self.told.replace((head, unicast_leg));
        if told == Some((head, unicast_leg)) {
            return Vec::new();
        }
        let feed = self.feed.name();
        let rule = told.is_none().then(|| HubInput::Duplicates {
            feed: feed.clone(),
            rule: self.feed.line().duplicate_rule.into(),
        });
        let moved = HubInput::Feed { feed, epoch: self.feed.epoch(), head, unicast_leg };
        rule.into_iter().chain([moved]).collect()
    }
}
