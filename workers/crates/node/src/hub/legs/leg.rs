//! Multicast legs, seen from outside their threads: the join parameters for sites, and the hub's inputs to the leg.
mod keys;
mod outlet;
mod relay;
mod thread;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crossbeam_channel::{Sender, bounded, unbounded};
use downburst_hub::{
    CurrentKeys, FanOut, LegDraws, LegFirstBytes, LegFront, LegInput, LegOffer, LegStart, ProofSecrets,
    RunningLeg,
};
use downburst_log::ProductLog as _;
use downburst_model::{LegId, Sequence, SiteName, WallMicros};
use downburst_session::{FanOutPass, KeyTaken, LegJoin};
use downburst_vcmtp::{LegKey, Request};

use crate::hub::feeds::Feed;
use crate::hub::feeds::wake_ups::LogListener;
use crate::hub::legs::channels::Channel;
use crate::hub::roster::Handle;
use crate::hub::{Hub, lock};
use crate::lines::{Failure, LegLine};
use outlet::LegOutlet;
pub(in crate::hub) use relay::RelayLink;
use relay::Route;
use thread::{Command, Thread};

/// A running multicast leg, seen from outside its thread.
pub(in crate::hub) struct Leg {
    front: LegFront,
    commands: Sender<Command>,
    shared: Arc<Shared>,
    /// The way to the relay that sends the leg, if one does.
    route: Option<Arc<Route>>,
}

/// The state of a leg's thread that the rest of the hub can read.
struct Shared {
    keys: Mutex<CurrentKeys>,
    backlog_bytes: AtomicU64,
    first_bytes: Mutex<LegFirstBytes>,
}

impl RunningLeg for Leg {
    fn join(&self) -> &LegJoin {
        self.front.join()
    }
}

impl Leg {
    /// Starts a leg that carries every product of `feed` after its current head.
    pub(in crate::hub) fn start(hub: &Arc<Hub>, feed: &Arc<Feed>, line: &LegLine) -> Result<Self, Failure> {
        let group = line.group_address().map_err(|error| Failure::new("bad-request", error))?;
        let outlet = LegOutlet::open(hub, line, group)?;
        let (draws, proof_secrets) = draw().map_err(|error| Failure::new("io", error))?;
        let (name, epoch, after) = (feed.name(), feed.epoch(), feed.log.head());
        let start = LegStart { line, draws: &draws, group, feed: name, epoch, after };
        let open = hub.roster.sessions_on(line.leg);
        let settings = start.settings(outlet.mtu_bytes());
        let machine = downburst_hub::Leg::new(hub.clock.monotonic(), settings, &open);
        let (source, path) = (outlet.source(), outlet.path());
        tracing::info!(leg = line.leg.0, %group, source, path, rate_bps = line.rate_bps, "a leg begins");
        let (sender_key, route) = (machine.sender_key(), outlet.route());
        let pass = pass(line).map_err(|error| Failure::new("io", error))?;
        let front = LegFront::new(LegJoin { sender_key, source, pass, ..start.join() }, proof_secrets);
        let shared = Arc::new(Shared::new(draws.key.clone()));
        let life = (line.leg, draws.leg_epoch);
        let commands = start_thread(feed, line.leg, |listener| {
            Thread::new(hub, feed, life, machine, (listener, outlet), Arc::clone(&shared))
        })?;
        Ok(Self { front, commands, shared, route })
    }

    /// The join parameters for this site; the leg notes that it has the keys.
    pub(in crate::hub) fn join_of(
        &self,
        hub: &Hub,
        site: &SiteName,
        handle: &Handle,
        interface: String,
    ) -> LegJoin {
        let keys = lock(&self.shared.keys).for_join();
        let (session, commands) = (handle.serial, self.commands.clone());
        let (leg, cipher) = (self.join().leg, keys.0.cipher);
        let channel = hub.legs.channels.draw(session, leg, cipher, move |channel, request| {
            let channel = Some(Arc::clone(channel));
            let _ = commands.send(Some(LegInput::Nak { session, request, channel }));
        });
        let offer = LegOffer { interface, keys, channel };
        let (join, inputs) = self.front.offer(site, (session, &handle.credential_sha256), offer);
        inputs.into_iter().for_each(|input| self.tell(input));
        let Some(route) = &self.route else { return join };
        match (route.source(), &join.pass) {
            // Sites announce themselves to the relay.
            (Some(relay), Some(_)) => LegJoin { group: relay, source: None, ..join },
            (source, _) => LegJoin { source, ..join },
        }
    }

