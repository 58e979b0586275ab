//! One task per connected site: drives the hub's half of the session with a TLS stream and the logs.
mod admission;
mod belief;
mod circuits;
mod credentials;
mod ending;
mod flood;
mod late;
mod legs;
mod resends;
mod streams;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use downburst_hub::{FirstBytes, LookPace, Noted, shown};
use downburst_log::ProductLog as _;
use downburst_model::{
    FeedName, Machine as _, Micros, ProductKey, Sequence, SiteName, Transport, WallMicros,
};
use downburst_session::{
    ClockOffset, Frontier, HubEvent, HubInput, HubOutput, HubSession, LIVENESS_LIMIT, Outcome, Purpose,
    Receipt, RefusalCode, Refused, StreamId,
};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_rustls::server::TlsStream;

use super::accept::{Counted, EVICTED};
use super::outbound::{OUT_LIMIT_BYTES, Outbound};
use super::pending_connections::PendingConnection;
use super::reading::{Read, Wanted};
use super::receipts::Row;
use super::roster::{Command, Handle, Repair};
use super::session_socket::{Moved, SessionSocket};
use super::watched::Watched;
use super::{Hub, data, lock};
use crate::lines::EnrolAnswer;
use crate::tls;
use admission::Asked;
pub(super) use resends::ReadForResend;
use streams::Streams;

/// Serves the first connection of a session, and those that it has opened, until either side ends the first.
/// `heard` is what was read of it already.
pub(super) async fn serve(
    hub: Arc<Hub>,
    stream: TlsStream<Counted>,
    pending: PendingConnection,
    heard: Bytes,
) {
    let mut machine = admission::machine(&hub);
    machine.handle(hub.clock.now(), HubInput::Room { stream: StreamId::FIRST, bytes: OUT_LIMIT_BYTES });
    let mut session = Session {
        stopping: hub.stopping.subscribe(),
        hub,
        peer: pending.peer,
        pending: Some(pending),
        machine,
        out: Outbound::new(),
        closing: None,
        reason: None,
        software: None,
        stand_by: false,
        asked: None,
        wants_credential: false,
        member: None,
        subscribed: BTreeSet::new(),
        watched: Watched::new(),
        pace: LookPace::default(),
        look_at: None,
        first_bytes: FirstBytes::default(),
        streams: Box::default(),
        bad_resend_reads: 0,
        late: late::Late::default(),
        flood: downburst_hub::Flood::default(),
        port: None,
        told_unanswered: false,
        claimed: BTreeMap::new(),
        told_passed_over: None,
    };
    let socket = SessionSocket::new(stream);
    session.port = socket.local_port();
    session.hear(heard);
    session.run(socket).await;
}

struct Session {
    hub: Arc<Hub>,
    peer: SocketAddr,
    /// Until the site is let in.
    pending: Option<PendingConnection>,
    machine: HubSession,
    out: Outbound,
    /// Since when only what waits is sent.
    closing: Option<Micros>,
    reason: Option<String>,
    software: Option<String>,
    /// The site wants no feeds.
    stand_by: bool,
    asked: Option<Asked>,
    /// The site was asked for another credential, and may offer one.
    wants_credential: bool,
    member: Option<Member>,
    stopping: watch::Receiver<bool>,
    subscribed: BTreeSet<FeedName>,
    watched: Watched,
    pace: LookPace,
    /// Feeds have grown and are looked at then.
    look_at: Option<Micros>,
    first_bytes: FirstBytes,
    streams: Box<Streams>,
    bad_resend_reads: u32,
    late: late::Late,
    flood: downburst_hub::Flood,
    /// The port that the site came to.
    port: Option<u16>,
    /// The operator knows that the site's datagrams get no answer.
    told_unanswered: bool,
    /// Numbers above all that a log gave, of which the site's hello was believed: the log was restored from a backup.
    claimed: BTreeMap<FeedName, Sequence>,
    /// When the operator was last told of receipts that do not count.
    told_passed_over: Option<Micros>,
}

/// A site that was let in.
struct Member {
    site: SiteName,
    handle: Handle,
    commands: mpsc::UnboundedReceiver<Command>,
    repairs: mpsc::Receiver<Repair>,
}

