//! Raw receipts: every statement of a site about a product, kept for hours in files that any Arrow reader can read.
//!
//! Sessions hand whole batches to one writer thread over a bounded queue and never wait for it: batches that
//! find the queue full are dropped, counted and reported. The thread keeps one file at a time, in the Arrow
//! IPC *stream* format under LZ4, so that a file torn by a crash is readable up to the tear. The thread flushes
//! each second, and starts a new file each minute or million rows.
//!
//! | in `receipts/` | what it is |
//! |---|---|
//! | `20260131T120000.250000Z.part` | being written; named after the moment of its first receipt |
//! | `20260131T120000.250000Z.arrows` | complete, or what a crash left of one |
//! | `20260131T120000.250000Z.json` | its feeds and sequences, so that a search can skip it; may be missing |
//!
//! A killed process loses the rows of its last second, a power cut those that the system had not written yet.
//! The oldest files are removed first, once they are older than `receipt_hours` or all files together are larger than
//! `receipt_bytes`.
mod columns;
mod directory;
mod file;
mod find;
mod names;
mod writer;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};
use downburst_model::{SiteName, WallMicros};
use downburst_session::{ClockOffset, Receipt};

pub(super) use find::{Budget, FoundReceipts, KeptReceipt, Wanted};

use super::lock;
use crate::clock::Clock;

/// The store of raw receipts.
pub(super) struct Receipts {
    queue: Option<Sender<Order>>,
    waiting: Arc<AtomicUsize>,
    dropped: AtomicU64,
    directory: PathBuf,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

/// The retention of raw receipts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// None are kept for zero hours.
    pub(super) hours: f64,
    pub(super) bytes: u64,
}

/// One receipt with the part of the product's way that only the hub knows.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) receipt: Receipt,
    /// The time at which the hub sent the product's first byte, if still known.
    pub(super) first_byte: Option<WallMicros>,
    /// True if the site reported the outcome earlier: this row only adds the time at which the file was complete.
    pub(super) is_late_file: bool,
}

impl Row {
    pub(super) fn new(receipt: Receipt, first_byte: Option<WallMicros>) -> Self {
        Self { receipt, first_byte, is_late_file: false }
    }

    pub(super) fn of_late_file(receipt: Receipt) -> Self {
        Self { receipt, first_byte: None, is_late_file: true }
    }
}

/// The receipts that a site sent in one message.
#[derive(Debug)]
struct Batch {
    site: SiteName,
    clock: Option<ClockOffset>,
    rows: Vec<Row>,
}

/// An order to the writer thread.
enum Order {
    Keep(Batch),
    /// Answered once everything before it is in a file.
    Flush(Sender<()>),
    End,
}

impl Receipts {
    /// Starts the writer; without it (no thread, zero hours) receipts are not kept.
    ///
    /// `fault` reports a problem to the operator.
    pub(super) fn start(
        directory: PathBuf,
        limits: Limits,
        clock: Clock,
        fault: impl Fn(String) + Send + 'static,
    ) -> Self {
        let mut receipts = Self {
            queue: None,
            waiting: Arc::default(),
            dropped: AtomicU64::new(0),
            directory,
            thread: Mutex::new(None),
        };
        if limits.hours > 0.0 && limits.bytes > 0 {
            let (queue, orders) = bounded(QUEUE_BATCHES);
            receipts.spawn(orders, limits, clock, fault);
            receipts.queue = Some(queue);
        }
        receipts
    }

    /// Queues a site's receipts. Never waits.
    pub(super) fn record(&self, site: &SiteName, clock: Option<ClockOffset>, rows: Vec<Row>) {
        let Some(queue) = self.queue.as_ref().filter(|_| !rows.is_empty()) else { return };
        let count = rows.len();
        let waiting = self.waiting.fetch_add(count, Ordering::Relaxed);
        let batch = Batch { site: site.clone(), clock, rows };
        if waiting > QUEUE_ROWS || queue.try_send(Order::Keep(batch)).is_err() {
            self.waiting.fetch_sub(count, Ordering::Relaxed);
            self.dropped.fetch_add(count as u64, Ordering::Relaxed);
        }
    }

    /// The number of receipts dropped since the last call, because the disk was too slow.
    pub(super) fn take_dropped(&self) -> u64 {
        self.dropped.swap(0, Ordering::Relaxed)
    }

    /// The receipts of these products; waits for the writer and reads files, so a session must not call it.
    pub(super) fn find(&self, wanted: &[Wanted], budget: Budget) -> FoundReceipts {
        self.flush();
        find::find(&self.directory, wanted, budget)
    }

    /// Writes the queued receipts and ends the writer.
    pub(super) fn stop(&self) {
        if let Some(queue) = &self.queue
            && queue.send_timeout(Order::End, FLUSH_PATIENCE).is_ok()
            && let Some(thread) = lock(&self.thread).take()
        {
            let _ = thread.join();
        }
    }

    fn flush(&self) {
        let Some(queue) = &self.queue else { return };
        let (done, flushed) = bounded(1);
        if queue.send_timeout(Order::Flush(done), FLUSH_PATIENCE).is_ok() {
            let _ = flushed.recv_timeout(FLUSH_PATIENCE);
        }
    }

    fn spawn(
        &self,
        orders: Receiver<Order>,
        limits: Limits,
        clock: Clock,
        fault: impl Fn(String) + Send + 'static,
    ) {
        let writer = writer::Writer::new(self.directory.clone(), limits, clock, Arc::clone(&self.waiting));
        let thread = std::thread::Builder::new()
            .name("receipts".to_owned())
            .spawn(move || writer.run(&orders, &fault));
        match thread {
            Ok(thread) => *lock(&self.thread) = Some(thread),
            Err(error) => tracing::error!(%error, "no thread for raw receipts; they are not kept"),
        }
    }
}

/// About 40 MB of receipts, or 1.5 s of them at 160,000/s: longer than a disk stalls.
const QUEUE_ROWS: usize = 262_144;
const QUEUE_BATCHES: usize = 16_384;

/// A person waits for the answer and would rather miss the last second than wait for a stuck disk.
const FLUSH_PATIENCE: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests;
