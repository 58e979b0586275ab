//! A thread's account of its socket, for the site's own status and for the hub.
use std::sync::PoisonError;

use downburst_model::{FeedName, LegId, Micros};
use downburst_session::{HostReading, LegJoin, PriorityStanding, ReceiveBuffer};
use downburst_site::{HostReadings, ReadingWatch, SocketReading};

use super::super::SharedReadings;

/// The account of one socket.
pub(super) struct Account {
    leg: LegId,
    feed: FeedName,
    readings: SharedReadings,
    watch: ReadingWatch,
}

impl Account {
    /// Opens the account of a new socket.
    pub(super) fn open(
        join: &LegJoin,
        buffer: ReceiveBuffer,
        priority: Option<u8>,
        readings: &SharedReadings,
    ) -> Self {
        let (leg, feed) = (join.leg, join.feed.clone());
        let account = Self { leg, feed, readings: readings.clone(), watch: ReadingWatch::default() };
        account.with(|readings| readings.opened(&account.feed, SocketReading { leg, buffer, priority }));
        account
    }

    /// True now and then: the socket's counter is to be read, and there may be news.
    pub(super) fn is_due(&mut self, now: Micros) -> bool {
        self.watch.is_count_due(now)
    }

    /// Notes the socket's counter of drops; `None`: it is not known.
    pub(super) fn counted(&mut self, counter: Option<u32>) {
        let more = counter.map_or(0, |counter| self.watch.drops(counter));
        if more > 0 {
            self.with(|readings| readings.dropped(&self.feed, more));
        }
    }

    /// Another socket took the place of this one: its counter begins at zero.
    pub(super) fn reopened(&mut self) {
        self.watch.reopened();
    }

    /// The report that is due, if there is one.
    pub(super) fn news(&mut self, now: Micros, standing: PriorityStanding) -> Option<HostReading> {
        let reading = self.with(|readings| {
            readings.stands(&self.feed, self.leg, standing);
            readings.of(&self.feed).cloned()
        });
        self.watch.report(now, reading.as_ref())
    }

    fn with<R>(&self, work: impl FnOnce(&mut HostReadings) -> R) -> R {
        work(&mut self.readings.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