enum Woken {
    Moved(Moved),
    Evicted,
    Answered(Option<EnrolAnswer>),
    Command(Option<Command>),
    Repair(Option<Repair>),
    Grown,
    Stopping,
    Data(data::Woken),
    Deadline,
}

impl Session {
    async fn run(mut self, mut socket: SessionSocket) {
        loop {
            self.perform();
            self.share_late();
            if self.is_over() {
                break;
            }
            self.look_after_flood(&socket);
            if self.look_at_streams(&socket) {
                continue;
            }
            let woken = self.wait(&mut socket).await;
            if !self.take(woken) {
                break;
            }
        }
        // A peer that left bytes unread would not take the end of the stream either.
        if self.out.is_empty() {
            let _ = tokio::time::timeout(CLOSE_LIMIT, socket.shut_down()).await;
        }
        self.leave();
    }

    /// True when nothing is left to say, or the peer had all the time it may have.
    fn is_over(&mut self) -> bool {
        let now = self.hub.clock.monotonic();
        if self.closing.is_some_and(|since| self.out.is_empty() || now.since(since) >= CLOSE_PATIENCE) {
            return true;
        }
        let sentence = match &self.pending {
            Some(pending) if pending.limits.late(now).is_some() => {
                pending.limits.late(now).unwrap_or_default()
            }
            _ if self.out.is_stuck(now, LIVENESS_LIMIT) => "the site did not read the data sent to it",
            _ => return false,
        };
        self.reason.get_or_insert_with(|| sentence.to_owned());
        true
    }

    async fn wait(&mut self, socket: &mut SessionSocket) -> Woken {
        let deadline = self.deadline();
        let asked = self.asked.as_mut();
        let (commands, repairs) = match self.member.as_mut() {
            Some(member) => (Some(&mut member.commands), Some(&mut member.repairs)),
            None => (None, None),
        };
        // A site that is slow to take its bytes gets no further repairs queued; it asks again.
        let takes_repairs = self.out.has_room();
        tokio::select! {
            moved = socket.moved(&self.out, self.closing.is_none()) => Woken::Moved(moved),
            woken = self.streams.links.moved() => Woken::Data(woken),
            () = or_never(self.pending.as_mut().map(PendingConnection::evicted)) => Woken::Evicted,
            answer = or_never(asked.map(|asked| &mut asked.answer)) => Woken::Answered(answer.ok()),
            command = or_never(commands.map(mpsc::UnboundedReceiver::recv)) => Woken::Command(command),
            repair = or_never(repairs.map(mpsc::Receiver::recv)), if takes_repairs => Woken::Repair(repair),
            () = self.watched.notified(), if self.look_at.is_none() => Woken::Grown,
            _ = self.stopping.wait_for(|stop| *stop), if self.closing.is_none() => Woken::Stopping,
            () = tokio::time::sleep_until(deadline) => Woken::Deadline,
        }
    }

    /// When there is something to do even if nothing happens.
    fn deadline(&self) -> Instant {
        let now = self.hub.clock.monotonic();
        let due = [
            self.machine.deadline(),
            self.look_at,
            self.out.stuck_at(LIVENESS_LIMIT),
            self.pending.as_ref().map(|pending| pending.limits.late_at()),
            self.closing.map(|since| since.plus(CLOSE_PATIENCE)),
            self.streams.links.stuck_at(LIVENESS_LIMIT),
            self.streams_due(),
            self.flood.due(),
        ];
        let due = due.into_iter().flatten().min();
        Instant::now() + due.map_or(LONGEST_SLEEP, |due| Duration::from_micros(due.since(now).0))
    }

