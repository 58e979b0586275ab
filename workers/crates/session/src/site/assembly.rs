use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use downburst_model::{Lane, LegId, Micros, Now, ProductInfo, RangeSet, Transport, WallMicros};

use crate::{Outcome, Receipt};

/// A product on its way to this site.
#[derive(Clone, Debug)]
pub(crate) struct Assembly {
    pub(crate) info: ProductInfo,
    pub(crate) lane: Lane,
    /// The multicast legs that carry it.
    pub(crate) legs: BTreeSet<LegId>,
    /// The number of transfers of the session that carry it.
    pub(crate) transfers: u32,
    pub(crate) announced_at: Micros,
    pub(crate) progressed_at: Micros,
    pub(crate) begun: bool,
    pub(crate) failures: u8,
    pub(crate) last_byte: WallMicros,
    pub(crate) repaired: bool,
    /// The resend that delivers it again.
    pub(crate) resend: Option<u64>,
    announced_by: Source,
    received: RangeSet,
    brought: BTreeMap<Source, u64>,
}

/// A source of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Source {
    pub(crate) leg: LegId,
    pub(crate) transport: Transport,
}

impl Assembly {
    pub(crate) fn new(now: Now, info: ProductInfo, lane: Lane, source: Source) -> Self {
        Self {
            info,
            lane,
            legs: BTreeSet::new(),
            transfers: 0,
            announced_at: now.monotonic,
            progressed_at: now.monotonic,
            begun: false,
            failures: 0,
            last_byte: now.wall,
            repaired: false,
            resend: None,
            announced_by: source,
            received: RangeSet::new(),
            brought: BTreeMap::new(),
        }
    }

    /// A product that arrived whole at `last_byte`.
    pub(crate) fn whole(
        now: Now,
        info: ProductInfo,
        source: Source,
        lane: Lane,
        last_byte: WallMicros,
    ) -> Self {
        let size = info.size;
        let mut assembly = Self { last_byte, ..Self::new(now, info, lane, source) };
        if let Some(last) = size.checked_sub(1) {
            assembly.received.insert(0, last);
        }
        assembly.brought.insert(source, size);
        assembly
    }

    /// Takes bytes; returns the missing parts. Bytes beyond the product's size are ignored. A product that
    /// failed its digest once is accepted from the session only: any member of a group can forge blocks, and
    /// must not have a product rejected.
    pub(crate) fn add(&mut self, now: Now, source: Source, offset: u64, bytes: &Bytes) -> Vec<(u64, Bytes)> {
        if self.failures > 0 && source.transport == Transport::Multicast {
            return Vec::new();
        }
        let Some(last) = (bytes.len() as u64).checked_sub(1).and_then(|more| offset.checked_add(more)) else {
            return Vec::new();
        };
        if last >= self.info.size {
            return Vec::new();
        }
        let missing: Vec<(u64, u64)> = self.received.gaps(offset, last).collect();
        let gained = self.received.insert(offset, last);
        if gained > 0 {
            *self.brought.entry(source).or_default() += gained;
            self.progressed_at = now.monotonic;
            self.last_byte = now.wall;
        }
        missing.into_iter().map(|(from, to)| (from, part(bytes, from - offset, to - offset))).collect()
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.info.size.checked_sub(1).is_none_or(|last| self.received.contains_range(0, last))
    }

    /// Drops the bytes: they were wrong, or could not be stored.
    pub(crate) fn restart(&mut self, now: Now) {
        self.received.clear();
        self.brought.clear();
        self.begun = false;
        self.progressed_at = now.monotonic;
    }

    /// True if it has a source at the moment.
    pub(crate) fn has_source(&self) -> bool {
        self.transfers > 0 || !self.legs.is_empty()
    }

    /// Its receipt; the leg is the one that delivered most of it.
    pub(crate) fn receipt(&self, outcome: Outcome, at: WallMicros) -> Receipt {
        let most = self.brought.iter().max_by_key(|(_, bytes)| **bytes).map(|(source, _)| *source);
        let source = most.unwrap_or(self.announced_by);
        Receipt {
            key: self.info.key.clone(),
            outcome,
            lane: self.lane,
            leg: source.leg,
            transport: source.transport,
            class: self.info.class,
            size: self.info.size,
            created: self.info.created,
            hub_stored: self.info.stored,
            last_byte: self.last_byte,
            site_stored: at,
            repaired: self.repaired,
            action_done: None,
        }
    }
}

fn part(bytes: &Bytes, from: u64, to: u64) -> Bytes {
    let bound = |value: u64| usize::try_from(value).unwrap_or(usize::MAX).min(bytes.len());
    bytes.slice(bound(from)..bound(to.saturating_add(1)))
}
