//! When the first byte of each unicast product left, until its receipt comes.
use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;

use downburst_model::{Epoch, FeedName, ProductKey, SiteName, Transport, WallMicros};
use downburst_session::Receipt;

use super::batches::Noted;
use super::plans::Plans;
use super::{Hub, lock};

/// Remembered by ranges of numbers that left together; the oldest go first.
#[derive(Default)]
pub(super) struct FirstBytes {
    sent: BTreeMap<(FeedName, Epoch, u64), Sent>,
    order: VecDeque<(FeedName, Epoch, u64)>,
}

#[derive(Clone, Copy)]
struct Sent {
    last: u64,
    at: WallMicros,
}

impl FirstBytes {
    pub(super) fn insert(&mut self, feed: FeedName, epoch: Epoch, (first, last): (u64, u64), at: WallMicros) {
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

    /// The receipts of logs that exist and that the site may take, each with the time when its product's
    /// first byte left the hub. A site can name any log.
    pub(super) fn note<'a>(&self, hub: &Hub, site: &SiteName, receipts: &'a [Receipt]) -> Vec<Noted<'a>> {
        let mut noted = Vec::with_capacity(receipts.len());
        let of_one_log =
            |one: &Receipt, next: &Receipt| one.key.epoch == next.key.epoch && one.key.feed == next.key.feed;
        for of_log in receipts.chunk_by(of_one_log) {
            let is_of =
                |key: &ProductKey| hub.feeds.find(&key.feed).is_some_and(|it| it.epoch() == key.epoch);
            let counts = |key: &ProductKey| is_of(key) && hub.roster.may_take(site, &key.feed);
            let known = of_log.first().is_some_and(|it| counts(&it.key));
            let of_log = of_log.iter().filter(|_| known);
            noted.extend(of_log.map(|receipt| {
                let first_byte = self.of(receipt, &hub.plans).and_then(|at| hub.reference.moment(at));
                Noted { receipt, first_byte }
            }));
        }
        noted
    }

    fn of(&self, receipt: &Receipt, plans: &Mutex<Plans>) -> Option<WallMicros> {
        match receipt.transport {
            Transport::Multicast => lock(plans).first_byte(receipt.leg, receipt.key.sequence),
            _ => self.find(&receipt.key),
        }
    }

    /// When the product's first byte left, if that is still known.
    pub(super) fn find(&self, key: &ProductKey) -> Option<WallMicros> {
        let end = (key.feed.clone(), key.epoch, key.sequence.0);
        let ((feed, epoch, _), sent) = self.sent.range(..=end).next_back()?;
        let holds = *feed == key.feed && *epoch == key.epoch && key.sequence.0 <= sent.last;
        holds.then_some(sent.at)
    }
}

/// Some seconds of a fast site's products; a range is sixty bytes.
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
