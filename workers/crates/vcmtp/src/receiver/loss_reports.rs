//! The loss reports of a receiver in a large group. Other sites request most of its losses (`suppression.rs`), so
//! without reports the sender could not distinguish one noisy site from a rate above the path's capacity.
//!
//! Each site reports the number of packets missed once per [`report_period`], if any: all sites together at most
//! [`REPORTS_PER_SECOND`] times. A lost report is not repeated; the next one covers its own period only.
use downburst_model::Micros;

use crate::packet::notice::SMALL_GROUP;
use crate::packet::request::Losses;

/// Decides when a receiver reports its losses.
#[derive(Debug)]
pub(crate) struct LossReports {
    seed: u64,
    since: Option<Mark>,
}

/// The counts at the beginning of the current period.
#[derive(Clone, Copy, Debug)]
struct Mark {
    /// The end of the period.
    due: Micros,
    highest: u64,
    missed: u64,
}

impl LossReports {
    /// `seed` is random: sites with different ones report at different times.
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, since: None }
    }

    /// The report that is due in a group of `members` sites, from the highest packet known and the total of packets
    /// that did not arrive at first.
    pub(crate) fn due(&mut self, now: Micros, members: u64, highest: u64, missed: u64) -> Option<Losses> {
        if members <= SMALL_GROUP {
            self.since = None;
            return None;
        }
        let period = report_period(members);
        let Some(since) = self.since else {
            let first = Micros(self.seed.checked_rem(period.0).unwrap_or(0));
            self.since = Some(Mark { due: now.plus(first), highest, missed });
            return None;
        };
        if now < since.due {
            return None;
        }
        self.since = Some(Mark { due: now.plus(period), highest, missed });
        let losses =
            Losses { missed: missed.saturating_sub(since.missed), of: highest.saturating_sub(since.highest) };
        (losses.missed > 0).then_some(losses)
    }
}

/// The period of the reports in a group of `members` sites.
pub(crate) fn report_period(members: u64) -> Micros {
    let fair = Micros(members.saturating_mul(1_000_000 / REPORTS_PER_SECOND));
    fair.clamp(SHORTEST_PERIOD, LONGEST_PERIOD)
}

/// Of all sites together: a datagram of 60 bytes each, 100 kbit/s.
const REPORTS_PER_SECOND: u64 = 200;

/// On a leg of 1 Mbit/s it has a hundred packets, enough to distinguish 1 % from 5 %.
const SHORTEST_PERIOD: Micros = Micros::from_secs(1);

/// Beyond 2,000 sites there are more reports, not older ones: the rate must follow them.
const LONGEST_PERIOD: Micros = Micros::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_tells_of_each_second_with_losses_and_of_no_other() {
        let mut loss_reports = LossReports::new(0);
        let mut told = Vec::new();
        for tenth in 0..=60u64 {
            // One of fifty is lost in the third and the fourth second.
            let missed = tenth.clamp(20, 40) - 20;
            told.extend(
                loss_reports
                    .due(Micros(tenth * 100_000), 100, tenth * 50, missed)
                    .map(|losses| (tenth, losses)),
            );
        }
        let of_second = |missed| Losses { missed, of: 500 };
        assert_eq!(told, [(21, of_second(1)), (31, of_second(10)), (41, of_second(9))]);
    }

    #[test]
    fn a_small_group_tells_nothing() {
        let mut loss_reports = LossReports::new(7);
        for second in 0..10u64 {
            assert_eq!(loss_reports.due(Micros::from_secs(second), 32, second * 1_000, second * 100), None);
        }
    }

    #[test]
    fn five_hundred_sites_tell_two_hundred_times_a_second_evenly() {
        let mut tenths = [0u64; 100];
        for seed in 0..500u64 {
            let mut loss_reports = LossReports::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            for tenth in 0..100u64 {
                let told = loss_reports.due(Micros(tenth * 100_000), 500, tenth * 100, tenth);
                tenths[tenth as usize] += u64::from(told.is_some());
            }
        }
        let steady = &tenths[30..];
        assert!(steady.iter().all(|told| (1..45).contains(told)), "{tenths:?}");
        assert_eq!(report_period(u64::MAX), LONGEST_PERIOD);
    }
}
