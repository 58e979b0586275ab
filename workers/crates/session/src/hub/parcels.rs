use std::collections::BTreeMap;

use downburst_fanout::{Outbox, Parcel, Slice};
use downburst_model::{FeedName, LegId, ProductInfo, Sequence};

use super::HubSession;
use super::serve::Delivery;
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
    pub(super) fn write_slice(&mut self, slice: Slice) {
        let Some(queued) = self.parcels.by_ticket.get(&slice.ticket) else {
            return;
        };
        let (purpose, key) = (queued.purpose.clone(), queued.begin.info.key.clone());
        if slice.first {
            let begin = Message::from(queued.begin.clone()).encode();
            self.write(begin, purpose.clone());
            self.event(HubEvent::FirstByte { key });
        }
        if !slice.bytes.is_empty() {
            let header = slice_header(slice.ticket, slice.offset, slice.bytes.len());
            self.write(header, purpose.clone());
            self.write(slice.bytes, purpose);
        }
        if slice.last {
            self.finish(slice.ticket);
        }
    }

    fn finish(&mut self, ticket: u32) {
        let Some(Queued { begin, .. }) = self.parcels.by_ticket.remove(&ticket) else {
            return;
        };
        let ProductBegin { info, lane, leg, .. } = begin;
        self.sent(&info.key);
        self.event(HubEvent::Sent { key: info.key, leg, lane, size: info.size });
    }
}
