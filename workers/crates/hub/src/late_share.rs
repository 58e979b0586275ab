//! The rate of late products (catch-up and resends) for all sites together: the highest that does not delay live
//! products at the other sites.
//!
//! A site that was away for hours uses all capacity of the hub, the network and its neighbours. Receipts show the
//! effect on the others: the excess of live products' latencies over the lowest recent latency to the same site.
//! While no site has late products, the usual wait of the median site is learnt. While some have, their rate rises
//! if the median site waits no longer than usual, and falls if it does. Both changes are multiplicative, none
//! additive, so that the rate suits hubs of any size. Without live products there is no limit.
use std::collections::BTreeMap;

use downburst_model::Micros;

/// The rate limit of one hub, shared by its sessions.
#[derive(Debug, Default)]
pub struct LateShare {
    looked: Micros,
    sessions: BTreeMap<u64, Waits>,
    /// The last time at which a live product arrived at a site without late ones.
    live_at: Option<Micros>,
    /// The time at which each session last sent a late product.
    late: BTreeMap<u64, Micros>,
    late_bytes: u64,
    /// The median site's wait without late products, not exceeded at four of five looks.
    usual_us: Option<f64>,
    bound_bps: Option<u64>,
}

/// The waits of live products to one site.
#[derive(Debug, Default)]
struct Waits {
    began: Micros,
    /// The lowest latencies of this half of the window and of the one before.
    quickest_us: [Option<i64>; 2],
    waited_us: Vec<u64>,
}

impl LateShare {
    /// The rate limit of each session for late products, in bits per second.
    pub fn session_bps(&self) -> Option<u64> {
        Some(self.bound_bps? / (self.late.len() as u64).max(1))
    }

    /// Records bytes of late products that a session sent. True if its limit may have changed.
    pub fn sent(&mut self, now: Micros, session: u64, bytes: u64) -> bool {
        self.note_sent(now, session, bytes);
        self.look_if_due(now)
    }

    /// Records the latencies, in microseconds, of live products to the site of a session. True if the limit may
    /// have changed.
    pub fn arrived(&mut self, now: Micros, session: u64, took_us: impl Iterator<Item = i64>) -> bool {
        self.note_arrived(now, session, took_us);
        self.look_if_due(now)
    }

    /// Removes a session that ended.
    pub fn forget(&mut self, session: u64) {
        self.sessions.remove(&session);
        self.late.remove(&session);
    }

    fn note_sent(&mut self, now: Micros, session: u64, bytes: u64) {
        self.late.insert(session, now);
        self.late_bytes = self.late_bytes.saturating_add(bytes);
    }

    /// Records latencies, except those of a site that catches up: it waits for its own products, and is no evidence
    /// about the others.
    fn note_arrived(&mut self, now: Micros, session: u64, took_us: impl Iterator<Item = i64>) {
        if self.late.contains_key(&session) {
            return;
        }
        self.live_at = Some(now);
        let waits = self.sessions.entry(session).or_default();
        took_us.for_each(|took_us| waits.add(now, took_us));
    }

    fn look_if_due(&mut self, now: Micros) -> bool {
        let due = self.is_due(now);
        if due {
            self.look(now);
        }
        due
    }

    /// True if a look is due: often enough to follow a burst, and seldom enough to have sufficient data.
    fn is_due(&self, now: Micros) -> bool {
        let elapsed = now.since(self.looked);
        // Counted only if needed: this function runs with each message of receipts.
        let arrived = || self.sessions.values().map(|waits| waits.waited_us.len()).sum::<usize>();
        elapsed >= LONGEST_LOOK || (elapsed >= SHORTEST_LOOK && arrived() >= TELLING_WAITS)
    }

