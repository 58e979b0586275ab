//! The moments of looks at sockets.
use std::time::Duration;

use downburst_model::Micros;

use crate::clock::Clock;

/// Absolute ticks from a beginning on, so that looks do not drift.
pub(crate) struct Ticks {
    clock: Clock,
    begun: Micros,
    every: Micros,
    next: u64,
}

impl Ticks {
    /// The first tick is now.
    pub(crate) fn begin(clock: Clock, every: Micros) -> Self {
        Self { clock, begun: clock.monotonic(), every, next: 0 }
    }

    /// The time until the next tick.
    pub(crate) fn pause(&self) -> Duration {
        let due = self.begun.plus(Micros(self.every.0.saturating_mul(self.next)));
        Duration::from_micros(due.since(self.clock.monotonic()).0)
    }

    /// Goes on after a look at so many connections; returns the number of ticks that came too late and are left out.
    pub(crate) fn looked(&mut self, connections: usize) -> u64 {
        let planned = self.next + 1 + connections as u64 / CONNECTIONS_A_TICK;
        self.next = planned.max(self.passed().0 / self.every.0.max(1) + 1);
        self.next - planned
    }

    /// The time since the first tick.
    pub(crate) fn passed(&self) -> Micros {
        self.clock.monotonic().since(self.begun)
    }
}

/// Beyond so many connections looks are further apart in proportion: a hub of a thousand sites takes two a second, and
/// the ring lasts longer.
const CONNECTIONS_A_TICK: u64 = 250;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_further_apart_beyond_some_connections() {
        let mut ticks = Ticks::begin(Clock::start(0), Micros::from_secs(1_000));
        assert_eq!((ticks.pause(), ticks.looked(3), ticks.next), (Duration::ZERO, 0, 1));
        assert_eq!((ticks.looked(1_000), ticks.next), (0, 6));
        assert!(ticks.pause() > Duration::from_secs(5_990));
    }

    #[test]
    fn ticks_that_have_passed_are_left_out_and_counted() {
        let mut ticks = Ticks::begin(Clock::start(0), Micros(1));
        while ticks.passed() < Micros(5_000) {
            std::thread::yield_now();
        }
        assert!(ticks.looked(0) >= 4_999);
    }
}
