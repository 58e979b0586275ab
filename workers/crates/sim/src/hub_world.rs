//! A whole hub and its sites in virtual time: logs, sessions, multicast legs and stores, on a network with
//! loss, delay and broken connections.
//!
//! A site, a session and a leg are the machines that the product itself runs (`downburst-site`, `downburst-hub`). The
//! world is the network and the disk around them: it reads logs, carries bytes and datagrams, stores products and
//! keeps checkpoints.
//! During the run it checks that bytes are complete, that products are begun before their bytes and completed once,
//! and that no machine keeps it busy without progress of time.
//! [`HubWorld::verdict`] makes the final checks.
// A broken invariant ends the run with its reason.
#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use bytes::Bytes;
use downburst_hub::{LegInput, SessionInput};
use downburst_model::{Class, FeedName, LegId, Machine as _, Micros, Now, WallMicros};
use downburst_session::{HubInput, Outcome, StreamPlan, Subscription};

use crate::net::{Dice, LinkConfig};
use hub::{Hub, line_of};
use site::Site;

mod catch_up;
mod drive;
mod hub;
mod legs;
mod oracle;
mod site;
mod streams;

/// The world.
pub struct HubWorld {
    now: Micros,
    dice: Dice,
    hub: Hub,
    sites: Vec<Site>,
    steps: u64,
    stuck: u32,
}

/// The configuration of a world.
#[derive(Clone, Debug)]
pub struct WorldConfig {
    /// The seed of all random events.
    pub seed: u64,
    /// The feeds.
    pub feeds: Vec<FeedName>,
    /// One configuration for each site.
    pub sites: Vec<SiteConfig>,
}

/// The configuration of one site.
#[derive(Clone, Debug)]
pub struct SiteConfig {
    /// Its first subscriptions.
    pub subscriptions: Vec<Subscription>,
    /// The session's rate from the hub, in bits per second.
    pub rate_bps: u64,
    /// The one-way delay of the session.
    pub delay: Micros,
    /// The data connections that the hub plans for it at first.
    pub streams: StreamPlan,
    /// The one-way delays of the data connections, in turn.
    pub data_delays: Vec<Micros>,
    /// The path of datagrams.
    pub link: LinkConfig,
    /// Probability that an attempt to store fails its digest.
    pub bad_digest: f64,
    /// Probability that an attempt to store fails for another reason.
    pub store_failure: f64,
    /// The site's clock minus the hub's, in microseconds.
    pub clock_us: i64,
    /// The session versions that it supports, best first.
    pub versions: &'static [u16],
}

/// A product to publish.
#[derive(Clone, Copy, Debug)]
pub struct Publish {
    /// Its class.
    pub class: Class,
    /// Its bytes.
    pub size: usize,
    /// The first letter of its id, for patterns.
    pub kind: char,
}

impl HubWorld {
    /// A world in which every site connects immediately.
    pub fn new(config: WorldConfig) -> Self {
        let sites = config.sites.into_iter().enumerate();
        let sites: Vec<Site> = sites.map(|(index, site)| Site::new(index, site, config.seed)).collect();
        let mut hub = Hub::new(&config.feeds, config.seed);
        let line = |site: &Site| (legs::name_of(site), line_of(legs::name_of(site), &site.subscriptions));
        hub.lines.extend(sites.iter().map(line));
        Self { now: Micros(0), dice: Dice::new(config.seed, 0), hub, sites, steps: 0, stuck: 0 }
    }

    /// The number of steps of time; idle machines allow long steps.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Virtual time.
    pub fn now(&self) -> Micros {
        self.now
    }

    /// Stores a product at the hub.
    pub fn publish(&mut self, feed: &FeedName, publish: Publish) {
        let clocks = self.clocks();
        let bytes: Vec<u8> = (0..publish.size).map(|_| self.dice.below(256) as u8).collect();
        let info = self.hub.append(clocks, feed, publish, Bytes::from(bytes));
        for site in &mut self.sites {
            let begun = site.connection.positions().iter().any(|position| position.feed == *feed);
            site.oracle.published(&info, begun);
        }
        self.wake(feed);
    }

