use downburst_model::{Now, ProductKey, RangeSet, Sequence};

use super::{Outputs, Track, abandon};
use crate::site::assembly::Assembly;
use crate::site::deadline::receipt_of;
use crate::{Outcome, Receipt, SiteEvent, SiteOutput};

/// Products that the site will not get.
impl Track {
    /// The hub no longer has these, or dropped them as late. Returns their receipts, at most `LOST_NAMED` for each
    /// range.
    pub(crate) fn expire(
        &mut self,
        now: Now,
        (numbers, outcome): (&RangeSet, Outcome),
        out: &mut Outputs,
    ) -> Vec<Receipt> {
        let mut receipts = Vec::new();
        for (first, last) in numbers.iter() {
            let unsettled = self.settled.gaps(first, last).flat_map(|(a, b)| a..=b).take(LOST_NAMED);
            let lost: Vec<u64> =
                unsettled.filter(|number| !self.waiting.numbers().contains(*number)).collect();
            for number in lost {
                let assembly = self.pending.remove(&number);
                receipts.push(self.lose(now, number, assembly, outcome, "the hub no longer has it", out));
            }
            self.cover(now, first, last, out);
        }
        receipts
    }

    /// Drops the unfinished products whose deadline is over and that no transfer of the session is about to
    /// complete: their packets need no repair.
    pub(in crate::site) fn drop_late(&mut self, now: Now, out: &mut Outputs) {
        if !self.deadline.is_set() {
            return;
        }
        let is_late = |assembly: &Assembly| {
            assembly.transfers == 0
                && assembly.resend.is_none()
                && !assembly.info.id.is_heartbeat()
                && self.deadline.is_over(assembly.info.stored, now.wall)
        };
        let late = self.pending.iter().filter(|(_, assembly)| is_late(assembly));
        let late: Vec<u64> = late.map(|(number, _)| *number).collect();
        for number in late {
            self.miss(now, number, out);
        }
    }

    /// Drops an unfinished product whose deadline is over.
    fn miss(&mut self, now: Now, number: u64, out: &mut Outputs) {
        if let Some(mut assembly) = self.pending.remove(&number) {
            (assembly.progressed_at, assembly.last_byte) = (now.monotonic, now.wall);
            self.drop_late_product(&assembly, out);
        }
    }

    pub(super) fn drop_late_product(&mut self, assembly: &Assembly, out: &mut Outputs) {
        abandon(assembly, out);
        self.deadline.miss(receipt_of(assembly));
        let number = assembly.info.key.sequence.0;
        self.settled.insert(number, number);
        self.changed(Now { monotonic: assembly.progressed_at, wall: assembly.last_byte });
    }

    pub(super) fn lose(
        &mut self,
        now: Now,
        number: u64,
        assembly: Option<Assembly>,
        outcome: Outcome,
        reason: &str,
        out: &mut Outputs,
    ) -> Receipt {
        let key = ProductKey { feed: self.feed.clone(), epoch: self.epoch, sequence: Sequence(number) };
        let receipt = match assembly {
            Some(assembly) => {
                abandon(&assembly, out);
                assembly.receipt(outcome, now.wall)
            }
            None => Receipt::undescribed(key.clone(), outcome, now.wall),
        };
        if receipt.key == key {
            self.settled.insert(number, number);
        }
        self.changed(now);
        // Late products are counted: an event for each of thousands would fill the log file.
        if !outcome.is_late() {
            let (key, reason) = (receipt.key.clone(), reason.to_owned());
            out.push_back(SiteOutput::Event(SiteEvent::Lost { key, reason }));
        }
        receipt
    }
}

/// The maximum number of lost products of one range that are reported one by one.
const LOST_NAMED: usize = 16_384;