    /// The proof of its sites at a relay that sends it by unicast.
    pub(in crate::hub) fn pass(&self) -> Option<FanOutPass> {
        self.join().pass.as_deref().cloned()
    }

    pub(in crate::hub) fn key_taken(&self, site: &SiteName, taken: &KeyTaken) {
        self.front.key_taken(site, taken).into_iter().for_each(|input| self.tell(input));
    }

    pub(in crate::hub) fn credential_taken(&self, site: &SiteName, former: &str, credential: &str) {
        let (site, former, credential) = (site.clone(), former.to_owned(), credential.to_owned());
        self.tell(LegInput::CredentialRenewed { site, former, credential });
    }

    pub(in crate::hub) fn look_at_rights(&self) {
        self.tell(LegInput::RightsChanged);
    }

    pub(in crate::hub) fn nak(&self, session: u64, leg_epoch: u64, request: Request) {
        self.front.nak(session, leg_epoch, request).into_iter().for_each(|input| self.tell(input));
    }

    /// Passes on a site's report of packets that are not ours.
    pub(in crate::hub) fn forged(&self, leg_epoch: u64) {
        self.front.forged(leg_epoch).into_iter().for_each(|input| self.tell(input));
    }

    /// Has the leg send promptly although it has no products to send: a site is about to join and has to hear it.
    pub(in crate::hub) fn expect_listener(&self) {
        self.tell(LegInput::Listener);
    }

    /// From here on the datagrams go to the session of a relay.
    pub(in crate::hub) fn route_by(&self, link: RelayLink) {
        if let Some(route) = &self.route {
            self.tell(LegInput::Mtu(link.open.mtu_bytes));
            route.put(Some(link));
        }
    }

    /// The datagrams go nowhere from here on, and the relay's session ends the leg.
    pub(in crate::hub) fn end_route(&self) {
        self.route.iter().for_each(|route| route.end(self.join().leg));
    }

    /// The relay does not send the leg: the datagrams go nowhere.
    pub(in crate::hub) fn close_route(&self) {
        self.route.iter().for_each(|route| route.put(None));
    }

    pub(in crate::hub) fn rate(&mut self, rate_bps: u64) {
        self.route.iter().for_each(|route| route.set_rate(rate_bps));
        let input = self.front.rate(rate_bps);
        self.tell(input);
    }

    pub(in crate::hub) fn stop(&self) {
        let _ = self.commands.send(None);
    }

    pub(in crate::hub) fn backlog_bytes(&self) -> u64 {
        self.shared.backlog_bytes.load(Ordering::Relaxed)
    }

    pub(in crate::hub) fn first_byte(&self, sequence: Sequence) -> Option<WallMicros> {
        lock(&self.shared.first_bytes).find(sequence)
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

/// Draws the secrets of a leg, and the key of its proofs.
fn draw() -> Result<(LegDraws, ProofSecrets), String> {
    let key = keys::first_key()?;
    let secret = keys::draw().map_err(|error| format!("no random secret: {error}"))?;
    let leg_epoch = crate::hub::feeds::random_u64()?;
    let signing_seed = keys::signing_seed()?;
    Ok((LegDraws { key, leg_epoch, signing_seed }, ProofSecrets::new(secret)))
}

/// Draws the pass of a leg that a relay sends by unicast.
fn pass(line: &LegLine) -> Result<Option<Box<FanOutPass>>, String> {
    if line.fan_out == FanOut::Group {
        return Ok(None);
    }
    let secret = keys::draw().map_err(|error| format!("no random pass: {error}"))?;
    Ok(Some(Box::new(FanOutPass(secret))))
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
