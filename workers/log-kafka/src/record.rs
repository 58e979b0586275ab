//! What the records of the two topics hold.

use downburst_log::SourceStamp;
use downburst_model::ProductInfo;
use minicbor::{Decode, Encode};

/// A product and where its bytes are: the value of a record of the index topic.
#[derive(Clone, Debug, Encode, Decode)]
#[cbor(map)]
pub(crate) struct Row {
    #[n(0)]
    pub(crate) info: ProductInfo,
    #[n(1)]
    pub(crate) source: Option<SourceStamp>,
    /// Of the first part in the product topic.
    #[n(2)]
    pub(crate) offset: i64,
    #[n(3)]
    pub(crate) parts: u32,
}

impl Row {
    pub(crate) fn sequence(&self) -> u64 {
        self.info.key.sequence.0
    }

    /// Encoding into memory can't fail.
    pub(crate) fn to_cbor(&self) -> Vec<u8> {
        minicbor::to_vec(self).unwrap_or_default()
    }

    /// Where the bytes of the next product can begin.
    pub(crate) fn end(&self) -> i64 {
        self.offset.saturating_add(i64::from(self.parts))
    }
}

/// The key of a part: sequence and number, so that bytes are never taken for another product's.
pub(crate) fn part_key(sequence: u64, part: u32) -> [u8; 12] {
    let mut key = [0; 12];
    let (front, back) = key.split_at_mut(8);
    front.copy_from_slice(&sequence.to_be_bytes());
    back.copy_from_slice(&part.to_be_bytes());
    key
}

/// Sequence and number of a part; `None` if the record is none of ours.
pub(crate) fn parse_part_key(key: Option<&[u8]>) -> Option<(u64, u32)> {
    let (sequence, part) = key?.split_at_checked(8)?;
    Some((u64::from_be_bytes(sequence.try_into().ok()?), u32::from_be_bytes(part.try_into().ok()?)))
}

/// Half of what a broker takes as one record by default.
pub(crate) const PART_BYTES: usize = 512 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_key_comes_back_and_strangers_are_refused() {
        assert_eq!(parse_part_key(Some(&part_key(u64::MAX - 1, 7))), Some((u64::MAX - 1, 7)));
        for foreign in [None, Some(&b""[..]), Some(b"sequence"), Some(b"sequence and more")] {
            assert_eq!(parse_part_key(foreign), None);
        }
    }
}
