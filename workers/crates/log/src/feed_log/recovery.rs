//! Reading the files of a log when it is opened.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use downburst_model::Sequence;

use crate::{
    LogError, disk, files,
    files::file_window::FileWindow,
    files::identity::Identity,
    segment::index::{Index, Row},
    segment::record::{self, Header, Place},
    segment::scanner::copy_checked,
    segment::{self, FILE_HEADER_BYTES, Segment, body},
    system,
};

/// The findings of opening a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// The last owner closed the log, or there was none.
    pub clean: bool,
    /// The log was created, with a fresh epoch.
    pub created: bool,
    /// The file `sequence` was missing or damaged, so that the end of the log is unknown.
    pub sequence_lost: bool,
    /// Bytes of unfinished records cut from the ends of segments.
    pub cut_bytes: u64,
    /// Skipped places inside segments; their contents are lost.
    pub damaged: Vec<Damage>,
    /// Products that the log once held and lost without evicting them.
    pub lost: Vec<Lost>,
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
    /// Its offset.
    pub offset: u64,
    /// Its length.
    pub bytes: u64,
}

/// Products that are gone with their bytes; an index remembers them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The file that held them.
    pub segment: PathBuf,
    /// Their number.
    pub products: u64,
    /// The first and the last of them.
    pub sequences: (Sequence, Sequence),
}

/// Finds epoch and salt in the newest readable segment, for a log whose identity is lost.
pub(crate) fn identity_from_segments(
    dir: &Path,
    listing: &files::Listing,
) -> Result<Option<(downburst_model::Epoch, u64)>, LogError> {
    for base in listing.segments.iter().rev() {
        let path = files::segment_path(dir, *base);
        let Ok(header) = begin(&path) else { continue };
        if let Some((epoch, salt, _)) = segment::read_file_header(&path, &header)? {
            return Ok(Some((epoch, salt)));
        }
    }
    Ok(None)
}

/// Opens every segment and every memory, sealing unsealed ones. Sequences rise from one segment to the next.
/// Missing bytes above `evicted_to` are lost.
pub(crate) fn load(
    dir: &Path,
    identity: &Identity,
    listing: &files::Listing,
    evicted_to: Option<u64>,
    recovery: &mut Recovery,
) -> Result<Vec<Arc<Segment>>, LogError> {
    let mut segments: Vec<Arc<Segment>> = Vec::new();
    let mut last = 0;
    for base in listing.bases() {
        let has_bytes = listing.segments.binary_search(&base).is_ok();
        let loaded = if has_bytes {
            load_one(dir, identity, base, recovery)?
        } else {
            remember(dir, identity, base, evicted_to, recovery)?
        };
        let Some(segment) = loaded else { continue };
        match (segment.first_row(), segment.last_row()) {
            (Some(first), Some(newest)) if first.sequence > last && first.sequence >= base => {
                last = newest.sequence;
                segments.push(Arc::new(segment));
            }
            _ => set_aside(dir, base, recovery)?,
        }
    }
    // The remains of interrupted evictions.
    for base in listing.bodies.iter().filter(|base| listing.segments.binary_search(base).is_err()) {
        body::remove_all(&files::segment_path(dir, *base))?;
    }
    Ok(segments)
}

/// Opens a segment whose bytes were evicted.
fn remember(
    dir: &Path,
    identity: &Identity,
    base: u64,
    evicted_to: Option<u64>,
    recovery: &mut Recovery,
) -> Result<Option<Segment>, LogError> {
    let Some(index) = Index::open(&files::index_path(dir, base), identity.epoch)? else {
        return set_aside(dir, base, recovery).map(|()| None);
    };
    let lost: Vec<u64> = sequences(&index).filter(|last| evicted_to.is_some_and(|to| *last > to)).collect();
    if lost.is_empty() {
        return Ok(Some(Segment::sealed(dir, base, index, false)));
    }
    recovery.lose(&files::segment_path(dir, base), &lost);
    // Forgotten products may be delivered again by their source.
    set_aside(dir, base, recovery).map(|()| None)
}

