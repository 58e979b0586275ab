use std::collections::{BTreeMap, BTreeSet};

use downburst_fanout::{Outbox, Parcel, Slice, StreamId};
use downburst_model::{Epoch, FeedName, LegId, Sequence};

use super::HubSession;
use super::serve::{Delivery, Departure};
use super::streams::{Flight, TakenBack};
use crate::frame::{Message, slice_header, train_header};
use crate::train::Head;
use crate::{HubEvent, ProductBegin, Purpose, ResentBegin, TrainSent};

/// The content of the outbox, by ticket. The ticket is the transfer number on the wire.
#[derive(Debug, Default)]
pub(crate) struct Parcels {
    by_ticket: BTreeMap<u32, Queued>,
}

#[derive(Debug)]
struct Queued {
    purpose: Purpose,
    load: Load,
}

#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "most are products, and a box for each would cost more than the room of the others"
)]
enum Load {
    Product(ProductBegin),
    Resent(Box<ResentBegin>),
    Train(Box<QueuedTrain>),
}

#[derive(Debug)]
struct QueuedTrain {
    head: Head,
    wire_bytes: u64,
    sent: TrainSent,
}

impl Parcels {
    /// Queues a product; returns its ticket.
    pub(crate) fn push(
        &mut self,
        outbox: &mut Outbox<Purpose>,
        delivery: Delivery,
        leg: LegId,
        purpose: Purpose,
    ) -> u32 {
        let Delivery { info, bytes, previous, reason } = delivery;
        let lane = reason.lane;
        let transfer = outbox.push(Parcel { feed: info.key.feed.clone(), class: info.class, lane, bytes });
        let begin = ProductBegin { info, previous: Some(Sequence(previous)), lane, leg, transfer };
        self.by_ticket.insert(transfer, Queued { purpose, load: Load::Product(begin) });
        transfer
    }

    /// Queues a product of a resend: it makes no statement about other numbers.
    pub(crate) fn push_resent(
        &mut self,
        outbox: &mut Outbox<Purpose>,
        resend: u64,
        delivery: Delivery,
        leg: LegId,
        purpose: Purpose,
    ) {
        let Delivery { info, bytes, reason, .. } = delivery;
        let lane = reason.lane;
        let transfer = outbox.push(Parcel { feed: info.key.feed.clone(), class: info.class, lane, bytes });
        let begin = ProductBegin { info, previous: None, lane, leg, transfer };
        let load = Load::Resent(Box::new(ResentBegin { resend, begin }));
        self.by_ticket.insert(transfer, Queued { purpose, load });
    }

    /// Queues a train: one parcel, and one slice.
    pub(crate) fn push_train(
        &mut self,
        outbox: &mut Outbox<Purpose>,
        (feed, epoch): (&FeedName, Epoch),
        departure: Departure,
        leg: LegId,
        purpose: Purpose,
    ) {
        let Departure { part, previous, to, reason } = departure;
        let (class, lane) = (part.cars.class, reason.lane);
        let base = part.cars.base.clone();
        let head = Head { feed: feed.clone(), epoch, class, lane, leg, previous, to, base };
        let sent = TrainSent {
            feed: feed.clone(),
            epoch,
            first: Sequence(part.first),
            last: Sequence(part.last),
            leg,
            lane,
            products: part.products,
            product_bytes: part.product_bytes,
        };
        let wire_bytes = part.bytes.len() as u64;
        let ticket = outbox.push(Parcel { feed: feed.clone(), class, lane, bytes: part.bytes.into() });
        let load = Load::Train(Box::new(QueuedTrain { head, wire_bytes, sent }));
        self.by_ticket.insert(ticket, Queued { purpose, load });
    }

    /// Removes a parcel that was begun on a stream that ended.
    pub(crate) fn lose(&mut self, ticket: u32) -> Option<Flight> {
        self.by_ticket.remove(&ticket).map(|queued| queued.flight())
    }

