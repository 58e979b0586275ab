mod catch_up;

use std::collections::BTreeMap;

use downburst_model::{Epoch, FeedName, Lane, LegId, Micros, ProductInfo, RangeSet, Sequence, WallMicros};

use super::deadlines::second_of;
pub(super) use catch_up::Holds;

use crate::spans::Spans;
use crate::stretch::{Part, Piece};
use crate::{Covered, Entry, Expired, FeedHead, FeedPosition, FeedStart, Standing, Stretch};

/// The products of one feed that are owed to one site by unicast.
///
/// Every number of the log is in one of these states: *owed* (to be read from the log), *queued* (in the
/// outbox), *left to a leg* (above `leg_after`), or *said* (sent, covered, expired, or settled at the site
/// before). Numbers become owed when the head moves, when a leg ends and when the site requests them; ranges
/// read from the log leave the set. A product on a data connection stays *queued* until the site confirms it:
/// queued numbers are never owed, and only owed numbers are ever reported as covered or expired, so no message
/// on one stream settles a product in flight on another.
#[derive(Debug)]
pub(crate) struct Serve {
    pub(crate) epoch: Epoch,
    pub(crate) unicast_leg: LegId,
    /// The hub's stored stamp of the newest product the site is known to hold.
    pub(crate) newest_stored: WallMicros,
    /// Nothing is read before the site has answered this mark: until then it may not know that the feed begins.
    pub(crate) mark: u32,
    feed: FeedName,
    head: u64,
    /// The head when the session began to serve the feed: products up to here are backfill.
    began_at: u64,
    /// The beginning of the feed as sent to the site: it begins behind this.
    began_after: u64,
    live: RangeSet,
    late: RangeSet,
    queued: RangeSet,
    /// Owed because of a request of the site.
    wanted: RangeSet,
    /// Settled at the site, as far as it reported.
    settled: RangeSet,
    /// A multicast leg delivers everything behind this.
    leg_after: Option<u64>,
    cover: Option<Cover>,
}

/// A result of reading the log.
#[derive(Debug)]
pub(crate) enum Step {
    Covered(Covered),
    Expired(Expired),
    Product(Delivery),
    Train(Departure),
}

/// A product to queue.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) info: ProductInfo,
    pub(crate) bytes: downburst_model::Content,
    pub(crate) previous: u64,
    pub(crate) reason: Reason,
}

/// Small products to queue together.
#[derive(Debug)]
pub(crate) struct Departure {
    pub(crate) part: Part,
    pub(crate) previous: u64,
    /// No product behind the last car and up to this number is for the site.
    pub(crate) to: u64,
    pub(crate) reason: Reason,
}

/// The reason for a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reason {
    pub(crate) lane: Lane,
    /// The site requested it.
    pub(crate) wanted: bool,
}

/// A range to read from the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) lane: Lane,
    pub(crate) after: u64,
    pub(crate) to: u64,
}

/// Products that matched and are not sent.
#[derive(Debug, Default)]
struct Gone {
    /// Products stored before this are late by the feed's deadline.
    late_before: Option<WallMicros>,
    expired: RangeSet,
    /// By the second in which the hub stored them.
    late: BTreeMap<WallMicros, RangeSet>,
}

impl Gone {
    fn insert(&mut self, number: u64, stored: WallMicros) {
        let is_late = self.late_before.is_some_and(|before| stored < before);
        let numbers =
            if is_late { self.late.entry(second_of(stored)).or_default() } else { &mut self.expired };
        numbers.insert(number, number);
    }

    /// The messages for the site.
    fn told(self, feed: &FeedName, epoch: Epoch) -> impl Iterator<Item = Expired> {
        let late = self.late.into_iter().map(|(second, numbers)| (numbers, Some(second)));
        let all = [(self.expired, None)].into_iter().filter(|(numbers, _)| !numbers.is_empty()).chain(late);
        all.map(move |(sequences, stored)| {
            let (feed, late) = (feed.clone(), stored.map(|_| true));
            Expired { feed, epoch, sequences, late, stored }
        })
    }
}

/// Numbers without a product for the site, held back briefly so that many ranges become one message.
#[derive(Clone, Copy, Debug)]
struct Cover {
    from: u64,
    to: u64,
    since: Micros,
}

