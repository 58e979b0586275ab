use std::collections::{BTreeMap, VecDeque};

use downburst_model::{Micros, Now, ProductKey, WallMicros};

use crate::{Outcome, Receipt};

/// Receipts on their way to the hub, in batches. Without a connection they wait for the next one.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    receipts: VecDeque<Receipt>,
    /// Actions that were done before the receipt existed: a file can be earlier than the report that its
    /// product is stored.
    early: Recent<WallMicros>,
    /// Receipts of stored products that were sent before the file was complete.
    unfiled: Recent<Receipt>,
    /// The same receipts, after completion of their files.
    filed: VecDeque<Receipt>,
    /// The site writes files; otherwise nothing is stored for them.
    has_files: bool,
    /// A new clock comparison waits for its report to the hub, which is sent even if there are no receipts.
    clock_news: bool,
    flush_at: Option<Micros>,
    filed_at: Option<Micros>,
}

impl Batch {
    pub(crate) fn push(&mut self, now: Now, mut receipt: Receipt) {
        if let Some(at) = self.early.remove(&receipt.key) {
            receipt.action_done = Some(at);
        }
        self.receipts.push_back(receipt);
        if self.receipts.len() > KEPT_RECEIPTS {
            self.receipts.pop_front();
        }
        self.flush_at.get_or_insert(now.monotonic.plus(FLUSH_AFTER));
    }

    /// Records the time at which local software had a product: in its receipt, or for a later report if that
    /// was sent. The receipt of an unsettled product is still to come.
    pub(crate) fn action_done(&mut self, now: Now, key: ProductKey, at: WallMicros, is_settled: bool) {
        self.has_files = true;
        if let Some(receipt) = self.receipts.iter_mut().rev().find(|receipt| receipt.key == key) {
            receipt.action_done = Some(at);
            return;
        }
        let left = self.unfiled.remove(&key).map(|receipt| Receipt { action_done: Some(at), ..receipt });
        match left.or_else(|| is_settled.then(|| Receipt::of_file(key.clone(), at))) {
            Some(receipt) => {
                self.filed.push_back(receipt);
                if self.filed.len() > KEPT_RECEIPTS {
                    self.filed.pop_front();
                }
                self.filed_at.get_or_insert(now.monotonic.plus(FLUSH_AFTER));
            }
            None => self.early.insert(key, at),
        }
    }

    /// Makes all receipts due now.
    pub(crate) fn hurry(&mut self, now: Now) {
        if !self.receipts.is_empty() {
            self.flush_at = Some(now.monotonic);
        }
    }

    /// Takes over the receipts of another connection, to be sent with the first batch here.
    pub(crate) fn take_over(&mut self, receipts: Vec<Receipt>) {
        self.receipts = receipts.into();
        self.flush_at = (!self.receipts.is_empty()).then_some(Micros(0));
    }

    pub(crate) fn take_unsaid(&mut self) -> Vec<Receipt> {
        self.flush_at = None;
        std::mem::take(&mut self.receipts).into()
    }

    /// Schedules a report of the clock's offset within the time of a batch.
    pub(crate) fn clock_compared(&mut self, now: Now) {
        self.clock_news = true;
        self.flush_at.get_or_insert(now.monotonic.plus(FLUSH_AFTER));
    }

    /// The due batch: immediately with `most` receipts, the limit of one message, otherwise after a short delay.
    pub(crate) fn due(&mut self, now: Now, most: usize) -> Option<Vec<Receipt>> {
        let full = self.receipts.len() >= most;
        if !full && self.flush_at.is_none_or(|at| at > now.monotonic) {
            return None;
        }
        let count = self.receipts.len().min(most);
        let batch: Vec<Receipt> = self.receipts.drain(..count).collect();
        let awaits_file = |it: &&Receipt| it.outcome == Outcome::Stored && it.action_done.is_none();
        for receipt in batch.iter().filter(awaits_file).filter(|_| self.has_files) {
            self.unfiled.insert(receipt.key.clone(), receipt.clone());
        }
        self.flush_at = (!self.receipts.is_empty()).then_some(now.monotonic);
        let clock_news = std::mem::take(&mut self.clock_news);
        (clock_news || !batch.is_empty()).then_some(batch)
    }

    /// The receipts of files completed after their receipts were sent, if they are due.
    pub(crate) fn filed_due(&mut self, now: Now) -> Option<Vec<Receipt>> {
        self.filed_at.filter(|at| *at <= now.monotonic)?;
        let count = self.filed.len().min(FILED_RECEIPTS);
        let batch: Vec<Receipt> = self.filed.drain(..count).collect();
        if self.filed.is_empty() {
            self.filed_at = None;
        }
        (!batch.is_empty()).then_some(batch)
    }

    pub(crate) fn deadline(&self) -> Option<Micros> {
        self.flush_at.into_iter().chain(self.filed_at).min()
    }
}

/// A value for each of the newest [`KEPT_RECEIPTS`] products.
#[derive(Debug)]
struct Recent<T> {
    of: BTreeMap<ProductKey, T>,
    /// The keys in order of insertion, including some that were removed since.
    order: VecDeque<ProductKey>,
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self { of: BTreeMap::new(), order: VecDeque::new() }
    }
}

impl<T> Recent<T> {
    fn insert(&mut self, key: ProductKey, value: T) {
        self.of.insert(key.clone(), value);
        self.order.push_back(key);
        while self.of.len() > KEPT_RECEIPTS {
            let Some(oldest) = self.order.pop_front() else { return };
            self.of.remove(&oldest);
        }
        if self.order.len() > 2 * KEPT_RECEIPTS {
            self.order.retain(|key| self.of.contains_key(key));
        }
    }

