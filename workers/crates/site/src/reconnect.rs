//! The pauses between a site's attempts to connect.
use downburst_model::Micros;

/// The pauses between attempts: short after a session and while nothing answers at all, longer with each
/// answer other than a welcome. All are random, so that the sites of a restarted hub connect one by one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reconnect {
    failures: u32,
}

/// The end of an attempt or a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Nothing answered: a broken path, a host that is down. Frequent attempts do no harm there.
    Unanswered,
    /// The host answered without a session: no hub there, a hub that is starting, a refusal.
    Answered,
    /// A session ended after this time.
    Session(Micros),
}

impl Reconnect {
    /// The pause before the next attempt; `random` is in 0..1.
    pub fn pause(&mut self, ended: Ended, random: f64) -> Micros {
        if matches!(ended, Ended::Session(lasted) if lasted >= GOOD_SESSION) {
            self.failures = 0;
        }
        let longest = match ended {
            Ended::Unanswered => FIRST_PAUSE,
            Ended::Answered | Ended::Session(_) => {
                let longest = Micros(FIRST_PAUSE.0 << self.failures.min(10)).min(LONGEST_PAUSE);
                self.failures = self.failures.saturating_add(1);
                longest
            }
        };
        SHORTEST_PAUSE.plus(Micros((longest.since(SHORTEST_PAUSE).0 as f64 * random.clamp(0.0, 1.0)) as u64))
    }
}

const SHORTEST_PAUSE: Micros = Micros::from_millis(50);

/// Upper limit of the first pause: with it a site reconnects within a second to a hub that restarts immediately.
const FIRST_PAUSE: Micros = Micros::from_millis(200);

/// Upper limit of all pauses: a hub that returns after hours has all its sites within 5 s, a thousand
/// of them at 200 a second.
const LONGEST_PAUSE: Micros = Micros::from_secs(5);

/// After a session of this length the pauses start again with the shortest; a hub that ends every session early sees
/// fewer attempts.
const GOOD_SESSION: Micros = Micros::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_with_answers_and_begin_anew_after_a_good_session() {
        let mut reconnect = Reconnect::default();
        let longest: Vec<u64> = (0..7).map(|_| reconnect.pause(Ended::Answered, 1.0).0 / 1_000).collect();
        assert_eq!(longest, [200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
        assert_eq!(reconnect.pause(Ended::Answered, 0.0), SHORTEST_PAUSE);
        (0..100).for_each(|_| assert_eq!(reconnect.pause(Ended::Answered, 1.0), LONGEST_PAUSE));
        assert_eq!(reconnect.pause(Ended::Session(Micros::from_secs(1)), 1.0), LONGEST_PAUSE);
        assert_eq!(reconnect.pause(Ended::Session(Micros::from_secs(9)), 1.0), FIRST_PAUSE);
    }

    #[test]
    fn silence_is_asked_again_soon_however_long_it_lasts() {
        let mut reconnect = Reconnect::default();
        assert!((0..1_000).all(|_| reconnect.pause(Ended::Unanswered, 1.0) == FIRST_PAUSE));
        assert_eq!(reconnect.pause(Ended::Answered, 1.0), FIRST_PAUSE);
    }

    #[test]
    fn pauses_of_many_sites_are_spread() {
        let mut halves = [0; 10];
        for site in 0..1_000 {
            let mut reconnect = Reconnect { failures: 20 };
            let pause = reconnect.pause(Ended::Answered, f64::from(site) / 1_000.0);
            halves[(pause.0 as f64 / 500_000.0) as usize % 10] += 1;
        }
        assert!(halves.iter().all(|count| (80..=120).contains(count)), "{halves:?}");
    }
}
