//! The reading of a multicast group by a thread: gathering of datagrams, detection of silence, loss of priority, and
//! datagrams that found no room.
use downburst_model::Micros;
use downburst_session::{LegJoin, ReceiveBuffer, Reception};

mod line;
mod priority;
mod readings;

pub use line::{GroupArrival, LineWatch};
pub use priority::{PriorityChange, PriorityWatch, SpinWatch};
pub use readings::{DropCount, HostReadings, ReadingWatch, SocketReading};

/// A thread's state between its reads of a group: how long it leaves datagrams in the socket's buffer.
///
/// Waking this thread and then the session's for one datagram costs more than all the work on it.
///
/// | the last read found | next |
/// |---|---|
/// | nothing, or many datagrams | a read as soon as there is one |
/// | a few | a pause of [`GATHERING`], then the same |
/// | a leg at half its rate or more, in full datagrams | a read this time after the first datagram of a train |
///
/// The last is a leg with a backlog, whose large products leave in long trains. A train that arrives as it left is
/// whole a moment after its first datagram. A link of the leg's own rate spreads it, so that the next datagram comes
/// at once after each read: then the time doubles, up to that between two trains or [`LONGEST_GATHERING`].
#[derive(Debug)]
pub struct GroupReading {
    rate_bps: u64,
    longest: Micros,
    heard_at: Micros,
    read_at: Micros,
    state: Gathering,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gathering {
    Nothing,
    Few,
    Trains(Micros),
}

/// The datagrams of a read.
struct Batch {
    datagrams: usize,
    /// The number of those shorter than the longest: a sender with a backlog fills them.
    short: usize,
    bytes: u64,
}

/// The result of a read of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupRead {
    /// Datagrams, for the session.
    Datagrams,
    /// Nothing, for long enough to report to the session.
    Deaf,
    /// Nothing yet.
    Nothing,
}

impl GroupReading {
    /// Begins at this time with a leg of this rate, whose long trains are `train_time` apart.
    pub fn new(now: Micros, rate_bps: u64, train_time: Micros) -> Self {
        let longest = train_time.min(LONGEST_GATHERING);
        Self { rate_bps, longest, heard_at: now, read_at: now, state: Gathering::Nothing }
    }

    /// The pause before the next wait for a datagram; `None`: no pause.
    pub fn pause(&self) -> Option<Micros> {
        (self.state == Gathering::Few).then_some(GATHERING)
    }

    /// The pause after a wait of this length for the first datagram, before it is read with those that follow it.
    pub fn gather(&mut self, waited: Micros) -> Option<Micros> {
        let Gathering::Trains(last) = self.state else { return None };
        if waited > Micros(self.longest.0.saturating_mul(SILENT_TRAINS)) {
            self.state = Gathering::Nothing;
            return None;
        }
        let is_cut = waited < GATHERING;
        let time =
            if is_cut { Micros(last.0.saturating_mul(2)).min(self.longest) } else { Micros(last.0 / 2) };
        let time = time.max(GATHERING);
        self.state = Gathering::Trains(time);
        Some(time)
    }

    /// Notes a read of datagrams with these lengths.
    pub fn read(&mut self, lengths: impl Iterator<Item = usize> + Clone, now: Micros) -> GroupRead {
        let batch = Batch::of(lengths);
        let elapsed = now.since(std::mem::replace(&mut self.read_at, now));
        self.state = self.state_after(&batch, elapsed);
        if batch.datagrams == 0 && now.since(self.heard_at) < DEAF_AFTER {
            return GroupRead::Nothing;
        }
        self.heard_at = now;
        if batch.datagrams > 0 { GroupRead::Datagrams } else { GroupRead::Deaf }
    }

    fn state_after(&self, batch: &Batch, elapsed: Micros) -> Gathering {
        match self.state {
            _ if batch.datagrams == 0 || batch.datagrams >= MORE_THAN_A_TRAIN => Gathering::Nothing,
            Gathering::Trains(time) if self.is_backlog(batch, elapsed) => Gathering::Trains(time),
            _ if self.is_backlog(batch, elapsed) => Gathering::Trains(GATHERING),
            _ if batch.datagrams < WORTH_WAKING => Gathering::Few,
            _ => Gathering::Nothing,
        }
    }

