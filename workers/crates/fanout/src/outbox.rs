use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use downburst_model::{Class, FeedName, Lane};

use crate::class_queue::{ClassQueue, Waiting};
use crate::stream::{Classes, PathId, Stream, StreamId};

/// The queue of one site's streams.
///
/// On a stream, control frames go first (on the first stream, that is), then warnings, always. The other
/// classes share by weight (observation 8, grid 4, bulk 2), so that none starves; a class that was silent
/// goes without delay. Within a class live products precede the others, which keep a ninth. Products of one
/// class and lane go one after the other.
///
/// A product belongs to no stream until one that carries its class has room for it; from its first slice on
/// it stays there. So several streams that carry a class share it by their throughput, and none waits behind
/// another.
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
    /// The feeds that take another path than the first one.
    rides: BTreeMap<FeedName, PathId>,
    last_ticket: u32,
}

/// How much an [`Outbox`] holds. Each product counts [`PARCEL_OVERHEAD_BYTES`] more than its bytes.
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
    /// Its feed, whose room it takes.
    pub feed: FeedName,
    /// Its priority.
    pub class: Class,
    /// Live goes before the other lanes of its class.
    pub lane: Lane,
    /// Its bytes, shared with the log.
    pub bytes: Bytes,
}

/// What goes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next<C> {
    /// A whole control frame with the mark it was pushed with.
    Control(Bytes, C),
    /// A part of a product.
    Slice(Slice),
}

/// A part of a product; the parts of one product come in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// What [`Outbox::push`] answered.
    pub ticket: u32,
    /// Where the bytes begin.
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

/// What may be taken now.
#[derive(Clone, Copy, Debug)]
pub struct May {
    /// Products of these classes.
    pub classes: Classes,
    /// Those of the other lanes as well as live ones.
    pub late: bool,
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
    /// accepted as long as there is any.
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

    /// How many more bytes of a feed may be queued.
    pub fn room_bytes(&self, feed: &FeedName, lane: Lane) -> usize {
        let live = lane == Lane::Live;
        let limit = if live { self.limits.live_bytes } else { self.limits.late_bytes };
        limit.saturating_sub(self.taken.get(&(feed.clone(), live)).copied().unwrap_or(0))
    }

    /// What waits of each feed, in bytes of room taken; true stands for the live lane.
    pub fn taken_bytes(&self) -> impl Iterator<Item = (&FeedName, bool, usize)> {
        self.taken.iter().map(|((feed, live), bytes)| (feed, *live, *bytes))
    }

    /// Bytes of all products that wait or have begun, and what each counts besides.
    pub fn waiting_bytes(&self) -> usize {
        self.taken.values().fold(0, |sum, taken| sum.saturating_add(*taken))
    }

    /// The classes of the products of which nothing was sent.
    pub fn waiting_classes(&self) -> Classes {
        self.lines.iter().filter(|(_, line)| !line.is_empty()).map(|(class, _)| *class).collect()
    }

    /// True if a product of another lane than the live one waits or has begun.
    pub fn has_late(&self) -> bool {
        self.taken.keys().any(|(_, live)| !live)
    }

    /// Bytes of the control frames that wait.
    pub fn control_bytes(&self) -> usize {
        self.control_bytes
    }

    /// True if nothing waits.
    pub fn is_empty(&self) -> bool {
        self.control.is_empty()
            && self.lines.values().all(ClassQueue::is_empty)
            && !self.streams.values().any(Stream::has_begun)
    }

    /// Takes back the products of which nothing was sent and whose ticket is `unwanted`; answers their tickets.
    pub fn withdraw(&mut self, mut unwanted: impl FnMut(u32) -> bool) -> Vec<u32> {
        let gone: Vec<Waiting> =
            self.lines.values_mut().flat_map(|line| line.withdraw(&mut unwanted)).collect();
        for waiting in &gone {
            self.release(waiting);
        }
        gone.iter().map(|waiting| waiting.ticket).collect()
    }

    /// Has a stream carry these classes of a path, and no others of it but what it has begun.
    pub fn carry(&mut self, stream: StreamId, path: PathId, classes: Classes) {
        self.streams.entry(stream).or_default().carry(path, classes);
    }

    /// Puts these feeds, and no others, on paths other than the first. Waiting products follow their feed;
    /// products that have begun stay where they are.
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

    /// True if the stream has begun a product that is not whole.
    pub fn has_begun(&self, stream: StreamId) -> bool {
        self.streams.get(&stream).is_some_and(Stream::has_begun)
    }

    /// Ends a stream; returns the tickets of the products that had begun there and were incomplete. Their
    /// room is free again.
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

    /// Takes what goes next on a stream.
    pub fn take(&mut self, stream: StreamId) -> Option<Next<C>> {
        self.take_of(stream, May { classes: Classes::all(), late: true })
    }

    /// Takes what goes next on a stream, of control and of what may go.
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
    /// 4 MiB of live products and 2 MiB of others per feed. The log is at hand for more, and the queues of
    /// hundreds of slow sites must not fill the memory.
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
        bytes: waiting.bytes.slice(start..end),
        first: start == 0,
        last: end == waiting.bytes.len(),
        live: waiting.live,
    }
}

fn cost_bytes(waiting: &Waiting) -> usize {
    waiting.bytes.len().saturating_add(PARCEL_OVERHEAD_BYTES)
}

/// The largest slice: 5 ms of a 100 Mb/s line, which is how long a more urgent product waits for the line.
pub const SLICE_BYTES: usize = 64 << 10;

/// What a product counts besides its bytes, so that empty ones are bounded too.
pub const PARCEL_OVERHEAD_BYTES: usize = 1 << 10;
