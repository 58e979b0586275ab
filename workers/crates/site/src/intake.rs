//! Incoming products: small ones in memory, large ones at places of their own; and those that wait to be stored.
use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use downburst_model::{ProductInfo, ProductKey, Slabs, WallMicros};
use downburst_session::Train;

use crate::storage::{Brought, Contents, PlaceId, PlaceOrder, StoreItem, StoreRequest};

/// All products that have begun and are not stored yet.
#[derive(Debug)]
pub(crate) struct Intake {
    /// Larger products are received into places.
    memory_limit_bytes: usize,
    memory: Slabs,
    open: BTreeMap<ProductKey, Assembly>,
    next_place: u64,
    /// Complete items that are not in a request yet.
    batch: Vec<StoreItem>,
    next_request: u64,
    /// The memory of each unanswered request.
    storing: BTreeMap<u64, usize>,
    storing_bytes: usize,
    misplaced: u64,
}

/// The bytes of one product.
#[derive(Debug)]
enum Assembly {
    /// Parts of the read buffers.
    Pieces(Parts),
    /// Bytes of any part, each at its offset, with room for all.
    Memory {
        memory: BytesMut,
        size: usize,
    },
    Placed {
        place: PlaceId,
        size: u64,
    },
}

/// Parts of a product in the order of their offsets, none of which overlaps another.
///
/// A part keeps the memory that it shares with its neighbours of other products, so few may be short: at most about
/// as much memory is kept for nothing as the product has bytes.
#[derive(Debug)]
struct Parts {
    size: usize,
    parts: Vec<(u64, Bytes)>,
    bytes: usize,
    short: usize,
}

impl Intake {
    pub(crate) fn new(memory_limit_bytes: usize) -> Self {
        Self {
            memory_limit_bytes,
            memory: Slabs::new(SLAB_BYTES, SLABS),
            open: BTreeMap::new(),
            next_place: 0,
            batch: Vec::new(),
            next_request: 0,
            storing: BTreeMap::new(),
            storing_bytes: 0,
            misplaced: 0,
        }
    }

    pub(crate) fn begin(&mut self, info: &ProductInfo) -> Option<PlaceOrder> {
        let (assembly, order) = match usize::try_from(info.size) {
            Ok(size) if size <= self.memory_limit_bytes => (Assembly::Pieces(Parts::new(size)), None),
            _ => {
                let place = PlaceId(self.next_place);
                self.next_place += 1;
                (Assembly::Placed { place, size: info.size }, Some(PlaceOrder::Begin(place, info.clone())))
            }
        };
        let former = self.open.insert(info.key.clone(), assembly);
        self.misplaced += u64::from(former.is_some());
        order
    }

    pub(crate) fn block(&mut self, key: &ProductKey, offset: u64, bytes: Bytes) -> Option<PlaceOrder> {
        let size = self.open.get(key).map_or(0, Assembly::size);
        if offset.saturating_add(bytes.len() as u64) > size {
            self.misplaced += 1;
            return None;
        }
        self.open.get_mut(key)?.write(&mut self.memory, offset, bytes)
    }

    /// Moves a product whose bytes are complete into the batch.
    pub(crate) fn complete(&mut self, info: ProductInfo, brought: Brought) {
        let Some(assembly) = self.open.remove(&info.key) else {
            self.misplaced += 1;
            return;
        };
        self.batch.push(StoreItem::Product { info, brought, contents: assembly.into_contents() });
    }

    pub(crate) fn train(&mut self, train: std::sync::Arc<Train>, last_byte: WallMicros) {
        self.batch.push(StoreItem::Train { train, last_byte });
    }

    /// Drops an incomplete product.
    pub(crate) fn abandon(&mut self, key: &ProductKey) -> Option<PlaceOrder> {
        match self.open.remove(key) {
            Some(Assembly::Placed { place, .. }) => Some(PlaceOrder::Drop(place)),
            Some(_) => None,
            None => {
                self.misplaced += 1;
                None
            }
        }
    }

    /// A request for the items completed since the last one.
    pub(crate) fn take_request(&mut self) -> Option<StoreRequest> {
        let items = std::mem::take(&mut self.batch);
        if items.is_empty() {
            return None;
        }
        let (id, bytes) = (self.next_request, items.iter().map(StoreItem::memory_bytes).sum());
        self.next_request += 1;
        self.storing.insert(id, bytes);
        self.storing_bytes += bytes;
        Some(StoreRequest { id, items })
    }

