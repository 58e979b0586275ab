//! The loss reports of the sites of a large group, period by period.
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
    /// Records a site's report. A share of few packets is no evidence.
    pub(super) fn take(&mut self, now: Micros, session: u64, losses: Losses) {
        if losses.of >= TELLING_PACKETS {
            let share = (losses.missed as f64 / losses.of as f64).min(1.0);
            self.latest.insert(session, Report { share, at: now });
        }
    }

    /// At the end of a period, returns its reports: a site without a report lost nothing.
    pub(super) fn end_period(&mut self, now: Micros, members: u64) -> Option<Vec<f64>> {
        let period = report_period(members);
        if now.since(self.began) < period {
            return None;
        }
        self.began = now;
        self.latest.retain(|_, report| now.since(report.at) <= period);
        Some(self.latest.values().map(|report| report.share).collect())
    }

    /// The latest report of a site; reports are forgotten at the end of a period without one.
    pub(super) fn share_of(&self, session: u64) -> f64 {
        self.latest.get(&session).map_or(0.0, |report| report.share)
    }

    /// The sites that lost more than this.
    pub(super) fn above(&self, share: f64) -> impl Iterator<Item = u64> + '_ {
        self.latest.iter().filter(move |(_, report)| report.share > share).map(|(session, _)| *session)
    }

    /// Forgets all reports; the group became small, and every loss is requested.
    pub(super) fn clear(&mut self) {
        self.latest.clear();
    }
}
