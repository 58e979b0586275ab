//! Telling the connections to the hub what local software has.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use downburst_model::FeedName;
use downburst_session::ActionFailed;
use downburst_site::{LocalListeners, LocalNews, Shown};
use tokio::sync::mpsc;

type Listener = mpsc::UnboundedSender<LocalNews>;

/// Whoever wants to know of local software, shared by all who have news of it.
#[derive(Clone, Default)]
pub(crate) struct DoneTo(Arc<Mutex<LocalListeners<Listener>>>);

impl DoneTo {
    /// Tells of these feeds there, and of others to `all`.
    pub(crate) fn set(&self, all: Option<Listener>, by_feed: BTreeMap<FeedName, Listener>) {
        self.listeners().set(all, by_feed, send);
    }

    pub(super) fn tell(&self, shown: Shown) {
        self.listeners().shown(shown, send);
    }

    /// What local software can't do with a feed, or that it can again.
    pub(crate) fn acts(&self, feed: &FeedName, failed: Option<ActionFailed>) {
        self.listeners().acts(feed, failed, send);
    }

    fn listeners(&self) -> MutexGuard<'_, LocalListeners<Listener>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn send(listener: &Listener, news: LocalNews) {
    // Nobody misses a word after the end of the connection's task.
    let _ = listener.send(news);
}

#[cfg(test)]
mod tests {
    use downburst_model::{Epoch, ProductKey, Sequence, WallMicros};

    use super::*;

    #[test]
    fn files_that_stood_before_there_was_a_connection_are_told_to_the_first() {
        let done_to = DoneTo::default();
        for sequence in 1..=2 {
            done_to.tell(done(sequence));
        }
        let (sender, mut told) = mpsc::unbounded_channel();
        done_to.set(Some(sender.clone()), BTreeMap::new());
        done_to.tell(done(3));
        done_to.set(Some(sender), BTreeMap::new());
        let numbers = std::iter::from_fn(|| match told.try_recv() {
            Ok(LocalNews::Shown(done)) => Some(done.key.sequence.0),
            _ => None,
        });
        assert_eq!(numbers.collect::<Vec<_>>(), [1, 2, 3]);
    }

    fn done(sequence: u64) -> Shown {
        let feed = FeedName::parse("NGRID").unwrap();
        let key = ProductKey { feed, epoch: Epoch(1), sequence: Sequence(sequence) };
        Shown { key, at: WallMicros(1), late: false, heartbeat: false }
    }
}
