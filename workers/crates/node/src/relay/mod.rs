//! A relay: carries the connections of sites to a hub in two segments, each with a TCP of its own.
//!
//! A site requests a tunnel (HTTP's CONNECT); the bytes in it are the TLS between site and hub, which a relay can
//! neither read nor change unseen. A byte leaves as soon as it came: what a relay holds is one piece per direction, and
//! the kernel's buffers, which follow the bytes in flight of their segment. A relay stores nothing.
//!
//! A relay that a hub has enrolled holds a session with it. It may then send multicast legs into its network, and it
//! carries nothing any more once the hub refuses it.
mod account;
mod carry;
mod enrolled;
mod onward;

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use crate::site::CircuitPeers;
use crate::tunnel::{self, Asked, Refusal};
use crate::{signals, tcp};
use account::Register;
use enrolled::{Enrolled, Refused, Shared};

pub use enrolled::Enrolment;

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
    /// Its enrolment at a hub, if it has one.
    pub enrolment: Option<Enrolment>,
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
    let (refuse, refused) = watch::channel(None);
    let (end, ending) = watch::channel(false);
    let shared = Shared { register: Arc::default(), peers: CircuitPeers::default(), ending };
    let session = hold_session(relay.enrolment.clone(), shared.clone(), refuse)?;
    let has_session = relay.enrolment.is_some();
    tokio::pin!(session);
    tokio::select! {
        () = accept(Arc::new(Running::new(relay, shared, refused)), listener) => {}
        () = &mut session => return Ok(()),
        () = signals::ended() => {}
    }
    end.send_replace(true);
    if has_session {
        // The ends of circuits are removed in this time; the next start removes the rest.
        let _ = tokio::time::timeout(FAREWELL, session).await;
    }
    Ok(())
}

/// Holds the session of an enrolled relay; a relay without one is never refused.
fn hold_session(
    enrolment: Option<Enrolment>,
    shared: Shared,
    refuse: watch::Sender<Refused>,
) -> Result<impl Future<Output = ()>, String> {
    let enrolled = enrolment.map(|enrolment| Enrolled::open(enrolment, shared, refuse)).transpose()?;
    Ok(async {
        match enrolled {
            Some(enrolled) => enrolled.run().await,
            None => std::future::pending().await,
        }
    })
}

/// A relay and its present tunnels.
struct Running {
    relay: Relay,
    free: Arc<Semaphore>,
    by_address: Mutex<HashMap<IpAddr, usize>>,
    register: Arc<Register>,
    peers: CircuitPeers,
    refused: watch::Receiver<Refused>,
}

/// One of the tunnels, until it is dropped.
struct Held {
    running: Arc<Running>,
    address: IpAddr,
    _permit: tokio::sync::OwnedSemaphorePermit,
}

impl Running {
    fn new(relay: Relay, Shared { register, peers, .. }: Shared, refused: watch::Receiver<Refused>) -> Self {
        let free = Arc::new(Semaphore::new(relay.most_tunnels));
        Self { relay, free, by_address: Mutex::default(), register, peers, refused }
    }

    /// The address to which a tunnel may lead: one that the operator named, or the opposite end of one of the relay's
    /// circuits, at a port that the operator named or that the relay has itself.
    fn target(&self, asked: &str) -> Option<String> {
        let named = self.relay.to.iter().find(|to| to.eq_ignore_ascii_case(asked));
        named.cloned().or_else(|| {
            let at: SocketAddr = asked.parse().ok()?;
            let mut places = self.relay.to.iter().chain([&self.relay.listen]);
            let is_known_port = places.any(|place| port_of(place) == Some(at.port()));
            (is_known_port && self.peers.has(at.ip())).then(|| at.to_string())
        })
    }

    /// Waits until the relay can or may not carry a tunnel from this peer to this target any more; returns the reason.
    async fn ends(&self, peer: SocketAddr, target: &str) -> io::Error {
        let opposite = |address: IpAddr| self.peers.has(address).then_some(address);
        let onward = target.parse::<SocketAddr>().ok().and_then(|at| opposite(at.ip()));
        tokio::select! {
            reason = self.is_refused() => reason,
            reason = self.circuit_ends(onward) => reason,
            reason = self.circuit_ends(opposite(peer.ip().to_canonical())) => reason,
        }
    }

    /// Waits until the circuit with this opposite end is removed, if a tunnel is over one. Its bytes would wait for
    /// nothing; the site would find that out late, and the hub take the former session for another receiver.
    async fn circuit_ends(&self, opposite: Option<IpAddr>) -> io::Error {
        let Some(opposite) = opposite else { return std::future::pending().await };
        self.peers.is_gone(opposite).await;
        io::Error::other(format!("the circuit to {opposite} is removed"))
    }

    /// Waits until the hub refuses the relay; returns the reason.
    async fn is_refused(&self) -> io::Error {
        let mut refused = self.refused.clone();
        let Ok(sentence) = refused.wait_for(Option::is_some).await.map(|sentence| sentence.clone()) else {
            // A relay without a session.
            return std::future::pending().await;
        };
        io::Error::other(refusal(sentence.unwrap_or_default()))
    }

