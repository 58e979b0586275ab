//! The opening of a group's datagrams where they were received, and the packing of their contents.
use bytes::{Bytes, BytesMut};
use downburst_model::{LegId, Micros, Slabs};

use crate::LegKey;
use crate::channel::is_from_hub;
use crate::keys::ring::{KeyMark, KeyRing, Opening};
use crate::packet::payload::split_at;
use crate::packet::raw::RawPayload;
use crate::packet::slice::Slice;
use crate::packet::{notice, symbol};

/// A datagram for a [`Receiver`](crate::Receiver).
#[derive(Clone, Debug)]
pub enum Datagram {
    /// As it was received.
    Sealed(BytesMut),
    /// Opened by an [`Opener`].
    Opened(Opened),
    /// Refused by an [`Opener`]: it is not of this life of the leg, or was changed on its way.
    Refused,
}

/// An opened datagram.
#[derive(Clone, Debug)]
pub struct Opened {
    pub(crate) key: KeyMark,
    pub(crate) number: u64,
    pub(crate) payload: RawPayload,
}

/// Opens the datagrams of a group on the thread that receives them, in the buffer and while they are in the cache.
///
/// The bytes of blocks leave the buffer side by side, so that those of a train become one piece of their product
/// without a further copy; the buffer can be used again at once.
///
/// | datagram | next |
/// |---|---|
/// | opens with a key | [`Datagram::Opened`]: the receiver decides whether the key is still valid |
/// | of the hub, or under a key that this opener does not know (yet) | [`Datagram::Sealed`]: for the receiver |
/// | anything else | [`Datagram::Refused`] |
pub struct Opener {
    keys: KeyRing,
    /// Frames, and payloads without a block at their end.
    heads: Arena,
    /// The bytes of blocks.
    tails: Arena,
    packed: Vec<Packed>,
}

/// A datagram whose memory is still being filled.
enum Packed {
    Sealed(BytesMut),
    Opened { key: KeyMark, number: u64, head: Place, tail: Place },
    Refused,
}

/// Memory that is filled piece by piece and shared when a batch is complete.
struct Arena {
    slabs: Slabs,
    filling: BytesMut,
    /// The parts of this batch that are full.
    full: Vec<Bytes>,
}

/// A place in an arena's batch.
#[derive(Clone, Copy)]
struct Place {
    part: usize,
    from: usize,
    to: usize,
}

impl Opener {
    /// Opens datagrams of a life of a leg with this key.
    pub fn new(leg: LegId, leg_epoch: u64, key: &LegKey) -> Self {
        let keys = KeyRing::new(leg, leg_epoch, key);
        Self { keys, heads: Arena::default(), tails: Arena::default(), packed: Vec::new() }
    }

    /// Adds a key; the others stay valid for a while.
    pub fn insert(&mut self, key: &LegKey) {
        self.keys.insert(key);
    }

    /// Takes a datagram out of the buffer in which it was received, and overwrites it there.
    pub fn take(&mut self, now: Micros, datagram: &mut [u8]) {
        let packed = if is_from_hub(datagram) || !self.keys.knows(datagram) {
            Packed::Sealed(BytesMut::from(&*datagram))
        } else {
            self.opened(now, datagram).unwrap_or(Packed::Refused)
        };
        self.packed.push(packed);
    }

    /// The datagrams since the last call, in their order.
    pub fn finish(&mut self) -> Vec<Datagram> {
        let (heads, tails) = (self.heads.share(), self.tails.share());
        let share = |packed| match packed {
            Packed::Sealed(datagram) => Datagram::Sealed(datagram),
            Packed::Refused => Datagram::Refused,
            Packed::Opened { key, number, head, tail } => {
                let payload = RawPayload { head: head.of(&heads).into(), tail: tail.of(&tails) };
                Datagram::Opened(Opened { key, number, payload })
            }
        };
        self.packed.drain(..).map(share).collect()
    }

    fn opened(&mut self, now: Micros, datagram: &mut [u8]) -> Option<Packed> {
        let Opening { number, payload, key } = self.keys.open(now, datagram)?;
        let payload = datagram.get(payload)?;
        let (head, tail) = payload.split_at_checked(tail_at(number, payload))?;
        Some(Packed::Opened { key, number, head: self.heads.put(head), tail: self.tails.put(tail) })
    }
}

impl Arena {
    fn put(&mut self, bytes: &[u8]) -> Place {
        if self.filling.capacity().saturating_sub(self.filling.len()) < bytes.len() {
            self.turn(bytes.len());
        }
        let from = self.filling.len();
        self.filling.extend_from_slice(bytes);
        Place { part: self.full.len(), from, to: self.filling.len() }
    }

    fn turn(&mut self, bytes: usize) {
        let next = self.slabs.take(SLAB_BYTES.max(bytes));
        let full = std::mem::replace(&mut self.filling, next);
        if !full.is_empty() {
            self.full.push(full.freeze());
        }
    }

    /// Ends the batch. What is left of the slab takes the next one.
    fn share(&mut self) -> Vec<Bytes> {
        let mut parts = std::mem::take(&mut self.full);
        parts.push(self.filling.split().freeze());
        parts
    }
}

impl Default for Arena {
    fn default() -> Self {
        Self { slabs: Slabs::new(SLAB_BYTES, SLABS), filling: BytesMut::new(), full: Vec::new() }
    }
}

impl Place {
    fn of(self, parts: &[Bytes]) -> Slice {
        let memory = parts.get(self.part).cloned().unwrap_or_default();
        Slice::new(memory, self.from, self.to)
    }
}

impl Datagram {
    /// The number of an opened packet; `None`: it is another datagram, or was not opened.
    pub fn packet(&self) -> Option<u64> {
        let Self::Opened(Opened { number, .. }) = *self else { return None };
        is_packet(number).then_some(number)
    }
}

impl From<BytesMut> for Datagram {
    fn from(datagram: BytesMut) -> Self {
        Self::Sealed(datagram)
    }
}

impl From<Bytes> for Datagram {
    fn from(datagram: Bytes) -> Self {
        Self::Sealed(datagram.into())
    }
}

impl From<&[u8]> for Datagram {
    fn from(datagram: &[u8]) -> Self {
        Self::Sealed(datagram.into())
    }
}

impl From<Vec<u8>> for Datagram {
    fn from(datagram: Vec<u8>) -> Self {
        Self::Sealed(BytesMut::from(&datagram[..]))
    }
}

/// The position of the bytes that are packed apart; only packets have any.
pub(crate) fn tail_at(number: u64, payload: &[u8]) -> usize {
    if is_packet(number) { split_at(payload) } else { payload.len() }
}

fn is_packet(number: u64) -> bool {
    !notice::is_notice(number) && !symbol::is_symbol(number)
}

/// Memory for received data, until neither a product nor the repair of its neighbours needs it: 16 MiB of each kind
/// at most; beyond that each part gets memory of its own.
const SLAB_BYTES: usize = 128 << 10;
const SLABS: usize = 128;