    fn look(&mut self, now: Micros) {
        let elapsed = now.since(std::mem::replace(&mut self.looked, now));
        let sent_bps = std::mem::take(&mut self.late_bytes).saturating_mul(8_000_000) / elapsed.0.max(1);
        self.late.retain(|_, at| now.since(*at) < LATE_LASTS);
        let waited_us = self.middle_wait();
        if self.live_at.is_none_or(|at| now.since(at) > QUIET) {
            self.bound_bps = None;
        } else if self.late.is_empty() {
            self.bound_bps = Some(GENTLE_BPS);
            waited_us.into_iter().for_each(|waited_us| self.learn(waited_us));
        } else if let Some(waited_us) = waited_us {
            self.bound_bps = Some(self.bound(waited_us, sent_bps));
        }
    }

    fn bound(&mut self, waited_us: f64, sent_bps: u64) -> u64 {
        let bound = self.bound_bps.unwrap_or(GENTLE_BPS);
        let usual_us = *self.usual_us.get_or_insert(waited_us);
        if waited_us > usual_us + SLACK_US {
            if bound == GENTLE_BPS {
                // So low a rate does not cause the wait: the usual wait has changed.
                self.learn(waited_us);
            }
            (bound / 10 * 7).max(GENTLE_BPS)
        } else if sent_bps > bound / 2 {
            bound.saturating_add(bound / 7).min(HIGHEST_BPS)
        } else {
            bound
        }
    }

    /// Moves the estimate, by a fraction of itself, towards the value that four of five looks stay below.
    fn learn(&mut self, waited_us: f64) {
        let usual_us = self.usual_us.get_or_insert(waited_us);
        let step = (*usual_us / 20.0).max(20.0);
        *usual_us += if waited_us > *usual_us { step * 0.8 } else { -step * 0.2 };
    }

    /// The median of the sites' waits, where a site's wait is the 90th percentile of its products. `None` if
    /// nothing arrived.
    fn middle_wait(&mut self) -> Option<f64> {
        let mut waits: Vec<u64> = self.sessions.values_mut().filter_map(Waits::take_high).collect();
        waits.sort_unstable();
        waits.get(waits.len() / 2).map(|waited_us| *waited_us as f64)
    }
}

impl Waits {
    fn add(&mut self, now: Micros, took_us: i64) {
        if now.since(self.began) > HALF_WINDOW {
            self.began = now;
            self.quickest_us = [None, self.quickest_us[0]];
        }
        let [this_half, _] = &mut self.quickest_us;
        *this_half = Some(this_half.map_or(took_us, |quickest| quickest.min(took_us)));
        let quickest_us = self.quickest_us.into_iter().flatten().min().unwrap_or(took_us);
        if self.waited_us.len() < WAITS_KEPT {
            self.waited_us.push(took_us.saturating_sub(quickest_us).unsigned_abs());
        }
    }

    fn take_high(&mut self) -> Option<u64> {
        let mut waited_us = std::mem::take(&mut self.waited_us);
        waited_us.sort_unstable();
        waited_us.get(waited_us.len().saturating_sub(1) * 9 / 10).copied()
    }
}

/// The rate at which late products start, and the minimum: a hundredth of a large hub's link.
const GENTLE_BPS: u64 = 32_000_000;
const HIGHEST_BPS: u64 = 1_000_000_000_000;

const SHORTEST_LOOK: Micros = Micros::from_millis(100);
const LONGEST_LOOK: Micros = Micros::from_secs(1);

/// With fewer arrivals, a look has little significance.
const TELLING_WAITS: usize = 8;
const WAITS_KEPT: usize = 1_000;

/// A session without late products for this time has caught up, or its path is the limit.
const LATE_LASTS: Micros = Micros::from_secs(1);

/// Without live products for this time, late ones can't disturb any site.
const QUIET: Micros = Micros::from_secs(2);

/// Paths change, and clocks drift apart: older minima are forgotten.
const HALF_WINDOW: Micros = Micros::from_secs(30);

/// Half of the shortest wait that an operator could notice.
const SLACK_US: f64 = 500.0;

#[cfg(test)]
mod tests {
    use super::*;

    /// A hub with live products to seven sites; looks follow one another.
    struct World {
        control: LateShare,
        now: Micros,
        random: u64,
    }

