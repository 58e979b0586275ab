//! The plan of each feed as carried out: which legs run, and on which of them each site belongs.
use std::collections::BTreeMap;
use std::sync::Arc;

use downburst_hub::{SessionInput, TOO_SLOW_REST};
use downburst_model::{FeedName, LegId, Micros, Sequence, SiteName, Transport, WallMicros};
use downburst_session::{Forged, HubInput, KeyTaken};
use downburst_vcmtp::{Request, Straggler};

use crate::hub::feeds::unknown_feed;
use crate::hub::legs::leg::Leg;
use crate::hub::roster::{Command, Handle};
use crate::hub::{ByFeed, Hub, lock};
use crate::lines::{Event, Failure, LegLine, PlanLine};

/// All plans and running legs.
#[derive(Default)]
pub(in crate::hub) struct Plans {
    versions: ByFeed<u64>,
    lines: ByFeed<Vec<LegLine>>,
    running: BTreeMap<LegId, Leg>,
    /// Sites that were taken off a leg because they could not keep up, and until when. A site whose session
    /// breaks under what its link can't carry would join again at once.
    too_slow: BTreeMap<(SiteName, LegId), Micros>,
}

impl Hub {
    /// Carries out a plan: starts its multicast legs, moves connected sites one by one, ends unused legs.
    pub(in crate::hub) fn apply_plan(self: &Arc<Self>, mut plan: PlanLine) -> Result<(), Failure> {
        let feed = self.feeds.find(&plan.feed).ok_or_else(|| unknown_feed(plan.feed.as_str()))?;
        for line in &mut plan.legs {
            self.put_on_circuit(line)?;
        }
        let mut plans = lock(&self.legs.plans);
        let last = plans.versions.get(&plan.feed).copied().unwrap_or(0);
        if plan.version < last {
            let sentence = format!(
                "plan {} of feed {} is older than plan {last}, which is in force",
                plan.version, plan.feed
            );
            return Err(Failure::new("stale-plan", sentence));
        }
        for line in plan.legs.iter().filter(|line| line.transport == Transport::Multicast) {
            match plans.running.get_mut(&line.leg) {
                Some(leg) if leg.join.rate_bps != line.rate_bps => leg.rate(line.rate_bps),
                Some(_) => {}
                None => {
                    let leg = Leg::start(self, &feed, line)?;
                    plans.running.insert(line.leg, leg);
                }
            }
        }
        if let Some(unicast) = plan.legs.iter().find(|line| line.transport != Transport::Multicast) {
            feed.count_unicast_under(unicast.leg);
        }
        plans.versions.insert(plan.feed.clone(), plan.version);
        let before = plans.lines.insert(plan.feed.clone(), plan.legs).unwrap_or_default();
        for (site, handle) in self.roster.sessions() {
            let _ = handle.commands.send(Command::LookAtFeeds);
            plans.place(self, &plan.feed, &site, &handle);
        }
        let gone = plans.not_in_plan(&plan.feed, &before);
        drop(plans);
        self.look_at_paths();
        self.end_later(gone);
        Ok(())
    }

    /// Ends legs once their sites have left; what a site lacks then comes from the log.
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
                lock(&hub.legs.plans).end(&legs);
            }
        });
    }

    /// Sites or their rights have changed: legs drop the sites that may not read on, and sites join and leave
    /// accordingly.
    pub(in crate::hub) fn look_at_rights(&self) {
        let plans = lock(&self.legs.plans);
        plans.running.values().for_each(Leg::look_at_rights);
        for (site, handle) in self.roster.sessions().iter().filter(|(_, handle)| !handle.stand_by) {
            for feed in plans.lines.keys() {
                let wanted = plans.wanted(self, feed, site, handle).map(|leg| leg.join.leg);
                if lock(&handle.status).offered.get(feed).copied() != wanted {
                    plans.place(self, feed, site, handle);
                }
            }
        }
    }

    /// Puts a site that just came in on the legs where it belongs.
    pub(in crate::hub) fn place_site(&self, site: &SiteName, handle: &Handle) {
        let plans = lock(&self.legs.plans);
        for feed in plans.lines.keys() {
            plans.place(self, feed, site, handle);
        }
    }
}

