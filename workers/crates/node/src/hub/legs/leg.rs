//! Multicast legs, seen from outside their threads: the join parameters for sites, and the hub's inputs to the leg.
mod keys;
mod thread;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crossbeam_channel::{Sender, bounded, unbounded};
use downburst_hub::{CurrentKeys, LegInput, LegInterface, LegSettings, ProofSecrets};
use downburst_log::ProductLog as _;
use downburst_model::{LegId, Micros, Sequence, SiteName, WallMicros};
use downburst_session::{KeyTaken, LegJoin};
use downburst_vcmtp::{LegKey, Request, SenderConfig};

use crate::hub::feeds::Feed;
use crate::hub::feeds::wake_ups::LogListener;
use crate::hub::legs::channels::Channel;
use crate::hub::roster::Handle;
use crate::hub::{Hub, lock};
use crate::lines::{Failure, LegLine};
use crate::udp::{GroupSender, Outlet};
use thread::{Command, GroupOutlet, Thread};

/// A running multicast leg, seen from outside its thread.
pub(in crate::hub) struct Leg {
    /// The join parameters for a site; the interface is filled in per site.
    pub(in crate::hub) join: LegJoin,
    commands: Sender<Command>,
    shared: Arc<Shared>,
    proof_secrets: ProofSecrets,
}

/// The state of a leg's thread that the rest of the hub can read.
struct Shared {
    keys: Mutex<CurrentKeys>,
    backlog_bytes: AtomicU64,
    /// The time at which the first byte of a product was sent, for the latest products.
    first_bytes: Mutex<BTreeMap<Sequence, WallMicros>>,
}

/// The secrets and identifiers that are drawn at the start of a leg.
struct Drawn {
    key: LegKey,
    leg_epoch: u64,
    proof_secrets: ProofSecrets,
}

impl Leg {
    /// Starts a leg that carries every product of `feed` after its current head.
    pub(in crate::hub) fn start(hub: &Arc<Hub>, feed: &Arc<Feed>, line: &LegLine) -> Result<Self, Failure> {
        let group = parse_group(line)?;
        let socket = GroupSender::open(group, &outlet(hub, line)).map_err(|error| {
            Failure::new(
                "io",
                format!(
                    "the multicast leg to {group} can't be opened: {error}; check the hub's multicast interface"
                ),
            )
        })?;
        let drawn = Drawn::draw().map_err(|error| Failure::new("io", error))?;
        let settings = settings(feed, line, &drawn, (group, &socket))?;
        let open = thread::sessions_on(line.leg, &hub.roster.sessions());
        let machine = downburst_hub::Leg::new(hub.clock.monotonic(), settings, &open);
        let (source, path) = (socket.source(), socket.path());
        tracing::info!(leg = line.leg.0, %group, %source, path, rate_bps = line.rate_bps, "a leg begins");
        let join = LegJoin {
            sender_key: machine.sender_key(),
            source: Some(source.to_string()),
            ..join(feed, line, &drawn, group)
        };
        let shared = Arc::new(Shared::new(drawn.key));
        let life = (line.leg, drawn.leg_epoch);
        let commands = start_thread(feed, line.leg, |listener| {
            let outlet = GroupOutlet::new(socket);
            Thread::new(hub, feed, life, machine, (listener, outlet), Arc::clone(&shared))
        })?;
        Ok(Self { join, commands, shared, proof_secrets: drawn.proof_secrets })
    }

    /// The join parameters for this site; the leg notes that it has the keys.
    pub(in crate::hub) fn join_of(
        &self,
        hub: &Hub,
        site: &SiteName,
        handle: &Handle,
        interface: String,
    ) -> LegJoin {
        let (key, key_in_use) = lock(&self.shared.keys).for_join();
        let (session, commands) = (handle.serial, self.commands.clone());
        let channel = hub.legs.channels.draw(session, self.join.leg, key.cipher, move |channel, request| {
            let channel = Some(Arc::clone(channel));
            let _ = commands.send(Some(LegInput::Nak { session, request, channel }));
        });
        let credential = handle.credential_sha256.clone();
        self.tell(LegInput::KeysTold { site: site.clone(), credential });
        let secret = self.proof_secrets.of(session);
        self.tell(LegInput::Reader { session, secret: Some(secret.clone()) });
        LegJoin {
            interface,
            key,
            key_in_use,
            channel,
            proof_secret: Some(Box::new(secret)),
            ..self.join.clone()
        }
    }

    pub(in crate::hub) fn key_taken(&self, site: &SiteName, taken: KeyTaken) {
        if taken.leg_epoch == self.join.leg_epoch {
            self.tell(LegInput::KeyTaken { site: site.clone(), key_id: taken.key_id });
        }
    }

    pub(in crate::hub) fn credential_taken(&self, site: &SiteName, former: &str, credential: &str) {
        let (site, former, credential) = (site.clone(), former.to_owned(), credential.to_owned());
        self.tell(LegInput::CredentialRenewed { site, former, credential });
    }

