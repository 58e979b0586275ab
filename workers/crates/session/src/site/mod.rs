use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use downburst_model::{FeedName, LegId, Machine, Micros, Now, ProductKey, RangeSet, WallMicros};
use downburst_vcmtp::ReceiverInput;

use crate::bounds;
use crate::frame::{Decoder, Frame, Message, receipts_frame};
use crate::patterns::Patterns;
use crate::{
    CircuitReport, FeedPosition, Filed, HeartbeatOut, LIVENESS_LIMIT, Receipt, Receipts, SiteEvent,
    SiteInput, SiteOutput, SiteState, StreamId, Subscriptions, VERSIONS, Want, packed,
};
use clock::Clock;
use leg::Leg;
use report::Batch;
use streams::Streams;
use track::Track;
use transfers::Transfers;

mod assembly;
mod clock;
mod complete;
mod deadline;
mod greeting;
mod leg;
mod legs;
mod log_requests;
mod messages;
mod order;
mod report;
mod resends;
mod scan;
mod skipped;
mod streams;
mod track;
mod trains;
mod transfers;
mod waiting;

#[cfg(test)]
mod tests;

/// The site's half of a session, across all of its connections: the protocol logic of a receiving site.
///
/// | connection   | input           | next     | output                                                            |
/// |----------|-----------------|----------|-------------------------------------------------------------------|
/// | down     | `Connected`     | greeting | hello with the positions of all feeds                             |
/// | greeting | welcome         | up       | `Event(Welcome)`, four clock requests                             |
/// | greeting | refused         | down     | `Event(Refused)`, `Close`                                         |
/// | any      | malformed frame | down     | `Event(Violation)`, `Close`                                       |
/// | any      | silence         | down     | `Event(Dead)`, `Close`                                            |
/// | any      | `Disconnected`  | down     | legs end, half-received products are abandoned, `Checkpoint`      |
#[derive(Debug)]
pub struct SiteSession {
    terms: Terms,
    connection: Connection,
    heard: Micros,
    decoder: Decoder,
    patterns: Patterns,
    tracks: BTreeMap<FeedName, Track>,
    transfers: Transfers,
    streams: Streams,
    legs: BTreeMap<LegId, Leg>,
    name_hash: u64,
    clock: Clock,
    receipts: Batch,
    order: order::OrderState,
    scan_at: Option<Micros>,
    outputs: VecDeque<SiteOutput>,
}

/// The site's terms for a session, as in its next hello.
#[derive(Debug)]
struct Terms {
    software: String,
    /// The versions that this side supports, best first.
    versions: Vec<u16>,
    /// All feeds come from the node that the site connects to, even if the hub has several.
    one_node: bool,
    stand_by: bool,
    /// The feeds of this session; `None`: all that the hub sends. Other nodes of the hub serve the others.
    only: Option<BTreeSet<FeedName>>,
    /// Positions in place of those of the tracks.
    resume_at: BTreeMap<FeedName, FeedPosition>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Connection {
    Down,
    Greeting,
    Up,
}

impl SiteSession {
    /// Makes the site's half from the state at the site's last stop. `software` is sent to the hub, for its
    /// operators.
    pub fn new(software: String, state: SiteState) -> Self {
        let tracks = state.feeds.into_iter().map(|(feed, position)| (feed, Track::from_position(position)));
        Self {
            terms: Terms {
                software,
                versions: VERSIONS.to_vec(),
                one_node: false,
                stand_by: false,
                only: None,
                resume_at: BTreeMap::new(),
            },
            connection: Connection::Down,
            heard: Micros(0),
            decoder: Decoder::default(),
            patterns: Patterns::default(),
            tracks: tracks.collect(),
            transfers: Transfers::default(),
            streams: Streams::default(),
            legs: BTreeMap::new(),
            name_hash: 0,
            clock: Clock::default(),
            receipts: Batch::default(),
            order: order::OrderState::default(),
            scan_at: None,
            outputs: VecDeque::new(),
        }
    }

    /// The same session, with support for only these versions, best first, like a site of another release.
    #[must_use]
    pub fn speaking(mut self, versions: &[u16]) -> Self {
        self.terms.versions = versions.to_vec();
        self
    }

