use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use downburst_fanout::{Classes, Limits, May, Next, Outbox, StreamId};
use downburst_model::{Class, Epoch, FeedName, LegId, Machine, Micros, Now, Sequence, SiteName};

use crate::bounds;
use crate::frame::{Decoder, Frame, Message};
use crate::patterns::Patterns;
use crate::{
    Duplicates, FeedHandling, FeedPosition, Hello, HubEvent, HubInput, HubOutput, LIVENESS_LIMIT, Nodes,
    Purpose, RefusalCode, Refused, SiblingTerms, Subscription, Subscriptions, VERSION, VERSIONS, Welcome,
};
use deadlines::Deadlines;
use feeds::Feed;
use handling::Handling;
use offers::Offers;
use pacing::Pacer;
use parcels::Parcels;
use referrals::Referrals;
use relayed::Relayed;
use resends::Resends;
use serve::Holds;
use streams::Streams;

mod deadlines;
mod feeds;
mod greeting;
mod handling;
mod messages;
mod narrowing;
mod nodes;
mod offers;
mod pacing;
mod parcels;
mod referrals;
mod relayed;
mod repairs;
mod resends;
mod serve;
mod standing;
mod streams;
mod ways;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod trains_tests;

/// The hub's half of a session: one per connection of a site.
///
/// | state          | input              | next           | output                                          |
/// |----------------|--------------------|----------------|-------------------------------------------------|
/// | greeting       | hello              | authenticating | `Authenticate`                                  |
/// | authenticating | `Admit`            | active         | welcome, subscriptions, `Event(Hello)`          |
/// | authenticating | `Refuse`           | closed         | refused, `Close`                                |
/// | active         | `Refuse`           | closed         | refused, `Close`                                |
/// | any            | malformed frame    | closed         | `Event(Violation)`, refused, `Close`            |
/// | active         | value out of range | closed         | `Event(Violation)`, refused, `Close`            |
/// | any            | silence            | closed         | `Event(Dead)`, `Close`                          |
#[derive(Debug)]
pub struct HubSession {
    terms: Terms,
    state: State,
    heard: Option<Micros>,
    decoder: Decoder,
    line: Line,
    serving: Serving,
    offers: Offers,
    streams: Streams,
    resends: Resends,
    referrals: Referrals,
    last_sent: LastSent,
    outputs: VecDeque<HubOutput>,
}

/// The terms of both sides: the hub's from the start, the site's from its hello on.
#[derive(Debug)]
struct Terms {
    hub_name: String,
    /// The versions that this side supports, best first.
    versions: Vec<u16>,
    /// The version in use.
    version: u16,
    /// The hub sends heartbeats.
    heartbeats: bool,
    /// The site takes all its feeds from this node, even if the hub has several.
    one_node: bool,
    /// The site stands by and gets no feeds.
    stand_by: bool,
    /// The chains of relays by which the site is to come.
    ways: Vec<String>,
    /// Its exchange with siblings.
    siblings: SiblingTerms,
}

/// Bytes for the site's first connection, and their rate limits.
#[derive(Debug)]
struct Line {
    outbox: Outbox<Purpose>,
    parcels: Parcels,
    relayed: Relayed,
    /// The remaining room in the driver.
    room_bytes: i64,
    pacer: Pacer,
    /// Holds back products that are not live.
    late_pacer: Pacer,
    /// The bytes of such products since the start.
    late_bytes: u64,
}

/// The feeds that this half serves, and the site's positions in the others.
#[derive(Debug, Default)]
struct Serving {
    feeds: BTreeMap<FeedName, Feed>,
    patterns: Patterns,
    /// The site's positions in feeds that are not served: from its hello, or from the end of a subscription.
    positions: BTreeMap<FeedName, FeedPosition>,
    /// Logs that were reported before the site was admitted.
    early: BTreeMap<FeedName, (Epoch, Sequence, LegId)>,
    reads: BTreeMap<FeedName, feeds::ReadOut>,
    /// The number of outstanding time searches; only the last answer for a feed counts.
    searches: BTreeMap<FeedName, u32>,
    /// The rules of the feeds for duplicates.
    duplicates: BTreeMap<FeedName, Duplicates>,
    handling: Handling,
    deadlines: Deadlines,
    /// Feeds whose backfill waits for a stream to several sites.
    holds: Holds,
}

/// The last messages of these kinds to the site: equal ones are not sent again.
#[derive(Debug, Default)]
struct LastSent {
    handling: Vec<FeedHandling>,
    nodes: Option<Nodes>,
    ways: Vec<String>,
    siblings: SiblingTerms,
}

#[derive(Debug)]
enum State {
    Greeting,
    Authenticating(Box<Hello>),
    Active,
    Closed,
}

