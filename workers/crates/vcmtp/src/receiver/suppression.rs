//! Suppression of a receiver's requests in a large group (NACK suppression in RFC 5740). If many sites lost the
//! same packet, another one requests it first, and the sender announces the repair to the group
//! (`pending_repairs.rs`). So the first request waits for a random backoff, and packets with an announced repair
//! are not requested.
//!
//! The backoff is drawn as in RFC 5740, section 5.3 and its annex: between 0 and `T`, with a density that rises as
//! `e^(L t / T)`, `L` = ln(members) + 1. Of any number of sites up to all members only a handful draw the lowest
//! times; with `T` of six round trips the answer to them comes before most others request.
//!
//! | a loss that is due | next |
//! |---|---|
//! | no announcement covers it, or one covers fewer packets than are missing here | requested |
//! | an announcement covers it | due again a random time after its expiry, for two seconds at most |
use std::collections::BTreeMap;

use downburst_model::{Micros, RangeSet};

use crate::packet::notice::SMALL_GROUP;
use crate::packet::notice::{Notice, PendingRepair};

#[derive(Debug)]
pub(crate) struct Suppression {
    dice: u64,
    round_trip: Micros,
    members: u64,
    heard: Micros,
    pending_repairs: BTreeMap<u64, Announced>,
    next_request: Micros,
}

#[derive(Clone, Copy, Debug)]
struct Announced {
    pending: PendingRepair,
    until: Micros,
    /// The number of symbols made of the block, as of the last one received.
    seen: u16,
}

/// The part of a request that an announced repair covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Covered {
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// The number of packets it restores; `None`: all of them.
    pub(crate) brings: Option<u64>,
    pub(crate) until: Micros,
}

impl Suppression {
    /// `seed` is random; two sites with the same one request at the same time.
    pub(crate) fn new(seed: u64, round_trip: Micros) -> Self {
        Self {
            dice: seed,
            round_trip,
            members: 0,
            heard: Micros(0),
            pending_repairs: BTreeMap::new(),
            next_request: Micros(0),
        }
    }

    pub(crate) fn change_round_trip(&mut self, round_trip: Micros) {
        self.round_trip = round_trip;
    }

    /// Takes a notice of the sender.
    pub(crate) fn hear(&mut self, now: Micros, notice: Notice) {
        (self.members, self.heard) = (u64::from(notice.members).min(MOST_MEMBERS), now);
        for pending in notice.pending_repairs {
            let until = now.plus(pending.within.min(LONGEST_PENDING));
            let seen = self.pending_repairs.get(&pending.first).map_or(0, |known| known.seen);
            self.pending_repairs.insert(pending.first, Announced { pending, until, seen });
        }
        self.pending_repairs.retain(|_, announced| announced.pending.made.is_some() || announced.until > now);
        while self.pending_repairs.len() > KEPT_PENDING {
            self.pending_repairs.pop_first();
        }
    }

    /// Takes the arrival of a symbol of the block, with `made` symbols made by then.
    pub(crate) fn symbol(&mut self, first: u64, made: u16) {
        let Some(announced) = self.pending_repairs.get_mut(&first) else { return };
        announced.seen = announced.seen.max(made);
    }

    /// The announced blocks and packets that contain parts of `wanted`.
    pub(crate) fn covering(&self, now: Micros, wanted: &RangeSet) -> Vec<Covered> {
        let (Some(least), Some(most)) = (wanted.first(), wanted.last()) else { return Vec::new() };
        let mut covering = Vec::new();
        let mut ends = most;
        for (first, Announced { pending, until, seen }) in self.pending_repairs.range(..=most).rev() {
            let last = pending.last().min(ends);
            if pending.made.is_some() {
                ends = first.saturating_sub(1);
            }
            let comes = *until > now;
            if last >= least && (comes || pending.made.is_some()) {
                let brings =
                    pending.made.map(|made| u64::from(if comes { made.saturating_sub(*seen) } else { 0 }));
                covering.push(Covered { first: *first, last, brings, until: *until });
            }
        }
        covering
    }

    /// The backoff of the first request for a loss, in addition to the wait for reordering; 0 in a small group.
    pub(crate) fn backoff(&mut self, now: Micros) -> Micros {
        if self.group_size(now) <= SMALL_GROUP {
            return Micros(0);
        }
        let longest = (self.round_trip.0.saturating_add(TURN.0)).saturating_mul(ROUND_TRIPS);
        let longest = longest.min(LONGEST_BACKOFF.0) as f64;
        let rise = (self.members as f64).ln() + 1.0;
        let drawn = (self.draw() * rise.exp_m1() + 1.0).ln() / rise;
        Micros((longest * drawn.clamp(0.0, 1.0)) as u64)
    }

    /// The earliest time of the next request: all sites together make at most [`REQUESTS_PER_SECOND`].
    pub(crate) fn next_request(&self) -> Micros {
        self.next_request
    }

