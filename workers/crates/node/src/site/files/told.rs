//! Telling the connections to the hub what local software has.
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use downburst_model::FeedName;
use downburst_session::ActionFailed;
use downburst_site::{LocalNews, Shown};
use tokio::sync::mpsc;

/// Whoever wants to know of local software: the connections to the hub that serves the site.
#[derive(Clone, Default)]
pub(crate) struct DoneTo(Arc<Mutex<Listener>>);

#[derive(Default)]
struct Listener {
    sender: Option<mpsc::UnboundedSender<LocalNews>>,
    /// Where feeds have a connection of their own.
    by_feed: BTreeMap<FeedName, mpsc::UnboundedSender<LocalNews>>,
    /// Files that stood before there was anybody to tell: those that the last run of the site left to write, for one.
    early: VecDeque<Shown>,
    /// What the next one has to know as well.
    failed: BTreeMap<FeedName, ActionFailed>,
}

impl Listener {
    fn done(&mut self, done: Shown) {
        let feed = done.key.feed.clone();
        if self.listens(&feed).is_some() {
            self.tell(&feed, LocalNews::Shown(done));
        } else if !done.heartbeat {
            self.early.push_back(done);
            if self.early.len() > EARLY_FILES {
                self.early.pop_front();
            }
        }
    }

    fn listens(&self, feed: &FeedName) -> Option<&mpsc::UnboundedSender<LocalNews>> {
        self.by_feed.get(feed).or(self.sender.as_ref())
    }

    fn tell(&self, feed: &FeedName, told: LocalNews) {
        if let Some(sender) = self.listens(feed) {
            // Nobody misses a word after the end of the connection's task.
            let _ = sender.send(told);
        }
    }
}

impl DoneTo {
    /// Tells of these feeds there, and of others to `sender`.
    pub(crate) fn set(
        &self,
        sender: Option<mpsc::UnboundedSender<LocalNews>>,
        by_feed: BTreeMap<FeedName, mpsc::UnboundedSender<LocalNews>>,
    ) {
        let mut listener = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (listener.sender, listener.by_feed) = (sender, by_feed);
        for (feed, failed) in &listener.failed {
            listener.tell(feed, LocalNews::Acts { feed: feed.clone(), failed: Some(failed.clone()) });
        }
        for done in std::mem::take(&mut listener.early) {
            listener.done(done);
        }
    }

    pub(super) fn tell(&self, done: Shown) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).done(done);
    }

    /// What local software can't do with a feed, or that it can again.
    pub(crate) fn acts(&self, feed: &FeedName, failed: Option<ActionFailed>) {
        let mut listener = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &failed {
            Some(failed) => drop(listener.failed.insert(feed.clone(), failed.clone())),
            None => drop(listener.failed.remove(feed)),
        }
        listener.tell(feed, LocalNews::Acts { feed: feed.clone(), failed });
    }
}

/// As many as a session keeps receipts: what is older is told without the time that it took.
const EARLY_FILES: usize = 16_384;

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
