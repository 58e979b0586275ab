//! Heartbeats: every subscribed feed gets one every few seconds, and each session remembers the last one that
//! reached the consumers at its site.
use std::collections::VecDeque;

use bytes::Bytes;
use downburst_model::{Epoch, Micros, Origin, ProductId, Sequence, WallMicros};

/// A heartbeat on its way into a feed's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// Its identifier.
    pub id: ProductId,
    /// Its first ingester: the hub.
    pub origin: Origin,
    /// Its bytes.
    pub bytes: Bytes,
}

impl Heartbeat {
    /// The heartbeat of a hub at a time; `None` if the hub's origin can't be that of a product.
    pub fn at(now: WallMicros, hub: &str, origin: &str) -> Option<Self> {
        // No two heartbeats have the same bytes, so that no duplicate rule of a feed matches.
        let bytes = Bytes::from(format!("heartbeat of {hub} at {}\n", now.0));
        Some(Self { id: ProductId::heartbeat(now).ok()?, origin: Origin::parse(origin).ok()?, bytes })
    }
}

/// The heartbeats of one feed that one site has not reported yet.
#[derive(Debug, Default)]
pub struct AwaitedHeartbeats {
    /// Heartbeats with an earlier stamp of the hub are not awaited.
    since: WallMicros,
    epoch: Option<Epoch>,
    /// Heartbeats that the site has not reported, oldest first.
    waiting: VecDeque<Waiting>,
    out_to: Sequence,
    out: Option<WallMicros>,
}

/// A heartbeat that the site has not reported.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    sequence: Sequence,
    /// The hub's stamp.
    stored: WallMicros,
    /// The time at which it was in this node's log.
    seen: Micros,
}

impl AwaitedHeartbeats {
    /// Awaits heartbeats that the hub stored at this time or later.
    pub fn since(since: WallMicros) -> Self {
        Self { since, ..Self::default() }
    }

    /// The hub's stamp of the newest reported heartbeat.
    pub fn newest_out(&self) -> Option<WallMicros> {
        self.out
    }

    /// The hub's stamp of the oldest unreported heartbeat.
    pub fn waits_since(&self) -> Option<WallMicros> {
        self.waiting.front().map(|oldest| oldest.stored)
    }

    /// This node's wait for the oldest unreported heartbeat, on its own clock: neither another clock, nor a late
    /// report, nor a lagging copy of the log counts as the site's delay.
    pub fn waited(&self, now: Micros) -> Option<Micros> {
        self.waiting.front().map(|oldest| now.since(oldest.seen))
    }

    /// True if a second heartbeat was written while the first is unreported.
    pub fn is_overdue(&self) -> bool {
        self.waiting.len() > 1
    }

    /// Records a heartbeat that was written to the log; true if an earlier one is unreported.
    pub fn put(&mut self, epoch: Epoch, sequence: Sequence, stored: WallMicros, seen: Micros) -> bool {
        if stored < self.since {
            return false;
        }
        self.is_in(epoch);
        // A near site can be faster than the notice of the write.
        if sequence <= self.out_to {
            self.out = Some(stored);
            return false;
        }
        let waited = !self.waiting.is_empty();
        if self.waiting.len() < REMEMBERED {
            self.waiting.push_back(Waiting { sequence, stored, seen });
        }
        waited
    }

    /// Records a heartbeat, and with it all earlier ones, as reported by the site; true if one was overdue.
    pub fn came_out(&mut self, epoch: Epoch, sequence: Sequence) -> bool {
        self.is_in(epoch);
        self.out_to = self.out_to.max(sequence);
        let waited = self.is_overdue();
        while let Some(oldest) = self.waiting.front().copied()
            && oldest.sequence <= sequence
        {
            self.waiting.pop_front();
            self.out = Some(oldest.stored);
        }
        waited
    }

    /// Starts again with another life of the log.
    fn is_in(&mut self, epoch: Epoch) {
        if self.epoch.replace(epoch) != Some(epoch) {
            *self = Self { epoch: Some(epoch), ..Self::since(self.since) };
        }
    }
}