    /// True if the leg sends at half its rate or more, and in full datagrams. A leg whose trains are no longer than
    /// [`GATHERING`] is so fast that the buffer fills while a train is read.
    fn is_backlog(&self, batch: &Batch, elapsed: Micros) -> bool {
        let bits = batch.bytes.saturating_mul(8);
        let half_of_rate = self.rate_bps.saturating_mul(elapsed.0) / 2_000_000;
        self.longest > GATHERING && bits >= half_of_rate && batch.short.saturating_mul(8) <= batch.datagrams
    }
}

impl Batch {
    fn of(lengths: impl Iterator<Item = usize> + Clone) -> Self {
        let longest = lengths.clone().max().unwrap_or(0);
        Self {
            datagrams: lengths.clone().count(),
            short: lengths.clone().filter(|length| *length < longest).count(),
            bytes: lengths.map(|length| length as u64).sum(),
        }
    }
}

/// The description of a host's reception of a group, with advice if the receive buffer is smaller than the leg's rate
/// needs.
pub fn reception(join: &LegJoin, buffer: &ReceiveBuffer, path: String) -> Reception {
    let ReceiveBuffer { asked_bytes, granted_bytes, needed_bytes, .. } = *buffer;
    let advice = (granted_bytes < needed_bytes).then(|| {
        let remedy = if asked_bytes.saturating_mul(2) <= granted_bytes {
            // All that was asked for is there, so the request is the limit: by an option, or by the standard size.
            format!("start the receiver with --receive-buffer {}", needed_bytes.div_ceil(2))
        } else {
            format!("set net.core.rmem_max={needed_bytes} there, or give the receiver CAP_NET_ADMIN")
        };
        format!(
            "the kernel grants {granted_bytes} bytes to receive the group {}, but at {} Mb/s a busy host needs \
             {needed_bytes}: {remedy}",
            join.group,
            join.rate_bps / 1_000_000
        )
    });
    Reception { buffer_bytes: granted_bytes, path, advice }
}

const GATHERING: Micros = Micros::from_millis(1);

/// So many datagrams at once show that the thread is late: it must not wait for more.
const MORE_THAN_A_TRAIN: usize = 64;

/// The most that a warning beside large products waits here for the datagrams behind it.
const LONGEST_GATHERING: Micros = Micros::from_millis(4);

/// After so many times of a train without a datagram the leg has no backlog any more.
const SILENT_TRAINS: u64 = 3;

/// From this number on datagrams are not gathered: at such a rate the buffer fills, and the cost of waking is small
/// for each.
const WORTH_WAKING: usize = 32;