    /// Takes back the parcels of a feed behind `after` that have not begun.
    pub(crate) fn take_back(
        &mut self,
        outbox: &mut Outbox<Purpose>,
        feed: &FeedName,
        after: u64,
    ) -> Vec<TakenBack> {
        let unwanted = |ticket: u32| {
            let spoken =
                self.by_ticket.get(&ticket).filter(|queued| queued.feed() == feed && !queued.is_resent());
            spoken.is_some_and(|queued| queued.numbers().last > after)
        };
        let gone = outbox.withdraw(unwanted);
        let gone = gone.iter().filter_map(|ticket| self.by_ticket.remove(ticket));
        gone.map(|queued| queued.numbers()).collect()
    }

    /// Takes back the unwanted products of a feed that have not begun, and all of its trains that have not begun.
    pub(crate) fn take_back_unwanted(
        &mut self,
        outbox: &mut Outbox<Purpose>,
        feed: &FeedName,
        wants: impl Fn(&str) -> bool,
    ) -> Vec<TakenBack> {
        let unwanted = |ticket: u32| {
            let queued = self.by_ticket.get(&ticket).filter(|queued| queued.feed() == feed);
            queued.is_some_and(|queued| match &queued.load {
                Load::Product(begin) => !wants(begin.info.id.as_str()),
                Load::Train(_) => true,
                Load::Resent(_) => false,
            })
        };
        let gone = outbox.withdraw(unwanted);
        let gone = gone.iter().filter_map(|ticket| self.by_ticket.remove(ticket));
        gone.map(|queued| queued.numbers()).collect()
    }

    /// Takes back the parcels with these tickets that have not begun.
    pub(crate) fn take_back_tickets(
        &mut self,
        outbox: &mut Outbox<Purpose>,
        tickets: &BTreeSet<u32>,
    ) -> Vec<TakenBack> {
        let gone = outbox.withdraw(|ticket| tickets.contains(&ticket));
        let gone = gone.iter().filter_map(|ticket| self.by_ticket.remove(ticket));
        gone.map(|queued| queued.numbers()).collect()
    }

    /// Takes back unwanted products of resends that have not begun, by the resend's number and the product's
    /// feed and identifier. Returns the resends and the numbers of their products.
    pub(crate) fn take_back_resent(
        &mut self,
        outbox: &mut Outbox<Purpose>,
        is_unwanted: impl Fn(u64, &FeedName, &str) -> bool,
    ) -> Vec<(u64, u64)> {
        let unwanted = |ticket: u32| match self.by_ticket.get(&ticket).map(|queued| &queued.load) {
            Some(Load::Resent(resent)) => {
                let info = &resent.begin.info;
                is_unwanted(resent.resend, &info.key.feed, info.id.as_str())
            }
            _ => false,
        };
        let gone = outbox.withdraw(unwanted);
        let gone = gone.iter().filter_map(|ticket| self.by_ticket.remove(ticket));
        let numbers = gone.filter_map(|queued| match queued.load {
            Load::Resent(resent) => Some((resent.resend, resent.begin.info.key.sequence.0)),
            Load::Product(_) | Load::Train(_) => None,
        });
        numbers.collect()
    }
}

impl Queued {
    fn is_resent(&self) -> bool {
        matches!(self.load, Load::Resent(_))
    }

    fn feed(&self) -> &FeedName {
        match &self.load {
            Load::Product(begin) => &begin.info.key.feed,
            Load::Resent(resent) => &resent.begin.info.key.feed,
            Load::Train(train) => &train.head.feed,
        }
    }

    fn flight(&self) -> Flight {
        let (bytes, resend) = match &self.load {
            Load::Product(begin) => (begin.info.size, None),
            Load::Resent(resent) => (resent.begin.info.size, Some(resent.resend)),
            Load::Train(train) => (train.wire_bytes, None),
        };
        Flight { feed: self.feed().clone(), numbers: self.numbers(), bytes, resend }
    }

