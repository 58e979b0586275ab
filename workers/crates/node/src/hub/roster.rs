//! Who may connect, who is connected, and how to reach them.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard};
use std::time::Duration;

use bytes::Bytes;
use downburst_hub::{SessionInput, SessionStatus, SessionView, SiteLine, Sites};
use downburst_model::{FeedName, LegId, Micros, ProductKey, RangeSet, SiteName, WallMicros};
use downburst_session::{RefusalCode, Refused, StreamId, Ticket, Tickets};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_rustls::server::TlsStream;

use crate::hub::connections::counted::Counted;
use crate::hub::connections::data::Attached;
use crate::hub::connections::pending_connections::PendingConnections;
use crate::hub::lock;
use crate::lines::EnrolAnswer;

mod credentials;

/// Sites, sessions and open questions.
pub(super) struct Roster {
    sites: RwLock<Sites>,
    sessions: Mutex<BTreeMap<SiteName, Handle>>,
    /// Sites whose session ended since the agent was last told.
    gone: Mutex<BTreeSet<SiteName>>,
    asks: Mutex<BTreeMap<u64, oneshot::Sender<EnrolAnswer>>>,
    pub(super) pending_connections: Mutex<PendingConnections>,
    /// Each leads to the session that offered it.
    tickets: Mutex<Tickets<(mpsc::UnboundedSender<Command>, StreamId)>>,
    /// How many data connections helped the sites when they were last here.
    learnt: Mutex<BTreeMap<SiteName, usize>>,
    next_serial: AtomicU64,
    /// Of the last look at the bounds by hour.
    hour: AtomicI64,
    open: watch::Sender<usize>,
    told: watch::Sender<bool>,
}

/// Reaches one session from outside its task.
#[derive(Clone)]
pub(super) struct Handle {
    pub(super) serial: u64,
    pub(super) commands: mpsc::UnboundedSender<Command>,
    /// Bounded: a site that can't take its repairs asks again.
    pub(super) repairs: mpsc::Sender<Repair>,
    pub(super) status: Arc<Mutex<SessionStatus>>,
    pub(super) credential_sha256: String,
    /// The site takes its feeds from another hub for now.
    pub(super) stand_by: bool,
}

/// What the rest of the hub tells a session.
#[derive(Debug)]
pub(super) enum Command {
    /// For its machine.
    Tell(SessionInput),
    /// What the site gets, how it is handled or which nodes of the hub serve it changed.
    Subscriptions,
    /// Feeds were opened or closed, or their unicast leg changed.
    LookAtFeeds,
    /// Where are these products?
    Where { products: Vec<ProductKey>, answer: oneshot::Sender<SessionView> },
    /// A data connection showed the session's ticket.
    Attach(Attached),
}

/// What a leg has for one site.
#[derive(Debug)]
pub(super) enum Repair {
    Packet { leg: LegId, leg_epoch: u64, packet: u64, payload: Bytes },
    Gone { leg: LegId, leg_epoch: u64, packets: RangeSet },
}

impl Roster {
    pub(super) fn new() -> Self {
        Self {
            sites: RwLock::default(),
            sessions: Mutex::default(),
            gone: Mutex::default(),
            asks: Mutex::default(),
            pending_connections: Mutex::default(),
            tickets: Mutex::default(),
            learnt: Mutex::default(),
            next_serial: AtomicU64::new(1),
            hour: AtomicI64::new(0),
            open: watch::Sender::new(0),
            told: watch::Sender::new(false),
        }
    }

    /// Replaces the set of sites: sessions of those that may not connect any more end, the others learn their
    /// subscriptions.
    pub(super) fn replace(&self, lines: Vec<SiteLine>) {
        let sites = Sites::told(lines);
        let mut told = Vec::new();
        for (site, handle) in lock(&self.sessions).iter() {
            let commands = match sites.holding(site, &handle.credential_sha256) {
                Ok(line) => changes(self.site(site).as_ref(), line),
                Err(refused) => vec![Command::Tell(SessionInput::Refuse(refused))],
            };
            told.extend(commands.into_iter().map(|command| (handle.commands.clone(), command)));
        }
        *self.sites.write().unwrap_or_else(std::sync::PoisonError::into_inner) = sites;
        self.told.send_replace(true);
        // Only now: a session looks up what it gets once more.
        for (commands, command) in told {
            let _ = commands.send(command);
        }
    }

