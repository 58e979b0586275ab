//! A product in a complete file of this process: the file becomes the body by a second name where the file system
//! allows it, else by a copy.

use std::{io, path::Path};

use crate::{SpoolFile, disk, feed_log::hashing::Contents, segment::body};

/// A complete file whose digests are known.
pub(crate) struct Spool<'a> {
    pub(crate) file: SpoolFile<'a>,
    pub(crate) contents: Contents,
}

impl Spool<'_> {
    /// Makes the body of a product from the file.
    pub(crate) fn put(&self, segment: &Path, sequence: u64, is_durable: bool) -> io::Result<()> {
        if body::link(self.file.path, segment, sequence, is_durable).is_ok() {
            // Best effort: the file may belong to another user.
            let _ = disk::make_read_only(self.file.path);
            return Ok(());
        }
        body::create(segment, sequence, is_durable)?.copy_from(self.file.file)
    }
}
