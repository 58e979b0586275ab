use downburst_model::{Micros, Now};

/// Bounds the rate of a session to a site with known access: products above the rate wait here, in order of
/// urgency, and not in a router before the site.
///
/// A token bucket of bytes that fills at the rate. Urgent bytes overdraw it, and the rest waits longer.
#[derive(Debug, Default)]
pub(super) struct Pacer {
    rate: Option<Rate>,
}

#[derive(Debug)]
struct Rate {
    bytes_per_second: i64,
    /// In millionths of a byte; negative after bytes were sent ahead of their time.
    credit: i64,
    at: Micros,
}

impl Pacer {
    /// Sets the rate, in bits per second of the wire; `None`: as fast as the path takes it.
    pub(super) fn set(&mut self, now: Now, bits_per_second: Option<u64>) {
        self.refill(now);
        let credit = self.rate.as_ref().map_or(0, |rate| rate.credit);
        self.rate = bits_per_second.map(|bits| {
            let bytes_per_second = i64::try_from(bits / 8).unwrap_or(i64::MAX).clamp(1, FASTEST);
            Rate { bytes_per_second, credit, at: now.monotonic }
        });
    }

    /// Adds the credit of the elapsed time.
    pub(super) fn refill(&mut self, now: Now) {
        if let Some(rate) = &mut self.rate {
            let elapsed = i64::try_from(now.monotonic.since(rate.at).0).unwrap_or(i64::MAX);
            let most = rate.bytes_per_second.saturating_mul(BURST_MICROS);
            let gained = rate.bytes_per_second.saturating_mul(elapsed);
            rate.credit = rate.credit.saturating_add(gained).min(most);
            rate.at = now.monotonic;
        }
    }

    /// True if bytes that can wait may be sent.
    pub(super) fn is_open(&self) -> bool {
        self.rate.as_ref().is_none_or(|rate| rate.credit >= 0)
    }

    /// Counts bytes of a stream that were written.
    pub(super) fn charge(&mut self, bytes: usize) {
        if let Some(rate) = &mut self.rate {
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            let on_the_wire = bytes.saturating_add(bytes / OVERHEAD_PART).saturating_mul(1_000_000);
            rate.credit = rate.credit.saturating_sub(on_the_wire);
        }
    }

    /// The time at which it opens, if it is not open.
    pub(super) fn opens_at(&self) -> Option<Micros> {
        let rate = self.rate.as_ref().filter(|rate| rate.credit < 0)?;
        let wait = rate.credit.unsigned_abs().div_ceil(rate.bytes_per_second.unsigned_abs());
        Some(rate.at.plus(Micros(wait)))
    }
}

/// The maximum burst after a rest: small enough as a delay for a warning on the same path.
const BURST_MICROS: i64 = 20_000;

/// TLS, TCP, IP and Ethernet add about a sixteenth to full segments.
const OVERHEAD_PART: i64 = 16;

/// 8 Tb/s: no counter overflows.
const FASTEST: i64 = 1_000_000_000_000;

#[cfg(test)]
mod tests {
    use downburst_model::WallMicros;
    use proptest::prelude::*;

    use super::*;

    fn at(micros: u64) -> Now {
        Now { monotonic: Micros(micros), wall: WallMicros(0) }
    }

    /// Sends slices whenever the pacer is open, for some time; returns the bytes on the wire.
    fn send_for(pacer: &mut Pacer, from: u64, micros: u64, slice: usize) -> u64 {
        let (mut now, mut sent) = (from, 0);
        while now < from + micros {
            pacer.refill(at(now));
            if pacer.is_open() {
                pacer.charge(slice);
                sent += slice as u64 * 17 / 16;
            }
            now = pacer.opens_at().map_or(now + 1, |due| due.0.max(now + 1));
        }
        sent
    }

    #[test]
    fn without_a_rate_nothing_waits() {
        let mut pacer = Pacer::default();
        pacer.charge(1 << 40);
        assert!(pacer.is_open() && pacer.opens_at().is_none());
    }

    #[test]
    fn what_may_not_wait_is_paid_by_what_can() {
        let mut pacer = Pacer::default();
        pacer.set(at(0), Some(8_000_000));
        pacer.charge(160_000);
        assert!(!pacer.is_open());
        assert_eq!(pacer.opens_at(), Some(Micros(170_000)), "170 kB on the wire at 1 MB/s");
        pacer.refill(at(169_999));
        assert!(!pacer.is_open());
        pacer.refill(at(170_000));
        assert!(pacer.is_open());
    }

    #[test]
    fn a_rate_that_changes_holds_from_then_on() {
        let mut pacer = Pacer::default();
        pacer.set(at(0), Some(8_000_000));
        let slow = send_for(&mut pacer, 0, 1_000_000, 10_000);
        pacer.set(at(1_000_000), Some(80_000_000));
        let fast = send_for(&mut pacer, 1_000_000, 1_000_000, 10_000);
        assert!((900_000..1_050_000).contains(&slow), "{slow}");
        assert!((9_000_000..10_500_000).contains(&fast), "{fast}");
        pacer.set(at(2_000_000), None);
        assert!(pacer.is_open());
    }

    proptest! {
        #[test]
        fn a_second_never_holds_more_than_the_rate_a_burst_and_a_slice(
            megabits in 1u64..2_000,
            // The loop above sends one slice a microsecond at most.
            slice in 1_000usize..70_000,
            rest in 0u64..5_000_000,
        ) {
            let mut pacer = Pacer::default();
            pacer.set(at(0), Some(megabits * 1_000_000));
            let bytes_per_second = megabits * 125_000;
            let sent = send_for(&mut pacer, rest, 1_000_000, slice);
            let most = bytes_per_second + bytes_per_second / 50 + 2 * slice as u64;
            prop_assert!(sent <= most, "{sent} of {most}");
            if slice as u64 * 20 < bytes_per_second {
                prop_assert!(sent >= bytes_per_second * 9 / 10, "{sent} of {bytes_per_second}");
            }
        }
    }
}