    pub(in crate::hub) fn look_at_rights(&self) {
        self.tell(LegInput::RightsChanged);
    }

    pub(in crate::hub) fn nak(&self, session: u64, leg_epoch: u64, request: Request) {
        if leg_epoch == self.join.leg_epoch {
            self.tell(LegInput::Nak { session, request, channel: None });
        }
    }

    /// Passes on a site's report of packets that are not ours.
    pub(in crate::hub) fn forged(&self, leg_epoch: u64) {
        if leg_epoch == self.join.leg_epoch {
            self.tell(LegInput::Forged);
        }
    }

    /// Has the leg send promptly although it has no products to send: a site is about to join and has to hear it.
    pub(in crate::hub) fn expect_listener(&self) {
        self.tell(LegInput::Listener);
    }

    pub(in crate::hub) fn rate(&mut self, rate_bps: u64) {
        self.join.rate_bps = rate_bps;
        self.tell(LegInput::Rate(rate_bps));
    }

    pub(in crate::hub) fn stop(&self) {
        let _ = self.commands.send(None);
    }

    pub(in crate::hub) fn backlog_bytes(&self) -> u64 {
        self.shared.backlog_bytes.load(Ordering::Relaxed)
    }

    pub(in crate::hub) fn first_byte(&self, sequence: Sequence) -> Option<WallMicros> {
        lock(&self.shared.first_bytes).get(&sequence).copied()
    }

    fn tell(&self, input: LegInput<Arc<Channel>>) {
        let _ = self.commands.send(Some(input));
    }
}

impl Shared {
    fn new(key: LegKey) -> Self {
        Self {
            keys: Mutex::new(CurrentKeys::first(key)),
            backlog_bytes: AtomicU64::new(0),
            first_bytes: Mutex::default(),
        }
    }
}

impl Drawn {
    fn draw() -> Result<Self, String> {
        let key = keys::first_key()?;
        let secret = keys::draw().map_err(|error| format!("no random secret: {error}"))?;
        let leg_epoch = crate::hub::feeds::random_u64()?;
        Ok(Self { key, leg_epoch, proof_secrets: ProofSecrets::new(secret) })
    }
}

/// The thread of a leg wakes for commands and when its feed's log grows.
fn start_thread(
    feed: &Feed,
    leg: LegId,
    make: impl FnOnce(LogListener) -> Thread,
) -> Result<Sender<Command>, Failure> {
    let (commands, command_stream) = unbounded();
    let (wake, wakes) = bounded(1);
    let listener = feed.wake_ups.register(move || {
        let _ = wake.try_send(());
    });
    let thread = make(listener);
    std::thread::Builder::new()
        .name(format!("leg-{}", leg.0))
        .spawn(move || thread.run(&command_stream, &wakes))
        .map_err(|error| Failure::new("io", format!("no thread for leg {}: {error}", leg.0)))?;
    Ok(commands)
}

fn outlet(hub: &Hub, line: &LegLine) -> Outlet {
    let own = if line.interface.is_empty() { &hub.start.multicast_interface } else { &line.interface };
    Outlet { interface: own.clone(), hops: line.hops, offload: line.offload }
}

/// The settings of a leg that begins at the log's head.
fn settings(
    feed: &Feed,
    line: &LegLine,
    drawn: &Drawn,
    (group, socket): (SocketAddr, &GroupSender),
) -> Result<LegSettings, Failure> {
    let (key, after) = (drawn.key.clone(), feed.log.head());
    let config = SenderConfig::new(line.leg, drawn.leg_epoch, key, after, line.rate_bps);
    let sender = SenderConfig {
        signing_seed: Some(keys::signing_seed().map_err(|error| Failure::new("io", error))?),
        burst_bytes: line.burst_bytes.unwrap_or(config.burst_bytes),
        most_parity: line.parity_percent / 100.0,
        repair_window: line
            .repair_seconds
            .map_or(config.repair_window, |seconds| Micros::from_secs(seconds.into())),
        frame_overhead_bytes: SenderConfig::frame_overhead_bytes_of(group.is_ipv6()),
        ..config
    };
    let interface = LegInterface { mtu_bytes: socket.mtu_bytes(), is_circuit: line.circuit.is_some() };
    Ok(LegSettings { sender, loss_quantile: line.loss_quantile, interface })
}

/// The join parameters that are the same for every site.
fn join(feed: &Feed, line: &LegLine, drawn: &Drawn, group: SocketAddr) -> LegJoin {
    LegJoin {
        leg: line.leg,
        feed: feed.name(),
        epoch: feed.epoch(),
        leg_epoch: drawn.leg_epoch,
        group: group.ip().to_string(),
        port: group.port(),
        key: drawn.key.clone(),
        key_in_use: None,
        sender_key: None,
        proof_secret: None,
        interface: String::new(),
        rate_bps: line.rate_bps,
        source: None,
        channel: None,
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
