//! The payload of a datagram: the last sequence announced before it, then frames.
//!
//! | kind | frame | body |
//! |---|---|---|
//! | 0 | padding | none, not even a length: the rest of the payload has no meaning |
//! | 1 | manifest | CBOR of [`Manifest`] |
//! | 2 | block | sequence (8), offset (8), bytes |
//! | 3 | head | sequence (8) |
//! | 8 | proof | see the module `proof` |
//! | 9 | list of hashes | see the module `proof` |
//! | 10 | part of a manifest | sequence (8), offset (2), length of the manifest (2), bytes |
//!
//! A frame is its kind (1 byte), the length of its body (2 bytes), the body; all numbers are big-endian.
//! Other kinds are skipped.
use bytes::{Buf, BufMut, Bytes, BytesMut};
use downburst_model::{PROPERTIES_BYTES_MAX, ProductInfo, Sequence};
use minicbor::{Decode, Encode};

use crate::packet::slice::Slice;

/// The content of a packet; every time it is written, the result is the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Payload {
    /// The last sequence announced in packets before this one.
    pub(crate) announced: Sequence,
    pub(crate) frames: Vec<Frame>,
    /// Bytes added at the end, to keep the datagrams of a train equal.
    pub(crate) padding: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// An encoded [`Manifest`].
    Manifest(Bytes),
    Block {
        sequence: Sequence,
        offset: u64,
        bytes: Slice,
    },
    Head(Sequence),
    /// See the module `proof`.
    Proof(Bytes),
    /// See the module `proof`.
    List(Bytes),
    Part(ManifestPart),
}

/// A part of an encoded [`Manifest`] that is too long for a packet. Each packet has the part that it has room for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ManifestPart {
    /// The product that the manifest announces.
    pub(crate) sequence: Sequence,
    /// The position of the part in the manifest.
    pub(crate) offset: u16,
    /// The length of the whole manifest.
    pub(crate) total_bytes: u16,
    pub(crate) bytes: Bytes,
}

/// The frames of a payload, read one by one: known ones, and `None` in place of the first malformed one.
pub(crate) struct Frames {
    head: Bytes,
    tail: Slice,
}

/// A frame does not have the form of its kind.
struct Malformed;

/// A product and its place in the chain of the leg.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Manifest {
    /// The product announced before it.
    #[n(0)]
    pub(crate) previous: Sequence,
    #[n(1)]
    pub(crate) info: ProductInfo,
}

impl Payload {
    pub(crate) fn encoded_bytes(&self) -> usize {
        PREFIX_BYTES + self.frames.iter().map(Frame::encoded_bytes).sum::<usize>() + self.padding
    }

    /// True if it has a frame that a receiver acts on, other than blocks and proofs.
    pub(crate) fn speaks(&self) -> bool {
        self.frames.iter().any(|frame| !matches!(frame, Frame::Block { .. } | Frame::Proof(_)))
    }

    /// True if it has blocks and nothing else.
    pub(crate) fn is_blocks(&self) -> bool {
        self.frames.iter().all(|frame| matches!(frame, Frame::Block { .. }))
    }

    pub(crate) fn write(&self, buffer: &mut BytesMut) {
        buffer.put_u64(self.announced.0);
        self.frames.iter().for_each(|frame| frame.write(buffer));
        buffer.put_bytes(PADDING, self.padding);
    }

    /// Reads a payload in the parts that [`split_at`] determines; its blocks share their memory. `None` if any known
    /// frame is malformed.
    pub(crate) fn read(head: Bytes, tail: Slice) -> Option<Self> {
        let (announced, frames) = Frames::of(head, tail)?;
        Some(Self { announced, frames: frames.collect::<Option<_>>()?, padding: 0 })
    }
}

impl Frames {
    /// The last sequence announced before the payload, and its frames.
    pub(crate) fn of(mut head: Bytes, tail: Slice) -> Option<(Sequence, Self)> {
        let announced = Sequence(head.try_get_u64().ok()?);
        Some((announced, Self { head, tail }))
    }

