//! Traffic: counters that all tasks add to, and that are reported to the agent each second.
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use downburst_hub::{AwaitedHeartbeats, SessionStatus};
use downburst_model::{FeedName, LegId, Micros, SiteName, Transport, WallMicros};
use downburst_vcmtp::SenderStats;

use crate::hub::feeds::Feed;
use crate::hub::legs::leg::Leg;
use crate::hub::roster::Handle;
use crate::hub::{ByFeed, Hub, lock};
use crate::lines::{Event, FailedAction, FeedTraffic, LegTraffic, SessionFeed, SessionTraffic, Traffic};

/// Totals since the last report.
#[derive(Default)]
pub(in crate::hub) struct Counters {
    feeds: Mutex<ByFeed<Arrivals>>,
    legs: Mutex<BTreeMap<LegId, LegCount>>,
    /// Bytes written to TCP, TLS included, since the start.
    wire_bytes: AtomicU64,
    /// The part of these bytes that is attributed to a leg, since the start.
    attributed_bytes: AtomicU64,
    told_control_bytes: AtomicU64,
    last_told: Mutex<Option<WallMicros>>,
    tellings: AtomicU64,
}

#[derive(Default)]
struct Arrivals {
    products: u64,
    bytes: u64,
    sizes: Vec<u64>,
}

struct LegCount {
    feed: FeedName,
    egress_bytes: u64,
    repair_bytes: u64,
    group_repair_bytes: u64,
    coded_repair_bytes: u64,
    channel_repair_bytes: u64,
    products: u64,
    product_bytes: u64,
}

impl Counters {
    pub(in crate::hub) fn arrived(&self, feed: &FeedName, bytes: u64) {
        let mut feeds = lock(&self.feeds);
        let arrivals = feeds.entry(feed.clone()).or_default();
        arrivals.products += 1;
        arrivals.bytes += bytes;
        if arrivals.sizes.len() < SIZE_SAMPLES {
            arrivals.sizes.push(bytes);
        }
    }

    pub(in crate::hub) fn wire(&self, bytes: usize) {
        self.wire_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts bytes of a session that belong to a leg.
    pub(in crate::hub) fn session_bytes(&self, feed: &FeedName, leg: LegId, bytes: usize, repair: bool) {
        self.attributed_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.leg(feed, leg, |count| {
            count.egress_bytes += bytes as u64;
            count.repair_bytes += if repair { bytes as u64 } else { 0 };
        });
    }

    /// Counts a repair to a single site as a datagram.
    pub(in crate::hub) fn channel_bytes(&self, feed: &FeedName, leg: LegId, bytes: usize) {
        self.leg(feed, leg, |count| {
            count.egress_bytes += bytes as u64;
            count.repair_bytes += bytes as u64;
            count.channel_repair_bytes += bytes as u64;
        });
    }

    /// Counts datagrams of a multicast leg: the difference of its sender's counters since `told`.
    pub(in crate::hub) fn datagrams(
        &self,
        feed: &FeedName,
        leg: LegId,
        told: &SenderStats,
        stats: &SenderStats,
    ) {
        let repair_bytes = stats.group_repair_bytes - told.group_repair_bytes;
        self.leg(feed, leg, |count| {
            count.egress_bytes += stats.datagram_bytes - told.datagram_bytes;
            count.repair_bytes += repair_bytes;
            count.group_repair_bytes += repair_bytes;
            count.coded_repair_bytes += stats.coded_repair_bytes - told.coded_repair_bytes;
        });
    }

    pub(in crate::hub) fn sent(&self, feed: &FeedName, leg: LegId, products: u64, bytes: u64) {
        self.leg(feed, leg, |count| {
            count.products += products;
            count.product_bytes += bytes;
        });
    }

    fn leg(&self, feed: &FeedName, leg: LegId, add: impl FnOnce(&mut LegCount)) {
        let mut legs = lock(&self.legs);
        add(legs.entry(leg).or_insert_with(|| LegCount {
            feed: feed.clone(),
            egress_bytes: 0,
            repair_bytes: 0,
            group_repair_bytes: 0,
            coded_repair_bytes: 0,
            channel_repair_bytes: 0,
            products: 0,
            product_bytes: 0,
        }));
    }

    fn control_bytes(&self) -> u64 {
        let wire = self.wire_bytes.load(Ordering::Relaxed);
        let known =
            self.attributed_bytes.load(Ordering::Relaxed) + self.told_control_bytes.load(Ordering::Relaxed);
        // Bytes are attributed to a leg when they are queued, a moment before they are written.
        let control = wire.saturating_sub(known);
        self.told_control_bytes.fetch_add(control, Ordering::Relaxed);
        control
    }
}

impl Hub {
    /// Reports the traffic since the last report to the agent.
    pub(in crate::hub) async fn tell_traffic(&self) {
        let circuits = self.circuit_traffic().await;
        let now = self.clock.wall();
        let from = lock(&self.counters.last_told).replace(now).unwrap_or(self.started_at(now));
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
        let mut arrivals = std::mem::take(&mut *lock(&self.counters.feeds));
        self.feeds
            .all()
            .into_iter()
            .map(|(name, feed)| {
                let arrived = arrivals.remove(&name).unwrap_or_default();
                FeedTraffic {
                    feed: name,
                    products: arrived.products,
                    bytes: arrived.bytes,
                    sizes: arrived.sizes,
                    head: crate::hub::feeds::head(&feed),
                    epoch: feed.epoch().0.to_string(),
                }
            })
            .collect()
    }

