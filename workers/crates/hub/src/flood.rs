//! Detection of the end of a multicast flood on a link: of its losses, and of TCP's wrong measurements of the path.
use downburst_model::Micros;

/// Watches a link that the group has flooded until its loss ends: switches and other legs need time to react.
#[derive(Debug, Default)]
pub struct Flood {
    watch: Option<Watch>,
}

#[derive(Debug)]
struct Watch {
    until: Micros,
    look_at: Micros,
    /// Segments retransmitted so far.
    resent: u64,
    calm_since: Micros,
    /// The time at which the path is measured again, with or without flood.
    measure_at: Micros,
}

impl Flood {
    /// Starts the watch: the group's packets will stop soon.
    pub fn ebbs(&mut self, now: Micros) {
        let (until, measure_at) = (now.plus(PATIENCE), now.plus(CALM));
        let watch = Watch { until, look_at: now, resent: u64::MAX, calm_since: now, measure_at };
        self.watch.get_or_insert(watch);
    }

    /// The time of the next look.
    pub fn due(&self) -> Option<Micros> {
        self.watch.as_ref().map(|watch| watch.look_at)
    }

    /// Checks the number of retransmissions, and whether a connection waits to retransmit: then the lack of new
    /// ones is due to its timer, and the flood may last.
    pub fn look(&mut self, now: Micros, resent: u64, waits: bool) -> Sight {
        let Some(watch) = &mut self.watch else { return Sight::Flooded };
        watch.look_at = now.plus(BETWEEN_LOOKS);
        if waits || resent != watch.resent {
            (watch.resent, watch.calm_since) = (resent, now);
        }
        let sight = match (now.since(watch.calm_since) >= CALM, now >= watch.until) {
            (true, _) => Sight::Over,
            (false, true) => Sight::GivenUp,
            (false, false) if now < watch.measure_at => return Sight::Flooded,
            (false, false) => {
                watch.measure_at = now.plus(CALM);
                return Sight::StillFlooded;
            }
        };
        self.watch = None;
        sight
    }
}

/// The result of a look at a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// The link still loses packets.
    Flooded,
    /// The link still loses packets after another second.
    StillFlooded,
    /// Nothing was lost for a second.
    Over,
    /// The path loses packets without the group.
    GivenUp,
}

const BETWEEN_LOOKS: Micros = Micros::from_millis(250);

/// Several times TCP's shortest retransmission timer.
const CALM: Micros = Micros::from_secs(1);

/// A path that still loses packets after this time is bad without the flood.
const PATIENCE: Micros = Micros::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs due checks; the closures give the retransmissions by then, and whether a connection waits for one.
    /// Returns the end of the flood.
    fn over_with(resent: impl Fn(Micros) -> u64, waits: impl Fn(Micros) -> bool) -> Option<Micros> {
        let mut flood = Flood::default();
        flood.ebbs(Micros(0));
        while let Some(now) = flood.due() {
            match flood.look(now, resent(now), waits(now)) {
                Sight::Flooded | Sight::StillFlooded => {}
                sight => {
                    assert_eq!(flood.due(), None, "once is enough");
                    return (sight == Sight::Over).then_some(now);
                }
            }
        }
        None
    }

    fn over(resent: impl Fn(Micros) -> u64) -> Option<Micros> {
        over_with(resent, |_| false)
    }

    #[test]
    fn a_flood_is_over_when_nothing_was_lost_for_a_second() {
        assert_eq!(over(|_| 17), Some(Micros::from_secs(1)));
        assert_eq!(over(|now| now.0.min(3_100_000) / 100_000), Some(Micros::from_millis(4_250)));
    }

    #[test]
    fn a_timer_that_runs_is_no_calm() {
        // Retransmitted after 0.4, 1.2 and 2.8 s, and accepted at 6 s.
        let times = [400_000, 1_200_000, 2_800_000, 6_000_000];
        let resent = |now: Micros| times.iter().filter(|time| **time <= now.0).count() as u64;
        assert_eq!(over(resent), Some(Micros::from_millis(2_250)), "in the middle of the flood");
        let calm = over_with(resent, |now| (400_000..6_000_000).contains(&now.0));
        assert_eq!(calm, Some(Micros::from_secs(7)));
    }

    #[test]
    fn each_second_of_a_flood_the_path_is_measured_again() {
        let mut flood = Flood::default();
        flood.ebbs(Micros(0));
        let measured: Vec<_> =
            (0..20).map(|look| flood.look(Micros(look * BETWEEN_LOOKS.0), look, true)).collect();
        let times = measured.iter().enumerate().filter(|(_, sight)| **sight == Sight::StillFlooded);
        assert_eq!(times.map(|(look, _)| look).collect::<Vec<_>>(), [4, 8, 12, 16]);
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
        flood.look(Micros(0), 1, false);
        flood.ebbs(Micros::from_millis(900));
        assert_eq!(flood.look(Micros::from_secs(1), 1, false), Sight::Over);
    }
}
