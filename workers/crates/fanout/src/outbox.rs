use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use downburst_model::{Class, Content, FeedName, Lane};

use crate::carried::{Classes, May, PathId, StreamId};
use crate::class_queue::{ClassQueue, Waiting};
use crate::stream::Stream;

/// The queue of one site's streams.
///
/// On a stream, control frames are always first (on the first stream only), then warnings. The other classes
/// share by weight (observation 8, grid 4, bulk 2), so that none starves; a class that was idle is served
/// without delay. Within a class live products precede the others, which keep a ninth. Products of one class
/// and lane are sent one after the other.
///
/// A product belongs to no stream until one that carries its class has room for it; from its first slice it
/// stays on that stream. So several streams of a class share it by their throughput, and none waits for another.
///
/// Feeds may take different paths: a stream carries classes of one path, or of several. Waiting products
/// follow their feed to another path.
#[derive(Debug)]
pub struct Outbox<C> {
    limits: Limits,
    control: VecDeque<(Bytes, C)>,
    control_bytes: usize,
    lines: BTreeMap<Class, ClassQueue>,
    streams: BTreeMap<StreamId, Stream>,
    taken: BTreeMap<(FeedName, bool), usize>,
    /// The feeds on a path other than the first one.
    rides: BTreeMap<FeedName, PathId>,
    last_ticket: u32,
}

/// The capacity of an [`Outbox`]. Each product counts [`PARCEL_OVERHEAD_BYTES`] in addition to its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Live products of one feed, in bytes.
    pub live_bytes: usize,
    /// Products of the other lanes of one feed, in bytes.
    pub late_bytes: usize,
}

/// A product to be sent.
#[derive(Clone, Debug)]
pub struct Parcel {
    /// Its feed; the product takes room of this feed.
    pub feed: FeedName,
    /// Its priority.
    pub class: Class,
    /// Live precedes the other lanes of the class.
    pub lane: Lane,
    /// Its bytes, shared with the log.
    pub bytes: Content,
}

/// The next item to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next<C> {
    /// A whole control frame with the mark given to [`Outbox::push_control`].
    Control(Bytes, C),
    /// A part of a product.
    Slice(Slice),
}

/// A part of a product; the parts of one product are in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The return value of [`Outbox::push`].
    pub ticket: u32,
    /// The offset of the bytes in the product.
    pub offset: u64,
    /// The bytes; empty for an empty product only.
    pub bytes: Bytes,
    /// True for the first slice of the product.
    pub first: bool,
    /// True for the last slice of the product; its room is free again.
    pub last: bool,
    /// True for a product of the live lane.
    pub live: bool,
}

impl<C> Outbox<C> {
    /// Makes an empty queue with one stream, which carries every class.
    pub fn new(limits: Limits) -> Self {
        let mut first = Stream::default();
        first.carry(PathId::FIRST, Classes::all());
        Self {
            limits,
            control: VecDeque::new(),
            control_bytes: 0,
            lines: BTreeMap::new(),
            streams: BTreeMap::from([(StreamId::FIRST, first)]),
            taken: BTreeMap::new(),
            rides: BTreeMap::new(),
            last_ticket: 0,
        }
    }

    /// Queues a control frame; it passes every product.
    pub fn push_control(&mut self, frame: Bytes, mark: C) {
        self.control_bytes = self.control_bytes.saturating_add(frame.len());
        self.control.push_back((frame, mark));
    }

    /// Queues a product and returns the ticket of its slices. The owner calls
    /// [`room_bytes`](Self::room_bytes) before it reads the product; a product larger than the room is
    /// accepted if there is any room.
    pub fn push(&mut self, parcel: Parcel) -> u32 {
        self.last_ticket = self.last_ticket.wrapping_add(1);
        let waiting = Waiting {
            ticket: self.last_ticket,
            feed: parcel.feed,
            live: parcel.lane == Lane::Live,
            bytes: parcel.bytes,
            sent: 0,
        };
        let taken = self.taken.entry((waiting.feed.clone(), waiting.live)).or_default();
        *taken = taken.saturating_add(cost_bytes(&waiting));
        self.enqueue(parcel.class, waiting);
        self.last_ticket
    }

    /// The number of bytes of a feed that can still be queued.
    pub fn room_bytes(&self, feed: &FeedName, lane: Lane) -> usize {
        let live = lane == Lane::Live;
        let limit = if live { self.limits.live_bytes } else { self.limits.late_bytes };
        limit.saturating_sub(self.taken.get(&(feed.clone(), live)).copied().unwrap_or(0))
    }

    /// The room taken by each feed, in bytes; true stands for the live lane.
    pub fn taken_bytes(&self) -> impl Iterator<Item = (&FeedName, bool, usize)> {
        self.taken.iter().map(|((feed, live), bytes)| (feed, *live, *bytes))
    }

    /// Bytes of all waiting or begun products, with the overhead of each.
    pub fn waiting_bytes(&self) -> usize {
        self.taken.values().fold(0, |sum, taken| sum.saturating_add(*taken))
    }

    /// The classes of the unsent products.
    pub fn waiting_classes(&self) -> Classes {
        self.lines.iter().filter(|(_, line)| !line.is_empty()).map(|(class, _)| *class).collect()
    }

    /// True if a product of another lane than the live one waits or has begun.
    pub fn has_late(&self) -> bool {
        self.taken.keys().any(|(_, live)| !live)
    }

