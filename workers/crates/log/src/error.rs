use std::{
    io,
    path::{Path, PathBuf},
};

use downburst_model::{Digest, FeedName, ProductId};
use thiserror::Error;

/// A failure of a log, as a sentence with the place and the remedy.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LogError {
    /// The log was closed by its owner.
    #[error("the log of feed {feed} is closed; open it again before products are appended")]
    Closed {
        /// The feed.
        feed: FeedName,
    },
    /// The bytes don't have the digest that came with them.
    #[error("product {id:?} has digest {found}, but {expected} was announced; send it again")]
    DigestMismatch {
        /// The product.
        id: ProductId,
        /// As announced.
        expected: Digest,
        /// As computed from the bytes.
        found: Digest,
    },
    /// No space is left. Nothing was stored and nothing is damaged.
    #[error(
        "the disk of {} is full; free space or lower the retention of a feed, then send the product again",
        path.display()
    )]
    DiskFull {
        /// The file that could not grow.
        path: PathBuf,
    },
    /// Another writer opened the log after this one. Nothing was stored.
    #[error(
        "another writer has taken over the log of feed {feed}, and this node no longer appends to it; stop one of \
         the two"
    )]
    Fenced {
        /// The feed.
        feed: FeedName,
    },
    /// The system refused an operation.
    #[error("could not {action} {}: {source}; check the disk and the permissions", path.display())]
    Io {
        /// The operation that failed.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Another process writes this log.
    #[error(
        "the log directory {} is in use by {holder}; stop that one first or choose another data directory",
        dir.display()
    )]
    Locked {
        /// The directory.
        dir: PathBuf,
        /// The other writer, as far as it identified itself.
        holder: String,
    },
    /// The files come from a later release.
    #[error(
        "{} has format {version}, which this release can't read; use the release that wrote it or a later \
         one",
        path.display()
    )]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// The directory holds a log whose products exist nowhere else.
    #[error(
        "{} holds a log of its own, not a copy of a shared one; move the directory away, or keep the \
         feeds' logs on this machine as before",
        dir.display()
    )]
    NoCopy {
        /// The directory.
        dir: PathBuf,
    },
    /// The directory is not a log, or its identity is lost.
    #[error(
        "{} holds no readable log: its file `identity` is missing or damaged; check the path; if it is \
         right, start the node, which rebuilds the file from the segments",
        dir.display()
    )]
    NoLog {
        /// The directory.
        dir: PathBuf,
    },
    /// The directory can't be written.
    #[error(
        "the log directory {} can't be written: {source}; correct its owner or permissions, or choose \
         another data directory",
        path.display()
    )]
    NotWritable {
        /// The path that could not be created.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// This node keeps a copy and assigns no sequences.
    #[error(
        "products of feed {feed} are not ingested here: this node keeps a copy of its log; send them to a hub that \
         ingests"
    )]
    OnlyCopied {
        /// The feed.
        feed: FeedName,
    },
    /// A store on the network refused or did not answer. Nothing was stored.
    #[error(
        "could not {action} {place}: {reason}; check that the store is up and can be reached from here, then send \
         the product again"
    )]
    Remote {
        /// The operation that failed.
        action: &'static str,
        /// The place.
        place: String,
        /// The cause.
        reason: String,
    },
    /// The product is shorter or longer than announced.
    #[error("product {id:?} has {found} bytes, but {expected} were announced; send it again")]
    SizeMismatch {
        /// The product.
        id: ProductId,
        /// As announced.
        expected: u64,
        /// As read.
        found: u64,
    },
    /// A shared store can't be used as it is.
    #[error("{sentence}")]
    Store {
        /// The failure, the place and the remedy.
        sentence: String,
    },
    /// The disk no longer accepts writes. Nothing was stored and nothing is damaged.
    #[error(
        "the disk of {} is read-only; look for its failures in the kernel's log (`dmesg`) and mount it \
         writable; stored products stay readable, and the log resumes by itself",
        path.display()
    )]
    ReadOnly {
        /// The file that could not be changed.
        path: PathBuf,
    },
    /// The bytes could not be read from their source.
    #[error("the bytes of product {id:?} could not be read: {source}; send it again")]
    Source {
        /// The product.
        id: ProductId,
        /// The cause.
        source: io::Error,
    },
    /// The product exceeds the limit.
    #[error(
        "product {id:?} is larger than the limit of {limit_bytes} bytes; raise the limit of the feed or split the \
         product"
    )]
    TooLarge {
        /// The product.
        id: ProductId,
        /// The limit.
        limit_bytes: u64,
    },
    /// A store on the network did not report the outcome. This is the only error after which the products may be
    /// stored.
    #[error(
        "the last products of feed {feed} may or may not be stored: {reason}; open the log again, then send them \
         again: stored ones count as duplicates"
    )]
    Unsettled {
        /// The feed.
        feed: FeedName,
        /// The cause.
        reason: String,
    },
    /// The directory belongs to another feed.
    #[error(
        "the log directory {} belongs to feed {found}, not to {asked}; give each feed a directory of its \
         own",
        dir.display()
    )]
    WrongFeed {
        /// The directory.
        dir: PathBuf,
        /// The feed that owns it.
        found: FeedName,
        /// The feed that was requested.
        asked: FeedName,
    },
}

impl LogError {
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem => Self::not_writable(path, source),
            _ => Self::Io { action, path: path.to_owned(), source },
        }
    }

    /// The error for a failed write of any kind.
    pub(crate) fn not_writable(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull { path },
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { path },
            _ => Self::NotWritable { path, source },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_failure_decides_the_advice() {
        let path = Path::new("/data/X");
        let full = LogError::io("write", path, io::Error::from(io::ErrorKind::StorageFull)).to_string();
        assert_eq!(
            full,
            "the disk of /data/X is full; free space or lower the retention of a feed, then send the product again"
        );
        let denied =
            LogError::io("create", path, io::Error::from(io::ErrorKind::PermissionDenied)).to_string();
        assert!(denied.contains("/data/X") && denied.contains("permissions"), "{denied}");
        let frozen =
            LogError::io("create", path, io::Error::from(io::ErrorKind::ReadOnlyFilesystem)).to_string();
        assert!(frozen.starts_with("the disk of /data/X is read-only; "), "{frozen}");
        let other = LogError::io("rename", path, io::Error::other("gone")).to_string();
        assert!(other.starts_with("could not rename /data/X: gone"), "{other}");
    }
}
