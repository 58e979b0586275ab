use std::sync::Arc;

use downburst_model::{Epoch, FeedName, Lane, LegId, Micros, Now, Sequence, WallMicros};

use super::HubSession;
use super::serve::{Reading, Reason, Serve, Step};
use crate::spans::Spans;
use crate::{Duplicates, Entry, FeedHead, FeedPosition, FeedStart, HubOutput, LegJoin, Purpose, Stretch};

/// A subscribed feed.
#[derive(Debug)]
pub(crate) enum Feed {
    /// The log is being searched for the beginning.
    Searching { epoch: Epoch, head: Sequence, unicast_leg: LegId, position: FeedPosition },
    /// The feed was started at the site.
    Serving(Serve),
}

/// A read without an answer so far.
#[derive(Debug)]
pub(crate) struct ReadOut {
    reading: Reading,
    /// The feed was dropped or restarted since: the answer is ignored.
    stale: bool,
}

impl Feed {
    pub(super) fn deadline(&self) -> Option<Micros> {
        match self {
            Self::Searching { .. } => None,
            Self::Serving(serve) => serve.deadline(),
        }
    }

    /// True if the feed was started at the site in this epoch.
    pub(super) fn is_serving(&self, epoch: Epoch) -> bool {
        matches!(self, Self::Serving(serve) if serve.epoch == epoch)
    }

    /// The site's position in the feed, as far as reported.
    fn position(&self) -> FeedPosition {
        match self {
            Self::Searching { position, .. } => position.clone(),
            Self::Serving(serve) => serve.position(),
        }
    }

    fn epoch(&self) -> Epoch {
        match self {
            Self::Searching { epoch, .. } => *epoch,
            Self::Serving(serve) => serve.epoch,
        }
    }
}

impl HubSession {
    pub(super) fn take_feed(&mut self, feed: FeedName, epoch: Epoch, head: Sequence, unicast_leg: LegId) {
        if !self.serving.patterns.has(&feed) {
            return;
        }
        match self.serving.feeds.get_mut(&feed).filter(|known| known.epoch() == epoch) {
            Some(Feed::Searching { head: known, .. }) => *known = head.max(*known),
            Some(Feed::Serving(serve)) => {
                serve.unicast_leg = unicast_leg;
                serve.head_moved(head);
            }
            None => self.begin_feed(feed, epoch, head, unicast_leg),
        }
    }

    pub(super) fn take_found_time(&mut self, feed: &FeedName, after: Sequence) {
        let Some(outstanding) = self.serving.searches.get_mut(feed) else {
            return;
        };
        *outstanding = outstanding.saturating_sub(1);
        if *outstanding > 0 {
            return;
        }
        self.serving.searches.remove(feed);
        match self.serving.feeds.remove(feed) {
            Some(Feed::Searching { epoch, head, unicast_leg, position }) => {
                let after = after.0.min(head.0);
                self.serve_feed(feed, epoch, head, unicast_leg, after, Some(position));
            }
            Some(serving) => {
                self.serving.feeds.insert(feed.clone(), serving);
            }
            None => {}
        }
    }

    /// Takes entries that were read for this session only.
    pub(super) fn take_entries(
        &mut self,
        now: Now,
        (feed, after, read_to): (FeedName, Sequence, Sequence),
        entries: Vec<Entry>,
    ) {
        let (Some(epoch), Some(filter)) = (self.served_epoch(&feed), self.serving.patterns.filter(&feed))
        else {
            self.serving.reads.remove(&feed);
            return;
        };
        let filter = Arc::clone(filter);
        self.take_stretch(now, &Stretch::new((feed, epoch), (after, read_to), entries, filter));
    }

    pub(super) fn take_stretch(&mut self, now: Now, stretch: &Stretch) {
        let aged = self.without_aged(now, stretch);
        let stretch = aged.as_ref().unwrap_or(stretch);
        let feed = &stretch.feed;
        let Some(ReadOut { reading, stale: false }) = self.serving.reads.remove(feed) else {
            return;
        };
        let asked = stretch.after.0 <= reading.after && reading.after < stretch.read_to.0;
        if !asked || self.serving.patterns.filter(feed) != Some(&stretch.filter) {
            return;
        }
        let Some(Feed::Serving(serve)) =
            self.serving.feeds.get_mut(feed).filter(|it| it.epoch() == stretch.epoch)
        else {
            return;
        };
        let steps = serve.take_stretch(now.monotonic, reading.lane, stretch);
        self.take_steps(feed, stretch.epoch, steps);
    }

