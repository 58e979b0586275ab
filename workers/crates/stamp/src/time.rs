//! Stamps on the wire.
use downburst_model::WallMicros;

/// Nanoseconds since the Unix epoch, UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct WallNanos(pub i64);

/// The format of a stamp, which the Z bit of its error estimate names (RFC 8762, section 4.2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Seconds since 1900 and fractions of 2^-32 s (RFC 5905).
    #[default]
    Ntp,
    /// Seconds since 1970 and nanoseconds (IEEE 1588-2008, truncated as in RFC 8186).
    Ptp,
}

impl WallNanos {
    /// Nanoseconds from an earlier moment to this one; negative where it is later.
    pub fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl From<WallMicros> for WallNanos {
    fn from(micros: WallMicros) -> Self {
        Self(micros.0.saturating_mul(1_000))
    }
}

impl Format {
    /// The stamp of a moment. NTP counts again from zero in 2036, PTP in 2106.
    pub fn encode(self, moment: WallNanos) -> u64 {
        let seconds = moment.0.div_euclid(NANOS_PER_SECOND);
        let nanos = moment.0.rem_euclid(NANOS_PER_SECOND).cast_unsigned();
        let (shift, part) = match self {
            Self::Ntp => (NTP_EPOCH_SECONDS, (nanos << 32) / NANOS_PER_SECOND.cast_unsigned()),
            Self::Ptp => (0, nanos),
        };
        let seconds = seconds.wrapping_add(shift).rem_euclid(1 << 32).cast_unsigned();
        (seconds << 32) | part
    }

    /// The moment of a stamp, within 0.5 ns for NTP: from 1968 to 2104 for NTP, from 1970 to 2106 for PTP.
    pub fn decode(self, stamp: u64) -> WallNanos {
        let (seconds, part) = (i64::from((stamp >> 32) as u32), stamp & u64::from(u32::MAX));
        let (seconds, nanos) = match self {
            Self::Ntp => {
                let era = if seconds >= 1 << 31 { 0 } else { 1 << 32 };
                let nanos = (part * NANOS_PER_SECOND.cast_unsigned() + (1 << 31)) >> 32;
                (seconds + era - NTP_EPOCH_SECONDS, nanos)
            }
            Self::Ptp => (seconds, part.min(NANOS_PER_SECOND.cast_unsigned() - 1)),
        };
        WallNanos(seconds.saturating_mul(NANOS_PER_SECOND).saturating_add(nanos.cast_signed()))
    }
}

pub(crate) const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Seconds from 1900 to 1970 (RFC 5905, section 6).
const NTP_EPOCH_SECONDS: i64 = 2_208_988_800;
