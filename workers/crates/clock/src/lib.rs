//! The host's clocks. All other code takes the time, or a [`Clock`], as an argument.
#![deny(unsafe_code)]
// Reading clocks is the purpose of this crate; for tests, a thread steps one.
#![allow(clippy::disallowed_methods)]

mod kernel;

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use downburst_model::{Micros, Now, WallMicros};

pub use kernel::KernelStanding;

/// Reads the host's two clocks together.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    started: Instant,
    /// Offset of the wall clock: lets a test give a site a wrong clock, which namespaces can't.
    wall_shift_us: i64,
}

impl Clock {
    /// A clock of this host, with its wall clock shifted by `wall_shift_us` microseconds (0 outside tests).
    pub fn start(wall_shift_us: i64) -> Self {
        follow_steps();
        Self { started: Instant::now(), wall_shift_us }
    }

    /// The current time of both clocks.
    pub fn now(&self) -> Now {
        Now { monotonic: self.monotonic(), wall: self.wall() }
    }

    /// Microseconds since the clock was started.
    pub fn monotonic(&self) -> Micros {
        Micros(u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    /// The wall clock.
    pub fn wall(&self) -> WallMicros {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        WallMicros(i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX).saturating_add(self.shift_us()))
    }

    /// The wall clock in nanoseconds since the Unix epoch.
    pub fn wall_nanos(&self) -> i64 {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.kernel_nanos(i64::try_from(since_epoch.as_nanos()).unwrap_or(i64::MAX))
    }

    /// This clock at a moment that the kernel stamped with the host's, in nanoseconds since the Unix epoch.
    pub fn kernel_nanos(&self, stamped: i64) -> i64 {
        stamped.saturating_add(self.shift_us().saturating_mul(1_000))
    }

    /// 0 outside tests.
    fn shift_us(&self) -> i64 {
        self.wall_shift_us.saturating_add(STEP_US.load(Ordering::Relaxed))
    }
}

/// Lets a test step the wall clock of a running process: the file named in the environment holds the step in
/// microseconds.
fn follow_steps() {
    let Some(file) = std::env::var_os(STEP_FILE_VARIABLE) else { return };
    std::thread::spawn(move || {
        loop {
            let step = std::fs::read_to_string(&file).ok().and_then(|text| text.trim().parse().ok());
            STEP_US.store(step.unwrap_or(0), Ordering::Relaxed);
            std::thread::sleep(STEP_INTERVAL);
        }
    });
}

/// Step of the wall clock in microseconds; 0 outside tests.
static STEP_US: AtomicI64 = AtomicI64::new(0);

const STEP_FILE_VARIABLE: &str = "DOWNBURST_TEST_CLOCK_STEP_FILE";
const STEP_INTERVAL: Duration = Duration::from_millis(20);