    fn hold(self: &Arc<Self>, peer: SocketAddr) -> Result<Held, Refusal> {
        let busy = |sentence: String| Refusal { status: 503, sentence };
        if let Some(sentence) = self.refused.borrow().clone() {
            return Err(busy(refusal(sentence)));
        }
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
                let carried = tokio::select! {
                    carried = carry::carry(&tunnel, &asked.early) => carried,
                    reason = running.ends(peer, &asked.target) => Err(reason),
                };
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
    let Some(target) = running.target(&asked.target) else {
        let sentence = format!("{} is no target of this relay; its operator adds it with --to", asked.target);
        return Err(Refusal { status: 403, sentence });
    };
    let hub =
        onward::connect(&target, running.relay.congestion_onward.as_deref()).await.map_err(|error| {
            let status = if error.kind() == io::ErrorKind::TimedOut { 504 } else { 502 };
            Refusal { status, sentence: format!("{target} can't be reached from the relay: {error}") }
        })?;
    Ok((held, hub, asked))
}

fn port_of(place: &str) -> Option<u16> {
    place.rsplit_once(':')?.1.parse().ok()
}

fn refusal(sentence: String) -> String {
    format!("the hub refuses this relay: {sentence}")
}

const REQUEST_PATIENCE: Duration = Duration::from_secs(10);
const FAREWELL: Duration = Duration::from_secs(5);
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// A relay to `target`, in this process; returns its address.
    async fn relay(target: &str, most_tunnels: usize) -> String {
        let (refuse, refused) = watch::channel(None);
        drop(refuse);
        relay_with(target, most_tunnels, CircuitPeers::default(), refused).await
    }

    async fn relay_with(
        target: &str,
        most_tunnels: usize,
        peers: CircuitPeers,
        refused: watch::Receiver<Refused>,
    ) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let relay = Relay {
            listen: address.clone(),
            to: vec![target.to_owned()],
            congestion: None,
            congestion_onward: Some("reno".to_owned()),
            most_tunnels,
            enrolment: None,
        };
        let shared = Shared { register: Arc::default(), peers, ending: watch::channel(false).1 };
        tokio::spawn(accept(Arc::new(Running::new(relay, shared, refused)), listener));
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
    async fn the_opposite_end_of_a_circuit_is_a_target_at_known_ports_while_the_circuit_is_held() {
        let echo = echo().await;
        let port = echo.rsplit_once(':').unwrap().1;
        let opposite = format!("127.0.0.1:{port}");
        let (_refuse, refused) = watch::channel(None);
        let peers = CircuitPeers::default();
        let relay = relay_with(&format!("hub.invalid:{port}"), 8, peers.clone(), refused).await;
        assert!(through(&relay, &opposite).await.unwrap_err().to_string().contains("(403)"));
        peers.set(["127.0.0.1".parse().unwrap()].into());
        let mut stream = through(&relay, &opposite).await.unwrap();
        stream.write_all(b"over").await.unwrap();
        assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 4);
        for other in ["127.0.0.1:22", "127.0.0.2:22", &format!("127.0.0.2:{port}")] {
            assert!(through(&relay, other).await.unwrap_err().to_string().contains("(403)"), "{other}");
        }
        peers.set([].into());
        assert!(matches!(stream.read(&mut [0; 8]).await, Ok(0) | Err(_)), "its tunnels end with it");
        assert!(through(&relay, &opposite).await.unwrap_err().to_string().contains("(403)"));
    }

    #[tokio::test]
    async fn a_tunnel_that_came_over_a_circuit_ends_with_it() {
        let echo = echo().await;
        let (_refuse, refused) = watch::channel(None);
        let peers = CircuitPeers::default();
        let relay = relay_with(&echo, 8, peers.clone(), refused).await;
        let mut before = through(&relay, &echo).await.unwrap();
        peers.set(["127.0.0.1".parse().unwrap()].into());
        let mut over = through(&relay, &echo).await.unwrap();
        peers.set([].into());
        assert!(matches!(over.read(&mut [0; 8]).await, Ok(0) | Err(_)), "the circuit is gone");
        before.write_all(b"routed").await.unwrap();
        assert_eq!(before.read(&mut [0; 8]).await.unwrap(), 6, "it came by another way");
    }

    #[tokio::test]
    async fn a_relay_that_its_hub_refuses_ends_its_tunnels_and_opens_none_until_it_is_admitted() {
        let echo = echo().await;
        let (refuse, refused) = watch::channel(None);
        let relay = relay_with(&echo, 8, CircuitPeers::default(), refused).await;
        let mut open = through(&relay, &echo).await.unwrap();
        refuse.send_replace(Some("revoked".to_owned()));
        let mut piece = [0; 8];
        assert!(matches!(open.read(&mut piece).await, Ok(0) | Err(_)), "it ended");
        let refusal = through(&relay, &echo).await.unwrap_err().to_string();
        assert!(refusal.contains("(503)") && refusal.contains("refuses this relay: revoked"), "{refusal}");
        refuse.send_replace(None);
        let mut again = through(&relay, &echo).await.unwrap();
        again.write_all(b"anew").await.unwrap();
        assert_eq!(again.read(&mut piece).await.unwrap(), 4);
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
