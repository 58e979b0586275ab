//! A receiver's store of payloads, used to decode coded repairs: the latest payloads, and those of blocks with
//! missing packets.
use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use downburst_model::{Micros, RangeSet, Sequence};

use crate::SymbolsHeard;
use crate::packet::code::{LARGEST_BLOCK, decode};
use crate::packet::payload::Frame;
use crate::packet::raw::RawPayload;
use crate::packet::symbol::Symbol;

#[derive(Debug, Default)]
pub(crate) struct PayloadStore {
    /// The number of the first packet.
    base: u64,
    payloads: VecDeque<Option<RawPayload>>,
    blocks: BTreeMap<u64, Block>,
}

/// A block with received symbols.
#[derive(Debug)]
struct Block {
    last: u64,
    made: u16,
    heard: Micros,
    symbol_bytes: usize,
    symbols: BTreeMap<u16, Bytes>,
    /// The number of symbols needed beyond the missing packets; it grows with each failed attempt.
    more: u64,
}

impl PayloadStore {
    /// Keeps a packet's payload. Payloads from before the first packet are not kept.
    pub(crate) fn keep(&mut self, packet: u64, payload: RawPayload) {
        if self.payloads.is_empty() {
            self.base = packet;
        }
        let Some(place) = packet.checked_sub(self.base) else { return };
        if place >= 2 * KEPT_PACKETS {
            self.payloads.clear();
            self.base = packet;
            return self.payloads.push_back(Some(payload));
        }
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        if place >= self.payloads.len() {
            self.payloads.resize(place + 1, None);
        }
        if let Some(kept) = self.payloads.get_mut(place) {
            *kept = Some(payload);
        }
    }

    /// True if a different payload is kept for the packet.
    pub(crate) fn has_other(&self, packet: u64, other: &RawPayload) -> bool {
        payload(&self.payloads, self.base, packet).is_some_and(|kept| kept != *other)
    }

    /// The product with blocks adjacent to the gap in both the packet before `first` and the one after `last`.
    pub(crate) fn product_around(&self, first: u64, last: u64) -> Option<Sequence> {
        let beside = |packet: Option<u64>| payload(&self.payloads, self.base, packet?)?.read();
        let product = |frame: &Frame| match frame {
            Frame::Block { sequence, .. } => Some(*sequence),
            _ => None,
        };
        let (before, behind) = (beside(first.checked_sub(1))?, beside(last.checked_add(1))?);
        let before = before.frames.iter().rev().find_map(product)?;
        (behind.frames.iter().find_map(product)? == before).then_some(before)
    }

    /// True if symbols of the packet's block or of a later one were received: the sender has decided on it.
    pub(crate) fn is_closed(&self, packet: u64) -> bool {
        self.blocks.last_key_value().is_some_and(|(_, block)| packet <= block.last)
    }

    /// Keeps a symbol if it is useful.
    pub(crate) fn take(&mut self, now: Micros, symbol: Symbol) {
        let Symbol { first, last, index, made, bytes } = symbol;
        let new =
            || Block { last, made, heard: now, symbol_bytes: bytes.len(), symbols: BTreeMap::new(), more: 0 };
        let absent = self.absent(first, last);
        let block = self.blocks.entry(first).or_insert_with(new);
        let alike = block.last == last && block.symbol_bytes == bytes.len();
        if alike && (block.symbols.len() as u64) < absent.saturating_add(block.more) {
            (block.made, block.heard) = (block.made.max(made), now);
            block.symbols.insert(index, bytes);
        }
        while self.blocks.len() > KEPT_BLOCKS {
            self.blocks.pop_first();
        }
    }

    /// Restores absent packets in the packet's block, once enough symbols were received: packets and payloads,
    /// `None` for a malformed one.
    pub(crate) fn restore(&mut self, packet: u64) -> Vec<(u64, Option<Bytes>)> {
        let Some(first) = self.block_of(packet) else { return Vec::new() };
        let Some(last) = self.blocks.get(&first).map(|block| block.last) else { return Vec::new() };
        let absent = self.absent(first, last);
        let Some(block) = self.blocks.get_mut(&first) else { return Vec::new() };
        if absent == 0 || (block.symbols.len() as u64) < absent.saturating_add(block.more) {
            return Vec::new();
        }
        let sources: Vec<Option<RawPayload>> =
            (first..=last).map(|packet| payload(&self.payloads, self.base, packet)).collect();
        let symbols = block.symbols.iter().map(|(index, bytes)| (*index, bytes));
        match decode(&sources, symbols, block.symbol_bytes) {
            Some(restored) => {
                self.blocks.remove(&first);
                restored.into_iter().map(|(place, payload)| (first + place as u64, payload)).collect()
            }
            None => {
                block.more += 1;
                Vec::new()
            }
        }
    }

