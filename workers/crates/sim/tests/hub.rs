//! The whole hub in virtual time: scripted operations first, then random ones by seed.
//!
//! A failing random run prints its seed; `DOWNBURST_SEED=n cargo test -p downburst-sim --test hub random` replays it alone, and
//! `DOWNBURST_SEEDS=n` runs the first n instead of the first 40.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // A test may fail.

use downburst_model::{Class, FeedName, LegId, Micros};
use downburst_session::{Classes, Ride, StreamPath, StreamPlan, Subscription, VERSION, VERSIONS};
use downburst_sim::hub_world::{HubWorld, Publish, SiteConfig, WorldConfig};
use downburst_sim::net::{Dice, LinkConfig, Loss};

fn feed(name: &str) -> FeedName {
    FeedName::parse(name).unwrap()
}

fn wish(feed_name: &str, pattern: &str) -> Subscription {
    Subscription { feed: feed(feed_name), pattern: pattern.to_owned(), not_pattern: None }
}

fn site(subscriptions: Vec<Subscription>) -> SiteConfig {
    SiteConfig {
        subscriptions,
        rate_bps: 100_000_000,
        delay: Micros::from_millis(5),
        streams: StreamPlan::default(),
        data_delays: vec![],
        link: LinkConfig::default(),
        bad_digest: 0.0,
        store_failure: 0.0,
        clock_us: 0,
        versions: &VERSIONS,
    }
}

fn world(seed: u64, sites: Vec<SiteConfig>) -> HubWorld {
    HubWorld::new(WorldConfig { seed, feeds: vec![feed("A"), feed("B")], sites })
}

fn product(class: Class, size: usize, kind: char) -> Publish {
    Publish { class, size, kind }
}

fn assert_level(world: &mut HubWorld) {
    let level = world.settle(Micros::from_secs(200));
    let wrong = world.verdict();
    assert!(level && wrong.is_empty(), "{wrong:#?}");
}

fn start(world: &mut HubWorld) {
    world.run_for(Micros::from_millis(200));
}

#[test]
fn products_of_every_size_come_by_unicast() {
    let mut world = world(1, vec![site(vec![wish("A", ".*")]), site(vec![wish("A", "^x"), wish("B", ".*")])]);
    start(&mut world);
    for size in [0, 1, 1_000, 65_536, 65_537, 1_000_000] {
        world.publish(&feed("A"), product(Class::Grid, size, 'x'));
        world.publish(&feed("A"), product(Class::Grid, size, 'y'));
        world.publish(&feed("B"), product(Class::Warning, size, 'z'));
    }
    assert_level(&mut world);
    assert_eq!((world.counts(0).stored, world.counts(1).stored), (12, 12));
    assert_eq!(world.multicast_receipts(), 0);
}

#[test]
fn a_feed_moves_to_multicast_and_back_under_load() {
    let lossy = LinkConfig { loss: Loss::Independent(0.05), jitter: Micros(2_000), ..LinkConfig::default() };
    let sites = (0..4).map(|_| SiteConfig { link: lossy, ..site(vec![wish("A", ".*")]) }).collect();
    let mut world = world(2, sites);
    start(&mut world);
    let leg = world.start_leg(&feed("A"), 20_000_000, 64 << 20);
    for round in 0..300 {
        world.publish(&feed("A"), product(Class::Grid, 300 * (round % 40), 'x'));
        if round % 20 == 10 {
            let index = (round / 20) % 4;
            world.plan(index, &feed("A"), (round < 150).then_some(leg));
        }
        world.run_for(Micros::from_millis(20));
    }
    assert_level(&mut world);
    assert!(world.multicast_receipts() > 200, "{}", world.multicast_receipts());
    for index in 0..4 {
        let counts = world.counts(index);
        assert_eq!((counts.stored, counts.held), (300, 0));
        assert!(counts.joined >= 1 && counts.left >= 1, "{counts:?}");
    }
}

