//! Rows: the data that the log keeps about each product, in memory for open segments, in a mapped file for sealed
//! ones.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::Path,
};

use bytes::Bytes;
use downburst_model::{Digest, Epoch, ProductId, ProductKey};

use crate::{
    LogError, files,
    segment::record::{Fields, Header},
    system,
};

/// The row of one product, of fixed length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) sequence: u64,
    pub(crate) stored: i64,
    pub(crate) size: u64,
    /// The size after a WMO starting line.
    pub(crate) body_size: u64,
    /// The offset of the record in its segment.
    pub(crate) offset: u64,
    /// The offset of its header: in a segment that of the record itself, in an index that of a copy after the
    /// rows.
    pub(crate) header_at: u64,
    pub(crate) header_bytes: u32,
    /// The bytes are in a body.
    pub(crate) in_body: bool,
    pub(crate) prints: Prints,
}

/// The first bytes of what can make a product a duplicate; a match is always checked against the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prints {
    pub(crate) id: u64,
    pub(crate) digest: u64,
    /// Of the content after a WMO starting line if the feed compared it, or if the product has no signature; else of
    /// the signature.
    pub(crate) body: u64,
    /// Of the upstream key; 0 if there is none.
    pub(crate) source: u64,
}

impl Row {
    pub(crate) fn new(header: &Header, offset: u64) -> Self {
        let metadata = &header.metadata;
        let (body, body_size) = metadata.body(header.size);
        Self {
            sequence: header.sequence,
            stored: metadata.stored.0,
            size: header.size,
            body_size,
            offset,
            header_at: offset,
            header_bytes: header.header_bytes,
            in_body: header.metadata.in_body.is_some(),
            prints: Prints {
                id: id_print(&metadata.id),
                digest: digest_print(&metadata.digest),
                body: match &metadata.ldm {
                    Some(ldm) if !metadata.compares_body() => signature_print(&ldm.signature),
                    _ => digest_print(body),
                },
                source: metadata.source.as_ref().map_or(0, |source| source_print(&source.key, source.resend)),
            },
        }
    }

    /// The end of its record in the segment.
    pub(crate) fn end(&self) -> u64 {
        let bytes = if self.in_body { 0 } else { self.size };
        self.offset.saturating_add(u64::from(self.header_bytes)).saturating_add(bytes)
    }

    /// The number of its bytes in a body.
    pub(crate) fn body_bytes(&self) -> u64 {
        if self.in_body { self.size } else { 0 }
    }

    fn numbers(&self) -> [u64; ROW_NUMBERS] {
        let Prints { id, digest, body, source } = self.prints;
        let stored = self.stored.cast_unsigned();
        let header_bytes = u64::from(self.header_bytes) | if self.in_body { IN_BODY } else { 0 };
        [
            self.sequence,
            stored,
            self.size,
            self.body_size,
            self.offset,
            self.header_at,
            header_bytes,
            id,
            digest,
            body,
            source,
        ]
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields(bytes);
        let mut next = || fields.u64();
        let (sequence, stored) = (next()?, next()?.cast_signed());
        let (size, body_size, offset, header_at) = (next()?, next()?, next()?, next()?);
        let header = next()?;
        Some(Self {
            sequence,
            stored,
            size,
            body_size,
            offset,
            header_at,
            header_bytes: u32::try_from(header & !IN_BODY).ok()?,
            in_body: header & IN_BODY != 0,
            prints: Prints { id: next()?, digest: next()?, body: next()?, source: next()? },
        })
    }
}

/// The print of an id.
pub(crate) fn id_print(id: &ProductId) -> u64 {
    first_number(blake3::hash(id.as_str().as_bytes()).as_bytes())
}

/// The print of a digest.
pub(crate) fn digest_print(digest: &Digest) -> u64 {
    first_number(&digest.0)
}

/// The print of a signature. It takes the place of the body's where the feed's rule does not need that one.
pub(crate) fn signature_print(signature: &[u8; 16]) -> u64 {
    signature.first_chunk().copied().map_or(0, u64::from_le_bytes)
}

/// The print of an upstream key and of the resend that brought it; never 0.
///
/// Prints of one epoch and one resend are consecutive like the sequences.
pub(crate) fn source_print(key: &ProductKey, resend: Option<u64>) -> u64 {
    let spread = |base: u64, more: u64| (base ^ more).wrapping_mul(SPREADING_FACTOR).rotate_left(29);
    let mut base = key.feed.as_str().bytes().map(u64::from).fold(key.epoch.0, spread);
    if let Some(resend) = resend {
        // No byte of a feed's name is as large.
        base = spread(spread(base, u64::from(u8::MAX) + 1), resend);
    }
    base.wrapping_add(key.sequence.0).max(1)
}

