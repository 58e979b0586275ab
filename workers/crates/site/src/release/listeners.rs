//! The connections that receive news of local software.
use std::collections::{BTreeMap, VecDeque};

use downburst_model::{FeedName, ProductKey};
use downburst_session::{ActionFailed, LinkedSpace};

use super::local::{LocalNews, Shown};

/// The recipients of news of local software: the connections to the hub that serves the site. `C` is one of them.
#[derive(Debug)]
pub struct LocalListeners<C> {
    all: Option<C>,
    /// The connections of single feeds.
    by_feed: BTreeMap<FeedName, C>,
    /// Files shown before there was a recipient, such as those that the last run of the site had left to write.
    early: VecDeque<Shown>,
    /// Present failures, which the next recipient has to learn too.
    failed: BTreeMap<FeedName, ActionFailed>,
    /// The space of files whose products left the log.
    linked: BTreeMap<FeedName, LinkedSpace>,
}

impl<C> LocalListeners<C> {
    /// Sends news of these feeds there from now on, and of others to `all`; `send` receives the news
    /// that they do not have yet.
    pub fn set(
        &mut self,
        all: Option<C>,
        by_feed: BTreeMap<FeedName, C>,
        mut send: impl FnMut(&C, LocalNews),
    ) {
        // A hub that no longer serves a feed gets no further news of it: nothing must stand there for good.
        self.linked_news(|_| None, &mut send);
        (self.all, self.by_feed) = (all, by_feed);
        self.linked_news(Some, &mut send);
        for (feed, failed) in &self.failed {
            if let Some(listener) = self.listener(feed) {
                send(listener, LocalNews::Acts { feed: feed.clone(), failed: Some(failed.clone()) });
            }
        }
        for shown in std::mem::take(&mut self.early) {
            self.shown(shown, &mut send);
        }
    }

    /// Reports a shown file.
    pub fn shown(&mut self, shown: Shown, mut send: impl FnMut(&C, LocalNews)) {
        if let Some(listener) = self.listener(&shown.key.feed) {
            send(listener, LocalNews::Shown(shown));
        } else if !shown.heartbeat {
            self.early.push_back(shown);
            if self.early.len() > EARLY_FILES {
                self.early.pop_front();
            }
        }
    }

    /// Reports a failure of local software with a feed, or its end.
    pub fn acts(
        &mut self,
        feed: &FeedName,
        failed: Option<ActionFailed>,
        mut send: impl FnMut(&C, LocalNews),
    ) {
        match &failed {
            Some(failed) => drop(self.failed.insert(feed.clone(), failed.clone())),
            None => drop(self.failed.remove(feed)),
        }
        if let Some(listener) = self.listener(feed) {
            send(listener, LocalNews::Acts { feed: feed.clone(), failed });
        }
    }

    /// Reports the space that products of a feed take after they left the log. It is repeated with each measurement: a
    /// connection knows no feed that has not begun.
    pub fn linked_files(
        &mut self,
        feed: &FeedName,
        space: Option<LinkedSpace>,
        mut send: impl FnMut(&C, LocalNews),
    ) {
        match space {
            Some(space) => drop(self.linked.insert(feed.clone(), space)),
            None => drop(self.linked.remove(feed)),
        }
        if let Some(listener) = self.listener(feed) {
            send(listener, LocalNews::LinkedFiles { feed: feed.clone(), space });
        }
    }

    /// Reports a product that the log lost to damage. Without a recipient, the next start of the site finds the damage
    /// again.
    pub fn damaged(&mut self, key: ProductKey, mut send: impl FnMut(&C, LocalNews)) {
        if let Some(listener) = self.listener(&key.feed) {
            send(listener, LocalNews::Damaged(key));
        }
    }

    /// Sends to the present recipients what each should know of its feeds.
    fn linked_news(
        &self,
        known: impl Fn(LinkedSpace) -> Option<LinkedSpace>,
        mut send: impl FnMut(&C, LocalNews),
    ) {
        for (feed, space) in &self.linked {
            if let Some(listener) = self.listener(feed) {
                send(listener, LocalNews::LinkedFiles { feed: feed.clone(), space: known(*space) });
            }
        }
    }

    fn listener(&self, feed: &FeedName) -> Option<&C> {
        self.by_feed.get(feed).or(self.all.as_ref())
    }
}

impl<C> Default for LocalListeners<C> {
    fn default() -> Self {
        let (all, by_feed, early) = (None, BTreeMap::new(), VecDeque::new());
        Self { all, by_feed, early, failed: BTreeMap::new(), linked: BTreeMap::new() }
    }
}

/// The number of receipts that a session keeps: older files are reported without their latency.
const EARLY_FILES: usize = 16_384;

#[cfg(test)]
mod tests {
    use downburst_model::{Epoch, Sequence, WallMicros};

    use super::*;
    use crate::release::damaged_state;

