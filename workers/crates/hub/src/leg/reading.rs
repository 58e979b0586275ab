use downburst_model::Sequence;
use downburst_vcmtp::Sender;

use super::api::LogRange;

/// A leg's read position in its feed's log.
#[derive(Debug)]
pub(super) struct LogReading {
    began: Sequence,
    cursor: Sequence,
    head: Sequence,
    under_way: bool,
}

impl LogReading {
    pub(super) fn new(after: Sequence) -> Self {
        Self { began: after, cursor: after, head: after, under_way: false }
    }

    /// The number behind which the leg begins.
    pub(super) fn began(&self) -> Sequence {
        self.began
    }

    /// The end of what was read.
    pub(super) fn cursor(&self) -> Sequence {
        self.cursor
    }

    pub(super) fn grown(&mut self, head: Sequence) {
        self.head = self.head.max(head);
    }

    pub(super) fn read_to(&mut self, cursor: Sequence) {
        self.under_way = false;
        self.cursor = cursor;
    }

    /// Stops reading until the driver reports the head again.
    pub(super) fn failed(&mut self) {
        self.under_way = false;
        self.head = self.cursor;
    }

    /// True if a read is due, while the sender has little to do.
    pub(super) fn due(&self, sender: &Sender) -> bool {
        self.cursor < self.head && !self.under_way && has_room(sender)
    }

    pub(super) fn next(&mut self) -> LogRange {
        self.under_way = true;
        LogRange { after: self.cursor, to: self.head, limit_bytes: READ_BYTES, limit_products: READ_PRODUCTS }
    }
}

/// The log is read far ahead, because a warning may be queued behind large or numerous products.
fn has_room(sender: &Sender) -> bool {
    sender.backlog_products() < BACKLOG_LIMIT_PRODUCTS && sender.backlog_bytes() < BACKLOG_LIMIT_BYTES
}

/// The sender's limit of unsent products; further ones stay in the log. A product's description takes some 500
/// bytes: 32 MiB for all.
pub(super) const BACKLOG_LIMIT_PRODUCTS: usize = 65_536;

/// Unsent bytes are the log's mapped pages. They take no memory of their own, but keep the disk space of a segment
/// that retention has released.
const BACKLOG_LIMIT_BYTES: u64 = 4 << 30;

const READ_BYTES: usize = 4 << 20;
pub(super) const READ_PRODUCTS: usize = 512;