    fn leg_traffic(&self) -> Vec<LegTraffic> {
        let counts = std::mem::take(&mut *lock(&self.counters.legs));
        let sites = if counts.is_empty() { BTreeMap::new() } else { self.sites_by_leg() };
        let plans = lock(&self.legs.plans);
        counts
            .into_iter()
            .map(|(leg, count)| LegTraffic {
                leg,
                feed: count.feed,
                egress_bytes: count.egress_bytes,
                repair_bytes: count.repair_bytes,
                group_repair_bytes: count.group_repair_bytes,
                coded_repair_bytes: count.coded_repair_bytes,
                channel_repair_bytes: count.channel_repair_bytes,
                products: count.products,
                product_bytes: count.product_bytes,
                sites: sites.get(&leg).copied().unwrap_or(0),
                backlog_bytes: plans.find(leg).map_or(0, Leg::backlog_bytes),
            })
            .collect()
    }

    /// The positions and traffic of all sessions.
    pub(in crate::hub) fn session_traffic(&self) -> Vec<SessionTraffic> {
        let feeds = self.feeds.all();
        let now = self.clock.monotonic();
        let look =
            |(site, handle): (&SiteName, &Handle)| Some(account(site, &lock(&handle.status), &feeds, now));
        self.roster.look_at_sessions(look)
    }

    /// The state of the sessions that changed since the last report or have an overdue heartbeat, and of a few
    /// others in turn.
    fn session_news(&self) -> Vec<SessionTraffic> {
        let feeds = self.feeds.all();
        let turn = self.counters.tellings.fetch_add(1, Ordering::Relaxed) % TURNS;
        let now = self.clock.monotonic();
        self.roster.look_at_sessions(|(site, handle)| {
            let mut status = lock(&handle.status);
            let is_news = std::mem::take(&mut status.changed)
                || status.heartbeats.values().any(AwaitedHeartbeats::is_overdue);
            (is_news || handle.serial % TURNS == turn).then(|| account(site, &status, &feeds, now))
        })
    }

    fn sites_by_leg(&self) -> BTreeMap<LegId, u64> {
        let feeds = self.feeds.all();
        let legs = |(_, handle): (&SiteName, &Handle)| {
            let status = lock(&handle.status);
            Some(status.frontiers.keys().filter_map(|feed| leg(feed, &status, &feeds)).collect::<Vec<_>>())
        };
        let mut sites = BTreeMap::new();
        for leg in self.roster.look_at_sessions(legs).into_iter().flatten() {
            *sites.entry(leg).or_default() += 1;
        }
        sites
    }
}

fn account(
    site: &SiteName,
    status: &SessionStatus,
    feeds: &ByFeed<Arc<Feed>>,
    now: Micros,
) -> SessionTraffic {
    let stands = status.frontiers.iter().filter_map(|(feed, (settled_to, pending))| {
        let is_joined = status.joined.contains_key(feed);
        Some(SessionFeed {
            feed: feed.clone(),
            settled_to: *settled_to,
            pending: *pending,
            trouble: status.troubles.get(feed).cloned(),
            action_failed: status.failed_actions.get(feed).map(FailedAction::from),
            late: status.late.get(feed).copied().unwrap_or_default(),
            transport: if is_joined { Transport::Multicast } else { Transport::Unicast },
            leg: leg(feed, status, feeds)?,
            heartbeat_us: status.heartbeats.get(feed).and_then(AwaitedHeartbeats::newest_out),
            heartbeat_waits_us: status.heartbeats.get(feed).and_then(AwaitedHeartbeats::waits_since),
            heartbeat_waited_us: status.heartbeats.get(feed).and_then(|beats| Some(beats.waited(now)?.0)),
        })
    });
    SessionTraffic {
        site: site.clone(),
        clock_offset_us: status.clock.map(|clock| clock.offset_us),
        clock_bound_us: status.clock.map(|clock| clock.bound_us),
        round_trip_us: status.clock.map(|clock| clock.round_trip_us),
        path: status.path.clone(),
        data_connections: status.streams.open,
        data_connections_planned: status.streams.planned,
        data_connections_reason: status.streams.reason.clone(),
        feeds: stands.collect(),
    }
}

/// The leg that brings a feed to a site; none where the feed was removed.
fn leg(feed: &FeedName, status: &SessionStatus, feeds: &ByFeed<Arc<Feed>>) -> Option<LegId> {
    status.joined.get(feed).copied().or_else(|| feeds.get(feed).map(|feed| feed.unicast_leg()))
}

/// Enough for the size quantiles of a busy second; more would only lengthen the line.
const SIZE_SAMPLES: usize = 64;

/// Each session is reported at least once in this many reports: this makes up for reports that the agent missed,
/// and spreads the work.
const TURNS: u64 = 30;
