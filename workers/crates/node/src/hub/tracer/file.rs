//! The ring's file.
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Mutex;

use downburst_log::disk;
use downburst_tracer::{
    Connection, HEADER_BYTES, RECORD_BYTES, Record, Ring, Sample, Scan, header, is_header,
};

use crate::hub::lock;

/// An open ring.
pub(super) struct RingFile {
    file: disk::File,
    ring: Ring,
}

impl RingFile {
    /// Opens a ring and goes on behind its newest record. A file of another version, or whose header is damaged, is
    /// begun anew.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = disk::File::open_or_create(path)?;
        let mut begin = [0; HEADER_BYTES];
        let length = file.as_file().metadata()?.len();
        let is_ours = file.as_file().read_exact_at(&mut begin, 0).is_ok() && is_header(&begin);
        if !is_ours {
            if length > 0 {
                let path = path.display();
                tracing::warn!("{path} is no ring of samples of this release, or is damaged; it begins anew");
            }
            let file = disk::File::create(path)?;
            file.write_all_at(&header(), 0)?;
            return Ok(Self { file, ring: Ring::default() });
        }
        let (opened, mut scan) = (Self { file, ring: Ring::default() }, Scan::default());
        read(&mut scan, opened.ranges()?, |at, end| opened.piece(at, end), drop)?;
        if scan.damaged > 0 {
            tracing::warn!("{} has {} damaged samples; they are passed over", path.display(), scan.damaged);
        }
        Ok(Self { ring: Ring::after(&scan), ..opened })
    }

    /// Writes samples over the oldest ones. They are not synchronised: a power cut may cost the newest.
    pub(super) fn write(&mut self, samples: Vec<(Connection, Sample)>) -> io::Result<()> {
        self.ring
            .place(samples)
            .iter()
            .try_for_each(|piece| self.file.write_all_at(&piece.bytes, piece.offset))
    }

    /// Pieces of the file that hold all records, oldest first.
    fn ranges(&self) -> io::Result<[Range<u64>; 2]> {
        Ok(self.ring.order(self.file.as_file().metadata()?.len()))
    }

    /// The next records, a bounded number.
    fn piece(&self, at: u64, end: u64) -> io::Result<Vec<u8>> {
        let room = (end - at).min(PIECE_BYTES);
        let mut bytes = vec![0; usize::try_from(room).unwrap_or(RECORD_BYTES)];
        let mut read = 0;
        while let Some(rest) = bytes.get_mut(read..).filter(|rest| !rest.is_empty()) {
            match self.file.as_file().read_at(rest, at + read as u64)? {
                0 => break,
                more => read += more,
            }
        }
        bytes.truncate(read);
        Ok(bytes)
    }
}

/// Reads the whole ring, oldest record first. The file is locked for a piece at a time: the sampler does not miss a
/// tick for it. Returns the reason too, if the reading ended early.
pub(super) fn scan(file: &Mutex<Option<RingFile>>, take: impl FnMut(Record)) -> (Scan, Option<String>) {
    let ranges = lock(file).as_ref().map(RingFile::ranges).transpose();
    let mut scan = Scan::default();
    let read = ranges.and_then(|ranges| {
        let piece = |at, end| lock(file).as_ref().map_or(Ok(Vec::new()), |file| file.piece(at, end));
        read(&mut scan, ranges.into_iter().flatten(), piece, take)
    });
    (scan, read.err().map(|error| unreadable(&error)))
}

fn read(
    scan: &mut Scan,
    ranges: impl IntoIterator<Item = Range<u64>>,
    piece: impl Fn(u64, u64) -> io::Result<Vec<u8>>,
    mut take: impl FnMut(Record),
) -> io::Result<()> {
    for Range { start: mut at, end } in ranges {
        while at < end {
            let bytes = piece(at, end)?;
            if bytes.is_empty() {
                break;
            }
            scan.read(at, &bytes, &mut take);
            at += bytes.len() as u64;
        }
    }
    Ok(())
}

fn unreadable(error: &io::Error) -> String {
    format!("the ring of samples can't be read: {error}; look at the disk of the node's data directory")
}

/// A thousandth of a second's reading.
const PIECE_BYTES: u64 = 1 << 20;
const _: () = assert!(PIECE_BYTES.is_multiple_of(RECORD_BYTES as u64));