    /// Drops the bytes of all but the last `keep` products of a feed.
    pub fn evict(&mut self, feed: &FeedName, keep: usize) {
        for id in self.hub.evict(feed, keep) {
            for site in &mut self.sites {
                site.oracle.evicted(feed, &id);
            }
        }
    }

    /// Begins a multicast leg for a feed.
    pub fn start_leg(&mut self, feed: &FeedName, rate_bps: u64, repair_window_bytes: u64) -> LegId {
        let clocks = self.clocks();
        self.hub.start_leg(clocks, feed, rate_bps, repair_window_bytes)
    }

    /// Plans a site's feed onto a leg, or removes it from its leg.
    pub fn plan(&mut self, site: usize, feed: &FeedName, leg: Option<LegId>) {
        let Some(site) = self.sites.get_mut(site) else { return };
        let before = match leg {
            Some(leg) => site.plan.insert(feed.clone(), leg),
            None => site.plan.remove(feed),
        };
        let clocks = site_clocks(self.now);
        match (before, leg) {
            (_, Some(leg)) => self.hub.offer(clocks, site, leg),
            (Some(leg), None) => {
                let leave = SessionInput::Pass(HubInput::LeaveLeg(leg));
                site.tell_hub(clocks, &self.hub, leave);
            }
            (None, None) => {}
        }
    }

    /// Sets the deadline of a feed's products, from their stored stamps.
    pub fn set_deadline(&mut self, feed: &FeedName, deadline: Option<Micros>) {
        let clocks = self.clocks();
        if let Some(log) = self.hub.logs.get_mut(feed) {
            log.deadline_us = deadline.map(|deadline| deadline.0);
        }
        for site in &mut self.sites {
            self.hub.tell_grown(clocks, site);
        }
    }

    /// The number of a site's receipts of a feed with this outcome, as they came to the hub.
    pub fn receipts(&self, site: usize, feed: &FeedName, outcome: Outcome) -> u64 {
        self.hub.outcomes.get(&(site, feed.clone(), outcome)).copied().unwrap_or_default()
    }

    /// Changes a site's subscriptions.
    pub fn subscribe(&mut self, site: usize, subscriptions: Vec<Subscription>) {
        let clocks = self.clocks();
        let Some(site) = self.sites.get_mut(site) else { return };
        site.oracle.subscribed(&subscriptions);
        site.subscriptions.clone_from(&subscriptions);
        self.hub.tell_grown(clocks, site);
        self.hub.lines.insert(legs::name_of(site), line_of(legs::name_of(site), &subscriptions));
        if site.admitted {
            site.tell_hub(clocks, &self.hub, SessionInput::Subscriptions);
            // Before the next product: a new subscription starts at the current head.
            drive::serve(clocks, &mut self.hub, site);
        }
        for leg in self.hub.legs.values_mut() {
            leg.machine.handle(clocks, LegInput::RightsChanged);
        }
    }

    /// Changes the plan of a site's data connections.
    pub fn plan_streams(&mut self, site: usize, streams: StreamPlan) {
        let clocks = self.clocks();
        if let Some(site) = self.sites.get_mut(site) {
            site.streams.clone_from(&streams);
            if site.admitted {
                site.tell_hub(clocks, &self.hub, SessionInput::PlanStreams(streams));
            }
        }
    }

    /// Breaks one of a site's data connections, if there is any; each side notices up to `late` later.
    pub fn break_stream(&mut self, site: usize, late: Micros) {
        let clocks = self.clocks();
        let Some(site) = self.sites.get_mut(site) else { return };
        let standing = site.data.standing();
        let (which, hub, client) = (
            site.dice.below(standing.len() as u64) as usize,
            Micros(site.dice.below(late.0)),
            Micros(site.dice.below(late.0)),
        );
        if let Some(stream) = standing.get(which) {
            site.break_data(clocks, *stream, hub, client);
        }
    }

