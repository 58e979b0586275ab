//! The rate of a multicast leg when many of its sites lose packets at the same time.
//!
//! One lossy site never slows a leg: its repairs go to it alone, and a site that loses far more than repair is
//! meant for, or receives no repairs, is reported as a straggler, to be served alone. When the *median* site
//! (or another quantile, as the operator sets) loses, the cause may be shared (the sender's link, a switch, a
//! busy host), and then repair for all sites costs more than a lower rate. The rate is cut by a factor and
//! raised again in steps: additive increase, multiplicative decrease, by a quantile of the receivers.
//!
//! A cut requires loss in several consecutive intervals: a host that stalls for a moment loses a burst, which is
//! no evidence about the rate, and occasional bursts would lower the rate of a leg step by step. A loss counts
//! for a second after its packet was sent: later requests are the cost of an earlier rate, and would be
//! compared with fewer packets after a cut.
//!
//! Loss that does not depend on the rate (noise on every link) is distinguished by the effect of a cut. On a
//! path of capacity `c`, a sender at rate `r` loses `1 - c / r`; after a cut by `f` that would be
//! `1 - (1 - loss) / f`. If the loss stays nearer to its former value, the cut is reverted, and that much
//! loss is left to repair for a while.
//!
//! In a large group most sites that lost a packet do not request it themselves (`suppression.rs`). There the sites
//! report their losses periodically (`loss_reports.rs`), and the rate is judged once per report period.
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use downburst_model::{Micros, RangeSet};

use crate::packet::notice::SMALL_GROUP;
use crate::packet::request::Request;

mod reports;

use reports::Reports;

/// The rate of one leg.
pub struct LegRate {
    asked_bps: u64,
    quantile: f64,
    current_bps: u64,
    interval_began: Micros,
    /// The last packet before each of the latest intervals and the present one.
    marks: VecDeque<u64>,
    /// The loss of the deciding site in the latest intervals, the oldest first.
    shares: [f64; LOSSY_INTERVALS],
    cut_at: Option<Micros>,
    trial: Option<Trial>,
    /// The share of loss left to repair, and the end of this tolerance.
    tolerated: (f64, Micros),
    sites: BTreeMap<u64, Lost>,
    reports: Reports,
    /// True for a large group: its sites request few of their losses.
    by_reports: bool,
    /// The loss of the deciding site at the last judgement.
    share: f64,
    named: Vec<Straggler>,
}

/// A cut with its effect still to be observed.
#[derive(Clone, Copy)]
struct Trial {
    /// The rate to return to if the loss does not depend on the rate.
    before_bps: u64,
    /// The loss that led to the cut.
    share: f64,
    /// The ratio of the new rate to the former one.
    factor: f64,
    /// False in the first interval after the cut, in which requests for earlier packets still arrive.
    settled: bool,
}

#[derive(Default)]
struct Lost {
    /// Packets up to here were counted; repeated requests are not counted again.
    counted_to: u64,
    /// Packets of this interval: lost lately, and requested (again) a second or more after they were sent.
    lately: u64,
    overdue: u64,
    /// The mean of overdue packets per interval, over about a second: sites repeat requests in waves.
    mean_overdue: f64,
    /// Rises with each interval of great loss and falls with each other: a site behind a slow link requests in waves.
    strikes: u32,
}

/// A site that the group can't serve.
#[derive(Clone, Debug, PartialEq)]
pub struct Straggler {
    /// The driver's number for the site's session.
    pub session: u64,
    /// Its share of lost packets in the last interval.
    pub share: f64,
    /// The mean number of packets it requested per interval that had been sent a second before or earlier.
    pub overdue: f64,
}

