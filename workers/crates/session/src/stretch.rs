//! A stretch of a log, matched and encoded once for all sites with equal filters.
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use downburst_model::{Class, Content, Epoch, FeedName, Sequence, WallMicros};

use crate::Entry;
use crate::patterns::Filter;
use crate::train::{Base, CAR_BYTES, TRAIN_BYTES, put_car};

/// The content of a stretch of a log for the sites with one [`Filter`]: matched once, and its small products
/// encoded once. A driver may cache it and pass it to every session that requests a part of the stretch with an
/// equal filter.
#[derive(Debug)]
pub struct Stretch {
    /// The feed.
    pub feed: FeedName,
    /// The epoch of its log.
    pub epoch: Epoch,
    /// Begins behind this.
    pub after: Sequence,
    /// Ends here.
    pub read_to: Sequence,
    /// The numbers in between that the log has no record of any more, both ends included: some of them may have
    /// matched.
    pub forgotten: Option<(Sequence, Sequence)>,
    /// Products stored before this can't meet the feed's deadline; `None`: the feed has none.
    pub(crate) late_before: Option<WallMicros>,
    /// The filter of the site.
    pub filter: Arc<Filter>,
    pub(crate) pieces: Vec<Piece>,
    memory_bytes: usize,
}

/// Matching products, in the order of the log.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "few pieces are of the small kind: runs of cars are long")]
pub(crate) enum Piece {
    /// A product sent by itself.
    Product(Entry),
    /// Small products sent together, all of them or a part.
    Cars(Arc<Cars>),
}

/// A run of cars that fits one train.
#[derive(Debug)]
pub(crate) struct Cars {
    pub(crate) class: Class,
    pub(crate) base: Base,
    pub(crate) bytes: Bytes,
    places: Vec<Place>,
}

/// The place of a car in the run.
#[derive(Clone, Copy, Debug)]
struct Place {
    sequence: u64,
    end: usize,
    product_bytes: u64,
}

/// Consecutive cars of a run.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) cars: Arc<Cars>,
    pub(crate) bytes: Bytes,
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) products: u64,
    pub(crate) product_bytes: u64,
}

impl Stretch {
    /// Matches and encodes `entries`: the whole content of the log in `after+1..=read_to`, in order. Entries of
    /// another epoch are skipped.
    pub fn new(
        (feed, epoch): (FeedName, Epoch),
        (after, read_to): (Sequence, Sequence),
        entries: impl IntoIterator<Item = Entry>,
        filter: Arc<Filter>,
    ) -> Self {
        let mut pieces = Pieces { trains: filter.trains(), ..Pieces::default() };
        let mut last = after;
        for entry in entries.into_iter().filter(|entry| entry.info.key.epoch == epoch) {
            let sequence = entry.info.key.sequence;
            if sequence > last && sequence <= read_to && wanted(&filter, &entry) {
                pieces.push(entry);
                last = sequence;
            }
        }
        let (pieces, memory_bytes) = pieces.finish();
        Self { feed, epoch, after, read_to, forgotten: None, late_before: None, filter, pieces, memory_bytes }
    }

    /// The same stretch, of a log that has no record of these numbers any more, both ends included.
    pub fn forgetting(self, forgotten: Option<(Sequence, Sequence)>) -> Self {
        Self { forgotten, ..self }
    }

    /// The same stretch without the bytes of products that are sent by themselves and were stored before `oldest`;
    /// those stored before `late_before` are late by the feed's deadline.
    pub(crate) fn without_older_than(&self, oldest: WallMicros, late_before: Option<WallMicros>) -> Self {
        let aged = |piece: &Piece| match piece {
            Piece::Product(entry) => {
                let bytes = entry.bytes.clone().filter(|_| entry.info.stored >= oldest);
                Piece::Product(Entry { info: entry.info.clone(), bytes })
            }
            Piece::Cars(cars) => Piece::Cars(Arc::clone(cars)),
        };
        Self {
            feed: self.feed.clone(),
            epoch: self.epoch,
            after: self.after,
            read_to: self.read_to,
            forgotten: self.forgotten,
            late_before,
            filter: Arc::clone(&self.filter),
            pieces: self.pieces.iter().map(aged).collect(),
            memory_bytes: self.memory_bytes,
        }
    }

    /// Its approximate memory use. Products sent by themselves are shared with the log.
    pub fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }
}

impl Piece {
    pub(crate) fn first(&self) -> u64 {
        match self {
            Self::Product(entry) => entry.info.key.sequence.0,
            Self::Cars(cars) => cars.places.first().map_or(0, |place| place.sequence),
        }
    }

    pub(crate) fn last(&self) -> u64 {
        match self {
            Self::Product(entry) => entry.info.key.sequence.0,
            Self::Cars(cars) => cars.places.last().map_or(0, |place| place.sequence),
        }
    }
}