    /// The same session; if `one_node`, all feeds come from the node that the site connects to, even if the hub
    /// has several.
    #[must_use]
    pub fn from_one_node(mut self, one_node: bool) -> Self {
        self.terms.one_node = one_node;
        self
    }

    /// The same session, for these feeds only, whatever the node sends: it may know of a change before this
    /// site does.
    #[must_use]
    pub fn only(mut self, feeds: Option<BTreeSet<FeedName>>) -> Self {
        self.terms.only = feeds;
        self
    }

    /// The same session, with the unsent receipts of another connection to the same hub.
    #[must_use]
    pub fn owing(mut self, receipts: Vec<Receipt>) -> Self {
        self.receipts.take_over(receipts);
        self
    }

    /// Removes and returns the unsent receipts, for another connection.
    pub fn take_unsaid(&mut self) -> Vec<Receipt> {
        self.receipts.take_unsaid()
    }

    /// The site's position in each feed.
    pub fn positions(&self) -> Vec<FeedPosition> {
        self.tracks.values().map(Track::position).collect()
    }

    /// The hub's stored stamp up to which all products of the feed owed by this hub are settled; `None` before
    /// the feed began.
    pub fn complete_to(&self, feed: &FeedName) -> Option<WallMicros> {
        self.tracks.get(feed).and_then(Track::complete_to)
    }

    fn disconnected(&mut self, now: Now) {
        self.end_session(now);
        self.terms.resume_at.clear();
        self.checkpoint_all();
    }

    /// Ends all state that is limited to one connection.
    fn end_session(&mut self, now: Now) {
        self.connection = Connection::Down;
        self.decoder.reset();
        self.clock.stop();
        self.transfers.clear();
        self.streams.clear();
        self.scan_at = None;
        self.end_legs(now, |_| true, "the connection ended");
        for track in self.tracks.values_mut() {
            track.end(now, &mut self.outputs);
        }
    }

    fn subscribed(&mut self, now: Now, subscriptions: Subscriptions) {
        let Subscriptions { mut items, heads } = subscriptions;
        items.retain(|item| self.is_for(&item.feed));
        self.patterns = Patterns::compile(&items, true, |_| false);
        let patterns = self.patterns.clone();
        self.end_legs(now, |feed| !patterns.has(feed), "the feed is not subscribed");
        for (feed, track) in &mut self.tracks {
            if !patterns.has(feed) {
                self.transfers.forget(feed);
                track.end(now, &mut self.outputs);
            }
        }
        for head in heads {
            let track = self.tracks.get_mut(&head.feed).filter(|track| track.epoch == head.epoch);
            if let Some(track) = track {
                track.reconsider(now, head.head.0, |id| patterns.want(&head.feed, id));
            }
        }
        self.event(SiteEvent::Subscriptions(items));
    }

    fn is_for(&self, feed: &FeedName) -> bool {
        self.terms.only.as_ref().is_none_or(|only| only.contains(feed))
    }

    fn take_bytes(&mut self, now: Now, bytes: Bytes) {
        if self.connection == Connection::Down {
            return;
        }
        self.heard = now.monotonic;
        self.decoder.push(bytes);
        while self.connection != Connection::Down {
            match self.decoder.next() {
                Ok(Some(frame)) => match bounds::check_frame(&frame) {
                    Ok(()) => self.take_frame(now, frame),
                    Err(sentence) => self.violation(now, sentence),
                },
                Ok(None) => return,
                Err(error) => self.violation(now, error.to_string()),
            }
        }
    }

    fn take_frame(&mut self, now: Now, frame: Frame) {
        match (self.connection, frame) {
            (_, Frame::Message(Message::Refused(refused))) => {
                self.event(SiteEvent::Refused(refused));
                self.close(now);
            }
            (Connection::Greeting, Frame::Message(Message::Welcome(welcome))) => {
                self.take_welcome(now, welcome)
            }
            (Connection::Up, Frame::Message(message)) => self.take_message(now, message),
            (Connection::Up, Frame::Slice { transfer, offset, bytes }) => {
                self.take_slice(now, StreamId::FIRST, transfer, offset, &bytes);
            }
            (Connection::Up, Frame::Repair { leg, leg_epoch, packet, payload }) => {
                let input = ReceiverInput::Repair { packet, payload };
                self.tell_leg(now, leg, Some(leg_epoch), input);
            }
            (Connection::Up, Frame::Train(train, around)) => self.take_train(now, train, around),
            (Connection::Up, Frame::Datagrams(train)) => self.outputs.push_back(SiteOutput::Relay(train)),
            (Connection::Up, _) => {
                self.violation(now, "the hub sent a frame that has no place here".to_owned())
            }
            _ => self.violation(now, "the hub sent a frame that has no place before its welcome".to_owned()),
        }
    }