    /// Takes what woke the task; false ends the session.
    fn take(&mut self, woken: Woken) -> bool {
        match woken {
            Woken::Moved(Moved::Read(Ok(bytes))) if bytes.is_empty() => return self.ended_by_the_site(),
            Woken::Moved(Moved::Read(Ok(bytes))) => {
                if let Some(member) = &self.member {
                    lock(&member.handle.status).heard_at = self.hub.clock.monotonic();
                }
                // What the site says may end a leg: the machine must know what the leg brought meanwhile.
                self.tell_grown();
                self.hear(bytes);
            }
            Woken::Moved(Moved::Sent(Ok(taken))) => {
                self.out.taken(self.hub.clock.monotonic(), &taken);
                if taken.bytes > 0 {
                    self.streams.sent(taken.bytes);
                    self.tell(HubInput::Room { stream: StreamId::FIRST, bytes: taken.bytes });
                }
            }
            Woken::Evicted => {
                self.reason.get_or_insert_with(|| EVICTED.to_owned());
                return false;
            }
            Woken::Moved(Moved::Read(Err(error)) | Moved::Sent(Err(error))) => {
                self.reason.get_or_insert_with(|| tls::broken(&error));
                return false;
            }
            Woken::Answered(answer) => self.answered(answer),
            Woken::Command(Some(command)) => self.command(command),
            Woken::Repair(Some(repair)) => self.repair(repair),
            Woken::Command(None) | Woken::Repair(None) => {}
            Woken::Deadline => self.look_if_due(),
            Woken::Grown => self.look(),
            Woken::Data(woken) => self.data_moved(woken),
            Woken::Stopping => {
                let sentence = "the hub stops; connect again in a moment".to_owned();
                self.refuse(Refused { code: RefusalCode::Unavailable, sentence });
            }
        }
        true
    }

    fn hear(&mut self, heard: Bytes) {
        if let Some(pending) = &self.pending {
            pending.took(heard.len());
        }
        self.tell(HubInput::Bytes { stream: StreamId::FIRST, bytes: heard });
    }

    fn tell(&mut self, input: HubInput) {
        self.machine.handle(self.hub.clock.now(), input);
    }

    /// Does what the machine asks for until it asks for nothing.
    fn perform(&mut self) {
        while let Some(output) = self.machine.poll(self.hub.clock.now()) {
            match output {
                HubOutput::Write { stream, bytes, purpose } => self.write(stream, bytes, &purpose),
                HubOutput::Authenticate(proof) => {
                    self.stand_by = self.machine.stands_by();
                    self.authenticate(proof);
                }
                HubOutput::Read { feed, after, filter, .. } => {
                    self.read(Wanted::new(feed, after, filter));
                }
                HubOutput::ReadResend { resend, feed, after, to, limit_bytes } => {
                    self.read_resend(resend, &feed, (after, to), limit_bytes);
                }
                HubOutput::FindTime { feed, time } => {
                    let after =
                        self.hub.feeds.find(&feed).map_or(Sequence(0), |open| open.log.find_time(time));
                    self.tell(HubInput::FoundTime { feed, after });
                }
                HubOutput::DrawTicket(stream) => self.draw_ticket(stream),
                HubOutput::CloseStream(stream) => self.close_stream(stream),
                HubOutput::Event(event) => self.event(event),
                HubOutput::Close => self.closing = Some(self.hub.clock.monotonic()),
            }
        }
    }

    fn write(&mut self, stream: StreamId, bytes: Bytes, purpose: &Purpose) {
        let (now, length) = (self.hub.clock.monotonic(), bytes.len());
        match stream {
            StreamId::FIRST => self.out.push(now, bytes),
            stream => self.streams.links.push(now, stream, bytes),
        }
        match purpose {
            Purpose::Control => {}
            Purpose::Product { feed, leg } => self.hub.counters.session_bytes(feed, *leg, length, false),
            Purpose::Repair { leg } => {
                let feed = lock(&self.hub.plans).feed_of(*leg);
                if let Some(feed) = feed {
                    self.hub.counters.session_bytes(&feed, *leg, length, true);
                }
            }
        }
    }

