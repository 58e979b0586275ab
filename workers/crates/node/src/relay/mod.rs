//! A relay: carries the connections of sites to a hub in two segments, each with a TCP of its own.
//!
//! A site requests a tunnel (HTTP's CONNECT); the bytes in it are the TLS between site and hub, which a relay can
//! neither read nor change unseen. A byte leaves as soon as it came: what a relay holds is one piece per direction, and
//! the kernel's buffers, which follow the bytes in flight of their segment. A relay stores nothing.
mod account;
mod carry;
mod onward;

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::tunnel::{self, Asked, Refusal};
use crate::{signals, tcp};

pub use account::Register;

/// The settings of a relay.
#[derive(Clone, Debug)]
pub struct Relay {
    /// The address for sites, `HOST:PORT`.
    pub listen: String,
    /// The addresses to which it makes tunnels: nodes of hubs, or further relays, `HOST:PORT`.
    pub to: Vec<String>,
    /// The congestion control towards sites; `None`: the system's.
    pub congestion: Option<String>,
    /// The congestion control towards hubs; `None`: the system's.
    pub congestion_onward: Option<String>,
    /// The most tunnels at a time; an address may have a quarter of them.
    pub most_tunnels: usize,
}

/// Runs the relay until it is stopped; the error is a sentence.
pub async fn run(relay: Relay) -> Result<(), String> {
    let listener = TcpListener::bind(&relay.listen).await.map_err(|error| {
        format!("the relay can't listen at {}: {error}; choose another --listen", relay.listen)
    })?;
    if let Some(name) = &relay.congestion {
        tcp::use_congestion_control(&listener, name)?;
    }
    onward::check(&relay)?;
    let address = listener.local_addr().map(|address| address.to_string()).unwrap_or_default();
    tracing::info!(address, to = relay.to.join(", "), "relay is ready");
    let running = Arc::new(Running::new(relay));
    tokio::select! {
        () = accept(running, listener) => {}
        () = signals::ended() => {}
    }
    Ok(())
}

/// A relay and its present tunnels.
struct Running {
    relay: Relay,
    free: Arc<Semaphore>,
    by_address: Mutex<HashMap<IpAddr, usize>>,
    register: Arc<Register>,
}

/// One of the tunnels, until it is dropped.
struct Held {
    running: Arc<Running>,
    address: IpAddr,
    _permit: tokio::sync::OwnedSemaphorePermit,
}

impl Running {
    fn new(relay: Relay) -> Self {
        let free = Arc::new(Semaphore::new(relay.most_tunnels));
        Self { relay, free, by_address: Mutex::default(), register: Arc::default() }
    }

    fn hold(self: &Arc<Self>, peer: SocketAddr) -> Result<Held, Refusal> {
        let busy = |sentence: String| Refusal { status: 503, sentence };
        let permit = Arc::clone(&self.free).try_acquire_owned().map_err(|_| {
            busy(format!("the relay carries {} tunnels already, its most", self.relay.most_tunnels))
        })?;
        let address = peer.ip().to_canonical();
        let most = self.relay.most_tunnels.div_ceil(4);
        let mut by_address = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        let count = by_address.entry(address).or_default();
        if *count >= most {
            return Err(busy(format!("{address} has {most} tunnels already, a quarter of the relay's")));
        }
        *count += 1;
        Ok(Held { running: Arc::clone(self), address, _permit: permit })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut by_address = self.running.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = by_address.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                by_address.remove(&self.address);
            }
        }
    }
}

