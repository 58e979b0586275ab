//! Products that the copy no longer has, read from the topic once more.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use bytes::Bytes;
use downburst_log::{Lacking, LogError};
use downburst_model::Sequence;

use crate::{
    follower::{Follower, POLL, SILENCE},
    log::lock,
    reader::{Content, Found, Product, Reader},
    record::PART_BYTES,
    words::refused,
};

/// Reads older products of one feed, for one who asks after the other.
///
/// The reader stays where the last answer ended, so that sites that catch up have a place found for them
/// once. It is given up after a while without requests.
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
        // One that failed is not gone on with.
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

    /// Gives the reader up if nobody asked for a while; one who asks just now is not waited for.
    pub(crate) fn tend(&self) {
        if let Ok(mut kept) = self.reading.try_lock()
            && kept.as_ref().is_some_and(|reading| reading.asked.elapsed() > KEPT_FOR)
        {
            *kept = None;
        }
    }
}

/// A reader, and where it stands.
struct Reading {
    reader: Reader,
    /// What comes next is behind this number.
    passed: Sequence,
    /// Nothing before where it began is kept by the brokers.
    from_the_front: bool,
    /// What was read and not asked for yet.
    next: Option<Box<Product>>,
    asked: Instant,
}

impl Reading {
    fn begin(follower: &Follower) -> Result<Self, LogError> {
        let (reader, asked) = (follower.new_reader()?, Instant::now());
        Ok(Self { reader, passed: Sequence(u64::MAX), from_the_front: false, next: None, asked })
    }

    /// The bytes of one product; `None` if the brokers have it no longer.
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
                // Other records lie among its parts, as of a writer that was fenced.
                None => {
                    records = records.saturating_mul(8);
                    self.go_before(wanted, records)?;
                }
            }
        }
    }

    /// Whether reading on is quicker than to find the place anew.
    fn comes_soon(&self, wanted: Lacking) -> bool {
        let ahead = wanted.sequence.0.checked_sub(self.passed.0);
        ahead.is_some_and(|records| (1..=READ_OVER).contains(&records))
    }

    /// Goes so many records before a product, or to the oldest one that is kept.
    fn go_before(&mut self, wanted: Lacking, records: u64) -> Result<(), LogError> {
        let oldest = u64::try_from(self.reader.extent()?.oldest).unwrap_or_default();
        // The record of a product is at the offset before its sequence.
        let place = wanted.sequence.0.saturating_sub(records + 1).max(oldest);
        self.reader.go_behind(Sequence(place))?;
        (self.passed, self.from_the_front, self.next) = (Sequence(place), place == oldest, None);
        Ok(())
    }

    /// The product itself; `None` if there is none of that number any more.
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

/// How many records it has, with some between.
fn records_of(wanted: Lacking) -> u64 {
    wanted.size / PART_BYTES as u64 + AROUND
}

const AROUND: u64 = 16;
/// Some hundred kilobytes of small products; a place is found anew within a few round trips.
const READ_OVER: u64 = 1_024;
const KEPT_FOR: Duration = Duration::from_secs(30);