    fn remove(&mut self, key: &ProductKey) -> Option<T> {
        let removed = self.of.remove(key);
        if self.of.is_empty() {
            self.order.clear();
        }
        removed
    }
}

const FLUSH_AFTER: Micros = Micros::from_millis(50);

/// The maximum number of receipts in a batch of [`Filed`](crate::Filed).
const FILED_RECEIPTS: usize = 256;

/// The maximum number of receipts that outlive a lost connection; the oldest are dropped first, and the
/// frontier still covers their products.
const KEPT_RECEIPTS: usize = 16_384;

#[cfg(test)]
mod tests {
    use downburst_model::{Epoch, FeedName, Sequence};

    use super::*;
    use crate::Outcome;

    fn at(millis: u64) -> Now {
        Now { monotonic: Micros::from_millis(millis), wall: WallMicros(0) }
    }

    fn receipt(sequence: u64) -> Receipt {
        let feed = FeedName::parse("NGRID").unwrap();
        let key = ProductKey { feed, epoch: Epoch(1), sequence: Sequence(sequence) };
        Receipt::undescribed(key, Outcome::Stored, WallMicros(5))
    }

    #[test]
    fn an_action_finds_its_receipt_before_and_after() {
        let mut batch = Batch::default();
        batch.action_done(at(0), receipt(1).key, WallMicros(7), false);
        batch.push(at(0), receipt(1));
        batch.push(at(0), receipt(2));
        batch.push(at(0), receipt(3));
        batch.action_done(at(0), receipt(2).key, WallMicros(8), true);
        let sent = batch.due(at(60), FILED_RECEIPTS).unwrap();
        let actions: Vec<_> = sent.iter().map(|receipt| receipt.action_done).collect();
        assert_eq!(actions, [Some(WallMicros(7)), Some(WallMicros(8)), None]);
    }

    #[test]
    fn a_file_that_stands_after_its_receipt_left_follows_it_once() {
        let mut batch = Batch::default();
        batch.action_done(at(0), receipt(1).key, WallMicros(7), false);
        batch.push(at(0), receipt(1));
        batch.push(at(0), receipt(2));
        batch.due(at(60), FILED_RECEIPTS).unwrap();
        assert_eq!(batch.filed_due(at(60_000)), None, "nothing is said of a file before it stands");
        batch.action_done(at(60_000), receipt(2).key, WallMicros(8), true);
        assert_eq!(batch.deadline(), Some(Micros::from_millis(60_050)));
        let late = Receipt { action_done: Some(WallMicros(8)), ..receipt(2) };
        assert_eq!(batch.filed_due(at(60_050)), Some(vec![late]));
        assert_eq!((batch.filed_due(at(70_000)), batch.deadline()), (None, None));
    }

    #[test]
    fn a_file_whose_receipt_left_in_an_earlier_run_is_told_by_its_key() {
        let mut batch = Batch::default();
        batch.action_done(at(0), receipt(1).key, WallMicros(7), true);
        assert_eq!(batch.filed_due(at(60)), Some(vec![Receipt::of_file(receipt(1).key, WallMicros(7))]));
    }

    #[test]
    fn late_files_of_another_feed_push_no_early_one_out() {
        let mut batch = Batch::default();
        let first = FeedName::parse("A").unwrap();
        let early = ProductKey { feed: first, ..receipt(9).key };
        for sequence in 0..3_000 {
            batch.push(at(0), receipt(sequence));
            batch.due(at(60), FILED_RECEIPTS);
            batch.action_done(at(60), receipt(sequence).key, WallMicros(1), true);
        }
        batch.action_done(at(60), early.clone(), WallMicros(2), false);
        batch.push(at(60), Receipt { key: early, ..receipt(9) });
        let sent = batch.due(at(120), FILED_RECEIPTS).unwrap();
        assert_eq!(sent.last().and_then(|receipt| receipt.action_done), Some(WallMicros(2)));
    }

    #[test]
    fn a_compared_clock_is_told_without_any_receipt() {
        let mut batch = Batch::default();
        assert!(batch.due(at(0), FILED_RECEIPTS).is_none());
        batch.clock_compared(at(0));
        assert!(batch.due(at(10), FILED_RECEIPTS).is_none());
        assert_eq!(batch.due(at(60), FILED_RECEIPTS), Some(Vec::new()));
        assert!(batch.due(at(200), FILED_RECEIPTS).is_none());
    }

    #[test]
    fn what_waits_for_its_other_half_is_bounded() {
        let mut batch = Batch::default();
        let count = 3 * KEPT_RECEIPTS as u64;
        for sequence in 0..count {
            batch.action_done(at(0), receipt(sequence).key, WallMicros(1), false);
            batch.push(at(0), receipt(count + sequence));
            batch.due(at(60), 1);
            batch.action_done(at(60), receipt(2 * count + sequence).key, WallMicros(1), true);
        }
        assert_eq!((batch.early.of.len(), batch.unfiled.of.len()), (KEPT_RECEIPTS, KEPT_RECEIPTS));
        assert_eq!(batch.filed.len(), KEPT_RECEIPTS);
        assert!(
            batch.early.order.len() <= 2 * KEPT_RECEIPTS && batch.unfiled.order.len() <= 2 * KEPT_RECEIPTS
        );
    }
}
