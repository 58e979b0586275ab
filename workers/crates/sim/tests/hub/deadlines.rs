//! Feeds with a deadline: what is late is dropped and counted, and every product has one outcome at each site.
use downburst_session::Outcome;

use super::*;

const DEADLINE: Micros = Micros::from_millis(500);

/// The outcomes of a feed at a site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Outcomes {
    stored: u64,
    late_at_hub: u64,
    late_at_site: u64,
}

impl Outcomes {
    fn of(world: &HubWorld, site: usize, feed: &FeedName) -> Self {
        let count = |outcome| world.receipts(site, feed, outcome);
        let lost = count(Outcome::Expired) + count(Outcome::Rejected) + count(Outcome::Held);
        assert_eq!(lost, 0, "nothing else happens to a product of a feed that is kept");
        Self {
            stored: count(Outcome::Stored),
            late_at_hub: count(Outcome::LateAtHub),
            late_at_site: count(Outcome::LateAtSite),
        }
    }

    fn sum(self) -> u64 {
        self.stored + self.late_at_hub + self.late_at_site
    }
}

/// Publishes records of a feed at a constant rate, one of `size` bytes each `every`.
fn publish_for(world: &mut HubWorld, name: &FeedName, length: Micros, (size, every): (usize, Micros)) -> u64 {
    let count = length.0 / every.0;
    for _ in 0..count {
        world.publish(name, product(Class::Grid, size, 'r'));
        world.run_for(every);
    }
    count
}

/// Waits until the sites' receipts are at the hub, and checks that nothing is missing without one.
fn finish(world: &mut HubWorld) {
    world.run_for(Micros::from_secs(2));
    assert_level(world);
}

fn narrow(rate_bps: u64, wishes: Vec<Subscription>) -> SiteConfig {
    SiteConfig { rate_bps, ..site(wishes) }
}

#[test]
fn a_feed_in_time_loses_nothing() {
    let mut world = world(71, vec![site(vec![wish("A", ".*")])]);
    world.set_deadline(&feed("A"), Some(DEADLINE));
    start(&mut world);
    let count = publish_for(&mut world, &feed("A"), Micros::from_secs(2), (1_250, Micros::from_millis(2)));
    finish(&mut world);
    assert_eq!(Outcomes::of(&world, 0, &feed("A")), Outcomes { stored: count, ..Outcomes::default() });
}

#[test]
fn at_twice_the_rate_of_the_path_half_of_the_records_are_in_time_and_warnings_are_not_delayed() {
    let mut world = world(72, vec![narrow(5_000_000, vec![wish("A", ".*"), wish("B", ".*")])]);
    world.set_deadline(&feed("A"), Some(DEADLINE));
    start(&mut world);
    let mut warnings = 0;
    for tick in 0..5_000 {
        world.publish(&feed("A"), product(Class::Grid, 1_250, 'r'));
        if tick % 100 == 50 {
            world.publish(&feed("B"), product(Class::Warning, 500, 'w'));
            warnings += 1;
        }
        world.run_for(Micros::from_millis(1));
    }
    let in_time = world.receipts(0, &feed("B"), Outcome::Stored);
    assert!(in_time + 5 >= warnings, "a warning waits for what is on the path, not for the queue: {in_time}");
    finish(&mut world);
    let outcomes = Outcomes::of(&world, 0, &feed("A"));
    println!("at twice the rate of the path: {outcomes:?}");
    assert_eq!(outcomes.sum(), 5_000, "{outcomes:?}");
    assert!(outcomes.stored > 1_900, "the path carries half of them: {outcomes:?}");
    assert!(outcomes.late_at_site < 500, "what can't arrive in time is not sent: {outcomes:?}");
}

#[test]
fn a_cut_of_a_second_drops_what_is_too_late_and_the_counts_agree() {
    let mut world = world(73, vec![site(vec![wish("A", ".*")]), site(vec![wish("A", ".*")])]);
    world.set_deadline(&feed("A"), Some(DEADLINE));
    start(&mut world);
    let rate = (1_250, Micros::from_millis(1));
    let mut count = publish_for(&mut world, &feed("A"), Micros::from_secs(1), rate);
    world.cut(0, Micros::from_secs(1));
    count += publish_for(&mut world, &feed("A"), Micros::from_secs(3), rate);
    finish(&mut world);
    let (cut, whole) = (Outcomes::of(&world, 0, &feed("A")), Outcomes::of(&world, 1, &feed("A")));
    assert_eq!(whole, Outcomes { stored: count, ..Outcomes::default() });
    assert_eq!(cut.sum(), count, "{cut:?}");
    let late = cut.late_at_hub + cut.late_at_site;
    assert!((300..1_100).contains(&late), "a second without a path, and half a second to spare: {cut:?}");
}

#[test]
fn a_leg_that_loses_packets_leaves_no_record_without_an_outcome() {
    let lossy = LinkConfig { loss: Loss::Independent(0.1), ..LinkConfig::default() };
    let mut world = world(74, vec![SiteConfig { link: lossy, ..site(vec![wish("A", ".*")]) }]);
    world.set_deadline(&feed("A"), Some(Micros::from_millis(60)));
    start(&mut world);
    let leg = world.start_leg(&feed("A"), 20_000_000, 64 << 20);
    world.plan(0, &feed("A"), Some(leg));
    let count = publish_for(&mut world, &feed("A"), Micros::from_secs(4), (1_250, Micros::from_millis(1)));
    finish(&mut world);
    let outcomes = Outcomes::of(&world, 0, &feed("A"));
    assert_eq!(outcomes.sum(), count, "{outcomes:?}");
    assert!(outcomes.stored > count / 2, "repair in time still counts: {outcomes:?}");
}

