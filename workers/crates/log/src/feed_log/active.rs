//! The segment being written.

use std::{io, sync::Arc};

use crate::{
    LogError,
    disk::File,
    segment::index::Row,
    segment::{Segment, record},
};

/// The segment being written.
#[derive(Debug)]
pub(crate) struct Active {
    pub(crate) segment: Arc<Segment>,
    pub(crate) file: File,
    /// The offset of the next record.
    pub(crate) tail: u64,
    /// The bytes in bodies.
    pub(crate) body_bytes: u64,
}

impl Active {
    /// The disk in use by records and bodies.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.tail.saturating_add(self.body_bytes)
    }

    /// Takes in records that end at an offset.
    pub(crate) fn extend(&mut self, rows: &[Row], end: u64) {
        self.segment.extend(rows, end);
        self.tail = record::padded(end);
        self.body_bytes += rows.iter().map(Row::body_bytes).sum::<u64>();
    }

    /// Restores the file to its state after the last record. No mapping is read beyond that place.
    pub(crate) fn wipe_tail(&self) -> io::Result<()> {
        let length = self.file.as_file().metadata()?.len();
        self.file.set_len(self.tail)?;
        self.file.set_len(length.max(self.tail))
    }

    pub(crate) fn failed(&self, action: &'static str, error: io::Error) -> LogError {
        LogError::io(action, &self.segment.path, error)
    }
}
