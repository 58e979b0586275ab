//! Catch-up by group at this node: its facts, and the steps that the decision demands.
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use downburst_hub::{
    CatchUpFacts, CatchUpLine, CatchUpStep, LegLine, LegSession, Progress, Returned, RunningLeg as _,
    SessionInput, StreamStart,
};
use downburst_log::ProductLog as _;
use downburst_model::{FeedName, LegId, Micros, RangeSet, Sequence, SiteName};
use downburst_session::{HubInput, is_catch_up};

use crate::hub::legs::leg::Leg;
use crate::hub::legs::plans::Plans;
use crate::hub::roster::{Command, Handle};
use crate::hub::{Hub, lock};
use crate::lines::{Event, Failure};

impl Hub {
    /// Looks after sites that catch up together, until the hub stops.
    pub(in crate::hub) async fn tend_catch_ups(self: Arc<Self>) {
        let mut stopping = self.stopping.subscribe();
        let mut turn = tokio::time::interval(LOOK);
        turn.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = turn.tick() => self.look_at_catch_ups(),
                _ = stopping.wait_for(|stop| *stop) => return,
            }
        }
    }

    /// Holds for the backfill of a site that connects and lacks much of a feed that others may lack as well.
    pub(in crate::hub) fn holds_of(&self, site: &SiteName) -> Vec<HubInput> {
        let plans = lock(&self.legs.plans);
        let (facts, mut holds, now) = (Facts::of(self), Vec::new(), self.clock.monotonic());
        for feed in plans.feeds() {
            let live = plans.wanted(feed, site).map(|leg| leg.join().leg);
            let Some(live) = live.filter(|leg| !plans.is_too_slow(now, site, *leg)) else { continue };
            let Some(line) = self.catch_up_line(&plans, feed, live) else { continue };
            let Some(settled_to) = facts.settled(site, feed).map(|settled| frontier(&settled)) else {
                continue;
            };
            let head = self.feeds.find(feed).map_or(0, |feed| feed.log.head().0);
            if facts.bytes(feed, settled_to, head) >= line.least_bytes {
                holds.push(self.hold(feed, Micros::from_millis(line.wait_ms).plus(JOIN_WAIT)));
            }
        }
        holds
    }

    /// Notes that a site receives a live leg from here on.
    pub(in crate::hub) fn site_returned(&self, returned: Returned) {
        let may_wait = {
            let plans = lock(&self.legs.plans);
            self.catch_up_line(&plans, &returned.feed, returned.live).is_some()
        };
        if may_wait {
            lock(&self.legs.catch_ups).returned(self.clock.monotonic(), returned);
        }
    }

    /// The sessions as a leg sees them. Sessions take part in a stream beside their leg without a place in the plan.
    pub(in crate::hub) fn leg_sessions(&self, leg: LegId) -> BTreeMap<SiteName, LegSession> {
        let mut open = self.roster.sessions_on(leg);
        if is_catch_up(leg) {
            let catch_ups = lock(&self.legs.catch_ups);
            for session in open.values_mut() {
                (session.offered, session.hears) = catch_ups.member(leg, session.session);
            }
        }
        open
    }

    /// Has a session leave a stream that is too fast for its site.
    pub(in crate::hub) fn leave_catch_up(&self, leg: LegId, session: u64) {
        let found = self.roster.sessions().into_values().find(|it| it.serial == session);
        found.into_iter().for_each(|handle| pass(&handle, HubInput::LeaveLeg(leg)));
    }

    fn look_at_catch_ups(self: &Arc<Self>) {
        let steps = {
            let mut catch_ups = lock(&self.legs.catch_ups);
            if catch_ups.is_idle() {
                return;
            }
            catch_ups.look(self.clock.monotonic(), &Facts::of(self))
        };
        steps.into_iter().for_each(|step| self.step_catch_up(step));
    }

    fn step_catch_up(self: &Arc<Self>, step: CatchUpStep) {
        match step {
            CatchUpStep::Start(start) => {
                let leg = start.line.leg;
                if let Err(failure) = self.start_stream(&start) {
                    let sentence =
                        format!("sites catch up one by one, as no stream begins: {}", failure.error);
                    self.fault(sentence, Some(&start.feed));
                    lock(&self.legs.catch_ups).failed(leg);
                }
            }
            CatchUpStep::Offer { leg, site, session, feed, to } => {
                self.offer_stream(leg, (&site, session), &feed, to);
            }
            CatchUpStep::Go(leg) => {
                let plans = lock(&self.legs.plans);
                plans.find(leg).into_iter().for_each(Leg::go);
            }
            CatchUpStep::Leave { leg, site, session } => {
                self.with_session(&site, session, |handle| pass(handle, HubInput::LeaveLeg(leg)));
            }
            CatchUpStep::Release { site, session, feed } => {
                self.with_session(&site, session, |handle| pass(handle, HubInput::ReleaseBackfill(feed)));
            }
            CatchUpStep::Stop(leg) => lock(&self.legs.plans).end(&[leg]).iter().for_each(Leg::stop),
            CatchUpStep::Report(report) => {
                tracing::info!(leg = report.leg.0, state = report.state, "{}", report.sentence);
                self.event(&Event::CatchUp(report));
            }
        }
    }

    fn start_stream(self: &Arc<Self>, start: &StreamStart) -> Result<(), Failure> {
        let gone = || Failure::new("not-found", format!("leg {} is gone", start.live.0));
        let feed = self.feeds.find(&start.feed).ok_or_else(gone)?;
        let mut plans = lock(&self.legs.plans);
        let line = plans.line(&start.feed, start.live).ok_or_else(gone)?;
        let line = start.line.leg_line(line);
        let live = plans.find(start.live).ok_or_else(gone)?;
        let leg = live.start_beside(self, &feed, &line, (start.after, start.to))?;
        plans.runs(line.leg, leg);
        Ok(())
    }

    fn offer_stream(&self, leg: LegId, (site, session): (&SiteName, u64), feed: &FeedName, to: Sequence) {
        let plans = lock(&self.legs.plans);
        let (Some(stream), Some(live)) = (plans.find(leg), plans.wanted(feed, site)) else { return };
        let interface = self.listens_on(&plans, feed, site, live.join().leg);
        self.with_session(site, session, |handle| {
            stream.expect_listener();
            let join = stream.join_of(self, site, handle, interface);
            pass(handle, self.hold(feed, JOIN_WAIT));
            let _ = handle.commands.send(Command::Tell(SessionInput::CatchUp(Box::new(join), to)));
        });
    }

    fn hold(&self, feed: &FeedName, wait: Micros) -> HubInput {
        HubInput::HoldBackfill { feed: feed.clone(), until: self.clock.monotonic().plus(wait) }
    }

    fn with_session(&self, site: &SiteName, session: u64, act: impl FnOnce(&Handle)) {
        if let Some(handle) = self.roster.session(site).filter(|handle| handle.serial == session) {
            act(&handle);
        }
    }

    /// The settings of a live leg whose sites may catch up together. A relay's leg goes into its network alone, and
    /// products with a deadline are late after any outage.
    fn catch_up_line(&self, plans: &Plans, feed: &FeedName, live: LegId) -> Option<CatchUpLine> {
        let has_deadline = self.feeds.find(feed)?.deadline_us().is_some();
        let of =
            |line: &LegLine| line.losses.catch_up.clone().filter(|_| line.relay.is_none() && !has_deadline);
        plans.find(live)?;
        plans.line(feed, live).and_then(of)
    }
}