fn load_one(
    dir: &Path,
    identity: &Identity,
    base: u64,
    recovery: &mut Recovery,
) -> Result<Option<Segment>, LogError> {
    let path = files::segment_path(dir, base);
    let index_path = files::index_path(dir, base);
    let is_readable = !is_unreadable(&path);
    if is_readable && is_unreadable(&index_path) {
        recovery.quarantined.push(files::quarantine(&index_path)?);
    }
    let index = Index::open(&index_path, identity.epoch)?;
    if is_readable
        && let Some(index) = &index
        && length(&path)? >= index.data_end
    {
        return with_bodies(Segment::sealed(dir, base, index.clone(), true), recovery).map(Some);
    }
    let known: Vec<u64> = index.iter().flat_map(sequences).collect();
    let contents = if is_readable { read(&path, identity, base) } else { Ok(Contents::Other) };
    match contents {
        Ok(Contents::Records(mut scan)) => {
            let lost: Vec<u64> = known.iter().filter(|known| !scan.holds(**known)).copied().collect();
            if !lost.is_empty() {
                recovery.lose(&path, &lost);
                // The torn bytes belong to the lost products, not to unfinished appends.
                scan.torn_bytes = 0;
            }
            keep(dir, base, identity, scan, recovery)
        }
        Ok(Contents::Nothing) if known.is_empty() => {
            body::remove_all(&path)?;
            files::remove(&path).map(|()| None)
        }
        Ok(Contents::Nothing | Contents::Other) => {
            recovery.lose(&path, &known);
            set_aside(dir, base, recovery).map(|()| None)
        }
        Err(LogError::Io { source, .. }) if system::is_lost(&source) => {
            recovery.lose(&path, &known);
            set_aside(dir, base, recovery).map(|()| None)
        }
        Err(error) => Err(error),
    }
}

/// Deletes the remains of interrupted appends among the bodies of a segment, and stops serving products whose body
/// is missing.
fn with_bodies(segment: Segment, recovery: &mut Recovery) -> Result<Segment, LogError> {
    let missing = body::tidy(&segment.path, &segment.sequences_in_bodies())?;
    for sequence in &missing {
        segment.mark_damaged(*sequence);
    }
    recovery.lose(&body::directory(&segment.path), &missing);
    Ok(segment)
}

fn sequences(index: &Index) -> impl Iterator<Item = u64> + '_ {
    (0..index.len()).filter_map(|position| index.row(position)).map(|row| row.sequence)
}

impl Recovery {
    fn lose(&mut self, segment: &Path, sequences: &[u64]) {
        if let (Some(first), Some(last)) = (sequences.first(), sequences.last()) {
            self.lost.push(Lost {
                segment: segment.to_owned(),
                products: sequences.len() as u64,
                sequences: (Sequence(*first), Sequence(*last)),
            });
        }
    }
}

/// The kind of a file found in the place of a segment.
enum Contents {
    Records(Scan),
    /// The writer had created it but not yet written to it.
    Nothing,
    /// From another log, or with an unreadable header.
    Other,
}

/// Reads a segment record by record.
fn read(path: &Path, identity: &Identity, base: u64) -> Result<Contents, LogError> {
    let mut window = FileWindow::open(path)?;
    let failed = |error| LogError::io("read", path, error);
    let beginning = window.at_hand(0, FILE_HEADER_BYTES as usize).map_err(failed)?;
    if segment::read_file_header(path, beginning)? == Some((identity.epoch, identity.salt, base)) {
        let bodies = Bodies { segment: path };
        return scan(&mut window, identity.salt, bodies).map(Contents::Records).map_err(failed);
    }
    let is_blank = window.last_written(0).map_err(failed)?.is_none() && window.lost_from(0).is_empty();
    Ok(if is_blank { Contents::Nothing } else { Contents::Other })
}

