//! A thread's account of its socket, for the site's own status and for the hub.
use downburst_model::{FeedName, LegId, Micros};
use downburst_session::{HostReading, LegJoin, PriorityStanding, ReceiveBuffer};
use downburst_site::{GroupArrival, LineWatch, ReadingWatch, SocketReading};
use downburst_vcmtp::Datagram;

use super::super::SharedReadings;

/// The account of one socket.
pub(super) struct Account {
    leg: LegId,
    feed: FeedName,
    readings: SharedReadings,
    watch: ReadingWatch,
    line: LineWatch,
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
        readings.lock().opened(&feed, SocketReading { leg, buffer, priority });
        let (watch, line) = (ReadingWatch::default(), LineWatch::default());
        Self { leg, feed, readings: readings.clone(), watch, line }
    }

    /// True now and then: the socket's counter is to be read, and there may be news.
    pub(super) fn is_due(&mut self, now: Micros) -> bool {
        self.watch.is_count_due(now)
    }

    /// Notes the socket's counter of drops; `None`: it is not known.
    pub(super) fn counted(&mut self, counter: Option<u32>) {
        let more = counter.map_or(0, |counter| self.watch.drops(counter));
        if more > 0 {
            self.readings.lock().dropped(&self.feed, more);
        }
    }

    /// Notes the datagrams of a read and their lengths: they measure the host's line where the group loses packets.
    pub(super) fn arrived(&mut self, now: Micros, batch: &[Datagram], lengths: &[usize]) {
        let arrived = &self.readings.arrived;
        let frame_bytes = lengths.iter().map(|length| arrived.datagram(*length)).sum();
        let (packets, newest) = batch
            .iter()
            .filter_map(Datagram::packet)
            .fold((0, 0), |(count, newest), number| (count + 1, number.max(newest)));
        if packets > 0 {
            let arrival = GroupArrival { packets, newest, frame_bytes, host_bytes: arrived.total() };
            if let Some(line) = self.line.read(now, &arrival) {
                self.readings.lock().carried(&self.feed, self.leg, line);
            }
        }
    }

    /// Another socket took the place of this one: its counter begins at zero.
    pub(super) fn reopened(&mut self) {
        self.watch.reopened();
    }

    /// The report that is due, if there is one.
    pub(super) fn news(&mut self, now: Micros, standing: PriorityStanding) -> Option<HostReading> {
        let mut readings = self.readings.lock();
        readings.stands(&self.feed, self.leg, standing);
        self.watch.report(now, readings.of(&self.feed))
    }
}
