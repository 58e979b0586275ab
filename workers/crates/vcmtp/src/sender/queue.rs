use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use downburst_model::{Class, Content, Micros, ProductInfo, Sequence};

use crate::packet::payload::{
    BLOCK_BYTES, FRAME_BYTES, Frame, Manifest, ManifestPart, PART_BYTES, PREFIX_BYTES, Payload,
};

/// Data that waits to be sent for the first time, in a lane for each class.
///
/// One lane leads each packet: the most urgent waiting one, but a lane that was passed over [`PATIENCE`]
/// times leads the next packet, so no class starves. A lane is sent product after product, its manifests at
/// most [`LEAD`] products ahead of the blocks, so that every packet can be filled. The other lanes fill the
/// rest of the room, the most urgent first.
///
/// Manifests therefore overtake each other between classes. Each names the sequence taken in before its
/// own, so its statement about the numbers between holds in any order.
#[derive(Debug)]
pub(crate) struct Queue {
    lanes: BTreeMap<Class, Lane>,
    /// The last sequence taken in.
    taken: Sequence,
    /// The highest sequence whose manifest was handed out.
    announced: Sequence,
    products: usize,
    backlog_bytes: u64,
}

#[derive(Debug, Default)]
struct Lane {
    incoming: VecDeque<Incoming>,
    blocks: VecDeque<Outgoing>,
    /// The number of packets that other lanes have led since this one began to wait or last led.
    passed_over: u32,
}

#[derive(Debug)]
struct Incoming {
    sequence: Sequence,
    stored: Stored,
    /// The bytes that are not handed out yet; all of them leave together, unless it has parts.
    manifest: Bytes,
    /// The length of a manifest that is handed out in parts.
    in_parts_of: Option<u16>,
    content: Content,
}

#[derive(Debug)]
struct Outgoing {
    sequence: Sequence,
    stored: Stored,
    content: Content,
    /// The number of bytes handed out.
    sent: usize,
    /// The bytes at hand behind them: content in storage is read in pieces of many packets.
    at_hand: Bytes,
}

/// The time at which the hub stored a product, by the sender's clock; `None` of one that is never late.
pub(crate) type Stored = Option<Micros>;

/// The content of one packet.
#[derive(Debug)]
pub(crate) struct Filled {
    pub(crate) payload: Payload,
    /// The most urgent class in it.
    pub(crate) class: Class,
    /// A product waits for it alone: it is urgent, or small.
    pub(crate) hurried: bool,
    /// Products whose first byte is in it.
    pub(crate) first: Vec<Sequence>,
    /// Products whose last byte is in it.
    pub(crate) last: Vec<Sequence>,
    /// The time at which the hub stored the newest product in it.
    pub(crate) stored: Stored,
}

impl Queue {
    pub(crate) fn new(after: Sequence) -> Self {
        Self { lanes: BTreeMap::new(), taken: after, announced: after, products: 0, backlog_bytes: 0 }
    }

    /// Takes a product in; false if its sequence does not rise.
    pub(crate) fn push(&mut self, info: ProductInfo, content: Content, stored: Stored) -> bool {
        let (sequence, class) = (info.key.sequence, info.class);
        if sequence <= self.taken {
            return false;
        }
        let has_properties = info.properties.is_some();
        let manifest = Manifest { previous: self.taken, info }.encode();
        // A manifest without properties is short, and rarely longer than the rest of a packet.
        let in_parts_of = u16::try_from(manifest.len()).ok().filter(|_| has_properties);
        self.taken = sequence;
        self.products += 1;
        self.backlog_bytes = self.backlog_bytes.saturating_add(content.len() as u64);
        self.lanes.entry(class).or_default().incoming.push_back(Incoming {
            sequence,
            stored,
            manifest,
            in_parts_of,
            content,
        });
        true
    }

    /// Leaves a product out. The next manifest names it as the one before, so sites request it and learn the reason.
    pub(crate) fn leave_out(&mut self, sequence: Sequence) {
        self.taken = self.taken.max(sequence);
        self.announced = self.announced.max(sequence);
    }

    /// Drops the products that the hub stored before `than`; one that has begun goes on unless it was stored before
    /// `begun_than`. Otherwise a full leg would end each product just before it is complete. Returns their numbers.
    pub(crate) fn drop_older(&mut self, than: Micros, begun_than: Micros) -> Vec<Sequence> {
        let mut dropped = Vec::new();
        for lane in self.lanes.values_mut() {
            let bytes = lane.drop_older((than, begun_than), &mut dropped);
            self.backlog_bytes = self.backlog_bytes.saturating_sub(bytes);
        }
        self.lanes.retain(|_, lane| !lane.is_empty());
        self.products = self.products.saturating_sub(dropped.len());
        self.announced = dropped.iter().copied().fold(self.announced, Sequence::max);
        dropped
    }