    type Heard = Vec<(&'static str, LocalNews)>;

    fn feed(name: &str) -> FeedName {
        FeedName::parse(name).unwrap()
    }

    fn shown(name: &str, sequence: u64) -> Shown {
        let key = ProductKey { feed: feed(name), epoch: Epoch(1), sequence: Sequence(sequence) };
        Shown { key, at: WallMicros(1), late: false, heartbeat: false }
    }

    fn into(heard: &mut Heard) -> impl FnMut(&&'static str, LocalNews) {
        |to, news| heard.push((*to, news))
    }

    /// The recipients with the numbers of the products reported to them; failures as 0.
    fn numbers(heard: &Heard) -> Vec<(&'static str, u64)> {
        let number = |news: &LocalNews| match news {
            LocalNews::Shown(shown) => shown.key.sequence.0,
            LocalNews::Damaged(key) => key.sequence.0,
            LocalNews::Acts { .. } => 0,
            LocalNews::LinkedFiles { space, .. } => space.map_or(0, |space| space.bytes),
        };
        heard.iter().map(|(to, news)| (*to, number(news))).collect()
    }

    #[test]
    fn damage_is_told_to_the_connection_of_the_feed_and_to_nobody_without_one() {
        let (mut listeners, mut heard) = (LocalListeners::default(), Heard::new());
        listeners.damaged(shown("A", 1).key, into(&mut heard));
        listeners.set(Some("all"), BTreeMap::from([(feed("B"), "b")]), into(&mut heard));
        listeners.damaged(shown("A", 2).key, into(&mut heard));
        listeners.damaged(shown("B", 3).key, into(&mut heard));
        assert_eq!(numbers(&heard), [("all", 2), ("b", 3)]);
    }

    #[test]
    fn files_that_stood_before_there_was_a_connection_are_told_to_the_first() {
        let (mut listeners, mut heard) = (LocalListeners::default(), Heard::new());
        listeners.shown(shown("A", 1), into(&mut heard));
        listeners.shown(Shown { heartbeat: true, ..shown("A", 2) }, into(&mut heard));
        listeners.acts(&feed("A"), Some(damaged_state("bad".to_owned())), into(&mut heard));
        assert_eq!(numbers(&heard), []);
        listeners.set(Some("first"), BTreeMap::new(), into(&mut heard));
        listeners.shown(shown("A", 3), into(&mut heard));
        assert_eq!(
            numbers(&heard),
            [("first", 0), ("first", 1), ("first", 3)],
            "a heartbeat is not repeated"
        );
    }

    #[test]
    fn a_feed_with_a_connection_of_its_own_is_told_there_and_a_failure_to_each_new_one() {
        let (mut listeners, mut heard) = (LocalListeners::default(), Heard::new());
        listeners.set(Some("all"), [(feed("B"), "b")].into(), into(&mut heard));
        listeners.shown(shown("A", 1), into(&mut heard));
        listeners.shown(shown("B", 2), into(&mut heard));
        listeners.acts(&feed("B"), Some(damaged_state("bad".to_owned())), into(&mut heard));
        listeners.set(Some("next"), BTreeMap::new(), into(&mut heard));
        listeners.acts(&feed("B"), None, into(&mut heard));
        listeners.set(Some("last"), BTreeMap::new(), into(&mut heard));
        assert_eq!(numbers(&heard), [("all", 1), ("b", 2), ("b", 0), ("next", 0), ("next", 0)]);
    }

    #[test]
    fn the_space_of_linked_files_is_known_where_the_feed_is_served_and_nowhere_else() {
        let (mut listeners, mut heard) = (LocalListeners::default(), Heard::new());
        let space = |bytes| Some(LinkedSpace { bytes, free_bytes: 1 });
        listeners.linked_files(&feed("A"), space(5), into(&mut heard));
        listeners.set(Some("first"), BTreeMap::new(), into(&mut heard));
        listeners.linked_files(&feed("B"), space(6), into(&mut heard));
        listeners.set(Some("first"), [(feed("A"), "a")].into(), into(&mut heard));
        listeners.linked_files(&feed("A"), None, into(&mut heard));
        listeners.linked_files(&feed("B"), None, into(&mut heard));
        listeners.set(Some("next"), BTreeMap::new(), into(&mut heard));
        let moved = [("first", 0), ("first", 0), ("a", 5), ("first", 6)];
        let expected = [&[("first", 5), ("first", 6)], &moved[..], &[("a", 0), ("first", 0)]].concat();
        assert_eq!(numbers(&heard), expected);
    }

    #[test]
    fn of_files_that_nobody_hears_of_the_last_are_kept() {
        let (mut listeners, mut heard) = (LocalListeners::default(), Heard::new());
        for sequence in 0..=EARLY_FILES as u64 {
            listeners.shown(shown("A", sequence), into(&mut heard));
        }
        listeners.set(Some("first"), BTreeMap::new(), into(&mut heard));
        assert_eq!((heard.len(), numbers(&heard)[0]), (EARLY_FILES, ("first", 1)));
    }
}
