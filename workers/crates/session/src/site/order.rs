use std::collections::BTreeMap;

use downburst_model::{Class, FeedName, Micros, Now, ProductKey, RangeSet, Sequence};

use super::SiteSession;
use super::track::Track;
use crate::{ActionFailed, FeedHandling, Handling, Late, LinkedSpace, Missing, SiteEvent};

/// Deadlines of feeds, and the order in which local software saw their products.
#[derive(Debug, Default)]
pub(crate) struct OrderState {
    /// The number of products of a feed that local software saw after a later one.
    pub(super) late: BTreeMap<FeedName, u64>,
    /// The deadlines of feeds, from the hub's stored stamps, microseconds.
    pub(super) deadlines_us: BTreeMap<FeedName, u64>,
    /// The next search for unfinished products behind their deadline.
    pub(super) late_at: Option<Micros>,
}

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
        let mut by_class: BTreeMap<Class, RangeSet> =
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

    pub(super) fn take_handling(&mut self, now: Now, handling: Handling) {
        self.take_deadlines(now, &handling.items);
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
        let products = self.order.late.entry(feed.clone()).or_default();
        *products = products.saturating_add(1);
        let late = Late { feed, products: *products };
        if self.connection == super::Connection::Up {
            self.send(late);
        }
    }
}

impl SiteSession {
    /// Takes the deadlines of all feeds.
    pub(super) fn take_deadlines(&mut self, now: Now, items: &[FeedHandling]) {
        self.order.deadlines_us =
            items.iter().filter_map(|item| Some((item.feed.clone(), item.deadline_us?))).collect();
        self.apply_deadlines(now);
    }

    /// Applies the deadlines and the clock's offset to every feed.
    pub(super) fn apply_deadlines(&mut self, now: Now) {
        let offset_us = self.clock.offset_of(&[], now).map(|offset| offset.offset_us);
        for (feed, track) in &mut self.tracks {
            track.deadline.after_us = self.order.deadlines_us.get(feed).copied();
            // Without a connection the last offset is still the best.
            track.deadline.offset_us = offset_us.or(track.deadline.offset_us);
        }
    }

    /// Moves the receipts of dropped products to the next batch.
    pub(super) fn report_late(&mut self, now: Now) {
        for track in self.tracks.values_mut() {
            for receipt in track.deadline.take_missed() {
                self.receipts.push(now, receipt);
            }
        }
    }

    /// Searches for unfinished products whose deadline is over.
    pub(super) fn drop_late(&mut self, now: Now) {
        if self.order.late_at.is_none_or(|at| at > now.monotonic) {
            return;
        }
        self.order.late_at = None;
        for track in self.tracks.values_mut() {
            track.drop_late(now, &mut self.outputs);
        }
        self.watch_deadlines(now);
    }

    /// Schedules the search while products of a feed with a deadline are unfinished.
    pub(super) fn watch_deadlines(&mut self, now: Now) {
        let awaits = |feed: &FeedName| self.tracks.get(feed).is_some_and(|track| track.pending_count() > 0);
        if self.order.late_at.is_none() && self.order.deadlines_us.keys().any(awaits) {
            self.order.late_at = Some(now.monotonic.plus(LATE_SEARCH));
        }
    }
}

const CLASSES: [Class; 4] = [Class::Warning, Class::Observation, Class::Grid, Class::Bulk];

/// The maximum number of holes considered: products behind them wait until there are fewer, or until their hold
/// is over.
const HOLES: usize = 1_024;

/// The interval of searches for unfinished products whose deadline is over.
const LATE_SEARCH: Micros = Micros::from_millis(20);
