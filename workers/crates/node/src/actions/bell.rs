use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Wakes threads that look again at what may have changed. Who counts before looking misses nothing.
#[derive(Default)]
pub(crate) struct Bell {
    rung: Mutex<u64>,
    changed: Condvar,
}

impl Bell {
    pub(crate) fn ring(&self) {
        let mut rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        *rung = rung.wrapping_add(1);
        self.changed.notify_all();
    }

    /// How often it has rung.
    pub(crate) fn count(&self) -> u64 {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it has rung since it was counted, or for so long.
    pub(crate) fn wait(&self, counted: u64, longest: Duration) {
        let rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(rung, longest, |rung| *rung == counted);
        drop(waited);
    }
}