impl Cars {
    /// The cars with a number in `first..=last`.
    pub(crate) fn part(self: &Arc<Self>, first: u64, last: u64) -> Option<Part> {
        let from = self.places.partition_point(|place| place.sequence < first);
        let to = self.places.partition_point(|place| place.sequence <= last);
        let places = self.places.get(from..to)?;
        let start = from.checked_sub(1).and_then(|before| self.places.get(before)).map_or(0, |it| it.end);
        Some(Part {
            cars: Arc::clone(self),
            bytes: self.bytes.slice(start..places.last()?.end),
            first: places.first()?.sequence,
            last: places.last()?.sequence,
            products: places.len() as u64,
            product_bytes: places.iter().map(|place| place.product_bytes).sum(),
        })
    }
}

/// True if the site is owed the entry. A heartbeat evicted from the log is not a loss.
fn wanted(filter: &Filter, entry: &Entry) -> bool {
    filter.wants(entry.info.id.as_str()) && (entry.bytes.is_some() || !entry.info.id.is_heartbeat())
}

/// Collects pieces; consecutive small products become runs of cars.
#[derive(Default)]
struct Pieces {
    trains: bool,
    done: Vec<Piece>,
    memory_bytes: usize,
    run: Option<Run>,
    /// The previous run ended nearly full, with no product between it and the next.
    full: bool,
}

/// A run of cars that may grow.
struct Run {
    class: Class,
    base: Base,
    bytes: BytesMut,
    places: Vec<Place>,
}

impl Pieces {
    fn push(&mut self, entry: Entry) {
        // A heartbeat is not counted, so it is sent by itself. A car has no place for properties.
        let plain = !entry.info.id.is_heartbeat() && entry.info.properties.is_none();
        let trains = self.trains && plain;
        let small = entry.bytes.as_ref().filter(|content| trains && content.len() <= CAR_BYTES);
        match small.and_then(Content::whole) {
            Some(bytes) => self.push_car(&entry, &bytes),
            None => {
                self.close_run();
                self.full = false;
                let held = entry.bytes.as_ref().map_or(0, Content::memory_bytes);
                self.memory_bytes = self.memory_bytes.saturating_add(PIECE_BYTES).saturating_add(held);
                self.done.push(Piece::Product(entry));
            }
        }
    }

    fn push_car(&mut self, entry: &Entry, bytes: &Bytes) {
        let fits = |run: &&mut Run| {
            (run.class, &run.base.hops) == (entry.info.class, &entry.info.hops)
                && run.bytes.len().saturating_add(bytes.len()).saturating_add(CAR_FIELDS_BYTES) <= TRAIN_BYTES
        };
        if self.run.as_mut().filter(fits).is_none() {
            self.full = self.run.as_ref().is_some_and(|run| run.bytes.len() > TRAIN_BYTES / 2);
            self.close_run();
        }
        let capacity = if self.full { TRAIN_BYTES } else { RUN_BYTES };
        self.run.get_or_insert_with(|| Run::begun_by(entry, capacity)).push(entry, bytes);
    }

    fn close_run(&mut self) {
        let Some(Run { class, base, bytes, places }) = self.run.take() else {
            return;
        };
        let (bytes, held) = fitting(bytes);
        let memory = held.saturating_add(places.capacity().saturating_mul(size_of::<Place>()));
        let memory = memory.saturating_add(PIECE_BYTES);
        let cars = Cars { class, base, bytes, places };
        self.memory_bytes = self.memory_bytes.saturating_add(memory);
        self.done.push(Piece::Cars(Arc::new(cars)));
    }

    fn finish(mut self) -> (Vec<Piece>, usize) {
        self.close_run();
        (self.done, self.memory_bytes)
    }
}

/// The bytes of a run in a buffer at least half full, and the buffer's size. Buffers are kept for seconds, and
/// runs are short in a feed with alternating large and small products.
fn fitting(bytes: BytesMut) -> (Bytes, usize) {
    let held = bytes.capacity();
    if bytes.len() < held / 2 {
        (Bytes::copy_from_slice(&bytes), bytes.len())
    } else {
        (bytes.freeze(), held)
    }
}

impl Run {
    fn begun_by(entry: &Entry, capacity: usize) -> Self {
        let info = &entry.info;
        let base = Base {
            sequence: info.key.sequence.0,
            created: info.created,
            stored: info.stored,
            origin: info.origin.clone(),
            hops: info.hops.clone(),
        };
        Self { class: info.class, base, bytes: BytesMut::with_capacity(capacity), places: Vec::new() }
    }

    fn push(&mut self, entry: &Entry, bytes: &Bytes) {
        put_car(&mut self.bytes, &self.base, &entry.info, bytes);
        let (sequence, end) = (entry.info.key.sequence.0, self.bytes.len());
        self.places.push(Place { sequence, end, product_bytes: bytes.len() as u64 });
    }
}

/// The longest description of a car: three numbers, the longest origin, stamp of an LDM and id, digest and size.
const CAR_FIELDS_BYTES: usize = 3 * 10 + 1 + 256 + 2 + 289 + 256 + 32 + 10;

/// The initial capacity of a run of a few products; it grows by doubling. A run that follows another is mostly
/// full.
const RUN_BYTES: usize = 4 << 10;

/// The memory of a piece besides its bytes.
const PIECE_BYTES: usize = 512;

#[cfg(test)]
mod tests;
