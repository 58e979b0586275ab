//! One task per connected site: drives the hub's half of the session with a TLS stream and the logs.
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use downburst_log::ProductLog as _;
use downburst_model::{FeedName, LegId, Machine as _, Micros, ProductKey, Sequence, SiteName, WallMicros};
use downburst_session::{
    ClockOffset, Entry, HubEvent, HubInput, HubOutput, HubSession, LIVENESS_LIMIT, LegLeft, Proof, Purpose,
    Receipt, RefusalCode, Refused,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_rustls::server::TlsStream;

use super::accept::{Counted, PUT_OUT};
use super::outbound::{OUT_LIMIT_BYTES, Outbound, Taken};
use super::roster::{Command, Handle, Repair, subscriptions};
use super::strangers::Stranger;
use super::{Hub, lock};
use crate::lines::{EnrolAnswer, Event, SiteLine};
use crate::tls::sha256_hex;

/// Serves one connection until either side ends it.
pub(super) async fn serve(hub: Arc<Hub>, stream: TlsStream<Counted>, stranger: Stranger) {
    let (reader, writer) = tokio::io::split(stream);
    let mut machine = HubSession::new(hub.start.name.clone());
    machine.handle(hub.clock.now(), HubInput::Room(OUT_LIMIT_BYTES));
    let session = Session {
        appended: hub.appended.subscribe(),
        stopping: hub.stopping.subscribe(),
        hub,
        peer: stranger.peer,
        stranger: Some(stranger),
        machine,
        out: Outbound::new(),
        closing: None,
        reason: None,
        software: None,
        stand_by: false,
        enrolment: None,
        member: None,
        told_heads: BTreeMap::new(),
        first_bytes: BTreeMap::new(),
    };
    session.run(reader, writer).await;
}

struct Session {
    hub: Arc<Hub>,
    peer: SocketAddr,
    /// Until the site is let in.
    stranger: Option<Stranger>,
    machine: HubSession,
    out: Outbound,
    /// Since when only what waits is sent.
    closing: Option<Micros>,
    reason: Option<String>,
    software: Option<String>,
    /// The site wants no feeds.
    stand_by: bool,
    enrolment: Option<Enrolment>,
    member: Option<Member>,
    appended: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    told_heads: BTreeMap<FeedName, (Sequence, LegId)>,
    /// When the first byte of a unicast product left, until its receipt comes.
    first_bytes: BTreeMap<ProductKey, WallMicros>,
}

struct Enrolment {
    credential_sha256: String,
    answer: oneshot::Receiver<EnrolAnswer>,
}

/// A site that was let in.
struct Member {
    site: SiteName,
    handle: Handle,
    commands: mpsc::UnboundedReceiver<Command>,
    repairs: mpsc::Receiver<Repair>,
}

enum Woken {
    Read(std::io::Result<usize>),
    Sent(std::io::Result<Taken>),
    PutOut,
    Enrolled(Option<EnrolAnswer>),
    Command(Option<Command>),
    Repair(Option<Repair>),
    Appended,
    Stopping,
    Deadline,
}

impl Session {
    async fn run(
        mut self,
        mut reader: ReadHalf<TlsStream<Counted>>,
        mut writer: WriteHalf<TlsStream<Counted>>,
    ) {
        let mut inbound = BytesMut::with_capacity(IN_BYTES);
        loop {
            self.perform();
            if self.is_over() {
                break;
            }
            inbound.reserve(IN_BYTES);
            let woken = self.wait(&mut reader, &mut writer, &mut inbound).await;
            if !self.take(woken, &mut inbound) {
                break;
            }
        }
        // A peer that left bytes unread would not take the end of the stream either.
        if self.out.is_empty() {
            let _ = tokio::time::timeout(CLOSE_LIMIT, writer.shutdown()).await;
        }
        self.leave();
    }

    /// True when nothing is left to say, or the peer had all the time it may have.
    fn is_over(&mut self) -> bool {
        let now = self.hub.clock.monotonic();
        if self.closing.is_some_and(|since| self.out.is_empty() || now.since(since) >= CLOSE_PATIENCE) {
            return true;
        }
        let sentence = match &self.stranger {
            Some(stranger) if stranger.is_late() => "the site did not prove who it is in time",
            _ if self.out.is_stuck(now, LIVENESS_LIMIT) => "the site did not read what was sent to it",
            _ => return false,
        };
        self.reason.get_or_insert_with(|| sentence.to_owned());
        true
    }

    async fn wait(
        &mut self,
        reader: &mut ReadHalf<TlsStream<Counted>>,
        writer: &mut WriteHalf<TlsStream<Counted>>,
        inbound: &mut BytesMut,
    ) -> Woken {
        let limit = if self.closing.is_some() { CLOSING_WAKE_INTERVAL } else { WAKE_INTERVAL };
        let now = self.hub.clock.monotonic();
        let due = self.machine.deadline().map_or(limit, |due| Duration::from_micros(due.since(now).0));
        let deadline = Instant::now() + due.min(limit);
        let enrolment = self.enrolment.as_mut();
        let (commands, repairs) = match self.member.as_mut() {
            Some(member) => (Some(&mut member.commands), Some(&mut member.repairs)),
            None => (None, None),
        };
        // A site that is slow to take its bytes gets no further repairs queued; it asks again.
        let takes_repairs = self.out.has_room();
        tokio::select! {
            read = reader.read_buf(inbound), if self.closing.is_none() => Woken::Read(read),
            taken = self.out.send(writer) => Woken::Sent(taken),
            () = or_never(self.stranger.as_mut().map(Stranger::put_out)) => Woken::PutOut,
            answer = or_never(enrolment.map(|enrolment| &mut enrolment.answer)) => Woken::Enrolled(answer.ok()),
            command = or_never(commands.map(mpsc::UnboundedReceiver::recv)) => Woken::Command(command),
            repair = or_never(repairs.map(mpsc::Receiver::recv)), if takes_repairs => Woken::Repair(repair),
            _ = self.appended.changed() => Woken::Appended,
            _ = self.stopping.wait_for(|stop| *stop), if self.closing.is_none() => Woken::Stopping,
            () = tokio::time::sleep_until(deadline) => Woken::Deadline,
        }
    }

    /// Takes what woke the task; false ends the session.
    fn take(&mut self, woken: Woken, inbound: &mut BytesMut) -> bool {
        match woken {
            Woken::Read(Ok(0)) => return false,
            Woken::Read(Ok(_)) => {
                if let Some(member) = &self.member {
                    lock(&member.handle.status).heard_at = self.hub.clock.monotonic();
                }
                let bytes = inbound.split().freeze();
                if let Some(stranger) = &self.stranger {
                    stranger.took(bytes.len());
                }
                self.tell(HubInput::Bytes(bytes));
            }
            Woken::Sent(Ok(taken)) => {
                self.out.taken(self.hub.clock.monotonic(), &taken);
                if let Taken::Bytes(count) = taken {
                    self.tell(HubInput::Room(count));
                }
            }
            Woken::PutOut => {
                self.reason.get_or_insert_with(|| PUT_OUT.to_owned());
                return false;
            }
            Woken::Read(Err(error)) | Woken::Sent(Err(error)) => {
                self.reason.get_or_insert_with(|| format!("the connection failed: {error}"));
                return false;
            }
            Woken::Enrolled(answer) => self.enrolled(answer),
            Woken::Command(Some(command)) => self.command(command),
            Woken::Repair(Some(repair)) => self.repair(repair),
            Woken::Command(None) | Woken::Repair(None) | Woken::Deadline => {}
            Woken::Appended => self.tell_heads(),
            Woken::Stopping => {
                let sentence = "the hub stops; connect again in a moment".to_owned();
                self.refuse(Refused { code: RefusalCode::Unavailable, sentence });
            }
        }
        true
    }

    fn tell(&mut self, input: HubInput) {
        self.machine.handle(self.hub.clock.now(), input);
    }

    /// Does what the machine asks for until it asks for nothing.
    fn perform(&mut self) {
        while let Some(output) = self.machine.poll(self.hub.clock.now()) {
            match output {
                HubOutput::Write { bytes, purpose } => self.write(&bytes, &purpose),
                HubOutput::Authenticate(proof) => {
                    self.stand_by = self.machine.stands_by();
                    self.authenticate(proof);
                }
                HubOutput::Read { feed, after, to, limit_bytes } => self.read(feed, after, to, limit_bytes),
                HubOutput::FindTime { feed, time } => {
                    let after =
                        self.hub.feeds.find(&feed).map_or(Sequence(0), |open| open.log.find_time(time));
                    self.tell(HubInput::FoundTime { feed, after });
                }
                HubOutput::Event(event) => self.event(event),
                HubOutput::Close => self.closing = Some(self.hub.clock.monotonic()),
            }
        }
    }

    fn write(&mut self, bytes: &Bytes, purpose: &Purpose) {
        self.out.push(self.hub.clock.monotonic(), bytes);
        match purpose {
            Purpose::Control => {}
            Purpose::Product { feed, leg } => self.hub.counters.session_bytes(feed, *leg, bytes.len(), false),
            Purpose::Repair { leg } => {
                let feed = lock(&self.hub.plans).feed_of(*leg);
                if let Some(feed) = feed {
                    self.hub.counters.session_bytes(&feed, *leg, bytes.len(), true);
                }
            }
        }
    }

    fn authenticate(&mut self, proof: Proof) {
        match proof {
            Proof::Token { secret, credential_sha256 } => {
                let ask = self.hub.next_ask();
                let answer = match self.hub.roster.ask(ask) {
                    Ok(answer) => answer,
                    Err(refused) => return self.refuse(refused),
                };
                self.enrolment = Some(Enrolment { credential_sha256: credential_sha256.clone(), answer });
                let (secret_sha256, peer) = (sha256_hex(secret.as_bytes()), self.peer.to_string());
                self.hub.event(&Event::Enrol { ask, secret_sha256, credential_sha256, peer });
            }
            Proof::Credential { site, secret } => {
                let sha256 = sha256_hex(secret.as_bytes());
                match self.hub.roster.check(&site, &sha256, self.hub.clock.wall()) {
                    Ok(line) => self.admit(&line, &sha256),
                    Err(refused) => self.refuse(refused),
                }
            }
        }
    }

    fn enrolled(&mut self, answer: Option<EnrolAnswer>) {
        let Some(enrolment) = self.enrolment.take() else { return };
        let refused = |code, sentence: &str| Refused { code, sentence: sentence.to_owned() };
        let Some(answer) = answer else {
            return self.refuse(refused(
                RefusalCode::Unavailable,
                "the hub could not look at the token; try again in a moment",
            ));
        };
        let line = answer.site.filter(|_| answer.ok).and_then(|site| self.hub.roster.site(&site));
        match line {
            Some(line) => self.admit(&line, &enrolment.credential_sha256),
            None => {
                let sentence = answer.sentence.unwrap_or_else(|| {
                    "the token is not valid; ask the hub's operator for a new one".to_owned()
                });
                self.refuse(Refused { code: RefusalCode::Token, sentence });
            }
        }
    }

    fn admit(&mut self, line: &SiteLine, credential_sha256: &str) {
        let now = self.hub.clock.monotonic();
        match self.hub.roster.register(&line.site, credential_sha256, self.stand_by, REPAIR_QUEUE, now) {
            Ok((handle, commands, repairs)) => {
                let site = line.site.clone();
                self.tell(HubInput::Admit { site: site.clone(), subscriptions: subscriptions(line) });
                self.told_heads.clear();
                self.tell_heads();
                if !self.stand_by {
                    self.hub.place_site(&site, &handle);
                }
                self.member = Some(Member { site, handle, commands, repairs });
                self.stranger = None;
                self.tell_session("connected", None);
            }
            Err(refused) => self.refuse(refused),
        }
    }

    fn refuse(&mut self, refused: Refused) {
        self.reason = Some(refused.sentence.clone());
        self.tell(HubInput::Refuse(refused));
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Subscriptions(items) => {
                self.tell(HubInput::Subscriptions(items));
                self.told_heads.clear();
                self.tell_heads();
            }
            Command::LookAtFeeds => self.tell_heads(),
            Command::Join(join) => self.tell(HubInput::JoinLeg(*join)),
            Command::Leave(leg) => self.tell(HubInput::LeaveLeg(leg)),
            Command::Refuse(refused) => self.refuse(refused),
        }
    }

    fn repair(&mut self, repair: Repair) {
        self.tell(match repair {
            Repair::Packet { leg, leg_epoch, packet, payload } => {
                HubInput::Repair { leg, leg_epoch, packet, payload }
            }
            Repair::Gone { leg, leg_epoch, packets } => HubInput::PacketsGone { leg, leg_epoch, packets },
        });
    }

    /// Tells the machine of every feed whose head or unicast leg it does not know.
    fn tell_heads(&mut self) {
        for (feed, open) in self.hub.feeds.all() {
            let (head, unicast_leg) = (super::feeds::head(&open), open.unicast_leg());
            if self.told_heads.get(&feed) != Some(&(head, unicast_leg)) {
                if self.told_heads.insert(feed.clone(), (head, unicast_leg)).is_none() {
                    let rule = open.line().duplicate_rule.into();
                    self.tell(HubInput::Duplicates { feed: feed.clone(), rule });
                }
                self.tell(HubInput::Feed { feed, epoch: open.epoch(), head, unicast_leg });
            }
        }
    }

    fn read(&mut self, feed: FeedName, after: Sequence, to: Sequence, limit_bytes: usize) {
        let batch =
            self.hub.feeds.find(&feed).map(|open| open.log.read(after, to, limit_bytes, READ_ENTRIES));
        let (entries, read_to) = match batch {
            Some(Ok(batch)) => (batch.entries, batch.read_to),
            Some(Err(error)) => {
                self.hub.fault(format!("the log of feed {feed} can't be read: {error}"), Some(&feed));
                (Vec::new(), to)
            }
            None => (Vec::new(), to),
        };
        let entries =
            entries.into_iter().map(|entry| Entry { info: entry.info, bytes: entry.bytes }).collect();
        self.tell(HubInput::Entries { feed, after, entries, read_to });
    }

    fn event(&mut self, event: HubEvent) {
        match event {
            HubEvent::Hello(hello) => self.software = Some(hello.software),
            HubEvent::FirstByte { key } => {
                self.first_bytes.insert(key, self.hub.clock.wall());
                if self.first_bytes.len() > FIRST_BYTES_KEPT {
                    self.first_bytes.pop_first();
                }
            }
            HubEvent::Sent { key, leg, size, .. } => self.hub.counters.sent(&key.feed, leg, size),
            HubEvent::LegJoined { leg, after } => self.leg_joined(leg, after),
            HubEvent::LegLeft(left) => self.leg_left(left),
            HubEvent::Nak { leg, leg_epoch, packets } => {
                if let Some(member) = &self.member {
                    lock(&self.hub.plans).nak(member.handle.serial, leg, leg_epoch, packets);
                }
            }
            HubEvent::Receipts { clock, items } => self.receipts(clock, &items),
            HubEvent::Frontier(frontier) => {
                if let Some(member) = self.member_of(&frontier.feed) {
                    lock(&self.hub.batches).frontier(&member.site, &frontier);
                    let stands = (frontier.settled_to, frontier.pending);
                    lock(&member.handle.status).frontiers.insert(frontier.feed, stands);
                }
            }
            HubEvent::Violation(sentence) => {
                self.reason = Some(format!("the site broke the protocol: {sentence}"))
            }
            HubEvent::Dead => self.reason = Some("nothing was heard from the site".to_owned()),
        }
    }

    /// The site, if there is such a feed: a site can name what it likes.
    fn member_of(&self, feed: &FeedName) -> Option<&Member> {
        self.member.as_ref().filter(|_| self.hub.feeds.find(feed).is_some())
    }

    fn leg_joined(&self, leg: LegId, after: Sequence) {
        let Some(member) = &self.member else { return };
        let Some(feed) = lock(&self.hub.plans).feed_of(leg) else { return };
        lock(&member.handle.status).joined.insert(feed.clone(), leg);
        let site = member.site.clone();
        self.hub.event(&Event::Leg { feed, leg, site, state: "joined", after: Some(after), reason: None });
    }

    fn leg_left(&self, left: LegLeft) {
        let Some(member) = &self.member else { return };
        let feed = {
            let mut status = lock(&member.handle.status);
            let feed =
                status.joined.iter().find(|(_, joined)| **joined == left.leg).map(|(feed, _)| feed.clone());
            if let Some(feed) = &feed {
                status.joined.remove(feed);
            }
            feed
        };
        let Some(feed) = feed.or_else(|| lock(&self.hub.plans).feed_of(left.leg)) else { return };
        let state = if left.known_to.is_some() { "left" } else { "never-heard" };
        let (site, leg) = (member.site.clone(), left.leg);
        self.hub.event(&Event::Leg {
            feed,
            leg,
            site,
            state,
            after: left.known_to,
            reason: Some(left.reason),
        });
        self.offer_again_later(member);
    }

    /// A site that lost its leg gets another chance, as long as the plan wants it there.
    fn offer_again_later(&self, member: &Member) {
        let (hub, site, serial) = (Arc::downgrade(&self.hub), member.site.clone(), member.handle.serial);
        tokio::spawn(async move {
            tokio::time::sleep(OFFER_AGAIN).await;
            let Some(hub) = hub.upgrade() else { return };
            if let Some(handle) = hub.roster.session(&site).filter(|handle| handle.serial == serial) {
                hub.place_site(&site, &handle);
            }
        });
    }

    fn receipts(&mut self, clock: Option<ClockOffset>, items: &[Receipt]) {
        let Some(member) = &self.member else { return };
        if clock.is_some() {
            lock(&member.handle.status).clock = clock;
        }
        let known = items.iter().filter(|receipt| self.hub.feeds.find(&receipt.key.feed).is_some());
        let known: Vec<&Receipt> = known.collect();
        let plans = lock(&self.hub.plans);
        let mut batches = lock(&self.hub.batches);
        for receipt in known {
            let by_unicast = self.first_bytes.remove(&receipt.key);
            let first_byte = by_unicast.or_else(|| plans.first_byte(receipt.leg, receipt.key.sequence));
            batches.receipt(&member.site, receipt, clock, first_byte);
        }
    }

    fn tell_session(&self, state: &'static str, reason: Option<String>) {
        self.hub.event(&Event::Session {
            site: self.member.as_ref().map(|member| member.site.clone()),
            state,
            peer: self.peer.to_string(),
            reason,
            software: self.software.clone(),
        });
    }

    fn leave(self) {
        if let Some(member) = &self.member {
            self.hub.roster.unregister(&member.site, member.handle.serial);
            self.tell_session("closed", self.reason.clone());
        }
        if let Some(stranger) = &self.stranger {
            let sentence = self.reason.as_deref().unwrap_or("it was closed by the other side");
            if stranger.ended(sentence) && self.reason.is_some() {
                self.tell_session("refused", self.reason.clone());
            }
        }
    }
}

async fn or_never<F: Future>(future: Option<F>) -> F::Output {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

const IN_BYTES: usize = 64 << 10;
const READ_ENTRIES: usize = 256;
const REPAIR_QUEUE: usize = 1_024;
const FIRST_BYTES_KEPT: usize = 16_384;
const WAKE_INTERVAL: Duration = Duration::from_secs(1);
const CLOSING_WAKE_INTERVAL: Duration = Duration::from_millis(50);

/// A peer that does not take its last words loses them: a revoked site is gone within a second, whatever it does.
const CLOSE_PATIENCE: Micros = Micros::from_millis(400);
const CLOSE_LIMIT: Duration = Duration::from_millis(400);

/// Long against the time a site needs to find a leg silent, so that a broken group costs little.
const OFFER_AGAIN: Duration = Duration::from_secs(15);
