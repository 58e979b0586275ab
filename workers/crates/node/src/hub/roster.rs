//! The sites that may connect, their sessions, and the channels to the sessions.
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard};
use std::time::Duration;

use bytes::Bytes;
use downburst_hub::{
    AgentAsks, DueCredential, LegSession, Newcomer, Notice, SessionHandle, SessionInput, SessionLink,
    SessionRegistry, SessionStatus, SessionView, SiteLine, Sites,
};
use downburst_model::{FeedName, LegId, Micros, Now, ProductKey, RangeSet, SiteName, WallMicros};
use downburst_session::{Refused, StreamId, Ticket, Tickets};
use downburst_vcmtp::Urgency;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_rustls::server::TlsStream;

use crate::hub::connections::counted::Counted;
use crate::hub::connections::data::Attached;
use crate::hub::connections::pending_connections::PendingConnections;
use crate::hub::lock;
use crate::lines::EnrolAnswer;

/// Sites, sessions and open requests to the agent.
pub(super) struct Roster {
    /// Apart from the sessions: each receipt is checked against them.
    sites: RwLock<Sites>,
    sessions: Mutex<Registry>,
    asks: Mutex<AgentAsks<oneshot::Sender<EnrolAnswer>>>,
    pub(super) pending_connections: Mutex<PendingConnections>,
    /// Each ticket leads to the session that offered it.
    tickets: Mutex<Tickets<(mpsc::UnboundedSender<Command>, StreamId)>>,
    open: watch::Sender<usize>,
    told: watch::Sender<bool>,
}

pub(super) type Registry = SessionRegistry<Link>;

/// A session, with the channels to it from outside its task.
pub(super) type Handle = SessionHandle<Link>;

/// The channels to a session.
#[derive(Clone)]
pub(super) struct Link {
    pub(super) commands: mpsc::UnboundedSender<Command>,
    /// Bounded: a site that can't take its repairs requests them again.
    pub(super) repairs: mpsc::Sender<Repair>,
    pub(super) status: Arc<Mutex<SessionStatus>>,
    /// The site's address, or that of its last relay.
    pub(super) peer: IpAddr,
}

/// A command from the rest of the hub to a session.
#[derive(Debug)]
pub(super) enum Command {
    /// An input for its machine.
    Tell(SessionInput),
    /// Feeds were opened or closed, or their unicast leg changed.
    LookAtFeeds,
    /// The TCP profiles changed.
    LookAtProfile,
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

/// The registration of a session, and its ends of the channels.
pub(super) struct Member {
    pub(super) handle: Handle,
    pub(super) commands: mpsc::UnboundedReceiver<Command>,
    pub(super) repairs: mpsc::Receiver<Repair>,
}

impl SessionLink for Link {
    fn with_status<T>(&self, look: impl FnOnce(&mut SessionStatus) -> T) -> T {
        look(&mut lock(&self.status))
    }
}

impl Roster {
    pub(super) fn new() -> Self {
        Self {
            sites: RwLock::default(),
            sessions: Mutex::default(),
            asks: Mutex::default(),
            pending_connections: Mutex::default(),
            tickets: Mutex::default(),
            open: watch::Sender::new(0),
            told: watch::Sender::new(false),
        }
    }

    /// Replaces the set of sites: sessions of sites that may no longer connect end, the others get their new
    /// subscriptions.
    pub(super) fn replace(&self, lines: Vec<SiteLine>) {
        let sites = Sites::told(lines);
        let notices = self.registry().replaced(&self.sites(), &sites);
        *self.sites.write().unwrap_or_else(std::sync::PoisonError::into_inner) = sites;
        self.told.send_replace(true);
        // Only after the replacement: each session looks up its subscriptions again.
        notify(notices);
    }

    /// Notifies the sessions that another hour of the day began, which may have a bound of its own.
    pub(super) fn turn_hour(&self, now: WallMicros) {
        notify(self.registry().turn_hour(now));
    }

    /// Ends the sessions whose credential has expired.
    pub(super) fn expire(&self, now: WallMicros) {
        notify(self.registry().expired(&self.sites(), now));
    }

    /// Continues changes of credentials, some at a time.
    pub(super) fn tend_credentials(&self, now: Now) {
        let due = self.registry().due_credentials(&self.sites(), now.wall);
        notify(DueCredential::begin(due, now));
    }

    pub(super) fn site(&self, site: &SiteName) -> Option<SiteLine> {
        self.sites().find(site).cloned()
    }

    /// True if the site's allow list covers the feed now. Receipts and frontiers of other feeds are ignored.
    pub(super) fn may_take(&self, site: &SiteName, feed: &FeedName) -> bool {
        self.sites().find(site).is_some_and(|line| line.may_take(feed))
    }

    /// True if a subscription of the site to the feed leaves out old products.
    pub(super) fn has_max_age(&self, site: &SiteName, feed: &FeedName) -> bool {
        let sites = self.sites();
        let line = sites.find(site);
        line.is_none_or(|line| {
            line.subscriptions.iter().any(|it| it.feed == *feed && it.max_age_us.is_some())
        })
    }

    /// True if a site may give products of a feed to its sibling.
    pub(super) fn may_give(&self, giver: &SiteName, taker: &SiteName, feed: &FeedName) -> bool {
        let sites = self.sites();
        let lines = sites.find(giver).zip(sites.find(taker));
        lines.is_some_and(|(giver, taker)| downburst_hub::may_give(giver, taker, feed))
    }

    /// True if the site exchanges products with siblings.
    pub(super) fn exchanges(&self, site: &SiteName) -> bool {
        self.sites().find(site).is_some_and(|line| line.active && line.rights.siblings.is_some())
    }

