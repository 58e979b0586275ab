//! A leg with its log, its keys and its sites, driven in virtual time with real receivers.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "a test that fails stops")]
mod world;

use downburst_hub::{LegInput, LegInterface, LegOutput, LegSettings};
use downburst_model::{Machine as _, Micros, Now, Sequence, WallMicros};
use downburst_vcmtp::Urgency;
use world::{World, settings};

const RATE_BPS: u64 = 50_000_000;
const SECOND: Micros = Micros::from_secs(1);

#[test]
fn every_site_has_every_product_although_each_loses_some() {
    let mut world = World::new(RATE_BPS);
    let sites = [0.0, 0.02, 0.05, 0.1].map(|loss| world.join(loss));
    world.run_for(SECOND);
    for round in 0..200 {
        world.publish(round * 331 % 20_000);
        world.run_for(Micros::from_millis(5));
    }
    world.run_for(Micros::from_secs(5));
    for site in sites {
        assert_eq!(world.lacks(site), [], "site {site}");
        assert_eq!(world.sites[site].receiver.stats().refused, 0);
    }
    assert_eq!(world.leg.backlog_bytes(), 0);
    assert_eq!(world.leg.stats().products, 200);
    assert!(world.sites[3].receiver.stats().repaired > 0);
}

#[test]
fn a_repair_goes_the_way_of_the_sites_last_request() {
    let mut world = World::new(RATE_BPS);
    let (by_channel, by_session) = (world.join(0.05), world.join(0.05));
    world.sites[by_channel].channel = Some(77);
    for _ in 0..100 {
        world.publish(10_000);
        world.run_for(Micros::from_millis(10));
    }
    assert!(world.sites[by_channel].repairs.len() > 10);
    assert!(world.sites[by_channel].repairs.iter().all(|way| *way == Some(77)));
    assert!(world.sites[by_session].repairs.iter().all(Option::is_none));
    world.sites[by_channel].channel = None;
    load(&mut world, 1);
    world.sites[by_channel].repairs.clear();
    for _ in 0..100 {
        world.publish(10_000);
        world.run_for(Micros::from_millis(10));
    }
    assert!(world.sites[by_channel].repairs.iter().all(Option::is_none));
}

#[test]
fn the_log_is_read_in_order_and_no_further_than_the_sender_has_room() {
    let mut world = World::new(100_000);
    world.publish_all(70_000, 1);
    world.run_for(Micros::from_millis(100));
    let mut after = Sequence(0);
    for range in &world.reads {
        assert_eq!(range.after, after);
        after = Sequence(after.0 + range.limit_products as u64);
    }
    let read = world.leg.stats().products;
    assert!((65_536..66_560).contains(&read), "{read}");
    world.tell(LegInput::Rate(1_000_000_000));
    world.run_for(Micros::from_secs(10));
    assert_eq!(world.leg.stats().products, 70_000);
}

#[test]
fn a_read_that_failed_is_asked_for_again_when_the_head_is_told() {
    let mut world = World::new(RATE_BPS);
    let site = world.join(0.0);
    world.run_for(SECOND);
    world.log_fails = true;
    world.publish(500);
    let now = Now { monotonic: world.now, wall: WallMicros(0) };
    world.leg.handle(now, LegInput::Head(Sequence(1)));
    assert!(matches!(world.leg.poll(now), Some(LegOutput::Read(_))));
    assert_eq!(world.leg.deadline().filter(|due| *due <= world.now), None, "one read at a time");
    world.leg.handle(now, LegInput::ReadFailed);
    assert_eq!(world.leg.poll(now), None);
    world.log_fails = false;
    world.run_for(SECOND);
    assert_eq!(world.lacks(site), []);
}

#[test]
fn what_was_evicted_before_it_was_read_is_a_hole_that_the_next_product_shows() {
    let mut world = World::new(RATE_BPS);
    let site = world.join(0.0);
    world.run_for(SECOND);
    world.publish_all(3, 500);
    world.log.get_mut(&Sequence(2)).unwrap().1 = None;
    world.run_for(SECOND);
    let announced = &world.sites[site].announced;
    assert_eq!(announced.keys().copied().collect::<Vec<_>>(), [Sequence(1), Sequence(3)]);
    assert_eq!(announced[&Sequence(3)].0, Sequence(1));
}

#[test]
fn a_site_whose_right_ended_is_shut_out_within_a_second_and_the_others_miss_nothing() {
    let mut world = World::new(RATE_BPS);
    let (stays, goes, deaf) = (world.join(0.0), world.join(0.0), world.join(0.02));
    world.sites[deaf].confirms = false;
    world.run_for(Micros::from_secs(2));
    bar(&mut world, goes, Urgency::AtOnce);
    let barred_at = world.now;
    world.run_for(SECOND);
    let story = ["site-2 barred AtOnce", "draw", "1 then 2", "2 for site-1", "2 for site-3", "2 in use"];
    assert_eq!(world.key_story(), story);
    let used = world.said.iter().rfind(|(_, output)| matches!(output, LegOutput::Keys(_))).unwrap().0;
    assert!(used.since(barred_at) < Micros::from_millis(900), "{used:?}");
    world.publish_all(20, 5_000);
    world.run_for(Micros::from_secs(2));
    assert_eq!((world.lacks(stays), world.lacks(deaf)), (vec![], vec![]));
    assert_eq!(world.lacks(goes).len(), 20);
    assert!(world.sites[goes].receiver.stats().refused > 0);
}

