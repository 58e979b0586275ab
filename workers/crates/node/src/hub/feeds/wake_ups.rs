//! Wake-ups after an append, for the sessions and legs that read the feed only.
use std::sync::{Arc, Mutex};

use downburst_hub::feeds::{Waiter, Waiters};

use crate::hub::lock;

/// The readers of one feed's log.
#[derive(Default)]
pub(in crate::hub) struct WakeUps(Mutex<Waiters>);

/// The registration of a reader, until dropped.
pub(in crate::hub) struct LogListener {
    wake_ups: Arc<WakeUps>,
    number: u64,
    waiter: Arc<Waiter>,
}

impl WakeUps {
    /// Registers a reader. `wake` is called after an append, once until [`LogListener::take`]; the reader starts as
    /// if the log had just grown.
    pub(in crate::hub) fn register(self: &Arc<Self>, wake: impl Fn() + Send + Sync + 'static) -> LogListener {
        let (number, waiter) = lock(&self.0).add(wake);
        LogListener { wake_ups: Arc::clone(self), number, waiter }
    }

    /// Wakes the readers: the log has grown.
    pub(in crate::hub) fn notify(&self) {
        lock(&self.0).notify();
    }
}

impl LogListener {
    /// True if the log has grown since the last call. The log's head, read afterwards, covers every append so far.
    pub(in crate::hub) fn take(&self) -> bool {
        self.waiter.take()
    }

    /// Appends are noted without a wake-up while muted. The caller has to look after it unmutes.
    pub(in crate::hub) fn mute(&self, muted: bool) {
        self.waiter.mute(muted);
    }
}

impl Drop for LogListener {
    fn drop(&mut self) {
        lock(&self.wake_ups.0).remove(self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_listener_is_registered_until_it_is_dropped() {
        let wake_ups = Arc::new(WakeUps::default());
        let listener = wake_ups.register(|| {});
        assert!(listener.take() && !lock(&wake_ups.0).is_empty());
        drop(listener);
        assert!(lock(&wake_ups.0).is_empty());
    }

    /// One thread appends; another sleeps until it is woken, is muted and unmuted, and registers again as a listener.
    /// It must see every append in the end.
    #[test]
    fn no_ring_is_lost_to_one_who_sleeps_hushes_and_listens_anew() {
        for round in 0..20_u64 {
            let wake_ups = Arc::new(WakeUps::default());
            let head = Arc::new(AtomicU64::new(0));
            let appender = {
                let (wake_ups, head) = (Arc::clone(&wake_ups), Arc::clone(&head));
                std::thread::spawn(move || {
                    for number in 1..=APPENDS {
                        head.store(number, Ordering::Release);
                        wake_ups.notify();
                        if (number * 31 + round).is_multiple_of(17) {
                            std::thread::yield_now();
                        }
                    }
                })
            };
            let (wake, woken) = mpsc::channel();
            let listen = || {
                let wake = wake.clone();
                wake_ups.register(move || {
                    let _ = wake.send(());
                })
            };
            let (mut listener, mut seen, mut looks) = (listen(), 0, 0_u64);
            while seen < APPENDS {
                looks += 1;
                if (looks + round).is_multiple_of(5) {
                    listener = listen();
                }
                if (looks + round).is_multiple_of(3) {
                    listener.mute(true);
                    std::thread::yield_now();
                    listener.mute(false);
                }
                if listener.take() {
                    seen = head.load(Ordering::Acquire);
                } else {
                    let woken = woken.recv_timeout(Duration::from_secs(20));
                    assert!(woken.is_ok(), "round {round}: asleep at {seen} with the head at {head:?}");
                }
            }
            appender.join().unwrap();
        }
    }

    const APPENDS: u64 = 2_000;
}
