//! One thread per multicast leg: reads the feed's log, drives the VCMTP sender, paces datagrams to the group.
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use bytes::Bytes;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use downburst_log::ProductLog as _;
use downburst_model::{LegId, Machine as _, Micros, Now, Sequence, SiteName, WallMicros};
use downburst_session::{KeyTaken, LegJoin};
use downburst_vcmtp::{
    LegKey, LegRate, Request, Sender as VcmtpSender, SenderConfig, SenderInput, SenderOutput, SenderStats,
    SiteSecret,
};

use super::channels::Channel;
use super::feeds::Feed;
use super::leg_keys::{self, KeyCommand, LegKeys, SharedKeys};
use super::leg_proofs::ProofSecrets;
use super::leg_size::LegInterface;
use super::roster::{Handle, Repair};
use super::wake_ups::LogListener;
use super::{Hub, lock};
use crate::lines::{Failure, LegLine};
use crate::udp::{GroupSender, Outlet};

/// A running multicast leg, seen from outside its thread.
pub(super) struct Leg {
    /// What a site needs to join; the interface is filled in per site.
    pub(super) join: LegJoin,
    keys: SharedKeys,
    commands: Sender<Command>,
    backlog_bytes: Arc<AtomicU64>,
    first_bytes: FirstBytes,
    proof_secrets: ProofSecrets,
}

enum Command {
    Keys(KeyCommand),
    Reader { session: u64, secret: Option<SiteSecret> },
    Nak { session: u64, request: Request, channel: Option<Arc<Channel>> },
    Forged,
    Listener,
    Rate(u64),
    Stop,
}

/// When the first byte of a product left, for the latest products.
pub(super) type FirstBytes = Arc<Mutex<BTreeMap<Sequence, WallMicros>>>;

impl Leg {
    /// Starts a leg that carries everything of `feed` from its present head on.
    pub(super) fn start(hub: &Arc<Hub>, feed: &Arc<Feed>, line: &LegLine) -> Result<Self, Failure> {
        let group: SocketAddr = parse_group(line)?;
        let socket = GroupSender::open(group, &outlet(hub, line)).map_err(|error| {
            Failure::new(
                "io",
                format!(
                    "the multicast leg to {group} can't be opened: {error}; check the hub's multicast interface"
                ),
            )
        })?;
        let key = leg_keys::first_key().map_err(|error| Failure::new("io", error))?;
        let proof_secrets = ProofSecrets::draw().map_err(|error| Failure::new("io", error))?;
        let leg_epoch = super::feeds::random_u64().map_err(|error| Failure::new("io", error))?;
        let after = feed.log.head();
        let mut config = config(line, leg_epoch, key.clone(), after, group);
        let link = LegInterface { mtu_bytes: socket.mtu_bytes(), is_circuit: line.circuit.is_some() };
        config.datagram_bytes = link.datagram_bytes(line.leg, &hub.roster.sessions());
        config.signing_seed = Some(leg_keys::signing_seed().map_err(|error| Failure::new("io", error))?);
        let datagram_bytes = config.datagram_bytes;
        let sender = VcmtpSender::new(config);
        let sender_key = sender.key();
        let (source, path) = (socket.source(), socket.path());
        tracing::info!(leg = line.leg.0, %group, %source, path, rate_bps = line.rate_bps, "a leg begins");
        let (commands, command_stream) = unbounded();
        let (wake, wakes) = bounded(1);
        let listener = feed.wake_ups.register(move || {
            let _ = wake.try_send(());
        });
        let first_bytes = FirstBytes::default();
        let backlog_bytes = Arc::new(AtomicU64::new(0));
        let keys = LegKeys::new(hub.clock.monotonic(), feed.name(), (line.leg, leg_epoch), key.clone());
        let shared_keys = keys.shared();
        let thread = Thread {
            keys,
            hub: Arc::downgrade(hub),
            feed: Arc::clone(feed),
            listener,
            leg: line.leg,
            leg_epoch,
            sender,
            rate: LegRate::new(line.rate_bps, line.loss_quantile),
            link,
            datagram_bytes,
            socket,
            cursor: after,
            told: SenderStats::default(),
            backlog_bytes: Arc::clone(&backlog_bytes),
            first_bytes: Arc::clone(&first_bytes),
            channels: BTreeMap::new(),
            readers: BTreeMap::new(),
            send_failed: false,
        };
        std::thread::Builder::new()
            .name(format!("leg-{}", line.leg.0))
            .spawn(move || thread.run(&command_stream, &wakes))
            .map_err(|error| Failure::new("io", format!("no thread for leg {}: {error}", line.leg.0)))?;
        let join = LegJoin {
            leg: line.leg,
            feed: feed.name(),
            epoch: feed.epoch(),
            leg_epoch,
            group: group.ip().to_string(),
            port: group.port(),
            key,
            key_in_use: None,
            sender_key,
            proof_secret: None,
            interface: String::new(),
            rate_bps: line.rate_bps,
            source: Some(source.to_string()),
            channel: None,
        };
        Ok(Self { join, keys: shared_keys, commands, backlog_bytes, first_bytes, proof_secrets })
    }

