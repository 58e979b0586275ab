//! The plan of each feed as carried out: the running legs, and the leg to which each site belongs.
use std::sync::Arc;

use downburst_hub::{LegStep, RunningLeg as _, SessionInput};
use downburst_model::{FeedName, LegId, SiteName};
use downburst_session::{HubInput, is_catch_up};
use downburst_vcmtp::Straggler;

use crate::hub::feeds::unknown_feed;
use crate::hub::legs::leg::Leg;
use crate::hub::roster::{Command, Handle};
use crate::hub::{Hub, lock};
use crate::lines::{Event, Failure, PlanLine};

/// All plans and running legs.
pub(in crate::hub) type Plans = downburst_hub::Plans<Leg>;

impl Hub {
    /// Carries out a plan: starts its multicast legs, moves connected sites one by one, ends unused legs.
    pub(in crate::hub) fn apply_plan(self: &Arc<Self>, mut plan: PlanLine) -> Result<(), Failure> {
        let feed = self.feeds.find(&plan.feed).ok_or_else(|| unknown_feed(plan.feed.as_str()))?;
        for line in &mut plan.legs {
            self.put_on_circuit(line)?;
        }
        let mut plans = lock(&self.legs.plans);
        plans.check(&plan).map_err(|sentence| Failure::new("stale-plan", sentence))?;
        for line in &plan.legs {
            plans.check_relay(line).map_err(|sentence| Failure::new("bad-request", sentence))?;
        }
        for line in &plan.legs {
            plans.relayed_mut().recount(line);
            match plans.step(line) {
                Some(LegStep::Start) => {
                    let leg = Leg::start(self, &feed, line)?;
                    plans.begin_relayed(&plan.feed, line, leg.pass());
                    plans.runs(line.leg, leg);
                }
                Some(LegStep::Rate(rate_bps)) => {
                    plans.find_mut(line.leg).into_iter().for_each(|leg| leg.rate(rate_bps));
                }
                None => {}
            }
        }
        if let Some(leg) = plan.unicast_leg() {
            feed.count_unicast_under(leg);
        }
        let name = plan.feed.clone();
        let gone = plans.put(plan);
        self.step_relays(&mut plans);
        for (site, handle) in self.roster.sessions() {
            let _ = handle.commands.send(Command::LookAtFeeds);
            self.place(&plans, &name, &site, &handle);
        }
        drop(plans);
        self.look_at_paths();
        self.end_later(gone);
        Ok(())
    }

    /// Ends legs once their sites have left; products that a site still lacks then come from the log.
    fn end_later(self: &Arc<Self>, legs: Vec<LegId>) {
        if legs.is_empty() {
            return;
        }
        let hub = Arc::downgrade(self);
        tokio::spawn(async move {
            for _ in 0..LINGER.as_millis() / LOOK_AGAIN.as_millis() {
                tokio::time::sleep(LOOK_AGAIN).await;
                let Some(hub) = hub.upgrade() else { return };
                let heard = |leg: &LegId| {
                    hub.roster.sessions().values().any(|handle| lock(&handle.status).hears(*leg))
                };
                if !legs.iter().any(heard) {
                    break;
                }
            }
            if let Some(hub) = hub.upgrade() {
                lock(&hub.legs.plans).end(&legs).iter().for_each(Leg::stop);
            }
        });
    }

    /// Handles a change of sites or their rights: legs drop the sites that may no longer read, and sites join and
    /// leave accordingly.
    pub(in crate::hub) fn look_at_rights(&self) {
        let mut plans = lock(&self.legs.plans);
        plans.all().for_each(Leg::look_at_rights);
        self.step_relays(&mut plans);
        self.place_misplaced(&plans);
    }

    /// Offers and ends legs until each connected site has those to which it belongs.
    pub(in crate::hub) fn place_misplaced(&self, plans: &Plans) {
        for (site, handle) in self.roster.sessions().iter().filter(|(_, handle)| !handle.stand_by) {
            for feed in plans.feeds() {
                let wanted = self.wanted(plans, feed, site, handle).map(|leg| leg.join().leg);
                if lock(&handle.status).is_misplaced(feed, wanted) {
                    self.place(plans, feed, site, handle);
                }
            }
        }
    }

