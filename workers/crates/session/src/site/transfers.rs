use std::collections::BTreeMap;

use bytes::Bytes;
use downburst_model::{FeedName, Now, ProductKey, Transport};

use super::SiteSession;
use super::assembly::Source;
use crate::{ProductBegin, StreamId};
use siblings::Referrals;

mod siblings;

/// The products in transfer over the session, by transfer number.
#[derive(Debug, Default)]
pub(crate) struct Transfers {
    open: BTreeMap<(StreamId, u32), Transfer>,
    /// Those that siblings carry out.
    pub(super) referrals: Referrals,
}

#[derive(Debug)]
struct Transfer {
    key: ProductKey,
    size: u64,
    next: u64,
    source: Source,
    /// False if the site already has the product: its slices are ignored.
    wanted: bool,
}

impl Transfers {
    pub(crate) fn clear(&mut self) {
        self.open.clear();
        self.referrals.clear();
    }

    /// Ends the transfers of a stream; returns the products that they were to deliver.
    pub(crate) fn end_stream(&mut self, stream: StreamId) -> Vec<ProductKey> {
        let numbers: Vec<(StreamId, u32)> =
            self.open.range((stream, 0)..=(stream, u32::MAX)).map(|(number, _)| *number).collect();
        let ended = numbers.into_iter().filter_map(|number| self.open.remove(&number));
        ended.filter(|transfer| transfer.wanted).map(|transfer| transfer.key).collect()
    }

    /// Ignores the remaining slices of a feed's transfers.
    pub(crate) fn forget(&mut self, feed: &FeedName) {
        self.referrals.forget(feed);
        for transfer in self.open.values_mut().filter(|transfer| transfer.key.feed == *feed) {
            transfer.wanted = false;
        }
    }
}

impl SiteSession {
    pub(super) fn begin_product(
        &mut self,
        now: Now,
        stream: StreamId,
        begin: ProductBegin,
        resend: Option<u64>,
    ) {
        let ProductBegin { info, previous, lane, leg, transfer } = begin;
        let source = Source { leg, transport: Transport::Unicast };
        let (key, size) = (info.key.clone(), info.size);
        let track = self.tracks.get_mut(&key.feed).filter(|track| track.started && track.epoch == key.epoch);
        let mut wanted = false;
        if let Some(track) = track {
            if let Some(previous) = previous {
                let from = previous.0.saturating_add(1);
                track.cover(now, from, key.sequence.0.saturating_sub(1), &mut self.outputs);
            }
            let out = &mut self.outputs;
            let awaited = match resend {
                Some(resend) => track.announce_again(now, info, resend, (lane, source), out),
                None => track.announce(now, info, lane, source, out),
            };
            if let Some(assembly) = awaited {
                assembly.transfers = assembly.transfers.saturating_add(1);
                assembly.repaired |= !assembly.legs.is_empty();
                wanted = true;
            }
        }
        if size == 0 {
            return self.streams.took(now, stream);
        }
        if self.transfers.open.len() >= OPEN_TRANSFERS {
            return self.violation(now, "the hub began too many products at the same time".to_owned());
        }
        self.transfers.open.insert((stream, transfer), Transfer { key, size, next: 0, source, wanted });
    }

    pub(super) fn take_slice(&mut self, now: Now, stream: StreamId, number: u32, offset: u64, bytes: &Bytes) {
        let Some(transfer) = self.transfers.open.get_mut(&(stream, number)) else {
            return self.violation(
                now,
                format!("the hub sent a slice of the transfer {number}, which it did not begin"),
            );
        };
        let next = offset.saturating_add(bytes.len() as u64);
        if transfer.next != offset || next > transfer.size || bytes.is_empty() {
            return self
                .violation(now, format!("a slice of the transfer {number} does not follow the one before"));
        }
        transfer.next = next;
        let ended = next == transfer.size;
        let (key, source, wanted) = (transfer.key.clone(), transfer.source, transfer.wanted);
        if ended {
            self.transfers.open.remove(&(stream, number));
            self.streams.took(now, stream);
        }
        let track = self.tracks.get_mut(&key.feed).filter(|track| wanted && track.epoch == key.epoch);
        if let Some(track) = track {
            track.block(now, source, (key.sequence.0, offset), bytes, false, &mut self.outputs);
            if ended {
                track.transfer_ended(now, key.sequence.0);
            }
        }
    }
}

/// The maximum number of open transfers. A hub sends one product per class and lane at a time on a stream: at
/// most 8 on each of 17 streams, and on those that are ending.
const OPEN_TRANSFERS: usize = 272;
