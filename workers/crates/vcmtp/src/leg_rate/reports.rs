//! What the sites of a large group said of their losses, for one period after the other.
use std::collections::BTreeMap;

use downburst_model::Micros;

use super::TELLING_PACKETS;
use crate::packet::request::Losses;
use crate::receiver::loss_reports::report_period;

/// The latest report of each site.
#[derive(Default)]
pub(super) struct Reports {
    began: Micros,
    latest: BTreeMap<u64, Report>,
}

#[derive(Clone, Copy)]
struct Report {
    share: f64,
    at: Micros,
}

impl Reports {
    /// Notes what a site said. Of few packets a share says nothing.
    pub(super) fn take(&mut self, now: Micros, session: u64, losses: Losses) {
        if losses.of >= TELLING_PACKETS {
            let share = (losses.missed as f64 / losses.of as f64).min(1.0);
            self.latest.insert(session, Report { share, at: now });
        }
    }

    /// What was said in the period that is over, once it is: a site that was silent lost nothing.
    pub(super) fn end_period(&mut self, now: Micros, members: u64) -> Option<Vec<f64>> {
        let period = report_period(members);
        if now.since(self.began) < period {
            return None;
        }
        self.began = now;
        self.latest.retain(|_, report| now.since(report.at) <= period);
        Some(self.latest.values().map(|report| report.share).collect())
    }

    /// What the site said last; reports are forgotten when a period ends in which nothing was said.
    pub(super) fn share_of(&self, session: u64) -> f64 {
        self.latest.get(&session).map_or(0.0, |report| report.share)
    }

    /// The sites that lost more than this.
    pub(super) fn above(&self, share: f64) -> impl Iterator<Item = u64> + '_ {
        self.latest.iter().filter(move |(_, report)| report.share > share).map(|(session, _)| *session)
    }

    /// The group became small: every loss is asked for.
    pub(super) fn clear(&mut self) {
        self.latest.clear();
    }
}
