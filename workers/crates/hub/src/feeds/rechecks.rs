//! Checks of the hub's own log after a site rejected a product because its digest differs from the announced one.
use std::collections::VecDeque;

use downburst_model::ProductKey;

/// Rejected products whose copy in the log has not been checked yet.
#[derive(Default)]
pub struct Rechecks {
    waiting: VecDeque<ProductKey>,
    is_checking: bool,
}

impl Rechecks {
    /// Adds rejected products; true if the caller has to start the checks.
    pub fn take<'a>(&mut self, rejected: impl IntoIterator<Item = &'a ProductKey>) -> bool {
        for key in rejected {
            if self.waiting.len() < MAX_WAITING && !self.waiting.contains(key) {
                self.waiting.push_back(key.clone());
            }
        }
        let begins = !self.is_checking && !self.waiting.is_empty();
        self.is_checking |= begins;
        begins
    }

    /// The next product to check; `None` ends the check run.
    #[expect(clippy::should_implement_trait, reason = "it goes on after `None`")]
    pub fn next(&mut self) -> Option<ProductKey> {
        let next = self.waiting.pop_front();
        self.is_checking = next.is_some();
        next
    }
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
