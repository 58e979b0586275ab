use std::collections::{BTreeMap, VecDeque};

use downburst_model::{Micros, Now, ProductKey, WallMicros};

use crate::Receipt;

/// Receipts on their way to the hub, in batches. Those that found no connection wait for the next one.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    receipts: VecDeque<Receipt>,
    /// Actions that were over before the receipt was made: a file can be faster than the word of its product's storage.
    early: BTreeMap<ProductKey, WallMicros>,
    /// The hub is told of a comparison of the clocks even where no product moves.
    clock_news: bool,
    flush_at: Option<Micros>,
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

    /// Notes when local software had a product, if its receipt is still here.
    pub(crate) fn action_done(&mut self, key: &ProductKey, at: WallMicros) {
        match self.receipts.iter_mut().rev().find(|receipt| receipt.key == *key) {
            Some(receipt) => receipt.action_done = Some(at),
            None => {
                self.early.insert(key.clone(), at);
                if self.early.len() > KEPT_EARLY {
                    self.early.pop_first();
                }
            }
        }
    }

    /// Makes due what is here.
    pub(crate) fn hurry(&mut self, now: Now) {
        if !self.receipts.is_empty() {
            self.flush_at = Some(now.monotonic);
        }
    }

    /// Says receipts of another connection with the first that are said here.
    pub(crate) fn take_over(&mut self, receipts: Vec<Receipt>) {
        self.receipts = receipts.into();
        self.flush_at = (!self.receipts.is_empty()).then_some(Micros(0));
    }

    pub(crate) fn take_unsaid(&mut self) -> Vec<Receipt> {
        self.flush_at = None;
        std::mem::take(&mut self.receipts).into()
    }

    /// Has the clock's offset told within the time of a batch.
    pub(crate) fn clock_compared(&mut self, now: Now) {
        self.clock_news = true;
        self.flush_at.get_or_insert(now.monotonic.plus(FLUSH_AFTER));
    }

    /// The batch that is due: at once when there are `most`, which one message carries, otherwise after a moment.
    pub(crate) fn due(&mut self, now: Now, most: usize) -> Option<Vec<Receipt>> {
        let full = self.receipts.len() >= most;
        if !full && self.flush_at.is_none_or(|at| at > now.monotonic) {
            return None;
        }
        let count = self.receipts.len().min(most);
        let batch: Vec<Receipt> = self.receipts.drain(..count).collect();
        self.flush_at = (!self.receipts.is_empty()).then_some(now.monotonic);
        let clock_news = std::mem::take(&mut self.clock_news);
        (clock_news || !batch.is_empty()).then_some(batch)
    }

    pub(crate) fn deadline(&self) -> Option<Micros> {
        self.flush_at
    }
}

const FLUSH_AFTER: Micros = Micros::from_millis(50);
/// Receipts that left without their action are the older ones here.
const KEPT_EARLY: usize = 1_024;

/// How many receipts make a batch of version 1.
pub(crate) const PLAIN_RECEIPTS: usize = 256;

/// How many receipts outlive a lost connection; the oldest go first, the frontier tells the rest.
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
        batch.action_done(&receipt(1).key, WallMicros(7));
        batch.push(at(0), receipt(1));
        batch.push(at(0), receipt(2));
        batch.push(at(0), receipt(3));
        batch.action_done(&receipt(2).key, WallMicros(8));
        let sent = batch.due(at(60), PLAIN_RECEIPTS).unwrap();
        let actions: Vec<_> = sent.iter().map(|receipt| receipt.action_done).collect();
        assert_eq!(actions, [Some(WallMicros(7)), Some(WallMicros(8)), None]);
    }

    #[test]
    fn a_compared_clock_is_told_without_any_receipt() {
        let mut batch = Batch::default();
        assert!(batch.due(at(0), PLAIN_RECEIPTS).is_none());
        batch.clock_compared(at(0));
        assert!(batch.due(at(10), PLAIN_RECEIPTS).is_none());
        assert_eq!(batch.due(at(60), PLAIN_RECEIPTS), Some(Vec::new()));
        assert!(batch.due(at(200), PLAIN_RECEIPTS).is_none());
    }

    #[test]
    fn early_actions_are_bounded() {
        let mut batch = Batch::default();
        for sequence in 0..3_000 {
            batch.action_done(&receipt(sequence).key, WallMicros(1));
        }
        assert_eq!(batch.early.len(), KEPT_EARLY);
    }
}
