//! A packet's payload as received: its frames, and apart from them the bytes of a block that ends it.
use bytes::{BufMut, Bytes, BytesMut};
use downburst_model::Sequence;

use crate::packet::payload::{Frames, Payload, split_at};
use crate::packet::slice::Slice;
use crate::proof::{Hash, content_hash};

/// The bytes of a payload, in one or two parts. The content determines the parts, so equal ones have equal parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RawPayload {
    /// All but the tail.
    pub(crate) head: Bytes,
    /// The bytes of the last block, which lie beside those of the packets before and after it.
    pub(crate) tail: Slice,
}

impl RawPayload {
    /// The payload in its parts.
    pub(crate) fn split(mut payload: Bytes) -> Self {
        let tail = payload.split_off(split_at(&payload));
        Self { head: payload, tail: tail.into() }
    }

    /// The last sequence announced before it, and its frames; `None` if it is too short.
    pub(crate) fn frames(&self) -> Option<(Sequence, Frames)> {
        Frames::of(self.head.clone(), self.tail.clone())
    }

    /// Its content; `None` if any known frame is malformed.
    pub(crate) fn read(&self) -> Option<Payload> {
        Payload::read(self.head.clone(), self.tail.clone())
    }

    pub(crate) fn len(&self) -> usize {
        self.head.len().saturating_add(self.tail.len())
    }

    /// Writes all bytes.
    pub(crate) fn write(&self, buffer: &mut impl BufMut) {
        buffer.put_slice(&self.head);
        buffer.put_slice(&self.tail);
    }

    pub(crate) fn hash(&self) -> Hash {
        content_hash(&[&self.head, &self.tail])
    }

    /// The bytes as one; copied if they lie apart.
    pub(crate) fn into_bytes(self) -> Bytes {
        if self.tail.is_empty() {
            return self.head;
        }
        let mut bytes = BytesMut::with_capacity(self.len());
        self.write(&mut bytes);
        bytes.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::payload::Frame;

    #[test]
    fn the_block_at_the_end_lies_apart_and_the_whole_stays_the_same() {
        let block = |length: usize| Frame::Block {
            sequence: Sequence(3),
            offset: 9,
            bytes: Bytes::from(vec![7; length]).into(),
        };
        let cases = [
            (vec![block(100)], 0, 100),
            (vec![block(5), Frame::Head(Sequence(4)), block(60)], 0, 60),
            (vec![block(100)], 3, 0),
            (vec![block(100), Frame::Head(Sequence(4))], 0, 0),
            (vec![block(0)], 0, 0),
        ];
        for (frames, padding, tail_bytes) in cases {
            let payload = Payload { announced: Sequence(2), frames, padding };
            let mut written = BytesMut::new();
            payload.write(&mut written);
            let written = written.freeze();
            let raw = RawPayload::split(written.clone());
            assert_eq!((raw.tail.len(), raw.len()), (tail_bytes, written.len()));
            assert_eq!(
                (raw.hash(), raw.read()),
                (content_hash(&[&written]), Some(Payload { padding: 0, ..payload }))
            );
            assert_eq!(raw.into_bytes(), written);
        }
    }
}
