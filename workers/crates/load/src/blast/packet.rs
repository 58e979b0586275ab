//! A datagram: the offset of its bytes in the file, big-endian, then the bytes, sealed or not.

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use crate::Outcome;

/// Writes and reads datagrams.
pub(crate) struct Packets {
    key: Option<LessSafeKey>,
}

impl Packets {
    /// Datagrams of one run; with `seal`, encrypted with a key that both ends derive.
    pub(crate) fn new(seal: bool) -> Outcome<Self> {
        let secret = blake3::derive_key("downburst load of a measurement: blast", b"");
        let key =
            || UnboundKey::new(&AES_256_GCM, &secret).map(LessSafeKey::new).map_err(|_| "no AES-256-GCM");
        Ok(Self { key: if seal { Some(key()?) } else { None } })
    }

    /// Number of the file's bytes in a full datagram.
    pub(crate) fn content_bytes(&self) -> usize {
        DATAGRAM_BYTES - HEADER_BYTES - self.tag_bytes()
    }

    /// Appends a datagram to a train.
    pub(crate) fn write(&self, offset: u64, content: &[u8], train: &mut Vec<u8>) -> Outcome {
        let header = offset.to_be_bytes();
        train.extend_from_slice(&header);
        let start = train.len();
        train.extend_from_slice(content);
        if let Some(key) = &self.key {
            let sealed = train.get_mut(start..).unwrap_or_default();
            let tag = key.seal_in_place_separate_tag(nonce(header), Aad::from(header), sealed);
            train.extend_from_slice(tag.map_err(|_| "a datagram can't be sealed")?.as_ref());
        }
        Ok(())
    }

    /// The offset and the bytes; none if the datagram does not belong to this run.
    pub(crate) fn read<'a>(&self, datagram: &'a mut [u8]) -> Option<(u64, &'a [u8])> {
        let (header, content) = datagram.split_first_chunk_mut::<HEADER_BYTES>()?;
        let offset = u64::from_be_bytes(*header);
        let content = match &self.key {
            Some(key) => key.open_in_place(nonce(*header), Aad::from(*header), content).ok()?,
            None => content,
        };
        Some((offset, content))
    }

    fn tag_bytes(&self) -> usize {
        if self.key.is_some() { AES_256_GCM.tag_len() } else { 0 }
    }
}

/// The key is used for one file, with each offset used once.
fn nonce(header: [u8; HEADER_BYTES]) -> Nonce {
    let mut nonce = [0; 12];
    nonce.iter_mut().skip(4).zip(header).for_each(|(byte, digit)| *byte = digit);
    Nonce::assume_unique_for_key(nonce)
}

/// Size of a leg's datagrams.
pub(super) const DATAGRAM_BYTES: usize = 1_452;
const HEADER_BYTES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_in_clear_and_sealed_are_read_again() {
        for seal in [false, true] {
            let packets = Packets::new(seal).unwrap();
            let content = vec![7; packets.content_bytes()];
            let mut train = Vec::new();
            packets.write(40, &content, &mut train).unwrap();
            assert_eq!(train.len(), DATAGRAM_BYTES);
            assert_eq!(packets.read(&mut train), Some((40, content.as_slice())));
        }
    }

    #[test]
    fn a_sealed_datagram_that_was_changed_is_refused() {
        let packets = Packets::new(true).unwrap();
        let mut train = Vec::new();
        packets.write(40, b"content", &mut train).unwrap();
        train[9] ^= 1;
        assert_eq!(packets.read(&mut train), None);
        assert_eq!(packets.read(&mut [1, 2, 3]), None);
    }
}
