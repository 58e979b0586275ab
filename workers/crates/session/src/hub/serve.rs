use downburst_model::{Epoch, FeedName, Lane, LegId, Micros, ProductInfo, RangeSet, Sequence, WallMicros};

use crate::spans::Spans;
use crate::stretch::{Part, Piece};
use crate::{Covered, Entry, Expired, FeedHead, FeedPosition, FeedStart, Standing, Stretch};

/// What one site is owed of one feed by unicast.
///
/// Every number of the log is in one of these states: *owed* (to be read from the log), *queued* (in the
/// outbox), *left to a leg* (above `leg_after`), or *said* (sent, covered, expired, or settled at the site
/// before). Numbers become owed when the head moves, when a leg ends and when the site wants them; ranges
/// read from the log leave the set. A product on a data connection stays *queued* until the site took it:
/// queued numbers are never owed, and only owed ones are ever called covered or expired, so no message on one
/// stream settles a product on its way by another.
#[derive(Debug)]
pub(crate) struct Serve {
    pub(crate) epoch: Epoch,
    pub(crate) unicast_leg: LegId,
    /// The hub's stored stamp of the newest product the site is known to hold.
    pub(crate) newest_stored: WallMicros,
    /// Nothing is read before the site answered this mark: until then it may not know that the feed begins.
    pub(crate) mark: u32,
    feed: FeedName,
    head: u64,
    /// The head when the session began to serve the feed: what lies up to here is backfill.
    began_at: u64,
    /// The site was told that the feed begins behind this.
    began_after: u64,
    live: RangeSet,
    late: RangeSet,
    queued: RangeSet,
    /// Owed because the site asked.
    wanted: RangeSet,
    /// Settled at the site, as far as it said so.
    settled: RangeSet,
    /// A multicast leg brings everything behind this.
    leg_after: Option<u64>,
    cover: Option<Cover>,
}

/// What follows from reading the log.
#[derive(Debug)]
pub(crate) enum Step {
    Covered(Covered),
    Expired(Expired),
    Product(Delivery),
    Train(Departure),
}

/// A product to be queued.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) info: ProductInfo,
    pub(crate) bytes: bytes::Bytes,
    pub(crate) previous: u64,
    pub(crate) reason: Reason,
}

/// Small products to be queued together.
#[derive(Debug)]
pub(crate) struct Departure {
    pub(crate) part: Part,
    pub(crate) previous: u64,
    /// Nothing is for the site behind the last car up to here.
    pub(crate) to: u64,
    pub(crate) reason: Reason,
}

/// Why something is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reason {
    pub(crate) lane: Lane,
    /// The site asked for it.
    pub(crate) wanted: bool,
}

/// A range to be read from the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) lane: Lane,
    pub(crate) after: u64,
    pub(crate) to: u64,
}

/// Numbers without anything for the site, held back a moment so that many become one message.
#[derive(Clone, Copy, Debug)]
struct Cover {
    from: u64,
    to: u64,
    since: Micros,
}

impl Serve {
    /// Begins behind `after`: what the site reported settled beyond it is not owed.
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

    /// The message that begins the feed at the site.
    pub(crate) fn start_message(&self, after: u64) -> FeedStart {
        FeedStart { feed: self.feed.clone(), epoch: self.epoch, after: Sequence(after), duplicates: None }
    }

    /// Where the site stands, as far as it reported.
    pub(crate) fn position(&self) -> FeedPosition {
        FeedPosition {
            feed: self.feed.clone(),
            epoch: self.epoch,
            settled: self.settled(),
            newest_stored: self.newest_stored,
        }
    }

    /// The end of the log, as far as this session was told.
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

    /// Legs bring everything behind `after` (`None`: no leg does).
    pub(crate) fn leave_to_legs(&mut self, after: Option<u64>) {
        self.leg_after = after;
    }

    /// A leg that the site began to hear brings everything behind `after`: it is owed no more.
    pub(crate) fn leg_began(&mut self, after: u64) {
        for set in [&mut self.live, &mut self.late, &mut self.wanted] {
            set.remove(after.saturating_add(1), u64::MAX);
        }
    }

