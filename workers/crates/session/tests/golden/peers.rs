//! The two machines, each with a minimal driver: a hub with logs in memory, a site that stores without delay.
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use downburst_model::{
    Class, Content, Digest, Epoch, FeedName, IdFilter, Lane, LegId, Machine, Micros, Now, Origin, ProductId,
    ProductInfo, ProductKey, Sequence, SiteName, WallMicros,
};
use downburst_session::{
    Entry, FeedPosition, HubEvent, HubInput, HubOutput, HubSession, LegJoin, Opening, Proof, RefusalCode,
    Refused, ResendOrder, SiteEvent, SiteInput, SiteOutput, SiteSession, SiteState, StoreResult, StreamId,
    StreamPlan, Subscription, Ticket,
};
use downburst_vcmtp::{LegKey, Request};

use crate::file::{
    Conversation, Hex, HubAct, Offer, Order, Outcome, Position, Published, Said, Show, Wish, Words,
};

/// The hub's half, with the logs it serves.
#[derive(Default)]
pub struct HubPeer {
    session: Option<HubSession>,
    logs: BTreeMap<FeedName, HubLog>,
    said: Words,
    /// The data connections whose tickets have not been shown yet.
    offered: BTreeSet<StreamId>,
    /// The active resends, which outlive a connection.
    resends: Vec<ResendOrder>,
    /// Packets of a leg that the site requested.
    pub naks: Vec<(u32, Request)>,
    /// The hub's complaints about the site.
    pub complaints: Vec<String>,
}

struct HubLog {
    epoch: Epoch,
    head: u64,
    unicast_leg: LegId,
    entries: BTreeMap<u64, Entry>,
}

impl HubPeer {
    pub fn accept(&mut self, at_us: u64) {
        let mut session = HubSession::new(HUB.to_owned());
        session.handle(hub_now(at_us), HubInput::Room { stream: StreamId::FIRST, bytes: ROOM_BYTES });
        self.session = Some(session);
        self.said.clear();
        self.offered.clear();
    }

    pub fn hang_up(&mut self) {
        self.session = None;
    }

    pub fn hear(&mut self, at_us: u64, (stream, Hex(frame)): &Said) {
        let (stream, bytes) = (StreamId(*stream), Bytes::copy_from_slice(frame));
        if stream == StreamId::FIRST {
            return self.tell(at_us, HubInput::Bytes { stream, bytes });
        }
        if self.offered.contains(&stream)
            && Opening::of(&bytes) == Opening::Data(Ticket([stream.0 as u8; 16]))
        {
            self.offered.remove(&stream);
            self.tell(at_us, HubInput::StreamOpened(stream));
            self.tell(at_us, HubInput::Room { stream, bytes: ROOM_BYTES });
        }
    }

    pub fn stream_breaks(&mut self, at_us: u64, stream: u32) {
        let (stream, reason) = (StreamId(stream), "it broke".to_owned());
        self.tell(at_us, HubInput::StreamClosed { stream, reason });
    }

