//! Feeds with a deadline: products that can't meet it any more are dropped instead of sent, and the site counts them.
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use downburst_model::{FeedName, Micros, Now, RangeSet, Transport, WallMicros};

use super::HubSession;
use crate::{ClockOffset, Covered, Expired, Outcome, Receipt};

/// The deadlines of a session's feeds.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    feeds: BTreeMap<FeedName, Feed>,
    /// The time of the step under way, by the hub's clock.
    step_at: WallMicros,
    searched_at: Option<Micros>,
}

#[derive(Debug)]
struct Feed {
    deadline_us: u64,
    /// Queued products: their tickets, and the hub's stored stamps.
    queued: VecDeque<(u32, WallMicros)>,
    /// Products on their way: their numbers, and the times at which the hub wrote their last byte.
    on_the_way: VecDeque<(u64, WallMicros)>,
    transit: Transit,
}

/// The time from the hub's last byte of a product to its arrival, by a moving mean and its deviation (RFC 6298
/// section 2, with 2 deviations instead of 4): a wait in the path's own queues is a part of it.
#[derive(Debug, Default)]
struct Transit {
    mean_us: i64,
    deviation_us: i64,
    sampled_at: Option<Micros>,
}

impl Deadlines {
    /// Sets a feed's deadline, in microseconds; true if that changes it.
    pub(crate) fn set(&mut self, feed: &FeedName, deadline_us: Option<u64>) -> bool {
        if self.of(feed) == deadline_us {
            return false;
        }
        match (deadline_us, self.feeds.get_mut(feed)) {
            (Some(deadline_us), Some(known)) => known.deadline_us = deadline_us,
            (Some(deadline_us), None) => drop(self.feeds.insert(feed.clone(), Feed::new(deadline_us))),
            (None, _) => drop(self.feeds.remove(feed)),
        }
        true
    }

    /// The feed's deadline, in microseconds.
    pub(crate) fn of(&self, feed: &FeedName) -> Option<u64> {
        self.feeds.get(feed).map(|feed| feed.deadline_us)
    }

    /// The feeds with a deadline.
    pub(crate) fn feeds(&self) -> impl Iterator<Item = &FeedName> {
        self.feeds.keys()
    }

    /// Products of the feed that the hub stored before this can't arrive in time any more.
    pub(crate) fn late_before(&self, feed: &FeedName, now: Now) -> Option<WallMicros> {
        self.feeds.get(feed).map(|feed| feed.late_before(now))
    }

    /// A step of the session begins.
    pub(crate) fn step(&mut self, now: Now) {
        self.step_at = now.wall;
    }

    /// A product was queued.
    pub(crate) fn queued(&mut self, feed: &FeedName, ticket: u32, stored: WallMicros) {
        if let Some(feed) = self.feeds.get_mut(feed) {
            feed.queued.push_back((ticket, stored));
        }
    }

    /// The last byte of a product was written.
    pub(crate) fn sent(&mut self, feed: &FeedName, number: u64) {
        let at = self.step_at;
        if let Some(feed) = self.feeds.get_mut(feed) {
            feed.on_the_way.push_back((number, at));
            if feed.on_the_way.len() > ON_THE_WAY {
                feed.on_the_way.pop_front();
            }
        }
    }

    /// Learns the times of transit from a site's receipts.
    pub(crate) fn arrived(&mut self, now: Now, clock: Option<ClockOffset>, receipts: &[Receipt]) {
        let Some(clock) = clock.filter(|_| !self.feeds.is_empty()) else { return };
        let came = |receipt: &&Receipt| {
            receipt.transport == Transport::Unicast
                && matches!(receipt.outcome, Outcome::Stored | Outcome::LateAtSite)
        };
        for receipt in receipts.iter().filter(came) {
            let Some(feed) = self.feeds.get_mut(&receipt.key.feed) else { continue };
            let at = WallMicros(receipt.last_byte.0.saturating_sub(clock.offset_us));
            feed.arrived(now.monotonic, receipt.key.sequence.0, at);
        }
    }

    /// The queued products that can't arrive in time any more, by their tickets; some of them may have begun.
    /// Each group was stored within one second, which begins at its stamp.
    fn take_late(&mut self, now: Now) -> Vec<(FeedName, WallMicros, BTreeSet<u32>)> {
        if self.feeds.is_empty()
            || self.searched_at.is_some_and(|at| now.monotonic.since(at) < SEARCH_INTERVAL)
        {
            return Vec::new();
        }
        self.searched_at = Some(now.monotonic);
        let late = self.feeds.iter_mut().flat_map(|(name, feed)| {
            feed.take_late(now).into_iter().map(|(second, tickets)| (name.clone(), second, tickets))
        });
        late.collect()
    }
}

