use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use downburst_model::{Class, ProductInfo, Sequence};

use crate::payload::{BLOCK_BYTES, Frame, Manifest, PREFIX_BYTES, Payload};

/// What waits to be sent for the first time.
///
/// Manifests leave first, in the order of the sequences and whatever their class, so that every receiver learns early what exists
/// and the chain of predecessors is in order. Blocks of announced products follow, the most urgent class first (strictly: a class
/// that fills the leg's rate holds the less urgent ones back), products of a class in order.
#[derive(Debug)]
pub(crate) struct Queue {
    incoming: VecDeque<Incoming>,
    blocks: BTreeMap<Class, VecDeque<Outgoing>>,
    /// The last sequence taken in.
    taken: Sequence,
    /// The last sequence whose manifest was handed out.
    announced: Sequence,
    backlog_bytes: u64,
}

#[derive(Debug)]
struct Incoming {
    sequence: Sequence,
    class: Class,
    manifest: Bytes,
    bytes: Bytes,
}

#[derive(Debug)]
struct Outgoing {
    sequence: Sequence,
    offset: u64,
    rest: Bytes,
}

/// The content of one packet.
#[derive(Debug)]
pub(crate) struct Filled {
    pub(crate) payload: Payload,
    /// The most urgent class in it.
    pub(crate) class: Class,
    /// Products whose first byte is in it.
    pub(crate) first: Vec<Sequence>,
    /// Products whose last byte is in it.
    pub(crate) last: Vec<Sequence>,
}

impl Queue {
    pub(crate) fn new(after: Sequence) -> Self {
        Self {
            incoming: VecDeque::new(),
            blocks: BTreeMap::new(),
            taken: after,
            announced: after,
            backlog_bytes: 0,
        }
    }

    /// Takes a product in; false if its sequence does not rise.
    pub(crate) fn push(&mut self, info: ProductInfo, bytes: Bytes) -> bool {
        let (sequence, class) = (info.key.sequence, info.class);
        if sequence <= self.taken {
            return false;
        }
        let manifest = Manifest { previous: self.taken, info }.encode();
        self.taken = sequence;
        self.backlog_bytes = self.backlog_bytes.saturating_add(bytes.len() as u64);
        self.incoming.push_back(Incoming { sequence, class, manifest, bytes });
        true
    }

    pub(crate) fn announced(&self) -> Sequence {
        self.announced
    }

    pub(crate) fn backlog_bytes(&self) -> u64 {
        self.backlog_bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.incoming.is_empty() && self.blocks.is_empty()
    }

    /// The most urgent class that would go into the next packet.
    pub(crate) fn urgency(&self) -> Option<Class> {
        let manifest = self.incoming.front().map(|incoming| incoming.class);
        let block = self.blocks.first_key_value().map(|(class, _)| *class);
        manifest.into_iter().chain(block).min()
    }

    /// The next packet's content, at most `room` bytes (more for a manifest that fits no room), or `None` if nothing waits. It fills the room exactly while more waits.
    pub(crate) fn fill(&mut self, room: usize) -> Option<Filled> {
        let mut filled = Filled {
            class: self.urgency()?,
            payload: Payload { announced: self.announced, frames: Vec::new(), padding: 0 },
            first: Vec::new(),
            last: Vec::new(),
        };
        let mut room = room.saturating_sub(PREFIX_BYTES);
        while self.fill_manifest(&mut filled, &mut room) {}
        while self.fill_block(&mut filled, &mut room) {}
        filled.payload.padding = if self.is_empty() { 0 } else { room };
        Some(filled)
    }

    fn fill_manifest(&mut self, filled: &mut Filled, room: &mut usize) -> bool {
        let Some(incoming) = self.incoming.pop_front() else { return false };
        let frame = Frame::Manifest(incoming.manifest.clone());
        let alone = filled.payload.frames.is_empty();
        let Some(rest) = room.checked_sub(frame.encoded_bytes()).or(alone.then_some(0)) else {
            self.incoming.push_front(incoming);
            return false;
        };
        *room = rest;
        filled.payload.frames.push(frame);
        filled.class = filled.class.min(incoming.class);
        self.announced = incoming.sequence;
        self.release_blocks(incoming, filled);
        true
    }

    fn release_blocks(&mut self, incoming: Incoming, filled: &mut Filled) {
        let Incoming { sequence, class, bytes, .. } = incoming;
        if bytes.is_empty() {
            filled.first.push(sequence);
            filled.last.push(sequence);
            return;
        }
        let product = Outgoing { sequence, offset: 0, rest: bytes };
        self.blocks.entry(class).or_default().push_back(product);
    }

    fn fill_block(&mut self, filled: &mut Filled, room: &mut usize) -> bool {
        let Some(most) = room.checked_sub(BLOCK_BYTES).filter(|most| *most > 0) else { return false };
        let Some(mut class) = self.blocks.first_entry() else { return false };
        filled.class = filled.class.min(*class.key());
        let Some(product) = class.get_mut().front_mut() else {
            class.remove();
            return true;
        };
        let bytes = product.rest.split_to(product.rest.len().min(most));
        let Outgoing { sequence, offset, .. } = *product;
        product.offset += bytes.len() as u64;
        if product.rest.is_empty() {
            filled.last.push(sequence);
            class.get_mut().pop_front();
            if class.get().is_empty() {
                class.remove();
            }
        }
        if offset == 0 {
            filled.first.push(sequence);
        }
        *room -= BLOCK_BYTES + bytes.len();
        self.backlog_bytes = self.backlog_bytes.saturating_sub(bytes.len() as u64);
        filled.payload.frames.push(Frame::Block { sequence, offset, bytes });
        true
    }
}