#[test]
fn a_leg_that_is_too_slow_sends_only_what_is_in_time_and_delays_no_other_feed() {
    let wishes = || vec![wish("A", ".*"), wish("B", ".*")];
    let mut world = world(77, vec![site(wishes()), site(wishes())]);
    world.set_deadline(&feed("A"), Some(Micros::from_millis(300)));
    start(&mut world);
    let legs = [("A", 5_000_000), ("B", 5_000_000)];
    let legs = legs.map(|(name, rate_bps)| (name, world.start_leg(&feed(name), rate_bps, 64 << 20)));
    for (site, (name, leg)) in [0, 1].into_iter().flat_map(|site| legs.map(|leg| (site, leg))) {
        world.plan(site, &feed(name), Some(leg));
    }
    world.run_for(Micros::from_secs(1));
    let mut others = 0;
    for tick in 0..3_000 {
        world.publish(&feed("A"), product(Class::Grid, 1_250, 'r'));
        if tick % 20 == 10 {
            world.publish(&feed("B"), product(Class::Grid, 1_250, 'o'));
            others += 1;
        }
        world.run_for(Micros::from_millis(1));
    }
    for site in [0, 1] {
        let in_time = world.receipts(site, &feed("B"), Outcome::Stored);
        assert!(in_time + 5 >= others, "the other feed waits for nothing: {in_time} of {others}");
    }
    finish(&mut world);
    for site in [0, 1] {
        let outcomes = Outcomes::of(&world, site, &feed("A"));
        println!("at twice the rate of the leg: {outcomes:?}");
        assert_eq!(outcomes.sum(), 3_000, "{outcomes:?}");
        assert!(outcomes.stored > 1_000, "the leg carries nearly half of them: {outcomes:?}");
    }
}

#[test]
fn a_leg_repairs_no_record_that_is_late() {
    let lossy = LinkConfig { loss: Loss::Independent(0.3), ..LinkConfig::default() };
    let wishes = || vec![wish("A", ".*")];
    let mut world = world(78, vec![SiteConfig { link: lossy, ..site(wishes()) }, site(wishes())]);
    world.set_deadline(&feed("A"), Some(Micros::from_millis(100)));
    start(&mut world);
    let leg = world.start_leg(&feed("A"), 20_000_000, 64 << 20);
    (0..2).for_each(|site| world.plan(site, &feed("A"), Some(leg)));
    world.run_for(Micros::from_secs(1));
    let rate = (1_250, Micros::from_millis(1));
    let mut count = publish_for(&mut world, &feed("A"), Micros::from_secs(1), rate);
    // Behind the cut, the site asks for a second of packets that nobody wants any more.
    world.cut(0, Micros::from_secs(1));
    count += publish_for(&mut world, &feed("A"), Micros::from_secs(3), rate);
    finish(&mut world);
    let (cut, whole) = (Outcomes::of(&world, 0, &feed("A")), Outcomes::of(&world, 1, &feed("A")));
    println!("a cut of a second: {cut:?}");
    assert_eq!(whole, Outcomes { stored: count, ..Outcomes::default() });
    assert_eq!(cut.sum(), count, "{cut:?}");
    assert!(cut.late_at_hub > 500, "the hub sends none of the second that is over: {cut:?}");
}

#[test]
fn a_site_whose_clock_is_wrong_drops_by_the_hubs_time() {
    let wrong = SiteConfig { clock_us: 3_000_000, ..site(vec![wish("A", ".*")]) };
    let mut world = world(75, vec![wrong, site(vec![wish("A", ".*")])]);
    world.set_deadline(&feed("A"), Some(DEADLINE));
    start(&mut world);
    let count = publish_for(&mut world, &feed("A"), Micros::from_secs(1), (1_250, Micros::from_millis(2)));
    finish(&mut world);
    for site in [0, 1] {
        assert_eq!(Outcomes::of(&world, site, &feed("A")).stored, count);
    }
}

#[test]
fn a_deadline_can_come_and_go() {
    let mut world = world(76, vec![narrow(5_000_000, vec![wish("A", ".*")])]);
    start(&mut world);
    let rate = (1_250, Micros::from_millis(1));
    let mut count = publish_for(&mut world, &feed("A"), Micros::from_secs(1), rate);
    world.set_deadline(&feed("A"), Some(Micros::from_millis(200)));
    count += publish_for(&mut world, &feed("A"), Micros::from_secs(1), rate);
    world.set_deadline(&feed("A"), None);
    count += publish_for(&mut world, &feed("A"), Micros::from_secs(1), rate);
    finish(&mut world);
    let outcomes = Outcomes::of(&world, 0, &feed("A"));
    assert_eq!(outcomes.sum(), count, "{outcomes:?}");
    assert!(outcomes.late_at_hub > 0 && outcomes.stored > count / 2, "{outcomes:?}");
}
