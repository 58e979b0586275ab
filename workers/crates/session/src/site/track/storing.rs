use downburst_model::{Epoch, Micros, Now, ProductKey, WallMicros};

use super::{Outputs, STORE_PAUSE, Track, one};
use crate::site::assembly::Assembly;
use crate::{Outcome, Receipt, StoreResult};

/// The outcomes of products that the driver was to store.
impl Track {
    /// Takes the result of the driver's attempt to store a product. Returns the receipt, if the result is final.
    pub(crate) fn settle(
        &mut self,
        now: Now,
        key: &ProductKey,
        result: StoreResult,
        at: WallMicros,
        out: &mut Outputs,
    ) -> Option<Receipt> {
        let assembly = self.waiting.remove((key.epoch, key.sequence.0), self.epoch)?;
        // The hub counts no heartbeats: it only gets their time of arrival at the consumers' end.
        let is_counted = !assembly.info.id.is_heartbeat();
        let receipt = match assembly.resend {
            Some(resend) => self.conclude_resent(now, resend, assembly, result, at, out),
            None => self.conclude(now, assembly, result, at, out),
        };
        receipt.filter(|_| is_counted)
    }

    /// Settles a stored product, awaits it again, or gives it up. Returns the receipt, if the result is final.
    pub(crate) fn conclude(
        &mut self,
        now: Now,
        mut assembly: Assembly,
        result: StoreResult,
        at: WallMicros,
        out: &mut Outputs,
    ) -> Option<Receipt> {
        match result {
            StoreResult::Stored => Some(self.store(now, &assembly, Outcome::Stored, at)),
            StoreResult::Held => Some(self.store(now, &assembly, Outcome::Held, at)),
            StoreResult::Failed(reason) => {
                self.troubled(now, &reason);
                self.retry(now, assembly, STORE_PAUSE);
                None
            }
            StoreResult::DigestMismatch => {
                assembly.failures = assembly.failures.saturating_add(1);
                assembly.begun = false;
                if assembly.failures < DIGEST_FAILURES {
                    self.retry(now, assembly, Micros(0));
                    return None;
                }
                let reason = "its bytes did not match its digest three times";
                let number = assembly.info.key.sequence.0;
                Some(self.lose(now, number, Some(assembly), Outcome::Rejected, reason, out))
            }
        }
    }

    pub(crate) fn store(
        &mut self,
        now: Now,
        assembly: &Assembly,
        outcome: Outcome,
        at: WallMicros,
    ) -> Receipt {
        let key = &assembly.info.key;
        self.stored(now, key.epoch, [(key.sequence.0, assembly.info.stored)]);
        assembly.receipt(outcome, at)
    }

    /// The site's log holds these numbers; each comes with the hub's stamp.
    pub(crate) fn stored(
        &mut self,
        now: Now,
        epoch: Epoch,
        products: impl IntoIterator<Item = (u64, WallMicros)>,
    ) {
        self.trouble = None;
        let mut run: Option<(u64, u64)> = None;
        for (number, stamp) in products {
            self.newest_stored = self.newest_stored.max(stamp);
            if epoch == self.epoch {
                self.complete.note(number, stamp);
                let begun = run.filter(|(_, last)| last.checked_add(1) == Some(number));
                if let (None, Some((first, last))) = (begun, run) {
                    self.settled.insert(first, last);
                }
                run = Some((begun.map_or(number, |(first, _)| first), number));
            }
        }
        if let Some((first, last)) = run {
            self.settled.insert(first, last);
        }
        self.changed(now);
    }

    /// Reports to the hub the reason why nothing is stored.
    fn troubled(&mut self, now: Now, reason: &str) {
        if self.trouble.is_none() {
            self.changed(now);
        }
        self.trouble = Some(reason.chars().take(TROUBLE_CHARS).collect());
    }

    /// Awaits a product again from the start. After the end of a session the next session delivers it by itself.
    fn retry(&mut self, now: Now, mut assembly: Assembly, pause: Micros) {
        let key = assembly.info.key.clone();
        if !self.started || key.epoch != self.epoch || self.settled.contains(key.sequence.0) {
            return;
        }
        assembly.restart(now);
        assembly.legs.clear();
        assembly.transfers = 0;
        self.pending.insert(key.sequence.0, assembly);
        self.requests.add(one(key.sequence.0), now.monotonic.plus(pause));
    }
}

/// The number of digest failures after which a product is rejected.
const DIGEST_FAILURES: u8 = 3;

/// The maximum length of a reason sent to the hub, in characters.
const TROUBLE_CHARS: usize = 300;
