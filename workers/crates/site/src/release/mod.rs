//! How products become files for local software, exactly once each: a machine per feed, and what is above them all.
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

/// The files of all feeds, and how far the disk keeps them for good.
#[derive(Debug)]
pub struct Release {
    feeds: BTreeMap<FeedName, FeedRelease>,
    /// The disk is asked to keep what was shown.
    asked: Option<Proof>,
    asked_at: Micros,
}

/// How far files were shown when the disk was asked to keep all of it.
#[derive(Debug)]
struct Proof {
    shown: BTreeMap<FeedName, Sequence>,
    at: WallMicros,
}

impl Release {
    /// No feed is open yet.
    pub fn new(now: Micros) -> Self {
        Self { feeds: BTreeMap::new(), asked: None, asked_at: now }
    }

    /// A feed, if it is open.
    pub fn feed(&mut self, feed: &FeedName) -> Option<&mut FeedRelease> {
        self.feeds.get_mut(feed)
    }

    /// Takes up a feed.
    pub fn open(&mut self, feed: &FeedName, release: FeedRelease) {
        self.feeds.insert(feed.clone(), release);
    }

    /// Storage failed with a feed: it is opened again by what is kept, two seconds later at the latest.
    pub fn failed(&mut self, feed: &FeedName) {
        self.feeds.remove(feed);
    }

    /// How long nothing is to be done unless the logs grow or the requests change.
    pub fn patience(&self, now: Micros) -> Micros {
        let due = self.feeds.values().filter_map(FeedRelease::deadline).min();
        due.map_or(RETRY_INTERVAL, |due| due.since(now).min(RETRY_INTERVAL))
    }

    /// True if the disk is to keep for good everything that was written so far, files and the log that they come from:
    /// every half minute where something was shown since. Answered by [`proven`](Self::proven).
    pub fn prove(&mut self, now: Now) -> bool {
        now.monotonic.since(self.asked_at) >= PROOF_INTERVAL && self.prove_at_once(now)
    }

    /// As [`prove`](Self::prove), however short ago the last time is.
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

    /// Whether the disk confirmed that; the numbers of cursors that are to be kept now.
    pub fn proven(&mut self, is_kept: bool) -> Vec<(FeedName, CursorNumbers)> {
        let Some(Proof { shown, at }) = self.asked.take().filter(|_| is_kept) else { return Vec::new() };
        let proven = shown.into_iter().filter_map(|(feed, to)| {
            let numbers = self.feeds.get_mut(&feed)?.prove(to, at);
            Some((feed, numbers))
        });
        proven.collect()
    }

    /// A machine that is shut down in order writes everything out; an end in order need not wait for that. The numbers
    /// of cursors that are to be kept.
    pub fn close(&mut self, at: WallMicros) -> Vec<(FeedName, CursorNumbers)> {
        let close = |(feed, release): (&FeedName, &mut FeedRelease)| {
            let done = release.cursor().done();
            (feed.clone(), release.prove(done, at))
        };
        self.feeds.iter_mut().map(close).collect()
    }
}

/// The report to the hub of a file of the site's state that was found damaged; `sentence` is for people.
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

/// Stands in the place of a rule where the site's own state was found damaged; the hub raises `damaged-data` of it.
pub const DAMAGED_STATE: &str = "damaged state";

/// How often the disk is asked to keep what was shown. After a power cut files since the last time are looked at again.
const PROOF_INTERVAL: Micros = Micros::from_secs(30);

/// Where storage failed it is tried again so much later.
const RETRY_INTERVAL: Micros = Micros::from_secs(2);
