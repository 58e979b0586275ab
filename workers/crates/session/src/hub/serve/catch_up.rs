//! Backfill that several sites get by one stream: it waits for the stream, which takes its part over.
use std::collections::BTreeMap;

use downburst_model::{FeedName, Lane, Micros, Sequence};

use super::Serve;
use crate::LegJoin;
use crate::hub::HubSession;

/// Feeds whose backfill waits, with the end of each wait.
#[derive(Debug, Default)]
pub(in crate::hub) struct Holds(BTreeMap<FeedName, Micros>);

impl Holds {
    /// Has the feed's backfill wait until this time.
    pub(in crate::hub) fn hold(&mut self, feed: FeedName, until: Micros) {
        self.0.insert(feed, until);
    }

    /// Ends the feed's wait.
    pub(in crate::hub) fn release(&mut self, feed: &FeedName) {
        self.0.remove(feed);
    }

    /// Ends the waits that are over.
    pub(in crate::hub) fn advance(&mut self, now: Micros) {
        self.0.retain(|_, until| *until > now);
    }

    /// True if products of this lane may be read.
    pub(in crate::hub) fn let_go(&self, feed: &FeedName, lane: Lane) -> bool {
        lane != Lane::Backfill || !self.0.contains_key(feed)
    }

    /// The end of the first wait.
    pub(in crate::hub) fn deadline(&self) -> Option<Micros> {
        self.0.values().min().copied()
    }
}

impl Serve {
    /// A stream delivers the numbers behind `after` up to `to`, which are no longer owed.
    fn catch_up_began(&mut self, after: u64, to: u64) {
        for set in [&mut self.live, &mut self.late, &mut self.wanted] {
            set.remove(after.saturating_add(1), to);
        }
    }

    /// A stream up to `to` ended; its announcements without a hole end at `known_to`.
    pub(in crate::hub) fn catch_up_ended(&mut self, known_to: u64, to: u64) {
        self.owe_unsettled(known_to.saturating_add(1), to.min(self.unicast_to()));
    }
}

impl HubSession {
    pub(in crate::hub) fn offer_catch_up(&mut self, join: LegJoin, to: Sequence) {
        let (feed, served) = (join.feed.clone(), self.served_epoch(&join.feed));
        self.offers.offer_beside(join, to.0);
        if let Some(epoch) = served {
            self.release_offers(&feed, epoch);
        }
    }

    /// The site receives the stream: the part behind `after` up to `to` leaves the queue of its session.
    pub(in crate::hub) fn catch_up_joined(&mut self, join: &LegJoin, (after, to): (u64, u64)) {
        self.serving.holds.release(&join.feed);
        if self.serving(&join.feed, join.epoch).is_none() {
            return;
        }
        let gone = self.line.parcels.take_back(&mut self.line.outbox, &join.feed, after);
        let Some(serve) = self.serving(&join.feed, join.epoch) else { return };
        for item in gone.iter().filter(|item| item.epoch == join.epoch) {
            serve.taken_back(item.previous, item.first, item.last);
        }
        serve.catch_up_began(after, to);
    }
}