#[test]
fn a_site_behind_a_link_of_half_the_rate_leaves_the_group_and_nobody_else_does() {
    let narrow = LinkConfig { rate_bps: Some(10_000_000), buffer_bytes: 100_000, ..LinkConfig::default() };
    let mut sites = vec![site(vec![wish("A", ".*")]); 3];
    // Repairs by the session don't make good either what its link is too narrow for.
    sites[0] = SiteConfig { link: narrow, rate_bps: 5_000_000, ..sites[0].clone() };
    let mut world = world(5, sites);
    start(&mut world);
    let leg = world.start_leg(&feed("A"), 20_000_000, 64 << 20);
    (0..3).for_each(|index| world.plan(index, &feed("A"), Some(leg)));
    for _ in 0..200 {
        world.publish(&feed("A"), product(Class::Grid, 45_000, 'x'));
        world.run_for(Micros::from_millis(20));
    }
    assert_eq!((0..3).map(|index| world.counts(index).left).collect::<Vec<_>>(), [1, 0, 0]);
    assert_level(&mut world);
    assert_eq!((0..3).map(|index| world.counts(index).stored).collect::<Vec<_>>(), [200; 3]);
}

#[test]
fn what_the_leg_loses_for_good_comes_from_the_session() {
    let lossy = LinkConfig { loss: Loss::Independent(0.2), ..LinkConfig::default() };
    let mut world = world(3, vec![SiteConfig { link: lossy, ..site(vec![wish("A", ".*")]) }]);
    start(&mut world);
    let leg = world.start_leg(&feed("A"), 50_000_000, 4_000);
    world.plan(0, &feed("A"), Some(leg));
    for _ in 0..200 {
        world.publish(&feed("A"), product(Class::Grid, 20_000, 'x'));
        world.run_for(Micros::from_millis(10));
    }
    assert_level(&mut world);
    assert_eq!(world.counts(0).stored, 200);
}

#[test]
fn a_site_resumes_after_a_cut_and_after_a_crash() {
    let mut world = world(4, vec![site(vec![wish("A", ".*")]), site(vec![wish("A", ".*")])]);
    start(&mut world);
    for round in 0..200 {
        world.publish(&feed("A"), product(Class::Observation, 5_000, 'x'));
        world.run_for(Micros::from_millis(10));
        match round {
            50 => world.cut(0, Micros::from_millis(300)),
            100 => world.restart_site(1, Micros::from_millis(300), true),
            150 => world.restart_site(1, Micros::from_millis(300), false),
            _ => {}
        }
    }
    assert_level(&mut world);
    assert_eq!((world.counts(0).stored, world.counts(0).held), (200, 0));
    assert_eq!(world.counts(1).stored, 200);
    assert!(world.counts(1).held < 60, "{:?}", world.counts(1));
}

#[test]
fn another_epoch_brings_nothing_twice() {
    let mut world = world(5, vec![site(vec![wish("A", ".*"), wish("B", "nothing")])]);
    start(&mut world);
    for _ in 0..50 {
        world.publish(&feed("A"), product(Class::Observation, 2_000, 'x'));
        world.publish(&feed("B"), product(Class::Observation, 2_000, 'x'));
        world.run_for(Micros::from_millis(10));
    }
    world.renew_log(&feed("A"), Micros::from_millis(300));
    world.publish(&feed("A"), product(Class::Observation, 2_000, 'x'));
    assert_level(&mut world);
    assert_eq!((world.counts(0).stored, world.counts(0).held), (51, 50));
}

#[test]
fn a_bad_digest_is_asked_again_and_rejected_after_three() {
    let mut world = world(6, vec![SiteConfig { bad_digest: 0.5, ..site(vec![wish("A", ".*")]) }]);
    start(&mut world);
    for _ in 0..80 {
        world.publish(&feed("A"), product(Class::Observation, 2_000, 'x'));
        world.run_for(Micros::from_millis(10));
    }
    assert_level(&mut world);
    let counts = world.counts(0);
    assert_eq!(counts.stored + counts.lost, 80);
    assert!(counts.lost > 2 && counts.lost < 25, "{counts:?}");
}

