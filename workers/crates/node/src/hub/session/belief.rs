//! What can't be, by what this hub knows: a site can't have numbers that no log gave.
use downburst_model::{Epoch, FeedName, Micros, Sequence};
use downburst_session::{Hello, HubInput, Receipt};

use super::{Member, Session};
use crate::hub::sequence_checks;
use crate::lines::Event;
use downburst_hub::shown;

impl Session {
    /// Takes in what the site says that it has.
    pub(super) fn believe_hello(&mut self, hello: &Hello) {
        match sequence_checks::check(&self.hub, hello) {
            Ok(believed) => self.claimed = believed,
            Err(sentence) => self.tell(HubInput::Violation(sentence)),
        }
    }

    /// True if the number may be of the feed's log; a number above all given ones ends the session. Numbers
    /// of another log, a former one or a foreign one, count for nothing.
    pub(super) fn believes(&mut self, feed: &FeedName, epoch: Epoch, number: Sequence) -> bool {
        let Some(highest) = self.given(feed, epoch) else { return false };
        let highest = highest.max(self.claimed.get(feed).copied().unwrap_or_default());
        if number > highest {
            let (claim, given) = (number.0, highest.0);
            self.tell(HubInput::Violation(format!(
                "it claims number {claim} of feed {feed}, but the log gave none above {given}"
            )));
        }
        number <= highest
    }

    /// The same of every receipt: those of one feed and one log are looked at together.
    pub(super) fn believes_receipts(&mut self, items: &[Receipt]) -> bool {
        let alike =
            |one: &Receipt, next: &Receipt| one.key.epoch == next.key.epoch && one.key.feed == next.key.feed;
        items.chunk_by(alike).all(|run| {
            let highest = run.iter().map(|receipt| receipt.key.sequence).max();
            let (Some(first), Some(highest)) = (run.first(), highest) else { return true };
            let (feed, epoch) = (&first.key.feed, first.key.epoch);
            self.given(feed, epoch).is_none() || self.believes(feed, epoch, highest)
        })
    }

    /// The last number of a log that the site may take. The number of any other log, and its existence, are
    /// not disclosed.
    pub(super) fn given(&self, feed: &FeedName, epoch: Epoch) -> Option<Sequence> {
        sequence_checks::highest(&self.hub, feed, epoch).filter(|_| self.member_of(feed).is_some())
    }

    /// The site, if there is such a feed and it may take it: a site can name what it likes.
    pub(super) fn member_of(&self, feed: &FeedName) -> Option<&Member> {
        let takes = |it: &&Member| self.hub.roster.may_take(&it.site, feed);
        self.member.as_ref().filter(takes).filter(|_| self.hub.feeds.find(feed).is_some())
    }

    /// Tells of receipts whose latency does not count, once in a while; returns when it was last told.
    pub(super) fn tell_passed_over(&self, receipts: usize) -> Option<Micros> {
        let now = self.hub.clock.monotonic();
        let rests = self.told_passed_over.is_some_and(|told| now.since(told) < PASSED_OVER_PAUSE);
        if let Some(member) = self.member.as_ref().filter(|_| !rests) {
            let sentence = format!(
                "{receipts} of its receipts have no place in the history of latencies: they name moments at which \
                 this hub stored no live product, or too many of them; check the site, unless the clock of the hub \
                 was set"
            );
            tracing::warn!(site = %member.site, "{sentence}");
            self.hub.event(&Event::Violation { site: member.site.clone(), sentence });
            return Some(now);
        }
        self.told_passed_over
    }

    /// The session ends because of what the site said.
    pub(super) fn violated(&mut self, sentence: &str) {
        let sentence = shown(sentence);
        self.reason = Some(format!("the site broke the protocol: {sentence}"));
        if let Some(member) = &self.member {
            self.hub.event(&Event::Violation { site: member.site.clone(), sentence });
        }
    }
}

const PASSED_OVER_PAUSE: Micros = Micros::from_secs(60);
