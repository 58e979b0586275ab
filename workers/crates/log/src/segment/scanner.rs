//! Scans of a segment without its index, record by record and past damage.

use std::{fs::File, io, os::unix::fs::FileExt, path::PathBuf, sync::Arc, thread, time::Duration};

use downburst_model::Digest;

use crate::{
    LogError,
    segment::FILE_HEADER_BYTES,
    segment::index::Row,
    segment::place::BytesPlace,
    segment::record::{self, ALIGNMENT, Header, MAX_HEADER_BYTES, Place},
};

/// A position in a segment, and the scan from there on.
#[derive(Debug)]
pub(crate) struct SegmentScanner {
    pub(crate) file: Arc<File>,
    pub(crate) path: PathBuf,
    salt: u64,
    /// The expected offset of the next record.
    pub(crate) offset: u64,
    last: u64,
}

/// A record whose header is intact; its bytes are not checked.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) header: Header,
    pub(crate) offset: u64,
    /// The offset from which nothing could be read up to the record.
    pub(crate) skipped_from: Option<u64>,
}

impl Found {
    /// The offset of the product's bytes.
    pub(crate) fn bytes_at(&self) -> u64 {
        self.offset + u64::from(self.header.header_bytes)
    }
}

impl SegmentScanner {
    pub(crate) fn new(file: Arc<File>, path: PathBuf, salt: u64) -> Self {
        Self { file, path, salt, offset: record::padded(FILE_HEADER_BYTES), last: 0 }
    }

    /// True until a record is found.
    pub(crate) fn is_at_start(&self) -> bool {
        self.last == 0
    }

    /// The next record. Without `search` only the expected place is checked, which is cheap at a growing end.
    pub(crate) fn next(&mut self, search: bool) -> Result<Option<Found>, LogError> {
        let expected = self.offset;
        let mut header = self.header_at(expected)?.map(|header| (expected, header));
        if header.is_none() && search {
            header = self.search(expected + ALIGNMENT)?;
            // Records are completed in order: one after this place was completed after the one at it.
            if header.is_some()
                && let Some(late) = self.header_at(expected)?
            {
                header = Some((expected, late));
            }
        }
        let Some((offset, header)) = header else { return Ok(None) };
        let found = Found { skipped_from: (offset > expected).then_some(expected), header, offset };
        self.last = found.header.sequence;
        self.offset = record::padded(found.bytes_at().saturating_add(found.header.segment_bytes()));
        Ok(Some(found))
    }

    /// The intact header at a place.
    pub(crate) fn header_at(&self, offset: u64) -> Result<Option<Header>, LogError> {
        let header = header_at(&self.file, Place { salt: self.salt, offset });
        let header = header.map_err(|error| LogError::io("read", &self.path, error))?;
        Ok(header.filter(|header| header.sequence > self.last))
    }

    /// Waits briefly for the bytes of the very last record: in a group, headers are written before their bytes.
    ///
    /// Records are written in order, so a record with a successor is complete. Bytes that stay different are
    /// damaged.
    pub(crate) fn settle(&self, found: &Found) -> Result<(), LogError> {
        for _ in 0..LOOKS {
            if self.header_at(self.offset)?.is_some() || self.is_whole(found) {
                return Ok(());
            }
            thread::sleep(LOOK_INTERVAL);
        }
        Ok(())
    }

    fn is_whole(&self, found: &Found) -> bool {
        let Header { size, metadata, .. } = &found.header;
        let discard = &mut |_: &[u8]| Ok(());
        let Ok(Some(place)) = self.place_of_bytes(found) else { return false };
        copy_checked(&place.file, place.offset, *size, &metadata.digest, discard).unwrap_or(false)
    }

    /// The place of a found product's bytes; `None` if it has a body that is missing or has another length.
    pub(crate) fn place_of_bytes(&self, found: &Found) -> Result<Option<BytesPlace>, LogError> {
        let row = Row::new(&found.header, found.offset);
        let place = BytesPlace::find(&self.file, &self.path, &row);
        place.map_err(|error| LogError::io("open a body of", &self.path, error))
    }

    /// True if a record that can't be read begins at the expected place; one that is being written does so, too.
    pub(crate) fn is_stuck(&self) -> Result<bool, LogError> {
        let mut buffer = [0; MAX_HEADER_BYTES as usize];
        let read = Self::read_at(&self.file, &mut buffer, self.offset)
            .map_err(|error| LogError::io("read", &self.path, error))?;
        let bytes = buffer.get(..read).unwrap_or_default();
        let place = Place { salt: self.salt, offset: self.offset };
        let is_intact = record::decode(place, bytes).is_some();
        Ok(!is_intact && (record::is_marked(bytes) || record::has_lost_mark(place, bytes)))
    }

    /// Reads until the buffer is full or the file ends.
    pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match file.read_at(rest, offset + done as u64) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn search(&self, from: u64) -> Result<Option<(u64, Header)>, LogError> {
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut start = from;
        loop {
            let read = Self::read_at(&self.file, &mut chunk, start)
                .map_err(|error| LogError::io("read", &self.path, error))?;
            let places = chunk.get(..read).unwrap_or_default().chunks_exact(ALIGNMENT as usize);
            for (at, _) in places.enumerate().filter(|(_, place)| record::is_marked(place)) {
                let offset = start + at as u64 * ALIGNMENT;
                if let Some(header) = self.header_at(offset)? {
                    return Ok(Some((offset, header)));
                }
            }
            if read < CHUNK_BYTES {
                return Ok(None);
            }
            start += read as u64;
        }
    }
}

/// The intact header at a place of a segment.
pub(crate) fn header_at(file: &File, place: Place) -> io::Result<Option<Header>> {
    let mut buffer = [0; MAX_HEADER_BYTES as usize];
    let read = SegmentScanner::read_at(file, &mut buffer, place.offset)?;
    Ok(record::decode(place, buffer.get(..read).unwrap_or_default()))
}

/// True if the bytes could be read and have the stored size and digest; `out` gets them piece by piece.
pub(crate) fn copy_checked(
    file: &File,
    mut offset: u64,
    size: u64,
    digest: &Digest,
    out: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<bool> {
    let mut hasher = blake3::Hasher::new();
    let mut left = size;
    let mut buffer = vec![0; usize::try_from(left).unwrap_or(usize::MAX).min(BUFFER_BYTES)];
    while left > 0 {
        let length = usize::try_from(left).unwrap_or(usize::MAX).min(BUFFER_BYTES);
        let Some(piece) = buffer.get_mut(..length) else { return Ok(false) };
        // A disk that can't return the bytes is damage, too.
        if !matches!(SegmentScanner::read_at(file, piece, offset), Ok(read) if read == length) {
            return Ok(false);
        }
        hasher.update(piece);
        out(piece)?;
        offset += length as u64;
        left -= length as u64;
    }
    Ok(*hasher.finalize().as_bytes() == digest.0)
}

const CHUNK_BYTES: usize = 1 << 20;
const BUFFER_BYTES: usize = 1 << 20;

/// The number and interval of looks at a place that a writer may be writing to: together as long as a busy disk
/// takes.
pub(crate) const LOOKS: usize = 10;
pub(crate) const LOOK_INTERVAL: Duration = Duration::from_millis(20);