/// The index file of a sealed segment.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    contents: Bytes,
    count: usize,
    /// False in indexes of release 0.1.0, whose prints of upstream keys were hashes.
    pub(crate) has_rising_prints: bool,
    /// The end of the last record in the segment.
    pub(crate) data_end: u64,
    /// The greatest stored stamp.
    pub(crate) newest_stored: i64,
}

impl Index {
    /// Maps an index; `None` if it is missing, damaged or of another epoch.
    pub(crate) fn open(path: &Path, epoch: Epoch) -> Result<Option<Self>, LogError> {
        let Ok(file) = File::open(path) else { return Ok(None) };
        let metadata = file.metadata().map_err(|error| LogError::io("look at", path, error))?;
        if !metadata.is_file() {
            return Ok(None);
        }
        let contents =
            system::map(&file, metadata.len()).map_err(|error| LogError::io("map", path, error))?;
        let beginning =
            contents.get(..HEADER_BYTES.min(contents.len())).filter(|beginning| system::populate(beginning));
        match beginning.and_then(version) {
            Some(version) if version > files::FORMAT_VERSION => {
                Err(LogError::NewerFormat { path: path.to_owned(), version })
            }
            _ => Ok(Self::parse(contents, epoch)),
        }
    }

    /// Writes the index of rows with the headers that `header_of` returns, then maps it; `None` if a header is
    /// unavailable.
    pub(crate) fn write(
        path: &Path,
        epoch: Epoch,
        data_end: u64,
        rows: &[Row],
        header_of: &dyn Fn(&Row) -> Option<Bytes>,
    ) -> Result<Option<Self>, LogError> {
        let Some(headers) = rows.iter().map(header_of).collect::<Option<Vec<Bytes>>>() else {
            return Ok(None);
        };
        let mut header_at = (HEADER_BYTES + rows.len() * ROW_BYTES) as u64;
        let mut table = Vec::with_capacity(rows.len() * ROW_BYTES);
        for (row, header) in rows.iter().zip(&headers) {
            let numbers = Row { header_at, ..*row }.numbers();
            table.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
            header_at += header.len() as u64;
        }
        let newest_stored = rows.iter().map(|row| row.stored).max().unwrap_or(i64::MIN);
        let beginning = beginning(epoch, headers.len(), data_end, newest_stored, &table);
        files::replace(path, |file| {
            let mut file = BufWriter::new(file);
            file.write_all(&beginning)?;
            file.write_all(&table)?;
            headers.iter().try_for_each(|header| file.write_all(header))?;
            file.flush()
        })?;
        Self::open(path, epoch)
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn file_bytes(&self) -> u64 {
        self.contents.len() as u64
    }

    pub(crate) fn row(&self, position: usize) -> Option<Row> {
        let at = HEADER_BYTES + position * ROW_BYTES;
        (position < self.count).then(|| self.contents.get(at..at + ROW_BYTES).and_then(Row::parse))?
    }

    /// The copy of a record's header.
    pub(crate) fn header(&self, row: &Row) -> Option<Bytes> {
        slice(&self.contents, row.header_at, u64::from(row.header_bytes))
            .filter(|copy| system::populate(copy))
    }

    fn parse(contents: Bytes, epoch: Epoch) -> Option<Self> {
        let checked =
            contents.get(..HEADER_BYTES).filter(|it| system::populate(it))?.get(..HEADER_BYTES - 4)?;
        let mut fields = Fields(contents.get(12..)?);
        let table_crc = fields.u32()?;
        let (found_epoch, count, data_end, newest_stored) =
            (fields.u64()?, fields.u64()?, fields.u64()?, fields.u64()?);
        let has_rising_prints = fields.u32()? == RISING_PRINTS;
        if fields.u32()? != crc32fast::hash(checked) || found_epoch != epoch.0 {
            return None;
        }
        let count = usize::try_from(count).ok()?;
        let table_end = count.checked_mul(ROW_BYTES)?.checked_add(HEADER_BYTES)?;
        let table = contents.get(HEADER_BYTES..table_end).filter(|table| system::populate(table))?;
        if crc32fast::hash(table) != table_crc {
            return None;
        }
        let newest_stored = newest_stored.cast_signed();
        let index = Self { contents, count, has_rising_prints, data_end, newest_stored };
        match count.checked_sub(1) {
            Some(last) => index.row(last).and_then(|row| index.header(&row)).map(|_| index),
            None => Some(index),
        }
    }
}

/// The first position in `0..length` that is not before the one sought.
pub(crate) fn partition_point(length: usize, before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, length);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// A shared slice; `None` if it does not lie inside.
pub(crate) fn slice(contents: &Bytes, from: u64, length: u64) -> Option<Bytes> {
    let from = usize::try_from(from).ok()?;
    let to = from.checked_add(usize::try_from(length).ok()?)?;
    (to <= contents.len()).then(|| contents.slice(from..to))
}

/// The version that an intact header names: a flipped bit counts as damage, not as a later release.
fn version(header: &[u8]) -> Option<u32> {
    let (checked, crc) = header.split_last_chunk::<4>()?;
    let version = Fields(checked.strip_prefix(MAGIC)?).u32()?;
    (u32::from_le_bytes(*crc) == crc32fast::hash(checked)).then_some(version)
}

fn beginning(epoch: Epoch, count: usize, data_end: u64, newest_stored: i64, table: &[u8]) -> Vec<u8> {
    let mut header = Vec::with_capacity(HEADER_BYTES);
    header.extend_from_slice(MAGIC);
    header.extend_from_slice(&files::FORMAT_VERSION.to_le_bytes());
    header.extend_from_slice(&crc32fast::hash(table).to_le_bytes());
    for number in [epoch.0, count as u64, data_end, newest_stored.cast_unsigned()] {
        header.extend_from_slice(&number.to_le_bytes());
    }
    header.extend_from_slice(&RISING_PRINTS.to_le_bytes());
    let crc = crc32fast::hash(&header);
    header.extend_from_slice(&crc.to_le_bytes());
    header
}

fn first_number(bytes: &[u8; 32]) -> u64 {
    bytes.first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
}

const MAGIC: &[u8; 8] = b"DBLOGIX\n";
/// Written in the place where release 0.1.0 wrote 0.
const RISING_PRINTS: u32 = 1;
/// Odd and without pattern: 2^64 divided by the golden ratio.
const SPREADING_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
/// Marks a product with a body, beside the length of its header.
const IN_BODY: u64 = 1 << 32;
const HEADER_BYTES: usize = 56;
const ROW_NUMBERS: usize = 11;
const ROW_BYTES: usize = ROW_NUMBERS * 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::record::{self, Place, tests::metadata};

