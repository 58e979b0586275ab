//! Checks of the hub's own log after a site rejected a product because its digest differs from the announced one.
use std::sync::Arc;

use downburst_hub::feeds::{DamagePlace, damaged_product, rejected_unreadable};
use downburst_log::{Copied, Damage};
use downburst_model::ProductKey;

use crate::hub::{Hub, lock};

impl Hub {
    /// Reads and checks rejected products one by one, in a thread of their own.
    pub(in crate::hub) fn recheck<'a>(self: &Arc<Self>, rejected: impl IntoIterator<Item = &'a ProductKey>) {
        let mut rejected = rejected.into_iter().peekable();
        if rejected.peek().is_some() && lock(&self.feeds.rechecks).take(rejected) {
            let hub = Arc::clone(self);
            tokio::task::spawn_blocking(move || hub.check_rejected());
        }
    }

    fn check_rejected(&self) {
        loop {
            let next = lock(&self.feeds.rechecks).next();
            let Some(key) = next else { return };
            if let Some(sentence) = self.examine(&key) {
                self.fault(sentence, Some(&key.feed));
            }
        }
    }

    fn examine(&self, key: &ProductKey) -> Option<String> {
        let feed = self.feeds.find(&key.feed).filter(|feed| feed.epoch() == key.epoch)?;
        match feed.log.examine(key.sequence) {
            Ok(Copied::Damaged(Damage { segment, offset, bytes })) => {
                feed.forget_stretches();
                Some(damaged_product(key, DamagePlace { segment: &segment, offset, bytes }))
            }
            Ok(Copied::Intact | Copied::Gone) => None,
            Err(error) => Some(rejected_unreadable(key, &error)),
        }
    }
}