    /// Breaks a site's connections; it can connect again after `pause`.
    pub fn cut(&mut self, site: usize, pause: Micros) {
        let (now, clocks) = (self.now, self.clocks());
        if let Some(site) = self.sites.get_mut(site) {
            site.cut(clocks, now.plus(pause));
        }
    }

    /// Kills a site; it starts again from its last checkpoints after `pause`. Without its log, only the
    /// checkpoints count.
    pub fn restart_site(&mut self, site: usize, pause: Micros, with_log: bool) {
        let now = self.now;
        if let Some(site) = self.sites.get_mut(site) {
            site.restart(now.plus(pause), with_log);
        }
    }

    /// Kills the hub and starts it again on the same logs; legs begin a new epoch.
    pub fn restart_hub(&mut self, pause: Micros) {
        let (now, clocks) = (self.now, self.clocks());
        self.hub.restart(clocks);
        for site in &mut self.sites {
            site.cut(clocks, now.plus(pause));
        }
    }

    /// Loses the log of a feed at the hub, and lets its sources send everything again: a new epoch and other
    /// sequences for the same products.
    pub fn renew_log(&mut self, feed: &FeedName, pause: Micros) {
        let clocks = self.clocks();
        for info in self.hub.renew_log(clocks, feed) {
            for site in &mut self.sites {
                site.oracle.renamed(&info);
            }
        }
        self.restart_hub(pause);
    }

    /// Advances time by `length`.
    pub fn run_for(&mut self, length: Micros) {
        let end = self.now.plus(length);
        self.run_until(end);
    }

    /// Advances time until every site has reached the head of all its feeds, or by `limit` at most; true if all have.
    pub fn settle(&mut self, limit: Micros) -> bool {
        let end = self.now.plus(limit);
        while self.now < end {
            self.run_for(Micros::from_millis(500));
            if self.sites.iter().all(|site| self.hub.is_level(site)) {
                return true;
            }
        }
        false
    }

    /// The faults at the end: none if every site has each product due to it, once, and no forbidden one.
    pub fn verdict(&self) -> Vec<String> {
        let mut wrong: Vec<String> = self.sites.iter().flat_map(Site::verdict).collect();
        wrong.extend(
            self.sites
                .iter()
                .filter(|site| !self.hub.is_level(site))
                .map(|site| format!("{} is not at the head: {:?}", site.name, site.connection.positions())),
        );
        wrong
    }

    /// The counts of products, legs, data connections and trains of a site.
    pub fn counts(&self, site: usize) -> Counts {
        self.sites.get(site).map(|site| site.counts).unwrap_or_default()
    }

    /// The number of products in sites' logs that arrived by multicast, in whole or for most of their bytes.
    pub fn multicast_receipts(&self) -> u64 {
        self.hub.multicast_receipts
    }

    fn clocks(&self) -> Now {
        site_clocks(self.now)
    }

    fn wake(&mut self, feed: &FeedName) {
        let clocks = self.clocks();
        for site in &mut self.sites {
            self.hub.wake(clocks, site, feed);
        }
    }
}

/// The counts of a site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Products stored.
    pub stored: u64,
    /// Products completed a second time, and dropped by duplicate key.
    pub held: u64,
    /// Products rejected or expired.
    pub lost: u64,
    /// Legs heard.
    pub joined: u64,
    /// Legs that ended.
    pub left: u64,
    /// Data connections established.
    pub streams: u64,
    /// Trains stored as such.
    pub trains: u64,
}

fn site_clocks(now: Micros) -> Now {
    Now { monotonic: now, wall: WallMicros(BEGIN_US.saturating_add(now.0 as i64)) }
}

/// 2026-01-01 00:00 UTC.
const BEGIN_US: i64 = 1_767_225_600_000_000;
