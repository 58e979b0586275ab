//! Hundreds of small multicast worlds, each with a different network: independent and burst loss up to 30 %,
//! reordering, duplication, delays up to 300 ms, sites that join late, pause or die. `DOWNBURST_SEED=n`
//! replays one; `DOWNBURST_SMALL_WORLDS=n` plays n instead of 500, and `make test-all` 2,000.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test that fails stops")]
use downburst_model::{Class, Micros};
use downburst_sim::multicast_world::{PlannedProduct, PlannedReceiver, Scenario, run};
use downburst_sim::net::{Dice, LinkConfig, Loss};

/// Four parts, which run in parallel.
#[test]
fn worlds_of_the_first_part_end_well() {
    play(1, "first");
}

#[test]
fn worlds_of_the_second_part_end_well() {
    play(2, "second");
}

#[test]
fn worlds_of_the_third_part_end_well() {
    play(3, "third");
}

#[test]
fn worlds_of_the_fourth_part_end_well() {
    play(4, "fourth");
}

/// Plays every fourth seed from `part` on: every site ends with identical bytes or a reported gap, each byte
/// reported once; the rate is never above ceiling and burst; no timer is left.
fn play(part: u64, name: &str) {
    let asked = std::env::var("DOWNBURST_SEED").ok().map(|seed| seed.parse().expect("a number"));
    let seeds = match asked {
        Some(seed) => vec![seed],
        None => (part..=worlds()).step_by(4).collect(),
    };
    let (mut decoded, replayed) = (0, asked.is_some());
    for seed in seeds {
        let report = run(small_world(seed)).unwrap();
        decoded += report.receivers.iter().map(|receiver| receiver.stats.decoded).sum::<u64>();
        assert!(
            report.faults.is_empty(),
            "seed {seed}: {:#?}\nreplay: DOWNBURST_SEED={seed} cargo test -p downburst-sim --test small_worlds {name}",
            report.faults
        );
    }
    println!("{decoded} packets were restored from coded repairs");
    // Most come from the large worlds, of which a smaller number of worlds has few.
    let least = if worlds() < 2_000 { 0 } else { 500 };
    assert!(replayed || decoded > least, "{decoded}");
}

fn small_world(seed: u64) -> Scenario {
    let mut dice = Dice::new(seed, u64::MAX - 1);
    let mut at = 0;
    let products = (0..2 + dice.below(12)).map(|_| {
        at += dice.below(20_000);
        let size = [0, dice.below(3_000), dice.below(20_000), 32_768 + dice.below(60_000)];
        let class = [Class::Warning, Class::Observation, Class::Grid, Class::Bulk];
        PlannedProduct { at: Micros(at), size: pick(&mut dice, size) as usize, class: pick(&mut dice, class) }
    });
    let products = products.collect();
    // One world in a hundred is large.
    let count = if dice.chance(0.01) { 20 + dice.below(80) } else { 1 + dice.below(5) };
    let shared = loss(&mut dice);
    let receivers = (0..count).map(|_| receiver(&mut dice, shared)).collect();
    let rate_bps = pick(&mut dice, [5_000_000, 40_000_000, 150_000_000, 900_000_000]);
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

/// Half of the sites have similar networks, so that blocks are repaired by code.
fn receiver(dice: &mut Dice, shared: Loss) -> PlannedReceiver {
    let own = loss(dice);
    let delay = Micros(pick(dice, [0, 2_000, 30_000, 300_000]));
    let when = |dice: &mut Dice| Micros(dice.below(300_000));
    let pause = when(dice);
    PlannedReceiver {
        link: LinkConfig {
            delay,
            jitter: Micros(pick(dice, [0, 0, 5_000, 40_000])),
            loss: if dice.chance(0.5) { shared } else { own },
            duplicate: pick(dice, [0.0, 0.0, 0.1]),
            ..LinkConfig::default()
        },
        session_delay: delay.max(Micros(500)),
        session_rate_bps: pick(dice, [None, None, Some(10_000_000)]),
        channel: channel(dice, delay),
        joins: if dice.chance(0.2) { when(dice) } else { Micros(0) },
        paused: dice.chance(0.1).then(|| (pause, pause.plus(Micros(dice.below(1_000_000))))),
        dies: dice.chance(0.1).then(|| when(dice)),
    }
}

/// Datagrams of requests and answers are lost, reordered and duplicated; one site in eight has a firewall, one
/// in eight has no repair channel.
fn channel(dice: &mut Dice, delay: Micros) -> Option<LinkConfig> {
    let loss = match dice.below(8) {
        0 => return None,
        1 => Loss::Independent(1.0),
        _ => loss(dice),
    };
    let jitter = Micros(pick(dice, [0, 0, 5_000, 40_000]));
    let duplicate = pick(dice, [0.0, 0.0, 0.1]);
    Some(LinkConfig { delay, jitter, loss, duplicate, ..LinkConfig::default() })
}

fn loss(dice: &mut Dice) -> Loss {
    match dice.below(4) {
        0 => Loss::None,
        1 => Loss::Independent(dice.below(50) as f64 / 1_000.0),
        2 => Loss::Independent(dice.below(300) as f64 / 1_000.0),
        _ => Loss::Bursts { enter: dice.below(20) as f64 / 1_000.0, leave: 0.05, loss: 0.95 },
    }
}

fn pick<T: Copy, const N: usize>(dice: &mut Dice, from: [T; N]) -> T {
    from.into_iter().cycle().nth(usize::try_from(dice.below(N as u64)).unwrap_or(0)).expect("not empty")
}

fn worlds() -> u64 {
    std::env::var("DOWNBURST_SMALL_WORLDS").map_or(500, |count| count.parse().expect("a number of worlds"))
}
