//! The thread that writes receipts.
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use arrow_schema::ArrowError;
use crossbeam_channel::{Receiver, RecvTimeoutError};
use downburst_model::Micros;

use super::file::Receiving;
use super::{Batch, Limits, Order, directory};
use crate::clock::Clock;

/// Writes receipts until an end order, or until every sender is dropped.
pub(super) struct Writer {
    directory: PathBuf,
    limits: Limits,
    clock: Clock,
    waiting: Arc<AtomicUsize>,
    file: Option<Receiving>,
    /// The end of the pause after a failure of the disk: until then receipts are counted, not written.
    resting_until: Option<Micros>,
    lost: u64,
}

impl Writer {
    pub(super) fn new(directory: PathBuf, limits: Limits, clock: Clock, waiting: Arc<AtomicUsize>) -> Self {
        Self { directory, limits, clock, waiting, file: None, resting_until: None, lost: 0 }
    }

    pub(super) fn run(mut self, orders: &Receiver<Order>, fault: &dyn Fn(String)) {
        let prepared = std::fs::create_dir_all(&self.directory)
            .and_then(|()| directory::adopt(&self.directory))
            .and_then(|()| self.retain());
        self.note(prepared.map_err(ArrowError::from), fault);
        loop {
            match orders.recv_timeout(FLUSH_INTERVAL) {
                Ok(Order::Keep(batch)) => {
                    self.waiting.fetch_sub(batch.rows.len(), Ordering::Relaxed);
                    let kept = self.keep(&batch);
                    self.note(kept, fault);
                }
                Ok(Order::Flush(done)) => {
                    let flushed = self.file.as_mut().map_or(Ok(()), Receiving::flush);
                    self.note(flushed, fault);
                    let _ = done.try_send(());
                }
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Order::End) | Err(RecvTimeoutError::Disconnected) => break,
            }
            let kept_up = self.keep_up();
            self.note(kept_up, fault);
        }
        let completed = self.complete();
        self.note(completed, fault);
    }

    fn keep(&mut self, batch: &Batch) -> Result<(), ArrowError> {
        let now = self.clock.monotonic();
        if self.resting_until.is_some_and(|until| now < until) {
            self.lost += batch.rows.len() as u64;
            return Ok(());
        }
        self.resting_until = None;
        let file = match self.file.as_mut() {
            Some(file) => file,
            None => self.file.insert(Receiving::begin(&self.directory, self.clock.wall(), now)?),
        };
        if !file.add(batch, now)? {
            self.complete()?;
            self.file.insert(Receiving::begin(&self.directory, self.clock.wall(), now)?).add(batch, now)?;
        }
        Ok(())
    }

    /// Flushes the file or starts a new one when that is due.
    fn keep_up(&mut self) -> Result<(), ArrowError> {
        let now = self.clock.monotonic();
        let Some(file) = self.file.as_mut() else { return Ok(()) };
        if now.since(file.begun) >= FILE_TIME || file.rows() >= FILE_ROWS {
            return self.complete();
        }
        if file.unflushed.is_some_and(|since| now.since(since) >= UNFLUSHED_LIMIT) {
            file.flush()?;
        }
        Ok(())
    }

    fn complete(&mut self) -> Result<(), ArrowError> {
        let Some(file) = self.file.take() else { return Ok(()) };
        file.complete()?;
        Ok(self.retain()?)
    }

    fn retain(&self) -> std::io::Result<()> {
        directory::retain(&self.directory, self.limits, SystemTime::now())
    }

    /// After a failure: leaves the file as it is, and tries another one later.
    fn note(&mut self, result: Result<(), ArrowError>, fault: &dyn Fn(String)) {
        let Err(error) = result else {
            if self.lost > 0 && self.resting_until.is_none() {
                fault(format!(
                    "{} raw receipts were not kept while {} could not be written; `trace` may not know when these \
                     products were stored",
                    std::mem::take(&mut self.lost),
                    self.directory.display()
                ));
            }
            return;
        };
        self.lost += self.file.take().map_or(0, |file| file.rows_waiting());
        self.resting_until = Some(self.clock.monotonic().plus(REST));
        let why = reason(&error);
        fault(format!(
            "raw receipts can't be written to {}: {why}; free space there; deliveries continue without them",
            self.directory.display()
        ));
        let _ = directory::adopt(&self.directory);
        let _ = self.retain();
    }
}

fn reason(error: &ArrowError) -> String {
    match error {
        ArrowError::IoError(_, error) => error.to_string(),
        other => other.to_string(),
    }
}

/// The interval at which the thread checks the time when no receipts arrive.
const FLUSH_INTERVAL: Duration = Duration::from_millis(500);

/// The most that a killed process loses.
const UNFLUSHED_LIMIT: Micros = Micros::from_secs(1);

/// A minute is about the range of a typical query, and a million rows are about 40 MB.
const FILE_TIME: Micros = Micros::from_secs(60);
const FILE_ROWS: u64 = 1_000_000;

/// Limits the messages about a full disk to one per pause.
const REST: Micros = Micros::from_secs(60);
