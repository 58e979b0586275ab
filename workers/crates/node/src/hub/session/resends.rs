//! Stored products that go to the site once more.
use downburst_log::ProductLog as _;
use downburst_model::{FeedName, Lane, Sequence};
use downburst_session::{Entry, HubInput, ResendEnd, ResendLeft, ResendOrder};

use super::super::lock;
use super::Session;
use crate::hub::reading;
use crate::lines::{Event, ResendKind, ResendLine};

impl Session {
    /// Tells the machine the whole set, in the numbers of the logs as they are now.
    pub(super) fn tell_resends(&mut self) {
        let Some(member) = &self.member else { return };
        let line = self.hub.roster.site(&member.site).map(|line| self.part_of(line));
        let lines = line.map(|line| line.resends).unwrap_or_default();
        let mut left = lock(&self.hub.resends_left).of(&member.site, &lines);
        let orders = lines.iter().filter_map(|line| self.order(line, left.remove(&line.resend))).collect();
        self.tell(HubInput::Resends(orders));
    }

    pub(super) fn read_resend(
        &mut self,
        resend: u64,
        feed: &FeedName,
        (after, to): (Sequence, Sequence),
        limit_bytes: usize,
    ) {
        let batch = self.hub.feeds.find(feed).map(|open| open.log.read(after, to, limit_bytes, READ_ENTRIES));
        let (entries, read_to) = match batch {
            Some(Ok(batch)) => {
                self.bad_resend_reads = 0;
                (batch.entries, batch.read_to)
            }
            Some(Err(error)) => {
                if self.bad_resend_reads.is_multiple_of(BAD_READS_TOLD) {
                    reading::say_unreadable(&self.hub, feed, &error);
                }
                self.bad_resend_reads = self.bad_resend_reads.wrapping_add(1);
                (Vec::new(), after)
            }
            // Closed, which says nothing of what it had.
            None => (Vec::new(), after),
        };
        let entries =
            entries.into_iter().map(|entry| Entry { info: entry.info, bytes: entry.bytes }).collect();
        self.tell(HubInput::ResendEntries { resend, entries, after, read_to });
    }

    pub(super) fn resent(&self, end: ResendEnd) {
        let Some(member) = &self.member else { return };
        let ResendEnd { resend, products, bytes, expired } = end;
        self.hub.event(&Event::Resend { site: member.site.clone(), resend, products, bytes, expired });
    }

    /// What a line asks for, if its feed is open.
    fn order(&self, line: &ResendLine, left: Option<ResendLeft>) -> Option<ResendOrder> {
        let open = self.hub.feeds.find(&line.feed)?;
        Some(ResendOrder {
            resend: line.resend,
            feed: line.feed.clone(),
            epoch: open.epoch(),
            after: open.log.find_time(line.from_us),
            to: open.log.find_time(line.to_us),
            lane: match line.kind {
                ResendKind::Resend => Lane::Resend,
                ResendKind::Backfill => Lane::Backfill,
            },
            wanted: line.wanted.clone(),
            had: line.had.clone(),
            within: line.within.clone(),
            left,
        })
    }
}

/// The session reads again each five seconds; a disk that stays ill is said each minute.
const BAD_READS_TOLD: u32 = 12;

/// How many products one read brings at most.
const READ_ENTRIES: usize = 256;