#[test]
fn what_the_hub_evicted_expires() {
    let mut world = world(7, vec![site(vec![wish("A", ".*")])]);
    start(&mut world);
    world.publish(&feed("A"), product(Class::Observation, 2_000, 'x'));
    world.run_for(Micros::from_secs(1));
    world.cut(0, Micros::from_secs(2));
    for _ in 0..20 {
        world.publish(&feed("A"), product(Class::Observation, 2_000, 'x'));
    }
    world.evict(&feed("A"), 5);
    assert_level(&mut world);
    assert_eq!((world.counts(0).stored, world.counts(0).lost), (6, 15));
}

#[test]
fn a_hub_restart_under_multicast_loses_nothing() {
    let mut world = world(8, (0..3).map(|_| site(vec![wish("A", ".*")])).collect());
    start(&mut world);
    let leg = world.start_leg(&feed("A"), 20_000_000, 64 << 20);
    (0..3).for_each(|index| world.plan(index, &feed("A"), Some(leg)));
    for round in 0..200 {
        world.publish(&feed("A"), product(Class::Grid, 10_000, 'x'));
        world.run_for(Micros::from_millis(20));
        if round == 100 {
            world.restart_hub(Micros::from_millis(200));
        }
    }
    assert_level(&mut world);
    assert!((0..3).all(|index| world.counts(index).stored == 200));
}

#[test]
fn subscriptions_change_in_a_session() {
    let mut world = world(9, vec![site(vec![wish("A", "^x")])]);
    start(&mut world);
    world.publish(&feed("A"), product(Class::Grid, 100, 'y'));
    world.publish(&feed("B"), product(Class::Grid, 100, 'x'));
    world.run_for(Micros::from_secs(1));
    world.subscribe(0, vec![wish("A", "."), wish("B", ".")]);
    world.publish(&feed("A"), product(Class::Grid, 100, 'y'));
    world.publish(&feed("B"), product(Class::Grid, 100, 'x'));
    world.run_for(Micros::from_secs(1));
    world.subscribe(0, vec![wish("B", ".")]);
    world.publish(&feed("A"), product(Class::Grid, 100, 'x'));
    assert_level(&mut world);
    assert_eq!(world.counts(0).stored, 2);
}

#[test]
fn a_widened_subscription_misses_nothing_that_a_leg_announced_before_the_site_knew() {
    let mut world = world(10, vec![site(vec![wish("A", "^x")])]);
    start(&mut world);
    let leg = world.start_leg(&feed("A"), 20_000_000, 64 << 20);
    world.plan(0, &feed("A"), Some(leg));
    world.publish(&feed("A"), product(Class::Grid, 100, 'y'));
    world.run_for(Micros::from_secs(2));
    world.publish(&feed("A"), product(Class::Grid, 100, 'y'));
    world.run_for(Micros::from_millis(100));
    world.subscribe(0, vec![wish("A", ".")]);
    world.publish(&feed("A"), product(Class::Grid, 100, 'y'));
    assert_level(&mut world);
    assert_eq!(world.counts(0).joined, 1);
    assert_eq!(world.counts(0).stored, 1);
}

#[test]
fn a_widened_subscription_survives_a_cut_before_the_site_knew() {
    let mut world = world(12, vec![site(vec![wish("A", "^x")])]);
    start(&mut world);
    let leg = world.start_leg(&feed("A"), 20_000_000, 64 << 20);
    world.plan(0, &feed("A"), Some(leg));
    world.run_for(Micros::from_secs(1));
    world.subscribe(0, vec![wish("A", ".")]);
    world.publish(&feed("A"), product(Class::Grid, 100, 'y'));
    world.run_for(Micros::from_millis(3));
    world.cut(0, Micros::from_millis(100));
    assert_level(&mut world);
    assert_eq!((world.counts(0).stored, world.counts(0).held), (1, 0));
}

