//! A file for writing, with or without a trace of its changes.

use std::{
    fs,
    io::{self, IoSlice, Seek as _, SeekFrom, Write},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::Path,
};

use super::recording::{Node, on_open};
use crate::system;

/// An open file. Reads and mappings use [`as_file`](Self::as_file), which must not be written to.
#[derive(Debug)]
pub struct File {
    inner: fs::File,
    node: Option<Node>,
    /// The position of the next [`Write`].
    position: u64,
}

impl File {
    /// Creates an empty file, or truncates an existing one.
    ///
    /// # Errors
    /// Those of the system, as everywhere here.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::open(path, fs::File::options().read(true).write(true).create(true).truncate(true))
    }

    /// Creates an empty file that only its owner may read, or truncates an existing one.
    pub fn create_private(path: &Path) -> io::Result<Self> {
        Self::open(path, fs::File::options().write(true).create(true).truncate(true).mode(0o600))
    }

    /// Creates an empty file; fails if the file exists.
    pub fn create_new(path: &Path) -> io::Result<Self> {
        Self::open(path, fs::File::options().read(true).write(true).create_new(true))
    }

    /// Creates an empty file that nobody can open for writing; fails if the file exists.
    pub fn create_read_only(path: &Path) -> io::Result<Self> {
        Self::open(path, fs::File::options().read(true).write(true).create_new(true).mode(super::READ_ONLY))
    }

    /// Opens a file for reading and writing, and creates it if it is missing.
    pub fn open_or_create(path: &Path) -> io::Result<Self> {
        Self::open(path, fs::File::options().read(true).write(true).create(true).truncate(false))
    }

    /// Opens an existing file for writing.
    pub fn open_to_write(path: &Path) -> io::Result<Self> {
        Self::open(path, fs::File::options().write(true))
    }

    /// Opens an existing file in order to synchronise it.
    pub fn open_to_read(path: &Path) -> io::Result<Self> {
        Self::open(path, fs::File::options().read(true))
    }

    fn open(path: &Path, options: &fs::OpenOptions) -> io::Result<Self> {
        let (inner, node) = on_open(path, || options.open(path))?;
        Ok(Self { inner, node, position: 0 })
    }

    /// Takes the advisory lock for this open file; false if another open file has it. It is released at the end.
    pub fn try_lock(&self) -> io::Result<bool> {
        system::try_lock(&self.inner)
    }

    /// For reading and mapping.
    #[must_use]
    pub fn as_file(&self) -> &fs::File {
        &self.inner
    }

    /// Writes all bytes at an offset.
    pub fn write_all_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        match &self.node {
            None => self.inner.write_all_at(bytes, at),
            Some(node) => {
                node.note(|trace, node| trace.write(node, at, bytes), || self.inner.write_all_at(bytes, at))
            }
        }
    }

    /// Writes all pieces one after the other, with as few calls as the kernel allows.
    pub fn write_pieces_at(&self, pieces: &mut [IoSlice<'_>], at: u64) -> io::Result<()> {
        match &self.node {
            None => system::write_all_vectored_at(&self.inner, pieces, at),
            Some(node) => {
                let whole: Vec<u8> = pieces.iter().flat_map(|piece| piece.iter().copied()).collect();
                let write = || system::write_all_vectored_at(&self.inner, pieces, at);
                node.note(|trace, node| trace.write(node, at, &whole), write)
            }
        }
    }

    /// Fills the empty file with the contents of another, in the kernel where that is possible.
    pub fn copy_from(&self, source: &fs::File) -> io::Result<()> {
        let copy = || {
            let mut source = source;
            source.seek(SeekFrom::Start(0))?;
            // By `copy_file_range`, and by reading and writing across file systems.
            io::copy(&mut source, &mut &self.inner).map(|_| ())
        };
        self.filled_from(source, copy)
    }

    /// Makes the empty file a clone of another: it shares the blocks of that one until one of them is written.
    pub fn clone_from(&self, source: &fs::File) -> io::Result<()> {
        self.filled_from(source, || system::clone_file(source, &self.inner))
    }

    fn filled_from(&self, source: &fs::File, fill: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let Some(node) = &self.node else { return fill() };
        let mut whole = vec![0; usize::try_from(source.metadata()?.len()).map_err(io::Error::other)?];
        source.read_exact_at(&mut whole, 0)?;
        node.note(|trace, node| trace.write(node, 0, &whole), fill)
    }

    /// Begins to write the file's changes to the disk, without waiting for it. Best effort.
    pub fn start_write_back(&self) {
        system::start_write_back(&self.inner);
    }

    /// Truncates the file, or extends it with zeros.
    pub fn set_len(&self, bytes: u64) -> io::Result<()> {
        match &self.node {
            None => self.inner.set_len(bytes),
            Some(node) => {
                node.note(|trace, node| trace.set_length(node, bytes), || self.inner.set_len(bytes))
            }
        }
    }

    /// Releases the blocks between two offsets, which then read as zeros. Best effort.
    pub fn release(&self, from: u64, to: u64) {
        match &self.node {
            None => system::release(&self.inner, from, to),
            Some(node) => {
                // If the file system can't do it, the trace is stricter than the disk.
                let _ = node.note(
                    |trace, node| trace.release(node, from, to),
                    || {
                        system::release(&self.inner, from, to);
                        Ok(())
                    },
                );
            }
        }
    }

    /// Makes contents and length durable; the name is durable once its directory is synchronised.
    pub fn sync_all(&self) -> io::Result<()> {
        match &self.node {
            None => self.inner.sync_all(),
            Some(node) => node.note(|trace, node| trace.sync(node), || self.inner.sync_all()),
        }
    }

    /// As [`sync_all`](Self::sync_all), without timestamps and permissions.
    pub fn sync_data(&self) -> io::Result<()> {
        match &self.node {
            None => self.inner.sync_data(),
            Some(node) => node.note(|trace, node| trace.sync(node), || self.inner.sync_data()),
        }
    }
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all_at(bytes, self.position)?;
        self.position += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
