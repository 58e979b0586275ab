//! Repair between sites: the port for siblings ([`giving`]) and the fetches from them ([`fetching`]). The `sibling`
//! crate makes the decisions.
mod budget;
mod fetching;
mod giving;
mod keys;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use downburst_session::{SiblingInput, SiblingPort, SiteEvent};
use downburst_sibling::{Desk, Owner};
use downburst_site::Input;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::store::Logs;
use crate::clock::Clock;
use budget::Budget;
use keys::Keys;

/// The exchange of a site with its siblings, shared by its connections to hubs.
#[derive(Clone)]
pub(crate) struct SharedSiblings(Arc<Shared>);

struct Shared {
    desk: Mutex<Desk>,
    /// Changes with each grant and each withdrawal.
    changed: watch::Sender<u64>,
    keys: Keys,
    port: u16,
    logs: Arc<Logs>,
    clock: Clock,
    owners: AtomicU64,
    budget: Budget,
    /// True: a byte of each product that leaves is wrong, for tests.
    spoils: bool,
}

/// The settings of a site's port for siblings.
#[derive(Clone, Copy, Debug)]
pub struct SiblingsUse {
    /// The address at which siblings are heard.
    pub listen: SocketAddr,
    /// True: a byte of each product that leaves is wrong, for tests.
    pub spoils: bool,
}

impl SharedSiblings {
    /// Opens the port. It answers nothing before a hub has switched the exchange on.
    pub(super) fn open(
        settings: SiblingsUse,
        directory: &Path,
        logs: Arc<Logs>,
        clock: Clock,
    ) -> Result<Self, String> {
        let listen = settings.listen;
        let sentence =
            |error: &dyn std::fmt::Display| format!("--siblings-listen {listen} can't be used: {error}");
        let listener = std::net::TcpListener::bind(listen).map_err(|error| sentence(&error))?;
        listener.set_nonblocking(true).map_err(|error| sentence(&error))?;
        let listener = tokio::net::TcpListener::from_std(listener).map_err(|error| sentence(&error))?;
        let port = listener.local_addr().map_err(|error| sentence(&error))?.port();
        let budget = Budget::open(&directory.join("state"));
        let shared = Shared {
            desk: Mutex::new(Desk::new(budget.spent())),
            changed: watch::Sender::new(0),
            keys: Keys::generate().map_err(|error| sentence(&error))?,
            port,
            logs,
            clock,
            owners: AtomicU64::new(1),
            budget,
            spoils: settings.spoils,
        };
        let shared = Arc::new(shared);
        tokio::spawn(giving::listen(Arc::clone(&shared), listener));
        Ok(Self(shared))
    }
}

impl Shared {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Desk)) {
        change(&mut self.desk());
        self.changed.send_modify(|count| *count = count.wrapping_add(1));
    }
}

/// The part of one connection to a hub in the exchange.
pub(super) struct Exchange {
    shared: Option<SharedSiblings>,
    /// The present session.
    owner: Owner,
    fetches: JoinSet<()>,
    say: mpsc::Sender<SiblingInput>,
    said: mpsc::Receiver<SiblingInput>,
}

impl Exchange {
    pub(super) fn new(shared: Option<SharedSiblings>) -> Self {
        let (say, said) = mpsc::channel(PIECES);
        Self { shared, owner: 0, fetches: JoinSet::new(), say, said }
    }

    /// Takes an event of the session; returns the site's answer.
    pub(super) fn take(&mut self, event: SiteEvent) -> Option<SiblingInput> {
        let shared = &self.shared.as_ref()?.0;
        match event {
            SiteEvent::SiblingTerms(terms) => {
                if self.owner == 0 {
                    self.owner = shared.owners.fetch_add(1, Ordering::Relaxed);
                }
                shared.change(|desk| desk.set_terms(self.owner, terms));
                let port = SiblingPort { port: shared.port, fingerprint: shared.keys.fingerprint() };
                return terms.on.then_some(SiblingInput::Port(port));
            }
            SiteEvent::SiblingGrant(grant) => {
                let now = shared.clock.monotonic();
                shared.change(|desk| desk.grant(now, self.owner, *grant));
            }
            SiteEvent::SiblingWithdrawn(tickets) => shared.change(|desk| desk.withdraw(&tickets)),
            SiteEvent::Fetch(fetch) => {
                while self.fetches.try_join_next().is_some() {}
                let (say, connector) = (self.say.clone(), shared.keys.connector(&fetch.fingerprint));
                self.fetches.spawn(fetching::fetch(*fetch, connector, say));
            }
            _ => {}
        }
        None
    }

    /// The next news of a fetch.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Input> {
        match self.said.poll_recv(cx) {
            Poll::Ready(Some(input)) => Poll::Ready(Input::Sibling(input)),
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }

    /// The session ended: its grants, transfers and fetches end with it.
    pub(super) fn clear(&mut self) {
        if let (Some(SharedSiblings(shared)), true) = (&self.shared, self.owner != 0) {
            shared.change(|desk| desk.left(self.owner));
        }
        let (say, said) = mpsc::channel(PIECES);
        (self.owner, self.fetches, self.say, self.said) = (0, JoinSet::new(), say, said);
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Pieces of at most 16 KiB that wait for the session: a slow disk holds the siblings back.
const PIECES: usize = 64;
