//! The one place that reads clocks.
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use downburst_model::{Micros, Now, WallMicros};

/// Reads the host's two clocks together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    started: Instant,
    /// Added to the wall clock: lets a test give a site a wrong clock, which namespaces can't.
    wall_shift_us: i64,
}

impl Clock {
    /// A clock of this host, with its wall clock shifted by `wall_shift_us` microseconds (0 outside tests).
    pub(crate) fn start(wall_shift_us: i64) -> Self {
        Self { started: Instant::now(), wall_shift_us }
    }

    /// Both clocks as they are.
    pub(crate) fn now(&self) -> Now {
        Now { monotonic: self.monotonic(), wall: self.wall() }
    }

    /// Microseconds since the clock was started.
    pub(crate) fn monotonic(&self) -> Micros {
        Micros(u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    /// The wall clock.
    pub(crate) fn wall(&self) -> WallMicros {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        WallMicros(
            i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX).saturating_add(self.wall_shift_us),
        )
    }
}