impl HubSession {
    /// Makes the hub's half of a newly accepted connection.
    pub fn new(hub_name: String) -> Self {
        Self {
            terms: Terms {
                hub_name,
                versions: VERSIONS.to_vec(),
                version: VERSION,
                heartbeats: false,
                one_node: false,
                stand_by: false,
                ways: Vec::new(),
                siblings: SiblingTerms::default(),
            },
            state: State::Greeting,
            heard: None,
            decoder: Decoder::default(),
            line: Line {
                outbox: Outbox::new(Limits::default()),
                parcels: Parcels::default(),
                relayed: Relayed::default(),
                room_bytes: 0,
                pacer: Pacer::default(),
                late_pacer: Pacer::default(),
                late_bytes: 0,
            },
            serving: Serving::default(),
            offers: Offers::default(),
            streams: Streams::default(),
            resends: Resends::default(),
            referrals: Referrals::default(),
            last_sent: LastSent::default(),
            outputs: VecDeque::new(),
        }
    }

    /// The same session, with support for only these versions, best first.
    #[must_use]
    pub fn speaking(mut self, versions: &[u16]) -> Self {
        self.terms.versions = versions.to_vec();
        self
    }

    /// The same session, of a hub that puts heartbeats into its feeds.
    #[must_use]
    pub fn with_heartbeats(mut self) -> Self {
        self.terms.heartbeats = true;
        self
    }

    /// True if the site reports the arrival of heartbeats at its consumers' end.
    pub fn reports_heartbeats(&self) -> bool {
        self.terms.heartbeats && self.is_active()
    }

    /// True if the site takes its feeds from each node of the hub that serves one; known from its hello on.
    pub fn takes_several_nodes(&self) -> bool {
        !self.terms.one_node
    }

    /// The number of bytes of products that are not live written since the start.
    pub fn late_bytes(&self) -> u64 {
        self.line.late_bytes
    }

    /// True if the site's hello says that another hub serves it.
    pub fn stands_by(&self) -> bool {
        match &self.state {
            State::Authenticating(hello) => hello.stand_by == Some(true),
            _ => self.terms.stand_by,
        }
    }

    /// True while a leg carries the whole feed to the site: a moved head needs no action by this half. It must
    /// get the head before the site's next bytes, which may end the leg.
    pub fn is_left_to_leg(&self, feed: &FeedName) -> bool {
        self.served_epoch(feed).is_some_and(|epoch| self.offers.coverage(feed, epoch).is_some())
    }

    /// Bytes of the products that wait for a connection, and the classes of those that are entirely unsent.
    pub fn waiting(&self) -> (usize, Classes) {
        (self.line.outbox.waiting_bytes(), self.line.outbox.waiting_classes())
    }

    fn admit(&mut self, site: SiteName, subscriptions: Vec<Subscription>) {
        match std::mem::replace(&mut self.state, State::Active) {
            State::Authenticating(hello) => {
                if let Err(sentence) = bounds::check_hello(&hello) {
                    return self.violation(sentence);
                }
                self.terms.stand_by = hello.stand_by == Some(true);
                let stand_by = self.terms.stand_by.then_some(true);
                self.send(Welcome {
                    version: self.terms.version,
                    site,
                    hub: self.terms.hub_name.clone(),
                    stand_by,
                });
                self.tell_ways();
                self.tell_sibling_terms();
                self.serving.positions = hello.feeds.iter().map(|it| (it.feed.clone(), it.clone())).collect();
                self.event(HubEvent::Hello(*hello));
                self.subscribe(subscriptions);
                for (feed, (epoch, head, unicast_leg)) in std::mem::take(&mut self.serving.early) {
                    self.take_feed(feed, epoch, head, unicast_leg);
                }
            }
            state => self.state = state,
        }
    }

    fn subscribe(&mut self, subscriptions: Vec<Subscription>) {
        let subscriptions = if self.terms.stand_by { Vec::new() } else { subscriptions };
        let trains = |feed: &FeedName| !self.sends_one_by_one(feed);
        let patterns = Patterns::compile(&subscriptions, self.terms.heartbeats, trains);
        let before = std::mem::replace(&mut self.serving.patterns, patterns);
        let gone: Vec<FeedName> =
            self.serving.feeds.keys().filter(|feed| !self.serving.patterns.has(feed)).cloned().collect();
        for feed in gone {
            self.unsubscribe(&feed);
        }
        self.take_back_unwanted(&before);
        let heads = self.heads();
        self.send(Subscriptions { items: subscriptions, heads });
        self.tell_handling();
    }

    fn take_bytes(&mut self, now: Now, bytes: Bytes) {
        self.heard = Some(now.monotonic);
        self.decoder.push(bytes);
        while !self.is_closed() {
            match self.decoder.next() {
                Ok(Some(frame)) => self.take_frame(now, frame),
                Ok(None) => return,
                Err(error) => self.violation(error.to_string()),
            }
        }
    }

