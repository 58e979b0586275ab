//! The whole hub in virtual time: scripted operations first, then random ones by seed.
//!
//! A failing random run prints its seed; `DOWNBURST_SEED=n cargo test -p downburst-sim --test hub random`
//! replays it alone, and `DOWNBURST_SEEDS=n` runs the first n instead of the first 40.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // A test may fail.

use downburst_model::{Class, FeedName, LegId, Micros, Sequence};
use downburst_session::{Classes, Ride, StreamPath, StreamPlan, Subscription, VERSION, VERSIONS};
use downburst_sim::hub_world::{HubWorld, Publish, SiteConfig, WorldConfig};
use downburst_sim::net::{Dice, LinkConfig, Loss};

mod catch_up;
mod deadlines;
mod random;

fn feed(name: &str) -> FeedName {
    FeedName::parse(name).unwrap()
}

fn wish(feed_name: &str, pattern: &str) -> Subscription {
    Subscription { feed: feed(feed_name), pattern: pattern.to_owned(), not_pattern: None, within: None }
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
    // Nor does the session have the rate to repair the losses of a link that is too narrow.
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

/// The smallest and the largest delay differ by far more than the interval between products: a message
/// about sequences on one stream arrives before products that were sent earlier on another.
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

/// A circuit of one of two feeds is cut and restored repeatedly, while routed connections break as well.
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
    // Per second: four heads, each heard by three sites; occasionally a clock exchange.
    let steps = world.steps() - before;
    assert!(steps < 60 * 40, "{steps} steps in a minute without products");
}

#[test]
fn sites_that_share_stretches_get_each_product_once_whatever_versions_they_speak() {
    let sites = [VERSIONS.as_slice(), &VERSIONS, &[VERSION + 1, VERSION], &VERSIONS]
        .map(|versions| SiteConfig { versions, rate_bps: 8_000_000, ..site(vec![wish("A", ".*")]) });
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
    assert!(counts[..4].iter().all(|counts| counts.trains > 30), "{counts:?}");
}
