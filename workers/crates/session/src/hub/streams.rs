//! The data connections of one session, as the hub sees them.
use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use downburst_fanout::{Classes, PathId, StreamId};
use downburst_model::{Class, Epoch, FeedName, Micros, Now};

use super::HubSession;
use crate::{
    Attached, DATA_STREAMS, HubEvent, HubOutput, Mark, Marked, OpenStream, Purpose, Ride, StreamEnded,
    StreamPath, StreamPlan, TICKET_LIFE, Taken, Ticket,
};

/// The planned and the existing data connections.
///
/// A slot is a data connection that the plan wants; a flow is an existing one. A flow without a slot finishes
/// the products that it began.
///
/// | slot    | input                   | next    | output                                            |
/// |---------|-------------------------|---------|---------------------------------------------------|
/// | resting | the pause is over       | drawing | `DrawTicket`                                      |
/// | drawing | `Ticket`                | offered | OpenStream                                        |
/// | offered | `StreamOpened`          | open    | Attached on the stream, Mark on the first         |
/// | offered | 30 s, or StreamEnded    | resting |                                                   |
/// | open    | Marked                  | open    | products of its classes                           |
/// | open    | it ended                | resting | products queued or in flight are owed again       |
///
/// The number of a stream is assigned once in a session, so no message about one can be taken for another.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    slots: Vec<Slot>,
    /// The separate paths of feeds, by their number in the outbox.
    paths: BTreeMap<PathId, StreamPath>,
    flows: BTreeMap<StreamId, Flow>,
    last: u32,
    mark: u32,
    /// The last mark that the site answered.
    marked: u32,
}

#[derive(Debug)]
struct Slot {
    path: PathId,
    classes: Classes,
    state: State,
    failures: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Resting { until: Micros },
    Drawing(StreamId),
    Offered { stream: StreamId, until: Micros },
    Open { stream: StreamId, since: Micros },
}

#[derive(Debug)]
struct Flow {
    room_bytes: i64,
    /// Nothing is sent before the site has answered this mark.
    mark: u32,
    taken: u64,
    /// Sent whole and not confirmed yet, in the order of completion.
    flights: VecDeque<Flight>,
    /// Bytes that were sent and not confirmed.
    load_bytes: u64,
}

/// The numbers that a parcel accounts for: those it delivers or covers, and the one before them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TakenBack {
    pub(crate) epoch: Epoch,
    pub(crate) previous: u64,
    pub(crate) first: u64,
    pub(crate) last: u64,
}

/// A product or train that was sent on a data connection and that the site has not confirmed yet.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) feed: FeedName,
    pub(crate) numbers: TakenBack,
    pub(crate) bytes: u64,
    /// The resend that it belongs to: it accounts for no numbers.
    pub(crate) resend: Option<u64>,
}

impl Streams {
    /// A mark that the site has to answer before anything that depends on the messages so far is sent on
    /// another stream; `None` if there is no other.
    fn next_mark(&mut self) -> Option<Mark> {
        if self.flows.is_empty() {
            return None;
        }
        self.mark = self.mark.saturating_add(1);
        Some(Mark { number: self.mark })
    }

    /// True if the site has received everything up to this mark.
    pub(super) fn has_heard(&self, mark: u32) -> bool {
        self.marked >= mark
    }

    pub(super) fn has_flow(&self, stream: StreamId) -> bool {
        self.flows.contains_key(&stream)
    }

    fn has_room(&self, stream: StreamId) -> bool {
        self.flows.get(&stream).is_some_and(|flow| flow.room_bytes > 0 && flow.flights.len() < FLIGHTS)
    }

    pub(super) fn deadline(&self) -> Option<Micros> {
        let times = self.slots.iter().filter_map(|slot| match slot.state {
            State::Resting { until } | State::Offered { until, .. } => Some(until),
            State::Drawing(_) | State::Open { .. } => None,
        });
        times.min()
    }

    /// The streams that can take data, the one with the fewest bytes in flight first.
    pub(super) fn ready(&self) -> Vec<StreamId> {
        let mut ready: Vec<(u64, StreamId)> = self
            .flows
            .iter()
            .filter(|(stream, flow)| self.has_heard(flow.mark) && self.has_room(**stream))
            .map(|(stream, flow)| (flow.load_bytes, *stream))
            .collect();
        ready.sort_unstable();
        ready.into_iter().map(|(_, stream)| stream).collect()
    }

