//! The limit of all flows of one direction together.
use downburst_model::Micros;

use super::tcp_frame_bytes;

/// A token bucket of payload bytes. It limits the writes of a sender: repeated segments come on top.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    rate_bps: u64,
    burst_bytes: u64,
    /// Millionths of a bit.
    tokens: u128,
    at: Micros,
}

impl TokenBucket {
    /// A bucket that is full now. `rate_bps`: of payload.
    pub fn new(now: Micros, rate_bps: u64) -> Self {
        let in_burst = u128::from(rate_bps) * u128::from(BURST.0) / 8_000_000;
        let burst_bytes = u64::try_from(in_burst).unwrap_or(u64::MAX).max(LARGEST_TAKE_BYTES);
        Self { rate_bps: rate_bps.max(1), burst_bytes, tokens: bits(burst_bytes), at: now }
    }

    /// Takes the tokens of so many bytes, of at most [`LARGEST_TAKE_BYTES`].
    ///
    /// # Errors
    /// They are not there; contains the time until they are.
    pub fn take(&mut self, now: Micros, bytes: u64) -> Result<(), Micros> {
        let earned = u128::from(now.since(self.at).0).saturating_mul(u128::from(self.rate_bps));
        self.at = self.at.max(now);
        self.tokens = self.tokens.saturating_add(earned).min(bits(self.burst_bytes));
        let wanted = bits(bytes.min(LARGEST_TAKE_BYTES));
        match self.tokens.checked_sub(wanted) {
            Some(rest) => {
                self.tokens = rest;
                Ok(())
            }
            None => {
                let missing = (wanted - self.tokens).div_ceil(u128::from(self.rate_bps));
                Err(Micros(u64::try_from(missing).unwrap_or(u64::MAX)))
            }
        }
    }

    /// Gives the tokens of bytes back that were not written.
    pub fn give_back(&mut self, bytes: u64) {
        self.tokens = self.tokens.saturating_add(bits(bytes)).min(bits(self.burst_bytes));
    }
}

/// The rate of payload in whole segments, of which the frames have this rate.
pub fn payload_bps(frames_bps: u64, segment_bytes: u64, is_ipv6: bool) -> u64 {
    let segment_bytes = segment_bytes.max(1);
    let payload = u128::from(frames_bps) * u128::from(segment_bytes)
        / u128::from(tcp_frame_bytes(segment_bytes, is_ipv6));
    u64::try_from(payload).unwrap_or(u64::MAX)
}

fn bits(bytes: u64) -> u128 {
    u128::from(bytes) * 8_000_000
}

/// A flow that waits for a processor catches up this time.
const BURST: Micros = Micros::from_millis(10);
/// The most that is taken as one.
pub const LARGEST_TAKE_BYTES: u64 = 16 << 10;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_full_bucket_lets_a_burst_out_and_then_the_rate() {
        let mut bucket = TokenBucket::new(Micros(0), 8_000_000);
        assert_eq!(bucket.take(Micros(0), 16_384), Ok(()));
        assert_eq!(bucket.take(Micros(0), 1_000), Err(Micros(1_000)));
        assert_eq!(bucket.take(Micros(1_000), 1_000), Ok(()));
        bucket.give_back(500);
        assert_eq!(bucket.take(Micros(1_000), 500), Ok(()));
        assert!(bucket.take(Micros(0), 1).is_err(), "a clock that went back earns nothing");
    }

    #[test]
    fn payload_is_what_the_frames_leave() {
        assert_eq!(payload_bps(1_518_000, 1_448, false), 1_448_000);
        assert_eq!(payload_bps(1_518_000, 1_428, true), 1_428_000);
        assert!(payload_bps(u64::MAX, 0, true) < u64::MAX);
    }

    proptest! {
        #[test]
        fn no_course_of_takes_exceeds_the_rate(
            rate_bps in 1_u64..10_000_000_000,
            takes in prop::collection::vec((0_u64..20_000, 0_u64..16_384), 1..300),
        ) {
            let mut bucket = TokenBucket::new(Micros(0), rate_bps);
            let (mut now, mut taken) = (Micros(0), 0);
            for (later, bytes) in takes {
                now = now.plus(Micros(later));
                match bucket.take(now, bytes) {
                    Ok(()) => taken += bytes,
                    Err(wait) => prop_assert!(wait > Micros(0)),
                }
            }
            let most = now.plus(BURST).0 as u128 * rate_bps as u128 / 8_000_000;
            prop_assert!(u128::from(taken) <= most.max(now.0 as u128 * rate_bps as u128 / 8_000_000 + 16_384) + 1);
        }

        #[test]
        fn absurd_numbers_do_no_harm(rate_bps: u64, now: u64, later: u64, bytes: u64) {
            let mut bucket = TokenBucket::new(Micros(now), rate_bps);
            let _ = bucket.take(Micros(later), bytes);
            bucket.give_back(bytes);
            let _ = bucket.take(Micros(u64::MAX), bytes);
        }
    }
}
