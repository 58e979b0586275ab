//! The intervals of a leg, of which the busy ones are trials of its rate.
use std::collections::{BTreeMap, VecDeque};

use downburst_model::{Micros, RangeSet};
use downburst_vcmtp::SenderStats;

/// The losses of the packets that were sent in busy intervals.
///
/// A loss belongs to the interval in which its packet was sent, whenever it is requested; requests come until a
/// second later, so an interval is a trial only then. A leg that pauses says nothing about lines: their queues absorb
/// what comes in between. Neither does the interval after a cut, in which the queues are still full.
#[derive(Debug, Default)]
pub(super) struct Intervals {
    present: Option<Present>,
    /// Busy intervals whose losses are not all known yet, the oldest first.
    ended: VecDeque<Ended>,
    /// Packets that sessions requested, of the present interval and those in `ended`.
    requested: BTreeMap<u64, RangeSet>,
}

/// The losses of an interval.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tried {
    /// The rate, in Ethernet-frame bits per second.
    pub(super) rate_bps: u64,
    pub(super) packets: u64,
    /// Packets by session; those without loss are absent.
    pub(super) lost: BTreeMap<u64, u64>,
}

#[derive(Clone, Copy, Debug)]
struct Present {
    began: Micros,
    /// The last packet before it.
    after: u64,
    datagram_bytes: u64,
    rate_bps: u64,
    /// True if the rate was higher before.
    was_cut: bool,
}

#[derive(Clone, Copy, Debug)]
struct Ended {
    at: Micros,
    first: u64,
    last: u64,
    rate_bps: u64,
}

impl Intervals {
    /// Takes a session's request. Packets up to `sent` exist.
    pub(super) fn asked(&mut self, session: u64, packets: &RangeSet, sent: u64) {
        let Some(oldest) = self.after() else { return };
        let requested = self.requested.entry(session).or_default();
        for (first, last) in packets.iter() {
            let (first, last) = (first.max(oldest.saturating_add(1)), last.min(sent));
            if first <= last && requested.range_count() < MOST_RANGES {
                requested.insert(first, last);
            }
        }
    }

    /// Ends the present interval; returns the trials whose losses are all known. The leg's rate is `rate_bps` now,
    /// and `shares` are the losses by session where requests do not show them.
    pub(super) fn end(
        &mut self,
        now: Micros,
        rate_bps: u64,
        stats: &SenderStats,
        shares: Option<&BTreeMap<u64, f64>>,
    ) -> Vec<Tried> {
        let is_trial = |present: &Present| {
            !present.was_cut && present.rate_bps == rate_bps && present.is_busy(now, stats.datagram_bytes)
        };
        if let Some(present) = self.present.filter(is_trial) {
            let (first, last) = (present.after.saturating_add(1), stats.packets);
            self.ended.push_back(Ended { at: now, first, last, rate_bps });
        }
        let is_open = |ended: &Ended| now < ended.at.plus(GRACE);
        let open = self.ended.iter().position(is_open).unwrap_or(self.ended.len());
        let closed: Vec<Ended> = self.ended.drain(..open).collect();
        closed
            .into_iter()
            .filter(|ended| ended.first <= ended.last)
            .map(|it| self.tried(it, shares))
            .collect()
    }

    /// Begins an interval after the last one has ended.
    pub(super) fn begin(&mut self, now: Micros, rate_bps: u64, stats: &SenderStats) {
        let (after, datagram_bytes) = (stats.packets, stats.datagram_bytes);
        let was_cut = self.present.is_some_and(|before| before.rate_bps > rate_bps);
        self.present = Some(Present { began: now, after, datagram_bytes, rate_bps, was_cut });
        let oldest = self.after().unwrap_or(after);
        self.requested.retain(|_, packets| {
            packets.remove(0, oldest);
            !packets.is_empty()
        });
    }

    /// The last packet before the oldest interval.
    fn after(&self) -> Option<u64> {
        let oldest = self.ended.front().map(|ended| ended.first.saturating_sub(1));
        oldest.or(self.present.map(|present| present.after))
    }

    fn tried(&self, ended: Ended, shares: Option<&BTreeMap<u64, f64>>) -> Tried {
        let Ended { first, last, rate_bps, .. } = ended;
        let packets = last - first + 1;
        let lost: BTreeMap<u64, u64> = match shares {
            Some(shares) => shares.iter().map(|(session, share)| (*session, part(packets, *share))).collect(),
            None => {
                self.requested.iter().map(|(session, all)| (*session, within(all, first, last))).collect()
            }
        };
        Tried { rate_bps, packets, lost: lost.into_iter().filter(|(_, lost)| *lost > 0).collect() }
    }
}

impl Present {
    fn is_busy(&self, now: Micros, datagram_bytes: u64) -> bool {
        let (time, bytes) = (now.since(self.began).0, datagram_bytes.saturating_sub(self.datagram_bytes));
        let needed = u128::from(self.rate_bps) * u128::from(time) * BUSY_PERCENT / 100;
        time > 0 && u128::from(bytes) * 8 * 1_000_000 >= needed
    }
}

fn part(packets: u64, share: f64) -> u64 {
    ((packets as f64 * share) as u64).min(packets)
}

/// The number of these packets in the set.
fn within(packets: &RangeSet, first: u64, last: u64) -> u64 {
    let missing: u64 = packets.gaps(first, last).map(|(first, last)| last - first + 1).sum();
    (last - first + 1).saturating_sub(missing)
}

/// The time after an interval until requests of distant sites have arrived.
const GRACE: Micros = Micros::from_secs(1);

