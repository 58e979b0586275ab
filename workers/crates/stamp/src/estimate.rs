//! The error that a clock claims for itself.
use crate::time::{Format, NANOS_PER_SECOND};

/// The error estimate beside each stamp (RFC 4656, section 4.1.2): S, Z, six bits of scale, eight of multiplier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorEstimate {
    /// S: the clock is in step with UTC by an outside source.
    pub synchronized: bool,
    /// Z: the format of the stamp.
    pub format: Format,
    /// The power of two; at most 63.
    pub scale: u8,
    /// 0 is not allowed by the RFC; [`Self::nanos`] is then not known.
    pub multiplier: u8,
}

impl ErrorEstimate {
    /// The smallest estimate that is not below this error.
    pub fn of(error_nanos: u64, synchronized: bool, format: Format) -> Self {
        let mut units = ((u128::from(error_nanos) << 32).div_ceil(SECOND)).max(1);
        let mut scale = 0;
        while units > u128::from(u8::MAX) {
            units = units.div_ceil(2);
            scale += 1;
        }
        Self { synchronized, format, scale, multiplier: u8::try_from(units).unwrap_or(u8::MAX) }
    }

    /// A clock whose error is not known: not in step, and the largest error that can be written.
    pub fn unknown(format: Format) -> Self {
        Self { synchronized: false, format, scale: MOST_SCALE, multiplier: u8::MAX }
    }

    /// Reads the field.
    pub fn from_bits(bits: u16) -> Self {
        let [high, multiplier] = bits.to_be_bytes();
        let format = if high & Z == 0 { Format::Ntp } else { Format::Ptp };
        Self { synchronized: high & S != 0, format, scale: high & MOST_SCALE, multiplier }
    }

    /// The field.
    pub fn bits(self) -> u16 {
        let s = if self.synchronized { S } else { 0 };
        let z = if self.format == Format::Ptp { Z } else { 0 };
        u16::from_be_bytes([s | z | (self.scale & MOST_SCALE), self.multiplier])
    }

    /// The error in nanoseconds, rounded up: multiplier * 2^(scale - 32) s. `None`: the multiplier is 0.
    pub fn nanos(self) -> Option<u64> {
        let units = u128::from(self.multiplier) << self.scale.min(MOST_SCALE);
        let nanos = (units * SECOND).div_ceil(1 << 32);
        (self.multiplier != 0).then(|| u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

const S: u8 = 0x80;
const Z: u8 = 0x40;
const MOST_SCALE: u8 = 0x3f;
const SECOND: u128 = NANOS_PER_SECOND.cast_unsigned() as u128;
