//! The placing of sites on legs, and the steps from one plan to the next.
use downburst_model::{FeedName, LegId, Micros, SiteName, Transport};
use downburst_session::LegJoin;

use super::{FanOut, LegLine, PlanLine, Plans};
use crate::session::{SessionStatus, TOO_SLOW_REST};

/// The driver's handle of a running leg.
pub trait RunningLeg {
    /// The join parameters that are the same for every site.
    fn join(&self) -> &LegJoin;
}

/// The step that a line of a new plan demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LegStep {
    /// Start the leg.
    Start,
    /// Change the rate of the running leg, to these bits per second.
    Rate(u64),
}

impl<L> Plans<L> {
    /// Refuses a plan that is older than the one in force.
    ///
    /// # Errors
    ///
    /// A sentence about both versions.
    pub fn check(&self, plan: &PlanLine) -> Result<(), String> {
        let last = self.version(&plan.feed);
        if plan.version >= last {
            return Ok(());
        }
        Err(format!(
            "plan {} of feed {} is older than plan {last}, which is in force",
            plan.version, plan.feed
        ))
    }

    /// Refuses a line that gives a running leg another relay, or another fan-out.
    ///
    /// # Errors
    ///
    /// A sentence about the leg.
    pub fn check_relay(&self, line: &LegLine) -> Result<(), String> {
        let number = line.leg.0;
        if line.relay.is_none() && line.fan_out == FanOut::Unicast {
            return Err(format!("leg {number} has no relay to send it by unicast; name one, or use a group"));
        }
        let (relay, is_new) = (self.relayed().relay_of(line.leg), self.find(line.leg).is_none());
        if is_new || (relay == line.relay.as_ref() && self.relayed().fan_out_of(line.leg) == line.fan_out) {
            return Ok(());
        }
        Err(format!(
            "leg {number} runs, and its relay and fan-out can't be changed; give the leg another number"
        ))
    }

    /// Keeps a site off a leg that is too fast for it, until it may try again; false if the site rests already.
    pub fn take_off(&mut self, now: Micros, site: &SiteName, leg: LegId) -> bool {
        let rests = self.is_too_slow(now, site, leg);
        if !rests {
            self.let_rest(now, site, leg);
        }
        !rests
    }

    /// Keeps a site off a leg that it left as too fast, until it may try again.
    pub fn let_rest(&mut self, now: Micros, site: &SiteName, leg: LegId) {
        self.rest(now, site, leg, now.plus(TOO_SLOW_REST));
    }
}

impl<L: RunningLeg> Plans<L> {
    /// The feed of a running leg.
    pub fn feed_of(&self, leg: LegId) -> Option<FeedName> {
        self.find(leg).map(|leg| leg.join().feed.clone())
    }

    /// The step to a line of a new plan; `None` if its leg runs as it is.
    pub fn step(&self, line: &LegLine) -> Option<LegStep> {
        if line.transport != Transport::Multicast {
            return None;
        }
        match self.find(line.leg) {
            Some(leg) => (leg.join().rate_bps != line.rate_bps).then_some(LegStep::Rate(line.rate_bps)),
            None => Some(LegStep::Start),
        }
    }
}

impl PlanLine {
    /// The leg under which deliveries to single sites are counted, if the plan names one.
    pub fn unicast_leg(&self) -> Option<LegId> {
        self.legs.iter().find(|line| line.transport != Transport::Multicast).map(|line| line.leg)
    }
}

impl SessionStatus {
    /// Notes that the site belongs to a leg of the feed now, or to none; returns another leg that it has to leave.
    pub fn belongs(&mut self, feed: &FeedName, wanted: Option<LegId>) -> Option<LegId> {
        let old = self.offered.get(feed).copied().filter(|old| wanted != Some(*old));
        match wanted {
            Some(leg) => drop(self.offered.insert(feed.clone(), leg)),
            None => drop(self.offered.remove(feed)),
        }
        old
    }

    /// True if the site was offered another leg of the feed than it belongs to now.
    pub fn is_misplaced(&self, feed: &FeedName, wanted: Option<LegId>) -> bool {
        self.offered.get(feed).copied() != wanted
    }
}

#[cfg(test)]
mod tests {
    use downburst_model::Epoch;
    use downburst_vcmtp::LegKey;

    use super::*;

    struct Running(LegJoin);

    impl RunningLeg for Running {
        fn join(&self) -> &LegJoin {
            &self.0
        }
    }

    fn feed() -> FeedName {
        FeedName::parse("A").unwrap()
    }

    fn oslo() -> SiteName {
        SiteName::parse("oslo").unwrap()
    }