impl Hub {
    /// Serves a site alone that loses too much of a leg, for a while or until the plan changes; the leg goes
    /// on without it. The site is notified now and not after it has left: on a link that the group fills, the
    /// request to leave takes its time.
    pub(in crate::hub) fn take_off(&self, leg: LegId, straggler: &Straggler) {
        let sentence = format!("{straggler} for two seconds; it is served alone");
        let mut plans = lock(&self.legs.plans);
        let (Some(feed), now) = (plans.feed_of(leg), self.clock.monotonic()) else { return };
        plans.too_slow.retain(|_, until| *until > now);
        let found = self.roster.sessions().into_iter().find(|(_, it)| it.serial == straggler.session);
        let rests = |site: &SiteName| plans.is_too_slow(now, site, leg);
        if let Some((site, handle)) = found.filter(|(site, _)| !rests(site)) {
            tracing::info!(leg = leg.0, site = site.as_str(), "a site is taken off a leg: {sentence}");
            plans.too_slow.insert((site.clone(), leg), now.plus(TOO_SLOW_REST));
            plans.place(self, &feed, &site, &handle);
            drop(plans);
            let (state, reason) = ("too-slow", Some(sentence));
            self.event(&Event::Leg { feed, leg, site, state, after: None, reason, reception: None });
        }
    }

    /// Notes that a site left a leg that is too fast for it: until it may try again, its place is not there.
    pub(in crate::hub) fn let_rest(&self, site: &SiteName, leg: LegId) {
        let until = self.clock.monotonic().plus(TOO_SLOW_REST);
        lock(&self.legs.plans).too_slow.insert((site.clone(), leg), until);
    }
}

impl Plans {
    /// The feeds that a circuit is to bring to a site, and which circuit.
    pub(in crate::hub) fn circuits_of(&self, site: &SiteName) -> Vec<(FeedName, u32)> {
        let lines = self.lines.iter().flat_map(|(feed, lines)| lines.iter().map(move |line| (feed, line)));
        let legs = lines.filter(|(_, line)| line.transport == Transport::StaticCircuit);
        let carriers = legs.flat_map(|(feed, line)| line.circuits.iter().map(move |it| (feed, it)));
        let carriers = carriers.filter(|(_, carrier)| carrier.site == *site);
        carriers.map(|(feed, carrier)| (feed.clone(), carrier.lease)).collect()
    }

    pub(in crate::hub) fn nak(&self, session: u64, leg: LegId, leg_epoch: u64, request: Request) {
        if let Some(leg) = self.running.get(&leg) {
            leg.nak(session, leg_epoch, request);
        }
    }

    pub(in crate::hub) fn forged(&self, forged: Forged) {
        if let Some(leg) = self.running.get(&forged.leg) {
            leg.forged(forged.leg_epoch);
        }
    }

    pub(in crate::hub) fn key_taken(&self, site: &SiteName, taken: KeyTaken) {
        if let Some(leg) = self.running.get(&taken.leg) {
            leg.key_taken(site, taken);
        }
    }

    /// A session goes on with another credential: the rights of its site end with that one.
    pub(in crate::hub) fn credential_taken(&self, site: &SiteName, former: &str, credential: &str) {
        self.running.values().for_each(|leg| leg.credential_taken(site, former, credential));
    }

    pub(in crate::hub) fn backlog_bytes(&self, leg: LegId) -> u64 {
        self.running.get(&leg).map_or(0, Leg::backlog_bytes)
    }

    pub(in crate::hub) fn first_byte(&self, leg: LegId, sequence: Sequence) -> Option<WallMicros> {
        self.running.get(&leg)?.first_byte(sequence)
    }

    pub(in crate::hub) fn feed_of(&self, leg: LegId) -> Option<FeedName> {
        self.running.get(&leg).map(|leg| leg.join.feed.clone())
    }