    /// What this site needs to join; the leg notes that it has the keys.
    pub(super) fn join_of(&self, hub: &Hub, site: &SiteName, handle: &Handle, interface: String) -> LegJoin {
        let (key, key_in_use) = lock(&self.keys).for_join();
        let (session, commands) = (handle.serial, self.commands.clone());
        let channel = hub.channels.draw(session, self.join.leg, key.cipher, move |channel, request| {
            let channel = Some(Arc::clone(channel));
            let _ = commands.send(Command::Nak { session, request, channel });
        });
        let credential = handle.credential_sha256.clone();
        let _ = self.commands.send(Command::Keys(KeyCommand::Told { site: site.clone(), credential }));
        let secret = self.proof_secrets.of(session);
        let _ = self.commands.send(Command::Reader { session, secret: Some(secret.clone()) });
        LegJoin {
            interface,
            key,
            key_in_use,
            channel,
            proof_secret: Some(Box::new(secret)),
            ..self.join.clone()
        }
    }

    pub(super) fn key_taken(&self, site: &SiteName, taken: KeyTaken) {
        if taken.leg_epoch == self.join.leg_epoch {
            let (site, key_id) = (site.clone(), taken.key_id);
            let _ = self.commands.send(Command::Keys(KeyCommand::Taken { site, key_id }));
        }
    }

    pub(super) fn credential_taken(&self, site: &SiteName, former: &str, credential: &str) {
        let (site, former, credential) = (site.clone(), former.to_owned(), credential.to_owned());
        let _ = self.commands.send(Command::Keys(KeyCommand::Renewed { site, former, credential }));
    }

    pub(super) fn look_at_rights(&self) {
        let _ = self.commands.send(Command::Keys(KeyCommand::LookAtRights));
    }

    pub(super) fn nak(&self, session: u64, leg_epoch: u64, request: Request) {
        if leg_epoch == self.join.leg_epoch {
            let _ = self.commands.send(Command::Nak { session, request, channel: None });
        }
    }

    /// A site sees packets that are not ours.
    pub(super) fn forged(&self, leg_epoch: u64) {
        if leg_epoch == self.join.leg_epoch {
            let _ = self.commands.send(Command::Forged);
        }
    }

    /// A site is told to join: it shall hear the leg at once, although nothing is to be sent.
    pub(super) fn expect_listener(&self) {
        let _ = self.commands.send(Command::Listener);
    }

    pub(super) fn rate(&mut self, rate_bps: u64) {
        self.join.rate_bps = rate_bps;
        let _ = self.commands.send(Command::Rate(rate_bps));
    }

    pub(super) fn stop(&self) {
        let _ = self.commands.send(Command::Stop);
    }

