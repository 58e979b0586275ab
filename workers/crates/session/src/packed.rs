//! Receipts on the wire: groups of similar receipts with delta-coded stamps.
use bytes::{BufMut, Bytes, BytesMut};
use downburst_model::{Class, Epoch, FeedName, Lane, LegId, ProductKey, Sequence, Transport, WallMicros};

use crate::fields::{Fields, PutFields};
use crate::{ClockOffset, Outcome, Receipt, Receipts};

/// Writes the body of a packed receipts frame.
pub(crate) fn encode(receipts: &Receipts, body: &mut BytesMut) {
    put_clock(receipts.clock, body);
    for group in receipts.items.chunk_by(is_alike) {
        put_group(group, body);
    }
}

/// Reads the body of a packed receipts frame; `None` if it is cut short or malformed, or holds more than
/// [`RECEIPTS`].
pub(crate) fn decode(body: &Bytes) -> Option<Receipts> {
    let mut fields = Fields::new(body);
    let clock = clock(&mut fields)?;
    let mut items = Vec::new();
    while !fields.is_over() {
        group(&mut fields, &mut items)?;
    }
    Some(Receipts { clock, items })
}

fn put_clock(clock: Option<ClockOffset>, body: &mut BytesMut) {
    body.put_u8(u8::from(clock.is_some()));
    if let Some(clock) = clock {
        body.put_signed(clock.offset_us);
        body.put_varint(clock.bound_us);
        body.put_varint(clock.round_trip_us);
    }
}

fn clock(fields: &mut Fields<'_>) -> Option<Option<ClockOffset>> {
    match fields.u8()? {
        0 => Some(None),
        1 => {
            let (offset_us, bound_us) = (fields.signed()?, fields.varint()?);
            Some(Some(ClockOffset { offset_us, bound_us, round_trip_us: fields.varint()? }))
        }
        _ => None,
    }
}

/// True if one group can hold both receipts.
fn is_alike(one: &Receipt, other: &Receipt) -> bool {
    (one.key.feed == other.key.feed && one.key.epoch == other.key.epoch)
        && (one.outcome, one.lane, one.leg, one.transport, one.class)
            == (other.outcome, other.lane, other.leg, other.transport, other.class)
}

fn put_group(group: &[Receipt], body: &mut BytesMut) {
    let Some(first) = group.first() else {
        return;
    };
    body.put_short_text(first.key.feed.as_str());
    body.put_u64(first.key.epoch.0);
    body.put_u32(first.leg.0);
    for code in [first.outcome as u8, first.lane as u8, first.transport as u8, first.class as u8] {
        body.put_u8(code);
    }
    body.put_varint(group.len() as u64);
    let mut before = Before::default();
    for receipt in group {
        before.put(receipt, body);
    }
}

fn group(fields: &mut Fields<'_>, items: &mut Vec<Receipt>) -> Option<()> {
    let feed = FeedName::parse(fields.short_text()?).ok()?;
    let (epoch, leg) = (Epoch(fields.u64()?), LegId(fields.u32()?));
    let outcome = *OUTCOMES.get(usize::from(fields.u8()?))?;
    let lane = *LANES.get(usize::from(fields.u8()?))?;
    let transport = *TRANSPORTS.get(usize::from(fields.u8()?))?;
    let class = *CLASSES.get(usize::from(fields.u8()?))?;
    let count = usize::try_from(fields.varint()?).ok()?;
    if count > RECEIPTS.saturating_sub(items.len()) {
        return None;
    }
    items.reserve(count);
    let mut before = Before::default();
    for _ in 0..count {
        let key = ProductKey { feed: feed.clone(), epoch, sequence: Sequence(0) };
        let alike = Receipt {
            outcome,
            lane,
            leg,
            transport,
            class,
            ..Receipt::undescribed(key, outcome, WallMicros(0))
        };
        items.push(before.receipt(fields, alike)?);
    }
    Some(())
}

/// The values of the previous receipt, from which the next one of the group is delta-coded.
#[derive(Default)]
struct Before {
    sequence: u64,
    hub_stored: i64,
    last_byte: i64,
}

impl Before {
    fn put(&mut self, receipt: &Receipt, body: &mut BytesMut) {
        body.put_signed(receipt.key.sequence.0.wrapping_sub(self.sequence) as i64);
        body.put_varint(receipt.size);
        body.put_signed(receipt.hub_stored.0.wrapping_sub(self.hub_stored));
        body.put_signed(receipt.hub_stored.0.wrapping_sub(receipt.created.0));
        body.put_signed(receipt.last_byte.0.wrapping_sub(self.last_byte));
        body.put_signed(receipt.site_stored.0.wrapping_sub(receipt.last_byte.0));
        body.put_u8(u8::from(receipt.repaired) | if receipt.action_done.is_some() { ACTION } else { 0 });
        if let Some(done) = receipt.action_done {
            body.put_signed(done.0.wrapping_sub(receipt.site_stored.0));
        }
        *self = Self::behind(receipt);
    }

