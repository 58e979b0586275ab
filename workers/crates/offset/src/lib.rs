//! The offset and the drift of a host's clock from another's, with a bound that contains the truth on paths of any
//! asymmetry (decision 64).
//!
//! Each exchange of four stamps gives two facts that no delay can change: a request arrives after it was sent, and so
//! does its reply. The facts are points below and above the line of the offset over time. Their convex hulls, the
//! envelopes of the delays in both directions, leave a band; each line in the band is possible. The asymmetry of a
//! path can't be seen, so the bound is never below half of the shortest delays of both directions together.
//!
//! Nothing here reads a clock. All times are microseconds, offsets are "own minus peer's".
#![forbid(unsafe_code)]

use std::collections::VecDeque;

use band::Band;
use envelope::Envelope;

mod band;
mod envelope;

/// The four stamps of an exchange (RFC 5905 §8, RFC 8762), in microseconds: `t1` to `t4` in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Own clock: the request was sent.
    pub sent: i64,
    /// Peer's clock: the request was received.
    pub received: i64,
    /// Peer's clock: the reply was sent.
    pub replied: i64,
    /// Own clock: the reply was received.
    pub returned: i64,
}

impl Exchange {
    /// The time on the way in both directions together. `None`: the stamps are impossible.
    pub fn round_trip_us(&self) -> Option<u64> {
        let own = i128::from(self.returned) - i128::from(self.sent);
        let peers = i128::from(self.replied) - i128::from(self.received);
        let possible = own >= 0 && peers >= 0;
        u64::try_from(own - peers).ok().filter(|_| possible)
    }
}

/// The effect of an exchange on the estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It belongs to the same course of both clocks as the exchanges before it.
    Kept,
    /// A clock was stepped, or its rate changed: the exchanges before it are forgotten.
    Stepped,
    /// Its stamps are impossible: it is ignored.
    Refused,
}

/// The offset at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// Own clock minus the peer's, in microseconds.
    pub offset_us: i64,
    /// The largest possible error of the offset, in microseconds.
    pub bound_us: u64,
    /// The change of the offset with time, in parts per 10⁹.
    pub drift_ppb: i64,
    /// The largest possible error of the drift, in parts per 10⁹.
    pub drift_bound_ppb: u64,
    /// The shortest round trip of the exchanges in use, in microseconds.
    pub round_trip_us: u64,
}

/// Estimates the offset from the newest 64 exchanges of the last ten minutes.
#[derive(Clone, Debug, Default)]
pub struct Estimator {
    exchanges: VecDeque<Exchange>,
    /// The offset is above each of these points.
    outward: Envelope,
    /// The negative offset is above each of these points.
    back: Envelope,
}

impl Estimator {
    /// Takes a completed exchange. Exchanges have to come in the order of their requests, one after the other.
    pub fn take(&mut self, exchange: Exchange) -> Taken {
        if exchange.round_trip_us().is_none() {
            return Taken::Refused;
        }
        let follows = self.exchanges.back().is_none_or(|last| last.returned <= exchange.sent);
        if follows {
            self.push(exchange);
            if self.is_one_course() {
                return Taken::Kept;
            }
        }
        self.forget();
        self.push(exchange);
        Taken::Stepped
    }

    /// Forgets all exchanges: the own clock was stepped.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// The offset at a time of the own clock. `None` before the first exchange.
    pub fn at(&self, own: i64) -> Option<Estimate> {
        let round_trip_us = self.round_trip_us()?;
        let band = self.band(own)?;
        let possible = band.slopes(POSSIBLE_PPB)?;
        let likely = possible.within(LIKELY_PPB).unwrap_or(possible);
        let (offset_us, bound_us) = band.middle(likely, possible);
        let (drift_ppb, drift_bound_ppb) = likely.middle(possible);
        Some(Estimate { offset_us, bound_us, drift_ppb, drift_bound_ppb, round_trip_us })
    }

    /// The shortest round trip of the exchanges in use, in microseconds.
    pub fn round_trip_us(&self) -> Option<u64> {
        self.exchanges.iter().filter_map(Exchange::round_trip_us).min()
    }

    fn push(&mut self, exchange: Exchange) {
        self.exchanges.push_back(exchange);
        while self.exchanges.len() > EXCHANGES || self.oldest_age() > AGE_MAX_US {
            self.exchanges.pop_front();
        }
        self.outward =
            self.exchanges.iter().map(|one| (one.sent, difference(one.sent, one.received))).collect();
        self.back =
            self.exchanges.iter().map(|one| (one.returned, difference(one.replied, one.returned))).collect();
    }

    fn oldest_age(&self) -> i128 {
        let ends = self.exchanges.front().zip(self.exchanges.back());
        ends.map_or(0, |(oldest, newest)| difference(newest.returned, oldest.sent))
    }

    /// Some line fits between all points, and the shortest delays of both directions add up to about a round trip. A
    /// step brings the envelopes together before it makes them cross. So do random delays, while exchanges are few.
    fn is_one_course(&self) -> bool {
        let newest = self.exchanges.back().map_or(0, |newest| newest.returned);
        let many = self.exchanges.len() >= MANY_EXCHANGES;
        let least_us = self.round_trip_us().filter(|_| many).unwrap_or(0) / NARROWEST_PART;
        let Some(band) = self.band(newest) else { return false };
        band.slopes(POSSIBLE_PPB).is_some() && band.width_us(POSSIBLE_PPB) >= i128::from(least_us)
    }

    fn band(&self, at: i64) -> Option<Band<'_>> {
        let newest = self.exchanges.back()?.returned;
        Some(Band::new(&self.outward, &self.back, at, newest))
    }
}

fn difference(later: i64, earlier: i64) -> i128 {
    i128::from(later) - i128::from(earlier)
}

/// Five minutes at the session's pace of an exchange every five seconds.
const EXCHANGES: usize = 64;

const AGE_MAX_US: i128 = 600_000_000;

/// The relative drift of two hosts' clocks that is assumed for the estimate: crystals keep to ±50 parts per 10⁶.
const LIKELY_PPB: i64 = 100_000;

/// The drift that the bound allows for: twice the most by which Linux lets a daemon change a clock's rate
/// (`adjtimex`, 500 parts per 10⁶), for two clocks that are corrected in opposite directions.
const POSSIBLE_PPB: i64 = 1_000_000;

/// A band of many exchanges that is narrower than this part of the shortest round trip is a step.
const NARROWEST_PART: u64 = 4;
const MANY_EXCHANGES: usize = 8;
