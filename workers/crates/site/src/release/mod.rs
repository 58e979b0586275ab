//! Makes products into files for local software, exactly once each: a machine per feed, and their common state.
mod cursor;
mod feed;
mod listeners;
pub(crate) mod local;
pub(crate) mod order;
mod order_requests;
#[cfg(test)]
mod tests;
mod unproven;

use std::collections::BTreeMap;

use downburst_model::{FeedName, Machine as _, Micros, Now, Sequence, WallMicros};
use downburst_session::ActionFailed;

pub use cursor::{
    Cursor, CursorChange, CursorNumbers, Kept, KeptCursor, LastShown, Life, Opened, ShownAhead,
};
pub use feed::{Candidate, FeedRelease, ReleaseInput, ReleaseOutput};
pub use listeners::LocalListeners;
pub use order_requests::OrderRequests;
pub use unproven::{product_of_file, set_aside_name, unproven_since};

/// The files of all feeds, and the progress of their durability.
#[derive(Debug)]
pub struct Release {
    feeds: BTreeMap<FeedName, FeedRelease>,
    /// The pending request to make the shown files durable.
    asked: Option<Proof>,
    asked_at: Micros,
}

/// The progress of files at the time of a request to make them durable.
#[derive(Debug)]
struct Proof {
    shown: BTreeMap<FeedName, Sequence>,
    at: WallMicros,
}

impl Release {
    /// Starts without feeds.
    pub fn new(now: Micros) -> Self {
        Self { feeds: BTreeMap::new(), asked: None, asked_at: now }
    }

    /// A feed, if it is open.
    pub fn feed(&mut self, feed: &FeedName) -> Option<&mut FeedRelease> {
        self.feeds.get_mut(feed)
    }

    /// Adds a feed.
    pub fn open(&mut self, feed: &FeedName, release: FeedRelease) {
        self.feeds.insert(feed.clone(), release);
    }

    /// Drops a feed after a failure of storage: it is opened again from the stored state, within two seconds.
    pub fn failed(&mut self, feed: &FeedName) {
        self.feeds.remove(feed);
    }

    /// The time until something is due, unless the logs grow or the requests change before.
    pub fn patience(&self, now: Micros) -> Micros {
        let due = self.feeds.values().filter_map(FeedRelease::deadline).min();
        due.map_or(RETRY_INTERVAL, |due| due.since(now).min(RETRY_INTERVAL))
    }

    /// True if everything written so far is to be made durable, the files and the log of their products: every half
    /// minute if something was shown since. Answered by [`proven`](Self::proven).
    pub fn prove(&mut self, now: Now) -> bool {
        now.monotonic.since(self.asked_at) >= PROOF_INTERVAL && self.prove_at_once(now)
    }

    /// As [`prove`](Self::prove), without the minimum interval.
    pub fn prove_at_once(&mut self, now: Now) -> bool {
        let unproven = |feed: &FeedRelease| feed.cursor().proven() < feed.cursor().done();
        if self.asked.is_some() || !self.feeds.values().any(unproven) {
            return false;
        }
        let shown = self.feeds.iter().filter(|(_, feed)| unproven(feed));
        let shown = shown.map(|(feed, release)| (feed.clone(), release.cursor().done())).collect();
        (self.asked, self.asked_at) = (Some(Proof { shown, at: now.wall }), now.monotonic);
        true
    }

    /// Takes the disk's confirmation or failure; returns the numbers of cursors to store now.
    pub fn proven(&mut self, is_kept: bool) -> Vec<(FeedName, CursorNumbers)> {
        let Some(Proof { shown, at }) = self.asked.take().filter(|_| is_kept) else { return Vec::new() };
        let proven = shown.into_iter().filter_map(|(feed, to)| {
            let numbers = self.feeds.get_mut(&feed)?.prove(to, at);
            Some((feed, numbers))
        });
        proven.collect()
    }

    /// Records everything shown as durable, and returns the numbers of cursors to store. A regular end need not
    /// wait for the disk: a machine that is shut down properly writes everything out.
    pub fn close(&mut self, at: WallMicros) -> Vec<(FeedName, CursorNumbers)> {
        let close = |(feed, release): (&FeedName, &mut FeedRelease)| {
            let done = release.cursor().done();
            (feed.clone(), release.prove(done, at))
        };
        self.feeds.iter_mut().map(close).collect()
    }
}

/// The report to the hub of a damaged file of the site's state; `sentence` describes it.
pub fn damaged_state(sentence: String) -> ActionFailed {
    ActionFailed {
        rule: DAMAGED_STATE.to_owned(),
        exit: None,
        last_error: sentence,
        product: String::new(),
        sequence: Sequence(0),
        epoch: None,
        count: 1,
        others: Vec::new(),
    }
}

/// Replaces the rule in reports of damaged state of the site; the hub raises the alarm `damaged-data` for it.
pub const DAMAGED_STATE: &str = "damaged state";

/// The interval between requests to make the shown files durable. After a power cut the files since the last one are
/// checked again.
const PROOF_INTERVAL: Micros = Micros::from_secs(30);

/// The time until the next attempt after a failure of storage.
const RETRY_INTERVAL: Micros = Micros::from_secs(2);