    fn receipt(&mut self, fields: &mut Fields<'_>, alike: Receipt) -> Option<Receipt> {
        let sequence = Sequence(self.sequence.wrapping_add(fields.signed()? as u64));
        let size = fields.varint()?;
        let hub_stored = self.hub_stored.wrapping_add(fields.signed()?);
        let created = WallMicros(hub_stored.wrapping_sub(fields.signed()?));
        let last_byte = self.last_byte.wrapping_add(fields.signed()?);
        let site_stored = WallMicros(last_byte.wrapping_add(fields.signed()?));
        let flags = fields.u8()?;
        let action_done = match flags & ACTION {
            0 => None,
            _ => Some(WallMicros(site_stored.0.wrapping_add(fields.signed()?))),
        };
        let receipt = Receipt {
            key: ProductKey { sequence, ..alike.key },
            size,
            created,
            hub_stored: WallMicros(hub_stored),
            last_byte: WallMicros(last_byte),
            site_stored,
            repaired: flags & REPAIRED != 0,
            action_done,
            ..alike
        };
        *self = Self::behind(&receipt);
        Some(receipt)
    }

    fn behind(receipt: &Receipt) -> Self {
        let (hub_stored, last_byte) = (receipt.hub_stored.0, receipt.last_byte.0);
        Self { sequence: receipt.key.sequence.0, hub_stored, last_byte }
    }
}

/// The maximum number of receipts in one frame: a tenth of a second of the fastest feeds, and far below the
/// limit of a frame.
pub(crate) const RECEIPTS: usize = 4_096;

const REPAIRED: u8 = 1;
const ACTION: u8 = 2;
const OUTCOMES: [Outcome; 6] = [
    Outcome::Stored,
    Outcome::Rejected,
    Outcome::Expired,
    Outcome::Held,
    Outcome::LateAtHub,
    Outcome::LateAtSite,
];
const LANES: [Lane; 3] = [Lane::Live, Lane::Backfill, Lane::Resend];
const CLASSES: [Class; 4] = [Class::Warning, Class::Observation, Class::Grid, Class::Bulk];
const TRANSPORTS: [Transport; 4] =
    [Transport::Unicast, Transport::Multicast, Transport::StaticCircuit, Transport::DynamicCircuit];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Numbers = (u64, u64, i64, i64, i64, i64);

    fn receipt(
        (sequence, size, created, stored, last, site): Numbers,
        kind: usize,
        done: Option<i64>,
    ) -> Receipt {
        let feed = FeedName::parse(["NGRID", "IDS|DDPLUS"][kind % 2]).unwrap();
        Receipt {
            key: ProductKey { feed, epoch: Epoch(7), sequence: Sequence(sequence) },
            outcome: OUTCOMES[kind % 6],
            lane: LANES[kind % 3],
            leg: LegId(kind as u32),
            transport: TRANSPORTS[kind % 4],
            class: CLASSES[kind % 4],
            size,
            created: WallMicros(created),
            hub_stored: WallMicros(stored),
            last_byte: WallMicros(last),
            site_stored: WallMicros(site),
            repaired: kind % 2 == 1,
            action_done: done.map(WallMicros),
        }
    }

    fn packed(receipts: &Receipts) -> Bytes {
        let mut body = BytesMut::new();
        encode(receipts, &mut body);
        body.freeze()
    }

    proptest! {
        #[test]
        fn receipts_come_back_and_every_cut_is_survived(
            items in prop::collection::vec((any::<Numbers>(), 0usize..8, any::<Option<i64>>()), 0..40),
            clock in any::<Option<(i64, u64, u64)>>(),
            cut: prop::sample::Index,
        ) {
            let items = items.into_iter().map(|(numbers, kind, done)| receipt(numbers, kind, done)).collect();
            let clock = clock
                .map(|(offset_us, bound_us, round_trip_us)| ClockOffset { offset_us, bound_us, round_trip_us });
            let receipts = Receipts { clock, items };
            let body = packed(&receipts);
            let read = decode(&body);
            prop_assert_eq!(read.as_ref(), Some(&receipts));
            let short = body.slice(..cut.index(body.len()));
            if let Some(read) = decode(&short) {
                prop_assert!(read.items.len() < receipts.items.len(), "only whole groups are read");
            }
        }

        #[test]
        fn noise_is_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&Bytes::from(bytes));
        }
    }

    #[test]
    fn a_thousand_products_in_a_row_take_little() {
        let rows = (0..1_000_i64).map(|n| {
            receipt(
                (
                    1_000_000 + n as u64,
                    2_000,
                    1_790_000_000_000_000 + n * 100,
                    1_790_000_000_000_900 + n * 100,
                    1_790_000_000_002_000,
                    1_790_000_000_003_000,
                ),
                0,
                None,
            )
        });
        let body = packed(&Receipts { clock: None, items: rows.collect() });
        assert!(body.len() < 1_000 * 13, "{}", body.len());
    }

    #[test]
    fn more_than_a_frame_may_hold_is_refused() {
        let mut body = BytesMut::new();
        put_clock(None, &mut body);
        body.put_short_text("NGRID");
        body.put_slice(&[0; 8 + 4 + 4]);
        body.put_varint(u64::MAX);
        assert_eq!(decode(&body.freeze()), None);
    }
}