    fn refuse(&mut self, refused: Refused) {
        self.reason = Some(refused.sentence.clone());
        self.tell(HubInput::Refuse(refused));
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Subscriptions => self.subscriptions_changed(),
            Command::LookAtFeeds => {
                let news = self.watched.look_for(&self.subscribed, &self.hub.feeds);
                self.tell_all(news);
                self.tell_resends();
            }
            Command::Resends => self.tell_resends(),
            Command::Join(join) => self.join_leg(*join),
            Command::Leave(leg) => self.tell(HubInput::LeaveLeg(leg)),
            Command::NextKey(next) => self.tell(HubInput::NextKey(*next)),
            Command::Refuse(refused) => self.refuse(refused),
            Command::Read(wanted) => self.read(*wanted),
            Command::Fetched(stretch) => self.tell(HubInput::Stretch(stretch)),
            Command::FetchedForResend(fetched) => self.resend_is_read(*fetched),
            Command::Where { products, answer } => {
                let _ = answer.send(self.view(&products));
            }
            Command::Attach(attached) => self.attach(attached),
            Command::Streams(pinned) => self.pin_streams(pinned),
            Command::Pace => self.pace(),
            Command::WantCredential => self.want_credential(),
            Command::TellCredential => self.tell_credential(),
            Command::Circuit(offer) => self.tell(HubInput::OfferCircuit(offer)),
            Command::EndCircuit(end) => self.tell(HubInput::EndCircuit(end)),
            Command::LookAtPath => self.look_at_path(),
        }
    }

    /// Looks at the feeds that have grown, or a little later with others.
    fn look(&mut self) {
        match self.pace.look(self.hub.clock.monotonic()) {
            Ok(()) => self.tell_grown(),
            Err(at) => self.look_at = Some(at),
        }
    }

    fn look_if_due(&mut self) {
        let now = self.hub.clock.monotonic();
        if self.look_at.take_if(|at| *at <= now).is_some() {
            self.look();
        }
    }

    fn tell_grown(&mut self) {
        let news = self.watched.grown();
        self.tell_all(news);
    }

    fn tell_subscribed(&mut self) {
        let news = self.watched.subscribe(&self.subscribed, &self.hub.feeds);
        self.tell_all(news);
        self.follow_legs();
    }

    fn tell_all(&mut self, inputs: Vec<HubInput>) {
        for input in inputs {
            self.tell(input);
        }
    }

    fn read(&mut self, wanted: Wanted) {
        let handle = self.member.as_ref().map(|member| &member.handle);
        match wanted.read(&self.hub) {
            Read::Done(stretch) => self.tell(HubInput::Stretch(stretch)),
            Read::Elsewhere => wanted.fetch(&self.hub, handle),
            Read::Failed => wanted.again_later(handle),
        }
    }

    fn event(&mut self, event: HubEvent) {
        match event {
            HubEvent::Hello(hello) => {
                self.believe_hello(&hello);
                self.begin_streams();
                self.software = Some(shown(&hello.software));
                // It follows the admission; before it nobody knows which program the site runs.
                self.tell_session("connected", None);
            }
            HubEvent::FirstByte { key } => {
                let number = key.sequence.0;
                self.first_bytes.insert(key.feed, key.epoch, (number, number), self.hub.clock.wall());
            }
            HubEvent::Sent { key, leg, size, .. } => self.hub.counters.sent(&key.feed, leg, 1, size),
            HubEvent::TrainSent(train) => {
                self.hub.counters.sent(&train.feed, train.leg, train.products, train.product_bytes);
                let numbers = (train.first.0, train.last.0);
                self.first_bytes.insert(train.feed, train.epoch, numbers, self.hub.clock.wall());
            }
            HubEvent::Resent(end) => self.resent(end),
            HubEvent::ResentRejected(key) => self.hub.recheck([&key]),
            HubEvent::Late(late) => {
                if let Some(member) = self.member_of(&late.feed) {
                    member.handle.change().late.insert(late.feed, late.products);
                }
            }
            HubEvent::HeartbeatOut(out) => self.heartbeat_out(&out),
            HubEvent::CredentialOffered(offered) => self.credential_offered(offered),
            HubEvent::CredentialShown(shown) => self.credential_shown(&shown),
            HubEvent::LegJoined { leg, after, reception } => self.leg_joined(leg, after, reception),
            HubEvent::LegLeft(left) => self.leg_left(left),
            HubEvent::KeyTaken(taken) => {
                if let Some(member) = &self.member {
                    lock(&self.hub.plans).key_taken(&member.site, taken);
                }
            }
            HubEvent::Nak { leg, leg_epoch, request } => self.nak(leg, leg_epoch, request),
            HubEvent::Forged(forged) => self.forged(forged),
            HubEvent::Receipts { clock, items } => self.receipts(clock, &items),
            HubEvent::Filed(items) => self.filed(items),
            HubEvent::Frontier(frontier) => self.frontier(frontier),
            HubEvent::Circuit(state) => self.circuit_said(state),
            HubEvent::StreamOpened(_) => self.count_streams(1),
            HubEvent::StreamClosed { stream, reason } => self.stream_closed(stream, &reason),
            HubEvent::Violation(sentence) => self.violated(&sentence),
            HubEvent::Dead => self.reason = Some("the site sent nothing in time".to_owned()),
        }
    }

    fn frontier(&mut self, frontier: Frontier) {
        if self.believes(&frontier.feed, frontier.epoch, frontier.settled_to)
            && let Some(member) = self.member_of(&frontier.feed)
        {
            lock(&self.hub.batches).frontier(&member.site, &frontier);
            self.note_position(&member.site, &frontier.feed);
            member.handle.change().stands(frontier);
        }
    }

    fn receipts(&mut self, clock: Option<ClockOffset>, items: &[Receipt]) {
        if !self.believes_receipts(items) {
            return;
        }
        let Some(member) = &self.member else { return };
        let clock = clock.and_then(|clock| lock(&self.hub.reference).of_site(clock));
        if clock.is_some() {
            member.handle.change().clock = clock;
        }
        self.note_waits(member, clock, items);
        let noted = self.noted(&member.site, items);
        let rejected = noted.iter().filter(|it| it.receipt.outcome == Outcome::Rejected);
        self.hub.recheck(rejected.map(|it| &it.receipt.key));
        let passed_over =
            lock(&self.hub.batches).receipts(&member.site, &noted, clock, self.hub.clock.wall());
        if passed_over > 0 {
            self.told_passed_over = self.tell_passed_over(passed_over);
        }
        if lock(&self.hub.batches).is_large() {
            self.hub.write_batch();
        }
        let row = |noted: &Noted<'_>| Row::new(noted.receipt.clone(), noted.first_byte);
        self.hub.receipts.record(&member.site, clock, noted.iter().map(row).collect());
    }

    /// The receipts of logs that exist and that the site may take, each with the time when its product's
    /// first byte left the hub. A site can name any log.
    fn noted<'a>(&self, site: &SiteName, receipts: &'a [Receipt]) -> Vec<Noted<'a>> {
        let mut noted = Vec::with_capacity(receipts.len());
        let of_one_log =
            |one: &Receipt, next: &Receipt| one.key.epoch == next.key.epoch && one.key.feed == next.key.feed;
        for of_log in receipts.chunk_by(of_one_log) {
            let is_of =
                |key: &ProductKey| self.hub.feeds.find(&key.feed).is_some_and(|it| it.epoch() == key.epoch);
            let counts = |key: &ProductKey| is_of(key) && self.hub.roster.may_take(site, &key.feed);
            let known = of_log.first().is_some_and(|it| counts(&it.key));
            let of_log = of_log.iter().filter(|_| known);
            noted.extend(of_log.map(|receipt| {
                let first_byte = self.first_byte(receipt);
                Noted { receipt, first_byte }
            }));
        }
        noted
    }

    fn first_byte(&self, receipt: &Receipt) -> Option<WallMicros> {
        let at = match receipt.transport {
            Transport::Multicast => lock(&self.hub.plans).first_byte(receipt.leg, receipt.key.sequence),
            _ => self.first_bytes.find(&receipt.key),
        };
        lock(&self.hub.reference).moment(at?)
    }
}

async fn or_never<F: Future>(future: Option<F>) -> F::Output {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

const REPAIR_QUEUE: usize = 1_024;
const LONGEST_SLEEP: Duration = Duration::from_secs(3_600);

/// A peer that does not take its last words loses them: a revoked site is gone within a second, whatever it does.
const CLOSE_PATIENCE: Micros = Micros::from_millis(400);
const CLOSE_LIMIT: Duration = Duration::from_millis(400);