/// The facts for one look.
struct Facts<'a> {
    hub: &'a Hub,
    /// By feed: bytes per number, and the first number that is kept.
    density: RefCell<BTreeMap<FeedName, (f64, u64)>>,
}

impl<'a> Facts<'a> {
    fn of(hub: &'a Hub) -> Self {
        Self { hub, density: RefCell::default() }
    }

    /// The settled numbers of a site in the feed's present log.
    fn settled(&self, site: &SiteName, feed: &FeedName) -> Option<RangeSet> {
        let epoch = self.hub.feeds.find(feed)?.epoch();
        let position = downburst_hub::BacklogFacts::position(self.hub, site, feed)?;
        position.in_epoch(epoch).cloned()
    }

    fn density(&self, feed: &FeedName) -> (f64, u64) {
        if let Some(known) = self.density.borrow().get(feed) {
            return *known;
        }
        let found = self.hub.feeds.find(feed).map_or((0.0, 0), |open| {
            let stat = open.log.stat();
            let numbers = stat.head.0.saturating_add(1).saturating_sub(stat.first.0.max(1));
            (stat.bytes as f64 / numbers.max(1) as f64, stat.first.0)
        });
        self.density.borrow_mut().insert(feed.clone(), found);
        found
    }

    /// True if the site's subscriptions leave its backfill to anything but its session.
    fn takes_all_ages(&self, site: &SiteName, feed: &FeedName) -> bool {
        !self.hub.roster.has_max_age(site, feed)
    }
}

