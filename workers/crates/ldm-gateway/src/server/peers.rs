//! The connected LDMs, with their rights.
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use downburst_clock::Clock;
use downburst_hub::SiteLine;
use downburst_model::{SiteName, WallMicros};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::positions::Positions;
use super::rules::Rules;
use crate::config::LdmAcceptLine;
use crate::intake::Counts;
use crate::lock;
use crate::routes::Routes;

/// The connected LDMs, by number.
#[derive(Default)]
pub(crate) struct Peers {
    accept: Mutex<Vec<LdmAcceptLine>>,
    rules: RwLock<Arc<Rules>>,
    connected: Mutex<BTreeMap<u32, Arc<Peer>>>,
    most: AtomicUsize,
    pub(crate) positions: Positions,
}

/// One connection.
pub(super) struct Peer {
    pub(super) id: u32,
    pub(super) address: IpAddr,
    pub(super) standing: Mutex<Standing>,
    pub(super) counts: Served,
    /// Counts of the products it pushed.
    pub(super) taken: Arc<Counts>,
    /// The reason to end the connection; `None` while it may stay.
    pub(super) end: watch::Sender<Option<&'static str>>,
    since: WallMicros,
}

/// The identity and request of a connection.
#[derive(Default)]
pub(super) struct Standing {
    pub(super) names: Vec<String>,
    pub(super) site: Option<SiteName>,
    /// `feedme`, `notifyme` or `hiya`; empty before its request.
    pub(super) what: &'static str,
    pub(super) mode: &'static str,
    pub(super) class: String,
    /// The text of the rules that apply to it.
    pub(super) said: Vec<String>,
}

/// Counts of a connection. The protocol has no receipts: an answer to a NULLPROC shows that the peer has processed
/// everything before it.
#[derive(Default)]
pub(super) struct Served {
    pub(super) products: AtomicU64,
    pub(super) bytes: AtomicU64,
    /// Products sent before the last answered NULLPROC.
    pub(super) answered: AtomicU64,
    pub(super) answered_at: AtomicU64,
    /// Bytes without a TCP acknowledgement; at most a second old while the connection is active.
    pub(super) unacknowledged: AtomicU64,
    pub(super) gone: AtomicU64,
    pub(super) too_old: AtomicU64,
    pub(super) too_large: AtomicU64,
}

impl Peers {
    pub(crate) fn accept_from(&self, lines: Vec<LdmAcceptLine>) {
        *lock(&self.accept) = lines;
    }

    /// Sets the largest number of simultaneous connections.
    pub(crate) fn allow(&self, most: usize) {
        self.most.store(most, Ordering::Relaxed);
    }

    pub(super) fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.rules.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Applies changed rules. A peer served under other rules is disconnected and has to request again.
    pub(crate) fn look_at_rights(&self, routes: &Routes, sites: Vec<SiteLine>) {
        let rules = Arc::new(Rules::of(routes, sites, &lock(&self.accept)));
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&rules);
        for peer in lock(&self.connected).values() {
            let standing = lock(&peer.standing);
            if !standing.what.is_empty() && standing.said != rules.said(&standing.names) {
                peer.end.send_replace(Some("its rights to request or push were changed"));
            }
        }
    }

    pub(super) fn is_alive(&self, id: u32) -> bool {
        lock(&self.connected).contains_key(&id)
    }

    pub(crate) fn status(&self) -> Value {
        lock(&self.connected).values().map(|peer| peer.status()).collect()
    }

    /// Disconnects all peers, and waits briefly until they are gone.
    pub(crate) async fn end(&self) {
        for peer in lock(&self.connected).values() {
            peer.end.send_replace(Some("this hub stops"));
        }
        let until = tokio::time::Instant::now() + STOP_PATIENCE;
        while !lock(&self.connected).is_empty() && tokio::time::Instant::now() < until {
            tokio::time::sleep(STOP_LOOK).await;
        }
    }

    /// Registers a connection, unless there are too many.
    pub(super) fn enter(&self, clock: Clock, address: IpAddr) -> Result<Arc<Peer>, &'static str> {
        let mut connected = lock(&self.connected);
        if connected.len() >= self.most.load(Ordering::Relaxed) {
            return Err("as many LDMs are connected as the setting ldm.max_clients allows");
        }
        if connected.values().filter(|peer| peer.address == address).count() >= MOST_OF_AN_ADDRESS {
            return Err("its address has as many connections as one may have");
        }
        let id = (connected.keys().next_back().copied().unwrap_or(0)).wrapping_add(1).max(1);
        let peer = Arc::new(Peer {
            id,
            address,
            standing: Mutex::default(),
            counts: Served::default(),
            taken: Arc::default(),
            end: watch::Sender::new(None),
            since: clock.wall(),
        });
        connected.insert(id, Arc::clone(&peer));
        Ok(peer)
    }

    pub(super) fn leave(&self, peer: &Peer) {
        lock(&self.connected).remove(&peer.id);
    }
}

impl Peer {
    /// Its name, or its address if it has none.
    pub(super) fn name(&self) -> String {
        let standing = lock(&self.standing);
        standing.names.first().cloned().unwrap_or_else(|| self.address.to_string())
    }

    fn status(&self) -> Value {
        let standing = lock(&self.standing);
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Served { products, bytes, answered, answered_at, unacknowledged, gone, too_old, too_large } =
            &self.counts;
        json!({
            "peer": standing.names.first(), "address": self.address.to_string(), "site": standing.site,
            "what": standing.what, "mode": standing.mode, "class": standing.class, "since_us": self.since,
            "products": count(products), "bytes": count(bytes), "answered": count(answered),
            "answered_us": Some(count(answered_at)).filter(|at| *at > 0), "unacknowledged_bytes": count(unacknowledged),
            "gone": count(gone), "too_old": count(too_old), "too_large": count(too_large),
            "pushed": count(&self.taken.stored), "pushed_duplicates": count(&self.taken.duplicates),
        })
    }
}

/// A site splits its requests into a few connections; a larger number is a mistake or an attack.
const MOST_OF_AN_ADDRESS: usize = 64;
const STOP_PATIENCE: Duration = Duration::from_secs(2);
const STOP_LOOK: Duration = Duration::from_millis(10);