    /// A leg ended; what it announced without a hole ends at `known_to`.
    pub(crate) fn leg_ended(&mut self, known_to: u64) {
        // The leg may be ahead of what this session was told of the log.
        self.settled.insert(self.head.saturating_add(1), known_to);
        self.owe_unsettled(known_to.saturating_add(1), self.unicast_to());
    }

    /// What was queued for nothing was taken back; what it said about the numbers before and behind it was not sent.
    pub(crate) fn taken_back(&mut self, previous: u64, first: u64, last: u64) {
        self.queued.remove(first, last);
        self.owe_unsettled(previous.saturating_add(1), last.min(self.unicast_to()));
    }

    /// Queued products were taken back because the site wants less: the numbers are read again, including
    /// those that a leg was to bring and the site asked for.
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

    /// The site asks for these numbers. Those on their way are not read again.
    pub(crate) fn want(&mut self, numbers: &RangeSet) {
        let mut asked: RangeSet = numbers.within(1, self.head).into_iter().collect();
        asked.subtract(&self.queued);
        self.wanted.add(&asked);
        self.owe(&asked);
    }

    /// The site said that all of these are settled.
    pub(crate) fn acknowledge(&mut self, first: u64, last: u64) {
        if self.settled.range_count() < SETTLED_RANGES {
            self.settled.insert(first, last);
        }
        for set in [&mut self.live, &mut self.late, &mut self.wanted] {
            set.remove(first, last);
        }
    }

    /// What the site has no need of any more: what it settled, and what lies before the beginning that it was told.
    pub(crate) fn settled(&self) -> RangeSet {
        let mut settled = self.settled.clone();
        settled.insert(0, self.began_after);
        settled
    }

    /// Where one number stands.
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

    /// What to read next, if the lane has room.
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

    /// Takes what a stretch of the log holds of what is owed in a lane. What is no longer owed is passed over.
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
            self.take_part(now, Reason { lane, wanted }, (first, last), pieces, &mut steps);
        }
        steps
    }

    /// The held range, once it was held long enough.
    pub(crate) fn due_cover(&mut self, now: Micros) -> Option<Covered> {
        let cover = self.cover.take_if(|cover| now >= cover.since.plus(COVER_HOLD))?;
        Some(self.covered(cover))
    }

    /// When [`due_cover`](Self::due_cover) has something to say.
    pub(crate) fn deadline(&self) -> Option<Micros> {
        self.cover.map(|cover| cover.since.plus(COVER_HOLD))
    }

    /// Cuts a range where numbers that the site asked for begin and end.
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

    /// Takes the pieces in `first..=last`, of which everything is owed.
    fn take_part(
        &mut self,
        now: Micros,
        reason: Reason,
        (first, last): (u64, u64),
        pieces: &[Piece],
        steps: &mut Vec<Step>,
    ) {
        let mut next = first;
        let mut expired = RangeSet::new();
        for (index, piece) in pieces.iter().enumerate() {
            let found = match piece {
                Piece::Product(entry) => {
                    self.take_product(now, reason, (next, last), entry, &mut expired, steps)
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
        if !expired.is_empty() {
            let (feed, epoch) = (self.feed.clone(), self.epoch);
            steps.push(Step::Expired(Expired { feed, epoch, sequences: expired }));
        }
    }

    /// Takes a product of `next..=last`; answers its number, or `None` if it lies behind.
    fn take_product(
        &mut self,
        now: Micros,
        reason: Reason,
        (next, last): (u64, u64),
        entry: &Entry,
        expired: &mut RangeSet,
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
            // One that is too old for the site is covered like what it does not want.
            None if entry.info.id.is_heartbeat() => self.hold_cover(now, sequence, sequence, steps),
            None => {
                expired.insert(sequence, sequence);
            }
        }
        Some(sequence)
    }

    /// Takes cars of `next..=end`, in which nothing else matches; answers how far that brings.
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

    /// The `previous` of the product at `sequence`: it says what a held range that ends before it would say.
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

/// How long a range without anything for the site waits for the next one. It delays a frontier, never a product.
const COVER_HOLD: Micros = Micros::from_millis(100);

/// How many numbers one read spans at most, so that no answer is long, however small the products are.
const READ_NUMBERS: u64 = 4_096;

/// The number of ranges that the hub remembers of a site's products. Beyond it, the site may be sent products
/// that it holds, and ignores them.
const SETTLED_RANGES: usize = 65_536;
