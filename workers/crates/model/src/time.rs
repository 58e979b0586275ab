use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

/// A time or a duration on a monotonic clock, in microseconds. Only differences have a meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Micros(pub u64);

impl Micros {
    /// A duration in milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000))
    }

    /// A duration in seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000))
    }

    /// The time since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }

    /// The time `length` after this one.
    pub const fn plus(self, length: Self) -> Self {
        Self(self.0.saturating_add(length.0))
    }
}

/// Microseconds since 1970-01-01 00:00 UTC on some host's wall clock.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, Serialize, Deserialize,
)]
#[cbor(transparent)]
#[serde(transparent)]
pub struct WallMicros(#[n(0)] pub i64);

/// The two clocks of a host, read together: timers use the monotonic clock, stamps the wall clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// For timers.
    pub monotonic: Micros,
    /// For product stamps and the clock exchange.
    pub wall: WallMicros,
}