impl Feed {
    fn new(deadline_us: u64) -> Self {
        let (queued, on_the_way) = (VecDeque::new(), VecDeque::new());
        Self { deadline_us, queued, on_the_way, transit: Transit::default() }
    }

    fn late_before(&self, now: Now) -> WallMicros {
        let expected_us = self.transit.expected_us(now.monotonic);
        // On a steady path the mean alone would let every other product arrive just behind the deadline.
        let slack_us = if expected_us > 0 { self.deadline_us / SLACK_PART } else { 0 };
        // Some products are sent however long the transit seems, or a wrong value would never be corrected.
        let transit_us = expected_us.saturating_add(slack_us).min(self.deadline_us / 4 * 3);
        let left_us = self.deadline_us.saturating_sub(transit_us);
        WallMicros(now.wall.0.saturating_sub(i64::try_from(left_us).unwrap_or(i64::MAX)))
    }

    fn take_late(&mut self, now: Now) -> BTreeMap<WallMicros, BTreeSet<u32>> {
        let before = self.late_before(now);
        let mut seconds: BTreeMap<WallMicros, BTreeSet<u32>> = BTreeMap::new();
        while let Some((ticket, stored)) = self.queued.front().copied().filter(|(_, stored)| *stored < before)
        {
            self.queued.pop_front();
            seconds.entry(second_of(stored)).or_default().insert(ticket);
        }
        seconds
    }

    fn arrived(&mut self, now: Micros, number: u64, at: WallMicros) {
        while let Some((first, sent)) = self.on_the_way.front().copied().filter(|(first, _)| *first <= number)
        {
            self.on_the_way.pop_front();
            if first == number {
                self.transit.add(now, at.0.saturating_sub(sent.0).clamp(0, TRANSIT_MAX_US));
            }
        }
    }
}

impl Transit {
    fn add(&mut self, now: Micros, sample_us: i64) {
        let error_us = sample_us.saturating_sub(self.mean_us);
        if self.sampled_at.replace(now).is_none() {
            (self.mean_us, self.deviation_us) = (sample_us, sample_us / 2);
        } else {
            self.mean_us = self.mean_us.saturating_add(error_us / 8);
            let more_us = error_us.saturating_abs().saturating_sub(self.deviation_us);
            self.deviation_us = self.deviation_us.saturating_add(more_us / 4);
        }
    }

    /// The transit to expect, in microseconds; it halves with each second without a sample.
    fn expected_us(&self, now: Micros) -> u64 {
        let Some(at) = self.sampled_at else { return 0 };
        let long_us = self.mean_us.saturating_add(self.deviation_us.saturating_mul(2)).max(0).unsigned_abs();
        let seconds = u32::try_from(now.since(at).0 / 1_000_000).unwrap_or(u32::MAX);
        long_us.checked_shr(seconds).unwrap_or(0)
    }
}

impl HubSession {
    /// Takes a feed's deadline, which goes to the site with the handling of its feeds.
    pub(super) fn set_deadline(&mut self, feed: &FeedName, deadline_us: Option<u64>) {
        if !self.serving.deadlines.set(feed, deadline_us) {
            return;
        }
        let before = self.serving.patterns.clone();
        let trains = !self.sends_one_by_one(feed);
        self.serving.patterns.set_trains(feed, trains);
        self.take_back_unwanted(&before);
        self.tell_handling();
    }

    /// True if the feed has a deadline.
    pub fn has_deadline(&self, feed: &FeedName) -> bool {
        self.serving.deadlines.of(feed).is_some()
    }

    /// True if products of the feed are checked one by one before they are sent, so that they travel in no train.
    pub(super) fn sends_one_by_one(&self, feed: &FeedName) -> bool {
        self.serving.handling.ages(feed) || self.has_deadline(feed)
    }

