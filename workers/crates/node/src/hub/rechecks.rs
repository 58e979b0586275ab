//! Checks of the hub's own log after a site rejected a product because its digest differs from the announced one.
use std::collections::VecDeque;
use std::sync::Arc;

use downburst_log::{Copied, Damage};
use downburst_model::ProductKey;

use super::{Hub, lock};

/// Rejected products whose copy in the log has not been checked yet.
#[derive(Default)]
pub(super) struct Rechecks {
    waiting: VecDeque<ProductKey>,
    is_checking: bool,
}

impl Rechecks {
    /// Adds rejected products; true if the caller has to start the checks.
    fn take<'a>(&mut self, rejected: impl IntoIterator<Item = &'a ProductKey>) -> bool {
        for key in rejected {
            if self.waiting.len() < MAX_WAITING && !self.waiting.contains(key) {
                self.waiting.push_back(key.clone());
            }
        }
        let begins = !self.is_checking && !self.waiting.is_empty();
        self.is_checking |= begins;
        begins
    }

    /// The next product to check; `None` ends the checks.
    fn next(&mut self) -> Option<ProductKey> {
        let next = self.waiting.pop_front();
        self.is_checking = next.is_some();
        next
    }
}

impl Hub {
    /// Has rejected products read and checked one by one, in a thread of their own.
    pub(super) fn recheck<'a>(self: &Arc<Self>, rejected: impl IntoIterator<Item = &'a ProductKey>) {
        let mut rejected = rejected.into_iter().peekable();
        if rejected.peek().is_some() && lock(&self.rechecks).take(rejected) {
            let hub = Arc::clone(self);
            tokio::task::spawn_blocking(move || hub.check_rejected());
        }
    }

    fn check_rejected(&self) {
        loop {
            let next = lock(&self.rechecks).next();
            let Some(key) = next else { return };
            if let Some(sentence) = self.examine(&key) {
                self.fault(sentence, Some(&key.feed));
            }
        }
    }

    fn examine(&self, key: &ProductKey) -> Option<String> {
        let feed = self.feeds.find(&key.feed).filter(|feed| feed.epoch() == key.epoch)?;
        match feed.log.examine(key.sequence) {
            Ok(Copied::Damaged(damage)) => {
                feed.forget_stretches();
                Some(sentence(key, &damage))
            }
            Ok(Copied::Intact | Copied::Gone) => None,
            Err(error) => {
                Some(format!("a site rejected product {} of feed {}: {error}", key.sequence.0, key.feed))
            }
        }
    }
}

fn sentence(key: &ProductKey, Damage { segment, offset, bytes }: &Damage) -> String {
    format!(
        "product {} of feed {} was damaged on the hub's disk: {bytes} bytes at {offset} of {} don't match its \
         digest; it is not delivered any more: have its source send it again, check the disk, and run `downburst \
         log verify` to find further damage",
        key.sequence.0,
        key.feed,
        segment.display()
    )
}

/// A site that rejects everything costs the hub this many products' bytes to read, and one thread.
const MAX_WAITING: usize = 256;

#[cfg(test)]
mod tests {
    use downburst_model::{Epoch, FeedName, Sequence};

    use super::*;

    fn key(sequence: u64) -> ProductKey {
        let feed = FeedName::parse("NGRID").unwrap();
        ProductKey { feed, epoch: Epoch(1), sequence: Sequence(sequence) }
    }

    #[test]
    fn rejected_products_are_looked_at_once_and_by_one() {
        let mut rechecks = Rechecks::default();
        assert!(!rechecks.take([]));
        assert!(rechecks.take([&key(3), &key(3)]));
        assert!(!rechecks.take([&key(4)]), "somebody looks already");
        let looked: Vec<u64> = std::iter::from_fn(|| rechecks.next()).map(|key| key.sequence.0).collect();
        assert_eq!(looked, [3, 4]);
        assert!(rechecks.take([&key(5)]), "the looking had ended");
    }

    #[test]
    fn a_site_that_rejects_everything_is_bounded() {
        let mut rechecks = Rechecks::default();
        let all: Vec<ProductKey> = (1..10_000).map(key).collect();
        rechecks.take(&all);
        assert_eq!(rechecks.waiting.len(), MAX_WAITING);
    }
}