    pub(super) fn backlog_bytes(&self) -> u64 {
        self.backlog_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn first_byte(&self, sequence: Sequence) -> Option<WallMicros> {
        lock(&self.first_bytes).get(&sequence).copied()
    }
}

struct Thread {
    keys: LegKeys,
    hub: Weak<Hub>,
    feed: Arc<Feed>,
    listener: LogListener,
    leg: LegId,
    leg_epoch: u64,
    sender: VcmtpSender,
    rate: LegRate,
    link: LegInterface,
    /// As long as they may be now.
    datagram_bytes: usize,
    socket: GroupSender,
    cursor: Sequence,
    told: SenderStats,
    backlog_bytes: Arc<AtomicU64>,
    first_bytes: FirstBytes,
    /// Sessions whose last request came by a repair channel.
    channels: BTreeMap<u64, Arc<Channel>>,
    /// Sessions that were given the key, and when: proofs have to convince them.
    readers: BTreeMap<u64, Micros>,
    send_failed: bool,
}

impl Thread {
    fn run(mut self, commands: &Receiver<Command>, wakes: &Receiver<()>) {
        while let Some(hub) = self.hub.upgrade() {
            // Before the head is looked at: what comes afterwards rings again.
            self.listener.take();
            self.read_log(&hub);
            self.keys.drive(&hub, &mut self.sender);
            self.send(&hub);
            self.tell(&hub);
            self.adapt(&hub);
            let patience = self.patience(&hub);
            drop(hub);
            let command = crossbeam_channel::select! {
                recv(commands) -> command => command.map_err(|_| RecvTimeoutError::Disconnected),
                recv(wakes) -> _ => Err(RecvTimeoutError::Timeout),
                default(patience) => Err(RecvTimeoutError::Timeout),
            };
            match command {
                Ok(command) => {
                    if self.take(command).is_break() {
                        return;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn take(&mut self, command: Command) -> std::ops::ControlFlow<()> {
        let Some(hub) = self.hub.upgrade() else { return std::ops::ControlFlow::Break(()) };
        let now = hub.clock.now();
        match command {
            Command::Keys(command) => self.keys.take(&hub, command),
            Command::Nak { session, request, channel } => {
                match channel {
                    Some(channel) => drop(self.channels.insert(session, channel)),
                    None => drop(self.channels.remove(&session)),
                }
                self.rate.lost(now.monotonic, session, &request, self.sender.stats().packets);
                self.sender.handle(now, SenderInput::Nak { site: session, request });
            }
            Command::Reader { session, secret } => {
                self.readers.insert(session, now.monotonic);
                self.sender.handle(now, SenderInput::Reader { site: session, secret });
            }
            Command::Forged => self.sender.handle(now, SenderInput::Forged),
            Command::Listener => self.sender.handle(now, SenderInput::Listener),
            Command::Rate(rate_bps) => {
                self.rate.ask(rate_bps);
                self.sender.handle(now, SenderInput::Rate(rate_bps));
            }
            Command::Stop => return std::ops::ControlFlow::Break(()),
        }
        std::ops::ControlFlow::Continue(())
    }

    /// Takes what came into the log, while the sender has little to do.
    fn read_log(&mut self, hub: &Hub) {
        while self.cursor < self.feed.log.head() && self.has_room() {
            let batch = match self.feed.log.read(self.cursor, self.feed.log.head(), READ_BYTES, READ_ENTRIES)
            {
                Ok(batch) => batch,
                Err(error) => {
                    hub.fault(
                        format!("leg {} can't read the log: {error}", self.leg.0),
                        Some(&self.feed.name()),
                    );
                    return;
                }
            };
            let now = hub.clock.now();
            for entry in batch.entries {
                // A product evicted before it was sent is never announced: sites find the hole and learn that
                // it expired.
                if let Some(bytes) = entry.bytes {
                    self.sender.handle(now, SenderInput::Product { info: entry.info, bytes });
                }
            }
            self.cursor = batch.read_to;
        }
    }

    /// The log is read far ahead, because a warning may stand behind what is large or many.
    fn has_room(&self) -> bool {
        self.sender.backlog_products() < BACKLOG_LIMIT_PRODUCTS
            && self.sender.backlog_bytes() < BACKLOG_LIMIT_BYTES
    }

    fn send(&mut self, hub: &Hub) {
        let now = hub.clock.now();
        while let Some(output) = self.sender.poll(now) {
            match output {
                SenderOutput::Datagram(datagram) => {
                    let sent = self.socket.push(&datagram);
                    self.note(hub, sent);
                }
                SenderOutput::FirstByte(sequence) => self.first_byte(sequence, now.wall),
                SenderOutput::Sent(sequence) => self.sent(hub, sequence),
                SenderOutput::Repair { site, packet, payload } => self.repair(hub, site, packet, payload),
                SenderOutput::Gone { site, packets } => {
                    hub.roster
                        .repair(site, Repair::Gone { leg: self.leg, leg_epoch: self.leg_epoch, packets });
                }
            }
        }
        let flushed = self.socket.flush();
        self.note(hub, flushed);
    }

    /// Sent the way of the site's last request; datagrams would only be lost with the others on a link that
    /// is too narrow.
    fn repair(&self, hub: &Hub, session: u64, packet: u64, payload: Bytes) {
        match self.channels.get(&session).filter(|_| !self.rate.is_struggling(session)) {
            Some(channel) => {
                hub.counters.channel_bytes(&self.feed.name(), self.leg, payload.len());
                hub.channels.repair(channel, packet, payload);
            }
            None => {
                let repair = Repair::Packet { leg: self.leg, leg_epoch: self.leg_epoch, packet, payload };
                hub.roster.repair(session, repair);
            }
        }
    }

    /// A send that fails is a loss like any other: sites ask for it. It is said once until sending works again.
    fn note(&mut self, hub: &Hub, result: std::io::Result<()>) {
        match result {
            Ok(()) => self.send_failed = false,
            Err(error) if !self.send_failed => {
                self.send_failed = true;
                let sentence =
                    format!("leg {} can't send to its group: {error}; check the route to it", self.leg.0);
                hub.fault(sentence, Some(&self.feed.name()));
            }
            Err(_) => {}
        }
    }

    fn first_byte(&self, sequence: Sequence, at: WallMicros) {
        let mut first_bytes = lock(&self.first_bytes);
        first_bytes.insert(sequence, at);
        if first_bytes.len() > FIRST_BYTES_KEPT {
            first_bytes.pop_first();
        }
    }

    fn sent(&self, hub: &Hub, sequence: Sequence) {
        let entry = self.feed.log.entry(sequence).ok().flatten();
        if entry.as_ref().is_some_and(|entry| entry.info.id.is_heartbeat()) {
            return;
        }
        let size = entry.map_or(0, |entry| entry.info.size);
        hub.counters.sent(&self.feed.name(), self.leg, 1, size);
    }

    fn tell(&mut self, hub: &Hub) {
        let stats = self.sender.stats();
        self.backlog_bytes.store(stats.backlog_bytes, Ordering::Relaxed);
        if stats.datagram_bytes != self.told.datagram_bytes {
            hub.counters.datagrams(&self.feed.name(), self.leg, &self.told, &stats);
        }
        self.told = stats;
    }

    /// Goes slower while the sites lose together, and faster again when they don't.
    fn adapt(&mut self, hub: &Hub) {
        let now = hub.clock.now();
        if !self.rate.is_due(now.monotonic) {
            return;
        }
        let sessions = hub.roster.sessions();
        self.channels.retain(|session, _| sessions.values().any(|handle| handle.serial == *session));
        self.forget_readers(now, &sessions);
        self.fit(now, &sessions);
        let members = sessions.values().filter(|handle| lock(&handle.status).hears(self.leg)).count();
        self.sender.handle(now, SenderInput::Members(members as u64));
        let changed = self.rate.look(now.monotonic, self.told.packets, members);
        for straggler in self.rate.stragglers() {
            hub.take_off(self.leg, &straggler);
        }
        if let Some(rate_bps) = changed {
            tracing::info!(leg = self.leg.0, rate_bps, "the leg's rate follows the losses of its sites");
            self.sender.handle(now, SenderInput::Rate(rate_bps));
        }
    }

    /// The way to a site may be narrower than that to the others, and every datagram goes to all.
    fn fit(&mut self, now: Now, sessions: &BTreeMap<SiteName, Handle>) {
        let fitting = self.link.datagram_bytes(self.leg, sessions);
        if fitting != self.datagram_bytes {
            tracing::info!(
                leg = self.leg.0,
                bytes = fitting,
                "the leg's datagrams are as long as the ways to its sites carry"
            );
            self.datagram_bytes = fitting;
            self.sender.handle(now, SenderInput::DatagramBytes(fitting));
        }
    }

    /// Who left needs no proofs. One that was told to join a moment ago is not seen to take part yet.
    fn forget_readers(&mut self, now: Now, sessions: &BTreeMap<SiteName, Handle>) {
        let takes_part = |session: u64| {
            let handle = sessions.values().find(|handle| handle.serial == session);
            handle.is_some_and(|handle| lock(&handle.status).offered.values().any(|leg| *leg == self.leg))
        };
        let left = |(session, told): (&u64, &Micros)| {
            (now.monotonic.since(*told) >= JOIN_TIME && !takes_part(*session)).then_some(*session)
        };
        let left: Vec<u64> = self.readers.iter().filter_map(left).collect();
        for session in left {
            self.readers.remove(&session);
            self.sender.handle(now, SenderInput::ReaderLeft(session));
        }
    }

    fn patience(&self, hub: &Hub) -> Duration {
        let now = hub.clock.monotonic();
        let due = self.sender.deadline().into_iter().chain(self.keys.deadline()).min();
        due.map_or(IDLE, |due| Duration::from_micros(due.since(now).0)).min(IDLE)
    }
}

fn outlet(hub: &Hub, line: &LegLine) -> Outlet {
    let own = if line.interface.is_empty() { &hub.start.multicast_interface } else { &line.interface };
    Outlet { interface: own.clone(), hops: line.hops, offload: line.offload }
}

fn config(line: &LegLine, leg_epoch: u64, key: LegKey, after: Sequence, group: SocketAddr) -> SenderConfig {
    let config = SenderConfig::new(line.leg, leg_epoch, key, after, line.rate_bps);
    SenderConfig {
        burst_bytes: line.burst_bytes.unwrap_or(config.burst_bytes),
        most_parity: line.parity_percent / 100.0,
        repair_window: line
            .repair_seconds
            .map_or(config.repair_window, |seconds| Micros::from_secs(seconds.into())),
        frame_overhead_bytes: SenderConfig::frame_overhead_bytes_of(group.is_ipv6()),
        ..config
    }
}

fn parse_group(line: &LegLine) -> Result<SocketAddr, Failure> {
    let address = line.group.parse::<std::net::IpAddr>().ok().filter(std::net::IpAddr::is_multicast);
    match address {
        Some(address) if line.port != 0 && line.rate_bps > 0 => Ok(SocketAddr::new(address, line.port)),
        _ => Err(Failure::new(
            "bad-request",
            format!(
                "leg {} needs a multicast group, a port and a rate, not {:?} port {} at {} b/s",
                line.leg.0, line.group, line.port, line.rate_bps
            ),
        )),
    }
}

/// The sender's bound on unsent products; more stay in the log. A product takes its description, some 500
/// bytes: 32 MiB for all.
const BACKLOG_LIMIT_PRODUCTS: usize = 65_536;

/// Waiting bytes are the log's mapped pages and take no memory of their own, but the disk of a segment that
/// retention let go.
const BACKLOG_LIMIT_BYTES: u64 = 4 << 30;

const READ_BYTES: usize = 4 << 20;
const READ_ENTRIES: usize = 512;
const FIRST_BYTES_KEPT: usize = 65_536;
const IDLE: Duration = Duration::from_secs(1);

/// Between the telling and the session's note that the leg is offered.
const JOIN_TIME: Micros = Micros::from_secs(10);
