//! The storage of checkpoints: the first of a feed immediately, of later ones the last at intervals.
use std::collections::{BTreeMap, BTreeSet};

use downburst_model::{FeedName, Micros};

use super::position::StoredPosition;

/// The shortest interval between synchronisations of the disk. The site's log makes up for
/// checkpoints lost in a crash.
pub const CHECKPOINT_INTERVAL: Micros = Micros::from_secs(1);

/// Feeds that have a checkpoint: after a restart, a feed without one counts as new and skips earlier products.
#[derive(Debug)]
pub struct BegunFeeds(BTreeSet<FeedName>);

/// The last checkpoint of each feed that is not on the disk yet. While the disk stalls, one per feed waits, so that
/// the number is bounded by the feeds that the hub allows, for any length of time. `L` is the log of a checkpoint.
#[derive(Debug)]
pub struct WaitingCheckpoints<L> {
    last: BTreeMap<FeedName, (StoredPosition, L)>,
    is_over: bool,
}

impl BegunFeeds {
    /// Starts with the feeds that have a checkpoint.
    pub fn new(begun: impl IntoIterator<Item = FeedName>) -> Self {
        Self(begun.into_iter().collect())
    }

    /// True if this is the first checkpoint of its feed, which is stored immediately.
    pub fn is_first(&mut self, stored: &StoredPosition) -> bool {
        let feed = &stored.position.feed;
        !self.0.contains(feed) && self.0.insert(feed.clone())
    }
}

impl<L> WaitingCheckpoints<L> {
    /// Adds a checkpoint, in place of an earlier one of its feed.
    pub fn put(&mut self, stored: StoredPosition, log: L) {
        self.last.insert(stored.position.feed.clone(), (stored, log));
    }

    /// Notes that no more checkpoints follow; those waiting are still to be stored.
    pub fn end(&mut self) {
        self.is_over = true;
    }

    /// True if no more checkpoints follow.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// True if there is nothing to store and more may follow.
    pub fn is_idle(&self) -> bool {
        self.last.is_empty() && !self.is_over
    }

    /// The number of waiting checkpoints.
    pub fn count(&self) -> usize {
        self.last.len()
    }

    /// Takes the waiting checkpoints; `None` if there are none.
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
