//! The place of a line of actions in a feed, with its products that are not over.
use std::collections::BTreeMap;
use std::io;

use downburst_ldm6::FeedType;
use downburst_log::{FeedLog, ProductLog as _};
use downburst_model::{Epoch, FeedName, Sequence};

use super::super::positions::Position;
use super::super::shared::Shared;

/// The line's position in a feed.
pub(super) struct Place {
    pub(super) position: Position,
    pub(super) epoch: Epoch,
    pub(super) types: FeedType,
    pub(super) read_to: Sequence,
    /// Products with running programs or announcements, and the number of those of each.
    at_work: BTreeMap<Sequence, usize>,
}

impl Place {
    pub(super) fn open(shared: &Shared, line: &str, feed: &FeedName, log: &FeedLog) -> io::Result<Self> {
        let epoch = log.epoch();
        let position = shared.positions.of(line, feed, epoch)?;
        let read_to = position.done();
        let types = shared.types_of(feed);
        Ok(Self { position, epoch, types, read_to, at_work: BTreeMap::new() })
    }

    pub(super) fn began(&mut self, sequence: Sequence) {
        *self.at_work.entry(sequence).or_default() += 1;
    }

    pub(super) fn ended(&mut self, sequence: Sequence) {
        if let Some(left) = self.at_work.get_mut(&sequence) {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.at_work.remove(&sequence);
            }
        }
    }

    /// Stores the sequence up to which everything is done.
    pub(super) fn settle(&mut self, shared: &Shared, feed: &FeedName) -> io::Result<()> {
        let first = self.at_work.keys().next();
        let done = first.map_or(self.read_to, |first| Sequence(first.0.saturating_sub(1)).min(self.read_to));
        if done > self.position.done() {
            self.position.move_to(done)?;
            shared.positions.reached(feed, self.epoch, done);
        }
        Ok(())
    }
}