impl Serve {
    /// Begins behind `after`: later numbers that the site reported as settled are not owed.
    pub(crate) fn new(
        feed: FeedName,
        epoch: Epoch,
        head: Sequence,
        unicast_leg: LegId,
        after: u64,
        position: Option<FeedPosition>,
    ) -> Self {
        let newest_stored = position.as_ref().map(|position| position.newest_stored).unwrap_or_default();
        let settled = position.filter(|position| position.epoch == epoch).map(|position| position.settled);
        let mut serve = Self {
            epoch,
            unicast_leg,
            newest_stored,
            mark: 0,
            feed,
            head: head.0,
            began_at: head.0,
            began_after: after,
            live: RangeSet::new(),
            late: RangeSet::new(),
            queued: RangeSet::new(),
            wanted: RangeSet::new(),
            settled: settled.unwrap_or_default(),
            leg_after: None,
            cover: None,
        };
        serve.owe_unsettled(after.saturating_add(1), head.0);
        serve
    }

    /// The message that starts the feed at the site.
    pub(crate) fn start_message(&self, after: u64) -> FeedStart {
        FeedStart { feed: self.feed.clone(), epoch: self.epoch, after: Sequence(after), duplicates: None }
    }

    /// The site's position, as far as reported.
    pub(crate) fn position(&self) -> FeedPosition {
        FeedPosition {
            feed: self.feed.clone(),
            epoch: self.epoch,
            settled: self.settled(),
            newest_stored: self.newest_stored,
        }
    }

    /// The end of the log, as far as this session knows it.
    pub(crate) fn head(&self) -> FeedHead {
        FeedHead { feed: self.feed.clone(), epoch: self.epoch, head: Sequence(self.head) }
    }

    /// The log grew.
    pub(crate) fn head_moved(&mut self, head: Sequence) {
        if head.0 > self.head {
            let before = std::mem::replace(&mut self.head, head.0);
            self.owe_unsettled(before.saturating_add(1), self.unicast_to());
        }
    }

    /// Legs deliver everything behind `after` (`None`: no leg does).
    pub(crate) fn leave_to_legs(&mut self, after: Option<u64>) {
        self.leg_after = after;
    }

    /// A leg that the site now receives delivers everything behind `after`, which is no longer owed.
    pub(crate) fn leg_began(&mut self, after: u64) {
        for set in [&mut self.live, &mut self.late, &mut self.wanted] {
            set.remove(after.saturating_add(1), u64::MAX);
        }
    }

    /// A leg ended; its announcements without a hole end at `known_to`.
    pub(crate) fn leg_ended(&mut self, known_to: u64) {
        // The leg may be ahead of the head known to this session.
        self.settled.insert(self.head.saturating_add(1), known_to);
        self.owe_unsettled(known_to.saturating_add(1), self.unicast_to());
    }

    /// A queued parcel was taken back or lost; its statement about the numbers before and behind it was not sent.
    pub(crate) fn taken_back(&mut self, previous: u64, first: u64, last: u64) {
        self.queued.remove(first, last);
        self.owe_unsettled(previous.saturating_add(1), last.min(self.unicast_to()));
    }

    /// Queued products were taken back since the site wants less: the numbers are read again, including those
    /// that the site requested although they were left to a leg.
    pub(crate) fn read_again(&mut self, previous: u64, first: u64, last: u64) {
        self.taken_back(previous, first, last);
        let behind = first.max(self.unicast_to().saturating_add(1));
        let mut asked = RangeSet::new();
        if behind <= last {
            asked.insert(behind, last);
        }
        self.want(&asked);
    }

    /// A product or train was sent whole.
    pub(crate) fn sent(&mut self, first: u64, last: u64) {
        self.queued.remove(first, last);
    }

    /// The site requests these numbers. Those in flight are not read again.
    pub(crate) fn want(&mut self, numbers: &RangeSet) {
        let mut asked: RangeSet = numbers.within(1, self.head).into_iter().collect();
        asked.subtract(&self.queued);
        self.wanted.add(&asked);
        self.owe(&asked);
    }

    /// The site reported all of these as settled.
    pub(crate) fn acknowledge(&mut self, first: u64, last: u64) {
        if self.settled.range_count() < SETTLED_RANGES {
            self.settled.insert(first, last);
        }
        for set in [&mut self.live, &mut self.late, &mut self.wanted] {
            set.remove(first, last);
        }
    }

