//! Wake-ups after an append, for the sessions and legs that read the feed only.
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The readers of one feed's log.
#[derive(Default)]
pub struct Waiters {
    waiters: BTreeMap<u64, Arc<Waiter>>,
    next_number: u64,
}

/// A reader. The appending thread and that of the reader share it.
pub struct Waiter {
    moved: AtomicBool,
    muted: AtomicBool,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl Waiters {
    /// Adds a reader under a number. `wake` is called after an append, once until [`Waiter::take`]; the reader starts
    /// as if the log had just grown.
    pub fn add(&mut self, wake: impl Fn() + Send + Sync + 'static) -> (u64, Arc<Waiter>) {
        let number = self.next_number;
        self.next_number += 1;
        let waiter =
            Waiter { moved: AtomicBool::new(true), muted: AtomicBool::new(false), wake: Box::new(wake) };
        let waiter = Arc::new(waiter);
        self.waiters.insert(number, Arc::clone(&waiter));
        (number, waiter)
    }

    /// Removes a reader.
    pub fn remove(&mut self, number: u64) {
        self.waiters.remove(&number);
    }

    /// True without readers.
    pub fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    /// Wakes the readers: the log has grown.
    pub fn notify(&self) {
        for waiter in self.waiters.values() {
            waiter.notify();
        }
    }
}

impl Waiter {
    /// True if the log has grown since the last call. The log's head, read afterwards, covers every append so far.
    pub fn take(&self) -> bool {
        self.moved.load(Ordering::SeqCst) && self.moved.swap(false, Ordering::SeqCst)
    }

    /// Appends are noted without a wake-up while muted. The caller has to look after it unmutes.
    pub fn mute(&self, muted: bool) {
        self.muted.store(muted, Ordering::SeqCst);
    }

    fn notify(&self) {
        // A reader that has not looked since the last wake-up is awake already, or muted and looks before it sleeps
        // unmuted. The order of these two, and of the reader's `mute` and `take`, must be the same for both threads.
        if !self.moved.swap(true, Ordering::SeqCst) && !self.muted.load(Ordering::SeqCst) {
            (self.wake)();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    fn counted(waiters: &mut Waiters) -> (u64, Arc<Waiter>, Arc<AtomicUsize>) {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let (number, waiter) = waiters.add(move || {
            counted.fetch_add(1, Ordering::SeqCst);
        });
        (number, waiter, count)
    }

    #[test]
    fn an_append_wakes_the_readers_of_the_feed_once_until_they_look() {
        let (mut waiters, other) = (Waiters::default(), Waiters::default());
        let (number, waiter, count) = counted(&mut waiters);
        assert!(waiter.take() && !waiter.take(), "what was there before is news");
        other.notify();
        assert!(!waiter.take());
        (0..5).for_each(|_| waiters.notify());
        assert_eq!(count.load(Ordering::SeqCst), 1);
        assert!(waiter.take());
        waiter.mute(true);
        (0..5).for_each(|_| waiters.notify());
        assert_eq!(count.load(Ordering::SeqCst), 1, "muted");
        waiter.mute(false);
        assert!(waiter.take(), "what came meanwhile was noted");
        waiters.remove(number);
        assert!(waiters.is_empty());
    }

    #[test]
    fn readers_do_not_share_their_news_and_one_who_left_is_not_woken() {
        let mut waiters = Waiters::default();
        let (gone, _, woken_gone) = counted(&mut waiters);
        let (_, first, woken_first) = counted(&mut waiters);
        let (_, second, woken_second) = counted(&mut waiters);
        assert!(first.take() && second.take());
        waiters.remove(gone);
        waiters.notify();
        assert!(first.take(), "the second has not looked");
        waiters.notify();
        let woken = [woken_gone, woken_first, woken_second].map(|count| count.load(Ordering::SeqCst));
        assert_eq!(woken, [0, 2, 1]);
    }
}
