//! The plan of each feed: the running legs and the leg of each site.
mod lines;
mod placing;
mod relayed;

use std::collections::BTreeMap;

use downburst_model::{FeedName, LegId, Micros, SiteName, Transport};

pub use lines::{CarrierLine, FanOut, LegLine, LossLine, PlanLine};
pub use placing::{LegStep, RunningLeg};
pub use relayed::{RelayStanding, RelayStep, RelayedLegs};

/// Transports that bind a site's connections to circuits: reserved ones, and those ordered on demand.
const CIRCUITS: [Transport; 2] = [Transport::StaticCircuit, Transport::DynamicCircuit];

/// All plans, with their running multicast legs. `L` is the driver's handle of a leg.
pub struct Plans<L> {
    versions: BTreeMap<FeedName, u64>,
    lines: BTreeMap<FeedName, Vec<LegLine>>,
    running: BTreeMap<LegId, L>,
    /// Those of the legs that relays send.
    relayed: RelayedLegs,
    /// Sites that were taken off a leg because they could not keep up, with the end of their rest. Without it, a
    /// site whose session breaks under a flood that exceeds its link would join again immediately.
    too_slow: BTreeMap<(SiteName, LegId), Micros>,
}

impl<L> Default for Plans<L> {
    fn default() -> Self {
        let (versions, lines) = (BTreeMap::new(), BTreeMap::new());
        let (running, relayed, too_slow) = (BTreeMap::new(), RelayedLegs::default(), BTreeMap::new());
        Self { versions, lines, running, relayed, too_slow }
    }
}

impl<L> Plans<L> {
    /// The version of the feed's plan in force; 0: there is none.
    pub fn version(&self, feed: &FeedName) -> u64 {
        self.versions.get(feed).copied().unwrap_or(0)
    }

    /// Puts a plan in force after its multicast legs have started. Returns the running legs of the former plan that
    /// the new one does not need. A site that a plan brings back to a leg, or keeps on one at a lower rate, rests no
    /// longer.
    pub fn put(&mut self, plan: PlanLine) -> Vec<LegId> {
        let PlanLine { feed, version, legs } = plan;
        self.versions.insert(feed.clone(), version);
        let before = self.lines.insert(feed.clone(), legs).unwrap_or_default();
        let lines = self.lines.get(&feed).map(Vec::as_slice).unwrap_or_default();
        let rate_on = |lines: &[LegLine], site: &SiteName, leg: LegId| {
            lines.iter().find(|line| line.leg == leg && line.sites.contains(site)).map(|line| line.rate_bps)
        };
        self.too_slow.retain(|(site, leg), _| {
            match (rate_on(&before, site, *leg), rate_on(lines, site, *leg)) {
                (None, Some(_)) => false,
                (Some(before), Some(now)) => now >= before,
                (_, None) => true,
            }
        });
        let stays = |leg: LegId| lines.iter().any(|line| line.leg == leg);
        before
            .iter()
            .map(|line| line.leg)
            .filter(|leg| !stays(*leg) && self.running.contains_key(leg))
            .collect()
    }

    /// Adds a running leg.
    pub fn runs(&mut self, leg: LegId, running: L) {
        self.running.insert(leg, running);
    }

    /// Finds a running leg.
    pub fn find(&self, leg: LegId) -> Option<&L> {
        self.running.get(&leg)
    }

    /// Finds a running leg, to change it.
    pub fn find_mut(&mut self, leg: LegId) -> Option<&mut L> {
        self.running.get_mut(&leg)
    }

    /// All running legs.
    pub fn all(&self) -> impl Iterator<Item = &L> {
        self.running.values()
    }

    /// The feeds that have a plan.
    pub fn feeds(&self) -> impl Iterator<Item = &FeedName> {
        self.lines.keys()
    }

    /// The plan's line of a leg of the feed.
    pub fn line(&self, feed: &FeedName, leg: LegId) -> Option<&LegLine> {
        self.lines.get(feed)?.iter().find(|line| line.leg == leg)
    }

    /// The legs that relays send.
    pub fn relayed(&self) -> &RelayedLegs {
        &self.relayed
    }

    /// The legs that relays send, to change them.
    pub fn relayed_mut(&mut self) -> &mut RelayedLegs {
        &mut self.relayed
    }

    /// The leg that the plan assigns to a site for the feed, if it is a running multicast leg. A leg of a relay is
    /// nobody's until the relay sends it.
    pub fn wanted(&self, feed: &FeedName, site: &SiteName) -> Option<&L> {
        let line = self.lines.get(feed)?.iter().find(|line| line.sites.contains(site))?;
        let is_sent = line.relay.is_none() || self.relayed.is_open(line.leg);
        self.running.get(&line.leg).filter(|_| is_sent && line.transport == Transport::Multicast)
    }

