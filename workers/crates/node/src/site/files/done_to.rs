//! Reports on local software for the connections to the hub.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use downburst_model::{FeedName, ProductKey};
use downburst_session::{ActionFailed, LinkedSpace};
use downburst_site::{LocalListeners, LocalNews, Shown};
use tokio::sync::mpsc;

type Listener = mpsc::UnboundedSender<LocalNews>;

/// The listeners for reports on local software, shared by all parts that report.
#[derive(Clone, Default)]
pub(crate) struct DoneTo(Arc<Mutex<LocalListeners<Listener>>>);

impl DoneTo {
    /// Sets the listeners: those in `by_feed` for their feeds, and `all` for the other feeds.
    pub(crate) fn set(&self, all: Option<Listener>, by_feed: BTreeMap<FeedName, Listener>) {
        self.listeners().set(all, by_feed, send);
    }

    pub(super) fn tell(&self, shown: Shown) {
        self.listeners().shown(shown, send);
    }

    /// Reports a failure of local software with a feed; `None`: it works again.
    pub(crate) fn acts(&self, feed: &FeedName, failed: Option<ActionFailed>) {
        self.listeners().acts(feed, failed, send);
    }

    /// Reports the space that products of a feed take after they left the log; `None`: none.
    pub(crate) fn linked_files(&self, feed: &FeedName, space: Option<LinkedSpace>) {
        self.listeners().linked_files(feed, space, send);
    }

    /// Has a product requested again: the site's log no longer serves it.
    pub(crate) fn damaged(&self, key: ProductKey) {
        self.listeners().damaged(key, send);
    }

    fn listeners(&self) -> MutexGuard<'_, LocalListeners<Listener>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn send(listener: &Listener, news: LocalNews) {
    // Reports after the end of the connection's task are not needed.
    let _ = listener.send(news);
}

#[cfg(test)]
mod tests {
    use downburst_model::{Epoch, Sequence, WallMicros};

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