impl CatchUpFacts for Facts<'_> {
    fn line(&self, feed: &FeedName, live: LegId) -> Option<CatchUpLine> {
        self.hub.catch_up_line(&lock(&self.hub.legs.plans), feed, live)
    }

    fn settled_to(&self, site: &SiteName, feed: &FeedName, live: LegId) -> Option<u64> {
        let handle = self.hub.roster.session(site).filter(|handle| !handle.stand_by)?;
        let belongs = {
            let plans = lock(&self.hub.legs.plans);
            self.hub.wanted(&plans, feed, site, &handle).is_some_and(|leg| leg.join().leg == live)
        };
        if !belongs || !self.takes_all_ages(site, feed) {
            return None;
        }
        Some(frontier(&self.settled(site, feed)?))
    }

    fn has(&self, site: &SiteName, feed: &FeedName, after: u64, to: u64) -> bool {
        self.settled(site, feed)
            .is_some_and(|settled| settled.gaps(after.saturating_add(1), to).next().is_none())
    }

    fn bytes(&self, feed: &FeedName, after: u64, to: u64) -> u64 {
        let (each, first) = self.density(feed);
        let numbers = to.saturating_sub(after.max(first.saturating_sub(1)));
        (numbers as f64 * each) as u64
    }

    fn awaits_others(&self, feed: &FeedName, live: LegId) -> bool {
        let (now, plans) = (self.hub.clock.monotonic(), lock(&self.hub.legs.plans));
        let sessions = self.hub.roster.sessions();
        let Some(line) = plans.line(feed, live) else { return false };
        let is_to_come = |site: &SiteName| match sessions.get(site) {
            _ if plans.is_too_slow(now, site, live) => false,
            Some(handle) => !handle.stand_by && lock(&handle.status).joined.get(feed) != Some(&live),
            None => true,
        };
        line.sites.iter().any(is_to_come)
    }

    fn progress(&self, leg: LegId) -> Option<Progress> {
        lock(&self.hub.legs.plans).find(leg).map(Leg::progress)
    }

    fn rate_bps(&self, live: LegId) -> u64 {
        lock(&self.hub.legs.plans).find(live).map_or(0, |leg| leg.join().rate_bps)
    }
}

/// The end of the first settled range.
fn frontier(settled: &RangeSet) -> u64 {
    settled.end_of_range_at(0).unwrap_or_default()
}

fn pass(handle: &Handle, input: HubInput) {
    let _ = handle.commands.send(Command::Tell(SessionInput::Pass(input)));
}

/// The pause between two looks while sites catch up together.
const LOOK: Duration = Duration::from_millis(100);

/// The longest wait of backfill for the join of a group, which takes some round trips.
const JOIN_WAIT: Micros = Micros::from_millis(2_500);
