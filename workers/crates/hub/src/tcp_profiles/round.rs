//! One window of a comparison: connections with the candidate beside others, or one connection alone.
use std::collections::BTreeMap;

use downburst_model::Micros;

use super::meter::{ConnectionKey, Interval};

/// The part that a connection plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// It has the candidate.
    Canary,
    /// It has the options from before.
    Other,
}

/// A window that is running.
#[derive(Debug)]
pub(super) struct Round {
    began: Micros,
    parts: BTreeMap<ConnectionKey, Part>,
    /// The part of a single connection.
    alone: Option<Side>,
}

#[derive(Debug)]
struct Part {
    side: Side,
    /// The connection was looked at in this window, so it has its options.
    seen: bool,
    settled: Micros,
    busy: Micros,
    bytes: u64,
}

/// The rates of both sides, in rising order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rates {
    pub(super) canaries: Vec<u64>,
    pub(super) others: Vec<u64>,
}

impl Round {
    /// Divides connections: `count` of them have the part `side`, beginning at another one in each turn.
    pub(super) fn divided(
        began: Micros,
        keys: &[ConnectionKey],
        (side, count): (Side, usize),
        turn: usize,
    ) -> Self {
        let first = turn.wrapping_mul(count).checked_rem(keys.len()).unwrap_or(0);
        let part_of = |at: usize| {
            let place = (at + keys.len() - first).checked_rem(keys.len()).unwrap_or(0);
            if place < count { side } else { side.opposite() }
        };
        let parts = keys.iter().enumerate().map(|(at, key)| (*key, Part::new(part_of(at)))).collect();
        Self { began, parts, alone: None }
    }

    /// One connection on one side.
    pub(super) fn alone(began: Micros, key: ConnectionKey, side: Side) -> Self {
        Self { began, parts: BTreeMap::from([(key, Part::new(side))]), alone: Some(side) }
    }

    /// The part of a connection.
    pub(super) fn side(&self, key: ConnectionKey) -> Option<Side> {
        self.parts.get(&key).map(|part| part.side)
    }

    /// The numbers of canaries and of others.
    pub(super) fn counts(&self) -> (usize, usize) {
        let canaries = self.parts.values().filter(|part| part.side == Side::Canary).count();
        (canaries, self.parts.len() - canaries)
    }

    /// The single connection, with its part.
    pub(super) fn single(&self) -> Option<(ConnectionKey, Side)> {
        Some((*self.parts.keys().next()?, self.alone?))
    }

    /// Takes a look at a connection. What it did before it had its options does not count.
    pub(super) fn look(&mut self, key: ConnectionKey, interval: Option<Interval>) {
        let Some(part) = self.parts.get_mut(&key) else { return };
        if !std::mem::replace(&mut part.seen, true) {
            return;
        }
        let Some(Interval { busy, bytes }) = interval else { return };
        if part.settled < SETTLE {
            part.settled = part.settled.plus(busy);
            return;
        }
        part.busy = part.busy.plus(busy);
        part.bytes = part.bytes.saturating_add(bytes);
    }

    /// Removes a connection that has ended.
    pub(super) fn gone(&mut self, key: ConnectionKey) {
        self.parts.remove(&key);
    }

    /// The end of the window: its rates, or `None` if too few connections were busy; `Err`: it goes on.
    pub(super) fn end(&self, now: Micros) -> Result<Option<Rates>, ()> {
        let rates = Rates { canaries: self.rates(Side::Canary), others: self.rates(Side::Other) };
        let (canaries, others) = self.counts();
        let lacks = match self.alone {
            Some(_) => rates.both() == 0,
            None => rates.canaries.is_empty() || rates.others.is_empty(),
        };
        let all = rates.both() == self.parts.len();
        let elapsed = now.since(self.began);
        let is_idle = self.parts.is_empty() || self.alone.is_none() && canaries.min(others) == 0;
        match (lacks, all || elapsed >= PATIENCE) {
            (false, true) => Ok(Some(rates)),
            _ if is_idle || elapsed >= LONGEST => Ok(None),
            _ => Err(()),
        }
    }

