//! The sites that may connect, their sessions, and the channels to the sessions.
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

/// Sites, sessions and open requests to the agent.
pub(super) struct Roster {
    sites: RwLock<Sites>,
    sessions: Mutex<BTreeMap<SiteName, Handle>>,
    /// Sites whose session ended since the last report to the agent.
    gone: Mutex<BTreeSet<SiteName>>,
    asks: Mutex<BTreeMap<u64, oneshot::Sender<EnrolAnswer>>>,
    pub(super) pending_connections: Mutex<PendingConnections>,
    /// Each ticket leads to the session that offered it.
    tickets: Mutex<Tickets<(mpsc::UnboundedSender<Command>, StreamId)>>,
    /// The number of data connections that paid off in a site's last session.
    learnt: Mutex<BTreeMap<SiteName, usize>>,
    next_serial: AtomicU64,
    /// The hour at the last check of the bounds by hour.
    hour: AtomicI64,
    open: watch::Sender<usize>,
    told: watch::Sender<bool>,
}

/// The channels to one session from outside its task.
#[derive(Clone)]
pub(super) struct Handle {
    pub(super) serial: u64,
    pub(super) commands: mpsc::UnboundedSender<Command>,
    /// Bounded: a site that can't take its repairs requests them again.
    pub(super) repairs: mpsc::Sender<Repair>,
    pub(super) status: Arc<Mutex<SessionStatus>>,
    pub(super) credential_sha256: String,
    /// True if the site currently takes its feeds from another hub.
    pub(super) stand_by: bool,
}

/// A command from the rest of the hub to a session.
#[derive(Debug)]
pub(super) enum Command {
    /// An input for its machine.
    Tell(SessionInput),
    /// The site's subscriptions, its handling or the nodes of the hub that serve it changed.
    Subscriptions,
    /// Feeds were opened or closed, or their unicast leg changed.
    LookAtFeeds,
    /// Reports the state of these products.
    Where { products: Vec<ProductKey>, answer: oneshot::Sender<SessionView> },
    /// A data connection presented the session's ticket.
    Attach(Attached),
}

/// A leg's answer to one site's request.
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

    /// Replaces the set of sites: sessions of sites that may no longer connect end, the others get their new
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
        // Only after the replacement: each session looks up its subscriptions again.
        for (commands, command) in told {
            let _ = commands.send(command);
        }
    }

    /// Notifies the sessions that another hour of the day began, which may have a bound of its own.
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

    /// Registers a session as its site's, unless another one is active. A session on stand-by gives way.
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

    /// Hands a connection to the session whose ticket it presents.
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

    /// The number of data connections that paid off in the site's last session.
    pub(super) fn learnt(&self, site: &SiteName) -> usize {
        lock(&self.learnt).get(site).copied().unwrap_or(0)
    }

    /// Stores the number of data connections that pay off for a site, for its next session.
    pub(super) fn learn(&self, site: &SiteName, count: usize) {
        let mut learnt = lock(&self.learnt);
        if count == 0 {
            learnt.remove(site);
        } else {
            learnt.insert(site.clone(), count);
        }
    }

    /// Removes a session; returns false if a newer connection had already taken its place.
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

    /// The results of `look` on each session in turn, under the lock: `look` must not call the roster.
    pub(super) fn look_at_sessions<T>(&self, look: impl FnMut((&SiteName, &Handle)) -> Option<T>) -> Vec<T> {
        lock(&self.sessions).iter().filter_map(look).collect()
    }

    /// Sites whose session ended since the last call.
    pub(super) fn take_gone(&self) -> BTreeSet<SiteName> {
        std::mem::take(&mut lock(&self.gone))
    }

    /// Queues a leg's repair for the session with this number; a full queue drops it, and the site requests it again.
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

    /// Opens a request to the agent, unless too many are open.
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

    /// Waits, for a limited time, until the agent has sent the set of sites: before that, all would be refused.
    pub(super) async fn wait_until_told(&self) {
        let mut told = self.told.subscribe();
        let _ = tokio::time::timeout(TELLING_PATIENCE, told.wait_for(|told| *told)).await;
    }

    pub(super) async fn wait_until_empty(&self, patience: Duration) {
        let mut open = self.open.subscribe();
        let _ = tokio::time::timeout(patience, open.wait_for(|count| *count == 0)).await;
    }
}

/// The commands for a connected site whose line changed.
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

/// A keep-alive arrives every 5 s; a session that missed one counts as dead when its site connects again.
const ALIVE_WITHIN: Micros = Micros::from_secs(7);

/// Sites that connect during the wait stay in the listener's queue, for longer than their own timeout.
const TELLING_PATIENCE: Duration = Duration::from_secs(5);

/// Anybody can present a token; the agent has other work.
const ASKS_LIMIT: usize = 256;