    pub(super) fn offer_leg(&mut self, join: LegJoin) {
        let (feed, served) = (join.feed.clone(), self.served_epoch(&join.feed));
        let messages = self.offers.offer(join);
        self.send_all(messages);
        if let Some(epoch) = served {
            self.release_offers(&feed, epoch);
        }
    }

    /// Offers the legs that waited for the start of the feed.
    pub(super) fn release_offers(&mut self, feed: &FeedName, epoch: Epoch) {
        let messages = self.offers.release(feed, epoch);
        self.send_all(messages);
    }

    /// The heads of the served feeds' logs.
    pub(super) fn heads(&self) -> Vec<FeedHead> {
        self.serving
            .feeds
            .values()
            .filter_map(|feed| match feed {
                Feed::Serving(serve) => Some(serve.head()),
                Feed::Searching { .. } => None,
            })
            .collect()
    }

    /// Ends a feed that is no longer subscribed. The site's position is kept: a renewed subscription in this
    /// session continues from it, as after a reconnection, instead of starting at the head.
    pub(super) fn unsubscribe(&mut self, feed: &FeedName) {
        let position = self.serving.feeds.get(feed).map(Feed::position);
        self.drop_feed(feed);
        self.serving.positions.extend(position.map(|position| (feed.clone(), position)));
    }

    fn drop_feed(&mut self, feed: &FeedName) {
        self.line.parcels.take_back(&mut self.line.outbox, feed, 0);
        self.line.parcels.take_back_resent(&mut self.line.outbox, |_, of, _| of == feed);
        self.resends.forget_answers(feed);
        self.referrals.forget(feed);
        self.serving.feeds.remove(feed);
        if let Some(read) = self.serving.reads.get_mut(feed) {
            read.stale = true;
        }
    }

    /// Ends unicast of a feed where its legs begin, or continues it if there is none.
    pub(super) fn follow_coverage(&mut self, feed: &FeedName, epoch: Epoch) {
        let after = self.offers.coverage(feed, epoch);
        if let Some(serve) = self.serving(feed, epoch) {
            serve.leave_to_legs(after);
        }
    }

    /// Takes back queued products that a leg delivers, once the site receives it.
    pub(super) fn leave_to_leg(&mut self, feed: &FeedName, epoch: Epoch, after: u64) {
        if self.serving(feed, epoch).is_none() {
            return;
        }
        let gone = self.line.parcels.take_back(&mut self.line.outbox, feed, after);
        let Some(serve) = self.serving(feed, epoch) else {
            return;
        };
        serve.leg_began(after);
        for item in gone.iter().filter(|item| item.epoch == epoch) {
            serve.taken_back(item.previous, item.first, item.last);
        }
    }

    pub(super) fn serving(&mut self, feed: &FeedName, epoch: Epoch) -> Option<&mut Serve> {
        match self.serving.feeds.get_mut(feed) {
            Some(Feed::Serving(serve)) if serve.epoch == epoch => Some(serve),
            _ => None,
        }
    }

    pub(super) fn unicast_leg(&self, feed: &FeedName) -> Option<LegId> {
        match self.serving.feeds.get(feed) {
            Some(Feed::Serving(serve)) => Some(serve.unicast_leg),
            _ => None,
        }
    }

    pub(super) fn served_epoch(&self, feed: &FeedName) -> Option<Epoch> {
        match self.serving.feeds.get(feed) {
            Some(Feed::Serving(serve)) => Some(serve.epoch),
            _ => None,
        }
    }

    /// Sends the held ranges that are due and requests reads for the available room.
    pub(super) fn advance_feeds(&mut self, now: Now) {
        let mut covered = Vec::new();
        self.serving.holds.advance(now.monotonic);
        for (feed, state) in &mut self.serving.feeds {
            let Feed::Serving(serve) = state else {
                continue;
            };
            covered.extend(serve.due_cover(now.monotonic));
            // On another stream a product could overtake the start of its feed.
            if self.serving.reads.contains_key(feed) || !self.streams.has_heard(serve.mark) {
                continue;
            }
            let (outbox, holds) = (&self.line.outbox, &self.serving.holds);
            let Some(filter) = self.serving.patterns.filter(feed) else {
                continue;
            };
            let full = self.referrals.are_full();
            let has_room = |lane| {
                holds.let_go(feed, lane)
                    && outbox.room_bytes(feed, lane) > 0
                    && !(full && lane == Lane::Backfill)
            };
            if let Some(reading) = serve.next_read(has_room) {
                let limit_bytes = outbox.room_bytes(feed, reading.lane).min(READ_BYTES);
                self.outputs.push_back(HubOutput::Read {
                    feed: feed.clone(),
                    after: Sequence(reading.after),
                    to: Sequence(reading.to),
                    limit_bytes,
                    filter: Arc::clone(filter),
                });
                self.serving.reads.insert(feed.clone(), ReadOut { reading, stale: false });
            }
        }
        for message in covered {
            self.send(message);
        }
    }

