//! What a person asks a session: where is this product, and what lies before it?
use downburst_model::{FeedName, ProductKey};

use super::HubSession;
use super::feeds::Feed;
use crate::Standing;

impl HubSession {
    /// Where a product stands.
    pub fn standing(&self, key: &ProductKey) -> Standing {
        match self.feeds.get(&key.feed) {
            Some(Feed::Serving(serve)) if serve.epoch == key.epoch => serve.standing(key.sequence.0),
            _ => Standing::NotServed,
        }
    }

    /// Bytes of each feed that wait in the outbox; true stands for the live lane.
    pub fn waiting_bytes(&self) -> impl Iterator<Item = (&FeedName, bool, usize)> {
        self.outbox.taken_bytes()
    }
}