async fn accept(running: Arc<Running>, listener: TcpListener) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => drop(tokio::spawn(serve(Arc::clone(&running), stream, peer))),
            Err(error) => {
                tracing::error!("a connection could not be accepted: {error}; raise the limit of open files");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Serves one connection of a site; no failure reaches another one.
async fn serve(running: Arc<Running>, mut site: TcpStream, peer: SocketAddr) {
    onward::prepare(&site);
    match open(&running, &mut site, peer).await {
        Ok((held, hub, asked)) => {
            if tunnel::grant(&mut site).await.is_ok() {
                let tunnel = running.register.open(site, hub, peer, &asked.target);
                let carried = carry::carry(&tunnel, &asked.early).await;
                running.register.close(&tunnel, &carried);
            }
            drop(held);
        }
        Err(refusal) => {
            running.register.refuses();
            tracing::warn!(site = %peer, status = refusal.status, "refused: {}", refusal.sentence);
            // A peer that does not read its refusal has its connection closed all the same.
            let _ = tokio::time::timeout(REQUEST_PATIENCE, tunnel::refuse(&mut site, &refusal)).await;
        }
    }
}

async fn open(
    running: &Arc<Running>,
    site: &mut TcpStream,
    peer: SocketAddr,
) -> Result<(Held, TcpStream, Asked), Refusal> {
    let held = running.hold(peer)?;
    let heard = tokio::time::timeout(REQUEST_PATIENCE, tunnel::hear(site)).await;
    let asked = heard.map_err(|_| Refusal {
        status: 408,
        sentence: format!("no request came within {} s", REQUEST_PATIENCE.as_secs()),
    })??;
    let Some(target) = running.relay.to.iter().find(|to| to.eq_ignore_ascii_case(&asked.target)) else {
        let sentence = format!("{} is no target of this relay; its operator adds it with --to", asked.target);
        return Err(Refusal { status: 403, sentence });
    };
    let hub = onward::connect(target, running.relay.congestion_onward.as_deref()).await.map_err(|error| {
        let status = if error.kind() == io::ErrorKind::TimedOut { 504 } else { 502 };
        Refusal { status, sentence: format!("{target} can't be reached from the relay: {error}") }
    })?;
    Ok((held, hub, asked))
}

const REQUEST_PATIENCE: Duration = Duration::from_secs(10);
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// A relay to `target`, in this process; returns its address.
    async fn relay(target: &str, most_tunnels: usize) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let relay = Relay {
            listen: address.clone(),
            to: vec![target.to_owned()],
            congestion: None,
            congestion_onward: Some("reno".to_owned()),
            most_tunnels,
        };
        tokio::spawn(accept(Arc::new(Running::new(relay)), listener));
        address
    }

    /// A server that answers each piece with itself; returns its address.
    async fn echo() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut read, mut write) = stream.into_split();
                    tokio::io::copy(&mut read, &mut write).await
                });
            }
        });
        address
    }

    async fn through(relay: &str, target: &str) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect(relay).await?;
        tunnel::ask(&mut stream, target).await?;
        Ok(stream)
    }

    #[tokio::test]
    async fn bytes_pass_both_ways_and_each_end_is_passed_on() {
        let echo = echo().await;
        let relay = relay(&echo, 8).await;
        let mut stream = through(&relay, &echo).await.unwrap();
        let sent: Vec<u8> = (0..3_000_000_u32).map(|number| number as u8).collect();
        let (mut read, mut write) = stream.split();
        let (mut got, sending) = (Vec::new(), async {
            write.write_all(&sent).await?;
            write.shutdown().await
        });
        let (sent_all, got_all) = tokio::join!(sending, read.read_to_end(&mut got));
        assert!(sent_all.is_ok() && got_all.is_ok() && got == sent);
    }

    #[tokio::test]
    async fn a_target_that_is_not_granted_or_away_is_refused_with_the_remedy() {
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().to_string();
        let relay = relay(&free, 8).await;
        let other = through(&relay, "10.0.0.1:22").await.unwrap_err().to_string();
        assert!(other.contains("(403)") && other.contains("--to"), "{other}");
        let away = through(&relay, &free).await.unwrap_err().to_string();
        assert!(away.contains("(502)") && away.contains("can't be reached"), "{away}");
    }

    #[tokio::test]
    async fn an_address_holds_a_quarter_of_the_tunnels_and_gives_them_back() {
        let echo = echo().await;
        let relay = relay(&echo, 8).await;
        let mut held = Vec::new();
        for _ in 0..2 {
            held.push(through(&relay, &echo).await.unwrap());
        }
        let third = through(&relay, &echo).await.unwrap_err().to_string();
        assert!(third.contains("(503)") && third.contains("has 2 tunnels"), "{third}");
        drop(held);
        while through(&relay, &echo).await.is_err() {
            tokio::task::yield_now().await;
        }
    }
}
