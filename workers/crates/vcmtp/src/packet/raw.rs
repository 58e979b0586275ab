//! A packet's payload as received: its frames, and apart from them the bytes of a block that ends it.
use bytes::{BufMut, Bytes, BytesMut};

use crate::packet::payload::split_at;
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
