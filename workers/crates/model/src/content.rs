use std::fmt::Debug;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

/// The bytes of a stored product: in memory, or in storage that is read piece by piece.
///
/// A copy is cheap, and the bytes stay readable as long as a copy lives, even if the product is evicted.
#[derive(Clone, Debug)]
pub enum Content {
    /// In memory, or mapped.
    Memory(Bytes),
    /// In storage.
    Stored(Arc<dyn StoredContent>),
}

/// Bytes in storage. A driver implements it; a machine reads through it what it is about to send.
pub trait StoredContent: Debug + Send + Sync {
    /// The number of bytes.
    fn length(&self) -> usize;

    /// The bytes of a range inside the content; `None` if storage can't return them, which the implementation logs.
    fn read(&self, range: Range<usize>) -> Option<Bytes>;

    /// The memory that it occupies once it was read, in bytes.
    fn memory_bytes(&self) -> usize;

    /// The file that holds exactly these bytes. It may be gone.
    fn path(&self) -> &Path;
}

impl Content {
    /// The number of bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Memory(bytes) => bytes.len(),
            Self::Stored(stored) => stored.length(),
        }
    }

    /// True for an empty product.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of a range; `None` if it does not lie inside, or storage can't return them.
    pub fn slice(&self, range: Range<usize>) -> Option<Bytes> {
        if range.start > range.end || range.end > self.len() {
            return None;
        }
        match self {
            Self::Memory(bytes) => Some(bytes.slice(range)),
            Self::Stored(stored) => stored.read(range),
        }
    }

    /// The bytes of a range for a receiver that checks the digest: what storage can't return is replaced by zeros,
    /// so that the receiver reports the product as damaged and the log is examined.
    pub fn slice_to_send(&self, range: Range<usize>) -> Bytes {
        let length = range.end.saturating_sub(range.start);
        self.slice(range).unwrap_or_else(|| Bytes::from(vec![0; length]))
    }

    /// All bytes in memory; `None` if storage can't return them.
    pub fn whole(&self) -> Option<Bytes> {
        self.slice(0..self.len())
    }

    /// The memory that storage occupies for it once it was read. Bytes in memory are not counted: they are shared
    /// with the log.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Self::Memory(_) => 0,
            Self::Stored(stored) => stored.memory_bytes(),
        }
    }

    /// The file that holds exactly these bytes, if there is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Memory(_) => None,
            Self::Stored(stored) => Some(stored.path()),
        }
    }
}

impl From<Bytes> for Content {
    fn from(bytes: Bytes) -> Self {
        Self::Memory(bytes)
    }
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Memory(bytes.into())
    }
}

/// Compares the bytes; unreadable ones equal nothing.
impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.whole().is_some_and(|bytes| other.whole() == Some(bytes))
    }
}

impl PartialEq<[u8]> for Content {
    fn eq(&self, other: &[u8]) -> bool {
        self.whole().is_some_and(|bytes| bytes == other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Storage that has lost everything behind an offset.
    #[derive(Debug)]
    struct Lossy {
        bytes: Bytes,
        lost_from: usize,
    }

    impl StoredContent for Lossy {
        fn length(&self) -> usize {
            self.bytes.len()
        }

        fn read(&self, range: Range<usize>) -> Option<Bytes> {
            (range.end <= self.lost_from).then(|| self.bytes.slice(range))
        }

        fn memory_bytes(&self) -> usize {
            7
        }

        fn path(&self) -> &Path {
            Path::new("x")
        }
    }

    fn lossy(lost_from: usize) -> Content {
        Content::Stored(Arc::new(Lossy { bytes: Bytes::from_static(b"abcdef"), lost_from }))
    }

    #[test]
    fn ranges_are_checked_wherever_the_bytes_are() {
        for content in [Content::from(Bytes::from_static(b"abcdef")), lossy(6)] {
            assert_eq!(content.slice(2..4).unwrap(), "cd");
            assert_eq!(content.slice(6..6).unwrap(), "");
            assert_eq!((content.slice(4..7), content.slice(usize::MAX..usize::MAX)), (None, None));
            #[expect(clippy::reversed_empty_ranges, reason = "a caller's mistake must not panic")]
            let reversed = 4..2;
            assert_eq!(content.slice(reversed), None);
            assert_eq!(content, *b"abcdef".as_slice());
        }
    }

    #[test]
    fn lost_bytes_are_zeros_for_a_receiver_that_checks_and_nothing_for_others() {
        let content = lossy(3);
        assert_eq!(content.slice_to_send(1..3), "bc");
        assert_eq!(content.slice_to_send(2..5), "\0\0\0");
        assert_eq!((content.slice(2..5), content.whole()), (None, None));
        assert_ne!(content, content.clone(), "unreadable bytes equal nothing");
    }

    #[test]
    fn only_storage_counts_memory_and_has_a_path() {
        assert_eq!((lossy(6).memory_bytes(), lossy(6).path()), (7, Some(Path::new("x"))));
        let memory = Content::from(vec![1, 2]);
        assert_eq!((memory.memory_bytes(), memory.path(), memory.is_empty()), (0, None, false));
    }
}