/// Four heads of an idle leg; the report is repeated at this interval while the silence lasts.
const DEAF_AFTER: Micros = Micros::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000;
    const FULL_BYTES: usize = 1_446;

    /// A thread that reads a leg of 100 Mb/s.
    fn reading() -> GroupReading {
        GroupReading::new(Micros(0), 100_000_000, Micros(5 * MS))
    }

    fn full(datagrams: usize) -> impl Iterator<Item = usize> + Clone {
        std::iter::repeat_n(FULL_BYTES, datagrams)
    }

    /// The reads of a thread until `end` of full datagrams that arrive at these times: (time, datagrams).
    fn reads(reading: &mut GroupReading, arrivals: &[u64], end: u64) -> Vec<(u64, usize)> {
        let (mut now, mut taken, mut reads) = (0, 0, Vec::new());
        loop {
            now += reading.pause().map_or(0, |pause| pause.0);
            let Some(first) = arrivals.get(taken).filter(|first| **first < end) else { return reads };
            let waited = first.saturating_sub(now);
            now += waited;
            now += reading.gather(Micros(waited)).map_or(0, |pause| pause.0);
            let datagrams = arrivals[taken..].iter().take_while(|arrival| **arrival <= now).count();
            assert_eq!(reading.read(full(datagrams), Micros(now)), GroupRead::Datagrams);
            taken += datagrams;
            reads.push((now, datagrams));
        }
    }

    #[test]
    fn after_a_few_datagrams_the_next_ones_are_gathered_and_after_many_they_are_not() {
        let mut reading = GroupReading::new(Micros(0), 2_000_000_000, Micros(MS));
        assert_eq!(reading.pause(), None);
        for (datagrams, pause) in [(1, true), (31, true), (32, false), (500, false), (2, true)] {
            assert_eq!(reading.read(full(datagrams), Micros(0)), GroupRead::Datagrams);
            assert_eq!(reading.pause().is_some(), pause, "{datagrams}");
            assert_eq!(reading.gather(Micros(0)), None, "a fast leg fills the buffer by itself");
        }
        assert_eq!((reading.read(full(0), Micros(0)), reading.pause()), (GroupRead::Nothing, None));
    }

    #[test]
    fn a_lone_datagram_is_read_at_once_and_one_after_it_within_a_millisecond() {
        let arrivals = [50 * MS, 90 * MS, 90 * MS + 300, 150 * MS];
        let expected = [(50 * MS, 1), (90 * MS, 1), (91 * MS, 1), (150 * MS, 1)];
        assert_eq!(reads(&mut reading(), &arrivals, u64::MAX), expected);
    }

    #[test]
    fn one_read_takes_a_train_a_moment_after_its_first_datagram() {
        let train = |number: u64| (0..41).map(move |datagram| number * 5 * MS + datagram * 12);
        let arrivals: Vec<u64> = (1..100).flat_map(train).collect();
        let reads = reads(&mut reading(), &arrivals, u64::MAX);
        assert!(
            reads[2..].iter().all(|(at, datagrams)| *datagrams == 41 && at % (5 * MS) == MS),
            "{reads:?}"
        );
    }

    #[test]
    fn a_spread_train_is_gathered_up_to_four_milliseconds() {
        let arrivals: Vec<u64> = (1..5_000).map(|datagram| datagram * 120).collect();
        let reads = reads(&mut reading(), &arrivals, 500 * MS);
        assert!(reads[5..].iter().all(|(_, datagrams)| (32..=34).contains(datagrams)), "{reads:?}");
    }

    #[test]
    fn after_a_backlog_a_lone_datagram_is_read_at_once_again() {
        let mut arrivals: Vec<u64> = (1..1_000).map(|datagram| datagram * 120).collect();
        arrivals.extend([200 * MS, 300 * MS]);
        let reads = reads(&mut reading(), &arrivals, u64::MAX);
        assert_eq!(reads[reads.len() - 2..], [(200 * MS, 1), (300 * MS, 1)]);
    }

    #[test]
    fn a_leg_below_half_its_rate_or_with_datagrams_that_are_not_full_has_no_backlog() {
        let (mut slow, mut small) = (reading(), reading());
        for time in (1..100).map(|number| Micros(number * MS)) {
            slow.read(full(4), time);
            small.read(full(6).chain([700, 700]), time);
            assert_eq!((slow.gather(Micros(0)), small.gather(Micros(0))), (None, None));
        }
    }

    #[test]
    fn a_thread_that_is_late_does_not_wait() {
        let mut reading = reading();
        reading.read(full(41), Micros(5 * MS));
        assert_eq!(reading.gather(Micros(4 * MS)), Some(Micros(MS)));
        reading.read(full(64), Micros(10 * MS));
        assert_eq!((reading.pause(), reading.gather(Micros(0))), (None, None));
    }

    #[test]
    fn the_time_follows_the_rate() {
        let longest = |rate_bps: u64, train_time: u64| {
            let mut reading = GroupReading::new(Micros(0), rate_bps, Micros(train_time));
            let times = (1..10).map(|number| {
                reading.read(full(60), Micros(number * MS));
                reading.gather(Micros(0)).map_or(0, |time| time.0)
            });
            times.max().unwrap()
        };
        let found = [(30_000_000, 8 * MS), (100_000_000, 5 * MS), (300_000_000, 1_747), (1_000_000_000, MS)]
            .map(|(rate_bps, train_time)| longest(rate_bps, train_time));
        assert_eq!(found, [4 * MS, 4 * MS, 1_747, 0]);
    }

    #[test]
    fn a_silent_group_is_said_every_second() {
        let mut reading = reading();
        let reads = [900, 1_000, 1_900, 2_000].map(|ms| reading.read(full(0), Micros::from_millis(ms)));
        assert_eq!(reads, [GroupRead::Nothing, GroupRead::Deaf, GroupRead::Nothing, GroupRead::Deaf]);
    }
}
