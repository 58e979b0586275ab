//! A site's account of how its host reads groups: datagrams that found no room, receive buffers, priorities.
use std::collections::BTreeMap;

use downburst_model::{FeedName, LegId, Micros};
use downburst_session::{HostReading, LineReading, PriorityStanding, ReceiveBuffer};

/// The drops of one socket, by the kernel's counter of 32 bits, which wraps.
///
/// The counter comes beside datagrams (SO_RXQ_OVFL), as it was when each was queued, and by itself (SO_MEMINFO). So a
/// reading may be older than the one before it; then it adds nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct DropCount {
    newest: u32,
}

impl DropCount {
    /// The drops since the newest reading before this one.
    pub fn read(&mut self, counter: u32) -> u64 {
        let more = counter.wrapping_sub(self.newest);
        if more > u32::MAX / 2 {
            return 0;
        }
        self.newest = counter;
        more.into()
    }
}

/// A socket that begins to read a group.
#[derive(Clone, Copy, Debug)]
pub struct SocketReading {
    /// The leg.
    pub leg: LegId,
    /// Its receive buffer.
    pub buffer: ReceiveBuffer,
    /// The requested priority of its thread.
    pub priority: Option<u8>,
}

/// The reading of each feed's groups, since the receiver started. Sockets come and go with legs and sessions, and their
/// counters begin at zero; the sums here go on.
#[derive(Debug, Default)]
pub struct HostReadings {
    feeds: BTreeMap<FeedName, HostReading>,
}

impl HostReadings {
    /// Notes a new socket, which takes the place of the feed's former one.
    pub fn opened(&mut self, feed: &FeedName, socket: SocketReading) {
        let SocketReading { leg, buffer, priority } = socket;
        let (dropped, demotions) = self.feeds.get(feed).map_or((0, 0), |it| (it.dropped, it.demotions));
        let line = self.feeds.get(feed).and_then(|it| it.line);
        let standing = PriorityStanding::Normal;
        let reading = HostReading { leg, dropped, buffer, priority, standing, demotions, line };
        self.feeds.insert(feed.clone(), reading);
    }

    /// Notes drops of any of the feed's sockets.
    pub fn dropped(&mut self, feed: &FeedName, datagrams: u64) {
        if let Some(reading) = self.feeds.get_mut(feed) {
            reading.dropped = reading.dropped.saturating_add(datagrams);
        }
    }

    /// Notes what the host's line carried while the leg lost packets.
    pub fn carried(&mut self, feed: &FeedName, leg: LegId, line: LineReading) {
        if let Some(reading) = self.feeds.get_mut(feed).filter(|reading| reading.leg == leg) {
            let windows = reading.line.map_or(0, |before| before.windows).saturating_add(line.windows);
            reading.line = Some(LineReading { windows, ..line });
        }
    }

    /// Notes the priority of the thread that reads a leg. That of a leg which another one replaced counts no more.
    pub fn stands(&mut self, feed: &FeedName, leg: LegId, standing: PriorityStanding) {
        let Some(reading) = self.feeds.get_mut(feed).filter(|reading| reading.leg == leg) else { return };
        let before = std::mem::replace(&mut reading.standing, standing);
        if standing == PriorityStanding::Lost && before != PriorityStanding::Lost {
            reading.demotions = reading.demotions.saturating_add(1);
        }
    }

    /// The reading of a feed's groups; `None`: it has had no leg.
    pub fn of(&self, feed: &FeedName) -> Option<&HostReading> {
        self.feeds.get(feed)
    }

    /// The readings of all feeds.
    pub fn all(&self) -> &BTreeMap<FeedName, HostReading> {
        &self.feeds
    }
}

/// Decides when a thread reads the counter of its socket, and when it reports.
#[derive(Debug, Default)]
pub struct ReadingWatch {
    drops: DropCount,
    count_at: Micros,
    report_at: Micros,
    reported: Option<HostReading>,
}

impl ReadingWatch {
    /// True if the counter is to be read now, which is then not due for a while.
    pub fn is_count_due(&mut self, now: Micros) -> bool {
        let is_due = self.count_at <= now;
        if is_due {
            self.count_at = now.plus(COUNT_INTERVAL);
        }
        is_due
    }

    /// The drops since the newest reading of the socket's counter.
    pub fn drops(&mut self, counter: u32) -> u64 {
        self.drops.read(counter)
    }

    /// Another socket took the place of the one that was read: its counter begins at zero.
    pub fn reopened(&mut self) {
        self.drops = DropCount::default();
    }

    /// The report that is due: what differs from the last one, at most once a second.
    pub fn report(&mut self, now: Micros, reading: Option<&HostReading>) -> Option<HostReading> {
        let reading =
            reading.filter(|reading| self.report_at <= now && self.reported.as_ref() != Some(*reading))?;
        self.report_at = now.plus(REPORT_INTERVAL);
        self.reported = Some(reading.clone());
        self.reported.clone()
    }
}

