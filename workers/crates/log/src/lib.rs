//! The product log: append-only segments per feed, sequences that are never reused, duplicate keys, retention.
//!
//! [`ProductLog`] is the seam; [`FeedLog`] keeps it in local files, one directory per feed:
//!
//! | file | contents |
//! |---|---|
//! | `lock` | held with `flock` by the one writer, names its process |
//! | `identity` | the feed, the epoch and the secret that makes record checks unforgeable |
//! | `sequence` | how far sequences are reserved; after a clean stop the exact next one |
//! | `N.segment` | records: header, metadata, bytes; `N` is the first sequence it may hold |
//! | `N.bodies` | a directory with the bytes of the segment's large products, a file each |
//! | `N.index` | the headers of a sealed segment; outlives the segment and is then the memory of evicted products |
//! | `*.quarantined` | files that could not be read at opening, kept for inspection |
//!
//! A record's bytes are written before its header, so an interrupted append leaves no record; so is a body. A body
//! may have a further name outside the log, where local software reads the product. Damage inside a
//! segment is skipped: the next record is found by its mark, its place and its checksum, and everything else in
//! the file stays readable. A whole file is quarantined only when its own header can't be read or belongs
//! elsewhere.
//!
//! [`LogReader`] reads the same files from any other process, beside the writer or after its end, without a lock and
//! without changing anything.
//!
//! Limits: segments are mapped, so the directory must be on a local file system, and no other program may shorten
//! its files. A directory restored from a backup looks like the original one; the numbers assigned since the
//! backup would be assigned again. Delete `identity`, all segments, bodies and indexes after a restore, so that a
//! fresh epoch begins. Readers check the bytes of sealed segments against their digest; the log does not do so at
//! each read. [`FeedLog::examine`] is for a product that a reader found damaged. Its findings are kept until the
//! log is closed.
//!
//! Touching a mapped page that the disk has lost ends the process. Therefore opening reads through a buffer, and
//! the kernel is asked for mapped bytes before they are served; bytes that can be read but not mapped are copied,
//! unreadable ones become an entry without bytes. Not covered: a kernel before Linux 5.14; bytes more than 1 MB
//! after the beginning of a record; a sector that goes bad between the check and the use; the rows of an index
//! after it was opened.
#![deny(unsafe_code)]
// The key table is never iterated over, so its order can't be observed.
#![allow(clippy::disallowed_types)]

mod api;
pub mod contract;
pub mod disk;
mod error;
mod feed_log;
mod files;
mod log_reader;
mod options;
mod segment;
mod shared;
mod system;
mod wmo;

pub use api::{
    Appended, Clock, Forgotten, LogEntry, LogStat, NewProduct, ProductLog, ReadBatch, Retained, SourceStamp,
    SpoolFile,
};
pub use error::LogError;
pub use feed_log::FeedLog;
pub use feed_log::copy::Given;
pub use feed_log::hashing::ContentHasher;
pub use feed_log::numbered::{Draft, NumberAll, NumberOne, Numbered};
pub use feed_log::recovery::{Damage, Lost, Recovery};
pub use log_reader::entries::{Copied, Entries, StoredEntry};
pub use log_reader::search::{LookedBack, SearchLimits, Searched, Sought};
pub use log_reader::verify::{Finding, Flaw, Verified};
pub use log_reader::{LogReader, LogSummary};
pub use options::{ADOPTED_BYTES, DuplicateRule, Durability, LogOptions, Retention};
pub use shared::{Lacking, Opened, SharedLog, SharedLogs, Wanted};
