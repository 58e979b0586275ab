use std::time::Duration;

/// The failure of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failed {
    /// Further attempts would fail in the same way.
    ForGood(String),
    /// The other end may do better later; it may name the time to wait.
    ForNow(String, Option<Duration>),
    /// The bytes are not those that were announced. A file may be replaced while it is fetched.
    Differs(String),
}

impl Failed {
    /// The failure that an answer with this status is; `None`: it is no failure. A file that is announced and not
    /// there (404) may still be on its way to the server.
    pub fn of_status(status: u16, retry_after: Option<Duration>) -> Option<Self> {
        let sentence = format!("the server answers with status {status}");
        match status {
            200 => None,
            404 | 408 | 425 | 429 | 500..=599 => Some(Self::ForNow(sentence, retry_after)),
            _ => Some(Self::ForGood(sentence)),
        }
    }

    /// The sentence about it.
    pub fn sentence(&self) -> &str {
        match self {
            Self::ForGood(sentence) | Self::ForNow(sentence, _) | Self::Differs(sentence) => sentence,
        }
    }
}

/// The attempts at one download.
#[derive(Clone, Copy, Debug)]
pub struct Attempts {
    left: u32,
    pause: Duration,
}

impl Attempts {
    /// `most`: attempts in all, of which one is always made.
    pub fn new(most: u32) -> Self {
        Self { left: most.saturating_sub(1), pause: FIRST_PAUSE }
    }

    /// The pause before the next attempt after a failure; `None`: there is none. `share`: a random number from 0 to 1,
    /// so that many downloads don't come back together.
    pub fn next(&mut self, failed: &Failed, share: f64) -> Option<Duration> {
        let asked = match failed {
            Failed::ForGood(_) => return None,
            Failed::ForNow(_, asked) => *asked,
            Failed::Differs(_) => None,
        };
        self.left = self.left.checked_sub(1)?;
        let pause = self.pause;
        self.pause = pause.saturating_mul(GROWTH).min(LONGEST_PAUSE);
        let jittered = pause.mul_f64(0.5 + share.clamp(0.0, 1.0) / 2.0);
        Some(asked.unwrap_or_default().min(LONGEST_PAUSE).max(jittered))
    }
}

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const GROWTH: u32 = 4;
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

#[cfg(test)]
mod tests {
    use super::*;

    fn later() -> Failed {
        Failed::ForNow("x".to_owned(), None)
    }

    #[test]
    fn pauses_grow_within_bounds_and_end() {
        let mut attempts = Attempts::new(8);
        let pauses: Vec<u64> =
            std::iter::from_fn(|| attempts.next(&later(), 1.0)).map(|it| it.as_secs()).collect();
        assert_eq!(pauses, [1, 4, 16, 64, 256, 300, 300]);
        assert_eq!(Attempts::new(0).next(&later(), 0.5), None);
    }

    #[test]
    fn jitter_shortens_a_pause_by_half_at_most() {
        for (share, millis) in [(0.0, 500), (0.5, 750), (1.0, 1_000), (7.0, 1_000), (-1.0, 500)] {
            assert_eq!(Attempts::new(2).next(&later(), share), Some(Duration::from_millis(millis)));
        }
    }

    #[test]
    fn a_server_may_ask_for_a_longer_pause_but_not_for_ever() {
        let asked = |seconds| Failed::ForNow("x".to_owned(), Some(Duration::from_secs(seconds)));
        for (seconds, pause) in [(0, 1), (30, 30), (1 << 40, 300)] {
            assert_eq!(Attempts::new(2).next(&asked(seconds), 1.0), Some(Duration::from_secs(pause)));
        }
    }

    #[test]
    fn some_answers_end_all_attempts() {
        for (status, again) in
            [(404, true), (429, true), (503, true), (401, false), (403, false), (410, false), (206, false)]
        {
            let failed = Failed::of_status(status, None).unwrap();
            assert_eq!(Attempts::new(9).next(&failed, 1.0).is_some(), again, "{status}");
            assert!(failed.sentence().contains(&status.to_string()));
        }
        assert_eq!(Failed::of_status(200, None), None);
    }

    #[test]
    fn bytes_that_differ_are_fetched_again() {
        let differs = Failed::Differs("x".to_owned());
        assert_eq!(Attempts::new(2).next(&differs, 1.0), Some(FIRST_PAUSE));
        assert_eq!((Attempts::new(1).next(&differs, 1.0), differs.sentence()), (None, "x"));
    }
}
