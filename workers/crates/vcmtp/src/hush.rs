//! When a receiver in a large group asks. If many lost the same, another site asks first, and the sender
//! announces that to the group (`promises.rs`): so the first request waits for a while drawn at random, and
//! is not made for promised packets.
//!
//! The time is drawn as in RFC 5740 (NORM), section 5.3 and its annex: between 0 and `T`, with a density that
//! rises as `e^(L t / T)`, `L` = ln(members) + 1. Of any number of sites up to all members only a handful
//! draw the lowest times; with `T` of six round trips the answer to them comes before most others ask.
//!
//! | what is due | next |
//! |---|---|
//! | no promise covers it, or less than what lacks here | asked |
//! | a promise covers it | due again when the promise is over and a random time later, for two seconds at most |
use std::collections::BTreeMap;

use downburst_model::{Micros, RangeSet};

use crate::notice::{Notice, Promise};
use crate::promises::SMALL_GROUP;

#[derive(Debug)]
pub(crate) struct Hush {
    dice: u64,
    round_trip: Micros,
    members: u64,
    heard: Micros,
    promises: BTreeMap<u64, Promised>,
    next_request: Micros,
}

#[derive(Clone, Copy, Debug)]
struct Promised {
    promise: Promise,
    until: Micros,
    /// How many symbols of the block were made when the last of them came.
    seen: u16,
}

/// What a promise makes of a part of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Covered {
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// How many packets it will bring; `None`: all of them.
    pub(crate) brings: Option<u64>,
    pub(crate) until: Micros,
}

impl Hush {
    /// `seed` is random; two sites with the same one ask at the same time.
    pub(crate) fn new(seed: u64, round_trip: Micros) -> Self {
        Self {
            dice: seed,
            round_trip,
            members: 0,
            heard: Micros(0),
            promises: BTreeMap::new(),
            next_request: Micros(0),
        }
    }

    pub(crate) fn change_round_trip(&mut self, round_trip: Micros) {
        self.round_trip = round_trip;
    }

    /// Takes in what the sender says.
    pub(crate) fn hear(&mut self, now: Micros, notice: Notice) {
        (self.members, self.heard) = (u64::from(notice.members).min(MOST_MEMBERS), now);
        for promise in notice.promises {
            let until = now.plus(promise.within.min(LONGEST_PROMISE));
            let seen = self.promises.get(&promise.first).map_or(0, |known| known.seen);
            self.promises.insert(promise.first, Promised { promise, until, seen });
        }
        self.promises.retain(|_, promised| promised.promise.made.is_some() || promised.until > now);
        while self.promises.len() > KEPT_PROMISES {
            self.promises.pop_first();
        }
    }

    /// A symbol of the block came, when so many were made.
    pub(crate) fn symbol(&mut self, first: u64, made: u16) {
        let Some(promised) = self.promises.get_mut(&first) else { return };
        promised.seen = promised.seen.max(made);
    }

    /// The blocks and packets of which something was promised and that hold something of `wanted`.
    pub(crate) fn covering(&self, now: Micros, wanted: &RangeSet) -> Vec<Covered> {
        let (Some(least), Some(most)) = (wanted.first(), wanted.last()) else { return Vec::new() };
        let mut covering = Vec::new();
        let mut ends = most;
        for (first, Promised { promise, until, seen }) in self.promises.range(..=most).rev() {
            let last = promise.last().min(ends);
            if promise.made.is_some() {
                ends = first.saturating_sub(1);
            }
            let comes = *until > now;
            if last >= least && (comes || promise.made.is_some()) {
                let brings =
                    promise.made.map(|made| u64::from(if comes { made.saturating_sub(*seen) } else { 0 }));
                covering.push(Covered { first: *first, last, brings, until: *until });
            }
        }
        covering
    }

    /// How long the first request for a loss waits beside reordering. Nothing in a small group.
    pub(crate) fn backoff(&mut self, now: Micros) -> Micros {
        if self.crowd(now) <= SMALL_GROUP {
            return Micros(0);
        }
        let longest = (self.round_trip.0.saturating_add(TURN.0)).saturating_mul(ROUND_TRIPS);
        let longest = longest.min(LONGEST_BACKOFF.0) as f64;
        let rise = (self.members as f64).ln() + 1.0;
        let drawn = (self.draw() * rise.exp_m1() + 1.0).ln() / rise;
        Micros((longest * drawn.clamp(0.0, 1.0)) as u64)
    }

    /// Before this the site asks for nothing, so that all of them together make at most [`REQUESTS_PER_SECOND`].
    pub(crate) fn next_request(&self) -> Micros {
        self.next_request
    }

    /// The site asks now.
    pub(crate) fn asked(&mut self, now: Micros) {
        let members = self.crowd(now);
        if members > SMALL_GROUP {
            self.next_request = now.plus(Micros(members.saturating_mul(1_000_000 / REQUESTS_PER_SECOND)));
        }
    }

