//! The port for LDMs that ask this hub for products or push to it.
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use downburst_clock::Clock;
use downburst_hub::SiteLine;
use downburst_model::{SiteName, WallMicros};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::config::LdmAcceptLine;
use super::connection;
use super::gateway::{Context, lock};
use super::host_names;
use super::hub::Failure;
use super::intake::Counts;
use super::routes::Routes;
use super::rules::Rules;

/// Who listens, and who came.
#[derive(Default)]
pub(super) struct Server {
    open: tokio::sync::Mutex<BTreeMap<String, Listener>>,
    addresses: Mutex<Vec<String>>,
    accept: Mutex<Vec<LdmAcceptLine>>,
    rules: RwLock<Arc<Rules>>,
    peers: Mutex<BTreeMap<u32, Arc<Peer>>>,
    most_peers: AtomicUsize,
}

struct Listener {
    task: JoinHandle<()>,
    address: SocketAddr,
}

/// One connection.
pub(super) struct Peer {
    pub(super) id: u32,
    pub(super) address: IpAddr,
    pub(super) standing: Mutex<Standing>,
    pub(super) counts: Served,
    /// What it pushed.
    pub(super) taken: Arc<Counts>,
    /// Why it has to go.
    pub(super) end: watch::Sender<Option<&'static str>>,
    since: WallMicros,
}

/// What a connection is.
#[derive(Default)]
pub(super) struct Standing {
    pub(super) names: Vec<String>,
    pub(super) site: Option<SiteName>,
    /// `feedme`, `notifyme`, `hiya`; empty before it said.
    pub(super) what: &'static str,
    pub(super) mode: &'static str,
    pub(super) class: String,
    /// The rules that it is served by.
    pub(super) said: Vec<String>,
}

/// What was sent on a connection. The protocol has no receipts: what was answered is what the peer had dealt with.
#[derive(Default)]
pub(super) struct Served {
    pub(super) products: AtomicU64,
    pub(super) bytes: AtomicU64,
    /// Those that were sent before a NULLPROC that was answered.
    pub(super) answered: AtomicU64,
    pub(super) answered_at: AtomicU64,
    /// Bytes that TCP has no acknowledgement for, a second ago at most while something moves.
    pub(super) unacknowledged: AtomicU64,
    pub(super) gone: AtomicU64,
    pub(super) too_old: AtomicU64,
    pub(super) too_large: AtomicU64,
}

impl Server {
    pub(super) fn accept_from(&self, lines: Vec<LdmAcceptLine>) {
        *lock(&self.accept) = lines;
    }

    /// Listens at these addresses, and no others.
    pub(super) async fn listen(
        &self,
        context: &Context,
        wanted: Vec<String>,
        most_peers: usize,
    ) -> Result<(), Failure> {
        self.most_peers.store(most_peers, Ordering::Relaxed);
        let mut open = self.open.lock().await;
        open.retain(|address, listener| {
            let stays = wanted.contains(address);
            if !stays {
                listener.task.abort();
            }
            stays
        });
        let mut failed = Ok(());
        for address in wanted.into_iter().filter(|address| !address.is_empty()) {
            if open.contains_key(&address) {
                continue;
            }
            match listen(context, &address).await {
                Ok(listener) => drop(open.insert(address, listener)),
                Err(failure) => failed = Err(failure),
            }
        }
        *lock(&self.addresses) = open.values().map(|listener| listener.address.to_string()).collect();
        failed
    }

    pub(super) fn addresses(&self) -> Vec<String> {
        lock(&self.addresses).clone()
    }