    /// Performs the due actions.
    fn advance(&mut self, now: Now) {
        if self.connection != Connection::Down && now.monotonic >= self.heard.plus(LIVENESS_LIMIT) {
            self.event(SiteEvent::Dead);
            self.close(now);
        }
        self.advance_legs(now);
        self.drop_late(now);
        self.report_late(now);
        self.report(now);
        if self.connection == Connection::Up {
            self.tell_taken(now);
            self.scan(now);
            self.ask(now);
            self.answer_resends();
            if let Some(request) = self.clock.due(now) {
                self.send(request);
            }
            while let Some(items) = self.receipts.due(now, packed::RECEIPTS) {
                let receipts = Receipts { clock: self.clock.offset_of(&items, now), items };
                let (stream, bytes) = (StreamId::FIRST, receipts_frame(&receipts));
                self.outputs.push_back(SiteOutput::Write { stream, bytes });
            }
            while let Some(items) = self.receipts.filed_due(now) {
                self.send(Filed { items });
            }
        }
    }

    fn report(&mut self, now: Now) {
        let mut frontiers = Vec::new();
        for track in
            self.tracks.values_mut().filter(|track| track.started || self.connection == Connection::Down)
        {
            if track.take_report(now) {
                self.outputs.push_back(SiteOutput::Checkpoint(track.position()));
                frontiers.push(track.frontier());
            }
        }
        if self.connection == Connection::Up {
            for frontier in frontiers {
                self.send(frontier);
            }
        }
    }

    fn checkpoint_all(&mut self) {
        for track in self.tracks.values_mut() {
            if track.take_change() {
                self.outputs.push_back(SiteOutput::Checkpoint(track.position()));
            }
        }
    }

    fn ask(&mut self, now: Now) {
        let wants: Vec<Want> = self
            .tracks
            .iter_mut()
            .filter(|(_, track)| track.started)
            .map(|(feed, track)| (feed, track.epoch, track.due_asks(now)))
            .filter(|(_, _, sequences)| !sequences.is_empty())
            .map(|(feed, epoch, sequences): (&FeedName, _, RangeSet)| Want {
                feed: feed.clone(),
                epoch,
                sequences,
            })
            .collect();
        if !wants.is_empty() {
            self.tell_taken_now();
        }
        for want in wants {
            self.send(want);
        }
    }

    /// Records a completed file for its report. The file can be earlier than the report that its product is
    /// stored; a settled product has, or had, its receipt.
    fn action_done(&mut self, now: Now, key: ProductKey, at: WallMicros) {
        let is_settled = self.tracks.get(&key.feed).is_some_and(|track| track.has_settled(&key));
        self.receipts.action_done(now, key, at, is_settled);
    }

    /// Reports a heartbeat. Without a connection the report is dropped: the next heartbeat is reported.
    fn heartbeat_out(&mut self, key: ProductKey, at: WallMicros) {
        if self.connection == Connection::Up {
            self.send(HeartbeatOut { key, at });
        }
    }

    /// Sends nothing without a connection: the hub repeats its request in the next session.
    fn tell_if_up(&mut self, message: impl Into<Message>) {
        if self.connection == Connection::Up {
            self.send(message);
        }
    }

    fn send(&mut self, message: impl Into<Message>) {
        let (stream, bytes) = (StreamId::FIRST, message.into().encode());
        self.outputs.push_back(SiteOutput::Write { stream, bytes });
    }

    fn event(&mut self, event: SiteEvent) {
        self.outputs.push_back(SiteOutput::Event(event));
    }

    fn violation(&mut self, now: Now, sentence: String) {
        self.event(SiteEvent::Violation(sentence));
        self.close(now);
    }

    fn close(&mut self, now: Now) {
        self.end_session(now);
        self.outputs.push_back(SiteOutput::Close);
    }
}

impl Machine for SiteSession {
    type Input = SiteInput;
    type Output = SiteOutput;

