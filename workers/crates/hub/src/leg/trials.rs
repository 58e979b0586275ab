//! The losses of a leg's sites at the rates at which it was sent: measurements of their lines.
use std::collections::BTreeMap;

use downburst_model::SiteName;
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

/// A leg has no more than five intervals in a second.
const MOST_RATES: usize = 8;

/// Sites in a report of a trial.
const MOST_LOSSES: usize = 256;

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
}
