//! Bodies: the bytes of large products, each in a file of its own, in one directory for each segment.
//!
//! A body is read with `pread` and never mapped: its file may also have a name outside the log, and a consumer that
//! shortened a mapped file would end this process.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io,
    ops::Range,
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
};

use bytes::Bytes;
use downburst_model::{Content, StoredContent};

use crate::{LogError, disk, files::BODIES};

/// The directory of the bodies of a segment.
pub(crate) fn directory(segment: &Path) -> PathBuf {
    segment.with_extension(BODIES)
}

/// The body of a product.
pub(crate) fn path(segment: &Path, sequence: u64) -> PathBuf {
    directory(segment).join(format!("{sequence:020}"))
}

/// Opens a body; `None` if it is missing or has another length, which is damage.
pub(crate) fn open(segment: &Path, sequence: u64, size: u64) -> io::Result<Option<(File, PathBuf)>> {
    let path = path(segment, sequence);
    match File::open(&path) {
        Ok(file) => Ok((file.metadata()?.len() == size).then_some((file, path))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The bodies of a segment that are open now: readers of the same product share its file and its bytes.
#[derive(Debug, Default)]
pub(crate) struct OpenBodies(Mutex<BTreeMap<u64, Weak<Body>>>);

impl OpenBodies {
    /// The content of a body; `None` if it can't be opened, which is logged.
    pub(crate) fn content(&self, segment: &Path, sequence: u64, size: u64) -> Option<Content> {
        let mut bodies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(body) = bodies.get(&sequence).and_then(Weak::upgrade) {
            return Some(Content::Stored(body));
        }
        let body = Arc::new(Body::open(segment, sequence, size)?);
        if bodies.len() >= MOST_CLOSED {
            bodies.retain(|_, body| body.strong_count() > 0);
        }
        bodies.insert(sequence, Arc::downgrade(&body));
        Some(Content::Stored(body))
    }
}

/// Creates the file of a body, and its directory if necessary.
pub(crate) fn create(segment: &Path, sequence: u64, is_durable: bool) -> io::Result<disk::File> {
    let path = path(segment, sequence);
    match disk::File::create_read_only(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make_directory(segment, is_durable)?;
            disk::File::create_read_only(&path)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            disk::remove_file(&path)?;
            disk::File::create_read_only(&path)
        }
        created => created,
    }
}

/// Gives a file of this process a second name, as the body of a product. The file must not change any more.
pub(crate) fn link(file: &Path, segment: &Path, sequence: u64, is_durable: bool) -> io::Result<()> {
    let path = path(segment, sequence);
    match disk::link(file, &path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && file.exists() => {
            make_directory(segment, is_durable)?;
            disk::link(file, &path)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            disk::remove_file(&path)?;
            disk::link(file, &path)
        }
        linked => linked,
    }
}

/// Creates the directory, which only the log's user can enter.
fn make_directory(segment: &Path, is_durable: bool) -> io::Result<()> {
    disk::make_private_directory(&directory(segment))?;
    if is_durable { disk::sync_directory(segment.parent().unwrap_or(Path::new("."))) } else { Ok(()) }
}

/// Makes bodies durable: write-back of all begins before the first wait, and their names follow in one call.
pub(crate) fn sync(segment: &Path, sequences: &[u64]) -> io::Result<()> {
    let open = |sequence: &u64| disk::File::open_to_read(&path(segment, *sequence));
    for some in sequences.chunks(MOST_OPEN) {
        let files = some.iter().map(open).collect::<io::Result<Vec<_>>>()?;
        files.iter().for_each(disk::File::start_write_back);
        files.iter().try_for_each(disk::File::sync_data)?;
    }
    if sequences.is_empty() { Ok(()) } else { disk::sync_directory(&directory(segment)) }
}

/// Makes bodies durable, and the name of their directory: without durability of each append it was not synchronised
/// when it was created.
pub(crate) fn sync_all(segment: &Path, sequences: &[u64]) -> io::Result<()> {
    sync(segment, sequences)?;
    if sequences.is_empty() {
        Ok(())
    } else {
        disk::sync_directory(segment.parent().unwrap_or(Path::new(".")))
    }
}

/// Deletes the body of a product that was not stored. Best effort: opening the log deletes what is left.
pub(crate) fn discard(segment: &Path, sequence: u64) {
    let _ = disk::remove_file(&path(segment, sequence));
}

/// Deletes all bodies of a segment; returns the bytes whose files have a further name and so remain on the disk.
pub(crate) fn remove_all(segment: &Path) -> Result<u64, LogError> {
    let directory = directory(segment);
    let failed = |error| LogError::io("delete", &directory, error);
    let entries = match fs::read_dir(&directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries.map_err(failed)?,
    };
    let mut linked_bytes = 0;
    for entry in entries {
        let metadata = entry.and_then(|entry| entry.metadata()).map_err(failed)?;
        if metadata.nlink() > 1 {
            linked_bytes += metadata.len();
        }
    }
    disk::remove_directory(&directory).map_err(failed)?;
    Ok(linked_bytes)
}

/// Deletes the bodies of products that the segment does not list: the remains of interrupted appends. Returns the
/// listed ones that are missing.
pub(crate) fn tidy(segment: &Path, listed: &[u64]) -> Result<Vec<u64>, LogError> {
    let directory = directory(segment);
    let failed = |error| LogError::io("list", &directory, error);
    let mut missing: BTreeSet<u64> = listed.iter().copied().collect();
    let entries = match fs::read_dir(&directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(missing.into_iter().collect()),
        entries => entries.map_err(failed)?,
    };
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let sequence = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if !sequence.is_some_and(|sequence| missing.remove(&sequence)) {
            disk::remove_file(&entry.path()).map_err(failed)?;
        }
    }
    Ok(missing.into_iter().collect())
}

/// An open body.
#[derive(Debug)]
pub(crate) struct Body {
    source: Source,
    path: PathBuf,
    length: usize,
}

/// The place from which a body is read.
#[derive(Debug)]
enum Source {
    /// Read piece by piece.
    Large(File),
    /// Read as a whole at the first use, and then in memory; `None` if the disk can't return it. The file is closed
    /// then: a cache of products holds no descriptors.
    Small(Mutex<Option<File>>, OnceLock<Option<Bytes>>),
}

impl Body {
    fn open(segment: &Path, sequence: u64, size: u64) -> Option<Self> {
        let length = usize::try_from(size).ok()?;
        match open(segment, sequence, size) {
            Ok(Some((file, path))) => {
                let is_small = length <= WHOLE_BYTES;
                let source = if is_small { Source::small(file) } else { Source::Large(file) };
                Some(Self { source, path, length })
            }
            // An evicted segment is deleted before its bodies.
            Ok(None) if !segment.exists() => None,
            Ok(None) => {
                let path = path(segment, sequence);
                tracing::error!(path = %path.display(), "a body of the log is missing or has another length");
                None
            }
            Err(error) => {
                let path = path(segment, sequence);
                tracing::error!(path = %path.display(), %error, "the disk can't give back a body of the log");
                None
            }
        }
    }

    fn read_from_disk(&self, file: &File, range: Range<usize>) -> Option<Bytes> {
        let mut bytes = vec![0; range.len()];
        match file.read_exact_at(&mut bytes, range.start as u64) {
            Ok(()) => Some(Bytes::from(bytes)),
            Err(error) => {
                let path = self.path.display();
                tracing::error!(%path, offset = range.start, %error, "the disk can't give back a body of the log");
                None
            }
        }
    }
}

impl Source {
    fn small(file: File) -> Self {
        Self::Small(Mutex::new(Some(file)), OnceLock::new())
    }
}

impl StoredContent for Body {
    fn length(&self) -> usize {
        self.length
    }

    fn read(&self, range: Range<usize>) -> Option<Bytes> {
        match &self.source {
            Source::Large(file) => self.read_from_disk(file, range),
            Source::Small(file, whole) => {
                let whole = whole.get_or_init(|| {
                    let file = file.lock().unwrap_or_else(PoisonError::into_inner).take()?;
                    self.read_from_disk(&file, 0..self.length)
                });
                whole.as_ref().map(|bytes| bytes.slice(range))
            }
        }
    }

    fn memory_bytes(&self) -> usize {
        if matches!(self.source, Source::Large(_)) { 0 } else { self.length }
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

/// A body of at most this many bytes is read at once and shared by all its readers, since the sites of a feed read
/// about the same products; of a larger one each reads its own pieces.
const WHOLE_BYTES: usize = 1 << 20;
/// Leaves room for connections below the customary limit of 1,024 open files.
const MOST_OPEN: usize = 128;
/// Entries of bodies that nobody reads any more are removed from this number on.
const MOST_CLOSED: usize = 256;
