//! VCMTP with many receivers on bad networks, in virtual time. `DOWNBURST_SEED=n` replays one seed.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails stops"
)]
use downburst_model::{Class, Micros};
use downburst_sim::multicast_world::{PlannedProduct, PlannedReceiver, Report, Scenario, run};
use downburst_sim::net::{Dice, LinkConfig, Loss};

const CLASSES: [Class; 4] = [Class::Warning, Class::Observation, Class::Grid, Class::Bulk];

fn seeds(count: u64) -> Vec<u64> {
    match std::env::var("DOWNBURST_SEED") {
        Ok(seed) => vec![seed.parse().expect("DOWNBURST_SEED is a number")],
        Err(_) => (1..=count).collect(),
    }
}

/// Plays a scenario that must have no faults.
fn play(test: &str, scenario: Scenario) -> Report {
    let seed = scenario.seed;
    let report = run(scenario).unwrap();
    assert!(
        report.faults.is_empty(),
        "seed {seed}: {:#?}\nreplay: DOWNBURST_SEED={seed} cargo test -p downburst-sim --test multicast {test}",
        report.faults
    );
    report
}

/// `count` products of `size` bytes, offered at `rate_bps` of product bits.
fn steady(count: u64, size: usize, rate_bps: u64) -> Vec<PlannedProduct> {
    let gap = size as u64 * 8_000_000 / rate_bps;
    let product = |number| PlannedProduct { at: Micros(50_000 + number * gap), size, class: Class::Grid };
    (0..count).map(product).collect()
}

fn lossy(probability: f64) -> PlannedReceiver {
    let link = LinkConfig { loss: Loss::Independent(probability), ..LinkConfig::default() };
    PlannedReceiver { link, channel: Some(link), ..PlannedReceiver::default() }
}

fn scenario(seed: u64, products: Vec<PlannedProduct>, receivers: Vec<PlannedReceiver>) -> Scenario {
    Scenario {
        seed,
        rate_bps: 100_000_000,
        shared: Loss::None,
        shared_bps: None,
        slack: Micros(1_000),
        products,
        receivers,
    }
}

fn random_scenario(seed: u64) -> Scenario {
    let mut dice = Dice::new(seed, u64::MAX);
    let mut at = 0;
    let products = (0..20 + dice.below(150)).map(|_| {
        at += dice.below(30_000);
        let size = [0, dice.below(3_000), dice.below(100_000), dice.below(600_000)][dice.below(4) as usize];
        PlannedProduct { at: Micros(at), size: size as usize, class: CLASSES[dice.below(4) as usize] }
    });
    let products = products.collect();
    let receivers = (0..1 + dice.below(8)).map(|_| random_receiver(&mut dice)).collect();
    let rate_bps = [5_000_000, 40_000_000, 150_000_000, 900_000_000][dice.below(4) as usize];
    Scenario {
        seed,
        rate_bps,
        shared: Loss::None,
        shared_bps: None,
        slack: Micros(dice.below(3_000)),
        products,
        receivers,
    }
}

fn random_receiver(dice: &mut Dice) -> PlannedReceiver {
    let loss = match dice.below(4) {
        0 => Loss::None,
        1 => Loss::Independent(dice.below(100) as f64 / 1_000.0),
        2 => Loss::Independent(dice.below(400) as f64 / 1_000.0),
        _ => Loss::Bursts { enter: 0.001, leave: 0.02, loss: 0.9 },
    };
    let when = |dice: &mut Dice| Micros(dice.below(3_000_000));
    let pause = when(dice);
    PlannedReceiver {
        link: LinkConfig {
            delay: Micros(dice.below(50_000)),
            jitter: Micros([0, dice.below(30_000)][dice.below(2) as usize]),
            loss,
            duplicate: [0.0, 0.05][dice.below(2) as usize],
            rate_bps: [None, Some(20_000_000)][usize::from(dice.chance(0.2))],
            buffer_bytes: 200_000,
        },
        session_delay: Micros(1_000 + dice.below(120_000)),
        channel: dice.chance(0.8).then(|| LinkConfig {
            delay: Micros(dice.below(50_000)),
            loss: Loss::Independent(dice.below(300) as f64 / 1_000.0),
            ..LinkConfig::default()
        }),
        session_rate_bps: [None, Some(30_000_000)][dice.below(2) as usize],
        joins: [Micros(0), when(dice)][usize::from(dice.chance(0.3))],
        paused: dice.chance(0.2).then(|| (pause, pause.plus(Micros(dice.below(2_000_000))))),
        dies: dice.chance(0.15).then(|| when(dice)),
    }
}