    pub(crate) fn announced(&self) -> Sequence {
        self.announced
    }

    pub(crate) fn backlog_bytes(&self) -> u64 {
        self.backlog_bytes
    }

    /// Products with waiting data.
    pub(crate) fn products(&self) -> usize {
        self.products
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// The class that leads the next packet.
    pub(crate) fn urgency(&self) -> Option<Class> {
        let overdue = self.lanes.iter().filter(|(_, lane)| lane.passed_over >= PATIENCE);
        let overdue = overdue.max_by_key(|(_, lane)| lane.passed_over);
        overdue.or_else(|| self.lanes.first_key_value()).map(|(class, _)| *class)
    }

    /// The next packet's content, at most `room` bytes (more for a manifest that fits no room), or `None` if
    /// nothing waits. It fills the room exactly while more waits.
    pub(crate) fn fill(&mut self, room: usize) -> Option<Filled> {
        let leader = self.urgency()?;
        let mut filled = Filled {
            class: leader,
            hurried: false,
            payload: Payload { announced: self.announced, frames: Vec::new(), padding: 0 },
            first: Vec::new(),
            last: Vec::new(),
            stored: None,
        };
        let mut room = room.saturating_sub(PREFIX_BYTES);
        self.note_leader(leader);
        self.fill_from(leader, &mut filled, &mut room);
        while let Some(class) = self.most_urgent_that_fits(room) {
            self.fill_from(class, &mut filled, &mut room);
        }
        filled.payload.padding = if self.is_empty() { 0 } else { room };
        Some(filled)
    }

    fn note_leader(&mut self, leader: Class) {
        for (class, lane) in &mut self.lanes {
            lane.passed_over = if *class == leader { 0 } else { lane.passed_over.saturating_add(1) };
        }
    }

    fn most_urgent_that_fits(&self, room: usize) -> Option<Class> {
        self.lanes.iter().find(|(_, lane)| lane.fits(room)).map(|(class, _)| *class)
    }

    fn fill_from(&mut self, class: Class, filled: &mut Filled, room: &mut usize) {
        let Some(lane) = self.lanes.get_mut(&class) else { return };
        let (frames, ended) = (filled.payload.frames.len(), filled.last.len());
        loop {
            if let Some(sequence) = lane.fill_manifest(filled, room) {
                self.announced = self.announced.max(sequence);
            } else if let Some(bytes) = lane.fill_block(filled, room) {
                self.backlog_bytes = self.backlog_bytes.saturating_sub(bytes);
            } else {
                break;
            }
        }
        if filled.payload.frames.len() > frames {
            filled.class = filled.class.min(class);
            filled.hurried |= class <= Class::Observation;
        }
        self.products = self.products.saturating_sub(filled.last.len() - ended);
        if lane.is_empty() {
            self.lanes.remove(&class);
        }
    }
}

impl Lane {
    fn is_empty(&self) -> bool {
        self.incoming.is_empty() && self.blocks.is_empty()
    }

    /// True if some data of the lane fits into this room.
    fn fits(&self, room: usize) -> bool {
        let manifest = self.announceable().is_some_and(|next| next.fits(room));
        manifest || (!self.blocks.is_empty() && room > BLOCK_BYTES)
    }

    fn announceable(&self) -> Option<&Incoming> {
        self.incoming.front().filter(|_| self.blocks.len() < LEAD)
    }

    /// Adds the next manifest, and releases its blocks; a packet without frames takes a manifest of any size.
    fn fill_manifest(&mut self, filled: &mut Filled, room: &mut usize) -> Option<Sequence> {
        if self.announceable()?.in_parts_of.is_some() {
            return self.fill_part(filled, room);
        }
        let needed = self.announceable()?.frame_bytes();
        let alone = filled.payload.frames.is_empty();
        *room = room.checked_sub(needed).or(alone.then_some(0))?;
        let mut next = self.incoming.pop_front()?;
        filled.payload.frames.push(Frame::Manifest(std::mem::take(&mut next.manifest)));
        Some(self.begin(next, filled))
    }

    /// Adds as much of the next manifest as the room has place for; releases its blocks after the last part.
    fn fill_part(&mut self, filled: &mut Filled, room: &mut usize) -> Option<Sequence> {
        let next = self.incoming.front_mut().filter(|next| next.fits(*room))?;
        let total_bytes = next.in_parts_of?;
        let left_bytes = next.manifest.len();
        let bytes = next.manifest.split_to(left_bytes.min(*room - PART_BYTES));
        *room -= PART_BYTES + bytes.len();
        // Not more than the total, which is of this type.
        let offset = total_bytes.saturating_sub(u16::try_from(left_bytes).unwrap_or(u16::MAX));
        let part = ManifestPart { sequence: next.sequence, offset, total_bytes, bytes };
        filled.stored = filled.stored.max(next.stored);
        filled.payload.frames.push(Frame::Part(part));
        if !next.manifest.is_empty() {
            return None;
        }
        let next = self.incoming.pop_front()?;
        Some(self.begin(next, filled))
    }