    /// Chooses the start of a feed: at the site's frontier; in a foreign epoch some minutes before the site's
    /// newest product; for a new subscription at the head.
    fn begin_feed(&mut self, feed: FeedName, epoch: Epoch, head: Sequence, unicast_leg: LegId) {
        let position = self.known_position(&feed);
        self.drop_feed(&feed);
        match position {
            Some(position) if position.epoch == epoch => {
                let after = position.settled.frontier();
                self.serve_feed(&feed, epoch, head, unicast_leg, after, Some(position));
            }
            Some(position) => {
                let time = WallMicros(position.newest_stored.0.saturating_sub(FOREIGN_OVERLAP_US));
                self.outputs.push_back(HubOutput::FindTime { feed: feed.clone(), time });
                *self.serving.searches.entry(feed.clone()).or_default() += 1;
                self.serving.feeds.insert(feed, Feed::Searching { epoch, head, unicast_leg, position });
            }
            None => self.serve_feed(&feed, epoch, head, unicast_leg, head.0, None),
        }
    }

    /// The site's position: from its hello, or from the end of an earlier subscription in this session; if the
    /// log has a new epoch, from the site's reports in this session.
    fn known_position(&mut self, feed: &FeedName) -> Option<FeedPosition> {
        let kept = self.serving.positions.remove(feed);
        self.serving.feeds.get(feed).map(Feed::position).or(kept)
    }

    fn serve_feed(
        &mut self,
        feed: &FeedName,
        epoch: Epoch,
        head: Sequence,
        unicast_leg: LegId,
        after: u64,
        position: Option<FeedPosition>,
    ) {
        let mut serve = Serve::new(feed.clone(), epoch, head, unicast_leg, after, position);
        let duplicates =
            self.serving.duplicates.get(feed).copied().filter(|rule| *rule != Duplicates::default());
        self.send(FeedStart { duplicates, ..serve.start_message(after) });
        serve.mark = self.mark();
        self.serving.feeds.insert(feed.clone(), Feed::Serving(serve));
        self.release_offers(feed, epoch);
    }

    pub(super) fn take_step(&mut self, feed: &FeedName, step: Step) {
        match step {
            Step::Covered(covered) => self.send(covered),
            Step::Expired(expired) => self.send(expired),
            Step::Product(delivery) => {
                if let Some((_, leg, purpose)) = self.account(feed, delivery.reason) {
                    let (stored, counts) = (delivery.info.stored, !delivery.info.id.is_heartbeat());
                    let ticket = self.line.parcels.push(&mut self.line.outbox, delivery, leg, purpose);
                    if counts {
                        self.serving.deadlines.queued(feed, ticket, stored);
                    }
                }
            }
            Step::Train(departure) => {
                if let Some((epoch, leg, purpose)) = self.account(feed, departure.reason) {
                    self.line.parcels.push_train(
                        &mut self.line.outbox,
                        (feed, epoch),
                        departure,
                        leg,
                        purpose,
                    );
                }
            }
        }
    }

    /// The epoch, leg and purpose under which a delivery is counted.
    fn account(&self, feed: &FeedName, reason: Reason) -> Option<(Epoch, LegId, Purpose)> {
        let Some(Feed::Serving(serve)) = self.serving.feeds.get(feed) else {
            return None;
        };
        let leg = serve.unicast_leg;
        let purpose = match self.offers.of_feed(feed).filter(|_| reason.wanted) {
            Some(leg) => Purpose::Repair { leg },
            None => Purpose::Product { feed: feed.clone(), leg },
        };
        Some((serve.epoch, leg, purpose))
    }
}

/// The overlap before the site's newest product with which a log of another epoch is sent (the site drops it by
/// duplicate key): hubs' clocks and orders of arrival differ by less.
const FOREIGN_OVERLAP_US: i64 = 600_000_000;

/// The approximate size of one read.
const READ_BYTES: usize = 1 << 20;