    /// Counts bytes that were written on a stream.
    pub(super) fn wrote(&mut self, stream: StreamId, bytes: usize) {
        if let Some(flow) = self.flows.get_mut(&stream) {
            flow.room_bytes = flow.room_bytes.saturating_sub(i64::try_from(bytes).unwrap_or(i64::MAX));
        }
    }

    /// Counts a slice: its bytes are in flight until the site confirms the product.
    pub(super) fn loads(&mut self, stream: StreamId, bytes: usize) {
        if let Some(flow) = self.flows.get_mut(&stream) {
            flow.load_bytes = flow.load_bytes.saturating_add(bytes as u64);
        }
    }

    /// A product was written whole.
    pub(super) fn flies(&mut self, stream: StreamId, flight: Flight) {
        if let Some(flow) = self.flows.get_mut(&stream) {
            flow.flights.push_back(flight);
        }
    }

    pub(super) fn room(&mut self, stream: StreamId, bytes: usize) {
        if let Some(flow) = self.flows.get_mut(&stream) {
            flow.room_bytes = flow.room_bytes.saturating_add(i64::try_from(bytes).unwrap_or(i64::MAX));
        }
    }

    pub(super) fn has_rides(&self) -> bool {
        !self.paths.is_empty()
    }

    fn slot_of(&mut self, stream: StreamId) -> Option<&mut Slot> {
        self.slots.iter_mut().find(|slot| slot.stream() == Some(stream))
    }

    /// The classes of each stream on a path: a flow carries those of its slot, the first stream carries the rest.
    fn carried(&self, path: PathId) -> Vec<(StreamId, Classes)> {
        let mut carried = Vec::new();
        let mut left = Classes::all();
        for (stream, flow) in &self.flows {
            let slot = self.slots.iter().find(|slot| slot.stream() == Some(*stream) && slot.path == path);
            let classes =
                slot.filter(|_| self.has_heard(flow.mark)).map_or(Classes::NONE, |slot| slot.classes);
            left = left.without(classes);
            carried.push((*stream, classes));
        }
        carried.push((StreamId::FIRST, left));
        carried
    }

    /// Drops the paths that are not among these; returns their streams.
    fn leave_paths(&mut self, rides: &[Ride]) -> Vec<StreamId> {
        let Self { slots, paths, .. } = self;
        paths.retain(|_, path| rides.iter().any(|ride| ride.path == *path));
        let stays = |slot: &Slot| slot.path == PathId::FIRST || paths.contains_key(&slot.path);
        let left = slots.iter().filter(|slot| !stays(slot)).filter_map(Slot::stream).collect();
        slots.retain(stays);
        left
    }

    /// The number of a path: the present one, or the lowest free one.
    fn number(&mut self, path: StreamPath) -> PathId {
        if let Some((number, _)) = self.paths.iter().find(|(_, known)| **known == path) {
            return *number;
        }
        let mut numbers = (1..=u32::MAX).map(PathId);
        let free = numbers.find(|number| !self.paths.contains_key(number)).unwrap_or_default();
        self.paths.insert(free, path);
        free
    }

    /// Plans the connections; existing ones keep their slots.
    fn plan(&mut self, now: Micros, planned: Vec<(PathId, Classes)>) {
        let mut slots: BTreeMap<PathId, VecDeque<Slot>> = BTreeMap::new();
        for slot in std::mem::take(&mut self.slots) {
            slots.entry(slot.path).or_default().push_back(slot);
        }
        let planned = planned.into_iter().take(DATA_STREAMS);
        let planned =
            planned.map(|(path, classes)| match slots.get_mut(&path).and_then(VecDeque::pop_front) {
                Some(slot) => Slot { classes, ..slot },
                None => Slot { path, classes, state: State::Resting { until: now }, failures: 0 },
            });
        self.slots = planned.collect();
    }
}

impl Slot {
    fn stream(&self) -> Option<StreamId> {
        match self.state {
            State::Resting { .. } => None,
            State::Drawing(stream) | State::Offered { stream, .. } | State::Open { stream, .. } => {
                Some(stream)
            }
        }
    }

    /// Waits before the next attempt: longer each time, unless the last connection was long-lived.
    fn rest(&mut self, now: Micros) {
        let lived = matches!(self.state, State::Open { since, .. } if now.since(since) >= LIVED);
        self.failures = if lived { 0 } else { self.failures.saturating_add(1) };
        let pause = FIRST_PAUSE.0.saturating_mul(1 << self.failures.min(10)).min(LONGEST_PAUSE.0);
        self.state = State::Resting { until: now.plus(Micros(pause)) };
    }
}