#[test]
fn random_worlds_end_well() {
    for seed in seeds(60) {
        let report = play("random_worlds_end_well", random_scenario(seed));
        assert!(report.receivers.iter().all(|receiver| receiver.stats.refused == 0), "seed {seed}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = || format!("{:?}", play("the_same_seed", random_scenario(4)));
    assert_eq!(run(), run());
}

#[test]
fn without_loss_nothing_is_asked_for() {
    for seed in seeds(5) {
        let receivers = (0..7).map(|_| PlannedReceiver {
            link: LinkConfig { jitter: Micros(5_000), ..LinkConfig::default() },
            ..PlannedReceiver::default()
        });
        let report =
            play("without_loss", scenario(seed, steady(50, 100_000, 80_000_000), receivers.collect()));
        assert!(report.receivers.iter().all(|receiver| receiver.whole.len() == 50));
        assert_eq!(report.sender.group_repair_bytes + report.sender.site_repair_bytes, 0);
    }
}

#[test]
fn a_bad_receiver_changes_nothing_for_the_others() {
    let bad: [(&str, PlannedReceiver); 4] = [
        ("loses 5 %", lossy(0.05)),
        ("loses half", lossy(0.5)),
        (
            "is on a link of half the rate",
            PlannedReceiver {
                link: LinkConfig {
                    rate_bps: Some(50_000_000),
                    buffer_bytes: 100_000,
                    ..LinkConfig::default()
                },
                session_rate_bps: Some(20_000_000),
                ..PlannedReceiver::default()
            },
        ),
        ("dies", PlannedReceiver { dies: Some(Micros(700_000)), ..lossy(0.05) }),
    ];
    for seed in seeds(3) {
        let world = |one: PlannedReceiver| {
            let receivers = (0..6).map(|_| PlannedReceiver::default()).chain([one]).collect();
            let mut world = scenario(seed, steady(100, 200_000, 85_000_000), receivers);
            world.slack = Micros(0);
            play("a_bad_receiver", world)
        };
        let good = world(PlannedReceiver::default());
        for (name, one) in &bad {
            let report = world(one.clone());
            for site in 0..6 {
                assert_eq!(
                    report.receivers[site].whole, good.receivers[site].whole,
                    "seed {seed}: it {name}"
                );
            }
            assert_eq!(report.sender.group_repair_bytes, 0);
            assert!(report.sender.site_repair_bytes > 0);
        }
    }
}

#[test]
fn a_receiver_that_sleeps_catches_up_or_says_what_it_lacks() {
    for seed in seeds(3) {
        let sleeper = |seconds| PlannedReceiver {
            paused: Some((Micros(500_000), Micros::from_secs(seconds))),
            ..PlannedReceiver::default()
        };
        let receivers = vec![PlannedReceiver::default(), sleeper(2), sleeper(3)];
        let report =
            play("a_receiver_that_sleeps", scenario(seed, steady(150, 200_000, 85_000_000), receivers));
        for receiver in &report.receivers {
            assert_eq!(receiver.whole.len(), 150, "seed {seed}: {:?}", receiver.stats);
        }
    }
}

#[test]
fn a_receiver_too_far_behind_gives_up_and_goes_on() {
    let sleeper = PlannedReceiver {
        paused: Some((Micros(500_000), Micros::from_secs(70))),
        ..PlannedReceiver::default()
    };
    let report = play("too_far_behind", scenario(1, steady(1_000, 1_000_000, 90_000_000), vec![sleeper]));
    let [receiver] = &report.receivers[..] else { panic!("one receiver") };
    assert!(receiver.stats.given_up > 100_000, "{:?}", receiver.stats);
    assert!(receiver.lacking.len() > 100 && receiver.whole.len() > 200, "{}", receiver.lacking.len());
}

/// The cost of each world's repairs in per cent of the product bytes; the goals are those of a leg at 100 Mbit/s.
#[test]
fn repairs_cost_about_what_the_worst_site_lost_whatever_the_number_of_sites() {
    let mut shares = Vec::new();
    for (receivers, loss, goal) in [(7, 0.01, 0.02), (20, 0.01, 0.023), (7, 0.05, 0.08), (20, 0.05, 0.085)] {
        let sites = (0..receivers).map(|_| lossy(loss)).collect();
        let report = play("repairs_cost", scenario(1, steady(20, 1_000_000, 90_000_000), sites));
        let bytes = report.sender.product_bytes as f64;
        println!(
            "{receivers} receivers, {:.0} % loss: repairs {:.2} % of the product bytes (coded {:.2} %, to single \
             sites {:.2} %)",
            loss * 100.0,
            report.repair_share() * 100.0,
            report.sender.coded_repair_bytes as f64 / bytes * 100.0,
            report.sender.site_repair_bytes as f64 / bytes * 100.0
        );
        shares.push(report.repair_share());
        assert!(report.repair_share() < goal, "{} of {goal}", report.repair_share());
    }
    assert!(shares[1] < shares[0] * 1.3 && shares[3] < shares[2] * 1.3, "{shares:?}");
}

/// Five thousand messages of 2 kB per second to seven sites on one network, with a loss of 1 % at each.
#[test]
fn a_lost_message_is_repaired_within_twenty_milliseconds() {
    let site = || PlannedReceiver { session_delay: Micros(500), ..lossy(0.01) };
    let products = steady(5_000, 2_000, 80_000_000);
    let sent: Vec<u64> = products.iter().map(|product| product.at.0).collect();
    let mut world = scenario(1, products, (0..7).map(|_| site()).collect());
    world.rate_bps = 200_000_000;
    let report = play("a_lost_message", world);
    let arrived = report.receivers.iter().flat_map(|receiver| receiver.whole.values().zip(&sent));
    let mut delays: Vec<u64> = arrived.map(|(at, sent)| at.0 - sent).collect();
    delays.sort_unstable();
    let (middle, late) = (delays[delays.len() / 2], delays[delays.len() * 99 / 100]);
    println!(
        "2 kB at 5,000/s, 1 % loss: p50 {middle} us, p99 {late} us, worst {} us",
        delays.last().unwrap()
    );
    assert_eq!(delays.len(), 35_000);
    assert!(late <= 20_000, "{late}");
}

#[test]
fn the_overhead_of_headers_and_manifests_is_small() {
    for (count, size, rate, limit) in [(5_000, 2_000, 40_000_000, 1.16), (200, 100_000, 80_000_000, 1.05)] {
        let world = scenario(1, steady(count, size, rate), vec![PlannedReceiver::default()]);
        let report = play("the_overhead", world);
        println!("products of {size} bytes: {:.3} bytes of UDP payload for each", report.datagram_share());
        assert!(report.datagram_share() < limit, "{}", report.datagram_share());
    }
}

#[test]
fn warnings_pass_a_backlog_of_hours_and_nothing_starves() {
    // 25 MB at 20 Mb/s is a backlog of ten seconds; products behind 1 GB wait in the same way.
    let bulk = PlannedProduct { at: Micros(1_000), size: 25_000_000, class: Class::Bulk };
    let bulletins =
        (0..5_000).map(|_| PlannedProduct { at: Micros(1_000), size: 300, class: Class::Observation });
    let warnings = (0..130).map(|number| PlannedProduct {
        at: Micros(50_000 + 70_001 * number),
        size: 1_500,
        class: Class::Warning,
    });
    let products: Vec<_> = [bulk].into_iter().chain(bulletins).chain(warnings).collect();
    let delay = Micros::from_millis(20);
    let receiver = PlannedReceiver {
        link: LinkConfig {
            delay,
            rate_bps: Some(20_000_000),
            buffer_bytes: 1 << 20,
            ..LinkConfig::default()
        },
        ..PlannedReceiver::default()
    };
    let mut world = scenario(1, products.clone(), vec![receiver]);
    world.rate_bps = 20_000_000;
    let report = play("warnings_pass", world);
    let whole: Vec<Micros> = report.receivers[0].whole.values().copied().collect();
    let late = |place: usize| whole[place].since(products[place].at).0;
    let mut latencies: Vec<u64> = (5_001..products.len()).map(late).collect();
    latencies.sort_unstable();
    let p99 = latencies[latencies.len() * 99 / 100];
    println!(
        "warnings: p50 {} us, p99 {p99} us with a delay of {} us",
        latencies[latencies.len() / 2],
        delay.0
    );
    assert!(p99 <= 50_000 + 2 * delay.0, "p99 {p99} us");
    let bulletins = (1..=5_000).map(late).max().unwrap();
    assert!(bulletins < 5_000_000, "the last bulletin took {bulletins} us");
    assert!(late(0) < 13_000_000, "the large product took {} us", late(0));
}

#[test]
fn a_busy_leg_holds_its_rate_although_its_driver_is_late() {
    for rate_bps in [10_000_000, 100_000_000, 600_000_000] {
        let size = (rate_bps / 8) as usize;
        let products = vec![PlannedProduct { at: Micros(100_000), size, class: Class::Grid }];
        let mut world = scenario(1, products, vec![PlannedReceiver::default()]);
        world.rate_bps = rate_bps;
        let report = play("a_busy_leg", world);
        let done = report.receivers[0].whole.values().next().unwrap().0 - 101_000;
        let ideal = report.datagram_share() * (1_452.0 + 46.0) / 1_452.0 * 1e6;
        println!("{rate_bps} bit/s: {done} us for {ideal:.0} us of frames, {} wakes", report.wakes);
        assert!((done as f64) < ideal * 1.01 && done as f64 > ideal * 0.93, "{done} against {ideal}");
    }
}

#[test]
fn bulk_leaves_in_long_trains_and_a_warning_beside_it_waits_for_none() {
    let bulk = PlannedProduct { at: Micros(1_000), size: 25_000_000, class: Class::Bulk };
    let warnings = (0..40).map(|number| PlannedProduct {
        at: Micros(50_000 + 40_000 * number + 311 * number * number % 4_900),
        size: 1_500,
        class: Class::Warning,
    });
    let products: Vec<_> = [bulk].into_iter().chain(warnings).collect();
    let mut world = scenario(1, products.clone(), (0..7).map(|_| PlannedReceiver::default()).collect());
    world.slack = Micros(0);
    let report = play("bulk_leaves", world);
    let whole: Vec<Micros> = report.receivers[0].whole.values().copied().collect();
    let late = (1..products.len()).map(|place| whole[place].since(products[place].at).0).max().unwrap();
    let seconds = whole[0].0 as f64 / 1e6;
    let wakes = report.wakes as f64 / seconds;
    println!("a warning beside bulk: {late} us at most; the leg wakes {wakes:.0} times a second");
    // The link's delay, a short train, and its proof, of which one is made in 2 ms.
    assert!(late <= LinkConfig::default().delay.0 + 3_050, "{late}");
    assert!(wakes < 350.0, "{wakes}");
}
