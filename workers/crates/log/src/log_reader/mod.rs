//! A log opened read-only through its files, for tools: takes no lock, changes nothing, and works beside a writer.
pub(crate) mod entries;
pub(crate) mod search;
pub(crate) mod verify;

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use downburst_model::{Epoch, FeedName, LdmStamp, ProductInfo, ProductKey, Sequence, WallMicros};

use crate::{
    LogError, files,
    files::identity::{Identity, Reservation},
    log_reader::entries::{Entries, StoredEntry},
    segment::index::{Index, Row},
    segment::record::Header,
    segment::scanner::SegmentScanner,
    segment::{self, FILE_HEADER_BYTES},
};

/// A log opened for reading only, in a process of its own.
///
/// Segments are read and never mapped, so that a node that starts in the meantime may cut an unfinished end.
#[derive(Clone, Debug)]
pub struct LogReader {
    pub(crate) dir: PathBuf,
    pub(crate) identity: Identity,
}

/// Figures about a log, from its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSummary {
    /// The oldest sequence whose bytes are kept. Greater than the head if no bytes are kept.
    pub first: Sequence,
    /// The sequence stored last; 0 if there was none.
    pub head: Sequence,
    /// Products with bytes.
    pub products: u64,
    /// Products without bytes that are remembered.
    pub remembered: u64,
    /// Disk in use by records.
    pub bytes: u64,
    /// Disk in use by indexes and memory.
    pub memory_bytes: u64,
    /// Files with bytes.
    pub segments: usize,
    /// The stamp of the oldest product with bytes.
    pub oldest_stored: Option<WallMicros>,
    /// The stamp of the newest product.
    pub newest_stored: Option<WallMicros>,
}

impl LogReader {
    /// True if the directory looks like the log of one feed.
    pub fn is_log(dir: &Path) -> bool {
        dir.join("identity").is_file() || files::look(dir).is_ok_and(|(listing, _)| !listing.is_empty())
    }

    /// Opens the log in `dir`, which must exist.
    pub fn open(dir: &Path) -> Result<Self, LogError> {
        match Identity::read(dir)? {
            Some(identity) => Ok(Self { dir: dir.to_owned(), identity }),
            None => Err(LogError::NoLog { dir: dir.to_owned() }),
        }
    }

    /// The feed.
    pub fn feed(&self) -> &FeedName {
        &self.identity.feed
    }

    /// This life of the log.
    pub fn epoch(&self) -> Epoch {
        self.identity.epoch
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Everything after a sequence, in order; ends at the head of this moment.
    pub fn entries(&self, after: Sequence) -> Entries {
        Entries::new(self.clone(), after, true)
    }

    /// The same, but may be polled again after each end for newly appended products.
    pub fn follow(&self, after: Sequence) -> Entries {
        Entries::new(self.clone(), after, false)
    }

    /// One product; `None` if the sequence was never assigned or is forgotten.
    pub fn entry(&self, sequence: Sequence) -> Result<Option<StoredEntry>, LogError> {
        let Some(after) = sequence.0.checked_sub(1) else { return Ok(None) };
        let found = self.entries(Sequence(after)).next().transpose()?;
        Ok(found.filter(|entry| entry.info.key.sequence == sequence))
    }

    /// The cursor before the last `count` products.
    pub fn start_of_last(&self, count: usize) -> Result<Sequence, LogError> {
        let mut missing = count;
        for base in self.bases()?.into_iter().rev() {
            let sequences = self.part(base)?.sequences()?;
            match sequences.len().checked_sub(missing) {
                Some(before) => {
                    let after = before.checked_sub(1).and_then(|at| sequences.get(at));
                    return Ok(Sequence(after.copied().unwrap_or(base.saturating_sub(1))));
                }
                None => missing -= sequences.len(),
            }
        }
        Ok(Sequence(0))
    }

    /// Reads the figures from the files.
    pub fn summary(&self) -> Result<LogSummary, LogError> {
        let (reservation, _) = Reservation::open(&self.dir, self.identity.epoch)?;
        let mut summary = LogSummary {
            first: Sequence(0),
            head: Sequence(reservation.forgotten_to()),
            products: 0,
            remembered: 0,
            bytes: 0,
            memory_bytes: 0,
            segments: 0,
            oldest_stored: None,
            newest_stored: None,
        };
        for base in self.bases()? {
            summary.add(&self.part(base)?.figures()?);
        }
        if summary.first == Sequence(0) {
            summary.first = Sequence(summary.head.0 + 1);
        }
        Ok(summary)
    }

    /// The first sequences of all parts, in order.
    pub(crate) fn bases(&self) -> Result<Vec<u64>, LogError> {
        Ok(files::look(&self.dir)?.0.bases())
    }

    /// The part that begins with `base`, in its current state; without index and segment if it was deleted since.
    pub(crate) fn part(&self, base: u64) -> Result<Part, LogError> {
        let path = files::segment_path(&self.dir, base);
        let index = Index::open(&files::index_path(&self.dir, base), self.identity.epoch)?;
        let file = match File::open(&path) {
            Ok(file) => Some(Arc::new(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(LogError::io("open", &path, error)),
        };
        Ok(Part { path, base, index, file, epoch: self.identity.epoch, salt: self.identity.salt })
    }
}

impl LogSummary {
    fn add(&mut self, part: &Figures) {
        let rows = part.rows;
        self.memory_bytes += part.index_bytes;
        let Some((first, last)) = part.ends else { return };
        self.head = self.head.max(Sequence(last.0));
        self.newest_stored = Some(WallMicros(last.1));
        if !part.has_bytes {
            self.remembered += rows;
            return;
        }
        self.products += rows;
        self.bytes += part.data_bytes;
        self.segments += 1;
        if self.oldest_stored.is_none() {
            self.first = Sequence(first.0);
            self.oldest_stored = Some(WallMicros(first.1));
        }
    }
}

/// A segment and its index, as far as they exist.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) path: PathBuf,
    pub(crate) base: u64,
    pub(crate) index: Option<Index>,
    pub(crate) file: Option<Arc<File>>,
    epoch: Epoch,
    salt: u64,
}

/// Figures of a part.
#[derive(Debug, Default)]
struct Figures {
    rows: u64,
    /// Sequence and stamp of the first and the last product.
    ends: Option<((u64, i64), (u64, i64))>,
    data_bytes: u64,
    index_bytes: u64,
    has_bytes: bool,
}

/// The state of the first bytes of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileHeader {
    Good,
    /// The writer has created the file but not yet written to it.
    Blank,
    Bad,
}

impl Part {
    pub(crate) fn file_header(&self, file: &File) -> Result<FileHeader, LogError> {
        let mut header = [0; FILE_HEADER_BYTES as usize];
        let length = SegmentScanner::read_at(file, &mut header, 0)
            .map_err(|error| LogError::io("read", &self.path, error))?;
        let header = header.get(..length).unwrap_or_default();
        if header.iter().all(|byte| *byte == 0) {
            return Ok(FileHeader::Blank);
        }
        let found = segment::read_file_header(&self.path, header)?;
        let good = found == Some((self.epoch, self.salt, self.base));
        Ok(if good { FileHeader::Good } else { FileHeader::Bad })
    }

