//! Products that the copy no longer has, read again from the topic.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use bytes::Bytes;
use downburst_log::{Lacking, LogError};
use downburst_model::Sequence;

use crate::{
    follower::{Follower, POLL, SILENCE},
    locks::lock,
    reader::{Content, Found, Product, Reader},
    record::PART_BYTES,
    words::refused,
};

/// Reads older products of one feed, for one caller after the other.
///
/// The reader stays at the end of the last answer, so that its position has to be found only once for sites that
/// catch up. It is closed after a while without requests.
#[derive(Default)]
pub(crate) struct Older {
    reading: Mutex<Option<Reading>>,
}

impl Older {
    /// See [`SharedLog::fetch`](downburst_log::SharedLog::fetch).
    pub(crate) fn fetch(
        &self,
        follower: &Follower,
        wanted: &[Lacking],
        limit_bytes: u64,
    ) -> Result<Vec<Option<Bytes>>, LogError> {
        let mut kept = lock(&self.reading);
        // A reader that failed is not reused.
        let mut reading = match kept.take() {
            Some(reading) => reading,
            None => Reading::begin(follower)?,
        };
        let (mut found, mut bytes) = (Vec::new(), 0);
        for product in wanted {
            if !found.is_empty() && bytes >= limit_bytes {
                break;
            }
            found.push(reading.find(follower, *product)?);
            bytes += product.size;
        }
        reading.asked = Instant::now();
        *kept = Some(reading);
        Ok(found)
    }

    /// Closes the reader after a time without requests; does not wait for a request in progress.
    pub(crate) fn tend(&self) {
        if let Ok(mut kept) = self.reading.try_lock()
            && kept.as_ref().is_some_and(|reading| reading.asked.elapsed() > KEPT_FOR)
        {
            *kept = None;
        }
    }
}

/// A reader with its position.
struct Reading {
    reader: Reader,
    /// The next record is after this sequence.
    passed: Sequence,
    /// The brokers keep nothing before the reader's start.
    from_the_front: bool,
    /// A product that was read and not yet requested.
    next: Option<Box<Product>>,
    asked: Instant,
}

impl Reading {
    fn begin(follower: &Follower) -> Result<Self, LogError> {
        let (reader, asked) = (follower.new_reader()?, Instant::now());
        Ok(Self { reader, passed: Sequence(u64::MAX), from_the_front: false, next: None, asked })
    }

    /// The bytes of one product; `None` if the brokers no longer have it.
    fn find(&mut self, follower: &Follower, wanted: Lacking) -> Result<Option<Bytes>, LogError> {
        let mut records = records_of(wanted);
        if !self.comes_soon(wanted) {
            self.go_before(wanted, records)?;
        }
        loop {
            let Some(product) = self.read_to(follower, wanted)? else { return Ok(None) };
            match product.content {
                Some(Content::AtHand(bytes)) => return Ok(Some(bytes)),
                Some(Content::InFile(mut file)) => return follower.copy.set_aside(&mut file).map(Some),
                None if self.from_the_front => return Ok(None),
                // Other records lie among its parts, such as those of a fenced writer.
                None => {
                    records = records.saturating_mul(8);
                    self.go_before(wanted, records)?;
                }
            }
        }
    }

    /// True if reading on is quicker than finding the position again.
    fn comes_soon(&self, wanted: Lacking) -> bool {
        let ahead = wanted.sequence.0.checked_sub(self.passed.0);
        ahead.is_some_and(|records| (1..=READ_OVER).contains(&records))
    }

    /// Moves this many records before a product, or to the oldest one that is kept.
    fn go_before(&mut self, wanted: Lacking, records: u64) -> Result<(), LogError> {
        let oldest = u64::try_from(self.reader.extent()?.oldest).unwrap_or_default();
        // The record of a product is at the offset before its sequence.
        let place = wanted.sequence.0.saturating_sub(records + 1).max(oldest);
        self.reader.go_behind(Sequence(place))?;
        (self.passed, self.from_the_front, self.next) = (Sequence(place), place == oldest, None);
        Ok(())
    }

    /// The product itself; `None` if no product has that number any more.
    fn read_to(&mut self, follower: &Follower, wanted: Lacking) -> Result<Option<Box<Product>>, LogError> {
        let mut deadline = Instant::now() + SILENCE;
        while self.passed < wanted.sequence {
            let product = match self.next.take() {
                Some(product) => product,
                None => match self.reader.next(POLL)? {
                    Found::Product(product) => product,
                    Found::End => {
                        self.passed = Sequence(u64::MAX);
                        return Ok(None);
                    }
                    Found::Opening(_) | Found::Part => {
                        deadline = Instant::now() + SILENCE;
                        continue;
                    }
                    Found::Nothing | Found::Away if Instant::now() < deadline && !follower.is_stopped() => {
                        continue;
                    }
                    Found::Nothing | Found::Away => return Err(self.silence(follower)),
                },
            };
            deadline = Instant::now() + SILENCE;
            if product.given.sequence > wanted.sequence {
                self.next = Some(product);
                return Ok(None);
            }
            self.passed = product.given.sequence;
            if self.passed == wanted.sequence {
                return Ok(Some(product));
            }
        }
        Ok(None)
    }

    fn silence(&self, follower: &Follower) -> LogError {
        let away = self.reader.why_away();
        refused(&follower.topic, &format!("gives no older products, which sites ask for ({away})"))
    }
}

/// The number of its records, with an allowance for others in between.
fn records_of(wanted: Lacking) -> u64 {
    wanted.size / PART_BYTES as u64 + AROUND
}

const AROUND: u64 = 16;
/// Some hundred kilobytes of small products; a new position is found within a few round trips.
const READ_OVER: u64 = 1_024;
const KEPT_FOR: Duration = Duration::from_secs(30);
