use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use downburst_hub::{
    FeedStanding, HubFacts, LegInput, Reference, RightsLine, SessionInput, SiteLine, SubscriptionLine, Way,
};
use downburst_model::{
    Content, Epoch, FeedName, LdmIdent, LdmStamp, LegId, Machine, Micros, Now, Origin, PROPERTIES_BYTES_MAX,
    ProductId, ProductInfo, ProductKey, Properties, Sequence, SiteName, WallMicros,
};
use downburst_session::{
    Duplicates, Entry, Filter, Outcome, Stretch, Stretches, Subscription, is_catch_up, stretch_end,
};

use super::Publish;
use super::legs::{LegPlan, SimLeg};
use super::site::Site;
use crate::net::Dice;

/// The hub: logs and legs. Its sessions are stored beside the sites they serve.
pub(super) struct Hub {
    pub(super) logs: BTreeMap<FeedName, Log>,
    /// The settings of its sites.
    pub(super) lines: BTreeMap<SiteName, SiteLine>,
    pub(super) legs: BTreeMap<LegId, SimLeg>,
    pub(super) multicast_receipts: u64,
    /// The number of receipts, by the site's number, feed and outcome.
    pub(super) outcomes: BTreeMap<(usize, FeedName, Outcome), u64>,
    /// How long sites with a leg hold their backfill when they connect.
    pub(super) hold: Micros,
    published: u64,
    pub(super) lives: u64,
    /// Draws keys of legs.
    pub(super) keys: Dice,
}

/// A feed's log.
pub(super) struct Log {
    pub(super) epoch: Epoch,
    entries: BTreeMap<u64, Entry>,
    head: u64,
    unicast_leg: LegId,
    pub(super) deadline_us: Option<u64>,
    stretches: Stretches,
}

impl Hub {
    pub(super) fn new(feeds: &[FeedName], seed: u64) -> Self {
        let log = |(index, feed): (usize, &FeedName)| {
            let unicast_leg = LegId(index as u32 + 1);
            let epoch = Epoch(seed.wrapping_mul(1_000) + index as u64);
            let stretches = Stretches::new(STRETCHES_BYTES);
            let entries = BTreeMap::new();
            (feed.clone(), Log { epoch, entries, head: 0, unicast_leg, deadline_us: None, stretches })
        };
        let logs = feeds.iter().enumerate().map(log).collect();
        let keys = Dice::new(seed, KEYS);
        let lines = BTreeMap::new();
        let (legs, outcomes) = (BTreeMap::new(), BTreeMap::new());
        let hold = Micros(0);
        Self { logs, lines, legs, multicast_receipts: 0, outcomes, hold, published: 0, lives: 1, keys }
    }

    pub(super) fn append(
        &mut self,
        now: Now,
        feed: &FeedName,
        publish: Publish,
        bytes: Bytes,
    ) -> ProductInfo {
        self.published += 1;
        let id = format!("{} product {}", publish.kind, self.published);
        let log = self.logs.get_mut(feed).expect("the feed exists");
        let info = log.describe(now, feed, &id, publish.class, &bytes);
        log.entries.insert(log.head, Entry { info: info.clone(), bytes: Some(bytes.into()) });
        let deadline = log.deadline_us.map(Micros);
        for leg in self.legs.values_mut().filter(|leg| leg.join.feed == *feed && !is_catch_up(leg.plan.leg)) {
            leg.machine.handle(now, LegInput::Deadline(deadline));
            leg.machine.handle(now, LegInput::Head(info.key.sequence));
        }
        info
    }

    pub(super) fn evict(&mut self, feed: &FeedName, keep: usize) -> Vec<ProductId> {
        let Log { entries, stretches, .. } = self.logs.get_mut(feed).expect("the feed exists");
        stretches.clear();
        let drop = entries.len().saturating_sub(keep);
        let gone = entries.values_mut().take(drop).filter(|entry| entry.bytes.is_some());
        gone.map(|entry| {
            entry.bytes = None;
            entry.info.id.clone()
        })
        .collect()
    }

    pub(super) fn start_leg(
        &mut self,
        now: Now,
        feed: &FeedName,
        rate_bps: u64,
        repair_window_bytes: u64,
    ) -> LegId {
        let leg = LegId(100 + self.legs.len() as u32);
        self.begin_life(now, LegPlan { leg, feed: feed.clone(), rate_bps, repair_window_bytes });
        leg
    }

    /// Offers a leg to a site, if the hub serves it.
    pub(super) fn offer(&mut self, now: Now, site: &mut Site, leg: LegId) {
        if let Some(leg) = self.legs.get_mut(&leg) {
            let join = leg.offer(now, site);
            site.tell_hub(now, self, SessionInput::JoinLeg(Box::new(join)));
        }
    }