/// The least of the delays and the largest differ by far more than products follow each other: whatever one stream says of numbers
/// comes before products on another that were sent earlier.
#[test]
fn streams_of_very_different_delay_lose_nothing_and_bring_nothing_twice() {
    let grids = Classes::of(Class::Grid).with(Class::Bulk);
    let streams = StreamPlan::routed(vec![Classes::of(Class::Observation), grids, grids, grids]);
    let data_delays = [400, 1, 150, 40].map(Micros::from_millis).to_vec();
    let mut world = world(13, vec![SiteConfig { streams, data_delays, ..site(vec![wish("A", "^x")]) }]);
    world.run_for(Micros::from_secs(3));
    for round in 0..400 {
        let class = [Class::Observation, Class::Grid, Class::Bulk, Class::Warning][round % 4];
        world.publish(&feed("A"), product(class, 500 * (round % 50), 'x'));
        world.publish(&feed("A"), product(class, 100, 'y'));
        if round % 50 == 49 {
            world.break_stream(0, Micros::from_millis(500));
        }
        if round % 100 == 99 {
            world.evict(&feed("A"), 40);
        }
        world.run_for(Micros::from_millis(15));
    }
    assert_level(&mut world);
    let counts = world.counts(0);
    assert_eq!((counts.stored + counts.lost, counts.held), (400, 0), "{counts:?}");
    assert!(counts.streams >= 8, "{counts:?}");
}

/// A circuit that is cut and comes back again and again under one of two feeds, while routed connections break as well.
#[test]
fn a_feed_that_rides_loses_nothing_when_its_circuit_is_cut_and_the_other_notices_nothing() {
    let path = StreamPath { to: "10.9.0.0:7370".to_owned(), from: "10.9.0.1".to_owned() };
    let ride = Ride { path, feeds: [feed("A")].into(), streams: vec![Classes::all(); 2] };
    let cut = StreamPlan::routed(vec![Classes::all()]);
    let up = StreamPlan { rides: vec![ride], ..cut.clone() };
    let wishes = vec![wish("A", "."), wish("B", ".")];
    let data_delays = [40, 1, 150].map(Micros::from_millis).to_vec();
    let mut world = world(15, vec![SiteConfig { streams: up.clone(), data_delays, ..site(wishes) }]);
    start(&mut world);
    for round in 0..400 {
        let class = [Class::Warning, Class::Grid, Class::Bulk, Class::Observation][round % 4];
        let name = ["A", "B"][round / 2 % 2];
        world.publish(&feed(name), product(class, 1_000 * (round % 70), 'x'));
        match round % 80 {
            30 => world.plan_streams(0, cut.clone()),
            60 => world.plan_streams(0, up.clone()),
            70 => world.break_stream(0, Micros::from_millis(500)),
            _ => {}
        }
        world.run_for(Micros::from_millis(15));
    }
    assert_level(&mut world);
    let counts = world.counts(0);
    assert_eq!((counts.stored, counts.held, counts.lost), (400, 0, 0), "{counts:?}");
    assert!(counts.streams >= 8, "{counts:?}");
}

#[test]
fn data_connections_come_and_go_with_the_plan() {
    let all = Classes::all();
    let mut world = world(
        14,
        vec![SiteConfig { streams: StreamPlan::routed(vec![all; 3]), ..site(vec![wish("A", ".")]) }],
    );
    start(&mut world);
    for round in 0..300 {
        world.publish(&feed("A"), product(Class::Grid, 30_000, 'x'));
        match round {
            100 => world.plan_streams(0, StreamPlan::default()),
            200 => world.plan_streams(0, StreamPlan::routed(vec![all])),
            _ => {}
        }
        world.run_for(Micros::from_millis(20));
    }
    assert_level(&mut world);
    let counts = world.counts(0);
    assert_eq!((counts.stored, counts.held, counts.lost), (300, 0, 0));
    assert_eq!(counts.streams, 4);
}

