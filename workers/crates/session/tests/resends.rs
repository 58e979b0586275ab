//! Resends through both halves of a session: each product once under each number, whatever breaks.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // A test may fail.
use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use downburst_model::*;
use downburst_session::*;
use proptest::prelude::*;

const EPOCH: Epoch = Epoch(7);

/// A hub with a log, a site with one, and the connection between them.
struct World {
    millis: u64,
    hub: HubSession,
    site: SiteSession,
    log: Vec<Entry>,
    wish: Subscription,
    handling: Vec<FeedHandling>,
    orders: Vec<ResendOrder>,
    /// The products stored by the site, in order: sequence, lane, resend.
    stored: Vec<(u64, Lane, Option<u64>)>,
    /// The number of next reads of the log that fail.
    bad_reads: u32,
    /// The number of next attempts to store that fail.
    failures: u32,
    ends: Vec<ResendEnd>,
    expired: BTreeSet<u64>,
    late: BTreeMap<FeedName, u64>,
    told: Vec<FeedHandling>,
    /// Cuts the connection after this many completed products.
    cut_after: Option<u32>,
    /// The session versions that the hub supports.
    hub_versions: Vec<u16>,
    /// True if the rest of a resend is kept after the end of its session.
    hub_remembers: bool,
    trains: u32,
    held: u32,
}

fn feed() -> FeedName {
    FeedName::parse("CONDUIT").unwrap()
}

fn entry(sequence: u64, size: usize) -> Entry {
    let info = ProductInfo {
        key: ProductKey { feed: feed(), epoch: EPOCH, sequence: Sequence(sequence) },
        id: ProductId::parse(&format!("{}{sequence}", if sequence.is_multiple_of(3) { "a" } else { "b" }))
            .unwrap(),
        origin: Origin::parse("hub").unwrap(),
        created: WallMicros(1),
        stored: WallMicros(sequence as i64 * 1_000_000),
        size: size as u64,
        digest: Digest([0; 32]),
        class: Class::Grid,
        hops: None,
        ldm: None,
        properties: None,
    };
    Entry { info, bytes: Some(vec![sequence as u8; size].into()) }
}

fn order(resend: u64, after: u64, to: u64) -> ResendOrder {
    let wanted = IdFilter { pattern: ".*".to_owned(), not_pattern: None };
    let (feed, after, to) = (feed(), Sequence(after), Sequence(to));
    ResendOrder {
        resend,
        feed,
        epoch: EPOCH,
        after,
        to,
        lane: Lane::Resend,
        wanted,
        had: vec![],
        within: None,
        left: None,
    }
}

impl World {
    /// A connected site that has all of a log with this many products.
    fn settled(products: u64) -> Self {
        let mut world = Self::new((1..=products).map(|sequence| entry(sequence, 100)).collect());
        let position = FeedPosition {
            feed: feed(),
            epoch: EPOCH,
            settled: [(0, products)].into_iter().collect(),
            newest_stored: WallMicros(0),
        };
        let state = SiteState { feeds: [(feed(), position)].into() };
        world.site = SiteSession::new("test".to_owned(), state);
        world.connect();
        world
    }

    fn new(log: Vec<Entry>) -> Self {
        Self {
            millis: 0,
            hub: HubSession::new("hub".to_owned()),
            site: SiteSession::new("test".to_owned(), SiteState::default()),
            log,
            wish: Subscription { feed: feed(), pattern: ".*".to_owned(), not_pattern: None, within: None },
            handling: vec![],
            orders: vec![],
            stored: vec![],
            bad_reads: 0,
            failures: 0,
            ends: vec![],
            expired: BTreeSet::new(),
            late: BTreeMap::new(),
            told: vec![],
            cut_after: None,
            hub_versions: VERSIONS.to_vec(),
            hub_remembers: true,
            trains: 0,
            held: 0,
        }
    }

    fn now(&self) -> Now {
        Now { monotonic: Micros::from_millis(self.millis), wall: WallMicros(self.millis as i64 * 1_000) }
    }

