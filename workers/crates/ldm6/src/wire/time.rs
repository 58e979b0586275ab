use downburst_model::{Micros, WallMicros};

/// A time as LDM encodes it: signed 32-bit seconds since 1970, and microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Seconds since 1970-01-01 00:00 UTC.
    pub seconds: i32,
    /// Microseconds within the second; 0 to 999,999 in a sound stamp.
    pub micros: i32,
}

impl Timestamp {
    /// All zero, as in a nil product.
    pub const ZERO: Self = Self { seconds: 0, micros: 0 };

    /// The end of an open-ended class: LDM's time runs out in January 2038.
    pub const END_OF_TIME: Self = Self { seconds: i32::MAX, micros: 999_999 };

    /// True for a time that a host's clock may show: from 1970 on, with 0 to 999,999 microseconds.
    pub fn is_sound(self) -> bool {
        self.seconds >= 0 && (0..MICROS_PER_SECOND).contains(&i64::from(self.micros))
    }

    /// The time `length` before this wall clock time, limited to the range of 32 bits.
    pub fn before(wall: WallMicros, length: Micros) -> Self {
        let length = i64::try_from(length.0).unwrap_or(i64::MAX);
        Self::from(WallMicros(wall.0.saturating_sub(length)))
    }
}

impl From<WallMicros> for Timestamp {
    fn from(wall: WallMicros) -> Self {
        let micros = i32::try_from(wall.0.rem_euclid(MICROS_PER_SECOND)).unwrap_or_default();
        match i32::try_from(wall.0.div_euclid(MICROS_PER_SECOND)) {
            Ok(seconds) => Self { seconds, micros },
            Err(_) if wall.0 > 0 => Self::END_OF_TIME,
            Err(_) => Self { seconds: i32::MIN, micros: 0 },
        }
    }
}

impl From<Timestamp> for WallMicros {
    fn from(stamp: Timestamp) -> Self {
        Self(
            i64::from(stamp.seconds)
                .saturating_mul(MICROS_PER_SECOND)
                .saturating_add(i64::from(stamp.micros)),
        )
    }
}

const MICROS_PER_SECOND: i64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_wall_clocks_until_2038() {
        for micros in [0, 1, -1, 1_795_234_061_978_084, -2_000_000] {
            assert_eq!(WallMicros::from(Timestamp::from(WallMicros(micros))), WallMicros(micros));
        }
        assert_eq!(Timestamp::from(WallMicros(i64::MAX)), Timestamp::END_OF_TIME);
        assert_eq!(Timestamp::from(WallMicros(i64::MIN)).seconds, i32::MIN);
        assert!(Timestamp::ZERO.is_sound() && Timestamp::END_OF_TIME.is_sound());
        for (seconds, micros) in [(-1, 0), (0, -1), (0, 1_000_000), (i32::MIN, i32::MIN), (5, i32::MAX)] {
            assert!(!Timestamp { seconds, micros }.is_sound(), "{seconds} s {micros} µs");
        }
        assert_eq!(Timestamp::before(WallMicros(5_000_001), Micros::from_secs(3)).seconds, 2);
    }
}
