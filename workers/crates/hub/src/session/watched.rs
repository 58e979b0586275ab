//! The feeds that a session reads, and their growth.
use std::collections::{BTreeMap, BTreeSet};

use downburst_model::FeedName;

use super::api::FeedStanding;

/// The driver's watch over a feed's log.
pub trait FeedWatch {
    /// The present state of the log.
    fn standing(&self) -> FeedStanding;

    /// True once after the log has grown.
    fn take_growth(&self) -> bool;

    /// Stops waking the session for appends, or starts again.
    fn mute(&self, muted: bool);
}

/// The subscribed feeds that are open.
#[derive(Debug)]
pub struct WatchedFeeds<W>(BTreeMap<FeedName, W>);

impl<W: FeedWatch> WatchedFeeds<W> {
    /// Watches these feeds from now on, as far as they are open: `begin` watches a feed that is.
    pub fn subscribe(
        &mut self,
        subscribed: &BTreeSet<FeedName>,
        begin: impl FnMut(&FeedName) -> Option<W>,
    ) -> Vec<FeedStanding> {
        self.0.clear();
        self.look_for(subscribed, |_, _| true, begin)
    }

    /// Picks up feeds that were opened, closed or reopened: `is_current` is false for a watch over a log that was
    /// closed.
    pub fn look_for(
        &mut self,
        subscribed: &BTreeSet<FeedName>,
        is_current: impl Fn(&FeedName, &W) -> bool,
        mut begin: impl FnMut(&FeedName) -> Option<W>,
    ) -> Vec<FeedStanding> {
        self.0.retain(|name, watch| subscribed.contains(name) && is_current(name, watch));
        for name in subscribed {
            if !self.0.contains_key(name)
                && let Some(watch) = begin(name)
            {
                self.0.insert(name.clone(), watch);
            }
        }
        self.0.values().map(FeedWatch::standing).collect()
    }

    /// The feeds that have grown since the last call.
    pub fn grown(&self) -> Vec<FeedStanding> {
        self.0.values().filter(|watch| watch.take_growth()).map(FeedWatch::standing).collect()
    }

    /// Mutes or unmutes the appends of a feed that a leg carries. The machine's next input must follow
    /// [`grown`](Self::grown), which returns the muted appends.
    pub fn leave_to_leg(&self, feed: &FeedName, left: bool) {
        if let Some(watch) = self.0.get(feed) {
            watch.mute(left);
        }
    }
}

impl<W> Default for WatchedFeeds<W> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use downburst_model::{Epoch, LegId, Sequence};
    use downburst_session::Duplicates;

    use super::*;

    #[derive(Default)]
    struct Log {
        epoch: u64,
        has_grown: Cell<bool>,
        is_muted: Cell<bool>,
    }

    struct Watch(FeedName, Rc<Log>);

    impl FeedWatch for Watch {
        fn standing(&self) -> FeedStanding {
            FeedStanding {
                feed: self.0.clone(),
                epoch: Epoch(self.1.epoch),
                head: Sequence(0),
                unicast_leg: LegId(1),
                rule: Duplicates::default(),
                deadline_us: None,
            }
        }

        fn take_growth(&self) -> bool {
            self.1.has_grown.take()
        }

        fn mute(&self, muted: bool) {
            self.1.is_muted.set(muted);
        }
    }

    fn feed(name: &str) -> FeedName {
        FeedName::parse(name).unwrap()
    }

    fn feeds(names: &[&str]) -> BTreeSet<FeedName> {
        names.iter().map(|name| feed(name)).collect()
    }

    /// The open logs of a node.
    fn open(names: &[&str]) -> BTreeMap<FeedName, Rc<Log>> {
        names.iter().map(|name| (feed(name), Rc::default())).collect()
    }

    fn look(
        watched: &mut WatchedFeeds<Watch>,
        subscribed: &[&str],
        open: &BTreeMap<FeedName, Rc<Log>>,
    ) -> Vec<(String, u64)> {
        let current =
            |name: &FeedName, watch: &Watch| open.get(name).is_some_and(|log| Rc::ptr_eq(log, &watch.1));
        let begin = |name: &FeedName| Some(Watch(name.clone(), Rc::clone(open.get(name)?)));
        let standing = watched.look_for(&feeds(subscribed), current, begin);
        standing.into_iter().map(|it| (it.feed.as_str().to_owned(), it.epoch.0)).collect()
    }

    fn at(name: &str, epoch: u64) -> (String, u64) {
        (name.to_owned(), epoch)
    }

    #[test]
    fn open_feeds_of_the_subscriptions_are_watched_and_reopened_ones_anew() {
        let (mut watched, mut logs) = (WatchedFeeds::default(), open(&["A", "B", "other"]));
        assert_eq!(look(&mut watched, &["A", "B", "closed"], &logs), [at("A", 0), at("B", 0)]);
        logs.insert(feed("A"), Rc::new(Log { epoch: 9, ..Log::default() }));
        logs.remove(&feed("B"));
        assert_eq!(look(&mut watched, &["A", "B"], &logs), [at("A", 9)], "B was closed");
        assert_eq!(look(&mut watched, &[], &logs), []);
    }

    #[test]
    fn a_watch_stays_while_its_log_is_open_and_begins_again_with_a_subscription() {
        let (mut watched, logs) = (WatchedFeeds::default(), open(&["A"]));
        look(&mut watched, &["A"], &logs);
        watched.leave_to_leg(&feed("A"), true);
        let begun = Cell::new(0);
        let begin = |name: &FeedName| {
            begun.set(begun.get() + 1);
            Some(Watch(name.clone(), Rc::clone(&logs[name])))
        };
        watched.look_for(&feeds(&["A"]), |_, _| true, begin);
        assert_eq!(begun.get(), 0);
        watched.subscribe(&feeds(&["A"]), begin);
        assert_eq!(begun.get(), 1);
    }

    #[test]
    fn growth_is_reported_once_even_of_a_muted_feed() {
        let (mut watched, logs) = (WatchedFeeds::default(), open(&["A", "B"]));
        look(&mut watched, &["A", "B"], &logs);
        watched.leave_to_leg(&feed("A"), true);
        watched.leave_to_leg(&feed("unknown"), true);
        assert!(logs[&feed("A")].is_muted.get() && !logs[&feed("B")].is_muted.get());
        logs[&feed("A")].has_grown.set(true);
        let grown =
            |watched: &WatchedFeeds<Watch>| watched.grown().into_iter().map(|it| it.feed).collect::<Vec<_>>();
        assert_eq!((grown(&watched), grown(&watched)), (vec![feed("A")], vec![]));
        watched.leave_to_leg(&feed("A"), false);
        assert!(!logs[&feed("A")].is_muted.get());
    }
}
