//! How fast a multicast leg may be when many of its sites lose at once.
//!
//! One lossy site never slows a leg: its repairs are its own, and one that loses far more than repair is for is named, to be served
//! alone. When the *median* site loses, something they share may be the cause (the
//! sender's link, a switch, a busy host), and then repairing everybody costs more than going slower: the rate is cut by a factor and
//! raised again in steps: additive raise, multiplicative cut, by a quantile of the receivers.
//!
//! Loss that does not depend on the rate (noise on every link) is told apart by what a cut does. Of a path that carries `c`, a sender at
//! rate `r` loses `1 - c / r`; after a cut by `f` that would be `1 - (1 - loss) / f`. If the loss stays nearer to what it was, the cut is
//! taken back, and that much loss is left to repair for a while.
use std::collections::BTreeMap;

use downburst_model::{Micros, RangeSet};

/// The rate of one leg.
pub(super) struct LegRate {
    asked_bps: u64,
    current_bps: u64,
    interval_began: Micros,
    sent_before: u64,
    cut_at: Option<Micros>,
    trial: Option<Trial>,
    /// Up to this share loss is left to repair, until then.
    tolerated: (f64, Micros),
    sites: BTreeMap<u64, Losses>,
    named: Vec<Straggler>,
}

/// A cut whose effect is awaited.
#[derive(Clone, Copy)]
struct Trial {
    /// The rate to go back to if the loss does not follow the rate.
    before_bps: u64,
    /// The loss that led to the cut.
    share: f64,
    /// Requests for packets of before the cut still come in the interval after it.
    settled: bool,
}

#[derive(Default)]
struct Losses {
    /// Packets up to here were counted; a site that asks again is not counted again.
    counted_to: u64,
    packets: u64,
    /// Rises with each interval of great loss and falls with each other: a site behind a slow link asks in waves.
    strikes: u32,
}