    /// Every site, in the order of the names.
    pub(super) fn all(&self) -> Vec<SiteLine> {
        self.sites().all().cloned().collect()
    }

    /// The feeds that other nodes of the hub serve to any site.
    pub(super) fn placed_feeds(&self) -> BTreeSet<FeedName> {
        self.sites().placed_feeds()
    }

    /// Checks a credential.
    pub(super) fn check(&self, site: &SiteName, sha256: &str, now: WallMicros) -> Result<SiteLine, Refused> {
        self.sites().check(site, sha256, now).cloned()
    }

    /// Returns how soon the holder of this credential has to be barred from the feed's legs; `None` if not at all.
    pub(super) fn barred(
        &self,
        site: &SiteName,
        sha256: &str,
        feed: &FeedName,
        now: WallMicros,
    ) -> Option<Urgency> {
        self.sites().barred(site, sha256, feed, now)
    }

    /// Has this session use another credential from now on, if the agent accepted that as the replacement of the
    /// session's. Returns the former one.
    pub(super) fn take_credential(
        &self,
        site: &SiteName,
        serial: u64,
        sha256: &str,
        now: WallMicros,
    ) -> Option<String> {
        self.registry().take_credential(&self.sites(), (site, serial), sha256, now)
    }

    /// Registers a session as its site's, unless another one is active. A session on stand-by gives way.
    pub(super) fn register(
        &self,
        site: &SiteName,
        credential_sha256: &str,
        stand_by: bool,
        (repair_limit, peer): (usize, IpAddr),
        now: Micros,
    ) -> Result<Member, Refused> {
        let (commands, command_stream) = mpsc::unbounded_channel();
        let (repairs, repair_stream) = mpsc::channel(repair_limit);
        let status = Arc::new(Mutex::new(SessionStatus::new(now)));
        let link = Link { commands, repairs, status, peer };
        let newcomer = Newcomer { credential_sha256: credential_sha256.to_owned(), stand_by, link };
        let mut sessions = self.registry();
        let registered = sessions.register(site, newcomer, now)?;
        notify(registered.displaced);
        self.open.send_replace(sessions.all().len());
        Ok(Member { handle: registered.handle, commands: command_stream, repairs: repair_stream })
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

    /// Removes a session; returns false if a newer connection had already taken its place.
    pub(super) fn unregister(&self, site: &SiteName, serial: u64) -> bool {
        let mut sessions = self.registry();
        let current = sessions.unregister(site, serial);
        self.open.send_replace(sessions.all().len());
        current
    }

    pub(super) fn session(&self, site: &SiteName) -> Option<Handle> {
        self.registry().find(site).cloned()
    }

    pub(super) fn sessions(&self) -> BTreeMap<SiteName, Handle> {
        self.registry().all().clone()
    }

    /// The sessions as a leg sees them, with the tunnels of sites that receive by AMT.
    pub(super) fn sessions_on(&self, leg: LegId) -> BTreeMap<SiteName, LegSession> {
        let open = LegSession::on(leg, &self.sessions());
        let sites = self.sites();
        LegSession::in_tunnels(open, |site| {
            sites.find(site).is_some_and(|line| downburst_amt::interface::is_tunnel(&line.interface))
        })
    }

    /// The results of `look` on each session in turn, under the lock: `look` must not call the roster.
    pub(super) fn look_at_sessions<T>(&self, look: impl FnMut((&SiteName, &Handle)) -> Option<T>) -> Vec<T> {
        self.registry().all().iter().filter_map(look).collect()
    }

    /// Sites whose session ended since the last call.
    pub(super) fn take_gone(&self) -> BTreeSet<SiteName> {
        self.registry().take_gone()
    }

    /// The number of data connections that paid off in the site's last session.
    pub(super) fn learnt(&self, site: &SiteName) -> usize {
        self.registry().learnt(site)
    }

    /// Stores the number of data connections that pay off for a site, for its next session.
    pub(super) fn learn(&self, site: &SiteName, count: usize) {
        self.registry().learn(site, count);
    }

    /// Queues a leg's repair for the session with this number; a full queue drops it, and the site requests it again.
    pub(super) fn repair(&self, serial: u64, repair: Repair) {
        if let Some(handle) = self.registry().with_serial(serial) {
            let _ = handle.repairs.try_send(repair);
        }
    }

    pub(super) fn tell_all(&self, command: impl Fn() -> Command) {
        for handle in self.registry().all().values() {
            let _ = handle.commands.send(command());
        }
    }

    /// Opens a request to the agent, unless too many are open; returns its number.
    pub(super) fn ask(&self) -> Result<(u64, oneshot::Receiver<EnrolAnswer>), Refused> {
        let (sender, receiver) = oneshot::channel();
        let ask = lock(&self.asks).open(sender, |sender| !sender.is_closed())?;
        Ok((ask, receiver))
    }

    pub(super) fn answer(&self, answer: EnrolAnswer) -> bool {
        let sender = lock(&self.asks).close(answer.ask);
        sender.is_some_and(|sender| sender.send(answer).is_ok())
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

    /// The sessions, locked until the end of the statement: a second call in it would wait forever. They are locked
    /// before the sites where both are needed.
    pub(super) fn registry(&self) -> MutexGuard<'_, Registry> {
        lock(&self.sessions)
    }

    fn sites(&self) -> RwLockReadGuard<'_, Sites> {
        self.sites.read().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

fn notify(notices: impl IntoIterator<Item = Notice<Link>>) {
    for (link, input) in notices {
        // A session that has ended needs no input.
        let _ = link.commands.send(Command::Tell(input));
    }
}

#[cfg(test)]
mod tests;

/// Sites that connect during the wait stay in the listener's queue, for longer than their own timeout.
const TELLING_PATIENCE: Duration = Duration::from_secs(5);