    /// The feeds that circuits are planned to carry to a site, each with its circuit.
    pub fn circuits_of(&self, site: &SiteName) -> Vec<(FeedName, u32)> {
        let lines = self.lines.iter().flat_map(|(feed, lines)| lines.iter().map(move |line| (feed, line)));
        let legs = lines.filter(|(_, line)| CIRCUITS.contains(&line.transport));
        let carriers = legs.flat_map(|(feed, line)| line.circuits.iter().map(move |it| (feed, it)));
        let carriers = carriers.filter(|(_, carrier)| carrier.site == *site);
        carriers.map(|(feed, carrier)| (feed.clone(), carrier.lease)).collect()
    }

    /// True while a site is kept off a leg that was too fast for it.
    pub fn is_too_slow(&self, now: Micros, site: &SiteName, leg: LegId) -> bool {
        self.too_slow.get(&(site.clone(), leg)).is_some_and(|until| *until > now)
    }

    /// Keeps a site off a leg until a time; forgets rests that are over.
    pub fn rest(&mut self, now: Micros, site: &SiteName, leg: LegId, until: Micros) {
        self.too_slow.retain(|_, until| *until > now);
        self.too_slow.insert((site.clone(), leg), until);
    }

    /// Removes everything of a feed that no longer exists; returns its legs.
    pub fn forget(&mut self, feed: &FeedName) -> Vec<L> {
        self.versions.remove(feed);
        let lines = self.lines.remove(feed).unwrap_or_default();
        lines.iter().filter_map(|line| self.remove(line.leg)).collect()
    }

    /// Removes those of the legs that no plan needs again by now.
    pub fn end(&mut self, legs: &[LegId]) -> Vec<L> {
        let needed = |leg: &LegId| self.lines.values().flatten().any(|line| line.leg == *leg);
        let over: Vec<LegId> = legs.iter().filter(|leg| !needed(leg)).copied().collect();
        over.iter().filter_map(|leg| self.remove(*leg)).collect()
    }

    /// Removes all legs.
    pub fn end_all(&mut self) -> Vec<L> {
        self.relayed = RelayedLegs::default();
        std::mem::take(&mut self.running).into_values().collect()
    }

    fn remove(&mut self, leg: LegId) -> Option<L> {
        self.relayed.end(leg);
        self.running.remove(&leg)
    }
}

#[cfg(test)]
mod tests {
    use downburst_session::RelayLegOpen;

    use super::*;

    fn feed(name: &str) -> FeedName {
        FeedName::parse(name).unwrap()
    }

    fn oslo() -> SiteName {
        SiteName::parse("oslo").unwrap()
    }

    fn plan(version: u64, legs: serde_json::Value) -> PlanLine {
        let line = serde_json::json!({"feed": "A", "version": version, "legs": legs});
        serde_json::from_value(line).unwrap()
    }

    fn multicast(leg: u32, sites: &[&str]) -> serde_json::Value {
        serde_json::json!({"leg": leg, "transport": "multicast", "sites": sites, "group": "239.0.0.1", "port": 5,
            "rate_bps": 9})
    }