    /// The numbers that the site no longer needs: the settled ones, and those before the start of the feed.
    pub(crate) fn settled(&self) -> RangeSet {
        let mut settled = self.settled.clone();
        settled.insert(0, self.began_after);
        settled
    }

    /// The state of one number.
    pub(crate) fn standing(&self, sequence: u64) -> Standing {
        let asked = self.wanted.contains(sequence);
        let before = sequence.saturating_sub(1);
        let owed_before = |owed: &RangeSet| {
            owed.within(1, before).iter().map(|(first, last)| last - first + 1).sum::<u64>()
        };
        if self.settled.contains(sequence) {
            Standing::Settled
        } else if self.queued.contains(sequence) {
            Standing::Queued { asked }
        } else if self.live.contains(sequence) {
            Standing::Owed { lane: Lane::Live, asked, numbers_before: owed_before(&self.live) }
        } else if self.late.contains(sequence) {
            Standing::Owed { lane: Lane::Backfill, asked, numbers_before: owed_before(&self.late) }
        } else if self.leg_after.is_some_and(|after| sequence > after) {
            Standing::LeftToLeg
        } else if sequence > self.head {
            Standing::NotServed
        } else {
            Standing::Said
        }
    }

    /// The next range to read, if its lane has room.
    pub(crate) fn next_read(&self, room: impl Fn(Lane) -> bool) -> Option<Reading> {
        [(Lane::Live, &self.live), (Lane::Backfill, &self.late)]
            .into_iter()
            .filter(|(lane, owed)| !owed.is_empty() && room(*lane))
            .find_map(|(lane, owed)| {
                let (first, last) = owed.iter().next()?;
                let to = last.min(first.saturating_add(READ_NUMBERS));
                Some(Reading { lane, after: first.saturating_sub(1), to })
            })
    }

    /// Takes the products of a stretch of the log that are owed in a lane. Numbers that are no longer owed are
    /// skipped.
    pub(crate) fn take_stretch(&mut self, now: Micros, lane: Lane, stretch: &Stretch) -> Vec<Step> {
        let owed = if lane == Lane::Live { &mut self.live } else { &mut self.late };
        let parts = owed.within(stretch.after.0.saturating_add(1), stretch.read_to.0);
        for (first, last) in &parts {
            owed.remove(*first, *last);
        }
        let parts: Vec<(u64, u64, bool)> = parts.into_iter().flat_map(|part| self.by_want(part)).collect();
        let mut steps = Vec::new();
        for (first, last, wanted) in parts {
            let from = stretch.pieces.partition_point(|piece| piece.last() < first);
            let pieces = stretch.pieces.get(from..).unwrap_or_default();
            let gone = Gone { late_before: stretch.late_before, ..Gone::default() };
            self.take_part(now, Reason { lane, wanted }, (first, last), (pieces, gone), &mut steps);
        }
        steps
    }

    /// The held range, once its time is over.
    pub(crate) fn due_cover(&mut self, now: Micros) -> Option<Covered> {
        let cover = self.cover.take_if(|cover| now >= cover.since.plus(COVER_HOLD))?;
        Some(self.covered(cover))
    }

    /// The time at which [`due_cover`](Self::due_cover) returns a range.
    pub(crate) fn deadline(&self) -> Option<Micros> {
        self.cover.map(|cover| cover.since.plus(COVER_HOLD))
    }

    /// Splits a range into numbers that the site requested and others.
    fn by_want(&self, (first, last): (u64, u64)) -> Vec<(u64, u64, bool)> {
        if self.wanted.is_empty() {
            return vec![(first, last, false)];
        }
        let wanted = self.wanted.within(first, last).into_iter().map(|(from, to)| (from, to, true));
        let others = self.wanted.gaps(first, last).map(|(from, to)| (from, to, false));
        let mut parts: Vec<_> = wanted.chain(others).collect();
        parts.sort_unstable();
        parts
    }