    /// Ends everything of a feed that is no more.
    pub(in crate::hub) fn forget(&mut self, feed: &FeedName) {
        self.versions.remove(feed);
        let legs = self.lines.remove(feed).unwrap_or_default();
        for line in legs {
            if let Some(leg) = self.running.remove(&line.leg) {
                leg.stop();
            }
        }
    }

    pub(in crate::hub) fn stop_all(&mut self) {
        for leg in self.running.values() {
            leg.stop();
        }
        self.running.clear();
    }

    /// Tells a session which leg of a feed its site belongs on.
    fn place(&self, hub: &Hub, feed: &FeedName, site: &SiteName, handle: &Handle) {
        let now = hub.clock.monotonic();
        let wanted = self.wanted(hub, feed, site, handle);
        let wanted = wanted.filter(|leg| !self.is_too_slow(now, site, leg.join.leg));
        let mut status = lock(&handle.status);
        if let Some(old) =
            status.offered.get(feed).filter(|old| wanted.is_none_or(|leg| leg.join.leg != **old))
        {
            let _ = handle.commands.send(Command::Tell(SessionInput::Pass(HubInput::LeaveLeg(*old))));
            status.offered.remove(feed);
        }
        if let Some(leg) = wanted {
            status.offered.insert(feed.clone(), leg.join.leg);
            let interface = self.listens_on(hub, feed, site, leg.join.leg);
            leg.expect_listener();
            // Within the lock: a key that is made from here on is told to whoever is offered the leg.
            let join = leg.join_of(hub, site, handle, interface);
            let _ = handle.commands.send(Command::Tell(SessionInput::JoinLeg(Box::new(join))));
        }
    }

    /// Where a site listens to a leg: on the circuit that the leg leaves by, or where the operator said.
    fn listens_on(&self, hub: &Hub, feed: &FeedName, site: &SiteName, leg: LegId) -> String {
        let line = self.lines.get(feed).and_then(|lines| lines.iter().find(|line| line.leg == leg));
        let inside = line.and_then(|line| hub.circuit_address(line.circuit?, site));
        inside.unwrap_or_else(|| hub.roster.site(site).map(|line| line.interface).unwrap_or_default())
    }

    /// True while a site rests from a leg that was too fast for it.
    pub(in crate::hub) fn is_too_slow(&self, now: Micros, site: &SiteName, leg: LegId) -> bool {
        self.too_slow.get(&(site.clone(), leg)).is_some_and(|until| *until > now)
    }

    /// The leg a site belongs on. A leg carries a whole feed, so only who may have all of the feed is given its key.
    fn wanted(&self, hub: &Hub, feed: &FeedName, site: &SiteName, handle: &Handle) -> Option<&Leg> {
        let line = self.lines.get(feed)?.iter().find(|line| line.sites.contains(site))?;
        let leg = self.running.get(&line.leg).filter(|_| line.transport == Transport::Multicast)?;
        let barred = hub.roster.barred(site, &handle.credential_sha256, feed, hub.clock.wall());
        barred.is_none().then_some(leg)
    }

    fn not_in_plan(&self, feed: &FeedName, before: &[LegLine]) -> Vec<LegId> {
        let lines = self.lines.get(feed).map(Vec::as_slice).unwrap_or_default();
        let stays = |leg: LegId| lines.iter().any(|line| line.leg == leg);
        before
            .iter()
            .map(|line| line.leg)
            .filter(|leg| !stays(*leg) && self.running.contains_key(leg))
            .collect()
    }

    fn end(&mut self, legs: &[LegId]) {
        for leg in legs {
            let needed = self.lines.values().flatten().any(|line| line.leg == *leg);
            if let Some(leg) = (!needed).then(|| self.running.remove(leg)).flatten() {
                leg.stop();
            }
        }
    }
}

/// A site that does not answer holds a leg no longer than its session's liveness limit.
const LINGER: std::time::Duration = std::time::Duration::from_secs(20);
const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_millis(100);