    /// Notes the answer to a request; false if none has this number.
    pub(crate) fn stored(&mut self, id: u64) -> bool {
        let bytes = self.storing.remove(&id);
        self.storing_bytes -= bytes.unwrap_or_default();
        bytes.is_some()
    }

    /// False while too much waits for the disk to read more from the hub.
    pub(crate) fn has_room(&self) -> bool {
        self.storing_bytes < STORING_BYTES
    }

    /// True if every request is answered.
    pub(crate) fn is_settled(&self) -> bool {
        self.storing.is_empty()
    }

    /// The number of blocks, beginnings and ends that did not match the state of their product: zero,
    /// unless the session is faulty.
    pub(crate) fn misplaced(&self) -> u64 {
        self.misplaced
    }
}

impl Assembly {
    fn size(&self) -> u64 {
        match self {
            Self::Pieces(parts) => parts.size as u64,
            Self::Memory { size, .. } => *size as u64,
            Self::Placed { size, .. } => *size,
        }
    }

    fn write(&mut self, slabs: &mut Slabs, offset: u64, bytes: Bytes) -> Option<PlaceOrder> {
        if let Self::Pieces(parts) = self {
            if parts.can_take(offset, &bytes) {
                parts.take(offset, bytes);
                return None;
            }
            self.lay_out(slabs);
        }
        match self {
            Self::Memory { memory, .. } => {
                lay(memory, usize::try_from(offset).unwrap_or(usize::MAX), &bytes);
                None
            }
            Self::Placed { place, .. } => Some(PlaceOrder::Write { place: *place, offset, bytes }),
            Self::Pieces(_) => None,
        }
    }

    /// Moves the pieces into memory that takes bytes of any part.
    fn lay_out(&mut self, slabs: &mut Slabs) {
        if let Self::Pieces(Parts { size, parts, .. }) = self {
            let (mut memory, size) = (slabs.take(*size), *size);
            for (offset, part) in parts {
                lay(&mut memory, usize::try_from(*offset).unwrap_or(usize::MAX), part);
            }
            *self = Self::Memory { memory, size };
        }
    }

    fn into_contents(self) -> Contents {
        match self {
            Self::Pieces(Parts { parts, .. }) => {
                Contents::Pieces(parts.into_iter().map(|(_, part)| part).collect::<Vec<Bytes>>().into())
            }
            Self::Memory { memory, .. } => Contents::Pieces(memory.freeze().into()),
            Self::Placed { place, .. } => Contents::Place(place),
        }
    }
}

impl Parts {
    fn new(size: usize) -> Self {
        Self { size, parts: Vec::new(), bytes: 0, short: 0 }
    }

    fn can_take(&self, offset: u64, bytes: &[u8]) -> bool {
        let end = offset.saturating_add(bytes.len() as u64);
        let before = self.parts.partition_point(|(at, _)| *at < end).checked_sub(1);
        let before = before.and_then(|place| self.parts.get(place));
        let is_free = before.is_none_or(|(at, part)| at.saturating_add(part.len() as u64) <= offset);
        let is_last = self.bytes.saturating_add(bytes.len()) == self.size;
        is_free && (!is_short(bytes) || is_last || self.short < self.size / BYTES_PER_SHORT_PART)
    }

    fn take(&mut self, offset: u64, bytes: Bytes) {
        self.bytes = self.bytes.saturating_add(bytes.len());
        self.short += usize::from(is_short(&bytes));
        let place = self.parts.partition_point(|(at, _)| *at < offset);
        self.parts.insert(place, (offset, bytes));
    }
}

fn is_short(part: &[u8]) -> bool {
    part.len() < WORTH_SHARING_BYTES
}

/// Copies bytes to their offset. Those that follow the present ones directly need no zeros before them.
fn lay(memory: &mut BytesMut, start: usize, bytes: &[u8]) {
    if start == memory.len() {
        return memory.extend_from_slice(bytes);
    }
    let end = start.saturating_add(bytes.len());
    if memory.len() < end {
        memory.resize(end, 0);
    }
    if let Some(place) = memory.get_mut(start..end) {
        place.copy_from_slice(bytes);
    }
}

