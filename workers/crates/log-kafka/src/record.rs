//! The records of a feed's topic.

use downburst_model::Epoch;
use minicbor::{Decode, Encode};

/// A record's kind, with the content of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Opening,
    Manifest,
    Part { upload: Random, part: u32 },
}

/// Distinguishes uploads, batches and writers.
pub(crate) type Random = [u8; 16];

/// A writer begins, or begins again.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub(crate) struct Opening {
    #[n(0)]
    pub(crate) epoch: Epoch,
    #[cbor(n(1), with = "minicbor::bytes")]
    pub(crate) writer: Random,
}

/// The part of a manifest before the bytes.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub(crate) struct Manifest {
    #[n(0)]
    pub(crate) epoch: Epoch,
    /// The transaction, by which a writer determines the outcome of one without an answer.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub(crate) batch: Random,
    /// The product's position in the transaction.
    #[n(2)]
    pub(crate) place: u32,
    /// The place of the bytes, if they are not in the manifest.
    #[n(3)]
    pub(crate) upload: Option<Upload>,
    /// The log's description of the product.
    #[cbor(n(4), with = "minicbor::bytes")]
    pub(crate) description: Vec<u8>,
}

/// The parts of a large product.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub(crate) struct Upload {
    #[cbor(n(0), with = "minicbor::bytes")]
    pub(crate) id: Random,
    #[n(1)]
    pub(crate) parts: u32,
}

impl Kind {
    pub(crate) fn key(self) -> Vec<u8> {
        let mut key = MARK.to_vec();
        match self {
            Self::Opening => key.push(OPENING),
            Self::Manifest => key.push(MANIFEST),
            Self::Part { upload, part } => {
                key.push(PART);
                key.extend_from_slice(&upload);
                key.extend_from_slice(&part.to_be_bytes());
            }
        }
        key
    }

    /// `None` for a foreign record.
    pub(crate) fn parse(key: Option<&[u8]>) -> Option<Self> {
        let (kind, rest) = key?.strip_prefix(&MARK)?.split_first()?;
        match (*kind, rest) {
            (OPENING, []) => Some(Self::Opening),
            (MANIFEST, []) => Some(Self::Manifest),
            (PART, rest) => {
                let (upload, part) = rest.split_first_chunk()?;
                Some(Self::Part { upload: *upload, part: u32::from_be_bytes(part.try_into().ok()?) })
            }
            _ => None,
        }
    }
}

impl Opening {
    /// Encoding into memory can't fail.
    pub(crate) fn to_value(&self) -> Vec<u8> {
        minicbor::to_vec(self).unwrap_or_default()
    }

    pub(crate) fn parse(value: &[u8]) -> Option<Self> {
        minicbor::decode(value).ok()
    }
}

impl Manifest {
    /// The length of the description, the description itself, and the product's bytes.
    pub(crate) fn to_value(&self, bytes: &[u8]) -> Vec<u8> {
        let said = minicbor::to_vec(self).unwrap_or_default();
        let mut value = Vec::with_capacity(LENGTH_BYTES + said.len() + bytes.len());
        value.extend_from_slice(&(said.len() as u32).to_be_bytes());
        value.extend_from_slice(&said);
        value.extend_from_slice(bytes);
        value
    }

    pub(crate) fn parse(value: &[u8]) -> Option<(Self, &[u8])> {
        let (length, rest) = value.split_first_chunk::<LENGTH_BYTES>()?;
        let (said, bytes) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        Some((minicbor::decode(said).ok()?, bytes))
    }
}

/// Half of the largest record that a broker accepts by default. Larger products are sent in parts of this size.
pub(crate) const PART_BYTES: usize = 512 << 10;
/// Ends with the version of the format.
const MARK: [u8; 3] = *b"DB\x01";
const OPENING: u8 = b'O';
const MANIFEST: u8 = b'M';
const PART: u8 = b'P';
const LENGTH_BYTES: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_back_and_strangers_are_refused() {
        for kind in [Kind::Opening, Kind::Manifest, Kind::Part { upload: [7; 16], part: 300 }] {
            assert_eq!(Kind::parse(Some(&kind.key())), Some(kind));
        }
        for foreign in [
            None,
            Some(&b""[..]),
            Some(b"DB\x02M"),
            Some(b"DB\x01"),
            Some(b"DB\x01Mx"),
            Some(b"DB\x01Pshort"),
        ] {
            assert_eq!(Kind::parse(foreign), None, "{foreign:?}");
        }
    }

    #[test]
    fn a_manifest_comes_back_with_its_bytes_and_a_torn_one_does_not() {
        let upload = Some(Upload { id: [1; 16], parts: 2 });
        let manifest =
            Manifest { epoch: Epoch(5), batch: [2; 16], place: 3, upload, description: vec![4; 40] };
        let value = manifest.to_value(b"bytes");
        assert_eq!(Manifest::parse(&value), Some((manifest, &b"bytes"[..])));
        for length in [0, 3, 4, 30] {
            assert_eq!(Manifest::parse(&value[..length]), None);
        }
    }
}
