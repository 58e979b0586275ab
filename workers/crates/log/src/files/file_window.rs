//! A file read through a buffer of bounded size, past holes and blocks that the disk can't return.
//!
//! A mapping would be shorter, but the kernel ends a process that touches a mapped page it can't provide: a page
//! of a bad sector, or of a hole in a file system in memory that is full.

use std::{collections::BTreeSet, fs::File, io, os::unix::fs::FileExt, path::Path};

use crate::{LogError, system};

/// A file, and a piece of it in memory.
pub(crate) struct FileWindow<'a> {
    read: Read<'a>,
    length: u64,
    /// The data ranges between holes, in order.
    stretches: Vec<(u64, u64)>,
    buffer: Vec<u8>,
    /// The buffer's offset in the file.
    begin: u64,
    lost: BTreeSet<u64>,
}

/// Reads at an offset, as `FileExt::read_at` does.
type Read<'a> = Box<dyn Fn(&mut [u8], u64) -> io::Result<usize> + 'a>;

impl FileWindow<'static> {
    pub(crate) fn open(path: &Path) -> Result<Self, LogError> {
        let open = || {
            let file = File::open(path)?;
            let length = file.metadata()?.len();
            let stretches = system::data_stretches(&file, length);
            Ok(Self::new(Box::new(move |buffer, offset| file.read_at(buffer, offset)), length, stretches))
        };
        open().map_err(|error| LogError::io("open", path, error))
    }
}

impl<'a> FileWindow<'a> {
    pub(crate) fn new(read: Read<'a>, length: u64, stretches: Vec<(u64, u64)>) -> Self {
        Self { read, length, stretches, buffer: Vec::new(), begin: 0, lost: BTreeSet::new() }
    }

    /// The buffered bytes from an offset on: at least `least`, unless the file ends before, and at least one.
    ///
    /// A block that the disk can't return reads as zeros and is recorded; too many of them are an error.
    pub(crate) fn at_hand(&mut self, offset: u64, least: usize) -> io::Result<&[u8]> {
        let least = self.length.saturating_sub(offset).min(least.max(1) as u64);
        let held = offset >= self.begin && offset + least <= self.begin + self.buffer.len() as u64;
        if !held {
            self.fill(offset)?;
        }
        let at = usize::try_from(offset - self.begin).map_err(io::Error::other)?;
        Ok(self.buffer.get(at..).unwrap_or_default())
    }

    /// The first offset from `offset` on, in steps, that satisfies `is_wanted`. Holes contain nothing to find.
    pub(crate) fn find(
        &mut self,
        offset: u64,
        step: u64,
        is_wanted: impl Fn(&[u8]) -> bool,
    ) -> io::Result<Option<u64>> {
        for (begin, end) in self.stretches_from(offset) {
            let mut at = begin / step * step;
            while at < end {
                let piece = self.piece(at, end, step as usize)?;
                let mut places = piece.chunks(step as usize);
                if let Some(position) = places.position(&is_wanted) {
                    return Ok(Some(at + position as u64 * step));
                }
                at += piece.len() as u64;
            }
        }
        Ok(None)
    }

    /// The end of the last byte from `offset` on that is not zero.
    pub(crate) fn last_written(&mut self, offset: u64) -> io::Result<Option<u64>> {
        let mut last = None;
        for (begin, end) in self.stretches_from(offset) {
            let mut at = begin;
            while at < end {
                let piece = self.piece(at, end, 1)?;
                let written = piece.iter().rposition(|byte| *byte != 0);
                last = written.map(|position| at + position as u64 + 1).or(last);
                at += piece.len() as u64;
            }
        }
        Ok(last)
    }

    /// True if the bytes at an offset exist and have this digest.
    pub(crate) fn has_digest(&mut self, offset: u64, size: u64, digest: &[u8; 32]) -> io::Result<bool> {
        let Some(end) = offset.checked_add(size).filter(|end| *end <= self.length) else { return Ok(false) };
        let mut hasher = blake3::Hasher::new();
        let mut at = offset;
        while at < end {
            let piece = self.piece(at, end, 1)?;
            hasher.update(piece);
            at += piece.len() as u64;
        }
        Ok(hasher.finalize().as_bytes() == digest)
    }

    /// The blocks from `offset` on that the disk did not return, with their lengths.
    pub(crate) fn lost_from(&self, offset: u64) -> Vec<(u64, u64)> {
        let blocks = self.lost.iter().filter(|begin| **begin >= offset);
        blocks.map(|begin| (*begin, BLOCK_BYTES.min(self.length - begin))).collect()
    }

    /// Bytes from `at` on, none of them beyond `end`; whole steps of them unless the file ends.
    fn piece(&mut self, at: u64, end: u64, step: usize) -> io::Result<&[u8]> {
        let most = usize::try_from(end - at).unwrap_or(usize::MAX);
        let piece = self.at_hand(at, step)?;
        let most = most.min(piece.len());
        let whole = if most < step { most } else { most / step * step };
        match piece.get(..whole) {
            Some(piece) if !piece.is_empty() => Ok(piece),
            _ => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
        }
    }

    fn stretches_from(&self, offset: u64) -> Vec<(u64, u64)> {
        let behind = self.stretches.iter().filter(|(_, end)| *end > offset);
        behind.map(|(begin, end)| (offset.max(*begin), *end)).collect()
    }