impl LegRate {
    /// Begins at the rate of the plan, in Ethernet-frame bits per second. `quantile` selects the deciding site:
    /// 0.5 follows the median, 0.9 spares all but the worst tenth.
    pub fn new(asked_bps: u64, quantile: f64) -> Self {
        Self {
            asked_bps,
            quantile: if quantile.is_finite() { quantile.clamp(0.0, 1.0) } else { 0.5 },
            current_bps: asked_bps,
            interval_began: Micros(0),
            marks: VecDeque::from([0]),
            shares: [0.0; LOSSY_INTERVALS],
            cut_at: None,
            trial: None,
            tolerated: (TOLERATED_SHARE, Micros(0)),
            sites: BTreeMap::new(),
            reports: Reports::default(),
            by_reports: false,
            share: 0.0,
            named: Vec::new(),
        }
    }

    /// The present rate, in Ethernet-frame bits per second.
    pub fn current_bps(&self) -> u64 {
        self.current_bps
    }

    /// Sets another rate of the plan.
    pub fn ask(&mut self, asked_bps: u64) {
        self.asked_bps = asked_bps;
        self.current_bps = asked_bps;
    }

    /// Takes a session's request for packets, or its loss report. Packets up to `sent` exist.
    pub fn lost(&mut self, now: Micros, session: u64, request: &Request, sent: u64) {
        if let Some(losses) = request.losses {
            self.reports.take(now, session, losses);
        }
        if !request.packets.is_empty() {
            self.asked(session, request.packets.clone(), sent);
        }
    }

    fn asked(&mut self, session: u64, mut packets: RangeSet, sent: u64) {
        let old = self.old();
        let losses = self.sites.entry(session).or_default();
        packets.remove(sent.saturating_add(1), u64::MAX);
        let all = packets.count();
        packets.remove(0, old);
        losses.overdue = losses.overdue.saturating_add(all - packets.count());
        packets.remove(0, losses.counted_to);
        losses.lately += packets.count();
        losses.counted_to = losses.counted_to.max(packets.last().unwrap_or(0));
    }

    /// In a large group, whose sites request few of their losses, the shares that they reported lately, by session;
    /// those without loss are absent. `None` in a small group, where requests show every loss.
    pub fn reported_shares(&self) -> Option<BTreeMap<u64, f64>> {
        let share = |session: u64| (session, self.reports.share_of(session));
        self.by_reports.then(|| self.reports.above(0.0).map(share).collect())
    }

    /// True at the end of an interval, when [`Self::look`] should be called.
    pub fn is_due(&self, now: Micros) -> bool {
        now.since(self.interval_began) >= INTERVAL
    }

    /// Judges the past interval; returns the rate if it changed. `sent` is the last packet number so far (repairs
    /// have none), `members` the number of sites on the leg.
    pub fn look(&mut self, now: Micros, sent: u64, members: usize) -> Option<u64> {
        let sent_lately = sent.saturating_sub(self.marks.back().copied().unwrap_or(0));
        let shares = self.shares_to_judge(now, sent_lately, members);
        if let Some(shares) = &shares {
            self.share = self.deciding_share(shares, members);
        }
        self.count_strikes(sent_lately, members, self.share);
        self.begin_interval(now, sent);
        let before = self.current_bps;
        if now > self.tolerated.1 {
            self.tolerated = (TOLERATED_SHARE, Micros(0));
        }
        match self.trial {
            _ if shares.is_none() => {}
            Some(trial) if !trial.settled => self.trial = Some(Trial { settled: true, ..trial }),
            trial => self.judge(now, trial, self.share),
        }
        (self.current_bps != before).then_some(self.current_bps)
    }

    /// Sites with so much loss for so long that they belong on unicast or in a slower group; each is reported once.
    pub fn stragglers(&mut self) -> Vec<Straggler> {
        std::mem::take(&mut self.named)
    }

    /// True while a site loses so much that its link may be too narrow: its own repairs must then back off like TCP.
    pub fn is_struggling(&self, session: u64) -> bool {
        self.sites.get(&session).is_some_and(|losses| losses.strikes > 0)
    }