    fn take_frame(&mut self, now: Now, frame: Frame) {
        match (&self.state, frame) {
            (State::Greeting, Frame::Message(Message::Hello(hello))) => self.take_hello(hello),
            (State::Active, Frame::Message(message)) => match bounds::check(&message) {
                Ok(()) => self.take_message(now, message),
                Err(sentence) => self.violation(sentence),
            },
            (State::Active, Frame::Receipts(receipts)) => match bounds::check_receipts(&receipts) {
                Ok(()) => self.take_receipts(now, receipts),
                Err(sentence) => self.violation(sentence),
            },
            _ => self.violation("the site sent a frame that has no place here".to_owned()),
        }
    }

    fn take_stream_bytes(&mut self, stream: StreamId) {
        if self.streams.has_flow(stream) {
            self.violation("the site sent something on a data connection behind its ticket".to_owned());
        }
    }

    /// Adds the due outputs.
    fn advance(&mut self, now: Now) {
        if self.is_closed() {
            return;
        }
        let heard = *self.heard.get_or_insert(now.monotonic);
        if now.monotonic >= heard.plus(LIVENESS_LIMIT) {
            self.event(HubEvent::Dead);
            return self.close();
        }
        if self.line.outbox.control_bytes() > CONTROL_QUEUE_BYTES {
            return self.violation("the site asks and does not read the answers".to_owned());
        }
        self.line.pacer.refill(now);
        self.line.late_pacer.refill(now);
        self.serving.deadlines.step(now);
        self.drop_late(now);
        self.advance_streams(now);
        self.advance_referrals(now);
        self.advance_feeds(now);
        self.advance_resends(now);
        if self.outputs.is_empty() {
            self.write_next();
        }
    }

    /// Writes the next parcel, on the first stream that has room and data to carry.
    fn write_next(&mut self) {
        let classes = if self.line.pacer.is_open() { Classes::all() } else { Classes::of(Class::Warning) };
        let may_go = May { classes, late: self.line.late_pacer.is_open() };
        if self.line.room_bytes > 0 && (self.write_relayed() || self.write_next_on(StreamId::FIRST, may_go)) {
            return;
        }
        // Warnings of feeds with a separate path are sent there regardless of the rate.
        if !self.line.pacer.is_open() && !self.streams.has_rides() {
            return;
        }
        for stream in self.streams.ready() {
            if self.write_next_on(stream, may_go) {
                return;
            }
        }
    }

    fn write_next_on(&mut self, stream: StreamId, may_go: May) -> bool {
        match self.line.outbox.take_of(stream, may_go) {
            Some(Next::Control(bytes, purpose)) => self.write_on(stream, bytes, purpose),
            Some(Next::Slice(slice)) => self.write_slice(stream, slice),
            None => return false,
        }
        true
    }

    fn send(&mut self, message: impl Into<Message>) {
        self.line.outbox.push_control(message.into().encode(), Purpose::Control);
    }

    fn send_all(&mut self, messages: Vec<Message>) {
        messages.into_iter().for_each(|message| self.send(message));
    }

    fn event(&mut self, event: HubEvent) {
        self.outputs.push_back(HubOutput::Event(event));
    }

    fn violation(&mut self, sentence: String) {
        self.event(HubEvent::Violation(sentence.clone()));
        self.refuse(Refused { code: RefusalCode::Protocol, sentence });
    }

    fn refuse(&mut self, refused: Refused) {
        // The last frame is sent regardless of the room: output may exceed the grant by one frame.
        self.write_on(StreamId::FIRST, Message::from(refused).encode(), Purpose::Control);
        self.close();
    }

    fn close(&mut self) {
        self.outputs.push_back(HubOutput::Close);
        self.state = State::Closed;
    }

    /// Takes the driver's answers about the logs.
    fn take_of_logs(&mut self, now: Now, input: HubInput) {
        match input {
            HubInput::Duplicates { feed, rule } => drop(self.serving.duplicates.insert(feed, rule)),
            HubInput::Deadline { feed, deadline_us } => self.set_deadline(&feed, deadline_us),
            HubInput::Feed { feed, epoch, head, unicast_leg } if self.is_active() => {
                self.take_feed(feed, epoch, head, unicast_leg);
            }
            HubInput::Feed { feed, epoch, head, unicast_leg } => {
                self.serving.early.insert(feed, (epoch, head, unicast_leg));
            }
            HubInput::Entries { feed, after, entries, read_to } => {
                self.take_entries(now, (feed, after, read_to), entries);
            }
            HubInput::Stretch(stretch) => self.take_stretch(now, &stretch),
            HubInput::FoundTime { feed, after } => self.take_found_time(&feed, after),
            HubInput::ResendEntries { resend, entries, after, read_to } => {
                self.take_resend_entries(now, resend, entries, after.0, read_to.0);
            }
            input if self.is_active() => self.take_of_active(now, input),
            _ => {}
        }
    }