    /// The site sends a request now.
    pub(crate) fn asked(&mut self, now: Micros) {
        let members = self.group_size(now);
        if members > SMALL_GROUP {
            self.next_request = now.plus(Micros(members.saturating_mul(1_000_000 / REQUESTS_PER_SECOND)));
        }
    }

    /// The number of sites in the group according to a recent notice; 0 without one.
    pub(crate) fn group_size(&self, now: Micros) -> u64 {
        if now.since(self.heard) < MEMORY { self.members } else { 0 }
    }

    /// A random number from 0 to 1 (splitmix64).
    fn draw(&mut self) -> f64 {
        self.dice = self.dice.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.dice;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// `T` in round trips. With four, about twice as many sites send a request.
const ROUND_TRIPS: u64 = 6;

/// The delay of the sender, its pacer and two drivers, in addition to the round trip.
const TURN: Micros = Micros::from_millis(4);

const LONGEST_BACKOFF: Micros = Micros::from_secs(1);

/// Longer than any block takes.
const LONGEST_PENDING: Micros = Micros::from_millis(600);

/// Blocks of some seconds at any rate; beyond this number the oldest are requested.
const KEPT_PENDING: usize = 256;

/// A group without a notice of its size for this time is small.
const MEMORY: Micros = Micros::from_secs(5);

/// More than any group has; a forged number makes no site wait longer.
const MOST_MEMBERS: u64 = 10_000;

/// The maximum number of requests of all sites of a leg together.
const REQUESTS_PER_SECOND: u64 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn in_group(members: u32, seed: u64) -> Suppression {
        let mut suppression = Suppression::new(seed, Micros::from_millis(20));
        suppression.hear(Micros(1), Notice { members, pending_repairs: vec![] });
        suppression
    }

    #[test]
    fn of_five_hundred_a_handful_draws_times_within_a_round_trip_of_the_first() {
        let mut early = 0;
        for world in 0..200u64 {
            let mut times: Vec<u64> =
                (0..500).map(|site| in_group(500, world * 1_000 + site).backoff(Micros(1)).0).collect();
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
        assert_eq!(in_group(32, 1).backoff(Micros(1)), Micros(0));
        let mut suppression = in_group(500, 1);
        assert!(suppression.backoff(Micros(1)) > Micros(0));
        assert_eq!(suppression.backoff(Micros::from_secs(6)), Micros(0));
        suppression.asked(Micros::from_secs(6));
        assert_eq!(suppression.next_request(), Micros(0));
    }

    #[test]
    fn whatever_a_notice_says_the_waits_are_bounded() {
        let mut suppression = in_group(u32::MAX, 1);
        suppression.change_round_trip(Micros(u64::MAX));
        assert!(suppression.backoff(Micros(1)) <= LONGEST_BACKOFF);
        suppression.asked(Micros(1));
        assert!(suppression.next_request() <= Micros::from_secs(2));
        let pending = PendingRepair { first: 1, count: None, made: None, within: Micros::from_secs(60) };
        let mut pending_repairs = vec![pending];
        pending_repairs.extend((2..10_000).map(|first| PendingRepair { first, ..pending }));
        suppression.hear(Micros(1), Notice { members: 500, pending_repairs });
        assert_eq!(suppression.pending_repairs.len(), KEPT_PENDING);
        let wanted = [(9_999, 9_999)].into_iter().collect();
        assert!(
            suppression
                .covering(Micros(1), &wanted)
                .iter()
                .all(|covered| covered.until <= Micros::from_secs(1))
        );
    }

    #[test]
    fn a_promise_covers_its_block_until_the_next_one_and_less_when_symbols_were_seen() {
        let mut suppression = in_group(500, 1);
        let block =
            |first, made| PendingRepair { first, count: None, made: Some(made), within: Micros(90_000) };
        let single = PendingRepair { first: 90, count: Some(1), made: None, within: Micros(90_000) };
        let pending_repairs = vec![block(1, 4), single, block(801, 6)];
        suppression.hear(Micros(1), Notice { members: 500, pending_repairs });
        suppression.symbol(801, 2);
        let wanted = [(700, 900)].into_iter().collect();
        let until = Micros(90_001);
        assert_eq!(
            suppression.covering(Micros(1), &wanted),
            [
                Covered { first: 801, last: 900, brings: Some(4), until },
                Covered { first: 1, last: 800, brings: Some(4), until }
            ]
        );
        suppression.symbol(1, 4);
        let brings: Vec<_> =
            suppression.covering(Micros(1), &wanted).iter().map(|covered| covered.brings).collect();
        assert_eq!(brings, [Some(4), Some(0)]);
        assert!(suppression.covering(until, &wanted).iter().all(|covered| covered.brings == Some(0)));
    }
}