    fn handle(&mut self, now: Now, input: SiteInput) {
        match input {
            SiteInput::Connected(proof) => self.connected(now, proof),
            SiteInput::StandBy(stand_by) => self.terms.stand_by = stand_by,
            SiteInput::ResumeAt(positions) => {
                let own = positions.into_iter().filter(|it| self.is_for(&it.feed));
                self.terms.resume_at = own.map(|it| (it.feed.clone(), it)).collect();
            }
            SiteInput::Bytes { stream: StreamId::FIRST, bytes } => self.take_bytes(now, bytes),
            SiteInput::Bytes { stream, bytes } => self.take_stream_bytes(now, stream, bytes),
            SiteInput::StreamOpened(stream) => self.stream_opened(stream),
            SiteInput::StreamClosed { stream, reason } => self.stream_closed(stream, reason),
            SiteInput::Circuit(CircuitReport::State(state)) => self.tell_if_up(state),
            SiteInput::Circuit(CircuitReport::Heard(heard)) => self.tell_if_up(heard),
            SiteInput::Circuit(CircuitReport::Probed(probed)) => self.tell_if_up(*probed),
            SiteInput::PathProbed(probed) => self.tell_if_up(*probed),
            SiteInput::OfferCredential(offered) => self.tell_if_up(offered),
            SiteInput::ShowCredential(shown) => self.tell_if_up(shown),
            SiteInput::RelayLegOpen(open) => self.tell_if_up(open),
            SiteInput::RelayLegFailed(failed) => self.tell_if_up(failed),
            SiteInput::RelayReport(report) => self.tell_if_up(report),
            SiteInput::Clock(clock) => self.tell_if_up(clock),
            SiteInput::HostReading(reading) => self.tell_if_up(reading),
            SiteInput::Sibling(input) => self.take_sibling(now, input),
            SiteInput::Leave => self.receipts.hurry(now),
            SiteInput::Disconnected => self.disconnected(now),
            SiteInput::Datagrams { leg, batch } => self.hear_group(now, leg, batch),
            SiteInput::GroupJoined { leg, reception } => self.group_joined(leg, reception),
            SiteInput::Deaf { leg, reason } => self.leg_deaf(leg, reason),
            SiteInput::JoinFailed { leg, reason } => self.join_failed(now, leg, &reason),
            SiteInput::Settled { key, result, at } => {
                let track = self.tracks.get_mut(&key.feed);
                let receipt = track.and_then(|track| track.settle(now, &key, result, at, &mut self.outputs));
                if let Some(receipt) = receipt {
                    self.receipts.push(now, receipt);
                }
            }
            SiteInput::TrainSettled { train, results, at } => self.settle_train(now, &train, results, at),
            SiteInput::Late(feed) => self.was_late(feed),
            SiteInput::HeartbeatOut { key, at } => self.heartbeat_out(key, at),
            SiteInput::ActionDone { key, at } => self.action_done(now, key, at),
            SiteInput::Acts { feed, failed } => self.acts(now, &feed, failed),
            SiteInput::LinkedFiles { feed, space } => self.linked_files(now, &feed, space),
            SiteInput::Damaged(key) => self.lack_again(now, &key),
        }
    }

    fn poll(&mut self, now: Now) -> Option<SiteOutput> {
        if self.outputs.is_empty() {
            self.advance(now);
        }
        self.outputs.pop_front()
    }

    fn deadline(&self) -> Option<Micros> {
        let reports = self
            .tracks
            .values()
            .filter(|track| track.started || self.connection == Connection::Down)
            .filter_map(Track::report_deadline);
        let legs = self.legs.values().filter_map(Leg::deadline);
        let requests =
            self.tracks.values().filter(|track| track.started).filter_map(|track| track.requests.deadline());
        let link = (self.connection != Connection::Down).then(|| self.heard.plus(LIVENESS_LIMIT));
        let up = [
            self.clock.deadline(),
            self.receipts.deadline(),
            self.scan_at,
            self.streams.deadline(),
            self.order.late_at,
        ];
        let up = up.into_iter().flatten().chain(requests).filter(|_| self.connection == Connection::Up);
        reports.chain(legs).chain(link).chain(up).min()
    }
}
