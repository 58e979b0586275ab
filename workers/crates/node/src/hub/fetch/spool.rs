//! The bytes of a download on their way to the log: small products in memory, others in a file.
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use downburst_hub::feeds::AT_HAND_BYTES;

use crate::hub::feeds::feed_writer::Spooled;

/// Bytes that have come so far; a download that ends early leaves no file.
pub(super) struct Spool {
    path: PathBuf,
    held: Vec<u8>,
    file: Option<Arc<File>>,
    has_file: bool,
    is_whole: bool,
}

impl Spool {
    /// `path`: the file for a product that is too large for memory.
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, held: Vec::new(), file: None, has_file: false, is_whole: false }
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// The disk does not take them.
    pub(super) async fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.held.extend_from_slice(bytes);
        if self.held.len() as u64 > AT_HAND_BYTES { self.write().await } else { Ok(()) }
    }

    /// All bytes, for the feed's writer.
    ///
    /// # Errors
    /// The disk does not take the last of them.
    pub(super) async fn finish(mut self) -> io::Result<Spooled> {
        if !self.has_file {
            return Ok(Spooled::AtHand(Bytes::from(std::mem::take(&mut self.held))));
        }
        self.write().await?;
        self.is_whole = true;
        Ok(Spooled::File { path: self.path.clone(), remove: true })
    }

    async fn write(&mut self) -> io::Result<()> {
        self.has_file = true;
        let (path, file, bytes) = (self.path.clone(), self.file.take(), std::mem::take(&mut self.held));
        let work = move || {
            let file = file.map_or_else(|| created(&path), Ok)?;
            (&*file).write_all(&bytes)?;
            Ok::<_, io::Error>(file)
        };
        let file = tokio::task::spawn_blocking(work).await.map_err(io::Error::other)??;
        self.file = Some(file);
        Ok(())
    }
}

/// Most products need neither the file nor its directory.
fn created(path: &Path) -> io::Result<Arc<File>> {
    path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    File::create_new(path).map(Arc::new)
}

impl Drop for Spool {
    fn drop(&mut self) {
        if self.has_file && !self.is_whole {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn small_products_stay_in_memory_and_others_go_to_a_file() {
        let home = tempfile::tempdir().unwrap();
        for (parts, in_memory) in [(0, true), (1, true), (4, true), (5, false), (9, false)] {
            let path = home.path().join(parts.to_string());
            let mut spool = Spool::new(path.clone());
            for part in 0..parts {
                spool.take(&[part; (AT_HAND_BYTES / 4) as usize]).await.unwrap();
            }
            let expected: Vec<u8> =
                (0..parts).flat_map(|part| [part; (AT_HAND_BYTES / 4) as usize]).collect();
            match spool.finish().await.unwrap() {
                Spooled::AtHand(bytes) => assert!(in_memory && bytes == expected, "{parts}"),
                Spooled::File { path, remove } => {
                    assert!(!in_memory && remove, "{parts}");
                    assert!(std::fs::read(path).unwrap() == expected, "{parts}");
                }
            }
        }
    }

    #[tokio::test]
    async fn a_download_that_ends_early_leaves_no_file() {
        let home = tempfile::tempdir().unwrap();
        let mut spool = Spool::new(home.path().join("x"));
        spool.take(&vec![1; AT_HAND_BYTES as usize + 1]).await.unwrap();
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1);
        drop(spool);
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
    }
}