    pub fn act(&mut self, at_us: u64, act: &HubAct) {
        match act.clone() {
            HubAct::Admit { site, subscriptions } => {
                let (site, subscriptions) = (SiteName::parse(&site).unwrap(), wishes(&subscriptions));
                self.tell(at_us, HubInput::Admit { site, subscriptions });
                self.tell_feeds(at_us);
                self.tell_resends(at_us);
            }
            HubAct::Refuse { code, sentence } => {
                let code = refusal_codes().into_iter().find(|known| format!("{known:?}") == code).unwrap();
                self.tell(at_us, HubInput::Refuse(Refused { code, sentence }));
            }
            HubAct::Subscribe(subscriptions) => {
                self.tell(at_us, HubInput::Subscriptions(wishes(&subscriptions)));
                self.tell_feeds(at_us);
            }
            HubAct::Open { feed, epoch, head, unicast_leg } => {
                let (feed, epoch, entries) = (feed_name(&feed), Epoch(epoch), BTreeMap::new());
                let log = HubLog { epoch, head, unicast_leg: LegId(unicast_leg), entries };
                self.logs.insert(feed.clone(), log);
                self.tell_feed(at_us, &feed);
            }
            HubAct::Publish(published) => self.publish(at_us, &published),
            HubAct::Evict { feed, to } => {
                let entries = &mut self.logs.get_mut(&feed_name(&feed)).unwrap().entries;
                entries.range_mut(..=to).for_each(|(_, entry)| entry.bytes = None);
            }
            HubAct::OfferLeg(offer) => self.tell(at_us, HubInput::JoinLeg(Box::new(leg_join(&offer)))),
            HubAct::WithdrawLeg { leg } => self.tell(at_us, HubInput::LeaveLeg(LegId(leg))),
            HubAct::Repair { leg, leg_epoch, packet, payload } => {
                let (leg, payload) = (LegId(leg), Bytes::from(payload.0));
                self.tell(at_us, HubInput::Repair { leg, leg_epoch, packet, payload });
            }
            HubAct::PacketsGone { leg, leg_epoch, packets } => {
                let (leg, packets) = (LegId(leg), packets.into_iter().collect());
                self.tell(at_us, HubInput::PacketsGone { leg, leg_epoch, packets });
            }
            HubAct::PlanStreams(streams) => {
                let plan = streams.iter().map(|names| names.iter().map(|name| class(name)).collect());
                self.tell(at_us, HubInput::PlanStreams(StreamPlan::routed(plan.collect())));
            }
            HubAct::Resends(orders) => {
                self.resends = orders.iter().map(resend_order).collect();
                self.tell_resends(at_us);
            }
        }
    }

    pub fn deadline_us(&self) -> Option<u64> {
        self.session.as_ref().and_then(Machine::deadline).map(|at| at.0)
    }

    /// The whole frames written since the last call.
    pub fn frames(&mut self, at_us: u64) -> Vec<Said> {
        let mut outputs = 0;
        while let Some(output) = self.session.as_mut().and_then(|session| session.poll(hub_now(at_us))) {
            self.take(at_us, output);
            outputs += 1;
            assert!(outputs < OUTPUTS_LIMIT, "the hub talks for ever");
        }
        self.said.frames()
    }

    /// The description of a product in the log, and its bytes.
    pub fn product(&self, published: &Published) -> (ProductInfo, Bytes) {
        let log = &self.logs[&feed_name(&published.feed)];
        let entry = &log.entries[&published.sequence];
        (entry.info.clone(), entry.bytes.as_ref().and_then(Content::whole).unwrap())
    }

    fn publish(&mut self, at_us: u64, published: &Published) {
        let feed = feed_name(&published.feed);
        let log = self.logs.get_mut(&feed).unwrap();
        let entry = Entry {
            info: describe(&feed, log.epoch, published),
            bytes: Some(content(published.sequence, published.size).into()),
        };
        log.head = published.sequence;
        log.entries.insert(log.head, entry);
        self.tell_feed(at_us, &feed);
    }

    fn tell_resends(&mut self, at_us: u64) {
        if !self.resends.is_empty() {
            self.tell(at_us, HubInput::Resends(self.resends.clone()));
        }
    }

    fn tell_feeds(&mut self, at_us: u64) {
        let feeds: Vec<FeedName> = self.logs.keys().cloned().collect();
        feeds.iter().for_each(|feed| self.tell_feed(at_us, feed));
    }

    fn tell_feed(&mut self, at_us: u64, feed: &FeedName) {
        let HubLog { epoch, head, unicast_leg, .. } = self.logs[feed];
        self.tell(at_us, HubInput::Feed { feed: feed.clone(), epoch, head: Sequence(head), unicast_leg });
    }

    fn tell(&mut self, at_us: u64, input: HubInput) {
        if let Some(session) = &mut self.session {
            session.handle(hub_now(at_us), input);
        }
    }

