//! Stored products that go to the site once more.
use std::sync::Arc;

use downburst_log::{LogError, ProductLog as _, ReadBatch};
use downburst_model::{FeedName, Sequence};
use downburst_session::{Entry, HubInput, ResendEnd};

use super::super::lock;
use super::Session;
use crate::hub::resends::order;
use crate::hub::roster::Command;
use crate::hub::{fetching, reading};
use crate::lines::Event;

/// A stretch of a log that was read for a resend.
#[derive(Debug)]
pub(in crate::hub) struct ReadForResend {
    resend: u64,
    feed: FeedName,
    after: Sequence,
    /// `None`: the feed is closed.
    batch: Option<Result<ReadBatch, LogError>>,
}

impl Session {
    /// Tells the machine the whole set, in the numbers of the logs as they are now.
    pub(super) fn tell_resends(&mut self) {
        let Some(member) = &self.member else { return };
        let line = self.hub.roster.site(&member.site).map(|line| self.part_of(line));
        let lines = line.map(|line| line.resends).unwrap_or_default();
        let mut left = lock(&self.hub.resends_left).of(&member.site, &lines);
        let orders = lines
            .iter()
            .filter_map(|line| {
                Some(order(&*self.hub.feeds.find(&line.feed)?, line, left.remove(&line.resend)))
            })
            .collect();
        self.tell(HubInput::Resends(orders));
    }

    pub(super) fn read_resend(
        &mut self,
        resend: u64,
        feed: &FeedName,
        (after, to): (Sequence, Sequence),
        limit_bytes: usize,
    ) {
        let asked = |batch| ReadForResend { resend, feed: feed.clone(), after, batch };
        let Some(open) = self.hub.feeds.find(feed) else { return self.resend_is_read(asked(None)) };
        let batch = open.log.read(after, to, limit_bytes, READ_ENTRIES);
        let now = self.hub.clock.wall();
        let is_here = batch.as_ref().is_ok_and(|batch| open.lacking(batch, now, |_| true).is_empty());
        let handle = self.member.as_ref().map(|member| member.handle.clone());
        let (false, true, Some(handle)) = (is_here, batch.is_ok(), handle) else {
            return self.resend_is_read(asked(Some(batch)));
        };
        let (hub, mut asked) = (Arc::clone(&self.hub), asked(None));
        tokio::spawn(async move {
            asked.batch = fetching::read(&hub, open, (after, to), (limit_bytes, READ_ENTRIES)).await;
            // A session that ended meanwhile needs nothing.
            let _ = handle.commands.send(Command::FetchedForResend(Box::new(asked)));
        });
    }

    /// A feed that is closed says nothing of what it had.
    pub(super) fn resend_is_read(&mut self, read: ReadForResend) {
        let ReadForResend { resend, feed, after, batch } = read;
        let (entries, read_to) = match batch {
            Some(Ok(batch)) => {
                self.bad_resend_reads = 0;
                (batch.entries, batch.read_to)
            }
            Some(Err(error)) => {
                if self.bad_resend_reads.is_multiple_of(BAD_READS_TOLD) {
                    reading::say_unreadable(&self.hub, &feed, &error);
                }
                self.bad_resend_reads = self.bad_resend_reads.wrapping_add(1);
                (Vec::new(), after)
            }
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
}

/// The session reads again each five seconds; a disk that stays ill is said each minute.
const BAD_READS_TOLD: u32 = 12;

/// How many products one read brings at most.
const READ_ENTRIES: usize = 256;
