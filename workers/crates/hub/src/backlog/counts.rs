//! Counts the products that one site lacks of one feed, with counts shared between sites.
use std::collections::BTreeMap;
use std::sync::Arc;

use downburst_model::{FeedName, RangeSet, WallMicros};
use downburst_session::{Filter, ResendLeft};

use super::census::{Census, Sum, Wants};
use super::positions::Position;
use super::{CountedLog, FeedBacklog, resend_order};
use crate::sites::ResendLine;

/// The counts of the logs, and the remaining budget of this report.
#[derive(Default)]
pub struct Counts {
    censuses: BTreeMap<Key, Counted>,
    budget: u64,
    /// By feed, the last number that is no longer in transit to any site, in this report.
    arrived: BTreeMap<FeedName, u64>,
}

struct Counted {
    census: Census,
    /// True if it was used for this report.
    is_used: bool,
}

/// Sites with the same filter on a log share a census.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    feed: FeedName,
    epoch: u64,
    of: Of,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Of {
    Filter(Arc<Filter>),
    Resend(u64),
}

/// The inputs of counting for one site and one feed.
pub struct Look<'a, L> {
    /// The feed's log.
    pub log: &'a L,
    /// The filter of the site's subscriptions.
    pub filter: Arc<Filter>,
    /// The site's position; `None`: it never received the feed.
    pub position: Option<Position>,
    /// The site's resends of the feed.
    pub resends: Vec<&'a ResendLine>,
    /// The remaining parts of these resends.
    pub left: BTreeMap<u64, ResendLeft>,
    /// The maximum age of products that are sent to the site.
    pub max_age_us: Option<i64>,
    /// True if products may be in transit to the site.
    pub is_connected: bool,
    /// The hub's wall clock.
    pub now: WallMicros,
}

impl Counts {
    /// Begins another report.
    pub fn begin(&mut self) {
        self.budget = PRODUCTS_LOOKED_AT;
        self.arrived.clear();
    }

    /// Drops the censuses that this report did not use.
    pub fn forget_unused(&mut self) {
        self.censuses.retain(|_, counted| std::mem::take(&mut counted.is_used));
    }

    /// A census of these numbers, and true if it has counted all of them.
    fn census<L: CountedLog>(
        &mut self,
        log: &L,
        of: Of,
        wants: impl FnOnce() -> Wants,
        numbers: &[(u64, u64)],
    ) -> Result<(&mut Census, bool), L::Error> {
        let key = Key { feed: log.feed().clone(), epoch: log.epoch().0, of };
        let last = numbers.last().map_or(0, |(_, last)| *last);
        let first = numbers.first().map_or(0, |(first, _)| *first);
        let counted = self
            .censuses
            .entry(key)
            .or_insert_with(|| Counted { census: Census::new(wants(), last), is_used: true });
        counted.is_used = true;
        let complete = counted.census.extend(log, first.saturating_sub(1), last, &mut self.budget)?;
        Ok((&mut counted.census, complete))
    }
}

impl<L: CountedLog> Look<'_, L> {
    /// The products that the site lacks.
    pub fn lacking(&self, counts: &mut Counts) -> Result<FeedBacklog, L::Error> {
        let name = self.log.feed().clone();
        let Some(owed) = self.owed(counts) else { return Ok(FeedBacklog::not_known(name)) };
        let mut found = FeedBacklog::nothing(name);
        let first_kept = self.log.first_kept().0;
        if !owed.is_empty() {
            let filter = Arc::clone(&self.filter);
            let wants = || -> Wants { Arc::new(move |id: &str| filter.wants(id)) };
            let of = Of::Filter(Arc::clone(&self.filter));
            let (census, complete) = counts.census(self.log, of, wants, &owed)?;
            self.add(census, &owed, first_kept, &mut found)?;
            found.counting |= !complete;
        }
        for line in &self.resends {
            let order = resend_order(self.log, line, self.left.get(&line.resend).cloned());
            let (left, wants) = order.content();
            let numbers: Vec<(u64, u64)> = self.kept(&left, first_kept);
            if !numbers.is_empty() {
                let of = Of::Resend(line.resend);
                let (census, complete) = counts.census(self.log, of, || Arc::new(wants), &numbers)?;
                self.add(census, &numbers, first_kept, &mut found)?;
                found.counting |= !complete;
            }
        }
        Ok(found)
    }

    /// The numbers that the site did not settle and that the hub may send; `None` if its position is in another
    /// log.
    fn owed(&self, counts: &mut Counts) -> Option<Vec<(u64, u64)>> {
        let Some(position) = &self.position else { return Some(Vec::new()) };
        if position.epoch != self.log.epoch().0.to_string() {
            return None;
        }
        let head = self.log.head().0;
        if position.settled.gaps(1, head).next().is_none() {
            return Some(Vec::new());
        }
        let before = |age_us: i64| self.log.find_time(WallMicros(self.now.0.saturating_sub(age_us))).0;
        let too_old = self.max_age_us.map_or(0, before);
        let last = if self.is_connected {
            *counts.arrived.entry(self.log.feed().clone()).or_insert_with(|| before(ON_ITS_WAY_US))
        } else {
            head
        };
        Some(position.settled.gaps(too_old.saturating_add(1), last).collect())
    }

    /// The numbers of a resend that the log still has.
    fn kept(&self, left: &RangeSet, first_kept: u64) -> Vec<(u64, u64)> {
        let (least, most) = (first_kept.max(1), self.log.head().0);
        let inside = left.iter().map(|(first, last)| (first.max(least), last.min(most)));
        inside.filter(|(first, last)| first <= last).collect()
    }

    fn add(
        &self,
        census: &mut Census,
        numbers: &[(u64, u64)],
        first_kept: u64,
        found: &mut FeedBacklog,
    ) -> Result<(), L::Error> {
        let log = self.log;
        for &(first, last) in numbers {
            let (mut kept, mut lost) = (Sum::default(), Sum::default());
            if first < first_kept {
                lost = census.sum(log, first..=last.min(first_kept - 1))?;
            }
            if last >= first_kept {
                kept = census.sum(log, first.max(first_kept)..=last)?;
            }
            if kept.products > 0 {
                let oldest = census.oldest(log, first.max(first_kept)..=last)?;
                found.oldest_us = [found.oldest_us, oldest].into_iter().flatten().min();
            }
            found.products = found.products.saturating_add(kept.products);
            found.bytes = found.bytes.saturating_add(kept.bytes);
            found.lost_products = found.lost_products.saturating_add(lost.products);
            found.lost_bytes = found.lost_bytes.saturating_add(lost.bytes);
        }
        Ok(())
    }
}

/// Some tens of milliseconds of one processor per second, until old products are counted.
const PRODUCTS_LOOKED_AT: u64 = 100_000;

/// Products sent to a connected site this recently, or about to be sent, are in transit and no backlog; a site
/// reports its position each second.
const ON_ITS_WAY_US: i64 = 2_500_000;