    impl World {
        fn new() -> Self {
            Self { control: LateShare::default(), now: Micros::from_secs(1), random: 7 }
        }

        /// Between 0 and 1, small more often than large.
        fn noise(&mut self) -> f64 {
            self.random =
                self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let even = (self.random >> 11) as f64 / (1_u64 << 53) as f64;
            even * even
        }

        /// A tenth of a second in which live products wait up to `wait_us`; `late_bps` go to sites that catch up.
        fn look(&mut self, wait_us: f64, late_bps: u64) {
            self.now = self.now.plus(SHORTEST_LOOK);
            for session in 0..7 {
                let waits: Vec<i64> = (0..20).map(|_| 2_000 + (self.noise() * wait_us) as i64).collect();
                self.control.note_arrived(self.now, session, waits.into_iter());
            }
            if late_bps > 0 {
                self.control.note_sent(self.now, 100, late_bps / 80);
            }
            assert!(self.control.is_due(self.now));
            self.control.look(self.now);
        }

        fn calm(&mut self) {
            (0..200).for_each(|_| self.look(8_000.0, 0));
        }

        fn bound(&self) -> u64 {
            self.control.session_bps().unwrap()
        }
    }

    #[test]
    fn without_live_products_there_is_no_bound() {
        let mut share = LateShare::default();
        for tenth in 1..100 {
            share.sent(Micros::from_millis(tenth * 100), 1, 10_000_000);
            assert_eq!(share.session_bps(), None);
        }
        share.arrived(Micros::from_secs(11), 2, [1_000, 1_100].into_iter());
        assert_eq!(share.session_bps(), Some(GENTLE_BPS), "live products are there");
        share.sent(Micros::from_secs(15), 1, 10_000_000);
        assert_eq!(share.session_bps(), None, "and are over");
    }

    #[test]
    fn what_nobody_feels_goes_as_fast_as_it_can() {
        let mut world = World::new();
        world.calm();
        for _ in 0..150 {
            let bound = world.bound();
            world.look(8_000.0, bound);
        }
        assert!(world.bound() > 10_000_000_000, "{}", world.bound());
    }

    #[test]
    fn the_rate_at_which_others_wait_is_found_and_not_exceeded_much() {
        let mut world = World::new();
        world.calm();
        let (capacity, mut felt, mut sum) = (800_000_000, 0, 0);
        for look in 0..600 {
            let bound = world.bound();
            world.look(if bound > capacity { 20_000.0 } else { 8_000.0 }, bound);
            if look >= 100 {
                felt += u32::from(bound > capacity);
                sum += bound / 500;
            }
        }
        assert!(felt < 150, "live products waited in {felt} of 500 looks");
        assert!((400_000_000..900_000_000).contains(&sum), "{sum}");
    }

    #[test]
    fn a_bound_that_is_not_used_does_not_rise() {
        let mut world = World::new();
        world.calm();
        (0..100).for_each(|_| world.look(8_000.0, 1_000_000));
        assert_eq!(world.bound(), GENTLE_BPS);
    }

    #[test]
    fn sites_that_catch_up_share_the_bound_and_do_not_count() {
        let mut world = World::new();
        world.calm();
        world.control.note_sent(world.now, 101, 1);
        for _ in 0..20 {
            world.control.note_sent(world.now, 101, 1);
            let bound = world.bound() * 2;
            world.control.note_arrived(world.now, 101, std::iter::repeat_n(60_000_000, 100));
            world.look(8_000.0, bound);
        }
        let (bound, all) = (world.bound(), world.control.bound_bps.unwrap());
        assert!(all > GENTLE_BPS, "{all}");
        assert_eq!(bound, all / 2);
    }

    #[test]
    fn what_lasts_at_the_least_rate_becomes_usual() {
        let mut world = World::new();
        world.calm();
        (0..600).for_each(|_| {
            let bound = world.bound();
            world.look(40_000.0, bound);
        });
        assert!(world.bound() > 4 * GENTLE_BPS, "the hub has more to do than before, and catch-up goes on");
    }
}