    /// Wakes the session of a site that reads a feed whose log has grown.
    pub(super) fn wake(&self, now: Now, site: &mut Site, feed: &FeedName) {
        let subscribed = site.subscriptions.iter().any(|subscription| subscription.feed == *feed);
        if subscribed && site.admitted && !site.muted.contains(feed) {
            site.tell_hub(now, self, SessionInput::Woken);
        }
    }

    /// Sends a session the state of its feeds' logs.
    pub(super) fn tell_grown(&self, now: Now, site: &mut Site) {
        if site.admitted {
            let standing = self.standing(site);
            site.tell_hub(now, self, SessionInput::Grown(standing));
        }
    }

    /// The state of the logs of a site's feeds.
    pub(super) fn standing(&self, site: &Site) -> Vec<FeedStanding> {
        let subscribed = |feed: &FeedName| site.subscriptions.iter().any(|it| it.feed == *feed);
        let logs = self.logs.iter().filter(|(feed, _)| subscribed(feed));
        let standing = logs.map(|(feed, log)| FeedStanding {
            feed: feed.clone(),
            epoch: log.epoch,
            head: Sequence(log.head),
            unicast_leg: log.unicast_leg,
            rule: Duplicates::default(),
            deadline_us: log.deadline_us,
        });
        standing.collect()
    }

    /// Restarts the hub on the same logs.
    pub(super) fn restart(&mut self, now: Now) {
        for leg in std::mem::take(&mut self.legs).into_values().filter(|leg| !is_catch_up(leg.plan.leg)) {
            self.begin_life(now, leg.plan);
        }
    }

    /// Begins a new epoch of a log, with the same products under other sequences, and returns the products.
    pub(super) fn renew_log(&mut self, now: Now, feed: &FeedName) -> Vec<ProductInfo> {
        let log = self.logs.get_mut(feed).expect("the feed exists");
        log.epoch = Epoch(log.epoch.0.wrapping_add(500_000_000));
        log.head = 0;
        for (_, entry) in std::mem::take(&mut log.entries) {
            let Some(bytes) = entry.bytes.and_then(|content| content.whole()) else { continue };
            let info = log.describe(now, feed, entry.info.id.as_str(), entry.info.class, &bytes);
            log.entries.insert(log.head, Entry { info, bytes: Some(bytes.into()) });
        }
        log.entries.values().map(|entry| entry.info.clone()).collect()
    }

    /// True if the site's frontier is at the head of all its feeds.
    pub(super) fn is_level(&self, site: &Site) -> bool {
        let positions = site.connection.positions();
        site.subscriptions.iter().all(|subscription| {
            let log = self.logs.get(&subscription.feed);
            let position = positions.iter().find(|position| position.feed == subscription.feed);
            log.zip(position).is_some_and(|(log, position)| {
                position.epoch == log.epoch && position.settled.end_of_range_at(0) >= Some(log.head)
            })
        })
    }

    fn begin_life(&mut self, now: Now, plan: LegPlan) {
        self.lives += 1;
        let log = self.logs.get(&plan.feed).expect("the feed exists");
        let (id, after) = (plan.leg, (log.epoch, Sequence(log.head)));
        self.legs.insert(id, SimLeg::new(now.monotonic, plan, self.lives, after));
    }
}

impl HubFacts for Hub {
    fn line(&self, site: &SiteName) -> Option<SiteLine> {
        self.lines.get(site).cloned()
    }

    fn may_take(&self, _: &SiteName, _: &FeedName) -> bool {
        true
    }

    fn is_open(&self, feed: &FeedName) -> bool {
        self.logs.contains_key(feed)
    }

    fn highest(&self, feed: &FeedName, epoch: Epoch) -> Option<Sequence> {
        self.logs.get(feed).filter(|log| log.epoch == epoch).map(|log| Sequence(log.head))
    }

    fn find_time(&self, feed: &FeedName, time: WallMicros) -> Sequence {
        self.logs.get(feed).expect("the feed exists").find(time)
    }

    fn feed_of(&self, leg: LegId) -> Option<FeedName> {
        self.legs.get(&leg).map(|leg| leg.plan.feed.clone())
    }

    fn is_too_slow(&self, _: Micros, _: &SiteName, _: LegId) -> bool {
        false
    }

    fn first_byte(&self, _: LegId, _: Sequence) -> Option<WallMicros> {
        None
    }

    fn reference(&self) -> Reference {
        Reference::new(false)
    }

    fn late_bps(&self) -> Option<u64> {
        None
    }

    fn ways_to(&self, _: &SiteName) -> Vec<Way> {
        Vec::new()
    }

    fn learnt(&self, _: &SiteName) -> usize {
        0
    }

    fn site_at(&self, _: std::net::SocketAddr) -> Option<SiteName> {
        None
    }

    fn hears(&self, _: u16) -> bool {
        false
    }
}

