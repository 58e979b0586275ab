//! The time at which the first byte of each unicast product left, kept until its receipt arrives.
use std::collections::{BTreeMap, VecDeque};

use downburst_model::{Epoch, FeedName, ProductKey, WallMicros};

/// Times by ranges of numbers that left together; the oldest are dropped first.
#[derive(Default)]
pub struct FirstBytes {
    sent: BTreeMap<(FeedName, Epoch, u64), Sent>,
    order: VecDeque<(FeedName, Epoch, u64)>,
}

#[derive(Clone, Copy)]
struct Sent {
    last: u64,
    at: WallMicros,
}

impl FirstBytes {
    /// Records that products `first..=last` began to leave at this time.
    pub fn insert(&mut self, feed: FeedName, epoch: Epoch, (first, last): (u64, u64), at: WallMicros) {
        let key = (feed, epoch, first);
        if self.sent.insert(key.clone(), Sent { last, at }).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.sent.remove(&oldest);
        }
    }

    /// The time at which the product's first byte left, if still known.
    pub fn find(&self, key: &ProductKey) -> Option<WallMicros> {
        let end = (key.feed.clone(), key.epoch, key.sequence.0);
        let ((feed, epoch, _), sent) = self.sent.range(..=end).next_back()?;
        let holds = *feed == key.feed && *epoch == key.epoch && key.sequence.0 <= sent.last;
        holds.then_some(sent.at)
    }
}

/// Some seconds of a fast site's products; a range takes sixty bytes.
const KEPT: usize = 4_096;

#[cfg(test)]
mod tests {
    use downburst_model::Sequence;

    use super::*;

    fn key(sequence: u64) -> ProductKey {
        ProductKey { feed: FeedName::parse("NGRID").unwrap(), epoch: Epoch(1), sequence: Sequence(sequence) }
    }

    #[test]
    fn a_product_is_found_by_the_range_it_left_in() {
        let mut sent = FirstBytes::default();
        sent.insert(key(0).feed, Epoch(1), (5, 9), WallMicros(1));
        sent.insert(key(0).feed, Epoch(1), (10, 10), WallMicros(2));
        sent.insert(key(0).feed, Epoch(2), (1, 4), WallMicros(3));
        let found = [4, 5, 9, 10, 11].map(|sequence| sent.find(&key(sequence)).map(|at| at.0));
        assert_eq!(found, [None, Some(1), Some(1), Some(2), None]);
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let mut sent = FirstBytes::default();
        for first in 0..2 * KEPT as u64 {
            sent.insert(key(0).feed, Epoch(1), (first, first), WallMicros(first as i64));
        }
        assert_eq!((sent.sent.len(), sent.order.len()), (KEPT, KEPT));
        assert_eq!(sent.find(&key(1)), None);
        assert!(sent.find(&key(2 * KEPT as u64 - 1)).is_some());
    }
}