    /// The last packet sent a second ago or earlier.
    fn old(&self) -> u64 {
        if self.marks.len() > RECENT_INTERVALS { self.marks.front().copied().unwrap_or(0) } else { 0 }
    }

    fn begin_interval(&mut self, now: Micros, sent: u64) {
        self.interval_began = now;
        self.marks.push_back(sent);
        if self.marks.len() > RECENT_INTERVALS + 1 {
            self.marks.pop_front();
        }
        let old = self.old();
        self.sites
            .retain(|_, losses| losses.strikes > 0 || losses.counted_to > old || losses.mean_overdue > 1.0);
        for losses in self.sites.values_mut() {
            losses.lately = 0;
            losses.overdue = 0;
        }
    }

    /// Counts strikes against lossy sites. While all lose alike, the rate is wrong, and no site gets a strike.
    fn count_strikes(&mut self, sent: u64, members: usize, median: f64) {
        for losses in self.sites.values_mut() {
            losses.mean_overdue += (losses.overdue as f64 - losses.mean_overdue) / RECENT_INTERVALS as f64;
        }
        if sent < TELLING_PACKETS {
            return;
        }
        for session in self.reports.above(STRAGGLER_SHARE) {
            self.sites.entry(session).or_default();
        }
        let reports = &self.reports;
        let struggles =
            |session: u64, lost: &Lost| lost.is_too_much(sent) || reports.share_of(session) > STRAGGLER_SHARE;
        let struggling = self.sites.iter().filter(|(session, lost)| struggles(**session, lost)).count();
        let blame = median < STRAGGLER_SHARE / 2.0 && struggling <= members / 2;
        for (session, losses) in &mut self.sites {
            let strikes = if blame && struggles(*session, losses) {
                losses.strikes + 1
            } else {
                losses.strikes.saturating_sub(1)
            };
            losses.strikes = strikes % STRIKES;
            if strikes == STRIKES {
                let share = (losses.lately as f64 / sent as f64).max(reports.share_of(*session));
                self.named.push(Straggler { session: *session, share, overdue: losses.mean_overdue });
            }
        }
    }

    fn judge(&mut self, now: Micros, trial: Option<Trial>, share: f64) {
        self.shares.rotate_left(1);
        self.shares[LOSSY_INTERVALS - 1] = share;
        if share <= self.tolerated.0 {
            return self.raise(now);
        }
        // A period of reports is longer than any stall.
        let enough = if self.by_reports { LOSSY_PERIODS } else { LOSSY_INTERVALS };
        let latest = self.shares.get(LOSSY_INTERVALS - enough..).unwrap_or_default();
        if latest.iter().any(|share| *share <= self.tolerated.0) {
            return;
        }
        let mut sorted = latest.to_vec();
        sorted.sort_by(f64::total_cmp);
        let usual = sorted.get(enough / 2).copied().unwrap_or(share);
        self.shares = [0.0; LOSSY_INTERVALS];
        match trial {
            Some(trial) if usual > trial.undecided() => self.take_back(now, trial, usual),
            _ => self.cut(now, usual),
        }
    }

    fn cut(&mut self, now: Micros, share: f64) {
        // In a cut after another one, the first one helped, and is not reverted with this one.
        let before_bps = self.current_bps;
        // The received packets are the capacity of the path, and repairs need their part of it.
        let factor = ((1.0 - share) * FOR_DATA).clamp(DEEPEST_CUT, CUT);
        self.trial = Some(Trial { before_bps, share, factor, settled: false });
        self.cut_at = Some(now);
        self.current_bps = ((self.current_bps as f64 * factor) as u64).max(self.asked_bps / 20).max(1);
    }

    /// Reverts a cut: the loss does not depend on the rate, so a lower rate helps no site.
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