#[test]
fn an_idle_world_is_quiet() {
    let mut world = world(11, (0..3).map(|_| site(vec![wish("A", ".")])).collect());
    start(&mut world);
    let leg = world.start_leg(&feed("A"), 20_000_000, 64 << 20);
    (0..3).for_each(|index| world.plan(index, &feed("A"), Some(leg)));
    world.publish(&feed("A"), product(Class::Grid, 100_000, 'y'));
    assert_level(&mut world);
    world.run_for(Micros::from_secs(2));
    let before = world.steps();
    world.run_for(Micros::from_secs(60));
    // Per second: four heads, each heard by three sites; now and then a clock exchange.
    let steps = world.steps() - before;
    assert!(steps < 60 * 40, "{steps} steps in a minute without products");
}

#[test]
fn sites_that_share_stretches_get_each_product_once_in_whatever_version() {
    let sites = [VERSIONS.as_slice(), &VERSIONS, &[VERSION], &VERSIONS].map(|versions| SiteConfig {
        versions,
        rate_bps: 8_000_000,
        ..site(vec![wish("A", ".*")])
    });
    let narrow = SiteConfig { rate_bps: 2_000_000, ..site(vec![wish("A", "^x")]) };
    let mut world = world(13, sites.into_iter().chain([narrow]).collect());
    start(&mut world);
    for round in 0..3_000 {
        world.publish(
            &feed("A"),
            product(Class::Observation, round % 300, if round % 3 == 0 { 'x' } else { 'y' }),
        );
        match round {
            500 | 1_500 => world.cut(round / 1_000, Micros::from_millis(300)),
            1_000 => world.restart_site(3, Micros::from_millis(300), false),
            _ => {}
        }
        if round % 50 == 49 {
            world.run_for(Micros::from_millis(10));
        }
    }
    assert_level(&mut world);
    let counts: Vec<_> = (0..5).map(|index| world.counts(index)).collect();
    assert!(counts[..4].iter().all(|counts| counts.stored == 3_000), "{counts:?}");
    assert_eq!(counts[4].stored, 1_000);
    assert!([0, 1, 3].into_iter().all(|index| counts[index].trains > 30), "{counts:?}");
    assert_eq!(counts[2].trains, 0, "version 1 knows no trains");
}

/// Random operations on random worlds.
#[test]
fn random_scenarios_end_level() {
    let seeds = match std::env::var("DOWNBURST_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => {
            let count = std::env::var("DOWNBURST_SEEDS").map_or(40, |count| count.parse().unwrap());
            (0..count).collect()
        }
    };
    for seed in seeds {
        println!("seed {seed}; replay: DOWNBURST_SEED={seed} cargo test -p downburst-sim --test hub random");
        Scenario::new(seed).play();
    }
}

struct Scenario {
    dice: Dice,
    world: HubWorld,
    legs: Vec<(FeedName, LegId)>,
    sites: usize,
}

