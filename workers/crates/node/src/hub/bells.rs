//! Who is woken by an append: the sessions and legs that look at the feed, and no others.
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use downburst_model::Micros;

use super::lock;

/// Everybody who looks at one feed's log.
#[derive(Default)]
pub(super) struct Bells {
    ears: Mutex<BTreeMap<u64, Arc<Ear>>>,
    next_number: AtomicU64,
}

/// One who looks at a log, until dropped.
pub(super) struct Listening {
    bells: Arc<Bells>,
    number: u64,
    ear: Arc<Ear>,
}

struct Ear {
    moved: AtomicBool,
    hushed: AtomicBool,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl Bells {
    /// `wake` is called after an append, once until [`Listening::take`]. What was appended before counts as news.
    pub(super) fn listen(self: &Arc<Self>, wake: impl Fn() + Send + Sync + 'static) -> Listening {
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let ear = Ear { moved: AtomicBool::new(true), hushed: AtomicBool::new(false), wake: Box::new(wake) };
        let ear = Arc::new(ear);
        lock(&self.ears).insert(number, Arc::clone(&ear));
        Listening { bells: Arc::clone(self), number, ear }
    }

    /// The log has grown.
    pub(super) fn ring(&self) {
        for ear in lock(&self.ears).values() {
            // A listener that has not looked since the last ring is awake already, or hushed and looks before
            // it sleeps unhushed. The order of these two, and of the two in `unhush`, must be the same for
            // both threads.
            if !ear.moved.swap(true, Ordering::SeqCst) && !ear.hushed.load(Ordering::SeqCst) {
                (ear.wake)();
            }
        }
    }
}

impl Listening {
    /// True if the log has grown since the last call: the head read after it covers every ring before.
    pub(super) fn take(&self) -> bool {
        self.ear.moved.load(Ordering::SeqCst) && self.ear.moved.swap(false, Ordering::SeqCst)
    }

    /// Appends are noted and wake nobody, or again wake; after the latter one has to look.
    pub(super) fn hush(&self, hushed: bool) {
        self.ear.hushed.store(hushed, Ordering::SeqCst);
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        lock(&self.bells.ears).remove(&self.number);
    }
}

/// The interval at which a session looks at the logs: after each append where appends are few, and once for
/// many of them where they are many. A look costs the same for one product as for twenty.
#[derive(Default)]
pub(super) struct Pace {
    /// When the allowance is full again.
    full_at: Micros,
}

impl Pace {
    /// Takes a look if one is allowed now; otherwise says when the next one is.
    pub(super) fn look(&mut self, now: Micros) -> Result<(), Micros> {
        let full_at = self.full_at.max(now).plus(LOOK_INTERVAL);
        let allowed_at = Micros(full_at.0.saturating_sub(LOOKS_AT_ONCE * LOOK_INTERVAL.0));
        if allowed_at > now {
            return Err(allowed_at);
        }
        self.full_at = full_at;
        Ok(())
    }
}

/// The shortest time between looks that go on and on: what a timer can keep, and small against any path.
const LOOK_INTERVAL: Micros = Micros::from_millis(1);

/// So many looks are free after a silence: products that come in pairs or threes are not held back.
const LOOKS_AT_ONCE: u64 = 8;

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_ring_wakes_those_who_listen_to_the_feed_once_until_they_look() {
        let (bells, other) = (Arc::new(Bells::default()), Arc::new(Bells::default()));
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let listening = bells.listen(move || {
            counted.fetch_add(1, Ordering::SeqCst);
        });
        assert!(listening.take() && !listening.take(), "what was there before is news");
        other.ring();
        assert!(!listening.take());
        (0..5).for_each(|_| bells.ring());
        assert_eq!(count.load(Ordering::SeqCst), 1);
        assert!(listening.take());
        listening.hush(true);
        (0..5).for_each(|_| bells.ring());
        assert_eq!(count.load(Ordering::SeqCst), 1, "hushed");
        listening.hush(false);
        assert!(listening.take(), "what came meanwhile was noted");
        drop(listening);
        assert!(lock(&bells.ears).is_empty());
    }

    /// One thread appends; another sleeps until it is woken and must see everything in the end, while it goes
    /// in and out of hush and comes and goes as a listener.
    #[test]
    fn no_ring_is_lost_to_one_who_sleeps_hushes_and_listens_anew() {
        for round in 0..20_u64 {
            let bells = Arc::new(Bells::default());
            let head = Arc::new(AtomicU64::new(0));
            let appender = {
                let (bells, head) = (Arc::clone(&bells), Arc::clone(&head));
                std::thread::spawn(move || {
                    for number in 1..=APPENDS {
                        head.store(number, Ordering::Release);
                        bells.ring();
                        if (number * 31 + round).is_multiple_of(17) {
                            std::thread::yield_now();
                        }
                    }
                })
            };
            let (wake, woken) = mpsc::channel();
            let listen = || {
                let wake = wake.clone();
                bells.listen(move || {
                    let _ = wake.send(());
                })
            };
            let (mut listening, mut seen, mut looks) = (listen(), 0, 0_u64);
            while seen < APPENDS {
                looks += 1;
                if (looks + round).is_multiple_of(5) {
                    listening = listen();
                }
                if (looks + round).is_multiple_of(3) {
                    listening.hush(true);
                    std::thread::yield_now();
                    listening.hush(false);
                }
                if listening.take() {
                    seen = head.load(Ordering::Acquire);
                } else {
                    let woken = woken.recv_timeout(Duration::from_secs(20));
                    assert!(woken.is_ok(), "round {round}: asleep at {seen} with the head at {head:?}");
                }
            }
            appender.join().unwrap();
        }
    }

    #[test]
    fn looks_are_free_at_a_low_rate_and_one_a_millisecond_at_a_high_one() {
        let mut pace = Pace::default();
        assert!((0..100).all(|tick| pace.look(Micros::from_millis(10 * tick)).is_ok()));
        let (mut now, mut looks) = (Micros::from_secs(10), 0);
        while now < Micros::from_secs(11) {
            now = match pace.look(now) {
                Ok(()) => {
                    looks += 1;
                    now.plus(Micros(20))
                }
                Err(at) => at,
            };
        }
        assert!((1_000..=1_000 + LOOKS_AT_ONCE).contains(&looks), "{looks}");
        assert!(pace.look(Micros::from_secs(20)).is_ok());
    }

    const APPENDS: u64 = 2_000;
}
