use downburst_model::{Lane, Now, ProductInfo, WallMicros};

use super::{Outputs, Track};
use crate::site::assembly::{Assembly, Source};
use crate::{Outcome, Receipt, ResentEnded, StoreResult};

/// Products of resends, which come whether they are settled or not.
impl Track {
    /// A product of a resend is announced, whether it is settled or not. Returns it if its bytes are awaited.
    ///
    /// A product that is being stored at this moment is requested again later, since the outcome is not known yet.
    pub(crate) fn announce_again(
        &mut self,
        now: Now,
        info: ProductInfo,
        resend: u64,
        (lane, source): (Lane, Source),
        out: &mut Outputs,
    ) -> Option<&mut Assembly> {
        let number = info.key.sequence.0;
        if self.waiting.numbers().contains(number) {
            self.resends.fail(resend, number);
            return None;
        }
        let assembly = self.pending.entry(number).or_insert_with(|| Assembly::new(now, info, lane, source));
        assembly.resend = Some(resend);
        if assembly.is_complete() {
            self.complete(number, out);
            return None;
        }
        self.pending.get_mut(&number)
    }

    /// Takes the result of the driver's attempt to store a product of a resend. Returns the receipt, if the
    /// result is final.
    pub(super) fn conclude_resent(
        &mut self,
        now: Now,
        resend: u64,
        assembly: Assembly,
        result: StoreResult,
        at: WallMicros,
        out: &mut Outputs,
    ) -> Option<Receipt> {
        let (key, size) = (assembly.info.key.clone(), assembly.info.size);
        let outcome = match result {
            StoreResult::Stored => Outcome::Stored,
            StoreResult::Held => Outcome::Held,
            StoreResult::DigestMismatch => Outcome::Rejected,
            StoreResult::Failed(_) => {
                self.resends.fail(resend, key.sequence.0);
                return self.conclude_unsettled(now, assembly, result, at, out);
            }
        };
        self.resends.end(ResentEnded { resend, key, outcome, size });
        match outcome {
            Outcome::Stored | Outcome::Held => Some(self.store(now, &assembly, outcome, at)),
            _ => self.conclude_unsettled(now, assembly, result, at, out),
        }
    }

    /// Handles a product that the site lacks like any other; one that it has stays unchanged.
    fn conclude_unsettled(
        &mut self,
        now: Now,
        mut assembly: Assembly,
        result: StoreResult,
        at: WallMicros,
        out: &mut Outputs,
    ) -> Option<Receipt> {
        let key = &assembly.info.key;
        if key.epoch == self.epoch && self.settled.contains(key.sequence.0) {
            return None;
        }
        assembly.resend = None;
        self.conclude(now, assembly, result, at, out)
    }
}