/// The payload of a busy interval, as a share of the rate in frames. A product that takes a tenth of a second at the
/// rate and is not lost says as much about the line as the feed needs.
const BUSY_PERCENT: u128 = 40;

/// Ranges of requested packets that are kept of a session: every other packet of a second at 1 Gb/s. Further losses
/// are not counted.
const MOST_RANGES: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    const RATE_BPS: u64 = 8_000_000;

    /// Packets by session.
    type Losses = Vec<(u64, u64)>;

    /// A leg that sends packets of 1,500 bytes, in quarters of a second.
    #[derive(Default)]
    struct Leg {
        intervals: Intervals,
        quarters: u64,
        packets: u64,
    }

    impl Leg {
        /// A quarter of a second with so many packets, at this rate, and then at another.
        fn quarter(&mut self, packets: u64, rate_bps: u64, then_bps: u64) -> Vec<(u64, u64, Losses)> {
            (self.quarters, self.packets) = (self.quarters + 1, self.packets + packets);
            let (now, stats) = (Micros::from_millis(250 * self.quarters), self.stats());
            let found = self.intervals.end(now, rate_bps, &stats, None);
            self.intervals.begin(now, then_bps, &stats);
            found.into_iter().map(|it| (it.rate_bps, it.packets, it.lost.into_iter().collect())).collect()
        }

        /// Quarters without packets; the packets and losses of all trials.
        fn pause(&mut self, quarters: u64) -> Vec<(u64, Losses)> {
            let found = (0..quarters).flat_map(|_| self.quarter(0, RATE_BPS, RATE_BPS)).collect::<Vec<_>>();
            found.into_iter().map(|(_, packets, lost)| (packets, lost)).collect()
        }

        fn busy(&mut self) -> usize {
            self.quarter(100, RATE_BPS, RATE_BPS).len()
        }

        fn asks(&mut self, session: u64, ranges: &[(u64, u64)]) {
            let packets = ranges.iter().copied().collect();
            self.intervals.asked(session, &packets, self.packets);
        }

        fn stats(&self) -> SenderStats {
            SenderStats {
                packets: self.packets,
                datagram_bytes: self.packets * 1_500,
                ..SenderStats::default()
            }
        }
    }

    fn begun() -> Leg {
        let mut leg = Leg::default();
        assert_eq!(leg.quarter(0, RATE_BPS, RATE_BPS), []);
        leg
    }

    #[test]
    fn a_loss_counts_where_its_packet_was_sent_whenever_it_is_requested() {
        let mut leg = begun();
        leg.busy();
        leg.asks(7, &[(1, 10)]);
        leg.busy();
        leg.asks(7, &[(91, 100), (101, 105)]);
        assert_eq!(leg.pause(2), []);
        leg.asks(7, &[(81, 120)]);
        assert_eq!(leg.pause(3), [(100, vec![(7, 30)]), (100, vec![(7, 20)])]);
    }

    #[test]
    fn a_trial_waits_for_a_second_and_pauses_are_none() {
        let mut leg = begun();
        assert_eq!([leg.busy(), leg.pause(3).len()], [0, 0]);
        assert_eq!(leg.pause(1), [(100, vec![])]);
        leg.quarter(5, RATE_BPS, RATE_BPS);
        leg.asks(7, &[(1, 105)]);
        assert_eq!(leg.pause(8), [], "the few packets after it and late requests are nothing");
    }

    #[test]
    fn repeated_requests_count_once_and_never_more_than_was_sent() {
        let mut leg = begun();
        leg.busy();
        (0..3).for_each(|_| leg.asks(7, &[(1, 80)]));
        leg.asks(8, &[(1, u64::MAX)]);
        leg.asks(9, &[(500, u64::MAX)]);
        assert_eq!(leg.pause(4), [(100, vec![(7, 80), (8, 100)])]);
        assert!(leg.intervals.requested.is_empty(), "nothing is kept of former intervals");
    }

    #[test]
    fn a_rate_that_changes_is_no_trial_nor_is_the_interval_after_a_cut() {
        let mut leg = begun();
        leg.quarter(100, RATE_BPS, RATE_BPS / 2);
        leg.quarter(101, RATE_BPS / 2, RATE_BPS / 2);
        leg.quarter(102, RATE_BPS / 2, RATE_BPS);
        leg.quarter(103, RATE_BPS, RATE_BPS);
        leg.quarter(104, RATE_BPS / 2, RATE_BPS / 2);
        let found = leg.pause(8).into_iter().map(|(packets, _)| packets).collect::<Vec<_>>();
        let at_last = leg.quarter(0, RATE_BPS, RATE_BPS);
        assert_eq!((leg.packets, at_last), (510, vec![]));
        assert_eq!(found, [102, 103], "cut, and changed within the interval");
    }

    #[test]
    fn large_groups_lose_as_reported() {
        let mut leg = begun();
        leg.busy();
        let shares = BTreeMap::from([(7, 0.25), (8, 2.0), (9, 0.001)]);
        let found = leg.intervals.end(Micros::from_secs(3), RATE_BPS, &leg.stats(), Some(&shares));
        assert_eq!(found[0].lost, BTreeMap::from([(7, 25), (8, 100)]));
    }

    #[test]
    fn what_is_kept_of_a_session_is_limited() {
        let mut leg = begun();
        leg.packets = 1 << 20;
        let all: Vec<_> = (1..200_000).map(|number| (number * 2, number * 2)).collect();
        leg.asks(7, &all);
        assert_eq!(leg.intervals.requested[&7].range_count(), MOST_RANGES);
    }
}
