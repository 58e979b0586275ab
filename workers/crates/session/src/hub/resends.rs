use std::collections::{BTreeMap, BTreeSet};

use downburst_model::bounds::INTEGER_MAX;
use downburst_model::{FeedName, IdFilter, Lane, Micros, Now, RangeSet, Sequence, is_heartbeat};

use super::HubSession;
use super::serve::{Delivery, Reason};
use crate::patterns::Selection;
use crate::spans::Spans;
use crate::{
    Entry, HubEvent, HubOutput, Outcome, Purpose, ResendEnd, ResendLeft, ResendOrder, ResentEnded,
    ResentFailed,
};

/// The resends to one site.
///
/// A number of a resend is *unread*, *on its way* (queued or sent, not answered), *failed* or over. Numbers
/// that the site could not store, or that could not be read, become unread again after a pause. A resend ends
/// when all of its numbers are over.
#[derive(Debug, Default)]
pub(crate) struct Resends {
    under_way: BTreeMap<u64, Resend>,
    /// The resends that ended in this session: they do not start again if the report of their end is slow.
    ended: BTreeSet<u64>,
    read: Option<u64>,
}

#[derive(Debug)]
struct Resend {
    order: ResendOrder,
    wanted: Option<Selection>,
    had: Vec<Selection>,
    unread: RangeSet,
    on_its_way: RangeSet,
    failed: RangeSet,
    read_failed_at: Option<Micros>,
    end: ResendEnd,
}

impl Resends {
    /// Takes the whole set of present orders.
    fn set(&mut self, orders: Vec<ResendOrder>) {
        let wanted: BTreeSet<u64> = orders.iter().map(|order| order.resend).collect();
        self.under_way.retain(|resend, _| wanted.contains(resend));
        self.ended.retain(|resend| wanted.contains(resend));
        self.under_way.retain(|resend, known| {
            orders.iter().any(|order| order.resend == *resend && order.epoch == known.order.epoch)
        });
        for order in orders {
            match self.under_way.get_mut(&order.resend) {
                Some(known) => known.limit(order.within),
                None if self.ended.contains(&order.resend) => {}
                None => drop(self.under_way.insert(order.resend, Resend::new(order))),
            }
        }
    }

    /// True if the resend includes the product with this id.
    pub(crate) fn want(&self, resend: u64, id: &str) -> bool {
        self.under_way.get(&resend).is_some_and(|found| found.wants(id))
    }

    /// A queued product is no longer for the site.
    pub(crate) fn leave_out(&mut self, resend: u64, number: u64) {
        if let Some(found) = self.under_way.get_mut(&resend) {
            found.on_its_way.remove(number, number);
        }
    }

    /// The site drops the feed and the products on their way, and will not answer them: they become unread again.
    pub(crate) fn forget_answers(&mut self, feed: &FeedName) {
        for resend in self.under_way.values_mut().filter(|resend| resend.order.feed == *feed) {
            for (first, last) in std::mem::take(&mut resend.on_its_way).iter() {
                resend.unread.insert(first, last);
            }
        }
    }

    fn deadline(&self) -> Option<Micros> {
        self.under_way.values().filter_map(|resend| resend.read_failed_at).min()
    }
}

impl Resend {
    fn new(order: ResendOrder) -> Self {
        let (unread, end) = match order.left.clone().filter(|left| left.epoch == order.epoch) {
            Some(left) => (left.numbers, left.end),
            None => (whole(&order), ResendEnd { resend: order.resend, products: 0, bytes: 0, expired: 0 }),
        };
        Self {
            wanted: wanted(&order),
            had: order.had.iter().filter_map(wish).collect(),
            unread,
            on_its_way: RangeSet::new(),
            failed: RangeSet::new(),
            read_failed_at: None,
            end,
            order,
        }
    }

    /// Applies a change of the site's rights.
    fn limit(&mut self, within: Option<Vec<IdFilter>>) {
        if self.order.within != within {
            self.order.within = within;
            self.wanted = wanted(&self.order);
        }
    }

