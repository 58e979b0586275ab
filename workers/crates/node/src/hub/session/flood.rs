//! What a session does when the group has flooded its site's link: what TCP learnt of the path meanwhile is forgotten.
use downburst_model::Micros;

use super::Session;
use crate::hub::link::Link;
use crate::tcp::PathFacts;

/// Watches a link that the group has flooded until nothing is lost on it any more: switches and other legs take their time.
#[derive(Default)]
pub(super) struct Flood {
    watch: Option<Watch>,
}

struct Watch {
    until: Micros,
    look_at: Micros,
    /// Segments sent again so far.
    resent: u64,
    calm_since: Micros,
}

impl Flood {
    /// The group's packets will stop soon.
    pub(super) fn ebbs(&mut self, now: Micros) {
        let watch = Watch { until: now.plus(PATIENCE), look_at: now, resent: u64::MAX, calm_since: now };
        self.watch.get_or_insert(watch);
    }

    /// When to look.
    pub(super) fn due(&self) -> Option<Micros> {
        self.watch.as_ref().map(|watch| watch.look_at)
    }

    /// Looks at what was sent again so far; true once, when the flood is over.
    fn look(&mut self, now: Micros, resent: u64) -> bool {
        let Some(watch) = &mut self.watch else { return false };
        watch.look_at = now.plus(BETWEEN_LOOKS);
        if resent != watch.resent {
            (watch.resent, watch.calm_since) = (resent, now);
        }
        let (is_over, is_given_up) = (now.since(watch.calm_since) >= CALM, now >= watch.until);
        if is_over || is_given_up {
            self.watch = None;
        }
        is_over
    }
}

impl Session {
    /// Once nothing is lost any more, the connections begin anew to find out what their path carries.
    pub(super) fn look_after_flood(&mut self, link: &Link) {
        let now = self.hub.clock.monotonic();
        if self.flood.due().is_none_or(|due| due > now) {
            return;
        }
        let facts = link.path_facts().into_iter().chain(self.streams.links.path_facts());
        let resent = facts.reduce(PathFacts::with).map_or(0, |facts| facts.resent_segments);
        if self.flood.look(now, resent) {
            link.measure_anew();
            self.streams.links.measure_anew();
        }
    }
}

const BETWEEN_LOOKS: Micros = Micros::from_millis(250);

/// Several of the shortest timers after which TCP sends again.
const CALM: Micros = Micros::from_secs(1);

/// A path that still loses after this is a bad one by itself.
const PATIENCE: Micros = Micros::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks whenever it is due; what was sent again by then is asked for. Returns when the flood was found to be over.
    fn over(resent: impl Fn(Micros) -> u64) -> Option<Micros> {
        let mut flood = Flood::default();
        flood.ebbs(Micros(0));
        while let Some(now) = flood.due() {
            if flood.look(now, resent(now)) {
                assert_eq!(flood.due(), None, "once is enough");
                return Some(now);
            }
        }
        None
    }

    #[test]
    fn a_flood_is_over_when_nothing_was_lost_for_a_second() {
        assert_eq!(over(|_| 17), Some(Micros::from_secs(1)));
        assert_eq!(over(|now| now.0.min(3_100_000) / 100_000), Some(Micros::from_millis(4_250)));
    }

    #[test]
    fn a_path_that_always_loses_is_left_alone() {
        assert_eq!(over(|now| now.0 / 300_000), None);
    }

    #[test]
    fn another_leg_that_is_left_meanwhile_does_not_prolong_the_watch() {
        let mut flood = Flood::default();
        assert_eq!(flood.due(), None);
        flood.ebbs(Micros(0));
        flood.look(Micros(0), 1);
        flood.ebbs(Micros::from_millis(900));
        assert!(flood.look(Micros::from_secs(1), 1));
    }
}