    fn connect(&mut self) {
        self.hub = HubSession::new("hub".to_owned()).speaking(&self.hub_versions);
        self.hub.handle(self.now(), HubInput::Room { stream: StreamId::FIRST, bytes: 1 << 40 });
        let proof = Proof::Token { secret: "s".to_owned(), credential_sha256: String::new() };
        self.site.handle(self.now(), SiteInput::Connected(proof));
        self.run();
    }

    fn resend(&mut self, order: ResendOrder) {
        self.orders.push(order);
        self.hub.handle(self.now(), HubInput::Resends(self.orders.clone()));
        self.run();
    }

    fn append(&mut self, entry: Entry) {
        self.log.push(entry);
        self.tell_head();
        self.run();
    }

    fn tell_head(&mut self) {
        let head = self.log.last().map_or(Sequence(0), |entry| entry.info.key.sequence);
        let input = HubInput::Feed { feed: feed(), epoch: EPOCH, head, unicast_leg: LegId(1) };
        self.hub.handle(self.now(), input);
    }

    fn wait(&mut self, millis: u64) {
        let end = self.millis + millis;
        while self.millis < end {
            self.millis = (self.millis + 100).min(end);
            self.run();
        }
    }

    /// Runs both until neither has more to send.
    fn run(&mut self) {
        loop {
            let (hub, site) = (self.hub.poll(self.now()), self.site.poll(self.now()));
            if hub.is_none() && site.is_none() {
                return;
            }
            hub.into_iter().for_each(|output| self.take_hub(output));
            site.into_iter().for_each(|output| self.take_site(output));
        }
    }

    fn take_hub(&mut self, output: HubOutput) {
        match output {
            HubOutput::Write { bytes, .. } => {
                self.site.handle(self.now(), SiteInput::Bytes { stream: StreamId::FIRST, bytes })
            }
            HubOutput::Authenticate(_) => {
                let (site, now) = (SiteName::parse("oslo").unwrap(), self.now());
                self.hub.handle(now, HubInput::Handling(self.handling.clone()));
                self.hub.handle(now, HubInput::Admit { site, subscriptions: vec![self.wish.clone()] });
                self.hub.handle(now, HubInput::Resends(self.orders.clone()));
                self.tell_head();
            }
            HubOutput::Read { feed, after, to, .. } => {
                let (entries, read_to) = (self.entries(after, to, usize::MAX), to);
                self.hub.handle(self.now(), HubInput::Entries { feed, after, entries, read_to });
            }
            HubOutput::Refer(request) => {
                self.hub.handle(self.now(), HubInput::Referred { number: request.number, sibling: None });
            }
            HubOutput::ReadResend { resend, after, .. } if self.bad_reads > 0 => {
                self.bad_reads -= 1;
                let entries = vec![];
                self.hub
                    .handle(self.now(), HubInput::ResendEntries { resend, entries, after, read_to: after });
            }
            HubOutput::ReadResend { resend, after, to, .. } => {
                let entries = self.entries(after, to, 7);
                let read_to = if entries.len() < 7 { to } else { entries[6].info.key.sequence };
                self.hub.handle(self.now(), HubInput::ResendEntries { resend, entries, after, read_to });
            }
            HubOutput::Event(HubEvent::Resent(end)) => self.ends.push(end),
            HubOutput::Event(HubEvent::Late(late)) => drop(self.late.insert(late.feed, late.products)),
            HubOutput::Event(HubEvent::Violation(sentence)) => panic!("{sentence}"),
            HubOutput::Event(HubEvent::Receipts { items, .. }) => {
                let expired = items.into_iter().filter(|item| item.outcome == Outcome::Expired);
                self.expired.extend(expired.map(|item| item.key.sequence.0));
            }
            HubOutput::Event(_)
            | HubOutput::FindTime { .. }
            | HubOutput::DrawTicket(_)
            | HubOutput::CloseStream(_)
            | HubOutput::Close => {}
        }
    }

    fn entries(&self, after: Sequence, to: Sequence, most: usize) -> Vec<Entry> {
        let inside = |entry: &&Entry| after < entry.info.key.sequence && entry.info.key.sequence <= to;
        self.log.iter().filter(inside).take(most).cloned().collect()
    }