    /// Two running legs, each for a site.
    fn two_legs() -> Plans<&'static str> {
        let mut plans = Plans::default();
        plans.runs(LegId(5), "five");
        plans.runs(LegId(6), "six");
        let legs = serde_json::json!([multicast(5, &["oslo"]), multicast(6, &["paris"])]);
        assert_eq!(plans.put(plan(3, legs)), []);
        plans
    }

    #[test]
    fn a_site_belongs_where_the_plan_has_it_if_that_runs() {
        let mut plans = two_legs();
        assert_eq!((plans.version(&feed("A")), plans.version(&feed("B"))), (3, 0));
        assert_eq!(plans.wanted(&feed("A"), &oslo()), Some(&"five"));
        assert_eq!(plans.wanted(&feed("B"), &oslo()), None);
        let unicast = serde_json::json!([{"leg": 5, "transport": "unicast", "sites": ["oslo"]}]);
        assert_eq!(plans.put(plan(4, unicast)), [LegId(6)], "which nobody needs any more");
        assert_eq!(plans.wanted(&feed("A"), &oslo()), None);
        plans.put(plan(5, serde_json::json!([multicast(7, &["oslo"])])));
        assert_eq!(plans.wanted(&feed("A"), &oslo()), None, "it does not run");
        assert_eq!(plans.line(&feed("A"), LegId(7)).map(|line| (line.hops, line.offload)), Some((32, true)));
    }

    #[test]
    fn a_leg_that_a_later_plan_takes_up_again_goes_on() {
        let mut plans = two_legs();
        let gone = plans.put(plan(4, serde_json::json!([])));
        assert_eq!(gone, [LegId(5), LegId(6)]);
        plans.put(plan(5, serde_json::json!([multicast(6, &["oslo"])])));
        assert_eq!(plans.end(&gone), ["five"]);
        assert_eq!((plans.find(LegId(5)), plans.find(LegId(6))), (None, Some(&"six")));
        assert_eq!(plans.end_all(), ["six"]);
    }

    #[test]
    fn a_feed_that_is_no_more_takes_its_legs_along() {
        let mut plans = two_legs();
        plans.runs(LegId(9), "of another feed");
        assert_eq!(plans.forget(&feed("A")), ["five", "six"]);
        assert_eq!((plans.version(&feed("A")), plans.feeds().count(), plans.all().count()), (0, 0, 1));
    }

    #[test]
    fn a_leg_of_a_relay_is_no_sites_until_the_relay_sends_it() {
        let (mut plans, relay) = (two_legs(), SiteName::parse("campus").unwrap());
        let mut leg = multicast(5, &["oslo"]);
        leg["relay"] = "campus".into();
        plans.put(plan(4, serde_json::json!([leg])));
        let line = plans.line(&feed("A"), LegId(5)).unwrap().clone();
        plans.begin_relayed(&feed("A"), &line, None);
        assert_eq!(plans.wanted(&feed("A"), &oslo()), None);
        plans.relayed_mut().look(|_, _| Ok(Some(1)));
        let open = RelayLegOpen { leg: LegId(5), source: "10.0.0.9".to_owned(), mtu_bytes: None };
        plans.relayed_mut().opened(&relay, 1, open);
        assert_eq!(plans.wanted(&feed("A"), &oslo()), Some(&"five"));
        plans.forget(&feed("A"));
        assert_eq!(plans.relayed().relay_of(LegId(5)), None, "the leg is over");
    }

    #[test]
    fn a_site_rests_from_one_leg_for_a_while() {
        let mut plans = two_legs();
        plans.rest(Micros(10), &oslo(), LegId(5), Micros(20));
        assert!(plans.is_too_slow(Micros(19), &oslo(), LegId(5)));
        assert!(
            !plans.is_too_slow(Micros(19), &oslo(), LegId(6))
                && !plans.is_too_slow(Micros(20), &oslo(), LegId(5))
        );
        plans.rest(Micros(30), &oslo(), LegId(6), Micros(40));
        assert_eq!(plans.too_slow.len(), 1, "what is over is forgotten");
    }

    #[test]
    fn a_site_that_a_plan_brings_back_to_a_leg_or_keeps_on_a_slower_one_rests_no_longer() {
        let mut plans = Plans::<()>::default();
        plans.put(plan(1, serde_json::json!([multicast(5, &["oslo", "paris"])])));
        plans.rest(Micros(10), &oslo(), LegId(5), Micros(90));
        plans.put(plan(2, serde_json::json!([multicast(5, &["oslo"])])));
        assert!(plans.is_too_slow(Micros(20), &oslo(), LegId(5)), "it was there before");
        plans.put(plan(3, serde_json::json!([multicast(5, &["paris"]), multicast(6, &["oslo"])])));
        assert!(plans.is_too_slow(Micros(20), &oslo(), LegId(5)));
        plans.put(plan(4, serde_json::json!([multicast(5, &["oslo", "paris"])])));
        assert!(!plans.is_too_slow(Micros(20), &oslo(), LegId(5)));
        plans.rest(Micros(30), &oslo(), LegId(5), Micros(90));
        let mut slower = multicast(5, &["oslo", "paris"]);
        slower["rate_bps"] = 1.into();
        plans.put(plan(5, serde_json::json!([slower])));
        assert!(!plans.is_too_slow(Micros(40), &oslo(), LegId(5)));
    }

    #[test]
    fn feeds_ride_the_circuits_that_carry_them_to_a_site() {
        let mut plans = Plans::<()>::default();
        let carriers = serde_json::json!([{"site": "oslo", "lease": 4}, {"site": "paris", "lease": 8}]);
        let leg = serde_json::json!({
            "leg": 2, "transport": "static-circuit", "sites": ["oslo"], "circuits": carriers,
        });
        plans.put(plan(1, serde_json::json!([leg])));
        assert_eq!(plans.circuits_of(&oslo()), [(feed("A"), 4)]);
        let carriers = serde_json::json!([{"site": "oslo", "lease": 9}]);
        let ordered = serde_json::json!({
            "leg": 3, "transport": "dynamic-circuit", "sites": ["oslo"], "circuits": carriers,
        });
        plans.put(plan(2, serde_json::json!([ordered])));
        assert_eq!(plans.circuits_of(&oslo()), [(feed("A"), 9)], "ordered for a train of products");
    }
}
