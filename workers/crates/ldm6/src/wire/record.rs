//! Record marking (RFC 5531, section 11): a record is one or more fragments. A word with its length precedes
//! each, the last one's with the top bit set.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Parses the records of a stream, however it is split.
#[derive(Debug, Default)]
pub(crate) struct Records {
    waiting: Bytes,
    /// An incomplete mark: fewer than four bytes.
    mark: BytesMut,
    /// Bytes of the fragment that are yet to be read.
    left: usize,
    is_last: bool,
    in_fragment: bool,
    returned: Option<Piece>,
}

/// Consecutive bytes of a record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) bytes: Bytes,
    /// True if the record ends with these bytes.
    pub(crate) ends: bool,
}

impl Records {
    pub(crate) fn push(&mut self, bytes: Bytes) {
        if self.waiting.is_empty() {
            self.waiting = bytes;
        } else {
            let mut joined = BytesMut::from(std::mem::take(&mut self.waiting));
            joined.extend_from_slice(&bytes);
            self.waiting = joined.freeze();
        }
    }

    /// Number of bytes pushed but not yet read.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.waiting.len()
    }

    /// Returns these bytes, the last ones read, so that they are read again.
    pub(crate) fn put_back(&mut self, piece: Piece) {
        self.returned = Some(piece);
    }

    pub(crate) fn next(&mut self) -> Option<Piece> {
        if let Some(piece) = self.returned.take() {
            return Some(piece);
        }
        if !self.in_fragment {
            self.read_mark()?;
        }
        if self.left > 0 && self.waiting.is_empty() {
            return None;
        }
        let bytes = self.waiting.split_to(self.left.min(self.waiting.len()));
        self.left = self.left.saturating_sub(bytes.len());
        self.in_fragment = self.left > 0;
        Some(Piece { ends: self.is_last && !self.in_fragment, bytes })
    }

    fn read_mark(&mut self) -> Option<()> {
        let missing = MARK_BYTES.saturating_sub(self.mark.len()).min(self.waiting.len());
        self.mark.extend_from_slice(&self.waiting.split_to(missing));
        if self.mark.len() < MARK_BYTES {
            return None;
        }
        let mark = self.mark.get_u32();
        self.mark.clear();
        self.left = (mark & !LAST) as usize;
        self.is_last = mark & LAST != 0;
        self.in_fragment = true;
        Some(())
    }
}

/// A record of one fragment.
pub(crate) fn record(body: &[u8]) -> Bytes {
    record_begin(body, 0)
}

/// The beginning of a record of one fragment; `later` more bytes are sent separately.
pub(crate) fn record_begin(body: &[u8], later: usize) -> Bytes {
    let whole = u32::try_from(body.len().saturating_add(later)).unwrap_or(u32::MAX);
    let mut out = BytesMut::with_capacity(MARK_BYTES.saturating_add(body.len()));
    out.put_u32(LAST | whole);
    out.put_slice(body);
    out.freeze()
}

const MARK_BYTES: usize = 4;
const LAST: u32 = 1 << 31;

#[cfg(test)]
mod tests {
    use super::*;

    fn records(stream: &[u8], split: usize) -> Vec<Vec<u8>> {
        let (mut records, mut whole, mut current) = (Records::default(), Vec::new(), Vec::new());
        for part in stream.chunks(split) {
            records.push(Bytes::copy_from_slice(part));
            while let Some(piece) = records.next() {
                current.extend_from_slice(&piece.bytes);
                if piece.ends {
                    whole.push(std::mem::take(&mut current));
                }
            }
        }
        whole
    }

    #[test]
    fn records_come_whole_however_they_are_split() {
        let mut stream = record(b"one").to_vec();
        stream.extend([0, 0, 0, 2, b't', b'w', 0, 0, 0, 0, 0x80, 0, 0, 1, b'o']);
        stream.extend(record(b""));
        stream.extend(record(b"end"));
        for split in 1..=stream.len() {
            assert_eq!(records(&stream, split), [&b"one"[..], b"two", b"", b"end"], "in parts of {split}");
        }
    }

    #[test]
    fn empty_fragments_that_are_not_the_last_end_nothing() {
        assert_eq!(records(&[0; 400], 7), Vec::<Vec<u8>>::new());
    }
}
