//! The data connections of one session, as the site sees them.
use std::collections::BTreeMap;

use bytes::Bytes;
use downburst_fanout::StreamId;
use downburst_model::{Micros, Now};

use super::{Connection, SiteSession};
use crate::bounds;
use crate::frame::{Decoder, Frame, Message};
use crate::{
    Attach, DATA_STREAMS, OpenStream, SiteEvent, SiteOutput, StreamEnded, StreamPath, Taken, Ticket,
};

/// The data connections that the hub requested.
///
/// | stream   | input           | next     | output                                                          |
/// |----------|-----------------|----------|-----------------------------------------------------------------|
/// | -        | OpenStream      | dialling | `OpenStream`                                                    |
/// | dialling | `StreamOpened`  | greeting | Attach on the stream                                            |
/// | greeting | Attached        | up       | `Event(StreamAttached)`                                         |
/// | any      | `StreamClosed`  | -        | StreamEnded on the first stream; its transfers end              |
/// | any      | StreamEnded     | -        | `CloseStream`; its transfers end                                |
#[derive(Debug, Default)]
pub(crate) struct Streams {
    links: BTreeMap<StreamId, DataLink>,
    /// The time of the next report of taken transfers to the hub.
    tell_at: Option<Micros>,
}

#[derive(Debug)]
struct DataLink {
    state: State,
    decoder: Decoder,
    /// Transfers that arrived whole.
    taken: u64,
    told: u64,
}

#[derive(Debug)]
enum State {
    Dialling(Ticket, Option<StreamPath>),
    Greeting,
    Up,
}

impl Streams {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn deadline(&self) -> Option<Micros> {
        self.tell_at
    }

    /// A transfer arrived whole; transfers on the first stream are not counted.
    pub(super) fn took(&mut self, now: Now, stream: StreamId) {
        let Some(link) = self.links.get_mut(&stream) else {
            return;
        };
        link.taken = link.taken.saturating_add(1);
        let full = link.taken.saturating_sub(link.told) >= TOLD_AT_ONCE;
        let at = if full { now.monotonic } else { now.monotonic.plus(TOLD_AFTER) };
        self.tell_at = Some(self.tell_at.map_or(at, |known| known.min(at)));
    }

    /// The reports of taken transfers to the hub.
    fn news(&mut self) -> Vec<Taken> {
        self.tell_at = None;
        let news = self.links.iter_mut().filter(|(_, link)| link.told < link.taken);
        news.map(|(stream, link)| {
            link.told = link.taken;
            Taken { stream: stream.0, transfers: link.taken }
        })
        .collect()
    }
}

impl SiteSession {
    /// The hub requests a data connection.
    pub(super) fn open_stream(&mut self, now: Now, open: OpenStream) {
        let stream = StreamId(open.stream);
        if stream == StreamId::FIRST || self.streams.links.contains_key(&stream) {
            return self.violation(now, format!("the hub gave the stream {} twice", open.stream));
        }
        if self.streams.links.len() >= OPEN_STREAMS {
            return self.violation(now, "the hub asked for too many data connections".to_owned());
        }
        self.streams.links.insert(stream, DataLink::new(open.ticket, open.path));
        self.outputs.push_back(SiteOutput::OpenStream(stream));
    }

    /// The path for opening a data connection; `None`: that of the first connection.
    pub fn stream_path(&self, stream: StreamId) -> Option<&StreamPath> {
        match &self.streams.links.get(&stream)?.state {
            State::Dialling(_, path) => path.as_ref(),
            State::Greeting | State::Up => None,
        }
    }

    /// A data connection is established: its first frame is the ticket.
    pub(super) fn stream_opened(&mut self, stream: StreamId) {
        let Some(link) = self.streams.links.get_mut(&stream) else {
            return self.outputs.push_back(SiteOutput::CloseStream(stream));
        };
        if let State::Dialling(ticket, _) = std::mem::replace(&mut link.state, State::Greeting) {
            let bytes = Message::from(Attach { ticket }).encode();
            self.outputs.push_back(SiteOutput::Write { stream, bytes });
        }
    }

