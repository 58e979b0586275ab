use std::sync::Arc;

use downburst_model::{Epoch, FeedName, LegId, Micros, Now, Sequence, WallMicros};

use super::HubSession;
use super::serve::{Reading, Reason, Serve, Step};
use crate::spans::Spans;
use crate::{Duplicates, Entry, FeedHead, FeedPosition, FeedStart, HubOutput, LegJoin, Purpose, Stretch};

/// A subscribed feed.
#[derive(Debug)]
pub(crate) enum Feed {
    /// The log is searched for the place to begin.
    Searching { epoch: Epoch, head: Sequence, unicast_leg: LegId, position: FeedPosition },
    /// The site was told where the feed begins.
    Serving(Serve),
}

/// A read that was not answered yet.
#[derive(Debug)]
pub(crate) struct ReadOut {
    reading: Reading,
    /// The feed was dropped or began again meanwhile: the answer is worth nothing.
    stale: bool,
}

impl Feed {
    pub(super) fn deadline(&self) -> Option<Micros> {
        match self {
            Self::Searching { .. } => None,
            Self::Serving(serve) => serve.deadline(),
        }
    }

    /// True if the site was told where the feed begins in this epoch.
    pub(super) fn is_serving(&self, epoch: Epoch) -> bool {
        matches!(self, Self::Serving(serve) if serve.epoch == epoch)
    }

    /// Where the site stands in the feed, as far as it reported.
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

    /// Takes entries that were read for this session alone.
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
        for step in steps {
            self.take_step(feed, step);
        }
    }

    pub(super) fn offer_leg(&mut self, join: LegJoin) {
        let (feed, served) = (join.feed.clone(), self.served_epoch(&join.feed));
        let messages = self.offers.offer(join);
        self.send_all(messages);
        if let Some(epoch) = served {
            self.release_offers(&feed, epoch);
        }
    }

    /// Offers the legs that waited for the feed.
    pub(super) fn release_offers(&mut self, feed: &FeedName, epoch: Epoch) {
        let messages = self.offers.release(feed, epoch);
        self.send_all(messages);
    }

    /// Where the logs of the feeds that are served end.
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

    /// Ends a feed that is no longer subscribed. The site's position is kept: a subscription that comes back in this
    /// session goes on from it, as it does after a reconnection, instead of beginning at the head.
    pub(super) fn unsubscribe(&mut self, feed: &FeedName) {
        let position = self.serving.feeds.get(feed).map(Feed::position);
        self.drop_feed(feed);
        self.serving.positions.extend(position.map(|position| (feed.clone(), position)));
    }

    fn drop_feed(&mut self, feed: &FeedName) {
        self.line.parcels.take_back(&mut self.line.outbox, feed, 0);
        self.line.parcels.take_back_resent(&mut self.line.outbox, |_, of, _| of == feed);
        self.resends.forget_answers(feed);
        self.serving.feeds.remove(feed);
        if let Some(read) = self.serving.reads.get_mut(feed) {
            read.stale = true;
        }
    }

    /// Ends unicast of a feed where its legs begin, or lets it go on where none does.
    pub(super) fn follow_coverage(&mut self, feed: &FeedName, epoch: Epoch) {
        let after = self.offers.coverage(feed, epoch);
        if let Some(serve) = self.serving(feed, epoch) {
            serve.leave_to_legs(after);
        }
    }

    /// Takes back what a leg brings that the site began to hear.
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

    /// Flushes what was held back and asks for what there is room for.
    pub(super) fn advance_feeds(&mut self, now: Now) {
        let mut covered = Vec::new();
        for (feed, state) in &mut self.serving.feeds {
            let Feed::Serving(serve) = state else {
                continue;
            };
            covered.extend(serve.due_cover(now.monotonic));
            // By another stream a product could come before the word that its feed begins.
            if self.serving.reads.contains_key(feed) || !self.streams.has_heard(serve.mark) {
                continue;
            }
            let outbox = &self.line.outbox;
            let Some(filter) = self.serving.patterns.filter(feed) else {
                continue;
            };
            if let Some(reading) = serve.next_read(|lane| outbox.room_bytes(feed, lane) > 0) {
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

    /// Decides where a feed begins: at the site's frontier; in a foreign epoch some minutes before the newest
    /// product it holds; for a fresh subscription at the head.
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

    /// Where the site stands: from its hello, or from where an earlier subscription of this session ended; if the log
    /// began anew, from what the site reported in this session.
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

    fn take_step(&mut self, feed: &FeedName, step: Step) {
        match step {
            Step::Covered(covered) => self.send(covered),
            Step::Expired(expired) => self.send(expired),
            Step::Product(delivery) => {
                if let Some((_, leg, purpose)) = self.account(feed, delivery.reason) {
                    self.line.parcels.push(&mut self.line.outbox, delivery, leg, purpose);
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

    /// What a delivery is counted under.
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

/// How far before the newest product a site holds a log of another epoch is sent again (the overlap is dropped there by
/// duplicate key): hubs' clocks and orders of arrival differ by less.
const FOREIGN_OVERLAP_US: i64 = 600_000_000;

/// How much one read brings, about.
const READ_BYTES: usize = 1 << 20;
