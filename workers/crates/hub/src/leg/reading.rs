use downburst_model::Sequence;
use downburst_vcmtp::Sender;

use super::api::LogRange;

/// Where a leg is in its feed's log.
#[derive(Debug)]
pub(super) struct LogReading {
    cursor: Sequence,
    head: Sequence,
    under_way: bool,
}

impl LogReading {
    pub(super) fn new(after: Sequence) -> Self {
        Self { cursor: after, head: after, under_way: false }
    }

    pub(super) fn grown(&mut self, head: Sequence) {
        self.head = self.head.max(head);
    }

    pub(super) fn read_to(&mut self, cursor: Sequence) {
        self.under_way = false;
        self.cursor = cursor;
    }

    /// Nothing is asked for again before the driver says that there is something.
    pub(super) fn failed(&mut self) {
        self.under_way = false;
        self.head = self.cursor;
    }

    /// What to read now, while the sender has little to do.
    pub(super) fn due(&self, sender: &Sender) -> bool {
        self.cursor < self.head && !self.under_way && has_room(sender)
    }

    pub(super) fn next(&mut self) -> LogRange {
        self.under_way = true;
        LogRange { after: self.cursor, to: self.head, limit_bytes: READ_BYTES, limit_products: READ_PRODUCTS }
    }
}

/// The log is read far ahead, because a warning may stand behind what is large or many.
fn has_room(sender: &Sender) -> bool {
    sender.backlog_products() < BACKLOG_LIMIT_PRODUCTS && sender.backlog_bytes() < BACKLOG_LIMIT_BYTES
}

/// The sender's bound on unsent products; more stay in the log. A product takes its description, some 500
/// bytes: 32 MiB for all.
pub(super) const BACKLOG_LIMIT_PRODUCTS: usize = 65_536;

/// Waiting bytes are the log's mapped pages and take no memory of their own, but the disk of a segment that
/// retention let go.
const BACKLOG_LIMIT_BYTES: u64 = 4 << 30;

const READ_BYTES: usize = 4 << 20;
pub(super) const READ_PRODUCTS: usize = 512;
