use std::collections::{BTreeMap, BTreeSet};

use downburst_model::{FeedName, Now, WallMicros};

use super::HubSession;
use crate::{FeedHandling, Handling as HandlingMessage, Stretch};

/// The handling of a site's feeds.
#[derive(Debug, Default)]
pub(crate) struct Handling {
    by_feed: BTreeMap<FeedName, FeedHandling>,
}

impl Handling {
    /// True if products of the feed have a maximum age, so that each is checked by itself before it is sent.
    pub(crate) fn ages(&self, feed: &FeedName) -> bool {
        self.max_age_us(feed).is_some()
    }

    fn max_age_us(&self, feed: &FeedName) -> Option<i64> {
        self.by_feed.get(feed)?.max_age_us
    }
}

impl HubSession {
    /// Takes the whole set and sends it to the site.
    pub(super) fn set_handling(&mut self, items: Vec<FeedHandling>) {
        self.serving.handling.by_feed = items.into_iter().map(|item| (item.feed.clone(), item)).collect();
        self.tell_handling();
    }

    pub(super) fn tell_handling(&mut self) {
        if self.is_active() {
            let items = self.handled();
            if items != self.last_sent.handling {
                self.last_sent.handling.clone_from(&items);
                self.send(HandlingMessage { items });
            }
        }
    }

    /// The stretch without the bytes of products that are too old, if the feed has a maximum age or a deadline.
    pub(super) fn without_aged(&self, now: Now, stretch: &Stretch) -> Option<Stretch> {
        let max_age_us = self.serving.handling.max_age_us(&stretch.feed);
        let oldest = max_age_us.map(|most| WallMicros(now.wall.0.saturating_sub(most)));
        let late_before = self.serving.deadlines.late_before(&stretch.feed, now);
        Some(stretch.without_older_than(oldest.max(late_before)?, late_before))
    }

    /// The handling of each feed that has any, with its deadline.
    fn handled(&self) -> Vec<FeedHandling> {
        let serving = &self.serving;
        let ordinary = |feed: &FeedName| FeedHandling {
            feed: feed.clone(),
            hold_us: None,
            max_age_us: None,
            deadline_us: None,
        };
        let bound = serving.deadlines.feeds().filter(|feed| serving.patterns.has(feed));
        let names: BTreeSet<&FeedName> = serving.handling.by_feed.keys().chain(bound).collect();
        let items = names.into_iter().map(|feed| FeedHandling {
            deadline_us: serving.deadlines.of(feed),
            ..serving.handling.by_feed.get(feed).cloned().unwrap_or_else(|| ordinary(feed))
        });
        items.collect()
    }
}
