//! Polling before blocking, for threads that read a feed with a deadline.
use downburst_model::Micros;

/// How long a thread polls its socket before it blocks.
///
/// Waking a blocked thread takes some microseconds, and at a constant rate the next datagram comes in a known time. So
/// the thread polls for twice the expected spacing if that is at most [`LONGEST`](Self::LONGEST), and blocks
/// otherwise: a slow or silent leg costs no processor.
#[derive(Debug, Default)]
pub struct Spinning {
    /// A moving mean, in nanoseconds; `None` before the second read.
    spacing_ns: Option<u64>,
    read_at_ns: Option<u64>,
}

impl Spinning {
    /// The longest polling.
    pub const LONGEST: Micros = Micros(50);

    /// The time to poll before blocking, in nanoseconds; `None`: block now.
    pub fn poll_ns(&self) -> Option<u64> {
        let poll_ns = self.spacing_ns?.saturating_mul(2);
        (poll_ns <= LONGEST_NS).then_some(poll_ns)
    }

    /// Notes a read of this many datagrams, at a time of the thread's own clock in nanoseconds.
    pub fn read(&mut self, datagrams: usize, now_ns: u64) {
        let Ok(count @ 1..) = u64::try_from(datagrams) else { return };
        let Some(before_ns) = self.read_at_ns.replace(now_ns) else { return };
        // A pause of the source must not count for longer than some datagrams.
        let sample_ns = (now_ns.saturating_sub(before_ns) / count).min(4 * LONGEST_NS);
        let mean_ns = self.spacing_ns.unwrap_or(sample_ns);
        self.spacing_ns = Some((mean_ns.saturating_mul(7).saturating_add(sample_ns)) / 8);
    }
}

const LONGEST_NS: u64 = Spinning::LONGEST.0 * 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// The state after reads of one datagram each at this spacing.
    fn spaced(mut spinning: Spinning, from_ns: u64, spacing_ns: u64, reads: u64) -> Spinning {
        (0..reads).for_each(|n| spinning.read(1, from_ns + n * spacing_ns));
        spinning
    }

    #[test]
    fn it_polls_for_twice_a_short_spacing_and_never_for_a_long_one() {
        assert_eq!(Spinning::default().poll_ns(), None, "nothing is known of the leg yet");
        assert_eq!(spaced(Spinning::default(), 0, 12_000, 100).poll_ns(), Some(24_000));
        assert_eq!(spaced(Spinning::default(), 0, 100_000, 100).poll_ns(), None);
    }

    #[test]
    fn datagrams_read_together_came_at_their_own_spacing() {
        let mut spinning = Spinning::default();
        (0..100).for_each(|n| spinning.read(10, n * 100_000));
        assert_eq!(spinning.poll_ns(), Some(20_000));
    }

    #[test]
    fn after_a_pause_it_polls_again_within_some_datagrams() {
        let steady = spaced(Spinning::default(), 0, 10_000, 100);
        let paused = spaced(steady, 60_000_000_000, 10_000, 1);
        assert_eq!(paused.poll_ns(), None);
        assert!(spaced(paused, 60_000_010_000, 10_000, 20).poll_ns().is_some());
    }

    #[test]
    fn reads_of_nothing_and_clocks_that_step_back_change_nothing_else() {
        let mut spinning = spaced(Spinning::default(), 1_000_000, 12_000, 50);
        let before = spinning.poll_ns();
        spinning.read(0, 90_000_000_000);
        assert_eq!(spinning.poll_ns(), before);
        spinning.read(1, 0);
        assert!(spinning.poll_ns().is_some());
    }
}
