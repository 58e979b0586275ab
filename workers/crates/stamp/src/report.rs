//! The findings of a run: round trips, one-way delays as far as the clocks allow, losses.
use std::net::SocketAddr;

use serde::Serialize;

use crate::directions::{Directions, directions, late_arrivals};
use crate::exchange::Exchange;

/// The findings of a run. Delays in nanoseconds; one-way delays are differences of two clocks and may be negative.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Requests.
    pub sent: u64,
    /// Requests with an answer.
    pub answered: u64,
    /// Requests without one.
    pub lost: u64,
    /// Further answers to an answered request.
    pub duplicated: u64,
    /// Answers that came after that of a later request.
    pub reordered: u64,
    /// Datagrams that were no answers to this run.
    pub not_taken: u64,
    /// Losses and reordering of each direction.
    pub directions: Directions,
    /// The delays.
    #[serde(flatten)]
    pub delays: Delays,
    /// This sender's address as the reflector saw it, if it was asked and answered.
    pub seen_as: Option<SocketAddr>,
    /// Extensions of one request that the reflector does not know.
    pub unrecognized_extensions: usize,
    /// Extensions of one request that the reflector refused.
    pub refused_extensions: usize,
}

/// The delays of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Delays {
    /// From request to answer, without the time in the reflector.
    pub round_trip_ns: Option<Spread>,
    /// The time in the reflector.
    pub residence_ns: Option<Spread>,
    /// The reflector's clock at the arrival of requests minus this clock at their sending.
    pub forward_ns: Option<Spread>,
    /// This clock at the arrival of answers minus the reflector's clock at their sending.
    pub backward_ns: Option<Spread>,
    /// The reflector's clock against this one.
    pub offset: Option<Offset>,
    /// Whether forward and backward delays are delays.
    pub clocks: Clocks,
    /// Exchanges that are in no delay: a clock was set during them, or the reflector's stamps exclude each other.
    pub excluded: u64,
}

/// The spread of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Spread {
    /// The smallest.
    pub min: i64,
    /// The middle one; of two, the smaller.
    pub median: i64,
    /// At least 99 % of them are not above it.
    pub p99: i64,
    /// The largest.
    pub max: i64,
}

/// The offset of the reflector's clock from this one, by the exchange with the shortest round trip. No exchange can
/// show an asymmetric path: the truth is anywhere within the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Offset {
    /// ((T2 - T1) + (T3 - T4)) / 2.
    pub offset_ns: i64,
    /// Half of the shortest round trip.
    pub bound_ns: i64,
}

/// The standing of both clocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "standing", rename_all = "kebab-case")]
pub enum Clocks {
    /// Both clocks are in step with UTC by their own word, and the exchanges don't contradict it: forward and backward
    /// delays are true within this error, the sum of those that the clocks claim.
    Synchronized {
        /// Of each one-way delay.
        error_ns: u64,
    },
    /// Forward and backward delays contain an offset that is not known.
    NotKnown {
        /// A sentence.
        reason: String,
    },
}

impl Default for Clocks {
    fn default() -> Self {
        Self::not_known("no request was answered")
    }
}

impl Clocks {
    fn not_known(reason: &str) -> Self {
        Self::NotKnown { reason: reason.to_owned() }
    }
}

pub(crate) fn summarize(sent: usize, exchanges: &[Exchange], stateful: bool) -> Report {
    let pairs: Vec<(u32, u32)> = exchanges.iter().map(Exchange::sequences).collect();
    let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    Report {
        sent: count(sent),
        answered: count(exchanges.len()),
        lost: count(sent.saturating_sub(exchanges.len())),
        reordered: late_arrivals(pairs.iter().map(|(request, _)| *request)),
        directions: directions(sent, &pairs, stateful),
        delays: delays(exchanges),
        ..Report::default()
    }
}

fn delays(exchanges: &[Exchange]) -> Delays {
    let sound: Vec<&Exchange> = exchanges.iter().filter(|exchange| exchange.is_sound()).collect();
    let spread = |value: fn(&Exchange) -> i64| spread(sound.iter().map(|exchange| value(exchange)).collect());
    let offset = offset(&sound);
    Delays {
        round_trip_ns: spread(Exchange::round_trip),
        residence_ns: spread(Exchange::residence),
        forward_ns: spread(Exchange::forward),
        backward_ns: spread(Exchange::backward),
        clocks: clocks(&sound, offset),
        offset,
        excluded: u64::try_from(exchanges.len() - sound.len()).unwrap_or(u64::MAX),
    }
}

fn spread(mut values: Vec<i64>) -> Option<Spread> {
    values.sort_unstable();
    let rank = |percent: usize| (values.len() * percent).div_ceil(100).saturating_sub(1);
    Some(Spread {
        min: *values.first()?,
        median: *values.get(rank(50))?,
        p99: *values.get(rank(99))?,
        max: *values.last()?,
    })
}

fn offset(sound: &[&Exchange]) -> Option<Offset> {
    let best = sound.iter().min_by_key(|exchange| exchange.round_trip())?;
    let offset_ns = (i128::from(best.forward()) - i128::from(best.backward())) / 2;
    let offset_ns = i64::try_from(offset_ns).unwrap_or(i64::MAX);
    Some(Offset { offset_ns, bound_ns: best.round_trip().saturating_add(1) / 2 })
}

fn clocks(sound: &[&Exchange], offset: Option<Offset>) -> Clocks {
    let Some(offset) = offset else { return Clocks::default() };
    if sound.iter().any(|exchange| exchange.sent_error.is_none()) {
        return Clocks::not_known("this host's clock is not in step with UTC, or its error is not known");
    }
    let peer = |exchange: &&Exchange| {
        let estimate = exchange.answer.estimate;
        estimate.nanos().filter(|_| estimate.synchronized)
    };
    let sum = |exchange| Some(peer(exchange)?.saturating_add(exchange.sent_error?));
    let Some(error_ns) = sound.iter().map(sum).try_fold(0, |most, error| Some(u64::max(most, error?))) else {
        return Clocks::not_known("the reflector's clock is not in step with UTC by its own word");
    };
    let most_offset = offset.bound_ns.unsigned_abs().saturating_add(error_ns);
    if offset.offset_ns.unsigned_abs() > most_offset {
        return Clocks::not_known("one of the clocks is further from UTC than it claims");
    }
    Clocks::Synchronized { error_ns }
}
