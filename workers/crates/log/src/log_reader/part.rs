//! A segment with its index, read beside a writer.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use downburst_model::{Epoch, LdmStamp, ProductInfo, ProductKey, Sequence};

use crate::{
    LogError, files,
    files::identity::Identity,
    segment::index::{Index, Row},
    segment::record::Header,
    segment::scanner::SegmentScanner,
    segment::{self, FILE_HEADER_BYTES},
};

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
pub(super) struct Figures {
    pub(super) rows: u64,
    /// Sequence and stamp of the first and the last product.
    pub(super) ends: Option<((u64, i64), (u64, i64))>,
    pub(super) data_bytes: u64,
    pub(super) index_bytes: u64,
    pub(super) has_bytes: bool,
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
    /// The part that begins with `base`, in its current state.
    pub(super) fn open(dir: &Path, identity: &Identity, base: u64) -> Result<Self, LogError> {
        let path = files::segment_path(dir, base);
        let index = Index::open(&files::index_path(dir, base), identity.epoch)?;
        let file = match File::open(&path) {
            Ok(file) => Some(Arc::new(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(LogError::io("open", &path, error)),
        };
        Ok(Self { path, base, index, file, epoch: identity.epoch, salt: identity.salt })
    }

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

    pub(super) fn sequences(&self) -> Result<Vec<u64>, LogError> {
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

    pub(super) fn figures(&self) -> Result<Figures, LogError> {
        let Some(index) = &self.index else { return self.scanned_figures() };
        let end = |row: Row| (row.sequence, row.stored);
        let rows = (0..index.len()).map_while(|at| index.row(at));
        let last = index.len().checked_sub(1).and_then(|last| index.row(last));
        Ok(Figures {
            rows: index.len() as u64,
            ends: index.row(0).zip(last).map(|(first, last)| (end(first), end(last))),
            data_bytes: index.data_end + rows.clone().map(|row| row.body_bytes()).sum::<u64>(),
            index_bytes: index.file_bytes(),
            has_bytes: self.file.is_some(),
        })
    }

    fn scanned_figures(&self) -> Result<Figures, LogError> {
        let mut figures = Figures { has_bytes: true, ..Figures::default() };
        let Some(mut scanner) = self.scanner()? else { return Ok(figures) };
        let mut body_bytes = 0;
        while let Some(found) = scanner.next(true)? {
            let end = (found.header.sequence, found.header.metadata.stored.0);
            figures.rows += 1;
            figures.ends = Some((figures.ends.map_or(end, |(first, _)| first), end));
            body_bytes += found.header.body_bytes();
            figures.data_bytes = found.bytes_at() + found.header.segment_bytes() + body_bytes;
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
        properties: metadata.properties.clone(),
    }
}
