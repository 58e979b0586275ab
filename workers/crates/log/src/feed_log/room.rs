//! The disk space that a product needs in a segment.

use crate::segment::record::{self, Metadata};

/// The disk space that a product needs.
#[derive(Clone, Copy)]
pub(crate) struct Room {
    pub(crate) record_bytes: u64,
    pub(crate) body_bytes: u64,
}

impl Room {
    pub(crate) const NONE: Self = Self { record_bytes: 0, body_bytes: 0 };

    /// The room for a product of this size.
    pub(crate) fn of(metadata: &Metadata, size: u64) -> Self {
        let header_bytes = record::reserve(metadata) as u64;
        let body_bytes = if metadata.in_body.is_some() { size } else { 0 };
        Self { record_bytes: header_bytes.saturating_add(size - body_bytes), body_bytes }
    }

    pub(crate) fn bytes(self) -> u64 {
        self.record_bytes.saturating_add(self.body_bytes)
    }
}