    fn running(leg: LegId, rate_bps: u64) -> Running {
        Running(LegJoin {
            leg,
            feed: feed(),
            epoch: Epoch(1),
            leg_epoch: 1,
            group: "239.0.0.1".to_owned(),
            port: 17,
            key: LegKey::new(1, [1; 32]),
            key_in_use: None,
            sender_key: None,
            proof_secret: None,
            pass: None,
            interface: String::new(),
            rate_bps,
            source: None,
            channel: None,
        })
    }

    fn plan(version: u64, legs: &[(u32, &str, u64)]) -> PlanLine {
        let mut lines = Vec::new();
        for (leg, transport, rate_bps) in legs {
            lines.push(serde_json::json!({
                "leg": leg, "transport": transport, "sites": [], "rate_bps": rate_bps,
            }));
        }
        serde_json::from_value(serde_json::json!({"feed": "A", "version": version, "legs": lines})).unwrap()
    }

    #[test]
    fn a_plan_that_was_overtaken_is_refused() {
        let mut plans = Plans::<Running>::default();
        plans.put(plan(3, &[]));
        assert_eq!((plans.check(&plan(3, &[])), plans.check(&plan(4, &[]))), (Ok(()), Ok(())));
        let sentence = plans.check(&plan(2, &[])).unwrap_err();
        assert_eq!(sentence, "plan 2 of feed A is older than plan 3, which is in force");
    }

    #[test]
    fn a_plan_starts_the_legs_that_do_not_run_and_changes_rates() {
        let mut plans = Plans::default();
        plans.runs(LegId(5), running(LegId(5), 100));
        let plan =
            plan(1, &[(5, "multicast", 100), (5, "multicast", 70), (6, "multicast", 100), (7, "unicast", 0)]);
        let steps: Vec<_> = plan.legs.iter().map(|line| plans.step(line)).collect();
        assert_eq!(steps, [None, Some(LegStep::Rate(70)), Some(LegStep::Start), None]);
        assert_eq!(plan.unicast_leg(), Some(LegId(7)));
        assert_eq!((plans.feed_of(LegId(5)), plans.feed_of(LegId(6))), (Some(feed()), None));
    }

    #[test]
    fn a_running_leg_keeps_its_relay() {
        let mut plans = Plans::default();
        let line = |relay| LegLine { relay, ..plan(1, &[(5, "multicast", 100)]).legs.remove(0) };
        assert_eq!(plans.check_relay(&line(Some(oslo()))), Ok(()), "it does not run");
        plans.runs(LegId(5), running(LegId(5), 100));
        assert_eq!(plans.check_relay(&line(None)), Ok(()));
        let sentence = plans.check_relay(&line(Some(oslo()))).unwrap_err();
        assert_eq!(
            sentence,
            "leg 5 runs, and its relay and fan-out can't be changed; give the leg another number"
        );
        let unicast = |relay| LegLine { fan_out: FanOut::Unicast, ..line(relay) };
        let sentence = plans.check_relay(&unicast(None)).unwrap_err();
        assert_eq!(sentence, "leg 5 has no relay to send it by unicast; name one, or use a group");
        plans.begin_relayed(&feed(), &line(Some(oslo())), None);
        assert_eq!(plans.check_relay(&line(Some(oslo()))), Ok(()));
        assert!(plans.check_relay(&unicast(Some(oslo()))).is_err());
    }

    #[test]
    fn a_site_is_taken_off_once_and_rests() {
        let mut plans = Plans::<Running>::default();
        let (leg, start) = (LegId(5), Micros::from_secs(9));
        assert!(plans.take_off(start, &oslo(), leg));
        assert!(!plans.take_off(start.plus(Micros(1)), &oslo(), leg), "it is on its way already");
        assert!(plans.take_off(start.plus(TOO_SLOW_REST), &oslo(), leg), "it tried again");
        plans.let_rest(start.plus(TOO_SLOW_REST).plus(Micros(5)), &oslo(), leg);
        assert!(plans.is_too_slow(start.plus(TOO_SLOW_REST).plus(TOO_SLOW_REST), &oslo(), leg));
    }

    #[test]
    fn a_site_leaves_the_leg_to_which_it_no_longer_belongs() {
        let mut status = SessionStatus::default();
        assert_eq!(status.belongs(&feed(), Some(LegId(5))), None);
        assert!(!status.is_misplaced(&feed(), Some(LegId(5))) && status.is_misplaced(&feed(), None));
        assert_eq!(status.belongs(&feed(), Some(LegId(5))), None, "it is offered the same leg again");
        assert_eq!(status.belongs(&feed(), Some(LegId(6))), Some(LegId(5)));
        assert_eq!(status.belongs(&feed(), None), Some(LegId(6)));
        assert_eq!((status.belongs(&feed(), None), status.offered.len()), (None, 0));
    }
}