    /// The part of `wanted` worth a request: of a block with symbols under way, only as many packets as it needs
    /// in addition to them, its last missing ones; `missing` returns all missing packets in a range.
    pub(crate) fn worth_asking(
        &self,
        now: Micros,
        wanted: RangeSet,
        missing: impl Fn(u64, u64) -> RangeSet,
    ) -> RangeSet {
        let mut worth = wanted;
        for (first, block) in &self.blocks {
            let all = missing(*first, block.last);
            let lacking = self.absent(*first, block.last).saturating_add(block.more);
            let enough = all.count().saturating_sub(lacking.saturating_sub(block.coming(now)));
            drop_first(&mut worth, &all, enough);
        }
        worth
    }

    /// The known symbols of the blocks of these packets.
    pub(crate) fn symbols_heard(&self, packets: &RangeSet) -> Vec<SymbolsHeard> {
        let asked = |first: u64, last: u64| packets.iter().any(|(from, to)| from <= last && first <= to);
        let blocks = self.blocks.iter().filter(|(first, block)| asked(**first, block.last));
        blocks.map(|(first, block)| SymbolsHeard { block: *first, made: block.made }).collect()
    }

    /// Drops useless entries: all before the block that may hold the oldest missing packet, and those beyond
    /// the limit.
    pub(crate) fn release(&mut self, highest: u64, oldest_missing: Option<u64>) {
        let oldest = oldest_missing.map_or(highest, |missing| missing.min(highest));
        let useful = oldest.saturating_sub(LARGEST_BLOCK as u64 - 1);
        let least = useful.max(highest.saturating_sub(KEPT_PACKETS - 1));
        while self.base < least && self.payloads.pop_front().is_some() {
            self.base += 1;
        }
        while let Some(entry) = self.blocks.first_entry().filter(|entry| entry.get().last < oldest) {
            entry.remove();
        }
    }

    fn block_of(&self, packet: u64) -> Option<u64> {
        let (first, block) = self.blocks.range(..=packet).next_back()?;
        (packet <= block.last).then_some(*first)
    }

    fn absent(&self, first: u64, last: u64) -> u64 {
        let place = |packet: u64| usize::try_from(packet.saturating_sub(self.base)).unwrap_or(usize::MAX);
        let kept = self.payloads.iter().take(place(last.saturating_add(1))).skip(place(first));
        (last - first + 1).saturating_sub(kept.flatten().count() as u64)
    }
}

impl Block {
    /// Symbols that were received, or were made and may still be under way.
    fn coming(&self, now: Micros) -> u64 {
        let here = self.symbols.len() as u64;
        let latest = self.symbols.last_key_value().map_or(0, |(index, _)| index.saturating_add(1));
        let under_way =
            if now.since(self.heard) < SYMBOL_PAUSE { self.made.saturating_sub(latest) } else { 0 };
        here + u64::from(under_way)
    }
}

fn payload(payloads: &VecDeque<Option<RawPayload>>, base: u64, packet: u64) -> Option<RawPayload> {
    let place = usize::try_from(packet.checked_sub(base)?).ok()?;
    payloads.get(place)?.clone()
}

/// Removes the first `count` numbers of `all` from `set`.
fn drop_first(set: &mut RangeSet, all: &RangeSet, count: u64) {
    let mut left = count;
    for (first, last) in all.iter() {
        if left == 0 {
            return;
        }
        let end = last.min(first.saturating_add(left - 1));
        left -= end - first + 1;
        set.remove(first, end);
    }
}

/// The maximum number of kept payloads: eight blocks, 12 MB with Ethernet's MTU. Older losses are repaired
/// packet by packet.
const KEPT_PACKETS: u64 = 8 * LARGEST_BLOCK as u64;

/// The maximum number of blocks with kept symbols; of each at most as many as packets are absent.
const KEPT_BLOCKS: usize = 16;

/// Symbols of a round follow each other; after this time without one no more are expected.
pub(crate) const SYMBOL_PAUSE: Micros = Micros::from_millis(20);