    fn take_site(&mut self, output: SiteOutput) {
        match output {
            SiteOutput::Write { bytes, .. } => {
                self.hub.handle(self.now(), HubInput::Bytes { stream: StreamId::FIRST, bytes })
            }
            SiteOutput::Complete { info, lane, resend, .. } => {
                let result = self.store(info.key.sequence.0, lane, resend);
                let (key, at) = (info.key, self.now().wall);
                self.site.handle(self.now(), SiteInput::Settled { key, result, at });
                self.count_down();
            }
            SiteOutput::Train { train, .. } => {
                self.trains += 1;
                let numbers = train.cars.iter().map(|car| car.sequence.0);
                let results = numbers.map(|number| self.store(number, train.lane, None)).collect();
                let at = self.now().wall;
                self.site.handle(self.now(), SiteInput::TrainSettled { train, results, at });
            }
            SiteOutput::Event(SiteEvent::Handling(items)) => self.told = items,
            SiteOutput::Event(SiteEvent::Violation(sentence)) => panic!("{sentence}"),
            _ => {}
        }
    }

    fn store(&mut self, number: u64, lane: Lane, resend: Option<u64>) -> StoreResult {
        if self.failures > 0 {
            self.failures -= 1;
            return StoreResult::Failed("the disk is full".to_owned());
        }
        if self.stored.iter().any(|(other, _, of)| (*other, *of) == (number, resend)) {
            self.held += 1;
            return StoreResult::Held;
        }
        self.stored.push((number, lane, resend));
        StoreResult::Stored
    }

    fn count_down(&mut self) {
        if let Some(left) = &mut self.cut_after {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.cut_after = None;
                if self.hub_remembers {
                    let mut left = self.hub.resends_left();
                    self.orders.iter_mut().for_each(|order| order.left = left.remove(&order.resend));
                }
                self.site.handle(self.now(), SiteInput::Disconnected);
                self.connect();
            }
        }
    }

    fn brought_by(&self, resend: u64) -> Vec<u64> {
        let mut numbers: Vec<u64> =
            self.stored.iter().filter(|(_, _, of)| *of == Some(resend)).map(|(number, ..)| *number).collect();
        numbers.sort_unstable();
        numbers
    }
}

#[test]
fn a_resend_brings_what_the_site_has_already() {
    let mut world = World::settled(20);
    world.resend(order(3, 4, 9));
    assert_eq!(world.brought_by(3), [5, 6, 7, 8, 9]);
    assert_eq!(world.ends, [ResendEnd { resend: 3, products: 5, bytes: 500, expired: 0 }]);
    assert!(world.stored.iter().all(|(_, lane, _)| *lane == Lane::Resend));
    world.hub.handle(world.now(), HubInput::Resends(world.orders.clone()));
    world.wait(1_000);
    assert_eq!((world.stored.len(), world.ends.len()), (5, 1), "the set said again begins nothing again");
}

#[test]
fn releases_that_differ_speak_the_version_that_both_know() {
    let next = [VERSION + 1, VERSION];
    let releases: [(&[u16], &[u16]); 2] = [(&next, &VERSIONS), (&VERSIONS, &next)];
    for (hub, site) in releases {
        let mut world = World::new((1..=20).map(|sequence| entry(sequence, 100)).collect());
        world.hub_versions = hub.to_vec();
        world.site = SiteSession::new("test".to_owned(), SiteState::default()).speaking(site);
        world.connect();
        // A new site begins at the head.
        world.append(entry(21, 100));
        world.site.handle(world.now(), SiteInput::Disconnected);
        world.log.push(entry(22, 100));
        world.connect();
        world.append(entry(23, 100_000));
        world.wait(10_000);
        let live: Vec<(u64, Option<u64>)> =
            world.stored.iter().map(|(number, _, of)| (*number, *of)).collect();
        assert_eq!(live, [(21, None), (22, None), (23, None)], "hub {hub:?}, site {site:?}");
        let feeds = world.site.positions().into_iter().map(|position| (position.feed.clone(), position));
        let updated = SiteSession::new("updated".to_owned(), SiteState { feeds: feeds.collect() });
        world.site = updated.speaking(&next);
        world.hub_versions = next.to_vec();
        world.connect();
        world.append(entry(24, 100));
        world.resend(order(1, 0, 20));
        world.wait(1_000);
        assert_eq!(world.brought_by(1), (1..=20).collect::<Vec<_>>(), "hub {hub:?}, site {site:?}");
        assert_eq!((world.ends.len(), world.stored.len()), (1, 24));
    }
}