    /// How many hear the group, as far as that is known.
    pub(crate) fn crowd(&self, now: Micros) -> u64 {
        if now.since(self.heard) < MEMORY { self.members } else { 0 }
    }

    /// From 0 to 1 (splitmix64).
    fn draw(&mut self) -> f64 {
        self.dice = self.dice.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.dice;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// `T` in round trips. With four about twice as many ask.
const ROUND_TRIPS: u64 = 6;

/// What the sender, its pacer and two drivers take beside the round trip.
const TURN: Micros = Micros::from_millis(4);

const LONGEST_BACKOFF: Micros = Micros::from_secs(1);

/// Longer than any block takes.
const LONGEST_PROMISE: Micros = Micros::from_millis(600);

/// Blocks of some seconds at any rate; beyond it the oldest are asked for.
const KEPT_PROMISES: usize = 256;

/// A group that says nothing of its size for so long is small.
const MEMORY: Micros = Micros::from_secs(5);

/// More than any group has; a false number makes nobody wait longer.
const MOST_MEMBERS: u64 = 10_000;

/// What the sites of a leg ask together at most.
const REQUESTS_PER_SECOND: u64 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn crowd(members: u32, seed: u64) -> Hush {
        let mut hush = Hush::new(seed, Micros::from_millis(20));
        hush.hear(Micros(1), Notice { members, promises: vec![] });
        hush
    }

    #[test]
    fn of_five_hundred_a_handful_draws_times_within_a_round_trip_of_the_first() {
        let mut early = 0;
        for world in 0..200u64 {
            let mut times: Vec<u64> =
                (0..500).map(|site| crowd(500, world * 1_000 + site).backoff(Micros(1)).0).collect();
            times.sort_unstable();
            assert!(times[499] <= 6 * 24_000, "{times:?}");
            early += times.iter().filter(|time| **time < times[1] + 24_000).count();
        }
        let mean = early as f64 / 200.0;
        println!("{mean} ask within a round trip of the second");
        assert!((3.0..8.0).contains(&mean), "{mean}");
    }

    #[test]
    fn a_small_group_and_one_that_is_not_heard_of_wait_for_nothing() {
        assert_eq!(crowd(32, 1).backoff(Micros(1)), Micros(0));
        let mut hush = crowd(500, 1);
        assert!(hush.backoff(Micros(1)) > Micros(0));
        assert_eq!(hush.backoff(Micros::from_secs(6)), Micros(0));
        hush.asked(Micros::from_secs(6));
        assert_eq!(hush.next_request(), Micros(0));
    }

    #[test]
    fn whatever_a_notice_says_the_waits_are_bounded() {
        let mut hush = crowd(u32::MAX, 1);
        hush.change_round_trip(Micros(u64::MAX));
        assert!(hush.backoff(Micros(1)) <= LONGEST_BACKOFF);
        hush.asked(Micros(1));
        assert!(hush.next_request() <= Micros::from_secs(2));
        let promise = Promise { first: 1, count: None, made: None, within: Micros::from_secs(60) };
        let mut promises = vec![promise];
        promises.extend((2..10_000).map(|first| Promise { first, ..promise }));
        hush.hear(Micros(1), Notice { members: 500, promises });
        assert_eq!(hush.promises.len(), KEPT_PROMISES);
        let wanted = [(9_999, 9_999)].into_iter().collect();
        assert!(
            hush.covering(Micros(1), &wanted).iter().all(|covered| covered.until <= Micros::from_secs(1))
        );
    }

    #[test]
    fn a_promise_covers_its_block_until_the_next_one_and_less_when_symbols_were_seen() {
        let mut hush = crowd(500, 1);
        let block = |first, made| Promise { first, count: None, made: Some(made), within: Micros(90_000) };
        let single = Promise { first: 90, count: Some(1), made: None, within: Micros(90_000) };
        let promises = vec![block(1, 4), single, block(801, 6)];
        hush.hear(Micros(1), Notice { members: 500, promises });
        hush.symbol(801, 2);
        let wanted = [(700, 900)].into_iter().collect();
        let until = Micros(90_001);
        assert_eq!(
            hush.covering(Micros(1), &wanted),
            [
                Covered { first: 801, last: 900, brings: Some(4), until },
                Covered { first: 1, last: 800, brings: Some(4), until }
            ]
        );
        hush.symbol(1, 4);
        let brings: Vec<_> = hush.covering(Micros(1), &wanted).iter().map(|covered| covered.brings).collect();
        assert_eq!(brings, [Some(4), Some(0)]);
        assert!(hush.covering(until, &wanted).iter().all(|covered| covered.brings == Some(0)));
    }
}