    fn take(&mut self, at_us: u64, output: HubOutput) {
        match output {
            HubOutput::Write { stream, bytes, .. } => self.said.say(stream, &bytes),
            HubOutput::Read { feed, after, to, .. } => {
                let log = &self.logs[&feed];
                let entries = log.entries.range(after.0 + 1..=to.0).map(|(_, entry)| entry.clone()).collect();
                self.tell(at_us, HubInput::Entries { feed, after, entries, read_to: to });
            }
            HubOutput::FindTime { feed, time } => {
                let before = self.logs[&feed].entries.values().take_while(|entry| entry.info.stored < time);
                let after = before.last().map_or(Sequence(0), |entry| entry.info.key.sequence);
                self.tell(at_us, HubInput::FoundTime { feed, after });
            }
            HubOutput::Event(HubEvent::Nak { leg, request, .. }) => self.naks.push((leg.0, request)),
            HubOutput::Event(HubEvent::Violation(sentence)) => self.complaints.push(sentence),
            HubOutput::Event(HubEvent::Dead) => self.complaints.push("the site is dead".to_owned()),
            HubOutput::ReadResend { resend, feed, after, to, .. } => {
                let log = &self.logs[&feed];
                let entries = log.entries.range(after.0 + 1..=to.0).map(|(_, entry)| entry.clone()).collect();
                self.tell(at_us, HubInput::ResendEntries { resend, entries, after, read_to: to });
            }
            HubOutput::DrawTicket(stream) => {
                self.offered.insert(stream);
                self.tell(at_us, HubInput::Ticket { stream, ticket: Ticket([stream.0 as u8; 16]) });
            }
            HubOutput::Event(HubEvent::Resent(end)) => {
                self.resends.retain(|order| order.resend != end.resend);
            }
            HubOutput::Refer(request) => {
                self.tell(at_us, HubInput::Referred { number: request.number, sibling: None });
            }
            HubOutput::Event(_)
            | HubOutput::Authenticate(_)
            | HubOutput::CloseStream(_)
            | HubOutput::Close => {}
        }
    }
}

/// The site's half. Complete products are verified and stored without delay.
pub struct SitePeer {
    session: SiteSession,
    said: Words,
    dialled: VecDeque<StreamId>,
    spool: BTreeMap<ProductKey, Vec<u8>>,
    damaged: BTreeMap<(String, u64), u32>,
    held: Vec<String>,
    outcome: Outcome,
    /// The hub's bytes were corrupted in transit.
    pub is_lied_to: bool,
    pub complaints: Vec<String>,
}

impl SitePeer {
    pub fn new(conversation: &Conversation) -> Self {
        let feeds =
            conversation.known.iter().map(|known| (feed_name(&known.feed), position(known))).collect();
        Self {
            session: SiteSession::new("downburst-node 0.1.0".to_owned(), SiteState { feeds })
                .speaking(&[conversation.session_version]),
            said: Words::default(),
            dialled: VecDeque::new(),
            spool: BTreeMap::new(),
            damaged: conversation
                .damaged
                .iter()
                .map(|(feed, at, times)| ((feed.clone(), *at), *times))
                .collect(),
            held: conversation.held.clone(),
            outcome: Outcome::default(),
            is_lied_to: false,
            complaints: Vec::new(),
        }
    }

    pub fn connect(&mut self, at_us: u64, show: &Show) {
        let proof = match show.clone() {
            Show::Token { secret, credential_sha256 } => Proof::Token { secret, credential_sha256 },
            Show::Credential { site, secret } => {
                Proof::Credential { site: SiteName::parse(&site).unwrap(), secret }
            }
        };
        self.said.clear();
        self.tell(at_us, SiteInput::Connected(proof));
    }

    pub fn hang_up(&mut self, at_us: u64) {
        self.tell(at_us, SiteInput::Disconnected);
    }

    pub fn hear(&mut self, at_us: u64, (stream, Hex(frame)): &Said) {
        let (stream, bytes) = (StreamId(*stream), Bytes::copy_from_slice(frame));
        self.tell(at_us, SiteInput::Bytes { stream, bytes });
    }

    /// Removes and returns a data connection that it has dialled and that is not established yet.
    pub fn dials(&mut self) -> Option<u32> {
        self.dialled.pop_front().map(|stream| stream.0)
    }

    pub fn stream_stands(&mut self, at_us: u64, stream: u32) {
        self.tell(at_us, SiteInput::StreamOpened(StreamId(stream)));
    }

    pub fn stream_breaks(&mut self, at_us: u64, stream: u32) {
        let (stream, reason) = (StreamId(stream), "it broke".to_owned());
        self.tell(at_us, SiteInput::StreamClosed { stream, reason });
    }