    /// The next known frame; `Err` if a frame is malformed.
    fn read_next(&mut self) -> Result<Option<Frame>, Malformed> {
        while let Ok(kind) = self.head.try_get_u8() {
            if kind == PADDING {
                break;
            }
            let length = usize::from(self.head.try_get_u16().map_err(|_| Malformed)?);
            if length > self.head.len() {
                let (head, tail) = (std::mem::take(&mut self.head), std::mem::take(&mut self.tail));
                return Frame::read_apart((kind, length), head, tail).map(Some).ok_or(Malformed);
            }
            if let Some(frame) = Frame::read(kind, self.head.split_to(length)).ok_or(Malformed)? {
                return Ok(Some(frame));
            }
        }
        self.head.clear();
        if self.tail.is_empty() { Ok(None) } else { Err(Malformed) }
    }
}

impl Iterator for Frames {
    type Item = Option<Frame>;

    fn next(&mut self) -> Option<Option<Frame>> {
        match self.read_next() {
            Ok(frame) => frame.map(Some),
            Err(Malformed) => {
                (self.head, self.tail) = (Bytes::new(), Slice::default());
                Some(None)
            }
        }
    }
}

impl Frame {
    pub(crate) fn encoded_bytes(&self) -> usize {
        match self {
            Self::Manifest(encoded) => FRAME_BYTES + encoded.len(),
            Self::Block { bytes, .. } => BLOCK_BYTES + bytes.len(),
            Self::Head(_) => FRAME_BYTES + 8,
            Self::Proof(body) | Self::List(body) => FRAME_BYTES + body.len(),
            Self::Part(part) => PART_BYTES + part.bytes.len(),
        }
    }

    fn write(&self, buffer: &mut BytesMut) {
        match self {
            Self::Manifest(encoded) => {
                put_frame(buffer, MANIFEST, encoded.len());
                buffer.put_slice(encoded);
            }
            Self::Block { sequence, offset, bytes } => {
                put_frame(buffer, BLOCK, BLOCK_HEAD_BYTES + bytes.len());
                buffer.put_u64(sequence.0);
                buffer.put_u64(*offset);
                buffer.put_slice(bytes);
            }
            Self::Head(head) => {
                put_frame(buffer, HEAD, 8);
                buffer.put_u64(head.0);
            }
            Self::Proof(proof) => {
                put_frame(buffer, PROOF, proof.len());
                buffer.put_slice(proof);
            }
            Self::List(list) => {
                put_frame(buffer, LIST, list.len());
                buffer.put_slice(list);
            }
            Self::Part(part) => {
                put_frame(buffer, PART, PART_HEAD_BYTES + part.bytes.len());
                buffer.put_u64(part.sequence.0);
                buffer.put_u16(part.offset);
                buffer.put_u16(part.total_bytes);
                buffer.put_slice(&part.bytes);
            }
        }
    }

    /// `Some(None)` for a kind from a later version.
    fn read(kind: u8, mut body: Bytes) -> Option<Option<Self>> {
        let frame = match kind {
            MANIFEST => Self::Manifest(body),
            BLOCK => {
                let sequence = Sequence(body.try_get_u64().ok()?);
                let offset = body.try_get_u64().ok()?;
                offset.checked_add(body.len() as u64)?;
                Self::Block { sequence, offset, bytes: body.into() }
            }
            HEAD => Self::Head(Sequence(body.try_get_u64().ok()?)),
            PROOF => Self::Proof(body),
            LIST => Self::List(body),
            PART => Self::Part(ManifestPart::read(body)?),
            _ => return Some(None),
        };
        Some(Some(frame))
    }

    /// Reads a block whose bytes lie apart from the rest of its body.
    fn read_apart((kind, length): (u8, usize), mut body: Bytes, bytes: Slice) -> Option<Self> {
        let sequence = Sequence(body.try_get_u64().ok()?);
        let offset = body.try_get_u64().ok()?;
        offset.checked_add(bytes.len() as u64)?;
        let is_whole = kind == BLOCK && body.is_empty() && length == BLOCK_HEAD_BYTES + bytes.len();
        is_whole.then_some(Self::Block { sequence, offset, bytes })
    }
}