    fn fill(&mut self, offset: u64) -> io::Result<()> {
        let length = self.length.saturating_sub(offset).min(WINDOW_BYTES as u64) as usize;
        self.buffer.resize(length, 0);
        self.begin = offset;
        let mut filled = 0;
        while let Some(rest) = self.buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let at = offset + filled as u64;
            match (self.read)(rest, at) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => filled += self.step_over(at, filled, error)?,
            }
        }
        self.buffer.truncate(filled);
        Ok(())
    }

    /// Replaces the rest of a lost block with zeros; returns their number.
    fn step_over(&mut self, at: u64, filled: usize, error: io::Error) -> io::Result<usize> {
        let block = at / BLOCK_BYTES * BLOCK_BYTES;
        let is_bearable = self.lost.len() < MAX_LOST_BLOCKS || self.lost.contains(&block);
        if !system::is_lost(&error) || !is_bearable {
            self.buffer.clear();
            return Err(error);
        }
        self.lost.insert(block);
        let rest = self.buffer.get_mut(filled..).unwrap_or_default();
        let lost = rest.len().min((block + BLOCK_BYTES - at) as usize);
        rest.iter_mut().take(lost).for_each(|byte| *byte = 0);
        Ok(lost)
    }
}

const WINDOW_BYTES: usize = 1 << 20;
/// The smallest unit that a disk loses, and that the kernel reads.
const BLOCK_BYTES: u64 = 4_096;
/// A disk that has lost more of a file takes seconds for each block, and the file is no longer a log.
const MAX_LOST_BLOCKS: usize = 64;

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;

    use super::*;

    /// A disk with these contents; blocks in `bad` can't be read.
    fn disk<'a>(contents: &'a [u8], bad: &'a [u64], read_bytes: &'a Cell<usize>) -> Read<'a> {
        Box::new(move |buffer, offset| {
            let good_to = bad.iter().map(|block| block * BLOCK_BYTES).find(|at| at + BLOCK_BYTES > offset);
            let end = good_to.map_or(contents.len(), |at| at as usize).min(contents.len());
            if good_to.is_some_and(|at| at <= offset) {
                return Err(io::Error::from_raw_os_error(libc::EIO));
            }
            let rest = contents.get(offset as usize..end).unwrap_or_default();
            let read = rest.len().min(buffer.len());
            buffer[..read].copy_from_slice(&rest[..read]);
            read_bytes.set(read_bytes.get() + read);
            Ok(read)
        })
    }

    pub(crate) fn window<'a>(
        contents: &'a [u8],
        bad: &'a [u64],
        read_bytes: &'a Cell<usize>,
    ) -> FileWindow<'a> {
        let length = contents.len() as u64;
        FileWindow::new(disk(contents, bad, read_bytes), length, vec![(0, length)])
    }

    #[test]
    fn what_is_larger_than_the_window_is_read_once() {
        let contents: Vec<u8> = (0..3 * WINDOW_BYTES as u32 + 77).map(|n| (n / 7) as u8).collect();
        let read_bytes = Cell::new(0);
        let mut window = window(&contents, &[], &read_bytes);
        let digest = *blake3::hash(&contents[5..]).as_bytes();
        assert!(window.has_digest(5, contents.len() as u64 - 5, &digest).unwrap());
        assert_eq!(read_bytes.get(), contents.len() - 5);
        assert!(!window.has_digest(6, contents.len() as u64 - 6, &digest).unwrap());
        assert!(!window.has_digest(6, contents.len() as u64 - 5, &digest).unwrap());
        assert!(!window.has_digest(u64::MAX, 2, &digest).unwrap());
        assert!(window.at_hand(contents.len() as u64, 8).unwrap().is_empty());
    }

    #[test]
    fn holes_are_not_looked_through() {
        let mut contents = vec![0; 9 * WINDOW_BYTES];
        contents[8 * WINDOW_BYTES + 16] = 7;
        let read_bytes = Cell::new(0);
        let mut window = window(&contents, &[], &read_bytes);
        window.stretches = vec![(0, 4_096), (8 * WINDOW_BYTES as u64, 8 * WINDOW_BYTES as u64 + 4_096)];
        let place = window.find(8, 8, |place| place[0] == 7).unwrap();
        assert_eq!(place, Some(8 * WINDOW_BYTES as u64 + 16));
        assert_eq!(window.last_written(8).unwrap(), Some(8 * WINDOW_BYTES as u64 + 17));
        assert_eq!(window.find(8 * WINDOW_BYTES as u64 + 24, 8, |place| place[0] == 7).unwrap(), None);
        assert!(read_bytes.get() < 5 * WINDOW_BYTES, "{} bytes", read_bytes.get());
    }

    #[test]
    fn a_block_that_the_disk_lost_reads_as_zeros_and_is_noted() {
        let contents = vec![1; 10 * BLOCK_BYTES as usize + 100];
        let read_bytes = Cell::new(0);
        let mut window = window(&contents, &[2, 3, 10], &read_bytes);
        let read = window.at_hand(0, 1).unwrap().to_vec();
        assert_eq!(read.len(), contents.len());
        let block = |n: u64| n * BLOCK_BYTES;
        let is_lost = |at: usize| [2, 3, 10].contains(&(at as u64 / BLOCK_BYTES));
        assert!(read.iter().enumerate().all(|(at, byte)| (*byte == 0) == is_lost(at)));
        assert_eq!(window.lost_from(0), [(block(2), 4_096), (block(3), 4_096), (block(10), 100)]);
        assert_eq!(window.lost_from(block(4)), [(block(10), 100)]);
        assert_eq!(window.last_written(0).unwrap(), Some(block(10)));
    }

    #[test]
    fn a_disk_that_lost_nearly_all_is_an_error_soon() {
        let contents = vec![1; 200 * BLOCK_BYTES as usize];
        let (bad, read_bytes): (Vec<u64>, _) = ((0..200).collect(), Cell::new(0));
        let mut window = window(&contents, &bad, &read_bytes);
        let error = window.at_hand(0, 1).unwrap_err();
        assert!(system::is_lost(&error) && window.lost.len() == MAX_LOST_BLOCKS);
    }
}