    fn wants(&self, id: &str) -> bool {
        !is_heartbeat(id)
            && self.wanted.as_ref().is_some_and(|wish| wish.matches(id))
            && !self.had.iter().any(|wish| wish.matches(id))
    }

    fn left(&self) -> ResendLeft {
        let mut numbers = self.unread.clone();
        numbers.add(&self.on_its_way);
        numbers.add(&self.failed);
        ResendLeft { epoch: self.order.epoch, numbers, end: self.end }
    }

    fn is_over(&self) -> bool {
        self.unread.is_empty() && self.on_its_way.is_empty() && self.failed.is_empty()
    }

    fn read_failed(&mut self, now: Micros) {
        if self.read_failed_at.take_if(|at| *at <= now).is_some() {
            for (first, last) in std::mem::take(&mut self.failed).iter() {
                self.unread.insert(first, last);
            }
        }
    }

    /// The log could not be read: the unread numbers are read after a pause.
    fn could_not_read(&mut self, now: Micros) {
        for (first, last) in std::mem::take(&mut self.unread).iter() {
            self.failed.insert(first, last);
        }
        self.read_failed_at.get_or_insert(now.plus(FAILED_PAUSE));
    }

    /// The next range to read, while little is on its way.
    fn next_read(&self) -> Option<(u64, u64)> {
        (self.on_its_way.count() < ON_ITS_WAY).then(|| self.unread.iter().next()).flatten()
    }
}

/// The ids that an order selects within the site's rights; `None` if its pattern can't be compiled.
fn wanted(order: &ResendOrder) -> Option<Selection> {
    wish(&order.wanted).map(|wanted| wanted.within(order.within.as_deref()))
}

fn wish(filter: &IdFilter) -> Option<Selection> {
    Selection::compile(&filter.pattern, filter.not_pattern.as_deref())
}

fn whole(order: &ResendOrder) -> RangeSet {
    let mut numbers = RangeSet::new();
    if order.to > order.after {
        numbers.insert(order.after.0.saturating_add(1), order.to.0);
    }
    numbers
}

impl ResendOrder {
    /// The selection of the order, for callers that count products and send none: the remaining numbers and a
    /// predicate of the ids.
    pub fn content(&self) -> (RangeSet, impl Fn(&str) -> bool + Send + Sync + use<>) {
        let resend = Resend::new(self.clone());
        (resend.unread.clone(), move |id: &str| resend.wants(id))
    }
}

impl HubSession {
    /// The rest of each active resend, by number: the next session with the site continues from it.
    pub fn resends_left(&self) -> BTreeMap<u64, ResendLeft> {
        self.resends.under_way.iter().map(|(resend, found)| (*resend, found.left())).collect()
    }

    pub(super) fn set_resends(&mut self, orders: Vec<ResendOrder>) {
        self.resends.set(orders);
        self.take_back_resent();
    }

    pub(super) fn take_resend_entries(
        &mut self,
        now: Now,
        resend: u64,
        entries: Vec<Entry>,
        after: u64,
        read_to: u64,
    ) {
        self.resends.read = None;
        let Some(found) = self.resends.under_way.get_mut(&resend) else {
            return;
        };
        if read_to <= after {
            return found.could_not_read(now.monotonic);
        }
        found.unread.remove(after.saturating_add(1), read_to);
        let epoch = found.order.epoch;
        let mut deliveries = Vec::new();
        for Entry { info, bytes } in entries {
            let number = info.key.sequence.0;
            if info.key.epoch != epoch || !found.wants(info.id.as_str()) || found.on_its_way.contains(number)
            {
                continue;
            }
            match bytes {
                Some(bytes) => {
                    found.on_its_way.insert(number, number);
                    let reason = Reason { lane: found.order.lane, wanted: false };
                    deliveries.push(Delivery { info, bytes, previous: 0, reason });
                }
                None => found.end.expired = found.end.expired.saturating_add(1),
            }
        }
        for delivery in deliveries {
            self.queue_again(resend, delivery);
        }
    }