    /// Reads record by record; `None` if the segment is not there or not of this log.
    pub(crate) fn scanner(&self) -> Result<Option<SegmentScanner>, LogError> {
        let Some(file) = &self.file else { return Ok(None) };
        let good = self.file_header(file)? == FileHeader::Good;
        Ok(good.then(|| SegmentScanner::new(Arc::clone(file), self.path.clone(), self.salt)))
    }

    fn sequences(&self) -> Result<Vec<u64>, LogError> {
        if let Some(index) = &self.index {
            return Ok((0..index.len()).map_while(|at| index.row(at)).map(|row| row.sequence).collect());
        }
        let mut sequences = Vec::new();
        if let Some(mut scanner) = self.scanner()? {
            while let Some(found) = scanner.next(true)? {
                sequences.push(found.header.sequence);
            }
        }
        Ok(sequences)
    }

    fn figures(&self) -> Result<Figures, LogError> {
        let Some(index) = &self.index else { return self.scanned_figures() };
        let end = |row: Row| (row.sequence, row.stored);
        let last = index.len().checked_sub(1).and_then(|last| index.row(last));
        Ok(Figures {
            rows: index.len() as u64,
            ends: index.row(0).zip(last).map(|(first, last)| (end(first), end(last))),
            data_bytes: index.data_end,
            index_bytes: index.file_bytes(),
            has_bytes: self.file.is_some(),
        })
    }

    fn scanned_figures(&self) -> Result<Figures, LogError> {
        let mut figures = Figures { has_bytes: true, ..Figures::default() };
        let Some(mut scanner) = self.scanner()? else { return Ok(figures) };
        while let Some(found) = scanner.next(true)? {
            let end = (found.header.sequence, found.header.metadata.stored.0);
            figures.rows += 1;
            figures.ends = Some((figures.ends.map_or(end, |(first, _)| first), end));
            figures.data_bytes = found.bytes_at() + found.header.size;
        }
        Ok(figures)
    }
}

/// Converts a header to the common description.
pub(crate) fn describe(identity: &Identity, header: &Header) -> ProductInfo {
    let metadata = &header.metadata;
    ProductInfo {
        key: ProductKey {
            feed: identity.feed.clone(),
            epoch: identity.epoch,
            sequence: Sequence(header.sequence),
        },
        id: metadata.id.clone(),
        origin: metadata.origin.clone(),
        created: metadata.created,
        stored: metadata.stored,
        size: header.size,
        digest: metadata.digest,
        class: metadata.class,
        hops: metadata.hops.clone(),
        ldm: metadata.ldm.clone().filter(LdmStamp::is_from_ldm),
    }
}