#[test]
fn live_products_go_beside_a_resend_and_the_frontier_does_not_move_by_it() {
    let mut world = World::settled(20);
    world.orders.push(order(3, 0, 20));
    world.hub.handle(world.now(), HubInput::Resends(world.orders.clone()));
    world.append(entry(21, 100));
    world.wait(1_000);
    assert!(world.stored.contains(&(21, Lane::Live, None)));
    assert_eq!(world.brought_by(3).len(), 20);
    assert_eq!(world.site.positions()[0].settled.iter().collect::<Vec<_>>(), [(0, 21)]);
}

#[test]
fn what_the_log_lost_or_the_patterns_leave_out_is_counted_or_passed_over() {
    let mut world = World::settled(12);
    world.log[4].bytes = None;
    let had = vec![IdFilter { pattern: "^a".to_owned(), not_pattern: None }];
    world.resend(ResendOrder { lane: Lane::Backfill, had, ..order(1, 0, 12) });
    assert_eq!(world.brought_by(1), [1, 2, 4, 7, 8, 10, 11], "3, 6, 9, 12 begin with a; 5 is gone");
    assert_eq!((world.ends[0].products, world.ends[0].expired), (7, 1));
    let wanted = IdFilter { pattern: "1".to_owned(), not_pattern: Some("^b1$".to_owned()) };
    world.resend(ResendOrder { wanted, ..order(2, 0, 12) });
    assert_eq!(world.brought_by(2), [10, 11, 12]);
}

#[test]
fn an_empty_range_is_over_at_once() {
    let mut world = World::settled(5);
    world.resend(order(1, 5, 5));
    assert_eq!(world.ends, [ResendEnd { resend: 1, products: 0, bytes: 0, expired: 0 }]);
}

#[test]
fn what_could_not_be_kept_comes_again() {
    let mut world = World::settled(10);
    world.failures = 4;
    world.resend(order(1, 0, 10));
    assert_eq!((world.brought_by(1).len(), world.ends.len()), (6, 0));
    world.wait(4_000);
    assert_eq!(world.ends.len(), 0, "a full disk is not helped by haste");
    world.wait(2_000);
    assert_eq!((world.brought_by(1).len(), world.ends.len()), (10, 1));
}

#[test]
fn a_log_that_can_not_be_read_is_read_again_and_nothing_is_passed_over() {
    let mut world = World::settled(10);
    world.bad_reads = 2;
    world.resend(order(1, 0, 10));
    world.wait(4_000);
    assert_eq!((world.brought_by(1).len(), world.ends.len()), (0, 0));
    world.wait(8_000);
    assert_eq!((world.brought_by(1).len(), world.ends[0].products), (10, 10));
}

#[test]
fn a_resend_goes_on_in_the_next_session_and_brings_nothing_twice() {
    let mut world = World::settled(50);
    world.cut_after = Some(17);
    world.resend(order(1, 0, 50));
    world.wait(1_000);
    assert_eq!(world.brought_by(1), (1..=50).collect::<Vec<_>>());
    assert_eq!((world.ends.len(), world.ends[0].products), (1, 50));
    assert!(world.held <= 2, "{} came again that the site had answered", world.held);
}

#[test]
fn a_hub_that_forgot_where_a_resend_was_begins_it_anew() {
    let mut world = World::settled(50);
    (world.cut_after, world.hub_remembers) = (Some(17), false);
    world.resend(order(1, 0, 50));
    world.wait(1_000);
    assert_eq!(world.brought_by(1), (1..=50).collect::<Vec<_>>());
    assert!(world.held >= 15, "the site drops what it has, {}", world.held);
}