    /// Takes the pieces in `first..=last`, a range that is owed entirely.
    fn take_part(
        &mut self,
        now: Micros,
        reason: Reason,
        (first, last): (u64, u64),
        (pieces, mut gone): (&[Piece], Gone),
        steps: &mut Vec<Step>,
    ) {
        let mut next = first;
        for (index, piece) in pieces.iter().enumerate() {
            let found = match piece {
                Piece::Product(entry) => {
                    self.take_product(now, reason, (next, last), entry, &mut gone, steps)
                }
                Piece::Cars(cars) => {
                    let behind = pieces.get(index.saturating_add(1)).map_or(u64::MAX, Piece::first);
                    let end = last.min(behind.saturating_sub(1));
                    cars.part(next, last).map(|part| self.take_cars(now, reason, (next, end), part, steps))
                }
            };
            match found {
                Some(taken_to) => next = taken_to.saturating_add(1),
                None => break,
            }
        }
        self.hold_cover(now, next, last, steps);
        self.wanted.remove(first, last);
        steps.extend(gone.told(&self.feed, self.epoch).map(Step::Expired));
    }

    /// Takes a product of `next..=last`; returns its number, or `None` if it lies behind the range.
    fn take_product(
        &mut self,
        now: Micros,
        reason: Reason,
        (next, last): (u64, u64),
        entry: &Entry,
        gone: &mut Gone,
        steps: &mut Vec<Step>,
    ) -> Option<u64> {
        let sequence = entry.info.key.sequence.0;
        if sequence > last {
            return None;
        }
        self.hold_cover(now, next, sequence.saturating_sub(1), steps);
        match &entry.bytes {
            Some(bytes) => {
                let previous = self.previous_of(sequence);
                self.queued.insert(sequence, sequence);
                let (info, bytes) = (entry.info.clone(), bytes.clone());
                steps.push(Step::Product(Delivery { info, bytes, previous, reason }));
            }
            // A heartbeat that is too old for the site is covered like unwanted products.
            None if entry.info.id.is_heartbeat() => self.hold_cover(now, sequence, sequence, steps),
            None => gone.insert(sequence, entry.info.stored),
        }
        Some(sequence)
    }

    /// Takes cars of `next..=end`, in which nothing else matches; returns the last number taken.
    fn take_cars(
        &mut self,
        now: Micros,
        reason: Reason,
        (next, end): (u64, u64),
        part: Part,
        steps: &mut Vec<Step>,
    ) -> u64 {
        self.hold_cover(now, next, part.first.saturating_sub(1), steps);
        let previous = self.previous_of(part.first);
        self.queued.insert(part.first, end);
        steps.push(Step::Train(Departure { part, previous, to: end, reason }));
        end
    }

    /// The `previous` of the product at `sequence`: it replaces the message for a held range that ends right
    /// before it.
    fn previous_of(&mut self, sequence: u64) -> u64 {
        let before = sequence.saturating_sub(1);
        self.cover.take_if(|cover| cover.to == before).map_or(before, |cover| cover.from.saturating_sub(1))
    }

    fn hold_cover(&mut self, now: Micros, from: u64, to: u64, steps: &mut Vec<Step>) {
        if from > to {
            return;
        }
        let held = self.cover.take();
        self.cover = Some(match held {
            Some(cover) if cover.to.saturating_add(1) == from => Cover { to, ..cover },
            _ => Cover { from, to, since: now },
        });
        if let Some(cover) = held.filter(|cover| cover.to.saturating_add(1) != from) {
            steps.push(Step::Covered(self.covered(cover)));
        }
    }

    fn covered(&self, cover: Cover) -> Covered {
        let (from, to) = (Sequence(cover.from), Sequence(cover.to));
        Covered { feed: self.feed.clone(), epoch: self.epoch, from, to }
    }

    fn owe_unsettled(&mut self, first: u64, last: u64) {
        let unsettled: RangeSet = self.settled.gaps(first.max(1), last).collect();
        self.owe(&unsettled);
    }

    fn owe(&mut self, numbers: &RangeSet) {
        let mut numbers = numbers.clone();
        numbers.subtract(&self.queued);
        for (first, last) in numbers.iter() {
            self.late.insert(first, last.min(self.began_at));
            self.live.insert(first.max(self.began_at.saturating_add(1)), last);
        }
    }

    fn unicast_to(&self) -> u64 {
        self.leg_after.map_or(self.head, |after| after.min(self.head))
    }
}

/// The time that a range without a product for the site waits for the next one. It delays a frontier, never a
/// product.
const COVER_HOLD: Micros = Micros::from_millis(100);

/// The maximum length of one read in numbers, so that no answer is long, however small the products are.
const READ_NUMBERS: u64 = 4_096;

/// The maximum number of settled ranges that the hub stores for a site's feed. Above it, the hub may send
/// products that the site holds, and the site ignores them.
const SETTLED_RANGES: usize = 65_536;