#[test]
fn sites_that_leave_by_themselves_share_one_key() {
    let mut world = World::new(RATE_BPS);
    world.join_all(5, 0.0);
    world.run_for(Micros::from_secs(20));
    bar(&mut world, 0, Urgency::Soon);
    world.run_for(SECOND);
    bar(&mut world, 1, Urgency::Soon);
    bar(&mut world, 2, Urgency::Soon);
    world.run_for(Micros::from_secs(30));
    let used: Vec<String> = world.key_story().into_iter().filter(|line| line.ends_with("in use")).collect();
    assert_eq!(used, ["2 in use", "3 in use"]);
}

#[test]
fn a_credential_that_ends_nobody_told_of_is_found() {
    let mut world = World::new(RATE_BPS);
    world.join_all(2, 0.0);
    world.run_for(Micros::from_secs(2));
    let site = &world.sites[1];
    world.barred.insert((site.name.clone(), site.view.credential.clone()), Urgency::AtOnce);
    world.run_for(SECOND);
    assert_eq!(world.key_story()[0], "site-2 barred AtOnce");
}

#[test]
fn the_former_credential_counts_as_long_as_its_holder_may_know_the_key() {
    let mut world = World::new(RATE_BPS);
    world.join_all(2, 0.0);
    world.run_for(Micros::from_secs(2));
    let (site, former) = (world.sites[1].name.clone(), world.sites[1].view.credential.clone());
    let credential = "another".to_owned();
    let renewed = LegInput::CredentialRenewed { site, former, credential: credential.clone() };
    world.tell(renewed);
    let former = std::mem::replace(&mut world.sites[1].view.credential, credential);
    world.barred.insert((world.sites[1].name.clone(), former), Urgency::Soon);
    world.tell(LegInput::RightsChanged);
    world.run_for(Micros::from_secs(12));
    let told = "2 for site-2".to_owned();
    assert!(world.key_story().contains(&told), "it reads on under the other: {:?}", world.key_story());
    world.publish(500);
    world.run_for(SECOND);
    assert_eq!(world.lacks(1), []);
}

#[test]
fn who_joins_while_a_key_is_handed_over_is_given_both() {
    let mut world = World::new(RATE_BPS);
    world.join_all(2, 0.0);
    world.sites[0].confirms = false;
    world.run_for(Micros::from_secs(2));
    bar(&mut world, 1, Urgency::AtOnce);
    world.run_for(Micros::from_millis(100));
    assert_eq!(world.keys.next.as_ref().map(|key| key.id), Some(2), "not used yet");
    let late = world.join(0.0);
    for _ in 0..20 {
        world.publish(2_000);
        world.run_for(Micros::from_millis(100));
    }
    assert_eq!((world.keys.in_use.id, world.keys.next.is_none()), (2, true));
    assert_eq!((world.lacks(0), world.lacks(late)), (vec![], vec![]));
    assert_eq!(world.sites[late].receiver.stats().refused, 0);
}

#[test]
fn without_randomness_the_key_stays_and_is_asked_for_again() {
    let mut world = World::new(RATE_BPS);
    world.join_all(2, 0.0);
    world.randomness_fails = true;
    bar(&mut world, 1, Urgency::AtOnce);
    world.run_for(SECOND);
    let draws = world.key_story().iter().filter(|line| *line == "draw").count();
    assert!((5..15).contains(&draws), "{draws}");
    assert_eq!(world.keys.in_use.id, 1);
    world.randomness_fails = false;
    world.run_for(SECOND);
    assert_eq!(world.keys.in_use.id, 2);
}

#[test]
fn a_session_that_died_is_not_waited_for() {
    let mut world = World::new(RATE_BPS);
    world.join_all(3, 0.0);
    world.sites[2].confirms = false;
    world.run_for(Micros::from_secs(20));
    bar(&mut world, 1, Urgency::Soon);
    world.run_for(Micros::from_millis(200));
    assert!(world.keys.next.is_some());
    world.sites[2].connected = false;
    world.run_for(Micros::from_millis(200));
    assert_eq!((world.keys.in_use.id, world.keys.next.is_none()), (2, true));
}