    /// Tells the sessions that another hour of the day began, which may have a bound of its own.
    pub(super) fn turn_hour(&self, now: WallMicros) {
        let hour = downburst_hub::hour(now);
        if self.hour.swap(hour, Ordering::Relaxed) != hour {
            for handle in lock(&self.sessions).values() {
                let _ = handle.commands.send(Command::Tell(SessionInput::Pace));
            }
        }
    }

    pub(super) fn site(&self, site: &SiteName) -> Option<SiteLine> {
        self.sites().find(site).cloned()
    }

    /// True if the site's allow list covers the feed now. Receipts and frontiers of other feeds are ignored.
    pub(super) fn may_take(&self, site: &SiteName, feed: &FeedName) -> bool {
        self.sites().find(site).is_some_and(|line| line.may_take(feed))
    }

    /// Every site, in the order of the names.
    pub(super) fn all(&self) -> Vec<SiteLine> {
        self.sites().all().cloned().collect()
    }

    /// The feeds that other nodes of the hub serve to any site.
    pub(super) fn placed_feeds(&self) -> BTreeSet<FeedName> {
        self.sites().placed_feeds()
    }

    fn sites(&self) -> RwLockReadGuard<'_, Sites> {
        self.sites.read().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Makes a session the one of its site, unless another lives. One that stands by gives way.
    pub(super) fn register(
        &self,
        site: &SiteName,
        credential_sha256: &str,
        stand_by: bool,
        repair_limit: usize,
        now: Micros,
    ) -> Result<(Handle, mpsc::UnboundedReceiver<Command>, mpsc::Receiver<Repair>), Refused> {
        let mut sessions = lock(&self.sessions);
        if let Some(other) = sessions.get(site) {
            if !other.stand_by && now.since(lock(&other.status).heard_at) < ALIVE_WITHIN {
                let sentence = format!(
                    "another receiver is active as site {site}; stop it, or give this one a site of its own"
                );
                return Err(Refused { code: RefusalCode::Busy, sentence });
            }
            let sentence = "a newer connection took this session's place".to_owned();
            let refused = Refused { code: RefusalCode::Busy, sentence };
            let _ = other.commands.send(Command::Tell(SessionInput::Refuse(refused)));
        }
        let (commands, command_stream) = mpsc::unbounded_channel();
        let (repairs, repair_stream) = mpsc::channel(repair_limit);
        let status = Arc::new(Mutex::new(SessionStatus::new(now)));
        let serial = self.next_serial.fetch_add(1, Ordering::Relaxed);
        let credential_sha256 = credential_sha256.to_owned();
        let handle = Handle { serial, commands, repairs, status, credential_sha256, stand_by };
        sessions.insert(site.clone(), handle.clone());
        self.open.send_replace(sessions.len());
        Ok((handle, command_stream, repair_stream))
    }

    /// Draws a ticket for a data connection of the session behind `commands`.
    pub(super) fn draw_ticket(
        &self,
        now: Micros,
        commands: &mpsc::UnboundedSender<Command>,
        stream: StreamId,
    ) -> Option<Ticket> {
        let mut bits = [0_u8; 16];
        getrandom::fill(&mut bits).ok()?;
        lock(&self.tickets).issue(now, Ticket(bits), (commands.clone(), stream));
        Some(Ticket(bits))
    }