impl ManifestPart {
    /// `None` if it is empty, or outside of its manifest.
    fn read(mut body: Bytes) -> Option<Self> {
        let sequence = Sequence(body.try_get_u64().ok()?);
        let (offset, total_bytes) = (body.try_get_u16().ok()?, body.try_get_u16().ok()?);
        let is_inside = usize::from(offset) + body.len() <= usize::from(total_bytes);
        let is_bounded = !body.is_empty() && usize::from(total_bytes) <= LONGEST_MANIFEST_BYTES;
        (is_inside && is_bounded).then_some(Self { sequence, offset, total_bytes, bytes: body })
    }
}

impl Manifest {
    /// Encoding into memory can't fail; every receiver would refuse an empty result.
    pub(crate) fn encode(&self) -> Bytes {
        minicbor::to_vec(self).unwrap_or_default().into()
    }

    /// Decodes a manifest; it is malformed if its predecessor is not a lower sequence.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let manifest: Self = minicbor::decode(bytes).ok()?;
        (manifest.previous < manifest.info.key.sequence).then_some(manifest)
    }
}

/// The position of the bytes of a block that ends the payload; the payload's length if none does.
pub(crate) fn split_at(payload: &[u8]) -> usize {
    let mut at = PREFIX_BYTES;
    while let Some((&[kind, high, low], body)) = payload.get(at..).and_then(<[u8]>::split_first_chunk) {
        let length = usize::from(u16::from_be_bytes([high, low]));
        let ends = body.len() == length;
        if kind == PADDING || length > body.len() || (ends && (kind != BLOCK || length <= BLOCK_HEAD_BYTES)) {
            break;
        }
        if ends {
            return at + FRAME_BYTES + BLOCK_HEAD_BYTES;
        }
        at += FRAME_BYTES + length;
    }
    payload.len()
}

fn put_frame(buffer: &mut BytesMut, kind: u8, length: usize) {
    buffer.put_u8(kind);
    buffer.put_u16(u16::try_from(length).unwrap_or(u16::MAX));
}

/// The length of the sequence before the frames.
pub(crate) const PREFIX_BYTES: usize = 8;

/// The size of a frame's kind and length.
pub(crate) const FRAME_BYTES: usize = 3;

/// The overhead of a block beside its bytes.
pub(crate) const BLOCK_BYTES: usize = FRAME_BYTES + BLOCK_HEAD_BYTES;

/// The overhead of a part of a manifest beside its bytes.
pub(crate) const PART_BYTES: usize = FRAME_BYTES + PART_HEAD_BYTES;

/// The sequence, offset and total length of a part.
const PART_HEAD_BYTES: usize = 12;

/// A manifest without properties fits a datagram of 1,452 bytes.
const LONGEST_MANIFEST_BYTES: usize = 1_452 + PROPERTIES_BYTES_MAX;

/// The sequence and offset of a block.
const BLOCK_HEAD_BYTES: usize = 16;

const PADDING: u8 = 0;
const MANIFEST: u8 = 1;
const BLOCK: u8 = 2;
const HEAD: u8 = 3;
const PROOF: u8 = 8;
const LIST: u8 = 9;
const PART: u8 = 10;

#[cfg(test)]
mod tests {
    use downburst_model::{
        Class, Digest, Epoch, FeedName, Hops, HubName, LdmIdent, LdmStamp, Origin, ProductId, ProductKey,
        WallMicros,
    };
    use proptest::prelude::*;

    use super::*;

    fn encode(payload: &Payload) -> Bytes {
        let mut buffer = BytesMut::new();
        payload.write(&mut buffer);
        assert_eq!(buffer.len(), payload.encoded_bytes());
        buffer.freeze()
    }

    /// The content of a payload, read in its parts; it is the same when all bytes are in one.
    fn read(payload: Bytes) -> Option<Payload> {
        let mut head = payload.clone();
        let tail = head.split_off(split_at(&payload));
        let apart = Payload::read(head, tail.into());
        assert_eq!(apart, Payload::read(payload, Slice::default()));
        apart
    }