    const EPOCH: Epoch = Epoch(3);

    fn rows(count: u64) -> Vec<(Row, Bytes)> {
        let product = |n: u64| {
            let metadata = metadata(&format!("product {n}"));
            let header_bytes = record::reserve(&metadata) as u32;
            let mut header = Header { sequence: n * 2, size: n, header_bytes, metadata };
            let place = Place { salt: 1, offset: n * 1_000 };
            (Row::new(&header, place.offset), record::encode(place, &mut header).unwrap().into())
        };
        (1..=count).map(product).collect()
    }

    fn write(path: &Path, products: &[(Row, Bytes)]) -> Option<Index> {
        let table: Vec<Row> = products.iter().map(|(row, _)| *row).collect();
        let header = |row: &Row| {
            products.iter().find(|(it, _)| it.offset == row.offset).map(|(_, header)| header.clone())
        };
        Index::write(path, EPOCH, 99_999, &table, &header).unwrap()
    }

    #[test]
    fn rows_and_headers_come_back() {
        let dir = tempfile::tempdir().unwrap();
        let products = rows(20);
        let index = write(&dir.path().join("i"), &products).unwrap();
        assert_eq!((index.len(), index.data_end, index.newest_stored), (20, 99_999, 0));
        for (at, (row, header)) in products.iter().enumerate() {
            let found = index.row(at).unwrap();
            assert_eq!(Row { header_at: row.header_at, ..found }, *row);
            assert_eq!(index.header(&found).unwrap(), header);
        }
        assert_eq!(index.row(20), None);
    }

    #[test]
    fn an_index_without_rows_is_legal() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(write(&dir.path().join("i"), &[]).unwrap().len(), 0);
    }

    #[test]
    fn damage_and_foreign_epochs_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("i");
        write(&path, &rows(3)).unwrap();
        assert!(Index::open(&path, Epoch(4)).unwrap().is_none());
        let good = std::fs::read(&path).unwrap();
        for at in (0..HEADER_BYTES + 3 * ROW_BYTES).filter(|at| !(8..12).contains(at)) {
            let mut bad = good.clone();
            bad[at] ^= 4;
            std::fs::write(&path, bad).unwrap();
            assert!(Index::open(&path, EPOCH).unwrap().is_none(), "byte {at}");
        }
        for length in 0..good.len() {
            std::fs::write(&path, &good[..length]).unwrap();
            assert!(Index::open(&path, EPOCH).unwrap().is_none(), "length {length}");
        }
    }
}