impl Scenario {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed, 1);
        let sites = 1 + dice.below(4) as usize;
        let configs = (0..sites).map(|_| random_site(&mut dice)).collect();
        let mut world = world(seed, configs);
        let legs = [feed("A"), feed("A"), feed("B")].map(|feed| {
            let window = [20_000, 1 << 20, 64 << 20][dice.below(3) as usize];
            let leg = world.start_leg(&feed, 2_000_000 + dice.below(40_000_000), window);
            (feed, leg)
        });
        Self { dice, world, legs: legs.into(), sites }
    }

    fn play(mut self) {
        start(&mut self.world);
        for _ in 0..150 {
            // Some rounds bring many at once, which then travel in trains.
            let most = if self.dice.chance(0.1) { 60 } else { 6 };
            for _ in 0..self.dice.below(most) {
                self.publish();
            }
            if self.dice.chance(0.3) {
                self.disturb();
            }
            let pause = self.dice.below(100_000);
            self.world.run_for(Micros(pause));
        }
        assert_level(&mut self.world);
    }

    fn publish(&mut self) {
        let class =
            [Class::Warning, Class::Observation, Class::Grid, Class::Bulk][self.dice.below(4) as usize];
        let size = match self.dice.below(10) {
            0 => 0,
            1 => self.dice.below(200_000) as usize,
            _ => self.dice.below(4_000) as usize,
        };
        let kind = ['x', 'y'][self.dice.below(2) as usize];
        let name = ["A", "B"][self.dice.below(2) as usize];
        self.world.publish(&feed(name), product(class, size, kind));
    }

    fn disturb(&mut self) {
        let site = self.dice.below(self.sites as u64) as usize;
        let pause = Micros(self.dice.below(1_000_000));
        match self.dice.below(32) {
            0..10 => {
                let (feed, leg) = self.legs[self.dice.below(self.legs.len() as u64) as usize].clone();
                self.world.plan(site, &feed, Some(leg));
            }
            10..15 => {
                let name = ["A", "B"][self.dice.below(2) as usize];
                self.world.plan(site, &feed(name), None);
            }
            15..18 => self.world.cut(site, pause),
            18..20 => {
                let with_log = self.dice.chance(0.5);
                self.world.restart_site(site, pause, with_log);
            }
            20 => self.world.restart_hub(pause),
            21 => {
                let subscriptions = random_subscriptions(&mut self.dice);
                self.world.subscribe(site, subscriptions);
            }
            22..28 => self.world.break_stream(site, Micros::from_secs(2)),
            28..30 => {
                let streams = random_streams(&mut self.dice);
                self.world.plan_streams(site, streams);
            }
            30 => self.world.evict(&feed("A"), 20),
            _ => self.world.renew_log(&feed("B"), pause),
        }
    }
}

fn random_site(dice: &mut Dice) -> SiteConfig {
    let loss = match dice.below(3) {
        0 => Loss::None,
        1 => Loss::Independent(dice.below(10) as f64 / 100.0),
        _ => Loss::Bursts { enter: 0.01, leave: 0.2, loss: 0.7 },
    };
    SiteConfig {
        subscriptions: random_subscriptions(dice),
        rate_bps: 1_000_000 + dice.below(50_000_000),
        delay: Micros(dice.below(60_000)),
        streams: random_streams(dice),
        data_delays: (0..4).map(|_| Micros(dice.below(300_000))).collect(),
        link: LinkConfig {
            loss,
            delay: Micros(dice.below(40_000)),
            jitter: Micros(dice.below(5_000)),
            duplicate: 0.01,
            ..LinkConfig::default()
        },
        bad_digest: [0.0, 0.05][dice.below(2) as usize],
        store_failure: [0.0, 0.02][dice.below(2) as usize],
        clock_us: dice.below(2_000_000) as i64 - 1_000_000,
        versions: [VERSIONS.as_slice(), &[VERSION]][usize::from(dice.chance(0.25))],
    }
}

fn random_streams(dice: &mut Dice) -> StreamPlan {
    let ride = |dice: &mut Dice, number: usize| Ride {
        path: StreamPath { to: format!("10.9.0.{number}:7370"), from: "10.9.1.1".to_owned() },
        feeds: ["A", "B"].into_iter().filter(|_| dice.chance(0.5)).map(feed).collect(),
        streams: random_classes(dice),
    };
    let rides = (0..dice.below(3) as usize).map(|number| ride(dice, number)).collect();
    StreamPlan { routed: random_classes(dice), rides }
}

fn random_classes(dice: &mut Dice) -> Vec<Classes> {
    let sets = [
        Classes::all(),
        Classes::of(Class::Observation),
        Classes::of(Class::Grid).with(Class::Bulk),
        Classes::NONE,
    ];
    (0..dice.below(5)).map(|_| sets[dice.below(sets.len() as u64) as usize]).collect()
}

fn random_subscriptions(dice: &mut Dice) -> Vec<Subscription> {
    let pattern = |dice: &mut Dice| [".", "^x", "^y", "7$"][dice.below(4) as usize];
    let mut subscriptions = vec![wish("A", pattern(dice))];
    if dice.chance(0.7) {
        subscriptions.push(wish("B", pattern(dice)));
    }
    subscriptions
}