    /// Gives a connection to the session whose ticket it shows.
    pub(super) fn attach(
        &self,
        now: Micros,
        ticket: &Ticket,
        socket: Box<TlsStream<Counted>>,
    ) -> Result<(), &'static str> {
        let redeemed = lock(&self.tickets).redeem(now, ticket);
        let (commands, stream) =
            redeemed.ok_or("the ticket of its data connection is not valid (any more)")?;
        let attached = Attached { stream, socket };
        commands.send(Command::Attach(attached)).map_err(|_| "the session of its data connection has ended")
    }

    /// How many data connections helped the site when it was last here.
    pub(super) fn learnt(&self, site: &SiteName) -> usize {
        lock(&self.learnt).get(site).copied().unwrap_or(0)
    }

    /// Keeps how many data connections help a site, for its next session.
    pub(super) fn learn(&self, site: &SiteName, count: usize) {
        let mut learnt = lock(&self.learnt);
        if count == 0 {
            learnt.remove(site);
        } else {
            learnt.insert(site.clone(), count);
        }
    }

    /// Takes a session off; tells whether it was still its site's: a newer connection may have its place.
    pub(super) fn unregister(&self, site: &SiteName, serial: u64) -> bool {
        let mut sessions = lock(&self.sessions);
        let current = sessions.get(site).is_some_and(|handle| handle.serial == serial);
        if current {
            sessions.remove(site);
            lock(&self.gone).insert(site.clone());
        }
        self.open.send_replace(sessions.len());
        current
    }

    pub(super) fn session(&self, site: &SiteName) -> Option<Handle> {
        lock(&self.sessions).get(site).cloned()
    }

    pub(super) fn sessions(&self) -> BTreeMap<SiteName, Handle> {
        lock(&self.sessions).clone()
    }

    /// What `look` finds in the sessions, one after the other; it must not come back here.
    pub(super) fn look_at_sessions<T>(&self, look: impl FnMut((&SiteName, &Handle)) -> Option<T>) -> Vec<T> {
        lock(&self.sessions).iter().filter_map(look).collect()
    }

    /// Sites whose session ended since the last call.
    pub(super) fn take_gone(&self) -> BTreeSet<SiteName> {
        std::mem::take(&mut lock(&self.gone))
    }

    /// Carries a leg's repair to the session with this number; a full queue drops it, the site asks again.
    pub(super) fn repair(&self, serial: u64, repair: Repair) {
        if let Some(handle) = lock(&self.sessions).values().find(|handle| handle.serial == serial) {
            let _ = handle.repairs.try_send(repair);
        }
    }

    pub(super) fn tell_all(&self, command: impl Fn() -> Command) {
        for handle in lock(&self.sessions).values() {
            let _ = handle.commands.send(command());
        }
    }

    /// Opens a question to the agent, unless too many are open.
    pub(super) fn ask(&self, ask: u64) -> Result<oneshot::Receiver<EnrolAnswer>, Refused> {
        let mut asks = lock(&self.asks);
        asks.retain(|_, sender| !sender.is_closed());
        if asks.len() >= ASKS_LIMIT {
            let sentence = "too many tokens are being checked; connect again in a moment".to_owned();
            return Err(Refused { code: RefusalCode::Unavailable, sentence });
        }
        let (sender, receiver) = oneshot::channel();
        asks.insert(ask, sender);
        Ok(receiver)
    }

    pub(super) fn answer(&self, answer: EnrolAnswer) -> bool {
        lock(&self.asks).remove(&answer.ask).is_some_and(|sender| sender.send(answer).is_ok())
    }

    /// Waits until the agent has told the set of sites, for a while: until then everybody would have to be sent away.
    pub(super) async fn wait_until_told(&self) {
        let mut told = self.told.subscribe();
        let _ = tokio::time::timeout(TELLING_PATIENCE, told.wait_for(|told| *told)).await;
    }

    pub(super) async fn wait_until_empty(&self, patience: Duration) {
        let mut open = self.open.subscribe();
        let _ = tokio::time::timeout(patience, open.wait_for(|count| *count == 0)).await;
    }
}

/// What a connected site has to be told of a new line.
fn changes(known: Option<&SiteLine>, line: &SiteLine) -> Vec<Command> {
    let mut commands = Vec::new();
    if known.is_none_or(|known| known.data_connections != line.data_connections) {
        commands.push(Command::Tell(SessionInput::PinStreams(line.data_connections)));
    }
    let pace = |line: &SiteLine| (line.access_rate_bps, line.ceiling_bps_by_hour.clone());
    if known.is_none_or(|known| pace(known) != pace(line)) {
        commands.push(Command::Tell(SessionInput::Pace));
    }
    let nodes = |line: &SiteLine| (line.nodes_version, line.nodes.clone());
    let moved = known.is_none_or(|known| nodes(known) != nodes(line));
    if moved || known.is_none_or(|known| known.subscriptions != line.subscriptions) {
        commands.push(Command::Subscriptions);
    }
    if moved || known.is_none_or(|known| known.resends != line.resends) {
        commands.push(Command::Tell(SessionInput::Resends));
    }
    commands
}

#[cfg(test)]
mod tests;

/// The keep-alive comes each 5 s; a session that missed one is taken for dead when its site knocks again.
const ALIVE_WITHIN: Micros = Micros::from_secs(7);

/// Sites that come meanwhile wait in the listener's queue, and longer than they have patience for.
const TELLING_PATIENCE: Duration = Duration::from_secs(5);

/// Anybody can show a token; the agent has other work.
const ASKS_LIMIT: usize = 256;