    /// Releases the blocks of a product whose manifest is handed out.
    fn begin(&mut self, announced: Incoming, filled: &mut Filled) -> Sequence {
        let Incoming { sequence, stored, content, .. } = announced;
        filled.stored = filled.stored.max(stored);
        filled.hurried |= content.len() < SMALL_PRODUCT_BYTES;
        if content.is_empty() {
            filled.first.push(sequence);
            filled.last.push(sequence);
        } else {
            self.blocks.push_back(Outgoing { sequence, stored, content, sent: 0, at_hand: Bytes::new() });
        }
        sequence
    }

    /// Adds bytes of the product in front; returns how many.
    fn fill_block(&mut self, filled: &mut Filled, room: &mut usize) -> Option<u64> {
        let most = room.checked_sub(BLOCK_BYTES).filter(|most| *most > 0)?;
        let product = self.blocks.front_mut()?;
        let (sequence, offset) = (product.sequence, product.sent as u64);
        filled.stored = filled.stored.max(product.stored);
        let bytes = product.take(most);
        filled.hurried |= product.content.len() < SMALL_PRODUCT_BYTES;
        if product.sent >= product.content.len() {
            filled.last.push(sequence);
            self.blocks.pop_front();
        }
        if offset == 0 {
            filled.first.push(sequence);
        }
        let length = bytes.len() as u64;
        *room -= BLOCK_BYTES + bytes.len();
        filled.payload.frames.push(Frame::Block { sequence, offset, bytes: bytes.into() });
        Some(length)
    }

    /// Drops the oldest products; returns the bytes that are not sent.
    fn drop_older(&mut self, (than, begun_than): (Micros, Micros), dropped: &mut Vec<Sequence>) -> u64 {
        let is_older = |stored: Stored, than| stored.is_some_and(|at| at < than);
        let mut bytes = 0_u64;
        let mut drop = |sequence, left: usize| {
            bytes = bytes.saturating_add(left as u64);
            dropped.push(sequence);
        };
        let is_late =
            |product: &Outgoing| is_older(product.stored, if product.sent > 0 { begun_than } else { than });
        let begun = pop_front_if(&mut self.blocks, |product| product.sent > 0 && !is_late(product));
        while let Some(product) = pop_front_if(&mut self.blocks, is_late) {
            drop(product.sequence, product.content.len().saturating_sub(product.sent));
        }
        begun.into_iter().for_each(|product| self.blocks.push_front(product));
        while let Some(product) = pop_front_if(&mut self.incoming, |product| is_older(product.stored, than)) {
            drop(product.sequence, product.content.len());
        }
        bytes
    }
}

/// Takes the first item if it is so.
pub(crate) fn pop_front_if<T>(items: &mut VecDeque<T>, is: impl FnOnce(&T) -> bool) -> Option<T> {
    if items.front().is_some_and(is) { items.pop_front() } else { None }
}

impl Outgoing {
    /// The next bytes, at most this number.
    fn take(&mut self, most: usize) -> Bytes {
        if self.at_hand.is_empty() {
            let end = self.content.len().min(self.sent.saturating_add(READ_BYTES));
            self.at_hand = self.content.slice_to_send(self.sent..end);
        }
        let bytes = self.at_hand.split_to(self.at_hand.len().min(most));
        self.sent = self.sent.saturating_add(bytes.len());
        bytes
    }
}

impl Incoming {
    fn frame_bytes(&self) -> usize {
        FRAME_BYTES + self.manifest.len()
    }

    /// True if the manifest, or a part that is worth its head, fits into this room.
    fn fits(&self, room: usize) -> bool {
        let least = self.manifest.len().min(LEAST_PART_BYTES);
        if self.in_parts_of.is_some() { room >= PART_BYTES + least } else { room >= self.frame_bytes() }
    }
}

/// A shorter part would be little more than its head.
const LEAST_PART_BYTES: usize = 64;

/// The amount that is read of a product in storage at a time: some two hundred packets.
const READ_BYTES: usize = 256 << 10;

/// The most products of a class that are announced and not yet sent: enough to fill packets with small ones.
const LEAD: usize = 16;

/// A lane that waits leads at least one packet of sixteen: enough for a bulk feed to get on, and too little
/// to be felt by a warning.
const PATIENCE: u32 = 15;

/// A large product is whole only long after a packet of it was lost, so the repair of that packet has time. A
/// smaller one is over so soon that waiting for the rest of its block would be most of its latency.
pub(crate) const SMALL_PRODUCT_BYTES: usize = 32 << 10;
