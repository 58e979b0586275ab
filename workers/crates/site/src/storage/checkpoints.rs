//! Which checkpoints are kept, and when: the first of a feed before anything else happens, of later ones the last.
use std::collections::{BTreeMap, BTreeSet};

use downburst_model::{FeedName, Micros};

use super::position::StoredPosition;

/// The disk is not made to synchronise more often. What a crash takes back is in the site's log.
pub const CHECKPOINT_INTERVAL: Micros = Micros::from_secs(1);

/// Feeds that have a checkpoint: without any, a start takes a feed for a new one and leaves out earlier products.
#[derive(Debug)]
pub struct BegunFeeds(BTreeSet<FeedName>);

/// The last checkpoint of each feed that is not on the disk yet. While the disk stands still one of each feed waits: a
/// site has as many feeds as its hub allows, however long that takes. `L` is the log that a checkpoint speaks of.
#[derive(Debug)]
pub struct WaitingCheckpoints<L> {
    last: BTreeMap<FeedName, (StoredPosition, L)>,
    is_over: bool,
}

impl BegunFeeds {
    /// Those that have one at the start.
    pub fn new(begun: impl IntoIterator<Item = FeedName>) -> Self {
        Self(begun.into_iter().collect())
    }

    /// True if this is the first checkpoint of its feed, which does not wait.
    pub fn is_first(&mut self, stored: &StoredPosition) -> bool {
        let feed = &stored.position.feed;
        !self.0.contains(feed) && self.0.insert(feed.clone())
    }
}

impl<L> WaitingCheckpoints<L> {
    /// Has a checkpoint wait, in the place of an earlier one of its feed.
    pub fn put(&mut self, stored: StoredPosition, log: L) {
        self.last.insert(stored.position.feed.clone(), (stored, log));
    }

    /// No more come; those that wait are still kept.
    pub fn end(&mut self) {
        self.is_over = true;
    }

    /// True if no more come.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// True if there is nothing to keep and more may come.
    pub fn is_idle(&self) -> bool {
        self.last.is_empty() && !self.is_over
    }

    /// How many wait.
    pub fn count(&self) -> usize {
        self.last.len()
    }

    /// Those that wait; `None` if none does.
    pub fn take(&mut self) -> Option<BTreeMap<FeedName, (StoredPosition, L)>> {
        (!self.last.is_empty()).then(|| std::mem::take(&mut self.last))
    }
}

impl<L> Default for WaitingCheckpoints<L> {
    fn default() -> Self {
        Self { last: BTreeMap::new(), is_over: false }
    }
}

#[cfg(test)]
mod tests {
    use downburst_model::{Epoch, RangeSet, Sequence, WallMicros};
    use downburst_session::FeedPosition;

    use super::*;

    fn stored(feed: &str, head: u64) -> StoredPosition {
        let feed = FeedName::parse(feed).unwrap();
        let position =
            FeedPosition { feed, epoch: Epoch(7), settled: RangeSet::new(), newest_stored: WallMicros(3) };
        StoredPosition { position, log_head: Sequence(head), guarded: false, complete: None }
    }

    #[test]
    fn the_first_checkpoint_of_a_feed_does_not_wait() {
        let mut begun = BegunFeeds::new([FeedName::parse("A").unwrap()]);
        let first = ["A", "B", "B", "A"].map(|feed| begun.is_first(&stored(feed, 1)));
        assert_eq!(first, [false, true, false, false]);
    }

    #[test]
    fn of_several_checkpoints_of_a_feed_the_last_waits_to_the_end() {
        let mut waiting = WaitingCheckpoints::default();
        assert!(waiting.is_idle() && waiting.take().is_none());
        for head in 1..=100 {
            ["A", "B"].iter().for_each(|feed| waiting.put(stored(feed, head), head));
        }
        waiting.end();
        assert!(waiting.is_over() && !waiting.is_idle());
        let kept: Vec<_> = waiting.take().unwrap().into_values().collect();
        assert_eq!(kept, [(stored("A", 100), 100), (stored("B", 100), 100)]);
        assert!(waiting.take().is_none() && !waiting.is_idle(), "over");
    }
}
