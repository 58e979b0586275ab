//! The clear header of a datagram and the sealing of its payload.
//!
//! | bytes | content |
//! |---|---|
//! | 0 | mark and version, [`MARK`] |
//! | 1 | key id |
//! | 2..6 | leg id, big-endian |
//! | 6..14 | packet number, big-endian |
//! | 14.. | the payload under the key's cipher, 16 bytes of tag at the end; the header is the additional data |
use std::ops::Range;

use bytes::BytesMut;
use downburst_model::LegId;
use ring::aead::{AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};

use crate::{Cipher, LegKey};

/// Seals and opens the datagrams of one life of a leg under one key.
pub(crate) struct Seal {
    /// `None` only if the library refuses a key of the right length; then no datagram is opened or sealed.
    key: Option<LessSafeKey>,
    key_id: u8,
    leg: LegId,
    epoch_low: [u8; 4],
}

impl Seal {
    pub(crate) fn new(leg: LegId, leg_epoch: u64, key: &LegKey) -> Self {
        let [_, _, _, _, low @ ..] = leg_epoch.to_be_bytes();
        Self {
            key: UnboundKey::new(algorithm(key.cipher), &key.secret).ok().map(LessSafeKey::new),
            key_id: key.id,
            leg,
            epoch_low: low,
        }
    }

    pub(crate) fn key_id(&self) -> u8 {
        self.key_id
    }

    /// Makes a datagram at the end of `arena`, so that the datagrams of a train are adjacent in memory. `write`
    /// appends the payload in clear.
    pub(crate) fn seal(
        &self,
        packet: u64,
        arena: &mut BytesMut,
        write: impl FnOnce(&mut BytesMut),
    ) -> Option<BytesMut> {
        let header = self.header(packet);
        arena.extend_from_slice(&header);
        write(arena);
        let mut datagram = arena.split();
        let (_, payload) = datagram.split_at_mut_checked(HEADER_BYTES)?;
        let tag = self
            .key
            .as_ref()?
            .seal_in_place_separate_tag(self.nonce(packet), Aad::from(header), payload)
            .ok()?;
        datagram.unsplit(self.tag(arena, tag.as_ref()));
        Some(datagram)
    }

    /// The packet number and the place of the payload in clear, if the datagram belongs to this life of the leg and
    /// is intact. It is decrypted in place.
    pub(crate) fn open(&self, datagram: &mut [u8]) -> Option<(u64, Range<usize>)> {
        let packet = self.packet_number(datagram)?;
        let (header, payload) = datagram.split_first_chunk_mut::<HEADER_BYTES>()?;
        let (nonce, header) = (self.nonce(packet), Aad::from(*header));
        let length = self.key.as_ref()?.open_in_place(nonce, header, payload).ok()?.len();
        Some((packet, HEADER_BYTES..HEADER_BYTES + length))
    }

    /// Writes the tag after the payload in the arena and splits it off, so that joining both copies nothing.
    fn tag(&self, arena: &mut BytesMut, tag: &[u8]) -> BytesMut {
        arena.extend_from_slice(tag);
        arena.split()
    }

    fn packet_number(&self, datagram: &[u8]) -> Option<u64> {
        let (header, _) = datagram.split_first_chunk::<HEADER_BYTES>()?;
        let [mark, key, a, b, c, d, number @ ..] = *header;
        let ours = mark == MARK && key == self.key_id && u32::from_be_bytes([a, b, c, d]) == self.leg.0;
        ours.then(|| u64::from_be_bytes(number))
    }

    fn header(&self, packet: u64) -> [u8; HEADER_BYTES] {
        let [a, b, c, d] = self.leg.0.to_be_bytes();
        let [p0, p1, p2, p3, p4, p5, p6, p7] = packet.to_be_bytes();
        [MARK, self.key_id, a, b, c, d, p0, p1, p2, p3, p4, p5, p6, p7]
    }

    fn nonce(&self, packet: u64) -> Nonce {
        let [e0, e1, e2, e3] = self.epoch_low;
        let [p0, p1, p2, p3, p4, p5, p6, p7] = packet.to_be_bytes();
        Nonce::assume_unique_for_key([e0, e1, e2, e3, p0, p1, p2, p3, p4, p5, p6, p7])
    }
}

/// The id of a datagram's key; the key may be unknown.
pub(crate) fn named_key(datagram: &[u8]) -> Option<u8> {
    datagram.get(1).copied()
}

pub(crate) fn algorithm(cipher: Cipher) -> &'static Algorithm {
    match cipher {
        Cipher::Aes256Gcm => &AES_256_GCM,
        Cipher::ChaCha20Poly1305 => &CHACHA20_POLY1305,
    }
}

/// The length of the clear header.
pub(crate) const HEADER_BYTES: usize = 14;

/// The length of the tag that sealing appends.
pub(crate) const TAG_BYTES: usize = 16;

/// `D` for Downburst in the high half, the version of the format in the low half.
pub(crate) const MARK: u8 = 0xd1;

#[cfg(test)]
mod tests {
    use super::*;

    fn seal() -> Seal {
        Seal::new(LegId(7), 0x1122_3344_5566_7788, &LegKey::new(3, [9; 32]))
    }

    fn opened(seal: &Seal, mut datagram: Vec<u8>) -> Option<(u64, Vec<u8>)> {
        let (packet, payload) = seal.open(&mut datagram)?;
        Some((packet, datagram[payload].to_vec()))
    }

    fn sealed(packet: u64, payload: &[u8]) -> BytesMut {
        seal().seal(packet, &mut BytesMut::new(), |buffer| buffer.extend_from_slice(payload)).unwrap()
    }

    #[test]
    fn what_is_sealed_opens() {
        let datagram = sealed(5, b"payload");
        assert_eq!(datagram.len(), HEADER_BYTES + 7 + TAG_BYTES);
        assert_eq!(opened(&seal(), datagram.to_vec()), Some((5, b"payload".to_vec())));
    }

    #[test]
    fn any_flipped_bit_is_noticed() {
        let datagram = sealed(5, b"payload");
        for bit in 0..datagram.len() * 8 {
            let mut forged = datagram.to_vec();
            forged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(opened(&seal(), forged), None, "bit {bit}");
        }
    }

    #[test]
    fn truncated_datagrams_do_not_open() {
        let datagram = sealed(5, b"payload");
        for length in 0..datagram.len() {
            assert_eq!(opened(&seal(), datagram[..length].to_vec()), None, "{length} bytes");
        }
    }

    #[test]
    fn another_life_of_the_leg_does_not_open() {
        let other = Seal::new(LegId(7), 0x1122_3344_5566_7789, &LegKey::new(3, [9; 32]));
        assert_eq!(opened(&other, sealed(5, b"payload").to_vec()), None);
    }

    #[test]
    fn datagrams_of_a_train_lie_side_by_side() {
        let mut arena = BytesMut::with_capacity(4_096);
        let (seal, start) = (seal(), arena.as_ptr());
        let write = |buffer: &mut BytesMut| buffer.extend_from_slice(&[1; 100]);
        let first = seal.seal(1, &mut arena, write).unwrap();
        let second = seal.seal(2, &mut arena, write).unwrap();
        assert_eq!(first.as_ptr(), start);
        assert_eq!(first.as_ptr() as usize + first.len(), second.as_ptr() as usize);
    }
}