impl HubSession {
    /// The path of a planned data connection; `None`: that of the first connection.
    pub fn stream_path(&self, stream: StreamId) -> Option<&StreamPath> {
        let slot = self.streams.slots.iter().find(|slot| slot.stream() == Some(stream))?;
        self.streams.paths.get(&slot.path)
    }

    /// Applies a plan of connections and of the feeds with separate paths.
    pub(super) fn plan_streams(&mut self, now: Now, plan: StreamPlan) {
        for stream in self.streams.leave_paths(&plan.rides) {
            if self.streams.has_flow(stream) {
                self.outputs.push_back(HubOutput::CloseStream(stream));
                self.drop_flow(stream, "its path is dead".to_owned());
            }
        }
        let (mut feeds, mut planned) = (BTreeMap::new(), Vec::new());
        for Ride { path, feeds: riding, streams } in plan.rides {
            let number = self.streams.number(path);
            feeds.extend(riding.into_iter().map(|feed| (feed, number)));
            planned.extend(streams.into_iter().map(|classes| (number, classes)));
        }
        planned.extend(plan.routed.into_iter().map(|classes| (PathId::FIRST, classes.without(WARNINGS))));
        self.line.outbox.ride(feeds);
        self.streams.plan(now.monotonic, planned);
        self.carry();
    }

    /// The driver drew a ticket.
    pub(super) fn offer_stream(&mut self, now: Now, stream: StreamId, ticket: Ticket) {
        let until = now.monotonic.plus(TICKET_LIFE);
        let slot = self.streams.slots.iter_mut().find(|slot| slot.state == State::Drawing(stream));
        if let Some(slot) = slot {
            slot.state = State::Offered { stream, until };
            let path = self.stream_path(stream).cloned();
            self.send(OpenStream { stream: stream.0, ticket, path });
        }
    }

    /// A connection showed the stream's ticket.
    pub(super) fn stream_opened(&mut self, now: Now, stream: StreamId) {
        let since = now.monotonic;
        let slot = self.streams.slot_of(stream).filter(|slot| matches!(slot.state, State::Offered { .. }));
        let Some(slot) = slot else {
            return self.outputs.push_back(HubOutput::CloseStream(stream));
        };
        slot.state = State::Open { stream, since };
        self.streams.flows.insert(stream, Flow::new());
        let attached = crate::frame::Message::from(Attached { stream: stream.0 }).encode();
        self.write_on(stream, attached, Purpose::Control);
        let mark = self.mark();
        if let Some(flow) = self.streams.flows.get_mut(&stream) {
            flow.mark = mark;
        }
        self.carry();
        self.event(HubEvent::StreamOpened(stream));
    }

    /// A data connection ended at this side.
    pub(super) fn stream_closed(&mut self, now: Now, stream: StreamId, reason: String) {
        if let Some(slot) = self.streams.slot_of(stream) {
            slot.rest(now.monotonic);
        }
        self.drop_flow(stream, reason);
    }

    /// The site lost a data connection, or could not open it.
    pub(super) fn take_stream_ended(&mut self, now: Now, ended: StreamEnded) {
        let stream = StreamId(ended.stream);
        if self.streams.flows.contains_key(&stream) {
            self.outputs.push_back(HubOutput::CloseStream(stream));
        }
        self.stream_closed(
            now,
            stream,
            format!("the site reports: {}", ended.reason.chars().take(REASON_CHARS).collect::<String>()),
        );
    }

    /// The site confirmed this many transfers of a stream: they are no longer in flight.
    pub(super) fn take_taken(&mut self, taken: &Taken) {
        let stream = StreamId(taken.stream);
        let Some(flow) = self.streams.flows.get_mut(&stream) else {
            return;
        };
        let more = taken.transfers.checked_sub(flow.taken).and_then(|more| usize::try_from(more).ok());
        let Some(more) = more.filter(|more| *more <= flow.flights.len()) else {
            return self.violation("the site took more of a data connection than was sent".to_owned());
        };
        flow.taken = taken.transfers;
        let arrived: Vec<Flight> = flow.flights.drain(..more).collect();
        for flight in &arrived {
            flow.load_bytes = flow.load_bytes.saturating_sub(flight.bytes);
        }
        for flight in arrived {
            self.landed(&flight);
        }
        self.end_idle_flows();
    }

    pub(super) fn take_marked(&mut self, marked: Marked) {
        if marked.number > self.streams.mark || marked.number < self.streams.marked {
            return self.violation("the site answered a mark that was not set".to_owned());
        }
        self.streams.marked = marked.number;
        self.carry();
    }

