use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::notifier::Notifier;

/// Tells all threads of the actions that the site stops.
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

    /// A program that is at work when the site stops has this moment left at most.
    pub(super) fn bound(&self, deadline: Instant) -> Instant {
        let since = *self.since.lock().unwrap_or_else(PoisonError::into_inner);
        since.map_or(deadline, |since| deadline.min(since + GRACE))
    }
}

/// Service managers wait longer before they kill.
const GRACE: Duration = Duration::from_secs(5);