    /// The shares of loss by site, if it is time to judge them; sites without loss may be absent.
    fn shares_to_judge(&mut self, now: Micros, sent: u64, members: usize) -> Option<Vec<f64>> {
        self.by_reports = members as u64 > SMALL_GROUP;
        if self.by_reports {
            return self.reports.end_period(now, members as u64);
        }
        self.reports.clear();
        let share = |lost: &Lost| if sent == 0 { 0.0 } else { lost.lately as f64 / sent as f64 };
        Some(self.sites.values().map(share).collect())
    }

    /// The loss of the deciding site, where sites without loss count, and sites that lose far more than most do
    /// not.
    fn deciding_share(&self, shares: &[f64], members: usize) -> f64 {
        let mut shares = shares.to_vec();
        shares.sort_unstable_by(|a, b| b.total_cmp(a));
        let above = |limit: f64| shares.iter().filter(|share| **share > limit).count();
        let most_are_well = above(STRAGGLER_SHARE / 2.0) <= members / 2;
        let apart = if most_are_well { above(STRAGGLER_SHARE) } else { 0 };
        let worse = (members.saturating_sub(apart) as f64 * (1.0 - self.quantile) + ROUNDING) as usize;
        shares.get(apart + worse).copied().unwrap_or(0.0)
    }
}

impl Lost {
    /// True if too many packets were lost lately, or requested repeatedly because repairs don't arrive: a site
    /// requests a limited number of packets at a time, so one that is far behind requests few recent ones.
    fn is_too_much(&self, sent: u64) -> bool {
        let limit = sent as f64 * STRAGGLER_SHARE;
        self.lately as f64 > limit || self.mean_overdue > limit.min(MANY_OVERDUE)
    }
}

impl fmt::Display for Straggler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.share > STRAGGLER_SHARE {
            write!(f, "it lost {:.0} % of the leg, which repair is not for,", self.share * 100.0)
        } else {
            write!(
                f,
                "repairs came too late: {:.0} packets sent a second before were requested every quarter of a \
                 second",
                self.overdue
            )
        }
    }
}

impl Trial {
    /// Halfway between the loss expected after the cut if it is independent of the rate and that of an overfull path.
    fn undecided(&self) -> f64 {
        let overfull = (1.0 - (1.0 - self.share) / self.factor).max(0.0);
        f64::midpoint(self.share, overfull)
    }
}

/// Above this loss a copy of its own costs a site's link less than the group with its repairs.
const STRAGGLER_SHARE: f64 = 0.2;

/// Two seconds of intervals: a handover or a reboot of a switch is over by then.
const STRIKES: u32 = 8;

/// An eighth of the packets a site requests at a time: at any rate, a site that waits for so many is far behind.
const MANY_OVERDUE: f64 = 512.0;

/// Fewer packets in an interval are no evidence of a share.
const TELLING_PACKETS: u64 = 50;

/// The largest and the smallest factor of a cut.
const CUT: f64 = 0.7;
const DEEPEST_CUT: f64 = 0.35;

/// The rest of the rate is for repairs of earlier losses.
const FOR_DATA: f64 = 0.95;

/// The time for which loss independent of the rate is left to repair before it is judged again.
const TOLERANCE_LASTS: Micros = Micros::from_secs(30);

/// Several round trips on any path suited to multicast, so that requests for the interval's packets have arrived.
const INTERVAL: Micros = Micros::from_millis(250);

/// The number of consecutive intervals with loss before a cut: a stall of 250 ms affects two.
const LOSSY_INTERVALS: usize = 3;

/// The same for periods of reports, a second or more each.
const LOSSY_PERIODS: usize = 2;

/// The time until requests of distant sites have arrived, in intervals.
const RECENT_INTERVALS: usize = 4;

/// The time that a leg keeps its rate after a cut, before it is raised.
const CALM: Micros = Micros::from_secs(2);

/// Corrects the rounding of binary fractions: a tenth of ten is one.
const ROUNDING: f64 = 1e-9;

/// Up to this share repair costs less than a lower rate.
const TOLERATED_SHARE: f64 = 0.02;

#[cfg(test)]
mod tests;