    fn numbers(&self) -> TakenBack {
        match &self.load {
            Load::Resent(resent) => {
                let key = &resent.begin.info.key;
                TakenBack { epoch: key.epoch, previous: 0, first: key.sequence.0, last: key.sequence.0 }
            }
            Load::Product(ProductBegin { info, previous, .. }) => {
                let (epoch, sequence) = (info.key.epoch, info.key.sequence.0);
                let previous = previous.map_or(0, |previous| previous.0);
                TakenBack { epoch, previous, first: sequence, last: sequence }
            }
            Load::Train(train) => {
                let Head { epoch, previous, to, .. } = train.head;
                TakenBack { epoch, previous, first: train.sent.first.0, last: to }
            }
        }
    }
}

impl HubSession {
    pub(super) fn write_slice(&mut self, stream: StreamId, slice: Slice) {
        let Some(Queued { purpose, load }) = self.line.parcels.by_ticket.get(&slice.ticket) else {
            return;
        };
        let purpose = purpose.clone();
        if !slice.live {
            self.line.late_pacer.charge(slice.bytes.len());
            self.line.late_bytes = self.line.late_bytes.saturating_add(slice.bytes.len() as u64);
        }
        match load {
            Load::Product(begin) if slice.first => {
                let (key, begin) = (begin.info.key.clone(), Message::from(begin.clone()).encode());
                self.write_on(stream, begin, purpose.clone());
                self.event(HubEvent::FirstByte { key });
                self.write_bytes(stream, &slice, purpose);
            }
            Load::Resent(resent) if slice.first => {
                let begin = Message::from(ResentBegin::clone(resent)).encode();
                self.write_on(stream, begin, purpose.clone());
                self.write_bytes(stream, &slice, purpose);
            }
            Load::Product(_) | Load::Resent(_) => self.write_bytes(stream, &slice, purpose),
            Load::Train(train) => {
                let header = train_header(&train.head, slice.bytes.len());
                self.streams.loads(stream, slice.bytes.len());
                self.write_on(stream, header, purpose.clone());
                self.write_on(stream, slice.bytes, purpose);
            }
        }
        if slice.last {
            self.finish(stream, slice.ticket);
        }
    }

    fn write_bytes(&mut self, stream: StreamId, slice: &Slice, purpose: Purpose) {
        self.streams.loads(stream, slice.bytes.len());
        if !slice.bytes.is_empty() {
            let header = slice_header(slice.ticket, slice.offset, slice.bytes.len());
            self.write_on(stream, header, purpose.clone());
            self.write_on(stream, slice.bytes.clone(), purpose);
        }
    }

    fn finish(&mut self, stream: StreamId, ticket: u32) {
        let Some(queued) = self.line.parcels.by_ticket.remove(&ticket) else {
            return;
        };
        if let Load::Product(begin) = &queued.load {
            let key = &begin.info.key;
            self.serving.deadlines.sent(&key.feed, key.sequence.0);
        }
        let flight = queued.flight();
        // On the first stream later messages arrive later; they may overtake a product on another stream.
        if stream == StreamId::FIRST {
            self.landed(&flight);
        } else {
            self.streams.flies(stream, flight);
        }
        if let Load::Product(ProductBegin { info, .. }) = &queued.load
            && info.id.is_heartbeat()
        {
            return;
        }
        self.event(match queued.load {
            Load::Product(ProductBegin { info, lane, leg, .. }) => {
                HubEvent::Sent { key: info.key, leg, lane, size: info.size }
            }
            Load::Resent(resent) => {
                let ProductBegin { info, lane, leg, .. } = resent.begin;
                HubEvent::Sent { key: info.key, leg, lane, size: info.size }
            }
            Load::Train(train) => HubEvent::TrainSent(train.sent),
        });
    }
}