    /// Takes the inputs that only apply to an admitted site.
    fn take_of_active(&mut self, now: Now, input: HubInput) {
        match input {
            HubInput::PlanStreams(plan) => self.plan_streams(now, plan),
            HubInput::Subscriptions(subscriptions) => self.subscribe(subscriptions),
            HubInput::Nodes(nodes) => self.tell_nodes(nodes),
            HubInput::Resends(orders) => self.set_resends(orders),
            HubInput::JoinLeg(join) => self.offer_leg(*join),
            HubInput::CatchUp { join, to } => self.offer_catch_up(*join, to),
            HubInput::HoldBackfill { feed, until } => self.serving.holds.hold(feed, until),
            HubInput::ReleaseBackfill(feed) => self.serving.holds.release(&feed),
            HubInput::OfferCircuit(offer) => self.send(*offer),
            HubInput::EndCircuit(end) => self.send(end),
            HubInput::ProbeCircuit(probe) => self.send(probe),
            HubInput::ProbePath(probe) => self.send(probe),
            HubInput::KeepCircuits(set) => self.send(set),
            HubInput::WantCredential(wanted) => self.send(wanted),
            HubInput::KeepCredential(kept) => self.send(kept),
            HubInput::PacketsGone { leg, leg_epoch, packets: gone } => self.tell_gone(leg, leg_epoch, gone),
            input => self.take_for_siblings(now, input),
        }
    }

    fn is_active(&self) -> bool {
        matches!(self.state, State::Active)
    }

    fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed)
    }
}

impl Machine for HubSession {
    type Input = HubInput;
    type Output = HubOutput;

    fn handle(&mut self, now: Now, input: HubInput) {
        self.heard.get_or_insert(now.monotonic);
        if self.is_closed() {
            return;
        }
        match input {
            HubInput::Bytes { stream: StreamId::FIRST, bytes } => self.take_bytes(now, bytes),
            HubInput::Bytes { stream, .. } => self.take_stream_bytes(stream),
            HubInput::Room { stream: StreamId::FIRST, bytes } => {
                self.line.room_bytes =
                    self.line.room_bytes.saturating_add(i64::try_from(bytes).unwrap_or(i64::MAX));
            }
            HubInput::Room { stream, bytes } => self.streams.room(stream, bytes),
            HubInput::Pace(bits_per_second) => self.line.pacer.set(now, bits_per_second),
            HubInput::PaceLate(bits_per_second) => self.line.late_pacer.set(now, bits_per_second),
            HubInput::Ticket { stream, ticket } => self.offer_stream(now, stream, ticket),
            HubInput::StreamOpened(stream) => self.stream_opened(now, stream),
            HubInput::StreamClosed { stream, reason } => self.stream_closed(now, stream, reason),
            HubInput::Admit { site, subscriptions } => self.admit(site, subscriptions),
            HubInput::Refuse(refused) => self.refuse(refused),
            HubInput::Violation(sentence) => self.violation(sentence),
            HubInput::Handling(items) => self.set_handling(items),
            HubInput::Ways(chains) => self.set_ways(chains),
            HubInput::SiblingTerms(terms) => self.set_sibling_terms(terms),
            HubInput::LeaveLeg(leg) => {
                let messages = self.offers.leave(leg);
                self.send_all(messages);
            }
            HubInput::NextKey(next) => {
                let message = self.offers.next_key(next);
                message.into_iter().for_each(|message| self.send(message));
            }
            HubInput::Repair { leg, leg_epoch, packet, payload } => {
                self.repair(leg, leg_epoch, packet, &payload);
            }
            input => self.take_of_logs(now, input),
        }
    }

    fn poll(&mut self, now: Now) -> Option<HubOutput> {
        if self.outputs.is_empty() {
            self.advance(now);
        }
        self.outputs.pop_front()
    }

    fn deadline(&self) -> Option<Micros> {
        if self.is_closed() {
            return None;
        }
        let liveness = self.heard.map(|heard| heard.plus(LIVENESS_LIMIT));
        let covers = self.serving.feeds.values().filter_map(Feed::deadline);
        let paced = self.line.pacer.opens_at().filter(|_| self.line.outbox.waiting_bytes() > 0);
        let late = self.line.late_pacer.opens_at().filter(|_| self.line.outbox.has_late());
        let (held, streams) = (self.serving.holds.deadline(), self.streams.deadline());
        let (referrals, resends) = (self.referrals.deadline(), self.resends_deadline());
        let timers = [liveness, streams, resends, referrals, paced, late, held];
        covers.chain(timers.into_iter().flatten()).min()
    }
}

/// The maximum of queued control bytes; a site with more unread answers is disconnected.
const CONTROL_QUEUE_BYTES: usize = 16 << 20;
