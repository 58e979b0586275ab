//! The losses of a leg's sites at the rates at which it was sent: measurements of their lines.
use std::collections::BTreeMap;

use downburst_model::{Micros, SiteName};
use downburst_vcmtp::SenderStats;
use serde::Serialize;

/// The losses of packets that a leg sent at one rate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LegTrial {
    /// The rate, in Ethernet-frame bits per second.
    pub rate_bps: u64,
    /// The packets that were sent.
    pub packets: u64,
    /// The losses of sites; the other sites on the leg lost none.
    pub lost: Vec<SiteLoss>,
}

/// The loss of one site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SiteLoss {
    /// The site.
    pub site: SiteName,
    /// The packets that it lost.
    pub packets: u64,
}

/// The trials since the last report, by rate.
#[derive(Debug, Default)]
pub struct LegTrials(BTreeMap<u64, LegTrial>);

impl LegTrials {
    /// Adds a trial to those at the same rate. Few rates are tried in a second: further ones are left out.
    pub fn add(&mut self, trial: LegTrial) {
        if let Some(known) = self.0.get_mut(&trial.rate_bps) {
            known.packets = known.packets.saturating_add(trial.packets);
            trial.lost.into_iter().for_each(|loss| known.lose(loss));
        } else if self.0.len() < MOST_RATES {
            self.0.insert(trial.rate_bps, trial);
        }
    }

    /// The trials so far, each with the sites of the greatest losses; begins again.
    pub fn take(&mut self) -> Vec<LegTrial> {
        let mut trials: Vec<_> = std::mem::take(&mut self.0).into_values().collect();
        for trial in &mut trials {
            trial.lost.sort_by(|a, b| b.packets.cmp(&a.packets).then_with(|| a.site.cmp(&b.site)));
            trial.lost.truncate(MOST_LOSSES);
        }
        trials
    }
}

impl LegTrial {
    fn lose(&mut self, loss: SiteLoss) {
        match self.lost.iter_mut().find(|known| known.site == loss.site) {
            Some(known) => known.packets = known.packets.saturating_add(loss.packets),
            None => self.lost.push(loss),
        }
    }
}

/// The intervals of a leg, of which the busy ones are trials of its rate.
///
/// A leg that pauses says nothing about lines: their queues absorb what comes in between. The interval after a busy one
/// counts as well, as sites request losses a moment later; after a cut it does not.
#[derive(Debug, Default)]
pub(super) struct Intervals {
    before: Option<Mark>,
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Micros,
    packets: u64,
    datagram_bytes: u64,
    rate_bps: u64,
    /// True if the interval that ended was busy.
    was_busy: bool,
}

impl Intervals {
    /// Ends an interval in which the leg had this rate; returns its number of packets if it was a trial of the rate.
    pub(super) fn end(&mut self, now: Micros, rate_bps: u64, stats: &SenderStats) -> Option<u64> {
        let (packets, datagram_bytes) = (stats.packets, stats.datagram_bytes);
        let before = self.before.take();
        let is_busy = before.is_some_and(|before| before.is_busy_until(now, rate_bps, datagram_bytes));
        self.before = Some(Mark { at: now, packets, datagram_bytes, rate_bps, was_busy: is_busy });
        let before = before.filter(|before| before.rate_bps <= rate_bps && (is_busy || before.was_busy))?;
        Some(packets.saturating_sub(before.packets))
    }
}

impl Mark {
    fn is_busy_until(&self, now: Micros, rate_bps: u64, datagram_bytes: u64) -> bool {
        let (time, bytes) = (now.since(self.at).0, datagram_bytes.saturating_sub(self.datagram_bytes));
        let needed = u128::from(rate_bps) * u128::from(time) * BUSY_PERCENT / 100;
        time > 0 && u128::from(bytes) * 8 * 1_000_000 >= needed
    }
}

/// A leg has no more than five intervals in a second.
const MOST_RATES: usize = 8;

/// Sites in a report of a trial.
const MOST_LOSSES: usize = 256;

/// The payload of a busy interval, as a share of the rate in frames. A product that takes a tenth of a second at the
/// rate and is not lost says as much about the line as the feed needs.
const BUSY_PERCENT: u128 = 40;

#[cfg(test)]
mod tests {
    use super::*;

    fn site(name: &str) -> SiteName {
        SiteName::parse(name).unwrap()
    }

    fn trial(rate_bps: u64, packets: u64, lost: &[(&str, u64)]) -> LegTrial {
        let lost = lost.iter().map(|(name, packets)| SiteLoss { site: site(name), packets: *packets });
        LegTrial { rate_bps, packets, lost: lost.collect() }
    }

    fn stats(packets: u64, datagram_bytes: u64) -> SenderStats {
        SenderStats { packets, datagram_bytes, ..SenderStats::default() }
    }

    #[test]
    fn trials_at_one_rate_are_one_with_the_greatest_losses_first() {
        let mut trials = LegTrials::default();
        trials.add(trial(8, 100, &[("a", 1), ("b", 5)]));
        trials.add(trial(8, 50, &[("c", 9), ("a", 2)]));
        trials.add(trial(4, 10, &[]));
        let expected = [trial(4, 10, &[]), trial(8, 150, &[("c", 9), ("b", 5), ("a", 3)])];
        assert_eq!(trials.take(), expected);
        assert_eq!(trials.take(), []);
    }

    #[test]
    fn few_rates_and_few_sites_are_reported() {
        let mut trials = LegTrials::default();
        let names: Vec<String> = (0..MOST_LOSSES + 3).map(|number| format!("s{number}")).collect();
        let lost: Vec<_> = names.iter().zip(1..).map(|(name, packets)| (name.as_str(), packets)).collect();
        (1..20).for_each(|rate| trials.add(trial(rate, 1, &lost)));
        let found = trials.take();
        assert_eq!((found.len(), found[0].lost.len()), (MOST_RATES, MOST_LOSSES));
        assert_eq!(found[0].lost.last().map(|loss| loss.packets), Some(4), "the least losses are left out");
    }

    #[test]
    fn busy_intervals_are_trials_and_those_with_pauses_or_after_a_cut_are_not() {
        let (quarter, mut intervals) = (Micros::from_millis(250), Intervals::default());
        let at = |number: u64| Micros(quarter.0 * number);
        assert_eq!(intervals.end(at(1), 8_000_000, &stats(0, 0)), None, "it began at an unknown time");
        assert_eq!(intervals.end(at(2), 8_000_000, &stats(160, 240_000)), Some(160));
        assert_eq!(intervals.end(at(3), 8_000_000, &stats(200, 300_000)), Some(40), "requests still come");
        assert_eq!(intervals.end(at(4), 8_000_000, &stats(240, 360_000)), None, "it paused");
        assert_eq!(intervals.end(at(5), 8_000_000, &stats(320, 480_000)), Some(80));
        assert_eq!(intervals.end(at(6), 4_000_000, &stats(400, 600_000)), None, "it was cut");
        assert_eq!(intervals.end(at(7), 4_000_000, &stats(480, 720_000)), Some(80));
        assert_eq!(intervals.end(at(8), 5_000_000, &stats(580, 870_000)), Some(100), "it was raised");
        assert_eq!(intervals.end(at(8), 5_000_000, &stats(580, 870_000)), Some(0), "no time passed");
    }
}
