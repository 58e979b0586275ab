//! The datagram of a probe: a header of 40 bytes, and filling up to the size of the probe's packets.
//!
//! | bytes | content (big-endian) |
//! |---|---|
//! | 0..4 | `DbP1` |
//! | 4 | kind: 1 hello, 2 load |
//! | 5 | 0 |
//! | 6..8 | step |
//! | 8..16 | number within the step, from 0 |
//! | 16..24 | the sender's wall clock, microseconds since 1970 |
//! | 24..40 | the first half of BLAKE3 of bytes 0..24, keyed by the probe's key |
use downburst_model::WallMicros;
use minicbor::{Decode, Encode};

/// The secret of one probe, drawn by the hub and given to the site by its session.
#[derive(Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(transparent)]
pub struct Key(#[cbor(n(0), with = "minicbor::bytes")] pub [u8; 32]);

/// The header of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The purpose.
    pub kind: PacketKind,
    /// The step of the probe.
    pub step: u16,
    /// The number within the step, from 0 without gaps.
    pub number: u64,
    /// The sender's wall clock.
    pub sent: WallMicros,
}

/// The purpose of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// Site to hub: opens the way for the hub's packets, and names the site's address.
    Hello,
    /// A packet of a step.
    Load,
}

impl Packet {
    /// Writes the header into the first bytes of a datagram; the rest is filling. A datagram shorter than a header
    /// stays as it is.
    pub fn write(&self, key: &Key, datagram: &mut [u8]) {
        let Some((signed, tag)) =
            datagram.get_mut(..HEADER_BYTES).and_then(|it| it.split_at_mut_checked(SIGNED_BYTES))
        else {
            return;
        };
        let kind = match self.kind {
            PacketKind::Hello => HELLO,
            PacketKind::Load => LOAD,
        };
        let mut header = [0; SIGNED_BYTES];
        let fields = MAGIC.into_iter().chain([kind, 0]).chain(self.step.to_be_bytes());
        let fields = fields.chain(self.number.to_be_bytes()).chain(self.sent.0.to_be_bytes());
        header.iter_mut().zip(fields).for_each(|(byte, field)| *byte = field);
        signed.copy_from_slice(&header);
        tag.copy_from_slice(&key.tag(&header));
    }

    /// Reads a datagram; `None`: it is no packet of the probe with this key.
    pub fn read(key: &Key, datagram: &[u8]) -> Option<Self> {
        let (signed, rest) = datagram.split_first_chunk::<SIGNED_BYTES>()?;
        let tag = rest.first_chunk::<TAG_BYTES>()?;
        let (magic, fields) = signed.split_first_chunk::<4>()?;
        let (kind, fields) = fields.split_first_chunk::<2>()?;
        let (step, fields) = fields.split_first_chunk::<2>()?;
        let (number, sent) = fields.split_first_chunk::<8>()?;
        let kind = match kind {
            [HELLO, 0] => PacketKind::Hello,
            [LOAD, 0] => PacketKind::Load,
            _ => return None,
        };
        (*magic == MAGIC && same(tag, &key.tag(signed))).then_some(())?;
        Some(Self {
            kind,
            step: u16::from_be_bytes(*step),
            number: u64::from_be_bytes(*number),
            sent: WallMicros(i64::from_be_bytes(*sent.first_chunk()?)),
        })
    }
}

impl Key {
    pub(crate) fn tag(&self, header: &[u8; SIGNED_BYTES]) -> [u8; TAG_BYTES] {
        let hash = blake3::keyed_hash(&self.0, header);
        hash.as_bytes().first_chunk().copied().unwrap_or_default()
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(..)")
    }
}

/// Compares in the same time wherever they differ.
pub(crate) fn same(left: &[u8; TAG_BYTES], right: &[u8; TAG_BYTES]) -> bool {
    left.iter().zip(right).fold(0, |differs, (left, right)| differs | (left ^ right)) == 0
}

const MAGIC: [u8; 4] = *b"DbP1";
const HELLO: u8 = 1;
const LOAD: u8 = 2;
pub(crate) const SIGNED_BYTES: usize = 24;
const TAG_BYTES: usize = 16;
pub(crate) const HEADER_BYTES: usize = SIGNED_BYTES + TAG_BYTES;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEY: Key = Key([7; 32]);
    const PACKET: Packet = Packet { kind: PacketKind::Load, step: 3, number: 9, sent: WallMicros(-5) };

    fn written() -> [u8; 64] {
        let mut datagram = [0xaa; 64];
        PACKET.write(&KEY, &mut datagram);
        datagram
    }

    #[test]
    fn a_datagram_is_read_as_written_and_its_filling_is_free() {
        let datagram = written();
        assert_eq!(&datagram[..8], b"DbP1\x02\x00\x00\x03");
        assert_eq!(Packet::read(&KEY, &datagram), Some(PACKET));
        assert_eq!(Packet::read(&KEY, &datagram[..HEADER_BYTES]), Some(PACKET));
        let hello = Packet { kind: PacketKind::Hello, ..PACKET };
        let mut bytes = [0; HEADER_BYTES];
        hello.write(&KEY, &mut bytes);
        assert_eq!(Packet::read(&KEY, &bytes), Some(hello));
    }

    #[test]
    fn another_key_and_every_changed_bit_of_the_header_are_refused() {
        let datagram = written();
        assert_eq!(Packet::read(&Key([8; 32]), &datagram), None);
        for bit in 0..HEADER_BYTES * 8 {
            let mut spoilt = datagram;
            spoilt[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Packet::read(&KEY, &spoilt), None, "bit {bit}");
        }
    }

    #[test]
    fn a_short_datagram_is_neither_written_nor_read() {
        let mut short = [0; HEADER_BYTES - 1];
        PACKET.write(&KEY, &mut short);
        assert_eq!(short, [0; HEADER_BYTES - 1]);
        assert_eq!(Packet::read(&KEY, &written()[..HEADER_BYTES - 1]), None);
        assert_eq!(format!("{KEY:?}"), "Key(..)");
    }

    proptest! {
        #[test]
        fn nothing_from_the_network_is_taken_for_a_packet(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
            prop_assert_eq!(Packet::read(&KEY, &bytes), None);
        }
    }
}