#[test]
fn a_cancelled_resend_sends_no_more() {
    let mut world = World::settled(50);
    world.orders.push(order(1, 0, 50));
    world.hub.handle(world.now(), HubInput::Resends(world.orders.clone()));
    world.hub.handle(world.now(), HubInput::Resends(vec![]));
    world.wait(1_000);
    assert_eq!((world.stored.len(), world.ends.len()), (0, 0));
}

#[test]
fn products_that_are_too_old_expire_and_the_site_is_told_how_to_handle_feeds() {
    let mut world = World::new((1..=10).map(|sequence| entry(sequence, 100)).collect());
    let position = FeedPosition {
        feed: feed(),
        epoch: EPOCH,
        settled: [(0, 2)].into_iter().collect(),
        newest_stored: WallMicros(0),
    };
    world.site = SiteSession::new("t".to_owned(), SiteState { feeds: [(feed(), position)].into() });
    let handling =
        FeedHandling { feed: feed(), hold_us: Some(5), max_age_us: Some(4_000_000), deadline_us: None };
    world.handling = vec![handling.clone()];
    world.millis = 10_000;
    world.connect();
    world.wait(1_000);
    assert_eq!(world.told, [handling]);
    assert_eq!(world.stored.iter().map(|(number, ..)| *number).collect::<Vec<_>>(), [6, 7, 8, 9, 10]);
    assert_eq!(world.expired.iter().copied().collect::<Vec<_>>(), [3, 4, 5]);
    world.site.handle(world.now(), SiteInput::Late(feed()));
    world.site.handle(world.now(), SiteInput::Late(feed()));
    world.wait(1_000);
    assert_eq!(world.late, [(feed(), 2)].into());
}

#[test]
fn what_is_missing_is_told_by_class() {
    let mut world = World::settled(5);
    world.append(entry(9, 100));
    let missing = world.site.missing(&feed());
    assert_eq!((missing.epoch, missing.to), (Some(EPOCH), Sequence(9)));
    assert!(missing.by_class.values().all(RangeSet::is_empty), "6 to 8 are no numbers of anything");
    assert_eq!(world.site.missing(&FeedName::parse("OTHER").unwrap()), Missing::default());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn every_resend_brings_each_product_once(
        sizes in proptest::collection::vec(prop_oneof![0usize..300, 60_000usize..200_000], 1..40),
        ranges in proptest::collection::vec((0u64..40, 0u64..40), 1..4),
        cuts in proptest::collection::vec(1u32..20, 0..3),
        failures in 0u32..5,
    ) {
        let products = sizes.len() as u64;
        let mut world = World::settled(products);
        world.log = sizes.iter().zip(1..).map(|(size, sequence)| entry(sequence, *size)).collect();
        world.failures = failures;
        for (index, (one, other)) in ranges.iter().enumerate() {
            world.cut_after = cuts.get(index).copied();
            let (after, to) = (one.min(other).min(&products), one.max(other).min(&products));
            world.resend(order(index as u64 + 1, *after, *to));
        }
        world.wait(30_000);
        for (index, (one, other)) in ranges.iter().enumerate() {
            let (after, to) = (one.min(other).min(&products), one.max(other).min(&products));
            prop_assert_eq!(world.brought_by(index as u64 + 1), (after + 1..=*to).collect::<Vec<_>>());
        }
        let ended: BTreeSet<u64> = world.ends.iter().map(|end| end.resend).collect();
        prop_assert_eq!(ended.len(), ranges.len());
        prop_assert_eq!(world.site.positions()[0].settled.iter().collect::<Vec<_>>(), [(0, products)]);
    }
}

#[test]
fn bytes_of_a_resend_are_those_of_the_log() {
    let mut world = World::settled(3);
    let bytes = Bytes::from(vec![9; 200_000]);
    world.log[1] = Entry { bytes: Some(bytes.into()), ..entry(2, 200_000) };
    world.resend(order(1, 1, 2));
    assert_eq!(world.ends[0].bytes, 200_000);
}
