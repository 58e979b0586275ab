//! Reading the files of a log when it is opened.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;

use crate::{
    LogError, files,
    identity::Identity,
    index::{Index, Row, slice},
    record::{self, Place},
    segment::{self, FILE_HEADER_BYTES, Segment},
    system,
};

/// What opening a log found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// The last owner closed the log, or there was none.
    pub clean: bool,
    /// The log was created, with a fresh epoch.
    pub created: bool,
    /// Bytes of unfinished records cut from the ends of segments.
    pub cut_bytes: u64,
    /// Places inside segments that were stepped over; what they held is lost.
    pub damaged: Vec<Damage>,
    /// Files set aside as a whole.
    pub quarantined: Vec<PathBuf>,
    /// Segments that were read record by record, every digest checked.
    pub segments_scanned: usize,
}

/// A place inside a segment that can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub segment: PathBuf,
    /// Where it begins.
    pub offset: u64,
    /// How long it is.
    pub bytes: u64,
}

/// Finds epoch and salt in the newest readable segment, for a log whose identity is lost.
pub(crate) fn identity_from_segments(
    dir: &Path,
    listing: &files::Listing,
) -> Result<Option<(downburst_model::Epoch, u64)>, LogError> {
    for base in listing.segments.iter().rev() {
        let path = files::segment_path(dir, *base);
        if let Some((epoch, salt, _)) = segment::read_file_header(&path, &contents(&path)?)? {
            return Ok(Some((epoch, salt)));
        }
    }
    Ok(None)
}

/// Opens every segment and every memory, sealing what is not sealed yet. Sequences rise from one segment to the next.
pub(crate) fn load(
    dir: &Path,
    identity: &Identity,
    listing: &files::Listing,
    recovery: &mut Recovery,
) -> Result<Vec<Arc<Segment>>, LogError> {
    let mut segments: Vec<Arc<Segment>> = Vec::new();
    let mut last = 0;
    for base in listing.bases() {
        let has_bytes = listing.segments.binary_search(&base).is_ok();
        let Some(segment) = load_one(dir, identity, base, has_bytes, recovery)? else { continue };
        match (segment.first_row(), segment.last_row()) {
            (Some(first), Some(newest)) if first.sequence > last && first.sequence >= base => {
                last = newest.sequence;
                segments.push(Arc::new(segment));
            }
            _ => set_aside(dir, base, recovery)?,
        }
    }
    Ok(segments)
}

fn load_one(
    dir: &Path,
    identity: &Identity,
    base: u64,
    has_bytes: bool,
    recovery: &mut Recovery,
) -> Result<Option<Segment>, LogError> {
    let path = files::segment_path(dir, base);
    if has_bytes && is_unreadable(&path) {
        set_aside(dir, base, recovery)?;
        return Ok(None);
    }
    let index_path = files::index_path(dir, base);
    if has_bytes && is_unreadable(&index_path) {
        recovery.quarantined.push(files::quarantine(&index_path)?);
    }
    if let Some(index) = Index::open(&index_path, identity.epoch)? {
        let length = if has_bytes { length(&path)? } else { 0 };
        if !has_bytes || length >= index.data_end {
            return Ok(Some(Segment::sealed(dir, base, index, has_bytes)));
        }
    }
    if !has_bytes {
        set_aside(dir, base, recovery)?;
        return Ok(None);
    }
    let contents = contents(&path)?;
    if segment::read_file_header(&path, &contents)? != Some((identity.epoch, identity.salt, base)) {
        if contents.iter().all(|byte| *byte == 0) {
            files::remove(&path)?;
        } else {
            set_aside(dir, base, recovery)?;
        }
        return Ok(None);
    }
    let scan = scan(&contents, identity.salt);
    drop(contents);
    keep(dir, base, identity, scan, recovery)
}

