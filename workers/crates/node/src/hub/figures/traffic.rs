//! Traffic: counters that all tasks add to, and that are reported to the agent each second.
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use downburst_hub::{
    Arrivals, FeedHead, FeedTraffic, LegCounts, LegTraffic, NotedReceipt, SessionTraffic, Traffic,
    TrafficReports, Transfers,
};
use downburst_model::{FeedName, LegId, SiteName, WallMicros};
use downburst_session::ClockOffset;
use downburst_vcmtp::SenderStats;

use crate::hub::legs::leg::Leg;
use crate::hub::{Hub, lock};
use crate::lines::Event;

/// Totals since the last report.
#[derive(Default)]
pub(in crate::hub) struct Counters {
    arrivals: Mutex<Arrivals>,
    legs: Mutex<LegCounts>,
    transfers: Mutex<Transfers>,
    /// Bytes written to TCP, TLS included, since the start.
    wire_bytes: AtomicU64,
    /// The part of these bytes that is attributed to a leg, since the start.
    attributed_bytes: AtomicU64,
    reports: Mutex<TrafficReports>,
}

impl Counters {
    pub(in crate::hub) fn arrived(&self, feed: &FeedName, bytes: u64) {
        lock(&self.arrivals).arrived(feed, bytes);
    }

    pub(in crate::hub) fn wire(&self, bytes: usize) {
        self.wire_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts bytes of a session that belong to a leg.
    pub(in crate::hub) fn session_bytes(&self, feed: &FeedName, leg: LegId, bytes: usize, repair: bool) {
        self.attributed_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        lock(&self.legs).session_bytes(feed, leg, bytes as u64, repair);
    }

    /// Counts a repair to a single site as a datagram.
    pub(in crate::hub) fn channel_bytes(&self, feed: &FeedName, leg: LegId, bytes: usize) {
        lock(&self.legs).channel_bytes(feed, leg, bytes as u64);
    }

    /// Counts datagrams of a multicast leg: the difference of its sender's counters since `told`.
    pub(in crate::hub) fn datagrams(
        &self,
        feed: &FeedName,
        leg: LegId,
        told: &SenderStats,
        stats: &SenderStats,
    ) {
        lock(&self.legs).datagrams(feed, leg, told, stats);
    }

    pub(in crate::hub) fn sent(&self, feed: &FeedName, leg: LegId, products: u64, bytes: u64) {
        lock(&self.legs).sent(feed, leg, products, bytes);
    }

    /// Counts the receipts of a site by the time that each product took.
    pub(in crate::hub) fn transfers(&self, site: &SiteName, clock: ClockOffset, items: &[NotedReceipt]) {
        lock(&self.transfers).arrived(site, clock, items);
    }

    fn control_bytes(&self) -> u64 {
        let written = self.wire_bytes.load(Ordering::Relaxed);
        lock(&self.reports).control_bytes(written, self.attributed_bytes.load(Ordering::Relaxed))
    }
}

impl Hub {
    /// Reports the traffic since the last report to the agent.
    pub(in crate::hub) async fn tell_traffic(&self) {
        let circuits = self.circuit_traffic().await;
        let now = self.clock.wall();
        let from = lock(&self.counters.reports).begin(now, self.started_at(now));
        let traffic = Traffic {
            from_us: from,
            to_us: now,
            feeds: self.feed_traffic(),
            legs: self.leg_traffic(),
            control_bytes: self.counters.control_bytes(),
            // Before the sessions: a site that is back already is reported with them.
            gone: self.roster.take_gone(),
            sessions: self.session_news(),
            circuits,
        };
        self.event(&Event::Traffic(traffic));
    }

    fn started_at(&self, now: WallMicros) -> WallMicros {
        WallMicros(now.0.saturating_sub_unsigned(self.clock.monotonic().0))
    }

    fn feed_traffic(&self) -> Vec<FeedTraffic> {
        let arrivals = std::mem::take(&mut *lock(&self.counters.arrivals));
        let feeds = self.feeds.all().into_iter();
        arrivals.report(feeds.map(|(name, feed)| FeedHead {
            feed: name,
            epoch: feed.epoch(),
            head: crate::hub::feeds::head(&feed),
        }))
    }

    fn leg_traffic(&self) -> Vec<LegTraffic> {
        let counts = std::mem::take(&mut *lock(&self.counters.legs));
        if counts.is_empty() {
            return Vec::new();
        }
        let mut sites =
            self.with_unicast_legs(|legs| downburst_hub::sites_by_leg(&self.roster.registry(), legs));
        sites.extend(lock(&self.legs.catch_ups).sites_by_stream());
        let plans = lock(&self.legs.plans);
        counts.report(&sites, |leg| plans.find(leg).map(Leg::state).unwrap_or_default())
    }

    /// The positions and traffic of all sessions.
    pub(in crate::hub) fn session_traffic(&self) -> Vec<SessionTraffic> {
        let now = self.clock.monotonic();
        self.with_unicast_legs(|legs| downburst_hub::all_sessions(&self.roster.registry(), legs, now))
    }

    fn session_news(&self) -> Vec<SessionTraffic> {
        let now = self.clock.monotonic();
        let turn = lock(&self.counters.reports).turn();
        let mut news = self
            .with_unicast_legs(|legs| downburst_hub::session_news(&self.roster.registry(), turn, legs, now));
        lock(&self.counters.transfers).report(&mut news);
        news
    }

    /// Looks up the unicast legs of the feeds that are open now.
    fn with_unicast_legs<T>(&self, look: impl FnOnce(downburst_hub::UnicastLegs<'_>) -> T) -> T {
        let feeds = self.feeds.all();
        look(&|feed| feeds.get(feed).map(|feed| feed.unicast_leg()))
    }
}