/// Seals the records of a scan; deletes a segment without records.
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
        body::remove_all(&path)?;
        files::remove(&path)?;
        files::remove(&files::index_path(dir, base))?;
        return Ok(None);
    }
    let damage =
        |(offset, bytes): &(u64, u64)| Damage { segment: path.clone(), offset: *offset, bytes: *bytes };
    recovery.damaged.extend(scan.damaged.iter().map(damage));
    // Nothing after the last record was ever served, so no mapping reaches there.
    let cut = disk::File::open_to_write(&path).and_then(|file| file.set_len(scan.end));
    cut.map_err(|error| LogError::io("cut", &path, error))?;
    let segment = with_bodies(Segment::recovered(dir, base, scan.rows, scan.end), recovery)?;
    match segment.seal(identity.epoch) {
        // Only an open log can make room by retention; a later retention seals the segment.
        Err(error @ LogError::DiskFull { .. }) => {
            tracing::error!(feed = %identity.feed, %error, "a segment stays without an index for now");
        }
        sealed => sealed?,
    }
    Ok(Some(segment))
}

/// True if the disk can't return the beginning of a file, or if it is not a file. Other obstacles to reading, such
/// as permissions or a lack of descriptors, may pass and are no reason to give the file up.
fn is_unreadable(path: &Path) -> bool {
    begin(path).is_err_and(|error| error.raw_os_error() == Some(libc::EISDIR) || system::is_lost(&error))
}

fn begin(path: &Path) -> io::Result<Vec<u8>> {
    let mut header = Vec::new();
    File::open(path)?.take(FILE_HEADER_BYTES).read_to_end(&mut header)?;
    Ok(header)
}

fn set_aside(dir: &Path, base: u64, recovery: &mut Recovery) -> Result<(), LogError> {
    let segment = files::segment_path(dir, base);
    for path in [body::directory(&segment), segment, files::index_path(dir, base)] {
        if path.exists() {
            recovery.quarantined.push(files::quarantine(&path)?);
        }
    }
    Ok(())
}

/// The result of reading a segment record by record.
#[derive(Debug, Default)]
struct Scan {
    rows: Vec<Row>,
    /// The end of the last record.
    end: u64,
    /// Offsets and lengths of skipped places.
    damaged: Vec<(u64, u64)>,
    /// The bytes from the end to the last byte ever written.
    torn_bytes: u64,
}

/// The bodies of a segment.
#[derive(Clone, Copy)]
struct Bodies<'a> {
    segment: &'a Path,
}

impl Bodies<'_> {
    /// True if the body of a product is there and has its digest.
    fn hold(self, header: &Header) -> bool {
        let Header { sequence, size, metadata, .. } = header;
        let Ok(Some((file, _))) = body::open(self.segment, *sequence, *size) else { return false };
        copy_checked(&file, 0, *size, &metadata.digest, &mut |_| Ok(())).unwrap_or(false)
    }
}

impl Scan {
    fn holds(&self, sequence: u64) -> bool {
        self.rows.binary_search_by_key(&sequence, |row| row.sequence).is_ok()
    }
}

fn scan(window: &mut FileWindow<'_>, salt: u64, bodies: Bodies<'_>) -> io::Result<Scan> {
    let mut scan = Scan { end: FILE_HEADER_BYTES, ..Scan::default() };
    while let Some((row, end)) = next_record(window, salt, bodies, &scan)? {
        let expected = record::padded(scan.end);
        if row.offset > expected {
            scan.damaged.push((expected, row.offset - expected));
        }
        scan.rows.push(row);
        scan.end = end;
    }
    scan.torn_bytes = window.last_written(scan.end)?.map_or(0, |end| end - scan.end);
    scan.damaged.extend(window.lost_from(scan.end));
    Ok(scan)
}