/// A shorter part would keep much more memory than it has bytes: that of a read buffer.
const WORTH_SHARING_BYTES: usize = 16 << 10;

/// The length of read buffers, of which each short part may keep one.
const BYTES_PER_SHORT_PART: usize = 128 << 10;

/// Most products fit; a site with hundreds of them in flight stays far below a gigabyte.
pub const MEMORY_LIMIT_BYTES: usize = 1 << 20;

/// Reused memory for products: 16 MiB at most; beyond that each product allocates its own.
const SLAB_BYTES: usize = MEMORY_LIMIT_BYTES;
const SLABS: usize = 16;

const STORING_BYTES: usize = 64 << 20;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use downburst_model::*;

    use super::*;

    fn info(size: u64) -> ProductInfo {
        ProductInfo {
            key: ProductKey { feed: FeedName::parse("F").unwrap(), epoch: Epoch(1), sequence: Sequence(1) },
            id: ProductId::parse("x").unwrap(),
            origin: Origin::parse("h").unwrap(),
            created: WallMicros(0),
            stored: WallMicros(0),
            size,
            digest: Digest([0; 32]),
            class: Class::Grid,
            hops: None,
            ldm: None,
            properties: None,
        }
    }

    const BROUGHT: Brought = Brought { last_byte: WallMicros(0), lane: Lane::Live, resend: None };

    /// Carries out an operation at a place, as a disk does.
    fn carry_out(place: &mut Option<Vec<u8>>, order: Option<PlaceOrder>) {
        match order {
            None => {}
            Some(PlaceOrder::Begin(_, info)) => *place = Some(vec![0; info.size as usize]),
            Some(PlaceOrder::Write { offset, bytes, .. }) => {
                let start = offset as usize;
                place.as_mut().unwrap()[start..start + bytes.len()].copy_from_slice(&bytes);
            }
            Some(PlaceOrder::Drop(_)) => *place = None,
        }
    }

    fn completed(intake: &mut Intake, info: &ProductInfo) -> Contents {
        intake.complete(info.clone(), BROUGHT);
        match intake.take_request().unwrap().items.remove(0) {
            StoreItem::Product { contents, .. } => contents,
            StoreItem::Train { .. } => panic!("no train came"),
        }
    }

    fn in_memory(intake: &mut Intake, info: &ProductInfo) -> Pieces {
        match completed(intake, info) {
            Contents::Pieces(pieces) => pieces,
            Contents::Place(_) => panic!("it is small"),
        }
    }

    /// The product assembled from these blocks.
    fn assembled(whole: &Bytes, blocks: impl Iterator<Item = (usize, usize)>, limit: usize) -> Vec<u8> {
        let (mut intake, mut place) = (Intake::new(limit), None);
        let info = info(whole.len() as u64);
        carry_out(&mut place, intake.begin(&info));
        for (start, end) in blocks {
            carry_out(&mut place, intake.block(&info.key, start as u64, whole.slice(start..end)));
        }
        assert_eq!(intake.misplaced(), 0);
        carry_out(&mut place, intake.block(&info.key, info.size + 7, Bytes::from_static(b"beyond the end")));
        assert_eq!(intake.misplaced(), 1);
        match completed(&mut intake, &info) {
            Contents::Pieces(pieces) => pieces.whole().to_vec(),
            Contents::Place(_) => place.unwrap(),
        }
    }

    #[test]
    fn blocks_in_any_order_make_the_product_in_memory_and_at_a_place() {
        for size in [0, 5_000, 70_000, 200_000, MEMORY_LIMIT_BYTES + 1] {
            let whole: Bytes = (0..size).map(|n| (n % 251) as u8).collect();
            for (block_bytes, backwards) in [(1_400, true), (1_400, false), (65_536, true), (65_536, false)] {
                let mut starts: Vec<usize> = (0..whole.len()).step_by(block_bytes).collect();
                if backwards {
                    starts.reverse();
                }
                let blocks = starts.into_iter().map(|at| (at, whole.len().min(at + block_bytes)));
                assert_eq!(assembled(&whole, blocks, MEMORY_LIMIT_BYTES), whole);
            }
        }
    }

    proptest! {
        #[test]
        fn blocks_that_overlap_and_come_again_make_the_product(
            size in 1usize..60_000,
            cuts in proptest::collection::vec((0.0..1.0f64, 1usize..40_000), 0..20),
            limit in prop_oneof![Just(0), Just(MEMORY_LIMIT_BYTES)],
        ) {
            let whole: Bytes = (0..size).map(|n| (n % 251) as u8).collect();
            let random = cuts.iter().map(|(at, length)| {
                let start = (at * size as f64) as usize;
                (start, size.min(start + length))
            });
            let all = (0..size).step_by(7_000).map(|at| (at, size.min(at + 7_000)));
            prop_assert_eq!(assembled(&whole, random.chain(all), limit), whole);
        }
    }

    #[test]
    fn a_block_that_came_before_and_one_that_is_too_long_change_nothing() {
        let mut intake = Intake::new(MEMORY_LIMIT_BYTES);
        let (info, whole) = (info(40_000), Bytes::from(vec![7; 40_000]));
        intake.begin(&info);
        for (offset, block) in
            [(0, whole.slice(..20_000)), (0, whole.slice(..20_000)), (20_000, whole.clone())]
        {
            intake.block(&info.key, offset, block);
        }
        intake.block(&info.key, 20_000, whole.slice(20_000..));
        assert_eq!(in_memory(&mut intake, &info).whole(), whole);
    }

    #[test]
    fn whole_slices_are_not_copied() {
        let mut intake = Intake::new(MEMORY_LIMIT_BYTES);
        let (info, whole) = (info(20_000), Bytes::from(vec![7; 20_000]));
        intake.begin(&info);
        intake.block(&info.key, 0, whole.clone());
        let bytes = in_memory(&mut intake, &info).whole();
        assert_eq!((bytes.as_ptr(), &bytes), (whole.as_ptr(), &whole));
    }

    #[test]
    fn long_parts_are_not_copied_in_any_order_and_many_short_ones_are() {
        let whole: Bytes = (0..1_000_000).map(|n| (n % 251) as u8).collect();
        let mut intake = Intake::new(MEMORY_LIMIT_BYTES);
        let info = info(1_000_000);
        let short = |count: u64| (0..count).map(|number| (number * 100_000, 1_400));
        for (short_count, pieces) in [(0, 10), (7, 17), (9, 1)] {
            intake.begin(&info);
            let long = short(10).map(|(at, length)| match at / 100_000 {
                number if number < short_count => (at + length, 100_000 - length),
                _ => (at, 100_000),
            });
            for (at, length) in long.rev().chain(short(short_count)) {
                let part = whole.slice(at as usize..(at + length) as usize);
                intake.block(&info.key, at, part);
            }
            let found = in_memory(&mut intake, &info);
            assert_eq!((found.as_slice().len(), found.whole()), (pieces, whole.clone()), "{short_count}");
        }
    }

    #[test]
    fn a_place_is_dropped_with_its_product_and_what_was_never_begun_is_counted() {
        let mut intake = Intake::new(0);
        let info = info(10);
        assert!(matches!(intake.begin(&info), Some(PlaceOrder::Begin(PlaceId(0), _))));
        assert!(matches!(intake.abandon(&info.key), Some(PlaceOrder::Drop(PlaceId(0)))));
        assert!(matches!(intake.begin(&info), Some(PlaceOrder::Begin(PlaceId(1), _))), "never given twice");
        assert!(intake.abandon(&info.key).is_some() && intake.misplaced() == 0);
        assert!(intake.abandon(&info.key).is_none());
        intake.complete(info, BROUGHT);
        assert_eq!((intake.take_request().is_none(), intake.misplaced()), (true, 2));
    }

    #[test]
    fn reading_waits_for_the_disk_and_goes_on_in_whatever_order_it_answers() {
        let mut intake = Intake::new(usize::MAX);
        let request = |intake: &mut Intake, bytes: usize| {
            let info = info(bytes as u64);
            intake.begin(&info);
            intake.block(&info.key, 0, Bytes::from(vec![0; bytes]));
            intake.complete(info, BROUGHT);
            intake.take_request().unwrap().id
        };
        let first = request(&mut intake, STORING_BYTES - 1);
        assert!(intake.has_room());
        let second = request(&mut intake, 1);
        assert!(!intake.has_room() && !intake.is_settled());
        assert!(intake.stored(second) && intake.has_room() && !intake.is_settled());
        assert!(!intake.stored(second), "answered before");
        assert!(intake.stored(first) && intake.is_settled());
    }
}