    fn frame() -> impl Strategy<Value = Frame> {
        let bytes = || prop::collection::vec(any::<u8>(), 0..300).prop_map(Bytes::from);
        prop_oneof![
            bytes().prop_map(Frame::Manifest),
            (any::<u64>(), 0..u64::MAX / 2, bytes()).prop_map(|(sequence, offset, bytes)| Frame::Block {
                sequence: Sequence(sequence),
                offset,
                bytes: bytes.into()
            }),
            any::<u64>().prop_map(|head| Frame::Head(Sequence(head))),
            bytes().prop_map(Frame::Proof),
            bytes().prop_map(Frame::List),
        ]
    }

    proptest! {
        #[test]
        fn round_trip(
            announced in any::<u64>(),
            frames in prop::collection::vec(frame(), 0..6),
            padding in 0usize..20,
        ) {
            let payload = Payload { announced: Sequence(announced), frames, padding };
            let read = read(encode(&payload)).unwrap();
            prop_assert_eq!(read, Payload { padding: 0, ..payload });
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Some(payload) = read(bytes.into()) {
                for frame in payload.frames {
                    if let Frame::Manifest(encoded) = frame {
                        Manifest::decode(&encoded);
                    }
                }
            }
        }

        #[test]
        fn a_truncated_payload_is_refused_or_a_prefix(
            frames in prop::collection::vec(frame(), 1..4),
            cut in any::<prop::sample::Index>(),
        ) {
            let payload = Payload { announced: Sequence(1), frames, padding: 0 };
            let bytes = encode(&payload);
            if let Some(read) = read(bytes.slice(..cut.index(bytes.len()))) {
                prop_assert!(read.frames.len() < payload.frames.len());
                prop_assert!(payload.frames.starts_with(&read.frames));
            }
        }
    }

    #[test]
    fn unknown_kinds_are_skipped() {
        let mut buffer = BytesMut::new();
        buffer.put_u64(4);
        put_frame(&mut buffer, 200, 5);
        buffer.put_slice(b"later");
        Frame::Head(Sequence(9)).write(&mut buffer);
        assert_eq!(read(buffer.freeze()).unwrap().frames, [Frame::Head(Sequence(9))]);
    }

    #[test]
    fn a_block_beyond_the_number_line_is_malformed() {
        let block =
            Frame::Block { sequence: Sequence(1), offset: u64::MAX, bytes: Bytes::from_static(b"xy").into() };
        let payload = Payload { announced: Sequence(0), frames: vec![block], padding: 0 };
        assert_eq!(read(encode(&payload)), None);
    }

    fn longest_way() -> Hops {
        let hub = |length: usize| HubName::parse(&"h".repeat(length)).unwrap();
        let first = Hops::through(None, hub(30)).unwrap();
        (0..15).fold(first, |way, _| Hops::through(Some(&way), hub(15)).unwrap())
    }

    fn longest_stamp() -> LdmStamp {
        LdmStamp {
            signature: [255; 16],
            sequence: u32::MAX,
            feed_type: u32::MAX,
            ident: LdmIdent::new(vec![255; 255]),
        }
    }

    #[test]
    fn the_longest_manifest_fits_the_usual_datagram_and_without_hops_the_smallest() {
        let info = ProductInfo {
            key: ProductKey {
                feed: FeedName::parse(&"F".repeat(64)).unwrap(),
                epoch: Epoch(u64::MAX),
                sequence: Sequence(u64::MAX),
            },
            id: ProductId::parse(&"i".repeat(255)).unwrap(),
            origin: Origin::parse(&"o".repeat(255)).unwrap(),
            created: WallMicros(i64::MIN),
            stored: WallMicros(i64::MIN),
            size: u64::MAX,
            digest: Digest([255; 32]),
            class: Class::Bulk,
            hops: Some(longest_way()),
            ldm: Some(longest_stamp()),
            properties: None,
        };
        let datagram_bytes = |info: ProductInfo| {
            let encoded = Manifest { previous: Sequence(u64::MAX - 1), info }.encode();
            crate::packet::seal::HEADER_BYTES
                + PREFIX_BYTES
                + FRAME_BYTES
                + encoded.len()
                + crate::packet::seal::TAG_BYTES
        };
        assert!(datagram_bytes(info.clone()) <= 1_452);
        assert!(
            datagram_bytes(ProductInfo { hops: None, ldm: None, ..info })
                <= crate::sender::SMALLEST_DATAGRAM_BYTES
        );
    }
}