/// A read of the counter is a call of the kernel.
const COUNT_INTERVAL: Micros = Micros::from_millis(200);
const REPORT_INTERVAL: Micros = Micros::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(name: &str) -> FeedName {
        FeedName::parse(name).unwrap()
    }

    fn socket(leg: u32) -> SocketReading {
        let buffer = ReceiveBuffer { granted_bytes: u64::from(leg), ..ReceiveBuffer::default() };
        SocketReading { leg: LegId(leg), buffer, priority: Some(20) }
    }

    #[test]
    fn a_counter_that_wraps_goes_on_and_an_older_reading_adds_nothing() {
        let mut drops = DropCount::default();
        let read =
            [0, 7, 7, 5, u32::MAX / 2, u32::MAX - 1, 3, u32::MAX, 3].map(|counter| drops.read(counter));
        let half = u64::from(u32::MAX / 2);
        assert_eq!(read, [0, 7, 0, 0, half - 7, half, 5, 0, 0]);
        assert_eq!(read.iter().sum::<u64>(), (1 << 32) + 3);
    }

    #[test]
    fn the_sum_goes_on_over_rebuilt_sockets() {
        let mut readings = HostReadings::default();
        for (leg, counter) in [(70, 4_000_000_000_u32), (71, 4_000_000_000), (71, 5)] {
            readings.opened(&feed("NGRID"), socket(leg));
            let mut watch = ReadingWatch::default();
            for part in [counter / 2, counter] {
                readings.dropped(&feed("NGRID"), watch.drops(part));
            }
        }
        let reading = readings.of(&feed("NGRID")).unwrap();
        assert_eq!((reading.leg, reading.dropped), (LegId(71), 8_000_000_005));
        assert_eq!(reading.buffer.granted_bytes, 71, "of the newest socket");
        readings.dropped(&feed("OTHER"), 1);
        assert_eq!(readings.all().len(), 1, "a feed without a socket has no account");
    }

    #[test]
    fn each_loss_of_priority_counts_once_and_only_for_the_leg_in_use() {
        let mut readings = HostReadings::default();
        readings.opened(&feed("NGRID"), socket(70));
        let mut stands = |leg: u32, standing| {
            readings.stands(&feed("NGRID"), LegId(leg), standing);
            let reading = readings.of(&feed("NGRID")).unwrap();
            (reading.standing, reading.demotions)
        };
        use PriorityStanding::{Lost, RealTime};
        assert_eq!(stands(70, RealTime), (RealTime, 0));
        assert_eq!(stands(69, Lost), (RealTime, 0));
        assert_eq!(stands(70, Lost), (Lost, 1));
        assert_eq!(stands(70, Lost), (Lost, 1));
        assert_eq!(stands(70, RealTime), (RealTime, 1));
        assert_eq!(stands(70, Lost), (Lost, 2));
        readings.opened(&feed("NGRID"), socket(71));
        assert_eq!(readings.of(&feed("NGRID")).unwrap().demotions, 2);
    }

    #[test]
    fn what_a_line_carried_counts_for_the_leg_in_use_and_goes_on() {
        let mut readings = HostReadings::default();
        let line = LineReading { arrived_bps: 4, offered_bps: 40, packets: 100, lost: 90, windows: 1 };
        let mut carried = |leg: u32| {
            readings.carried(&feed("NGRID"), LegId(leg), line);
            readings.opened(&feed("NGRID"), socket(70));
            readings.of(&feed("NGRID")).unwrap().line.map(|line| (line.arrived_bps, line.windows))
        };
        assert_eq!(
            [carried(70), carried(70), carried(69), carried(70)],
            [None, Some((4, 1)), Some((4, 1)), Some((4, 2))]
        );
    }

    #[test]
    fn news_are_reported_at_most_once_a_second_and_the_counter_is_read_five_times() {
        let (mut watch, mut readings) = (ReadingWatch::default(), HostReadings::default());
        assert_eq!(watch.report(Micros(0), readings.of(&feed("A"))), None, "there is no socket");
        readings.opened(&feed("A"), socket(70));
        let (mut reads, mut reports) = (0, Vec::new());
        for now in (0..3_000).map(Micros::from_millis) {
            if watch.is_count_due(now) {
                reads += 1;
                // Nothing is dropped in the last second.
                readings.dropped(&feed("A"), watch.drops((now.0 / 1_000).min(2_000) as u32));
            }
            reports.extend(watch.report(now, readings.of(&feed("A"))).map(|it| (now.0 / 1_000, it.dropped)));
        }
        assert_eq!((reads, reports), (15, vec![(0, 0), (1_000, 1_000), (2_000, 2_000)]));
    }
}