    /// Bytes of the waiting control frames.
    pub fn control_bytes(&self) -> usize {
        self.control_bytes
    }

    /// True if nothing waits.
    pub fn is_empty(&self) -> bool {
        self.control.is_empty()
            && self.lines.values().all(ClassQueue::is_empty)
            && !self.streams.values().any(Stream::has_begun)
    }

    /// Withdraws the unsent products with an `unwanted` ticket; returns their tickets.
    pub fn withdraw(&mut self, mut unwanted: impl FnMut(u32) -> bool) -> Vec<u32> {
        let gone: Vec<Waiting> =
            self.lines.values_mut().flat_map(|line| line.withdraw(&mut unwanted)).collect();
        for waiting in &gone {
            self.release(waiting);
        }
        gone.iter().map(|waiting| waiting.ticket).collect()
    }

    /// Sets the classes of a path that a stream carries. It still completes the products it has begun.
    pub fn carry(&mut self, stream: StreamId, path: PathId, classes: Classes) {
        self.streams.entry(stream).or_default().carry(path, classes);
    }

    /// Assigns these feeds, and no others, to paths other than the first. Waiting products follow their feed;
    /// begun products stay on their stream.
    pub fn ride(&mut self, rides: BTreeMap<FeedName, PathId>) {
        if self.rides == rides {
            return;
        }
        self.rides = rides;
        let path_of = |feed: &FeedName| self.rides.get(feed).copied().unwrap_or_default();
        let moved = self.lines.iter_mut().map(|(class, line)| (*class, line.misplaced(path_of)));
        for (class, products) in moved.collect::<Vec<_>>() {
            products.into_iter().for_each(|waiting| self.enqueue(class, waiting));
        }
    }

    /// True if the stream has begun a product and not completed it.
    pub fn has_begun(&self, stream: StreamId) -> bool {
        self.streams.get(&stream).is_some_and(Stream::has_begun)
    }

    /// Ends a stream; returns the tickets of its incomplete products. Their room is free again.
    pub fn end(&mut self, stream: StreamId) -> Vec<u32> {
        let Some(stream) = self.streams.remove(&stream) else {
            return Vec::new();
        };
        let gone: Vec<Waiting> = stream.into_begun().collect();
        for waiting in &gone {
            self.release(waiting);
        }
        gone.iter().map(|waiting| waiting.ticket).collect()
    }

    /// Takes the next item for a stream.
    pub fn take(&mut self, stream: StreamId) -> Option<Next<C>> {
        self.take_of(stream, May { classes: Classes::all(), late: true })
    }

    /// Takes the next item for a stream: control, or a permitted product.
    pub fn take_of(&mut self, stream: StreamId, may: May) -> Option<Next<C>> {
        if stream == StreamId::FIRST
            && let Some((frame, mark)) = self.control.pop_front()
        {
            self.control_bytes = self.control_bytes.saturating_sub(frame.len());
            return Some(Next::Control(frame, mark));
        }
        let stream = self.streams.get_mut(&stream)?;
        let class = stream.next_class(may, &self.lines)?;
        let mut waiting = stream.take(class, may.late, &mut self.lines)?;
        let slice = cut(&mut waiting);
        stream.charge(class, waiting.live, slice.bytes.len());
        if slice.last {
            self.release(&waiting);
        } else {
            stream.resume(class, waiting);
        }
        Some(Next::Slice(slice))
    }

    fn enqueue(&mut self, class: Class, waiting: Waiting) {
        let path = self.rides.get(&waiting.feed).copied().unwrap_or_default();
        let line = self.lines.entry(class).or_default();
        for stream in self.streams.values_mut().filter(|stream| stream.carries(path, class)) {
            stream.awaits(class, waiting.live, line);
        }
        line.push(path, waiting);
    }

    fn release(&mut self, waiting: &Waiting) {
        let key = (waiting.feed.clone(), waiting.live);
        let left = self.taken.get(&key).map_or(0, |taken| taken.saturating_sub(cost_bytes(waiting)));
        if left == 0 {
            self.taken.remove(&key);
        } else {
            self.taken.insert(key, left);
        }
    }
}

impl Default for Limits {
    /// 4 MiB of live products and 2 MiB of others per feed. The log holds the rest, and the queues of hundreds
    /// of slow sites must not fill the memory.
    fn default() -> Self {
        Self { live_bytes: 4 << 20, late_bytes: 2 << 20 }
    }
}

fn cut(waiting: &mut Waiting) -> Slice {
    let start = waiting.sent;
    let end = start.saturating_add(SLICE_BYTES).min(waiting.bytes.len());
    waiting.sent = end;
    Slice {
        ticket: waiting.ticket,
        offset: start as u64,
        bytes: waiting.bytes.slice_to_send(start..end),
        first: start == 0,
        last: end == waiting.bytes.len(),
        live: waiting.live,
    }
}

fn cost_bytes(waiting: &Waiting) -> usize {
    waiting.bytes.len().saturating_add(PARCEL_OVERHEAD_BYTES)
}

/// The largest slice: 5 ms of a 100 Mb/s line, the longest wait of a more urgent product for the line.
pub const SLICE_BYTES: usize = 64 << 10;

/// The overhead counted for each product, so that the number of empty ones is bounded too.
pub const PARCEL_OVERHEAD_BYTES: usize = 1 << 10;
