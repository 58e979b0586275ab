use downburst_model::{Class, FeedName, Now, ProductKey, RangeSet, Sequence};

use super::SiteSession;
use super::track::Track;
use crate::{ActionFailed, Handling, Late, LinkedSpace, Missing, SiteEvent};

impl Track {
    /// Unfinished products, by possible class: only the class of an announced product is known.
    fn missing(&self) -> Missing {
        let announced = self.pending.last_key_value().map(|(number, _)| *number);
        let ends = [self.settled.last(), announced, self.waiting.numbers().last()];
        let to = ends.into_iter().flatten().max().unwrap_or(0);
        let (mut unknown, mut to) = (RangeSet::new(), to);
        for (index, (first, last)) in self.settled.gaps(1, to).enumerate() {
            if index >= HOLES {
                to = first.saturating_sub(1);
                break;
            }
            unknown.insert(first, last);
        }
        let mut by_class: std::collections::BTreeMap<Class, RangeSet> =
            CLASSES.into_iter().map(|class| (class, unknown.clone())).collect();
        for (number, assembly) in self.pending.range(..=to) {
            let others = by_class.iter_mut().filter(|(class, _)| **class != assembly.info.class);
            others.for_each(|(_, missing)| missing.remove(*number, *number));
        }
        Missing { epoch: Some(self.epoch), by_class, to: Sequence(to) }
    }
}

impl SiteSession {
    /// The numbers of a feed that the site lacks; unknown, and so empty, for a feed that never began.
    pub fn missing(&self, feed: &FeedName) -> Missing {
        self.tracks.get(feed).map(Track::missing).unwrap_or_default()
    }

    pub(super) fn take_handling(&mut self, handling: Handling) {
        self.event(SiteEvent::Handling(handling.items));
    }

    /// Takes the state of failed actions on a feed.
    pub(super) fn acts(&mut self, now: Now, feed: &FeedName, failed: Option<ActionFailed>) {
        if let Some(track) = self.tracks.get_mut(feed) {
            track.local_news(now, |local| local.acts(failed));
        }
    }

    /// Takes the space that products of a feed take after they left the log.
    pub(super) fn linked_files(&mut self, now: Now, feed: &FeedName, space: Option<LinkedSpace>) {
        if let Some(track) = self.tracks.get_mut(feed) {
            track.local_news(now, |local| local.links(space));
        }
    }

    /// Requests a stored product again that can't be used any more.
    pub(super) fn lack_again(&mut self, now: Now, key: &ProductKey) {
        if let Some(track) = self.tracks.get_mut(&key.feed) {
            track.lack_again(now, key);
        }
    }

    /// Local software received a product after a later one.
    pub(super) fn was_late(&mut self, feed: FeedName) {
        let products = self.late.entry(feed.clone()).or_default();
        *products = products.saturating_add(1);
        let late = Late { feed, products: *products };
        if self.connection == super::Connection::Up {
            self.send(late);
        }
    }
}

const CLASSES: [Class; 4] = [Class::Warning, Class::Observation, Class::Grid, Class::Bulk];

/// The maximum number of holes considered: products behind them wait until there are fewer, or until their hold
/// is over.
const HOLES: usize = 1_024;
