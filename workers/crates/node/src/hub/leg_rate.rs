//! How fast a multicast leg may be when many of its sites lose at once.
//!
//! One lossy site never slows a leg: its repairs are its own. When the *median* site loses, the path they share (the sender's link, a
//! switch, a busy host) is the cause, and repairing everybody costs more than going slower: the rate is cut by a factor and raised
//! again in steps (networking.md §2.5: additive raise, multiplicative cut, by a quantile of the receivers).
use std::collections::BTreeMap;

use downburst_model::{Micros, RangeSet};

/// The rate of one leg.
pub(super) struct LegRate {
    asked_bps: u64,
    current_bps: u64,
    interval_began: Micros,
    sent_before: u64,
    cut_at: Option<Micros>,
    sites: BTreeMap<u64, Losses>,
}

#[derive(Default)]
struct Losses {
    /// Packets up to here were counted; a site that asks again is not counted again.
    counted_to: u64,
    packets: u64,
}

impl LegRate {
    /// Begins at the rate the plan asks for, in Ethernet-frame bits per second.
    pub(super) fn new(asked_bps: u64) -> Self {
        Self {
            asked_bps,
            current_bps: asked_bps,
            interval_began: Micros(0),
            sent_before: 0,
            cut_at: None,
            sites: BTreeMap::new(),
        }
    }

    /// The plan asks for another rate.
    pub(super) fn ask(&mut self, asked_bps: u64) {
        self.asked_bps = asked_bps;
        self.current_bps = asked_bps;
    }

    /// A session asked for these packets.
    pub(super) fn lost(&mut self, session: u64, packets: &RangeSet) {
        let losses = self.sites.entry(session).or_default();
        let (before, counted_to) = (packets.count(), losses.counted_to);
        let mut fresh = packets.clone();
        fresh.remove(0, counted_to);
        losses.packets += fresh.count().min(before);
        losses.counted_to = counted_to.max(packets.last().unwrap_or(0));
    }

    /// True once an interval is over and [`Self::look`] should be called.
    pub(super) fn is_due(&self, now: Micros) -> bool {
        now.since(self.interval_began) >= INTERVAL
    }

    /// Looks back at the interval that is over; returns the rate if it changed. `sent` is the number of datagrams since the start,
    /// `members` how many sites hear the leg.
    pub(super) fn look(&mut self, now: Micros, sent: u64, members: usize) -> Option<u64> {
        let share = self.median_share(sent.saturating_sub(self.sent_before), members);
        self.interval_began = now;
        self.sent_before = sent;
        for losses in self.sites.values_mut() {
            losses.packets = 0;
        }
        let before = self.current_bps;
        if share > TOLERATED_SHARE {
            self.cut_at = Some(now);
            self.current_bps = (before / 10 * 7).max(self.asked_bps / 20).max(1);
        } else if self.cut_at.is_none_or(|cut| now.since(cut) > CALM) {
            self.current_bps = (before + self.asked_bps / 20).min(self.asked_bps);
        }
        (self.current_bps != before).then_some(self.current_bps)
    }

    fn median_share(&self, sent: u64, members: usize) -> f64 {
        if sent == 0 || members == 0 {
            return 0.0;
        }
        let mut lost: Vec<u64> = self.sites.values().map(|losses| losses.packets).collect();
        lost.sort_unstable_by(|a, b| b.cmp(a));
        // The site in the middle, when those that lost nothing are counted in.
        lost.get(members / 2).map_or(0.0, |packets| *packets as f64 / sent as f64)
    }
}

/// Several round trips on any path worth multicasting on, so that requests for the interval's packets have come.
const INTERVAL: Micros = Micros::from_millis(250);

/// How long a leg stays at a rate after a cut before it tries more.
const CALM: Micros = Micros::from_secs(2);

/// Up to here repair costs less than going slower.
const TOLERATED_SHARE: f64 = 0.02;

#[cfg(test)]
mod tests {
    use super::*;

    fn losses(ranges: &[(u64, u64)]) -> RangeSet {
        ranges.iter().copied().collect()
    }

    #[test]
    fn one_lossy_site_of_seven_slows_nobody() {
        let mut rate = LegRate::new(100_000_000);
        for interval in 1..20 {
            rate.lost(3, &losses(&[(interval * 1_000 + 1, interval * 1_000 + 500)]));
            assert_eq!(rate.look(Micros::from_millis(interval * 250), interval * 1_000, 7), None);
        }
    }

    #[test]
    fn a_shared_loss_cuts_and_calm_raises_again() {
        let mut rate = LegRate::new(100_000_000);
        for session in 0..4 {
            rate.lost(session, &losses(&[(1, 100)]));
        }
        assert_eq!(rate.look(Micros::from_millis(250), 1_000, 7), Some(70_000_000));
        assert_eq!(rate.look(Micros::from_millis(500), 2_000, 7), None, "calm first");
        let raised: Vec<u64> =
            (10..40).filter_map(|n| rate.look(Micros::from_millis(n * 250), n * 1_000, 7)).collect();
        assert_eq!(raised.first(), Some(&75_000_000));
        assert_eq!(raised.last(), Some(&100_000_000));
    }

    #[test]
    fn asking_again_for_the_same_packets_counts_once() {
        let mut rate = LegRate::new(100_000_000);
        for session in 0..4 {
            rate.lost(session, &losses(&[(1, 15)]));
            rate.lost(session, &losses(&[(1, 15)]));
        }
        assert_eq!(
            rate.look(Micros::from_millis(250), 1_000, 7),
            None,
            "1.5 % is tolerated, 3 % would not be"
        );
    }

    #[test]
    fn the_rate_never_falls_to_nothing() {
        let mut rate = LegRate::new(100_000_000);
        for interval in 1..60 {
            rate.lost(1, &losses(&[(interval * 100, interval * 100 + 99)]));
            rate.look(Micros::from_millis(interval * 250), interval * 100, 1);
        }
        assert_eq!(rate.current_bps, 5_000_000);
    }
}