/// Seals what a scan found; a segment without records goes.
fn keep(
    dir: &Path,
    base: u64,
    identity: &Identity,
    scan: Scan,
    recovery: &mut Recovery,
) -> Result<Option<Segment>, LogError> {
    let path = files::segment_path(dir, base);
    recovery.segments_scanned += 1;
    recovery.cut_bytes += scan.torn_bytes;
    if scan.rows.is_empty() {
        files::remove(&path)?;
        files::remove(&files::index_path(dir, base))?;
        return Ok(None);
    }
    let damage =
        |(offset, bytes): &(u64, u64)| Damage { segment: path.clone(), offset: *offset, bytes: *bytes };
    recovery.damaged.extend(scan.damaged.iter().map(damage));
    // Nothing behind the last record was ever handed out, so no mapping reaches there.
    let cut = File::options().write(true).open(&path).and_then(|file| file.set_len(scan.end));
    cut.map_err(|error| LogError::io("cut", &path, error))?;
    let segment = Segment::recovered(dir, base, scan.rows, scan.end);
    segment.seal(identity.epoch)?;
    Ok(Some(segment))
}

/// True if the disk can't give the beginning of a file back, or if it is no file. Whatever else keeps it from
/// being read, as rights or a lack of descriptors, may pass and is no reason to give it up.
fn is_unreadable(path: &Path) -> bool {
    let begin = || File::open(path)?.read(&mut [0; FILE_HEADER_BYTES as usize]);
    begin().is_err_and(|error| matches!(error.raw_os_error(), Some(libc::EIO | libc::EISDIR)))
}

fn set_aside(dir: &Path, base: u64, recovery: &mut Recovery) -> Result<(), LogError> {
    for path in [files::segment_path(dir, base), files::index_path(dir, base)] {
        if path.exists() {
            recovery.quarantined.push(files::quarantine(&path)?);
        }
    }
    Ok(())
}

/// What reading a segment record by record found.
#[derive(Debug, Default)]
struct Scan {
    rows: Vec<Row>,
    /// The end of the last record.
    end: u64,
    /// Offset and length of what was stepped over.
    damaged: Vec<(u64, u64)>,
    /// From the end to the last byte that was ever written.
    torn_bytes: u64,
}

fn scan(contents: &Bytes, salt: u64) -> Scan {
    let mut scan = Scan { end: FILE_HEADER_BYTES, ..Scan::default() };
    while let Some((row, end)) = next_record(contents, salt, &scan) {
        let expected = record::padded(scan.end);
        if row.offset > expected {
            scan.damaged.push((expected, row.offset - expected));
        }
        scan.rows.push(row);
        scan.end = end;
    }
    let rest = usize::try_from(scan.end).ok().and_then(|end| contents.get(end..)).unwrap_or_default();
    scan.torn_bytes = rest.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1);
    scan
}

/// The next intact record behind what was found so far, and where its bytes end.
fn next_record(contents: &Bytes, salt: u64, scan: &Scan) -> Option<(Row, u64)> {
    let last = scan.rows.last().map_or(0, |row| row.sequence);
    let mut offset = record::padded(scan.end);
    loop {
        let at = usize::try_from(offset).ok()?;
        let rest = contents.get(at..).filter(|rest| !rest.is_empty())?;
        let header = record::decode(Place { salt, offset }, rest).filter(|header| header.sequence > last);
        if let Some(header) = header {
            let bytes = slice(contents, offset.checked_add(u64::from(header.header_bytes))?, header.size);
            if bytes.is_some_and(|bytes| *blake3::hash(&bytes).as_bytes() == header.metadata.digest.0) {
                let end = offset + u64::from(header.header_bytes) + header.size;
                return Some((Row::new(&header, offset), end));
            }
        }
        offset += next_mark(rest)?;
    }
}

/// The distance to the next place, after this one, that looks like the start of a record.
fn next_mark(rest: &[u8]) -> Option<u64> {
    let step = record::ALIGNMENT as usize;
    let behind = rest.get(step..)?;
    let chunks = behind.chunks_exact(step);
    let position = chunks.into_iter().position(record::is_marked)?;
    Some(((position + 1) * step) as u64)
}

fn length(path: &Path) -> Result<u64, LogError> {
    let metadata = std::fs::metadata(path).map_err(|error| LogError::io("look at", path, error))?;
    Ok(metadata.len())
}

fn contents(path: &Path) -> Result<Bytes, LogError> {
    let map = || {
        let file = File::open(path)?;
        system::map(&file, file.metadata()?.len())
    };
    map().map_err(|error| LogError::io("map", path, error))
}