/// A site that loses too much to be served by the group.
#[derive(Debug, PartialEq)]
pub(super) struct Straggler {
    pub(super) session: u64,
    /// What it lost of the last interval.
    pub(super) share: f64,
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
            trial: None,
            tolerated: (TOLERATED_SHARE, Micros(0)),
            sites: BTreeMap::new(),
            named: Vec::new(),
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
        let sent_lately = sent.saturating_sub(self.sent_before);
        let share = self.median_share(sent_lately, members);
        self.interval_began = now;
        self.sent_before = sent;
        self.count_strikes(sent_lately, share);
        for losses in self.sites.values_mut() {
            losses.packets = 0;
        }
        let before = self.current_bps;
        if now > self.tolerated.1 {
            self.tolerated = (TOLERATED_SHARE, Micros(0));
        }
        match self.trial {
            Some(trial) if !trial.settled => self.trial = Some(Trial { settled: true, ..trial }),
            Some(trial) if share > trial.undecided() => self.take_back(now, trial, share),
            _ if share > self.tolerated.0 => self.cut(now, share),
            _ => self.raise(now),
        }
        (self.current_bps != before).then_some(self.current_bps)
    }

    /// Sites that lost so much for so long that they belong on unicast or in a slower group; each is named once.
    pub(super) fn stragglers(&mut self) -> Vec<Straggler> {
        std::mem::take(&mut self.named)
    }

    /// While all lose alike it is the rate that is wrong, and nobody is to blame.
    fn count_strikes(&mut self, sent: u64, median: f64) {
        if sent < TELLING_PACKETS {
            return;
        }
        for (session, losses) in &mut self.sites {
            let share = losses.packets as f64 / sent as f64;
            let strikes = if share > STRAGGLER_SHARE && median < STRAGGLER_SHARE / 2.0 {
                losses.strikes + 1
            } else {
                losses.strikes.saturating_sub(1)
            };
            losses.strikes = strikes % STRIKES;
            if strikes == STRIKES {
                self.named.push(Straggler { session: *session, share });
            }
        }
    }

    fn cut(&mut self, now: Micros, share: f64) {
        let before_bps = self.trial.map_or(self.current_bps, |trial| trial.before_bps);
        self.trial = Some(Trial { before_bps, share, settled: false });
        self.cut_at = Some(now);
        self.current_bps = (self.current_bps / 10 * 7).max(self.asked_bps / 20).max(1);
    }

    /// The loss does not follow the rate: going slower helps nobody.
    fn take_back(&mut self, now: Micros, trial: Trial, share: f64) {
        self.trial = None;
        self.current_bps = trial.before_bps.min(self.asked_bps);
        self.tolerated = (share.max(trial.share) * 1.5, now.plus(TOLERANCE_LASTS));
    }

    fn raise(&mut self, now: Micros) {
        self.trial = None;
        if self.cut_at.is_none_or(|cut| now.since(cut) > CALM) {
            self.current_bps = (self.current_bps + self.asked_bps / 20).min(self.asked_bps);
        }
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

impl Trial {
    /// Halfway between the loss if the rate has nothing to do with it and the loss of an overfull path after the cut.
    fn undecided(&self) -> f64 {
        let overfull = (1.0 - (1.0 - self.share) / CUT).max(0.0);
        f64::midpoint(self.share, overfull)
    }
}

/// Above this loss a copy of its own costs a site's link less than the group and the repairs of it.
const STRAGGLER_SHARE: f64 = 0.2;

/// Two seconds of intervals: a handover or a reboot of a switch is over by then.
const STRIKES: u32 = 8;

/// Fewer packets in an interval say nothing about a share.
const TELLING_PACKETS: u64 = 50;

/// What a cut leaves of the rate.
const CUT: f64 = 0.7;

/// How long loss that does not follow the rate is left to repair before it is looked at again.
const TOLERANCE_LASTS: Micros = Micros::from_secs(30);

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

    /// Intervals of 1,000 packets, of which the sites lose these shares in turn; who is named, and in which interval.
    fn strike(intervals: u64, loss: impl Fn(u64, u64) -> f64) -> Vec<(u64, u64)> {
        let (mut rate, mut named) = (LegRate::new(100_000_000), Vec::new());
        for interval in 1..=intervals {
            for session in 0..7 {
                let first = interval * 1_000 + 1;
                let lost = (loss(session, interval) * 1_000.0) as u64;
                if lost > 0 {
                    rate.lost(session, &losses(&[(first, first + lost - 1)]));
                }
            }
            rate.look(Micros::from_millis(interval * 250), interval * 1_000, 7);
            named.extend(rate.stragglers().into_iter().map(|straggler| (straggler.session, interval)));
        }
        named
    }

    #[test]
    fn a_site_behind_half_a_link_is_named_after_two_seconds_and_a_lossy_one_never() {
        let half = |session, _| if session == 3 { 0.5 } else { 0.0 };
        assert_eq!(strike(9, half), [(3, 8)]);
        let waves =
            |session, interval: u64| if session == 3 && !interval.is_multiple_of(3) { 0.4 } else { 0.0 };
        assert_eq!(strike(24, waves).len(), 1);
        assert_eq!(strike(200, |session, _| if session == 3 { 0.15 } else { 0.01 }), []);
        let hiccup = |session, interval: u64| if session == 3 && interval < 7 { 0.9 } else { 0.0 };
        assert_eq!(strike(200, hiccup), []);
    }

    #[test]
    fn nobody_is_named_while_most_lose() {
        assert_eq!(strike(100, |session, _| if session < 5 { 0.4 } else { 0.0 }), []);
    }

    /// Runs a leg of seven sites for `seconds`, with `loss(rate)` at all of them; returns the mean rate of the second half.
    fn run(seconds: u64, asked_bps: u64, loss: impl Fn(f64) -> f64) -> f64 {
        let (mut rate, mut sent, mut sum, mut counted) = (LegRate::new(asked_bps), 0, 0.0, 0);
        for interval in 1..=seconds * 4 {
            let packets = rate.current_bps / 4 / 12_000;
            let lost = (loss(rate.current_bps as f64) * packets as f64) as u64;
            for session in 0..7 {
                rate.lost(session, &losses(&[(sent + 1, sent + lost)]));
            }
            sent += packets;
            rate.look(Micros::from_millis(interval * 250), sent, 7);
            if interval > seconds * 2 {
                sum += rate.current_bps as f64;
                counted += 1;
            }
        }
        sum / f64::from(counted)
    }

    #[test]
    fn noise_on_every_link_does_not_slow_the_leg() {
        for noise in [0.005, 0.03, 0.05, 0.1, 0.3] {
            let mean = run(120, 100_000_000, |_| noise);
            assert!(mean > 95_000_000.0, "{noise}: {mean}");
        }
    }

    #[test]
    fn a_path_that_is_too_narrow_is_found() {
        for capacity in [20_000_000.0, 50_000_000.0, 90_000_000.0] {
            let mean = run(120, 100_000_000, |rate| (1.0 - capacity / rate).max(0.0));
            assert!((0.6..1.06).contains(&(mean / capacity)), "{capacity}: {mean}");
        }
    }

    #[test]
    fn a_narrow_path_with_noise_is_found_too() {
        let mean = run(120, 100_000_000, |rate| (1.0 - 40_000_000.0 / rate).max(0.0) + 0.01);
        assert!((24_000_000.0..44_000_000.0).contains(&mean), "{mean}");
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
            (3..40).filter_map(|n| rate.look(Micros::from_millis(n * 250), n * 1_000, 7)).collect();
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
        assert!(run(60, 100_000_000, |rate| (1.0 - 1_000.0 / rate).max(0.0)) >= 5_000_000.0);
    }
}
