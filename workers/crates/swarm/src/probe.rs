//! Wake-up delay of this host: the share of the machine in latencies measured here.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A thread that repeatedly sleeps 1 ms and records its oversleep.
#[derive(Clone, Debug, Default)]
pub(crate) struct Probe(Arc<Worst>);

#[derive(Debug, Default)]
struct Worst {
    lately_us: AtomicU64,
    ever_us: AtomicU64,
}

impl Probe {
    /// Starts the thread, which runs until the process ends.
    pub(crate) fn start() -> Self {
        let probe = Self::default();
        let noted = probe.clone();
        std::thread::spawn(move || {
            loop {
                let began = Instant::now();
                std::thread::sleep(NAP);
                noted.note(began.elapsed().saturating_sub(NAP));
            }
        });
        probe
    }

    /// The worst oversleep since the last call, in milliseconds.
    pub(crate) fn take_worst(&self) -> f64 {
        self.0.lately_us.swap(0, Ordering::Relaxed) as f64 / 1_000.0
    }

    /// The worst oversleep since the start, in milliseconds.
    pub(crate) fn worst(&self) -> f64 {
        self.0.ever_us.load(Ordering::Relaxed) as f64 / 1_000.0
    }

    fn note(&self, late: Duration) {
        let late_us = u64::try_from(late.as_micros()).unwrap_or(u64::MAX);
        self.0.lately_us.fetch_max(late_us, Ordering::Relaxed);
        self.0.ever_us.fetch_max(late_us, Ordering::Relaxed);
    }
}

const NAP: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_is_kept_and_the_latest_is_taken() {
        let probe = Probe::default();
        for millis in [2, 7, 3] {
            probe.note(Duration::from_millis(millis));
        }
        assert_eq!(probe.take_worst(), 7.0);
        probe.note(Duration::from_millis(1));
        assert_eq!((probe.take_worst(), probe.take_worst(), probe.worst()), (1.0, 0.0, 7.0));
    }
}
