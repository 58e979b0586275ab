//! The rests of ways that failed.
use std::collections::BTreeMap;

use downburst_model::Micros;
use downburst_session::RelayChain;

/// The ways that failed, each with its rest.
#[derive(Clone, Debug, Default)]
pub(super) struct Rests(BTreeMap<RelayChain, Rest>);

#[derive(Clone, Copy, Debug)]
struct Rest {
    until: Micros,
    length: Micros,
}

impl Rests {
    /// The end of the way's rest, if it rests.
    pub(super) fn until(&self, now: Micros, way: &RelayChain) -> Option<Micros> {
        self.0.get(way).map(|rest| rest.until).filter(|until| *until > now)
    }

    /// Begins a rest, twice as long as the last one; a way that rests already goes on with that.
    pub(super) fn begin(&mut self, now: Micros, way: &RelayChain) {
        if self.until(now, way).is_some() {
            return;
        }
        let length =
            self.0.get(way).map_or(FIRST, |rest| Micros(rest.length.0.saturating_mul(2)).min(LONGEST));
        self.0.insert(way.clone(), Rest { until: now.plus(length), length });
        if self.0.len() > MOST
            && let Some(oldest) = self.0.iter().min_by_key(|(_, rest)| rest.until).map(|(way, _)| way.clone())
        {
            self.0.remove(&oldest);
        }
    }

    /// The way is good: its next rest is short again.
    pub(super) fn end(&mut self, way: &RelayChain) {
        self.0.remove(way);
    }
}

const FIRST: Micros = Micros::from_secs(60);
const LONGEST: Micros = Micros::from_secs(16 * 60);

/// More than the hub may name at a time.
const MOST: usize = 64;
