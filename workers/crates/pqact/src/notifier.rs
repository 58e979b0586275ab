use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Wakes threads that wait for a change. A thread that reads the count before it checks its condition misses no
/// change.
#[derive(Default)]
pub struct Notifier {
    count: Mutex<u64>,
    changed: Condvar,
}

impl Notifier {
    /// Counts a change and wakes all waiting threads.
    pub fn notify(&self) {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        *count = count.wrapping_add(1);
        self.changed.notify_all();
    }

    /// The number of changes so far.
    pub fn count(&self) -> u64 {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a change since `counted` was read, or for at most `longest`.
    pub fn wait(&self, counted: u64, longest: Duration) {
        let count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(count, longest, |count| *count == counted);
        drop(waited);
    }
}