    /// Offers a site that has just connected the legs to which it belongs.
    pub(in crate::hub) fn place_site(&self, site: &SiteName, handle: &Handle) {
        let plans = lock(&self.legs.plans);
        for feed in plans.feeds() {
            self.place(&plans, feed, site, handle);
        }
    }
}

impl Hub {
    /// Moves a site that loses too much of a leg to unicast, for a while or until the plan changes; the leg
    /// continues without it. The site is notified now and not after it has left: on a link that the group fills, the
    /// request to leave takes its time.
    pub(in crate::hub) fn take_off(&self, leg: LegId, straggler: &Straggler) {
        if is_catch_up(leg) {
            return self.leave_catch_up(leg, straggler.session);
        }
        let sentence = format!("{straggler} for two seconds; it is served alone");
        let mut plans = lock(&self.legs.plans);
        let (Some(feed), now) = (plans.feed_of(leg), self.clock.monotonic()) else { return };
        let found = self.roster.sessions().into_iter().find(|(_, it)| it.serial == straggler.session);
        if let Some((site, handle)) = found.filter(|(site, _)| plans.take_off(now, site, leg)) {
            tracing::info!(leg = leg.0, site = site.as_str(), "a site is taken off a leg: {sentence}");
            self.place(&plans, &feed, &site, &handle);
            drop(plans);
            let (state, reason) = ("too-slow", Some(sentence));
            self.event(&Event::Leg { feed, leg, site, state, after: None, reason, reception: None });
        }
    }

    /// Notes that a site left a leg that is too fast for it: it is not placed there until it may try again.
    pub(in crate::hub) fn let_rest(&self, site: &SiteName, leg: LegId) {
        lock(&self.legs.plans).let_rest(self.clock.monotonic(), site, leg);
    }
}

impl Hub {
    /// Notifies a session of the leg of a feed to which its site belongs.
    fn place(&self, plans: &Plans, feed: &FeedName, site: &SiteName, handle: &Handle) {
        let now = self.clock.monotonic();
        let wanted = self.wanted(plans, feed, site, handle);
        let wanted = wanted.filter(|leg| !plans.is_too_slow(now, site, leg.join().leg));
        let mut status = lock(&handle.status);
        if let Some(old) = status.belongs(feed, wanted.map(|leg| leg.join().leg)) {
            let _ = handle.commands.send(Command::Tell(SessionInput::Pass(HubInput::LeaveLeg(old))));
        }
        if let Some(leg) = wanted {
            let interface = self.listens_on(plans, feed, site, leg.join().leg);
            leg.expect_listener();
            // Under the lock of the status: every later key is sent to all sites that were offered the leg.
            let join = leg.join_of(self, site, handle, interface);
            let _ = handle.commands.send(Command::Tell(SessionInput::JoinLeg(Box::new(join))));
        }
    }

    /// The interface on which a site receives a leg: the leg's circuit, or the one that the operator configured.
    pub(in crate::hub) fn listens_on(
        &self,
        plans: &Plans,
        feed: &FeedName,
        site: &SiteName,
        leg: LegId,
    ) -> String {
        let line = plans.line(feed, leg);
        let inside = line.and_then(|line| self.circuit_address(line.circuit?, site));
        inside.unwrap_or_else(|| self.roster.site(site).map(|line| line.interface).unwrap_or_default())
    }

    /// The leg to which a site belongs. A leg carries a whole feed: only sites that may read all of it get its key.
    pub(in crate::hub) fn wanted<'a>(
        &self,
        plans: &'a Plans,
        feed: &FeedName,
        site: &SiteName,
        handle: &Handle,
    ) -> Option<&'a Leg> {
        let leg = plans.wanted(feed, site)?;
        let barred = self.roster.barred(site, &handle.credential_sha256, feed, self.clock.wall());
        barred.is_none().then_some(leg)
    }
}

impl Hub {
    /// Ends the plan and the legs of a feed that was removed.
    pub(in crate::hub) fn forget_plan(&self, feed: &FeedName) {
        lock(&self.legs.plans).forget(feed).iter().for_each(Leg::stop);
    }

    /// Ends all legs.
    pub(in crate::hub) fn end_legs(&self) {
        lock(&self.legs.plans).end_all().iter().for_each(Leg::stop);
    }
}

/// A site that does not answer delays the end of a leg no longer than its session's liveness limit.
const LINGER: std::time::Duration = std::time::Duration::from_secs(20);
const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_millis(100);