    pub fn datagram(&mut self, at_us: u64, leg: u32, bytes: &[u8]) {
        let (leg, batch) = (LegId(leg), vec![bytes.into()]);
        self.tell(at_us, SiteInput::Datagrams { leg, batch });
    }

    pub fn deadline_us(&self) -> Option<u64> {
        self.session.deadline().map(|at| at.0)
    }

    /// The whole frames written since the last call.
    pub fn frames(&mut self, at_us: u64) -> Vec<Said> {
        let mut outputs = 0;
        while let Some(output) = self.session.poll(site_now(at_us)) {
            self.take(at_us, output);
            outputs += 1;
            assert!(outputs < OUTPUTS_LIMIT, "the site talks for ever");
        }
        self.said.frames()
    }

    pub fn outcome(self) -> Outcome {
        let positions = self.session.positions().into_iter().map(|position| Position {
            feed: position.feed.to_string(),
            epoch: position.epoch.0,
            settled: position.settled.iter().collect(),
            newest_stored_us: position.newest_stored.0,
        });
        Outcome { positions: positions.collect(), ..self.outcome }
    }

    fn tell(&mut self, at_us: u64, input: SiteInput) {
        self.session.handle(site_now(at_us), input);
    }

    fn take(&mut self, at_us: u64, output: SiteOutput) {
        match output {
            SiteOutput::Write { stream, bytes } => self.said.say(stream, &bytes),
            SiteOutput::OpenStream(stream) => self.dialled.push_back(stream),
            SiteOutput::Begin(info) => {
                let begun = self.spool.insert(info.key, vec![0; info.size.min(SPOOL_BYTES) as usize]);
                assert!(begun.is_none(), "a product is begun twice");
            }
            SiteOutput::Block { key, offset, bytes } => {
                let spool = self.spool.get_mut(&key).expect("a product is begun before its bytes");
                let start = offset as usize;
                if offset < SPOOL_BYTES {
                    spool[start..start + bytes.len()].copy_from_slice(&bytes);
                }
            }
            SiteOutput::Complete { info, .. } => self.complete(at_us, &info),
            SiteOutput::Abandon(key) => {
                self.spool.remove(&key);
            }
            SiteOutput::Event(event) => self.take_event(event),
            SiteOutput::Train { train, .. } => {
                let verdicts = train.cars.iter().map(|car| self.judge(&train.info(car), &car.bytes));
                let (results, at) = (verdicts.collect(), site_now(at_us).wall);
                self.tell(at_us, SiteInput::TrainSettled { train, results, at });
            }
            SiteOutput::JoinGroup(_)
            | SiteOutput::LeaveGroup(_)
            | SiteOutput::LegKey(..)
            | SiteOutput::Ask { .. }
            | SiteOutput::Relay(_)
            | SiteOutput::CloseStream(_)
            | SiteOutput::Checkpoint(_)
            | SiteOutput::Close => {}
        }
    }

    fn complete(&mut self, at_us: u64, info: &ProductInfo) {
        let key = info.key.clone();
        let bytes = self.spool.remove(&key).unwrap();
        let result = self.judge(info, &bytes);
        self.tell(at_us, SiteInput::Settled { key, result, at: site_now(at_us).wall });
    }

    fn judge(&mut self, info: &ProductInfo, bytes: &[u8]) -> StoreResult {
        let key = &info.key;
        let name = (key.feed.to_string(), key.sequence.0);
        if bytes != content(key.sequence.0, bytes.len()) {
            assert!(self.is_lied_to, "the bytes of {key:?} are wrong");
            *self.damaged.entry(name.clone()).or_default() += 1;
        }
        let bad = self.damaged.get_mut(&name).filter(|times| **times > 0);
        match bad {
            Some(times) => {
                *times -= 1;
                StoreResult::DigestMismatch
            }
            None if self.held.iter().any(|id| id == info.id.as_str()) => StoreResult::Held,
            None => {
                self.outcome.stored.push((name.0, name.1, info.id.as_str().to_owned()));
                StoreResult::Stored
            }
        }
    }