/// The next intact record after those found so far, and the end of its bytes.
fn next_record(
    window: &mut FileWindow<'_>,
    salt: u64,
    bodies: Bodies<'_>,
    scan: &Scan,
) -> io::Result<Option<(Row, u64)>> {
    let last = scan.rows.last().map_or(0, |row| row.sequence);
    let mut from = record::padded(scan.end);
    while let Some(offset) = window.find(from, record::ALIGNMENT, record::is_marked)? {
        let beginning = window.at_hand(offset, record::MAX_HEADER_BYTES as usize)?;
        let header = record::decode(Place { salt, offset }, beginning);
        if let Some(header) = header.filter(|header| header.sequence > last) {
            let bytes_at = offset + u64::from(header.header_bytes);
            let is_whole = match header.metadata.in_body {
                Some(()) => bodies.hold(&header),
                None => window.has_digest(bytes_at, header.size, &header.metadata.digest.0)?,
            };
            if is_whole {
                let row = Row::new(&header, offset);
                return Ok(Some((row, row.end())));
            }
        }
        from = offset + record::ALIGNMENT;
    }
    Ok(None)
}

fn length(path: &Path) -> Result<u64, LogError> {
    let metadata = std::fs::metadata(path).map_err(|error| LogError::io("look at", path, error))?;
    Ok(metadata.len())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use downburst_model::FeedName;

    use super::*;
    use crate::{FeedLog, LogOptions, ProductLog, contract, files::file_window::tests::window};

    /// The only segment, and the salt, of an unclosed log with products of 3,000 bytes.
    fn segment(dir: &Path, products: u8) -> (PathBuf, u64) {
        let feed = FeedName::parse("TEST").unwrap();
        let (log, _) = FeedLog::open(dir, feed, LogOptions::default(), 1).unwrap();
        for n in 0..products {
            let product = contract::product(&n.to_string()).unwrap();
            log.append(product, &mut [n; 3_000].as_slice(), &|| downburst_model::WallMicros(0)).unwrap();
        }
        (files::segment_path(dir, 1), Identity::read(dir).unwrap().unwrap().salt)
    }

    #[test]
    fn the_reserved_space_of_an_unclean_log_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let (path, salt) = segment(dir.path(), 100);
        let file = File::open(&path).unwrap();
        let length = file.metadata().unwrap().len();
        assert!(length >= 64 << 20, "the segment has no reserve to test with: {length} bytes");
        let stretches = system::data_stretches(&file, length);
        if stretches == [(0, length)] {
            eprintln!("SKIPPED: the file system of the test knows no holes");
            return;
        }
        let read_bytes = Cell::new(0);
        let read = |buffer: &mut [u8], offset: u64| {
            let read = std::os::unix::fs::FileExt::read_at(&file, buffer, offset)?;
            read_bytes.set(read_bytes.get() + read);
            Ok(read)
        };
        let scan =
            scan(&mut FileWindow::new(Box::new(read), length, stretches), salt, Bodies { segment: &path })
                .unwrap();
        assert_eq!((scan.rows.len(), scan.torn_bytes, scan.damaged), (100, 0, Vec::new()));
        assert!(read_bytes.get() < 4 << 20, "{} bytes", read_bytes.get());
    }

    #[test]
    fn a_bad_sector_costs_the_products_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let (path, salt) = segment(dir.path(), 20);
        let mut contents = std::fs::read(&path).unwrap();
        contents.truncate(80_000);
        let read_bytes = Cell::new(0);
        for bad in 0..(contents.len() / 4_096) as u64 {
            let bad = [bad];
            let scan =
                scan(&mut window(&contents, &bad, &read_bytes), salt, Bodies { segment: &path }).unwrap();
            let lost = 20 - scan.rows.len();
            let end = scan.rows.last().map_or(0, |row| row.offset + 3_000);
            let is_told = !scan.damaged.is_empty();
            assert!(lost <= 3 && is_told == (lost > 0 || bad[0] * 4_096 >= end), "block {bad:?}: {scan:?}");
        }
    }
}
