//! How long a site waits before it knocks again.
use downburst_model::Micros;

/// The pauses between attempts: short after a session and while nothing answers at all, longer with each
/// answer other than a welcome. All are drawn at random so that the sites of a restarted hub come one by one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reconnect {
    failures: u32,
}

/// How an attempt or a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Nothing answered: a broken path, a host that is down. Whoever knocks there wakes nobody.
    Unanswered,
    /// The host answered and gave no session: no hub there, a hub that starts, a refusal.
    Answered,
    /// A session ended after so long.
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

/// The longest of the first pauses: with it a site is back within a second of a hub that restarts at once.
const FIRST_PAUSE: Micros = Micros::from_millis(200);

/// The longest of all: a hub that returns after hours has all its sites within 5 s, a thousand of them as 200
/// in each second.
const LONGEST_PAUSE: Micros = Micros::from_secs(5);

/// After a session of this length the pauses begin with the shortest again; a hub that ends each session
/// early is left in peace.
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
