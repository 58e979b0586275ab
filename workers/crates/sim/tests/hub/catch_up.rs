//! Sites that were cut off together get what they lack by one stream beside the live leg.
use super::*;

const MISSED: usize = 150;
const SIZE: usize = 20_000;
const LIVE_BPS: u64 = 20_000_000;

/// Five sites on one leg; four of them are cut off while products come, and are back.
fn back_from_an_outage(seed: u64, loss: Loss) -> HubWorld {
    let link = LinkConfig { loss, ..LinkConfig::default() };
    let sites = (0..5).map(|_| SiteConfig { link, ..site(vec![wish("A", ".*")]) }).collect();
    let mut world = world(seed, sites);
    world.hold_backfill(Micros::from_secs(3));
    start(&mut world);
    let leg = world.start_leg(&feed("A"), LIVE_BPS, 64 << 20);
    (0..5).for_each(|index| world.plan(index, &feed("A"), Some(leg)));
    publish(&mut world, 20);
    (0..4).for_each(|index| world.cut(index, Micros::from_secs(3)));
    publish(&mut world, MISSED);
    world.run_for(Micros::from_millis(1_500));
    world
}

fn publish(world: &mut HubWorld, count: usize) {
    for _ in 0..count {
        world.publish(&feed("A"), product(Class::Grid, SIZE, 'x'));
        world.run_for(Micros::from_millis(10));
    }
}

#[test]
fn four_sites_get_what_they_lack_by_little_more_than_one_copy_while_products_come() {
    for (seed, loss, most) in
        [(1, Loss::None, 1.1), (2, Loss::Independent(0.01), 1.2), (3, Loss::Independent(0.05), 1.6)]
    {
        let mut world = back_from_an_outage(seed, loss);
        let (after, to) = (Sequence(20), Sequence(20 + MISSED as u64));
        let stream = world.begin_stream(&feed("A"), (after, to), &[0, 1, 2, 3], LIVE_BPS / 2);
        world.run_for(Micros::from_millis(300));
        world.go(stream, to);
        publish(&mut world, 300);
        let stored: Vec<u64> = (0..5).map(|index| world.counts(index).stored).collect();
        world.end_stream(stream);
        assert_level(&mut world);
        let copies = world.sent_bytes(stream) as f64 / (MISSED * SIZE) as f64;
        println!("{loss:?}: {copies:.2} copies; stored before the end of the stream {stored:?}");
        assert!(copies <= most, "{copies}");
        for index in 0..5 {
            let counts = world.counts(index);
            assert_eq!(
                (counts.stored, counts.held, counts.lost),
                (20 + MISSED as u64 + 300, 0, 0),
                "{index}"
            );
        }
    }
}

#[test]
fn sites_that_leave_a_stream_in_the_middle_get_the_rest_by_their_sessions() {
    let mut world = back_from_an_outage(4, Loss::Independent(0.03));
    let to = Sequence(20 + MISSED as u64);
    let stream = world.begin_stream(&feed("A"), (Sequence(60), to), &[0, 1, 2], LIVE_BPS / 4);
    world.run_for(Micros::from_millis(300));
    world.go(stream, to);
    world.run_for(Micros::from_millis(800));
    world.cut(0, Micros::from_millis(200));
    world.restart_site(1, Micros::from_millis(200), true);
    publish(&mut world, 50);
    world.end_stream(stream);
    assert_level(&mut world);
    for index in 0..5 {
        assert_eq!(world.counts(index).lost, 0, "{index}");
    }
}