    /// Sets a mark behind all messages so far; returns its number, or 0 if none is needed.
    pub(super) fn mark(&mut self) -> u32 {
        let mark = self.streams.next_mark();
        if let Some(mark) = mark {
            self.send(mark);
        }
        mark.map_or(0, |mark| mark.number)
    }

    /// Draws tickets for slots whose pause is over, and gives up offers that timed out.
    pub(super) fn advance_streams(&mut self, now: Now) {
        if self.streams.deadline().is_none_or(|due| due > now.monotonic) {
            return;
        }
        for slot in &mut self.streams.slots {
            match slot.state {
                State::Resting { until } if until <= now.monotonic => {
                    self.streams.last = self.streams.last.saturating_add(1);
                    let stream = StreamId(self.streams.last);
                    slot.state = State::Drawing(stream);
                    self.outputs.push_back(HubOutput::DrawTicket(stream));
                }
                State::Offered { until, .. } if until <= now.monotonic => slot.rest(now.monotonic),
                _ => {}
            }
        }
    }

    /// Assigns the planned classes to each stream, and ends idle streams.
    fn carry(&mut self) {
        for path in self.streams.paths.keys().copied().chain([PathId::FIRST]) {
            for (stream, classes) in self.streams.carried(path) {
                self.line.outbox.carry(stream, path, classes);
            }
        }
        self.end_idle_flows();
    }

    fn end_idle_flows(&mut self) {
        let Streams { flows, slots, .. } = &self.streams;
        let idle = |(stream, flow): (&StreamId, &Flow)| {
            let planned = slots.iter().any(|slot| slot.stream() == Some(*stream));
            (!planned && flow.flights.is_empty() && !self.line.outbox.has_begun(*stream)).then_some(*stream)
        };
        let idle: Vec<StreamId> = flows.iter().filter_map(idle).collect();
        for stream in idle {
            self.outputs.push_back(HubOutput::CloseStream(stream));
            self.drop_flow(stream, "it is not needed any more".to_owned());
        }
    }

    /// Drops a flow; its products in flight are owed again.
    fn drop_flow(&mut self, stream: StreamId, reason: String) {
        let Some(flow) = self.streams.flows.remove(&stream) else {
            return;
        };
        let begun = self.line.outbox.end(stream);
        let begun = begun.into_iter().filter_map(|ticket| self.line.parcels.lose(ticket));
        let lost: Vec<Flight> = flow.flights.into_iter().chain(begun).collect();
        for flight in lost {
            let TakenBack { epoch, previous, first, last } = flight.numbers;
            if let Some(resend) = flight.resend {
                self.lost_resent(resend, first);
            } else if let Some(serve) = self.serving(&flight.feed, epoch) {
                serve.taken_back(previous, first, last);
            }
        }
        self.carry();
        self.send(StreamEnded { stream: stream.0, reason: reason.clone() });
        self.event(HubEvent::StreamClosed { stream, reason });
    }

    /// A product or train has landed: later messages can't overtake it.
    pub(super) fn landed(&mut self, flight: &Flight) {
        let TakenBack { epoch, first, last, .. } = flight.numbers;
        if let Some(serve) = self.serving(&flight.feed, epoch).filter(|_| flight.resend.is_none()) {
            serve.sent(first, last);
        }
    }

    pub(super) fn write_on(&mut self, stream: StreamId, bytes: Bytes, purpose: Purpose) {
        self.line.pacer.charge(bytes.len());
        if stream == StreamId::FIRST {
            self.line.room_bytes =
                self.line.room_bytes.saturating_sub(i64::try_from(bytes.len()).unwrap_or(i64::MAX));
        } else {
            self.streams.wrote(stream, bytes.len());
        }
        self.outputs.push_back(HubOutput::Write { stream, bytes, purpose });
    }
}

impl Flow {
    fn new() -> Self {
        Self { room_bytes: 0, mark: u32::MAX, taken: 0, flights: VecDeque::new(), load_bytes: 0 }
    }
}

/// Warnings never take a data connection on the path of the first stream, since that stream is kept free for them.
const WARNINGS: Classes = Classes::of(Class::Warning);

/// The maximum number of products in flight on one data connection; above it nothing is sent there until the
/// site confirms some.
const FLIGHTS: usize = 16_384;

/// The maximum length kept of a site's text for operators.
const REASON_CHARS: usize = 200;

/// A connection with this lifetime does not count as a failure.
const LIVED: Micros = Micros::from_secs(60);

const FIRST_PAUSE: Micros = Micros::from_millis(250);
const LONGEST_PAUSE: Micros = Micros::from_secs(60);
