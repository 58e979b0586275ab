//! Made-up clocks on made-up paths: the truth is always within the bound. `DOWNBURST_SEED=n` replays one seed.
#![allow(clippy::unwrap_used)]

use downburst_offset::{Estimate, Estimator, Exchange, Taken};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

const SECOND: i64 = 1_000_000;
const START: i64 = 1_700_000_000 * SECOND;

/// A clock against the peer's, and the path between them.
#[derive(Clone, Copy, Debug)]
struct World {
    offset_us: i64,
    drift_ppm: i64,
    out_us: i64,
    back_us: i64,
    jitter_us: i64,
}

const LAN: World = World { offset_us: 250_000, drift_ppm: 50, out_us: 100, back_us: 100, jitter_us: 300 };

impl World {
    /// The own clock at the peer's time, both since the start.
    fn own(&self, peers: i64) -> i64 {
        START + peers + self.offset_us + peers * self.drift_ppm / 1_000_000
    }

    /// The truth at the peer's time.
    fn truth(&self, peers: i64) -> i64 {
        self.own(peers) - START - peers
    }

    fn exchange(&self, at: i64, random: &mut ChaCha8Rng) -> Exchange {
        let out = self.out_us + jitter(self.jitter_us, random);
        let back = self.back_us + jitter(self.jitter_us, random);
        Exchange {
            sent: self.own(at),
            received: START + at + out,
            replied: START + at + out + 5,
            returned: self.own(at + out + 5 + back),
        }
    }
}

/// Mostly short, sometimes ten times as long.
fn jitter(most_us: i64, random: &mut ChaCha8Rng) -> i64 {
    let part = (random.next_u32() % 1_000) as i64;
    let scale = if random.next_u32().is_multiple_of(8) { 10 } else { 1 };
    most_us * part * part / 1_000_000 * scale
}

fn seeds() -> Vec<u64> {
    match std::env::var("DOWNBURST_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (0..40).collect(),
    }
}

/// Four exchanges, one every second, then one every five seconds; the estimate is compared with the truth before and
/// after each. Returns the last one with its error.
fn run(world: World, seed: u64, count: i64) -> (Estimate, i64) {
    let replay =
        format!("seed {seed}, {world:?}; replay: DOWNBURST_SEED={seed} cargo test -p downburst-offset");
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut estimator = Estimator::default();
    let mut at = 0;
    let mut last = None;
    for number in 0..count {
        at += if number < 4 { SECOND } else { 5 * SECOND };
        if estimator.at(START).is_some() {
            check(&estimator, world, at, &replay);
        }
        let exchange = world.exchange(at, &mut random);
        assert_eq!(estimator.take(exchange), Taken::Kept, "{replay}");
        let after = exchange.replied - START + world.back_us;
        last = Some(check(&estimator, world, after, &replay));
    }
    last.unwrap()
}

fn check(estimator: &Estimator, world: World, at: i64, replay: &str) -> (Estimate, i64) {
    let estimate = estimator.at(world.own(at)).unwrap();
    let error = estimate.offset_us - world.truth(at);
    assert!(error.unsigned_abs() <= estimate.bound_us, "{error} µs off at {at} µs: {estimate:?}; {replay}");
    let wrong_ppb = (estimate.drift_ppb - world.drift_ppm * 1_000).unsigned_abs();
    assert!(wrong_ppb <= estimate.drift_bound_ppb, "drift at {at} µs: {estimate:?}; {replay}");
    (estimate, error)
}

#[test]
fn a_wrong_clock_that_drifts_is_corrected_within_half_of_the_shortest_round_trip() {
    for seed in seeds() {
        let (estimate, error) = run(LAN, seed, 60);
        assert!(
            error.unsigned_abs() <= estimate.round_trip_us / 2,
            "seed {seed}: {error} µs off, {estimate:?}"
        );
        assert!(estimate.bound_us <= estimate.round_trip_us + 400, "seed {seed}: {estimate:?}");
        assert!((estimate.drift_ppb - 50_000).abs() < 20_000, "seed {seed}: {estimate:?}");
    }
}

#[test]
fn a_path_of_ten_and_sixty_milliseconds_hides_a_part_that_the_bound_contains() {
    for seed in seeds() {
        for (out_us, back_us) in [(10_000, 60_000), (60_000, 10_000)] {
            let world = World { out_us, back_us, jitter_us: 2_000, ..LAN };
            let (estimate, error) = run(world, seed, 60);
            assert!(error.abs() > 20_000, "seed {seed}: the asymmetry can't be seen: {error} µs");
            assert!((35_000..50_000).contains(&estimate.bound_us), "seed {seed}: {estimate:?}");
        }
    }
}

#[test]
fn any_possible_drift_on_any_path_is_within_the_bound() {
    for seed in seeds() {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut upto = |most: i64| i64::from(random.next_u32()) % most;
        let world = World {
            offset_us: upto(10 * SECOND) - 5 * SECOND,
            drift_ppm: upto(1_900) - 950,
            out_us: upto(200_000),
            back_us: upto(200_000),
            jitter_us: upto(20_000),
        };
        if world.jitter_us * 2 < world.out_us + world.back_us {
            run(world, seed, 80);
        }
    }
}

#[test]
fn a_step_of_either_clock_is_a_new_course() {
    for seed in seeds() {
        for step_us in [-3_600 * SECOND, -SECOND, -40_000, 40_000, SECOND, 3_600 * SECOND] {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let mut estimator = Estimator::default();
            let before = World { out_us: 10_000, back_us: 12_000, ..LAN };
            for number in 1..20 {
                estimator.take(before.exchange(number * 5 * SECOND, &mut random));
            }
            let after = World { offset_us: before.offset_us + step_us, ..before };
            let taken = estimator.take(after.exchange(100 * SECOND, &mut random));
            // An hour later, nothing before it counts.
            let is_late = step_us > 600 * SECOND;
            assert_eq!(
                taken,
                if is_late { Taken::Kept } else { Taken::Stepped },
                "seed {seed}, step {step_us}"
            );
            check(&estimator, after, 100 * SECOND + 30_000, &format!("seed {seed}, step {step_us}"));
        }
    }
}

#[test]
fn the_bound_grows_while_no_exchange_comes() {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut estimator = Estimator::default();
    assert_eq!(estimator.at(START), None);
    estimator.take(LAN.exchange(0, &mut random));
    let bound_us = |at: i64| estimator.at(LAN.own(at)).unwrap().bound_us;
    assert!(bound_us(SECOND) > bound_us(0) + 900, "a thousandth of the time");
    assert!(bound_us(3_600 * SECOND) > 3_600_000);
}
