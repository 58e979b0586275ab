use downburst_model::{Micros, Now};

use crate::Receipt;

/// Receipts on their way to the hub, in batches. Those that found no connection wait for the next one.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    receipts: std::collections::VecDeque<Receipt>,
    flush_at: Option<Micros>,
}

impl Batch {
    pub(crate) fn push(&mut self, now: Now, receipt: Receipt) {
        self.receipts.push_back(receipt);
        if self.receipts.len() > KEPT_RECEIPTS {
            self.receipts.pop_front();
        }
        self.flush_at.get_or_insert(now.monotonic.plus(FLUSH_AFTER));
    }

    /// The batch that is due, at most [`BATCH_RECEIPTS`] of them.
    pub(crate) fn due(&mut self, now: Now) -> Option<Vec<Receipt>> {
        let full = self.receipts.len() >= BATCH_RECEIPTS;
        if !full && self.flush_at.is_none_or(|at| at > now.monotonic) {
            return None;
        }
        let count = self.receipts.len().min(BATCH_RECEIPTS);
        let batch: Vec<Receipt> = self.receipts.drain(..count).collect();
        self.flush_at = (!self.receipts.is_empty()).then_some(now.monotonic);
        (!batch.is_empty()).then_some(batch)
    }

    pub(crate) fn deadline(&self) -> Option<Micros> {
        self.flush_at
    }
}

const FLUSH_AFTER: Micros = Micros::from_millis(50);
const BATCH_RECEIPTS: usize = 256;

/// How many receipts outlive a lost connection; the oldest go first, the frontier tells the rest.
const KEPT_RECEIPTS: usize = 16_384;
