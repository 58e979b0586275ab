use std::collections::BTreeMap;

use downburst_fanout::{Outbox, Parcel, Slice, StreamId};
use downburst_model::{FeedName, LegId, ProductInfo, Sequence};

use super::HubSession;
use super::serve::Delivery;
use super::streams::Flight;
use crate::frame::{Message, slice_header};
use crate::{HubEvent, ProductBegin, Purpose};

/// What lies in the outbox, by ticket. The ticket is the transfer number on the wire.
#[derive(Debug, Default)]
pub(crate) struct Parcels {
    by_ticket: BTreeMap<u32, Queued>,
}

#[derive(Debug)]
struct Queued {
    begin: ProductBegin,
    purpose: Purpose,
}

/// A product taken back: which, and what its begin frame would have said about the numbers before it.
pub(crate) struct TakenBack {
    pub(crate) info: ProductInfo,
    pub(crate) previous: u64,
}

impl Parcels {
    /// Queues a product.
    pub(crate) fn push(
        &mut self,
        outbox: &mut Outbox<Purpose>,
        delivery: Delivery,
        leg: LegId,
        purpose: Purpose,
    ) {
        let Delivery { info, bytes, previous, lane, .. } = delivery;
        let transfer = outbox.push(Parcel { feed: info.key.feed.clone(), class: info.class, lane, bytes });
        let begin = ProductBegin { info, previous: Some(Sequence(previous)), lane, leg, transfer };
        self.by_ticket.insert(transfer, Queued { begin, purpose });
    }

    /// Takes out a product that was begun on a stream that ended.
    pub(crate) fn lose(&mut self, ticket: u32) -> Option<Flight> {
        self.by_ticket.remove(&ticket).map(|queued| queued.begin.into())
    }

    /// Takes back what was not begun of a feed, behind `after`.
    pub(crate) fn take_back(
        &mut self,
        outbox: &mut Outbox<Purpose>,
        feed: &FeedName,
        after: u64,
    ) -> Vec<TakenBack> {
        let unwanted = |ticket: u32| {
            self.by_ticket.get(&ticket).is_some_and(|queued| {
                let key = &queued.begin.info.key;
                key.feed == *feed && key.sequence.0 > after
            })
        };
        let gone = outbox.withdraw(unwanted);
        gone.iter()
            .filter_map(|ticket| self.by_ticket.remove(ticket))
            .map(|queued| TakenBack {
                previous: queued.begin.previous.map_or(0, |previous| previous.0),
                info: queued.begin.info,
            })
            .collect()
    }
}

impl HubSession {
    pub(super) fn write_slice(&mut self, stream: StreamId, slice: Slice) {
        let Some(queued) = self.parcels.by_ticket.get(&slice.ticket) else {
            return;
        };
        let (purpose, key) = (queued.purpose.clone(), queued.begin.info.key.clone());
        if slice.first {
            let begin = Message::from(queued.begin.clone()).encode();
            self.write_on(stream, begin, purpose.clone());
            self.event(HubEvent::FirstByte { key });
        }
        self.streams.loads(stream, slice.bytes.len());
        if !slice.bytes.is_empty() {
            let header = slice_header(slice.ticket, slice.offset, slice.bytes.len());
            self.write_on(stream, header, purpose.clone());
            self.write_on(stream, slice.bytes, purpose);
        }
        if slice.last {
            self.finish(stream, slice.ticket);
        }
    }

    fn finish(&mut self, stream: StreamId, ticket: u32) {
        let Some(Queued { begin, .. }) = self.parcels.by_ticket.remove(&ticket) else {
            return;
        };
        let (leg, lane) = (begin.leg, begin.lane);
        let flight = Flight::from(begin);
        let (key, size) = (flight.key.clone(), flight.bytes);
        // On the first stream whatever is said later comes later; on another it may come first.
        if stream == StreamId::FIRST {
            self.sent(&key);
        } else {
            self.streams.flies(stream, flight);
        }
        self.event(HubEvent::Sent { key, leg, lane, size });
    }
}

impl From<ProductBegin> for Flight {
    fn from(begin: ProductBegin) -> Self {
        let previous = begin.previous.map_or(0, |previous| previous.0);
        Self { key: begin.info.key, previous, bytes: begin.info.size }
    }
}