    pub(super) fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.rules.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Who is served by rules that changed has to ask again.
    pub(super) fn look_at_rights(&self, routes: &Routes, sites: Vec<SiteLine>) {
        let rules = Arc::new(Rules::of(routes, sites, &lock(&self.accept)));
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&rules);
        for peer in lock(&self.peers).values() {
            let standing = lock(&peer.standing);
            if !standing.what.is_empty() && standing.said != rules.said(&standing.names) {
                peer.end.send_replace(Some("its rights to request or push were changed"));
            }
        }
    }

    pub(super) fn is_alive(&self, id: u32) -> bool {
        lock(&self.peers).contains_key(&id)
    }

    pub(super) fn status(&self) -> Value {
        lock(&self.peers).values().map(|peer| peer.status()).collect()
    }

    pub(super) async fn end(&self) {
        for listener in std::mem::take(&mut *self.open.lock().await).into_values() {
            listener.task.abort();
        }
        for peer in lock(&self.peers).values() {
            peer.end.send_replace(Some("this hub stops"));
        }
        let until = tokio::time::Instant::now() + STOP_PATIENCE;
        while !lock(&self.peers).is_empty() && tokio::time::Instant::now() < until {
            tokio::time::sleep(STOP_LOOK).await;
        }
    }

    /// A place for a connection, unless there are too many.
    fn enter(&self, clock: Clock, address: IpAddr) -> Result<Arc<Peer>, &'static str> {
        let mut peers = lock(&self.peers);
        if peers.len() >= self.most_peers.load(Ordering::Relaxed) {
            return Err("as many LDMs are connected as the setting ldm.max_clients allows");
        }
        if peers.values().filter(|peer| peer.address == address).count() >= MOST_OF_AN_ADDRESS {
            return Err("its address has as many connections as one may have");
        }
        let id = (peers.keys().next_back().copied().unwrap_or(0)).wrapping_add(1).max(1);
        let peer = Arc::new(Peer {
            id,
            address,
            standing: Mutex::default(),
            counts: Served::default(),
            taken: Arc::default(),
            end: watch::Sender::new(None),
            since: clock.wall(),
        });
        peers.insert(id, Arc::clone(&peer));
        Ok(peer)
    }

    fn leave(&self, peer: &Peer) {
        lock(&self.peers).remove(&peer.id);
    }
}

impl Peer {
    /// What it is called: by its name if it has one.
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

async fn listen(context: &Context, address: &str) -> Result<Listener, Failure> {
    let busy = |error: std::io::Error| {
        let advice = match error.kind() {
            std::io::ErrorKind::PermissionDenied => {
                "ports below 1024 need the capability CAP_NET_BIND_SERVICE, or the setting ldm.listen another port"
            }
            std::io::ErrorKind::AddrInUse => "stop the LDM that holds it, or set ldm.listen to another port",
            _ => "correct the setting ldm.listen",
        };
        Failure {
            code: "port-in-use",
            sentence: format!("the hub can't listen on {address} for LDMs: {error}; {advice}"),
        }
    };
    let listener = TcpListener::bind(address).await.map_err(busy)?;
    let address = listener.local_addr().map_err(busy)?;
    tracing::info!(%address, "LDMs can request and push products here");
    Ok(Listener { task: tokio::spawn(take(context.clone(), listener)), address })
}

async fn take(context: Context, listener: TcpListener) {
    loop {
        match listener.accept().await {
            Ok((stream, from)) => drop(tokio::spawn(greet(context.clone(), stream, from))),
            Err(error) => {
                let sentence =
                    format!("an LDM could not be accepted: {error}; raise the limit of open files");
                context.hub.fault(sentence);
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn greet(context: Context, stream: TcpStream, from: SocketAddr) {
    let server = &context.server;
    match server.enter(context.clock, from.ip().to_canonical()) {
        Err(reason) => tracing::warn!(peer = %from, reason, "an LDM was turned away"),
        Ok(peer) => {
            let called = host_names::of(from).await;
            lock(&peer.standing).names = called;
            connection::serve(&context, stream, &peer).await;
            server.leave(&peer);
        }
    }
}

/// A site splits its requests into a few; what is more is a mistake or worse.
const MOST_OF_AN_ADDRESS: usize = 64;
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);
const STOP_PATIENCE: Duration = Duration::from_secs(2);
const STOP_LOOK: Duration = Duration::from_millis(10);
