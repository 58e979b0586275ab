//! The state of products in a session, for questions by operators: the state of a product and the queue before it.
use downburst_model::{Epoch, FeedName, ProductKey, RangeSet};

use super::HubSession;
use super::feeds::Feed;
use crate::Standing;

impl HubSession {
    /// The state of a product.
    pub fn standing(&self, key: &ProductKey) -> Standing {
        match self.serving.feeds.get(&key.feed) {
            Some(Feed::Serving(serve)) if serve.epoch == key.epoch => match serve.standing(key.sequence.0) {
                Standing::Said if self.offers.repeats(&key.feed, key.epoch, key.sequence.0) => {
                    Standing::LeftToLeg
                }
                standing => standing,
            },
            _ => Standing::NotServed,
        }
    }

    /// The numbers that the site has settled of each served feed, as far as the hub knows, including those
    /// before the feed's start.
    pub fn settled(&self) -> impl Iterator<Item = (&FeedName, Epoch, RangeSet)> {
        self.serving.feeds.iter().filter_map(|(name, feed)| match feed {
            Feed::Serving(serve) => Some((name, serve.epoch, serve.settled())),
            Feed::Searching { .. } => None,
        })
    }

    /// The same for one feed.
    pub fn settled_of(&self, feed: &FeedName) -> Option<(Epoch, RangeSet)> {
        match self.serving.feeds.get(feed)? {
            Feed::Serving(serve) => Some((serve.epoch, serve.settled())),
            Feed::Searching { .. } => None,
        }
    }

    /// The waiting bytes of each feed in the outbox; true stands for the live lane.
    pub fn waiting_bytes(&self) -> impl Iterator<Item = (&FeedName, bool, usize)> {
        self.line.outbox.taken_bytes()
    }
}
