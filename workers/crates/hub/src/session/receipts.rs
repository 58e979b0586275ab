//! The site's receipts and position reports, as far as they count.
use downburst_model::{Epoch, FeedName, Lane, Now, Transport, WallMicros};
use downburst_session::{ClockOffset, Frontier, Outcome, Receipt, is_catch_up};

use super::api::{HubFacts, NotedReceipt};
use super::{Report, Session, StatusChange};
use crate::batches::Noted;

impl NotedReceipt {
    /// As the batches count it.
    pub fn as_noted(&self) -> Noted<'_> {
        Noted { receipt: &self.receipt, first_byte: self.first_byte, has_deadline: self.has_deadline }
    }
}

impl Session {
    pub(super) fn frontier(&mut self, now: Now, frontier: Frontier, hub: &dyn HubFacts) {
        let claim = (&frontier.feed, frontier.epoch, frontier.settled_to);
        if self.believes(now, claim, hub) {
            self.report_settled_of(&frontier.feed);
            self.report(Report::Frontier(frontier));
        }
    }

    pub(super) fn receipts(
        &mut self,
        now: Now,
        clock: Option<ClockOffset>,
        items: Vec<Receipt>,
        hub: &dyn HubFacts,
    ) {
        if self.identity.site.is_none() || !self.believes_receipts(now, &items, hub) {
            return;
        }
        let clock = clock.and_then(|clock| hub.reference().of_site(clock));
        if let Some(clock) = clock {
            self.streams.clock_is(clock);
            self.change(StatusChange::Clock(clock));
        }
        let items = self.noted(items, hub);
        let rejected = items.iter().filter(|it| it.receipt.outcome == Outcome::Rejected);
        let rejected: Vec<_> = rejected.map(|it| it.receipt.key.clone()).collect();
        if !rejected.is_empty() {
            self.report(Report::Recheck(rejected));
        }
        self.report(Report::Receipts { clock, items });
    }

    /// Records the stamps of files that were complete only after the receipts of their products had left the site.
    pub(super) fn filed(&mut self, now: Now, mut items: Vec<Receipt>, hub: &dyn HubFacts) {
        if !self.believes_receipts(now, &items, hub) {
            return;
        }
        items.retain(|it| self.given(&it.key.feed, it.key.epoch, hub).is_some());
        if self.identity.site.is_some() {
            self.report(Report::Filed(items));
        }
    }

    /// The receipts of existing logs that the site may read, each with the time at which its product's first byte
    /// left the hub. A site can name any log.
    fn noted(&self, receipts: Vec<Receipt>, hub: &dyn HubFacts) -> Vec<NotedReceipt> {
        let mut noted = Vec::with_capacity(receipts.len());
        let mut of_log: Option<(FeedName, Epoch, Option<bool>)> = None;
        for receipt in receipts {
            let key = &receipt.key;
            let counts = match &of_log {
                Some((feed, epoch, counts)) if *feed == key.feed && *epoch == key.epoch => *counts,
                _ => {
                    let exists = self.given(&key.feed, key.epoch, hub).is_some();
                    let counts = exists.then(|| self.hub.has_deadline(&key.feed));
                    of_log = Some((key.feed.clone(), key.epoch, counts));
                    counts
                }
            };
            if let Some(has_deadline) = counts {
                let first_byte = self.first_byte(&receipt, hub);
                let receipt = by_catch_up(receipt);
                noted.push(NotedReceipt { receipt, first_byte, has_deadline });
            }
        }
        noted
    }

    fn first_byte(&self, receipt: &Receipt, hub: &dyn HubFacts) -> Option<WallMicros> {
        let at = match receipt.transport {
            Transport::Multicast => hub.first_byte(receipt.leg, receipt.key.sequence),
            _ => self.first_bytes.find(&receipt.key),
        };
        hub.reference().moment(at?)
    }
}

/// A product that a stream repeated is backfill: sites take every leg for live.
fn by_catch_up(receipt: Receipt) -> Receipt {
    let is_late = is_catch_up(receipt.leg) && receipt.lane == Lane::Live;
    Receipt { lane: if is_late { Lane::Backfill } else { receipt.lane }, ..receipt }
}