    fn rates(&self, side: Side) -> Vec<u64> {
        let whole = self.parts.values().filter(|part| part.side == side && part.busy >= WINDOW);
        let mut rates: Vec<u64> = whole.map(Part::rate_bps).collect();
        rates.sort_unstable();
        rates
    }
}

impl Part {
    fn new(side: Side) -> Self {
        Self { side, seen: false, settled: Micros(0), busy: Micros(0), bytes: 0 }
    }

    fn rate_bps(&self) -> u64 {
        self.bytes.saturating_mul(8_000_000).checked_div(self.busy.0).unwrap_or(0)
    }
}

impl Rates {
    fn both(&self) -> usize {
        self.canaries.len() + self.others.len()
    }
}

impl Side {
    fn opposite(self) -> Self {
        match self {
            Self::Canary => Self::Other,
            Self::Other => Self::Canary,
        }
    }
}

/// A congestion control that takes over a connection needs some round trips to find its own rate.
const SETTLE: Micros = Micros::from_secs(2);

/// The busy time that is compared.
const WINDOW: Micros = Micros::from_secs(5);

/// Connections that are not busy for long enough by then are left out.
const PATIENCE: Micros = Micros::from_secs(20);

/// A window without enough connections ends.
const LONGEST: Micros = Micros::from_secs(60);

#[cfg(test)]
mod tests {
    use downburst_session::StreamId;

    use super::*;

    fn keys(count: u64) -> Vec<ConnectionKey> {
        (0..count).map(|session| ConnectionKey { session, stream: StreamId::FIRST }).collect()
    }

    fn canaries(count: u64, turn: usize) -> Vec<u64> {
        let keys = keys(count);
        let half = (Side::Canary, keys.len() / 2);
        let round = Round::divided(Micros(0), &keys, half, turn);
        keys.iter().filter(|key| round.side(**key) == Some(Side::Canary)).map(|key| key.session).collect()
    }

    #[test]
    fn connections_swap_their_parts() {
        assert_eq!([canaries(2, 0), canaries(2, 1), canaries(2, 2)], [[0], [1], [0]]);
        assert_eq!([canaries(3, 0), canaries(3, 1), canaries(3, 2)], [[0], [1], [2]]);
        assert_eq!([canaries(4, 0), canaries(4, 1)], [[0, 1], [2, 3]]);
        assert_eq!(canaries(5, usize::MAX).len(), 2);
    }

    fn run(round: &mut Round, key: ConnectionKey, seconds: u64, bytes: u64) {
        for _ in 0..seconds {
            round.look(key, Some(Interval { busy: Micros::from_secs(1), bytes }));
        }
    }

    #[test]
    fn a_window_is_five_seconds_of_busy_time_after_two() {
        let key = keys(1)[0];
        let mut round = Round::alone(Micros(0), key, Side::Canary);
        run(&mut round, key, 3, 900);
        run(&mut round, key, 4, 100);
        round.look(key, None);
        assert_eq!(round.end(Micros::from_secs(8)), Err(()));
        run(&mut round, key, 1, 100);
        let rates = Rates { canaries: vec![800], others: vec![] };
        assert_eq!(round.end(Micros::from_secs(9)), Ok(Some(rates)));
    }

    #[test]
    fn silent_connections_take_no_part() {
        let keys = keys(3);
        let mut round = Round::divided(Micros(0), &keys, (Side::Canary, 1), 0);
        run(&mut round, keys[0], 9, 100);
        run(&mut round, keys[1], 9, 50);
        assert_eq!(round.end(Micros::from_secs(9)), Err(()), "the third may still speak");
        let rates = Rates { canaries: vec![800], others: vec![400] };
        assert_eq!(round.end(PATIENCE), Ok(Some(rates)));
        round.gone(keys[1]);
        assert_eq!(round.end(PATIENCE), Err(()));
        assert_eq!(round.end(LONGEST), Ok(None));
        round.gone(keys[2]);
        assert_eq!(round.end(Micros::from_secs(9)), Ok(None), "nobody is left to compare with");
    }
}
