//! Detection of impossible claims: a site can't have numbers that no log assigned.
use std::collections::BTreeMap;

use downburst_model::{Epoch, FeedName, Micros, Now, Sequence};
use downburst_session::{HubInput, Receipt};

use crate::text::shown;

use super::{HubFacts, Report, Session};

/// Accepted claims of a site beyond the numbers that the logs assigned.
#[derive(Default)]
pub(super) struct Claims {
    /// Accepted claims in the site's hello of numbers above all that a log assigned: the log was restored from a
    /// backup.
    claimed: BTreeMap<FeedName, Sequence>,
    /// The time of the last report to the operator about receipts that do not count.
    told_passed_over: Option<Micros>,
}

impl Session {
    /// Takes the verdict on the site's positions.
    pub(super) fn believed(&mut self, now: Now, believed: Result<BTreeMap<FeedName, Sequence>, String>) {
        match believed {
            Ok(claimed) => self.claims.claimed = claimed,
            Err(sentence) => self.tell(now, HubInput::Violation(sentence)),
        }
    }

    /// True if the number can belong to the feed's log; a number above all assigned ones ends the session. Numbers
    /// of another log, a former or a foreign one, are ignored.
    pub(super) fn believes(
        &mut self,
        now: Now,
        (feed, epoch, number): (&FeedName, Epoch, Sequence),
        hub: &dyn HubFacts,
    ) -> bool {
        let Some(highest) = self.given(feed, epoch, hub) else { return false };
        let highest = highest.max(self.claims.claimed.get(feed).copied().unwrap_or_default());
        if number > highest {
            let (claim, given) = (number.0, highest.0);
            self.tell(
                now,
                HubInput::Violation(format!(
                    "it claims number {claim} of feed {feed}, but the log gave none above {given}"
                )),
            );
        }
        number <= highest
    }

    /// Checks every receipt likewise; consecutive ones of the same feed and log are checked together.
    pub(super) fn believes_receipts(&mut self, now: Now, items: &[Receipt], hub: &dyn HubFacts) -> bool {
        let alike =
            |one: &Receipt, next: &Receipt| one.key.epoch == next.key.epoch && one.key.feed == next.key.feed;
        items.chunk_by(alike).all(|run| {
            let highest = run.iter().map(|receipt| receipt.key.sequence).max();
            let (Some(first), Some(highest)) = (run.first(), highest) else { return true };
            let (feed, epoch) = (&first.key.feed, first.key.epoch);
            self.given(feed, epoch, hub).is_none() || self.believes(now, (feed, epoch, highest), hub)
        })
    }

    /// The last number of a log that the site may read. The numbers and the existence of any other log are not
    /// disclosed.
    pub(super) fn given(&self, feed: &FeedName, epoch: Epoch, hub: &dyn HubFacts) -> Option<Sequence> {
        hub.highest(feed, epoch).filter(|_| self.takes(feed, hub))
    }

    /// True if the feed exists and the site may receive it: a site can name any feed.
    pub(super) fn takes(&self, feed: &FeedName, hub: &dyn HubFacts) -> bool {
        let site = self.identity.site.as_ref();
        site.is_some_and(|site| hub.may_take(site, feed)) && hub.is_open(feed)
    }

    /// Reports receipts whose latency does not count, at most once per interval.
    pub(super) fn passed_over(&mut self, now: Micros, receipts: usize) {
        let rests = self.claims.told_passed_over.is_some_and(|told| now.since(told) < PASSED_OVER_PAUSE);
        if receipts == 0 || rests {
            return;
        }
        self.claims.told_passed_over = Some(now);
        let sentence = format!(
            "{receipts} of its receipts have no place in the history of latencies: they name moments at which \
             this hub stored no live product, or too many of them; check the site, unless the clock of the hub \
             was set"
        );
        self.report(Report::Violation { sentence, ends: false });
    }

    /// Records the violation that ends the session.
    pub(super) fn violated(&mut self, sentence: &str) {
        let sentence = shown(sentence);
        self.reason = Some(format!("the site broke the protocol: {sentence}"));
        if self.identity.site.is_some() {
            self.report(Report::Violation { sentence, ends: true });
        }
    }
}

const PASSED_OVER_PAUSE: Micros = Micros::from_secs(60);
