//! XDR (RFC 4506) as far as LDM uses it: whole words of four bytes, opaques and strings padded with zeros.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use thiserror::Error;

use crate::wire::text::Text;

/// Errors in encoded values. The peer is at fault.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// The message may be incomplete.
    #[error("a message ends too early")]
    Short,
    #[error("{what} of {count}, where the protocol allows {limit}")]
    TooLong { what: &'static str, count: u32, limit: u32 },
    #[error("{value} in the place of {what}")]
    Unknown { what: &'static str, value: u32 },
    #[error("a product made at {seconds} s and {micros} µs, which no clock from 1970 to 2038 shows")]
    Moment { seconds: i32, micros: i32 },
}

/// Reads consecutive values.
#[derive(Clone, Debug)]
pub(crate) struct Reader(Bytes);

impl Reader {
    pub(crate) fn new(bytes: Bytes) -> Self {
        Self(bytes)
    }

    /// The unread bytes.
    pub(crate) fn rest(self) -> Bytes {
        self.0
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        self.0.try_get_u32().map_err(|_| Malformed::Short)
    }

    pub(crate) fn i32(&mut self) -> Result<i32, Malformed> {
        self.0.try_get_i32().map_err(|_| Malformed::Short)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let mut array = [0; N];
        self.0.try_copy_to_slice(&mut array).map_err(|_| Malformed::Short)?;
        Ok(array)
    }

    /// Reads a count or length, which may not exceed `limit`.
    pub(crate) fn count(&mut self, what: &'static str, limit: u32) -> Result<u32, Malformed> {
        let count = self.u32()?;
        if count > limit {
            return Err(Malformed::TooLong { what, count, limit });
        }
        Ok(count)
    }

    pub(crate) fn text<const LIMIT: usize>(&mut self, what: &'static str) -> Result<Text<LIMIT>, Malformed> {
        let limit = u32::try_from(LIMIT).unwrap_or(u32::MAX);
        let bytes = self.opaque(what, limit)?;
        Text::new(bytes).map_err(|_| Malformed::Short)
    }

    /// Reads bytes that follow their length and precede padding. The content of the padding is ignored.
    pub(crate) fn opaque(&mut self, what: &'static str, limit: u32) -> Result<Bytes, Malformed> {
        let length = self.count(what, limit)? as usize;
        let padded = length.saturating_add(padding(length));
        if self.0.len() < padded {
            return Err(Malformed::Short);
        }
        let mut bytes = self.0.split_to(padded);
        bytes.truncate(length);
        Ok(bytes)
    }
}

/// A value with one encoding.
pub(crate) trait Xdr: Sized {
    fn encode(&self, out: &mut BytesMut);
    fn decode(reader: &mut Reader) -> Result<Self, Malformed>;
}

pub(crate) fn put_opaque(out: &mut BytesMut, bytes: &[u8]) {
    out.put_u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    out.put_slice(bytes);
    out.put_bytes(0, padding(bytes.len()));
}

/// Number of zeros that complete the last word.
pub(crate) fn padding(length: usize) -> usize {
    length.wrapping_neg() % WORD_BYTES
}

const WORD_BYTES: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opaques_fill_whole_words() {
        for (length, whole) in [(0, 4), (1, 8), (4, 8), (5, 12)] {
            let mut out = BytesMut::new();
            put_opaque(&mut out, &vec![7; length]);
            assert_eq!(out.len(), whole);
            let mut reader = Reader::new(out.freeze());
            assert_eq!(reader.opaque("bytes", 100).unwrap().len(), length);
            assert!(reader.rest().is_empty());
        }
    }

    #[test]
    fn lengths_are_checked_before_bytes_are_looked_for() {
        let mut reader = Reader::new(Bytes::from_static(&[0xff; 4]));
        assert_eq!(
            reader.text::<64>("origin"),
            Err(Malformed::TooLong { what: "origin", count: u32::MAX, limit: 64 })
        );
        let mut reader = Reader::new(Bytes::from_static(&[0, 0, 0, 3, 1, 2, 3]));
        assert_eq!(reader.text::<64>("origin"), Err(Malformed::Short), "the padding is missing");
    }
}