/// The settings of a site, as an operator would make them for these subscriptions.
pub(super) fn line_of(site: SiteName, subscriptions: &[Subscription]) -> SiteLine {
    let subscription = |item: &Subscription| SubscriptionLine {
        feed: item.feed.clone(),
        pattern: item.pattern.clone(),
        not_pattern: item.not_pattern.clone(),
        hold_us: None,
        max_age_us: None,
        within: item.within.clone(),
    };
    SiteLine {
        site,
        credentials: Vec::new(),
        rights: RightsLine::default(),
        subscriptions: subscriptions.iter().map(subscription).collect(),
        resends: Vec::new(),
        interface: String::new(),
        active: true,
        data_connections: None,
        access_rate_bps: None,
        ceiling_bps_by_hour: Vec::new(),
        kept_ldm: Default::default(),
        via: Vec::new(),
        nodes: Vec::new(),
        nodes_version: 0,
        positions: Vec::new(),
    }
}

impl Log {
    /// The last number.
    pub(super) fn head(&self) -> Sequence {
        Sequence(self.head)
    }

    /// The answer to a read: the same for all sites that read there with an equal filter.
    pub(super) fn stretch(
        &mut self,
        now: Micros,
        feed: &FeedName,
        after: Sequence,
        limit_bytes: usize,
        filter: &Arc<Filter>,
    ) -> Arc<Stretch> {
        let head = Sequence(self.head);
        if let Some(stretch) = self.stretches.find(self.epoch, (after, head), filter) {
            return stretch;
        }
        let (entries, read_to) = self.read(after, stretch_end(after, head), limit_bytes);
        let name = (feed.clone(), self.epoch);
        let stretch = Arc::new(Stretch::new(name, (after, read_to), entries, Arc::clone(filter)));
        self.stretches.keep(now, Arc::clone(&stretch));
        stretch
    }

    /// The entries of `after+1..=to`, cut after about `limit_bytes`.
    pub(super) fn read(&self, after: Sequence, to: Sequence, limit_bytes: usize) -> (Vec<Entry>, Sequence) {
        let mut entries = Vec::new();
        let mut bytes = 0;
        for (number, entry) in self.entries.range(after.0.saturating_add(1)..=to.0) {
            entries.push(entry.clone());
            bytes += entry.bytes.as_ref().map_or(0, Content::len);
            if bytes >= limit_bytes {
                return (entries, Sequence(*number));
            }
        }
        (entries, to)
    }

    /// The last product stored before `time`.
    pub(super) fn find(&self, time: downburst_model::WallMicros) -> Sequence {
        let before = self.entries.values().take_while(|entry| entry.info.stored < time).last();
        before.map_or(Sequence(0), |entry| entry.info.key.sequence)
    }

    pub(super) fn entry(&self, sequence: Sequence) -> Option<&Entry> {
        self.entries.get(&sequence.0)
    }

    /// Describes a product. Sequences rise by one to three, as after a writer's unclean start.
    fn describe(
        &mut self,
        now: Now,
        feed: &FeedName,
        id: &str,
        class: downburst_model::Class,
        bytes: &[u8],
    ) -> ProductInfo {
        let digest = blake3::hash(bytes);
        self.head += 1 + u64::from(digest.as_bytes()[0] < 32) * 2;
        ProductInfo {
            key: ProductKey { feed: feed.clone(), epoch: self.epoch, sequence: Sequence(self.head) },
            id: ProductId::parse(id).expect("a legal id"),
            origin: Origin::parse("hub.example").expect("a legal origin"),
            created: now.wall,
            stored: now.wall,
            size: bytes.len() as u64,
            digest: downburst_model::Digest(*digest.as_bytes()),
            class,
            hops: None,
            ldm: stamp_of(digest.as_bytes()),
            properties: properties_of(digest.as_bytes(), bytes.len() as u64),
        }
    }
}

/// An LDM's description of the product with this digest: present for two products in three, and occasionally with an
/// identifier that is not UTF-8.
pub(super) fn stamp_of(digest: &[u8; 32]) -> Option<LdmStamp> {
    let [odd, low, high, ..] = *digest;
    let ident = (odd < 16).then(|| LdmIdent::new(vec![odd, 0xff])).flatten();
    let sequence = u32::from_be_bytes([low, high, odd, low]);
    (!odd.is_multiple_of(3)).then_some(LdmStamp { signature: [odd; 16], sequence, feed_type: 1 << 30, ident })
}

/// The properties of the product with this digest: present for one product in four that is no record of a few bytes,
/// and occasionally too long for a datagram.
pub(super) fn properties_of(digest: &[u8; 32], size: u64) -> Option<Properties> {
    let [.., odd] = *digest;
    let length = if odd < 16 { PROPERTIES_BYTES_MAX } else { 400 };
    (odd < 64 && size >= 2_000).then(|| Properties::new(&vec![odd; length])).flatten()
}

/// Small, so that stretches are sometimes dropped.
const STRETCHES_BYTES: usize = 256 << 10;

/// The name of the dice for keys.
const KEYS: u64 = u64::MAX - 9;
