//! The ports for LDMs that request products from this hub or push to it.
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::peers::Peers;
use super::{connection, host_names};
use crate::context::Context;
use crate::hub::Failure;
use crate::lock;

/// The gateway's listening sockets.
#[derive(Default)]
pub(crate) struct Listeners {
    open: tokio::sync::Mutex<BTreeMap<String, Listener>>,
    addresses: Mutex<Vec<String>>,
}

struct Listener {
    task: JoinHandle<()>,
    address: SocketAddr,
}

impl Listeners {
    /// Listens on exactly these addresses.
    pub(crate) async fn listen(
        &self,
        context: &Context,
        peers: &Arc<Peers>,
        wanted: Vec<String>,
    ) -> Result<(), Failure> {
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
            match listen(context, peers, &address).await {
                Ok(listener) => drop(open.insert(address, listener)),
                Err(failure) => failed = Err(failure),
            }
        }
        *lock(&self.addresses) = open.values().map(|listener| listener.address.to_string()).collect();
        failed
    }

    pub(crate) fn addresses(&self) -> Vec<String> {
        lock(&self.addresses).clone()
    }

    pub(crate) async fn end(&self) {
        for listener in std::mem::take(&mut *self.open.lock().await).into_values() {
            listener.task.abort();
        }
    }
}

async fn listen(context: &Context, peers: &Arc<Peers>, address: &str) -> Result<Listener, Failure> {
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
    Ok(Listener { task: tokio::spawn(take(context.clone(), Arc::clone(peers), listener)), address })
}

async fn take(context: Context, peers: Arc<Peers>, listener: TcpListener) {
    loop {
        match listener.accept().await {
            Ok((stream, from)) => {
                drop(tokio::spawn(greet(context.clone(), Arc::clone(&peers), stream, from)))
            }
            Err(error) => {
                let sentence =
                    format!("an LDM could not be accepted: {error}; raise the limit of open files");
                context.hub.fault(sentence);
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn greet(context: Context, peers: Arc<Peers>, stream: TcpStream, from: SocketAddr) {
    match peers.enter(context.clock, from.ip().to_canonical()) {
        Err(reason) => tracing::warn!(peer = %from, reason, "an LDM was turned away"),
        Ok(peer) => {
            let called = host_names::of(from).await;
            lock(&peer.standing).names = called;
            connection::serve(&context, &peers, stream, &peer).await;
            peers.leave(&peer);
        }
    }
}

const ACCEPT_PAUSE: Duration = Duration::from_millis(200);
