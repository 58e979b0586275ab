//! Iteration over a log's products from outside its writer, and copies of their bytes.

use std::{fs::File, io, os::unix::fs::MetadataExt, path::Path};

use downburst_model::{ProductInfo, Sequence};

use crate::{
    Damage, LogError, LogReader, SourceStamp,
    log_reader::part::{Part, describe},
    segment::index::{Index, Row},
    segment::partition_point,
    segment::place::BytesPlace,
    segment::record::{self, Header, Place},
    segment::scanner::{SegmentScanner, copy_checked, header_at},
};

/// The products of a log in order. It may be polled again after the end: the writer may have appended more.
#[derive(Debug)]
pub struct Entries {
    reader: LogReader,
    last: u64,
    at: Option<(u64, At)>,
    /// Also searches for records after damage at the growing end.
    thorough: bool,
}

/// A product as stored in the files of a log.
#[derive(Debug)]
pub struct StoredEntry {
    /// Its description; the key is this log's.
    pub info: ProductInfo,
    /// At a site: its upstream source.
    pub source: Option<SourceStamp>,
    bytes: Option<BytesPlace>,
}

/// The outcome of copying a product's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Copied {
    /// They are complete and have the product's digest.
    Intact,
    /// They were evicted.
    Gone,
    /// They differ from those stored, and must not be used.
    Damaged(Damage),
}

#[derive(Debug)]
enum At {
    Indexed(Part, Index, usize),
    Scanned(SegmentScanner),
    /// Neither index nor segment can be read.
    Nothing,
}

impl Entries {
    pub(crate) fn new(reader: LogReader, after: Sequence, thorough: bool) -> Self {
        Self { reader, last: after.0, at: None, thorough }
    }

    fn advance(&mut self) -> Result<Option<StoredEntry>, LogError> {
        loop {
            if let Some(found) = self.step(false)? {
                return Ok(Some(found));
            }
            let Some(base) = self.successor()? else {
                return if self.thorough { self.step(true) } else { Ok(None) };
            };
            // The writer has left this part, so its end is final.
            if let Some(found) = self.step(true)? {
                return Ok(Some(found));
            }
            self.at = Some((base, self.open(base)?));
        }
    }

    /// The next product of the current part after the cursor.
    fn step(&mut self, search: bool) -> Result<Option<StoredEntry>, LogError> {
        loop {
            let found = match &mut self.at {
                Some((_, At::Indexed(part, index, next))) => {
                    let Some(row) = index.row(*next) else { return Ok(None) };
                    *next += 1;
                    indexed(&self.reader, part, index, &row)?
                }
                Some((_, At::Scanned(scanner))) => {
                    let Some(found) = scanner.next(search)? else { return Ok(None) };
                    scanner.settle(&found)?;
                    let bytes = scanner.place_of_bytes(&found)?;
                    Some(stored(&self.reader, found.header, bytes))
                }
                Some((_, At::Nothing)) | None => return Ok(None),
            };
            if let Some(entry) = found.filter(|entry| entry.info.key.sequence.0 > self.last) {
                self.last = entry.info.key.sequence.0;
                return Ok(Some(entry));
            }
        }
    }

    /// The part after the current one; at first the one that contains the cursor.
    fn successor(&self) -> Result<Option<u64>, LogError> {
        let bases = self.reader.bases()?;
        let behind = |base: u64| bases.iter().copied().find(|it| *it > base);
        match &self.at {
            // The writer creates a segment before it writes to it, and the file may have been blank at the first
            // look.
            Some((base, At::Nothing)) => {
                let readable = !matches!(self.open(*base)?, At::Nothing);
                Ok(if readable { Some(*base) } else { behind(*base) })
            }
            // A segment without records is deleted when the writer ends, and the next writer may create it again.
            Some((base, At::Scanned(scanner)))
                if scanner.is_at_start() && self.is_made_again(scanner, *base)? =>
            {
                Ok(Some(*base))
            }
            Some((base, _)) => Ok(behind(*base)),
            None => {
                let with_cursor = bases.iter().rev().find(|base| **base <= self.last.saturating_add(1));
                Ok(with_cursor.or(bases.first()).copied())
            }
        }
    }

    fn is_made_again(&self, held: &SegmentScanner, base: u64) -> Result<bool, LogError> {
        let Some(other) = self.reader.part(base)?.file else { return Ok(false) };
        let number = |file: &File| {
            let metadata = file.metadata().map_err(|error| LogError::io("look at", &held.path, error))?;
            Ok::<u64, LogError>(metadata.ino())
        };
        Ok(number(&held.file)? != number(&other)?)
    }

    fn open(&self, base: u64) -> Result<At, LogError> {
        let mut part = self.reader.part(base)?;
        if let Some(index) = part.index.take() {
            let before = |at| index.row(at).is_some_and(|row| row.sequence <= self.last);
            let start = partition_point(index.len(), before);
            return Ok(At::Indexed(part, index, start));
        }
        Ok(part.scanner()?.map_or(At::Nothing, At::Scanned))
    }
}

impl Iterator for Entries {
    type Item = Result<StoredEntry, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.advance().transpose()
    }
}

impl StoredEntry {
    /// True if the bytes were kept when the entry was read.
    pub fn has_bytes(&self) -> bool {
        self.bytes.is_some()
    }

    /// Passes the bytes to `out` piece by piece; only the result shows whether they can be trusted.
    pub fn copy_to(&self, out: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<Copied> {
        match &self.bytes {
            Some(BytesPlace { file, path, offset }) => {
                let good = copy_checked(file, *offset, self.info.size, &self.info.digest, out)?;
                Ok(if good { Copied::Intact } else { Copied::Damaged(self.damage(path, *offset)) })
            }
            None => Ok(Copied::Gone),
        }
    }

    fn damage(&self, path: &Path, offset: u64) -> Damage {
        Damage { segment: path.to_owned(), offset, bytes: self.info.size }
    }
}

/// The product of a row: from the index, or from the segment if the index's copy is damaged.
fn indexed(
    reader: &LogReader,
    part: &Part,
    index: &Index,
    row: &Row,
) -> Result<Option<StoredEntry>, LogError> {
    let place = Place { salt: reader.identity.salt, offset: row.offset };
    let mut header = index.header(row).and_then(|copy| record::decode(place, &copy));
    if let (None, Some(file)) = (&header, &part.file) {
        header = header_at(file, place).map_err(|error| LogError::io("read", &part.path, error))?;
    }
    let bytes = part.file.as_ref().map(|file| BytesPlace::find(file, &part.path, row)).transpose();
    let bytes = bytes.map_err(|error| LogError::io("open a body of", &part.path, error))?.flatten();
    Ok(header.filter(|header| header.sequence == row.sequence).map(|header| stored(reader, header, bytes)))
}

fn stored(reader: &LogReader, header: Header, bytes: Option<BytesPlace>) -> StoredEntry {
    StoredEntry { info: describe(&reader.identity, &header), source: header.metadata.source, bytes }
}