    pub(super) fn take_resent_ended(&mut self, ended: &ResentEnded) {
        let Some(found) = self.resends.under_way.get_mut(&ended.resend) else {
            return;
        };
        let number = ended.key.sequence.0;
        if ended.key.epoch != found.order.epoch || !found.on_its_way.contains(number) {
            return;
        }
        found.on_its_way.remove(number, number);
        match ended.outcome {
            Outcome::Stored | Outcome::Held => {
                found.end.products = found.end.products.saturating_add(1);
                found.end.bytes = found.end.bytes.saturating_add(ended.size).min(INTEGER_MAX);
            }
            Outcome::Rejected | Outcome::Expired | Outcome::LateAtHub | Outcome::LateAtSite => {
                found.end.expired = found.end.expired.saturating_add(1)
            }
        }
        if ended.outcome == Outcome::Rejected {
            self.event(HubEvent::ResentRejected(ended.key.clone()));
        }
    }

    pub(super) fn take_resent_failed(&mut self, now: Now, failed: &ResentFailed) {
        let Some(found) = self.resends.under_way.get_mut(&failed.resend) else {
            return;
        };
        for (first, last) in failed.sequences.iter() {
            for (first, last) in found.on_its_way.within(first, last) {
                found.on_its_way.remove(first, last);
                found.failed.insert(first, last);
                found.read_failed_at.get_or_insert(now.monotonic.plus(FAILED_PAUSE));
            }
        }
    }

    /// Reports resends that are over, and requests a read for the available room.
    pub(super) fn advance_resends(&mut self, now: Now) {
        let over: Vec<u64> =
            self.resends.under_way.iter().filter(|(_, it)| it.is_over()).map(|(resend, _)| *resend).collect();
        for resend in over {
            if let Some(found) = self.resends.under_way.remove(&resend) {
                self.resends.ended.insert(resend);
                self.event(HubEvent::Resent(found.end));
            }
        }
        if self.resends.read.is_some() {
            return;
        }
        for (resend, found) in &mut self.resends.under_way {
            found.read_failed(now.monotonic);
            let feed = &found.order.feed;
            let served = self.serving.feeds.get(feed).is_some_and(|it| it.is_serving(found.order.epoch));
            let room = self.line.outbox.room_bytes(feed, Lane::Resend);
            if let Some((first, last)) = found.next_read().filter(|_| served && room > 0) {
                self.resends.read = Some(*resend);
                self.outputs.push_back(HubOutput::ReadResend {
                    resend: *resend,
                    feed: feed.clone(),
                    after: Sequence(first.saturating_sub(1)),
                    to: Sequence(last),
                    limit_bytes: room.min(READ_BYTES),
                });
                return;
            }
        }
    }

    pub(super) fn resends_deadline(&self) -> Option<Micros> {
        self.resends.deadline()
    }

    /// A product of a resend was lost with its stream: it is read again.
    pub(super) fn lost_resent(&mut self, resend: u64, number: u64) {
        if let Some(found) = self.resends.under_way.get_mut(&resend)
            && found.on_its_way.contains(number)
        {
            found.on_its_way.remove(number, number);
            found.unread.insert(number, number);
        }
    }

    fn queue_again(&mut self, resend: u64, delivery: Delivery) {
        let feed = delivery.info.key.feed.clone();
        if let Some(leg) = self.unicast_leg(&feed) {
            let purpose = Purpose::Product { feed, leg };
            self.line.parcels.push_resent(&mut self.line.outbox, resend, delivery, leg, purpose);
        }
    }
}

/// The maximum number of unanswered products of one resend: a reconnecting site has to check that many.
const ON_ITS_WAY: u64 = 4_096;

/// The approximate size of one read.
const READ_BYTES: usize = 1 << 20;

/// The pause after a failure: quick retries do not help a site with a full disk.
const FAILED_PAUSE: Micros = Micros::from_secs(5);