    fn take_event(&mut self, event: SiteEvent) {
        match event {
            SiteEvent::Lost { key, .. } => self.outcome.lost.push((key.feed.to_string(), key.sequence.0)),
            SiteEvent::Refused(refused) => self.outcome.refused.push(refused.sentence),
            SiteEvent::Violation(sentence) => self.complaints.push(sentence),
            SiteEvent::Dead => self.complaints.push("the hub is dead".to_owned()),
            _ => {}
        }
    }
}

pub fn hub_now(at_us: u64) -> Now {
    Now { monotonic: Micros(at_us), wall: WallMicros(BEGIN_US + at_us as i64) }
}

fn site_now(at_us: u64) -> Now {
    Now { monotonic: Micros(at_us), wall: WallMicros(BEGIN_US + SITE_AHEAD_US + at_us as i64) }
}

pub fn leg_join(offer: &Offer) -> LegJoin {
    LegJoin {
        leg: LegId(offer.leg),
        feed: feed_name(&offer.feed),
        epoch: Epoch(offer.epoch),
        leg_epoch: offer.leg_epoch,
        group: offer.group.clone(),
        port: offer.port,
        key: LegKey::new(offer.key_id, offer.key.0.clone().try_into().unwrap()),
        key_in_use: None,
        sender_key: None,
        proof_secret: None,
        pass: None,
        interface: String::new(),
        rate_bps: offer.rate_bps,
        source: None,
        channel: None,
    }
}

fn describe(feed: &FeedName, epoch: Epoch, published: &Published) -> ProductInfo {
    ProductInfo {
        key: ProductKey { feed: feed.clone(), epoch, sequence: Sequence(published.sequence) },
        id: ProductId::parse(&published.id).unwrap(),
        origin: Origin::parse("idd.example.edu").unwrap(),
        created: WallMicros(published.created_us),
        stored: WallMicros(published.stored_us),
        size: published.size as u64,
        digest: Digest([published.sequence as u8; 32]),
        class: class(&published.class),
        hops: None,
        ldm: None,
        properties: None,
    }
}

fn content(sequence: u64, size: usize) -> Bytes {
    (0..size).map(|at| (sequence as usize + at / 1_000) as u8).collect()
}

fn position(known: &Position) -> FeedPosition {
    FeedPosition {
        feed: feed_name(&known.feed),
        epoch: Epoch(known.epoch),
        settled: known.settled.iter().copied().collect(),
        newest_stored: WallMicros(known.newest_stored_us),
    }
}

fn wishes(wishes: &[Wish]) -> Vec<Subscription> {
    let subscription = |wish: &Wish| Subscription {
        feed: feed_name(&wish.feed),
        pattern: wish.pattern.clone(),
        not_pattern: wish.not_pattern.clone(),
        within: None,
    };
    wishes.iter().map(subscription).collect()
}

fn feed_name(name: &str) -> FeedName {
    FeedName::parse(name).unwrap()
}

fn refusal_codes() -> [RefusalCode; 7] {
    use RefusalCode::*;
    [Version, Token, Credential, Expired, Busy, Protocol, Unavailable]
}

fn class(name: &str) -> Class {
    let classes = [Class::Warning, Class::Observation, Class::Grid, Class::Bulk];
    classes.into_iter().find(|class| format!("{class:?}") == name).unwrap()
}

fn resend_order(order: &Order) -> ResendOrder {
    ResendOrder {
        resend: order.resend,
        feed: feed_name(&order.feed),
        epoch: Epoch(order.epoch),
        after: Sequence(order.after),
        to: Sequence(order.to),
        lane: if order.backfill { Lane::Backfill } else { Lane::Resend },
        wanted: IdFilter { pattern: order.pattern.clone(), not_pattern: None },
        had: Vec::new(),
        within: None,
        left: None,
    }
}

const HUB: &str = "hub.example";

/// Enough room for every conversation.
const ROOM_BYTES: usize = 1 << 30;

/// The maximum number of outputs of a machine at one moment.
const OUTPUTS_LIMIT: usize = 100_000;

/// The maximum size of a conversation's products; a product announced as larger is not stored whole.
const SPOOL_BYTES: u64 = 1 << 20;

/// 2026-01-01 00:00 UTC.
pub const BEGIN_US: i64 = 1_767_225_600_000_000;

/// The site's clock is ahead of the hub's.
const SITE_AHEAD_US: i64 = 1_500_000;