    /// A data connection ended at this side.
    pub(super) fn stream_closed(&mut self, stream: StreamId, reason: String) {
        if self.end_stream(stream) {
            self.send(StreamEnded { stream: stream.0, reason: reason.clone() });
            self.event(SiteEvent::StreamEnded { stream, reason });
        }
    }

    /// The hub reports the end of a data connection, which may still look alive from here.
    pub(super) fn take_stream_ended(&mut self, ended: StreamEnded) {
        let stream = StreamId(ended.stream);
        if self.end_stream(stream) {
            self.outputs.push_back(SiteOutput::CloseStream(stream));
            self.event(SiteEvent::StreamEnded { stream, reason: ended.reason });
        }
    }

    /// Ends a stream and its transfers: the hub sends their products again, since they were not reported as taken.
    fn end_stream(&mut self, stream: StreamId) -> bool {
        if self.streams.links.remove(&stream).is_none() {
            return false;
        }
        for key in self.transfers.end_stream(stream) {
            let track = self.tracks.get_mut(&key.feed).filter(|track| track.epoch == key.epoch);
            if let Some(track) = track {
                track.transfer_lost(key.sequence.0);
            }
        }
        true
    }

    pub(super) fn take_stream_bytes(&mut self, now: Now, stream: StreamId, bytes: Bytes) {
        if self.connection != Connection::Up {
            return;
        }
        self.heard = now.monotonic;
        let Some(link) = self.streams.links.get_mut(&stream) else {
            return;
        };
        link.decoder.push(bytes);
        // A frame may end the session, and all streams with it.
        while let Some(link) = self.streams.links.get_mut(&stream) {
            match link.decoder.next() {
                Ok(Some(frame)) => match bounds::check_frame(&frame) {
                    Ok(()) => self.take_stream_frame(now, stream, frame),
                    Err(sentence) => self.violation(now, sentence),
                },
                Ok(None) => return,
                Err(error) => self.violation(now, error.to_string()),
            }
        }
    }

    /// Reports the taken transfers to the hub, if that is due.
    pub(super) fn tell_taken(&mut self, now: Now) {
        if self.streams.tell_at.is_some_and(|at| at <= now.monotonic) {
            self.tell_taken_now();
        }
    }

    /// Reports the taken transfers to the hub now. The hub ignores requests for numbers that it counts as in
    /// flight, so it has to know first which have arrived.
    pub(super) fn tell_taken_now(&mut self) {
        for taken in self.streams.news() {
            self.send(taken);
        }
    }

    fn take_stream_frame(&mut self, now: Now, stream: StreamId, frame: Frame) {
        let Some(link) = self.streams.links.get_mut(&stream) else {
            return;
        };
        match (&link.state, frame) {
            (State::Greeting, Frame::Message(Message::Attached(attached))) if attached.stream == stream.0 => {
                link.state = State::Up;
                self.event(SiteEvent::StreamAttached(stream));
            }
            (State::Up, Frame::Message(Message::ProductBegin(begin))) => {
                self.begin_product(now, stream, begin, None);
            }
            (State::Up, Frame::Message(Message::ResentBegin(resent))) => {
                self.begin_product(now, stream, resent.begin, Some(resent.resend));
            }
            (State::Up, Frame::Train(train, around)) => {
                self.take_train(now, train, around);
                self.streams.took(now, stream);
            }
            (State::Up, Frame::Slice { transfer, offset, bytes }) => {
                self.take_slice(now, stream, transfer, offset, &bytes);
            }
            _ => {
                self.violation(now, "the hub sent a frame that has no place on a data connection".to_owned())
            }
        }
    }
}

impl DataLink {
    fn new(ticket: Ticket, path: Option<StreamPath>) -> Self {
        Self { state: State::Dialling(ticket, path), decoder: Decoder::default(), taken: 0, told: 0 }
    }
}

/// The maximum number of data connections: those of a plan, and those of the previous plan that finish their
/// products.
const OPEN_STREAMS: usize = 2 * DATA_STREAMS;

/// The delay of a report of taken transfers: unreported ones are sent again after a break, but each report
/// costs a frame.
const TOLD_AFTER: Micros = Micros::from_millis(50);
const TOLD_AT_ONCE: u64 = 64;
