use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::notifier::Notifier;

/// Notifies all threads of the actions that the site stops.
#[derive(Clone, Default)]
pub(super) struct Stop {
    asked: Arc<AtomicBool>,
    since: Arc<Mutex<Option<Instant>>>,
}

impl Stop {
    pub(super) fn ask(&self, notifier: &Notifier) {
        *self.since.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        self.asked.store(true, Ordering::Release);
        notifier.notify();
    }

    pub(super) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }

    /// The deadline, shortened to a grace period for programs that run when the site stops.
    pub(super) fn bound(&self, deadline: Instant) -> Instant {
        let since = *self.since.lock().unwrap_or_else(PoisonError::into_inner);
        since.map_or(deadline, |since| deadline.min(since + GRACE))
    }
}

/// Shorter than the wait of service managers before they kill.
const GRACE: Duration = Duration::from_secs(5);