/// More of them would add no information: the oldest gives the time since which none reached the consumers.
const REMEMBERED: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    const EPOCH: Epoch = Epoch(1);

    fn put(heartbeats: &mut AwaitedHeartbeats, number: u64) -> bool {
        heartbeats.put(EPOCH, Sequence(number), WallMicros(number as i64 * 10), Micros(number))
    }

    #[test]
    fn no_two_heartbeats_are_equal() {
        let at = |now| Heartbeat::at(WallMicros(now), "Oslo", "hub.example").unwrap();
        let (one, next) = (at(17), at(18));
        assert!(one.id.is_heartbeat() && one.id != next.id && one.bytes != next.bytes);
        assert_eq!((&one.bytes[..], one.origin.as_str()), (&b"heartbeat of Oslo at 17\n"[..], "hub.example"));
        assert_eq!(Heartbeat::at(WallMicros(17), "Oslo", &"x".repeat(300)), None);
    }

    #[test]
    fn the_oldest_one_that_did_not_come_out_tells_since_when() {
        let mut heartbeats = AwaitedHeartbeats::default();
        assert!(!put(&mut heartbeats, 3));
        assert!(put(&mut heartbeats, 5) && put(&mut heartbeats, 9), "news: one before it waits");
        assert_eq!((heartbeats.newest_out(), heartbeats.waits_since()), (None, Some(WallMicros(30))));
        assert!(heartbeats.came_out(EPOCH, Sequence(5)));
        assert_eq!(
            (heartbeats.newest_out(), heartbeats.waits_since()),
            (Some(WallMicros(50)), Some(WallMicros(90)))
        );
        heartbeats.came_out(EPOCH, Sequence(9));
        assert_eq!((heartbeats.newest_out(), heartbeats.waits_since()), (Some(WallMicros(90)), None));
    }

    #[test]
    fn the_wait_is_that_of_the_oldest_on_the_nodes_own_clock() {
        let mut heartbeats = AwaitedHeartbeats::default();
        assert_eq!((heartbeats.waited(Micros(50)), heartbeats.is_overdue()), (None, false));
        put(&mut heartbeats, 3);
        assert_eq!((heartbeats.waited(Micros(50)), heartbeats.is_overdue()), (Some(Micros(47)), false));
        put(&mut heartbeats, 5);
        assert_eq!((heartbeats.waited(Micros(50)), heartbeats.is_overdue()), (Some(Micros(47)), true));
        heartbeats.came_out(EPOCH, Sequence(3));
        assert_eq!((heartbeats.waited(Micros(50)), heartbeats.is_overdue()), (Some(Micros(45)), false));
    }

    #[test]
    fn an_answer_may_come_before_the_word_that_it_was_put() {
        let mut heartbeats = AwaitedHeartbeats::default();
        heartbeats.came_out(EPOCH, Sequence(4));
        assert!(!put(&mut heartbeats, 4));
        assert_eq!((heartbeats.newest_out(), heartbeats.waits_since()), (Some(WallMicros(40)), None));
    }

    #[test]
    fn what_was_put_before_the_site_answered_is_not_waited_for() {
        let mut heartbeats = AwaitedHeartbeats::since(WallMicros(50));
        assert!(!put(&mut heartbeats, 4), "a copy that catches up tells of old ones");
        assert_eq!(heartbeats.waits_since(), None);
        assert!(!put(&mut heartbeats, 5));
        assert_eq!(heartbeats.waits_since(), Some(WallMicros(50)));
        heartbeats.put(Epoch(2), Sequence(1), WallMicros(40), Micros(9));
        assert_eq!(heartbeats.waits_since(), Some(WallMicros(50)), "nor in another life of the log");
    }

    #[test]
    fn a_silent_site_costs_no_memory_and_another_life_of_the_log_begins_anew() {
        let mut heartbeats = AwaitedHeartbeats::default();
        (1..1_000).for_each(|number| {
            put(&mut heartbeats, number);
        });
        assert_eq!((heartbeats.waiting.len(), heartbeats.waits_since()), (REMEMBERED, Some(WallMicros(10))));
        heartbeats.put(Epoch(2), Sequence(1), WallMicros(77), Micros(2_000));
        assert_eq!(heartbeats.waits_since(), Some(WallMicros(77)));
        heartbeats.came_out(EPOCH, Sequence(5));
        assert_eq!(heartbeats.waits_since(), None, "what was said of the life before is of no use");
    }
}