#[test]
fn the_rate_falls_while_the_sites_lose_together_and_rises_again() {
    let mut world = World::new(RATE_BPS);
    let sites = [0.3; 4].map(|loss| world.join(loss));
    load(&mut world, 3);
    assert!(world.rates().first().is_some_and(|rate| *rate < RATE_BPS * 8 / 10), "{:?}", world.rates());
    sites.into_iter().for_each(|site| world.sites[site].loss = 0.0);
    load(&mut world, 15);
    assert_eq!(world.rates().last(), Some(&RATE_BPS));
    world.run_for(Micros::from_secs(5));
    sites.into_iter().for_each(|site| assert_eq!(world.lacks(site), []));
}

#[test]
fn one_site_that_loses_far_more_than_the_others_is_taken_off_and_costs_no_rate() {
    let mut world = World::new(RATE_BPS);
    let (poor, _, _) = (world.join(0.5), world.join(0.0), world.join(0.0));
    world.sites[poor].channel = Some(77);
    load(&mut world, 5);
    let taken: Vec<u64> = world
        .said
        .iter()
        .filter_map(|(_, output)| match output {
            LegOutput::TakeOff(straggler) => Some(straggler.session),
            _ => None,
        })
        .collect();
    assert_eq!(taken.first(), Some(&1), "{taken:?}");
    assert!(taken.iter().all(|session| *session == 1));
    assert_eq!(world.rates(), Vec::<u64>::new());
    let by_session = world.sites[poor].repairs.iter().filter(|way| way.is_none()).count();
    assert!(by_session > 0, "its repairs give way as TCP does");
}

#[test]
fn datagrams_of_a_relay_fit_its_interface_and_not_the_sessions_of_its_sites() {
    let mut world = World::with(LegSettings {
        interface: LegInterface { mtu_bytes: None, is_circuit: false, is_relayed: true },
        ..settings(RATE_BPS)
    });
    let narrow = world.join(0.0);
    world.sites[narrow].view.path_mtu_bytes = Some(1_300);
    load(&mut world, 1);
    assert!((1_400..=1_452).contains(&world.longest_datagram), "{}", world.longest_datagram);
    world.tell(LegInput::Mtu(Some(1_200)));
    world.run_for(SECOND);
    world.longest_datagram = 0;
    load(&mut world, 1);
    assert!((1_100..=1_152).contains(&world.longest_datagram), "{}", world.longest_datagram);
}

#[test]
fn datagrams_are_as_long_as_the_narrowest_way_carries_while_its_site_is_there() {
    let mut world = World::new(RATE_BPS);
    let (_, narrow) = (world.join(0.0), world.join(0.0));
    load(&mut world, 1);
    assert!((1_400..=1_452).contains(&world.longest_datagram), "{}", world.longest_datagram);
    world.sites[narrow].view.path_mtu_bytes = Some(1_300);
    world.run_for(SECOND);
    world.longest_datagram = 0;
    load(&mut world, 1);
    assert!((1_200..=1_252).contains(&world.longest_datagram), "{}", world.longest_datagram);
    (world.sites[narrow].view.offered, world.sites[narrow].view.hears) = (false, false);
    load(&mut world, 1);
    assert!((1_400..=1_452).contains(&world.longest_datagram), "{}", world.longest_datagram);
    let lengths = world.said.iter().filter_map(|(_, output)| match output {
        LegOutput::DatagramBytes(bytes) => Some(*bytes),
        _ => None,
    });
    assert_eq!(lengths.collect::<Vec<_>>(), [1_252, 1_452]);
}

#[test]
fn a_plan_that_asks_for_another_rate_gets_it() {
    let mut world = World::new(1_000_000);
    world.join(0.0);
    world.publish_all(10, 50_000);
    world.run_for(SECOND);
    assert!(world.leg.backlog_bytes() > 300_000, "half a megabyte takes four seconds");
    world.tell(LegInput::Rate(100_000_000));
    world.run_for(Micros::from_millis(100));
    assert_eq!(world.leg.backlog_bytes(), 0);
}

#[test]
fn an_idle_leg_sleeps() {
    let mut world = World::new(RATE_BPS);
    world.join_all(3, 0.0);
    world.run_for(Micros::from_secs(5));
    let before = world.polls;
    world.run_for(Micros::from_secs(10));
    let polls = world.polls - before;
    assert!((40..200).contains(&polls), "{polls} outputs in ten seconds");
}

#[test]
fn the_same_inputs_give_the_same_outputs() {
    let play = || {
        let mut world = World::new(RATE_BPS);
        world.join_all(3, 0.05);
        load(&mut world, 2);
        bar(&mut world, 1, Urgency::AtOnce);
        load(&mut world, 2);
        (world.said, world.leg.stats(), world.polls)
    };
    assert!(play() == play());
}

fn bar(world: &mut World, site: usize, urgency: Urgency) {
    let site = &world.sites[site];
    world.barred.insert((site.name.clone(), site.view.credential.clone()), urgency);
    world.tell(LegInput::RightsChanged);
}

/// Publishes most of the rate's capacity for a number of seconds.
fn load(world: &mut World, seconds: u64) {
    for _ in 0..seconds * 50 {
        world.publish(60_000);
        world.run_for(Micros::from_millis(20));
    }
}