    /// Drops queued products that can't arrive in time, and tells the site their numbers.
    pub(super) fn drop_late(&mut self, now: Now) {
        for (feed, second, tickets) in self.serving.deadlines.take_late(now) {
            let gone = self.line.parcels.take_back_tickets(&mut self.line.outbox, &tickets);
            let Some(epoch) = self.served_epoch(&feed) else { continue };
            let mut sequences = RangeSet::new();
            for item in gone.iter().filter(|item| item.epoch == epoch) {
                let (from, to) = (item.previous.saturating_add(1), item.first.saturating_sub(1));
                if from <= to {
                    let (from, to) = (downburst_model::Sequence(from), downburst_model::Sequence(to));
                    self.send(Covered { feed: feed.clone(), epoch, from, to });
                }
                sequences.insert(item.first, item.last);
                if let Some(serve) = self.serving(&feed, epoch) {
                    serve.sent(item.first, item.last);
                }
            }
            if !sequences.is_empty() {
                self.send(Expired { feed, epoch, sequences, late: Some(true), stored: Some(second) });
            }
        }
    }
}

/// The beginning of a stamp's second.
pub(super) fn second_of(stored: WallMicros) -> WallMicros {
    WallMicros(stored.0.saturating_sub(stored.0.rem_euclid(1_000_000)))
}

/// The interval of searches for late products in the queue: a search costs about as much as the queue is long.
const SEARCH_INTERVAL: Micros = Micros::from_millis(2);

/// The part of the deadline that is kept in reserve for the path's jitter.
const SLACK_PART: u64 = 20;

/// The maximum number of products on their way whose time is stored.
const ON_THE_WAY: usize = 16_384;

/// The longest transit that counts: longer ones are errors of clocks.
const TRANSIT_MAX_US: i64 = 600_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Now {
        Now { monotonic: Micros::from_millis(millis), wall: WallMicros(millis as i64 * 1_000) }
    }

    fn feed() -> FeedName {
        FeedName::parse("RADAR").unwrap()
    }

    #[test]
    fn the_expected_transit_follows_its_samples_and_fades_without_any() {
        let mut transit = Transit::default();
        assert_eq!(transit.expected_us(Micros(0)), 0, "nothing is known before the first product");
        for millis in 0..100 {
            transit.add(Micros::from_millis(millis), 40_000);
        }
        let steady = transit.expected_us(Micros::from_millis(99));
        assert!((40_000..41_000).contains(&steady), "{steady}");
        assert_eq!(transit.expected_us(Micros::from_millis(2_100)), steady / 4);
        assert_eq!(transit.expected_us(Micros::from_secs(10_000)), 0);
    }

    #[test]
    fn a_product_is_late_before_its_deadline_by_the_time_of_transit_and_never_by_all_of_it() {
        let mut deadlines = Deadlines::default();
        assert!(deadlines.set(&feed(), Some(400_000)) && !deadlines.set(&feed(), Some(400_000)));
        assert_eq!(deadlines.late_before(&feed(), at(1_000)), Some(WallMicros(600_000)));
        let own = deadlines.feeds.get_mut(&feed()).unwrap();
        own.transit = Transit { mean_us: 100_000, deviation_us: 0, sampled_at: Some(at(1_000).monotonic) };
        assert_eq!(deadlines.late_before(&feed(), at(1_000)), Some(WallMicros(720_000)));
        let own = deadlines.feeds.get_mut(&feed()).unwrap();
        own.transit.mean_us = TRANSIT_MAX_US;
        assert_eq!(deadlines.late_before(&feed(), at(1_000)), Some(WallMicros(900_000)));
        assert!(deadlines.set(&feed(), None));
        assert_eq!(deadlines.late_before(&feed(), at(1_000)), None);
    }

    #[test]
    fn the_oldest_of_the_queue_are_late_first() {
        let mut deadlines = Deadlines::default();
        deadlines.set(&feed(), Some(100_000));
        (0..10).for_each(|n| deadlines.queued(&feed(), n, WallMicros(i64::from(n) * 10_000)));
        assert_eq!(deadlines.take_late(at(100)), []);
        let late = deadlines.take_late(at(131));
        assert_eq!(late, [(feed(), WallMicros(0), [0, 1, 2, 3].into())]);
        assert_eq!(deadlines.take_late(at(132)), [], "the next search is not due");
        (99..102).for_each(|n| deadlines.queued(&feed(), n, WallMicros(i64::from(n) * 10_000)));
        let late = deadlines.take_late(at(2_000));
        let seconds: Vec<_> = late.iter().map(|(_, second, tickets)| (second.0, tickets.len())).collect();
        assert_eq!(seconds, [(0, 7), (1_000_000, 2)], "each second by itself");
    }
}
