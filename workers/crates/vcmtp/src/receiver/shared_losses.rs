//! Losses that a receiver requests together. Packets of large products that are not urgent are repaired with their
//! block, some time later and by the number of packets that a site lacks (`blocks.rs`). So their requests share
//! datagrams, and are not repeated while the block may still be filling. Each request costs an answer, and
//! answers are most of the repair cost of a sender with many sites.
//!
//! | a loss that is due | next |
//! |---|---|
//! | the group is large | requested, by the rules of `suppression.rs` |
//! | not between two blocks of one such product; or symbols of its block came | requested |
//! | not requested yet | requested at the next step of [`SHARED`] |
//! | requested, and its block may still be filling or awaiting the decision | checked again a step later |
use std::collections::BTreeSet;

use downburst_model::{Class, Micros, ProductInfo, Sequence};

use crate::packet::code::LARGEST_BLOCK;
use crate::receiver::missing::Due;
use crate::receiver::payload_store::PayloadStore;
use crate::sender::queue::SMALL_PRODUCT_BYTES;

/// The large products that were announced most recently.
#[derive(Debug, Default)]
pub(crate) struct SharedLosses {
    products: BTreeSet<Sequence>,
}

impl SharedLosses {
    pub(crate) fn announced(&mut self, info: &ProductInfo) {
        if info.size >= SMALL_PRODUCT_BYTES as u64 && info.class > Class::Observation {
            self.products.insert(info.key.sequence);
        }
        while self.products.len() > KEPT_PRODUCTS {
            self.products.pop_first();
        }
    }

    /// The time to check a due loss again; `None`: it is requested now. `highest` is the last packet known to be
    /// sent.
    pub(crate) fn later(
        &self,
        now: Micros,
        payload_store: &PayloadStore,
        highest: u64,
        due: &Due,
    ) -> Option<Micros> {
        let product = payload_store.product_around(due.first, due.last)?;
        if !self.products.contains(&product) || payload_store.is_closed(due.last) {
            return None;
        }
        let later = match due.since {
            None => Micros(due.due.0.div_ceil(SHARED.0).saturating_mul(SHARED.0)),
            Some(since) => {
                let is_closed = highest >= due.last.saturating_add(LARGEST_BLOCK as u64);
                let patience = if is_closed { DECISION } else { BLOCK };
                since.plus(patience).min(now.plus(SHARED))
            }
        };
        (later > now).then_some(later)
    }
}

/// Losses within this time share a request: an eighth of the fill time of a block at 100 Mbit/s; a receiver
/// waits for half of that time.
const SHARED: Micros = Micros::from_millis(15);

/// From a request to the repair of a block that was full by then: the time for other requests, and the pacer's.
const DECISION: Micros = Micros::from_millis(60);

/// The same for a block that may have been open: 200 ms more, and a margin for a busy host.
const BLOCK: Micros = Micros::from_millis(300);

/// The limit of concurrent products of 32 KiB and more; beyond it the older ones' losses are requested
/// without delay.
const KEPT_PRODUCTS: usize = 4_096;

#[cfg(test)]
mod tests {
    use bytes::{Bytes, BytesMut};
    use downburst_model::{Digest, Epoch, FeedName, Origin, ProductId, ProductKey, WallMicros};

    use super::*;
    use crate::packet::payload::{Frame, Payload};
    use crate::packet::raw::RawPayload;
    use crate::packet::symbol::Symbol;

    const LARGE: Sequence = Sequence(7);

    fn info(sequence: Sequence, size: u64, class: Class) -> ProductInfo {
        ProductInfo {
            key: ProductKey { feed: FeedName::parse("NGRID").unwrap(), epoch: Epoch(1), sequence },
            id: ProductId::parse("id").unwrap(),
            origin: Origin::parse("origin").unwrap(),
            created: WallMicros(0),
            stored: WallMicros(0),
            size,
            digest: Digest([0; 32]),
            class,
            hops: None,
            ldm: None,
            properties: None,
        }
    }

    /// Packets 1 to 9 but the fifth, each with a block of the product.
    fn payload_store(product: Sequence) -> PayloadStore {
        let mut payload_store = PayloadStore::default();
        for packet in (1..10).filter(|packet| *packet != 5) {
            let frames = vec![Frame::Block {
                sequence: product,
                offset: packet * 10,
                bytes: Bytes::from_static(b"0123456789").into(),
            }];
            let mut buffer = BytesMut::new();
            Payload { announced: product, frames, padding: 0 }.write(&mut buffer);
            payload_store.keep(packet, RawPayload::split(buffer.freeze()));
        }
        payload_store
    }

    fn shared_losses() -> SharedLosses {
        let mut shared_losses = SharedLosses::default();
        shared_losses.announced(&info(LARGE, SMALL_PRODUCT_BYTES as u64, Class::Grid));
        shared_losses.announced(&info(Sequence(8), SMALL_PRODUCT_BYTES as u64 - 1, Class::Grid));
        shared_losses.announced(&info(Sequence(9), SMALL_PRODUCT_BYTES as u64, Class::Observation));
        shared_losses
    }

    fn millis(milliseconds: u64) -> Micros {
        Micros::from_millis(milliseconds)
    }

    fn fifth(due: Micros, since: Option<Micros>) -> Due {
        Due { first: 5, last: 5, due, since }
    }

    #[test]
    fn a_first_request_waits_for_the_next_step_and_no_longer() {
        let (shared_losses, payload_store) = (shared_losses(), payload_store(LARGE));
        let at = |now, due| shared_losses.later(now, &payload_store, 9, &fifth(due, None));
        assert_eq!(at(millis(1_003), millis(1_003)), Some(millis(1_005)));
        assert_eq!(at(millis(1_006), millis(1_005)), None, "a late look is none the worse");
        assert_eq!(at(millis(1_005), millis(1_005)), None);
    }

    #[test]
    fn small_and_urgent_products_and_unclear_losses_are_asked_for_at_once() {
        let due = fifth(millis(1_003), None);
        for product in [Sequence(8), Sequence(9), Sequence(10)] {
            assert_eq!(shared_losses().later(millis(1_003), &payload_store(product), 9, &due), None);
        }
        let at_an_end = Due { first: 10, last: 10, ..due };
        assert_eq!(shared_losses().later(millis(1_003), &payload_store(LARGE), 9, &at_an_end), None);
    }

    #[test]
    fn symbols_end_the_waiting() {
        let (shared_losses, mut payload_store, since) =
            (shared_losses(), payload_store(LARGE), Some(millis(1_000)));
        let symbol = Symbol { first: 1, last: 9, index: 0, made: 1, bytes: Bytes::from_static(b"repair") };
        payload_store.take(millis(1_020), symbol);
        assert_eq!(shared_losses.later(millis(1_040), &payload_store, 9, &fifth(millis(1_040), since)), None);
        assert!(!payload_store.is_closed(10));
    }

    #[test]
    fn nothing_is_asked_for_again_while_its_block_may_be_open_or_decided_on() {
        let (shared_losses, payload_store, since) =
            (shared_losses(), payload_store(LARGE), Some(millis(1_000)));
        let at =
            |now, highest| shared_losses.later(now, &payload_store, highest, &fifth(millis(1_025), since));
        assert_eq!(at(millis(1_025), 9), Some(millis(1_040)));
        assert_eq!(at(millis(1_295), 9), Some(millis(1_300)));
        assert_eq!(at(millis(1_300), 9), None);
        let closed = 5 + LARGEST_BLOCK as u64;
        assert_eq!(at(millis(1_055), closed), Some(millis(1_060)));
        assert_eq!(at(millis(1_060), closed), None);
    }
}
