//! The account of a relay: bytes and rates of each tunnel, round trip and loss of both its segments. It goes into the
//! log, and to the hub that enrolled the relay.
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use downburst_hub::PathFacts;
use downburst_session::{MOST_TUNNELS_TOLD, RelayReport, RelayedLeg, Segment, TunnelFacts};
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc};

use crate::tcp;

/// All tunnels of a relay.
#[derive(Default)]
pub(super) struct Register {
    tunnels: Mutex<Tunnels>,
    refused: AtomicU64,
    has_ended: Notify,
}

#[derive(Default)]
struct Tunnels {
    open: BTreeMap<u64, Arc<Tunnel>>,
    /// Those that ended since the last report.
    ended: VecDeque<TunnelFacts>,
    last: u64,
}

/// One tunnel.
pub(super) struct Tunnel {
    number: u64,
    pub(super) site: TcpStream,
    pub(super) hub: TcpStream,
    peer: SocketAddr,
    target: String,
    began: Instant,
    pub(super) to_hub_bytes: AtomicU64,
    pub(super) to_site_bytes: AtomicU64,
    rate: Mutex<Rate>,
}

/// A rate between two moments.
struct Rate {
    at: Instant,
    bytes: u64,
    /// `None` before the first measurement.
    bps: Option<u64>,
}

impl Register {
    /// The tunnels of a moment: those that ended since the last report, and the fastest of the others. Its legs are
    /// empty.
    pub(super) fn report(&self) -> RelayReport {
        let (mut tunnels, open): (Vec<TunnelFacts>, Vec<Arc<Tunnel>>) = {
            let mut held = self.held();
            let count = held.ended.len().min(MOST_TUNNELS_TOLD);
            (held.ended.drain(..count).collect(), held.open.values().cloned().collect())
        };
        let mut open: Vec<(u64, Arc<Tunnel>)> =
            open.into_iter().map(|tunnel| (tunnel.rate_bps(), tunnel)).collect();
        open.sort_by_key(|(rate_bps, tunnel)| (std::cmp::Reverse(*rate_bps), tunnel.number));
        let room = MOST_TUNNELS_TOLD.saturating_sub(tunnels.len());
        tunnels.extend(open.iter().take(room).map(|(rate_bps, tunnel)| tunnel.facts(*rate_bps, false)));
        RelayReport { tunnels, legs: Vec::new(), refused: self.refused.load(Ordering::Relaxed) }
    }

    /// Sends a report every ten seconds and when a tunnel ends, until there is no receiver. `legs` are those of the
    /// moment.
    pub(super) async fn report_to(
        &self,
        reports: mpsc::UnboundedSender<RelayReport>,
        legs: impl Fn() -> Vec<RelayedLeg>,
    ) {
        while reports.send(RelayReport { legs: legs(), ..self.report() }).is_ok() {
            // Tunnels that end together go into one report.
            tokio::time::sleep(SHORTEST_INTERVAL).await;
            let rest = INTERVAL.saturating_sub(SHORTEST_INTERVAL);
            let _ = tokio::time::timeout(rest, self.has_ended.notified()).await;
        }
    }

    /// True if a tunnel comes from this host.
    pub(super) fn carries(&self, host: IpAddr) -> bool {
        self.held().open.values().any(|tunnel| tunnel.peer.ip().to_canonical() == host)
    }

    pub(super) fn refuses(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn open(
        &self,
        site: TcpStream,
        hub: TcpStream,
        peer: SocketAddr,
        target: &str,
    ) -> Arc<Tunnel> {
        tracing::info!(site = %peer, target, "tunnel");
        let mut held = self.held();
        held.last += 1;
        let tunnel = Arc::new(Tunnel::new(held.last, site, hub, peer, target));
        held.open.insert(tunnel.number, Arc::clone(&tunnel));
        tunnel
    }

    /// Closes the account of a tunnel that has ended.
    pub(super) fn close(&self, tunnel: &Tunnel, carried: &io::Result<()>) {
        tunnel.log_end(carried);
        let facts = tunnel.facts(tunnel.rate_bps(), true);
        let mut held = self.held();
        held.open.remove(&tunnel.number);
        held.ended.push_back(facts);
        if held.ended.len() > MOST_ENDED {
            held.ended.pop_front();
        }
        drop(held);
        self.has_ended.notify_one();
    }

    fn held(&self) -> MutexGuard<'_, Tunnels> {
        self.tunnels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tunnel {
    fn new(number: u64, site: TcpStream, hub: TcpStream, peer: SocketAddr, target: &str) -> Self {
        let (began, target) = (Instant::now(), target.to_owned());
        let rate = Mutex::new(Rate { at: began, bytes: 0, bps: None });
        let (to_hub_bytes, to_site_bytes) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { number, site, hub, peer, target, began, to_hub_bytes, to_site_bytes, rate }
    }

    /// Logs a tunnel that stands.
    pub(super) fn log_on(&self) {
        self.log("tunnel goes on");
    }

    fn log_end(&self, carried: &io::Result<()>) {
        match carried {
            Ok(()) => self.log("tunnel ended"),
            // A node that ends a session resets what it no longer reads.
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => {
                self.log("tunnel ended: one side reset it");
            }
            Err(error) => self.log(&format!("tunnel broke: {error}")),
        }
    }

    fn log(&self, event: &str) {
        let seconds = self.began.elapsed().as_secs_f64();
        let to_site_bytes = self.to_site_bytes.load(Ordering::Relaxed);
        tracing::info!(
            site = %self.peer,
            target = self.target,
            seconds = format!("{seconds:.1}"),
            to_site_bytes,
            to_hub_bytes = self.to_hub_bytes.load(Ordering::Relaxed),
            to_site_mbps = format!("{:.3}", to_site_bytes as f64 * 8e-6 / seconds.max(1e-3)),
            site_segment = in_words(&self.site),
            hub_segment = in_words(&self.hub),
            "{event}"
        );
    }

    fn rate_bps(&self) -> u64 {
        let bytes = self.to_site_bytes.load(Ordering::Relaxed);
        self.rate.lock().unwrap_or_else(PoisonError::into_inner).measure(Instant::now(), bytes)
    }

    fn facts(&self, rate_from_hub_bps: u64, ended: bool) -> TunnelFacts {
        TunnelFacts {
            site_side: canonical(self.peer).to_string(),
            hub_side: self.hub.local_addr().map(|it| canonical(it).to_string()).unwrap_or_default(),
            target: self.target.clone(),
            seconds: self.began.elapsed().as_secs(),
            bytes_from_hub: self.to_site_bytes.load(Ordering::Relaxed),
            bytes_from_site: self.to_hub_bytes.load(Ordering::Relaxed),
            rate_from_hub_bps,
            near: segment(&self.site),
            onward: segment(&self.hub),
            ended,
        }
    }
}

impl Rate {
    /// The rate since the last measurement; a shorter time than a second says too little for a new one.
    fn measure(&mut self, now: Instant, bytes: u64) -> u64 {
        let elapsed = now.saturating_duration_since(self.at);
        match self.bps {
            Some(bps) if elapsed < SHORTEST_INTERVAL => bps,
            _ => {
                let bits = bytes.saturating_sub(self.bytes).saturating_mul(8);
                let bps = (bits as f64 / elapsed.as_secs_f64().max(1e-3)) as u64;
                *self = Self { at: now, bytes, bps: Some(bps) };
                bps
            }
        }
    }
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// The kernel's figures of a segment.
fn segment(stream: &TcpStream) -> Segment {
    let Some(facts) = tcp::path_facts(stream) else { return Segment::default() };
    let PathFacts { least_round_trip_us, sent_segments, resent_segments, congestion, rate_bps, .. } = facts;
    let loss_ppm = resent_segments.saturating_mul(1_000_000).checked_div(sent_segments);
    let loss_ppm = loss_ppm.map(|ppm| ppm.min(1_000_000));
    Segment { round_trip_us: least_round_trip_us, loss_ppm, congestion, rate_bps }
}

/// The same as text.
fn in_words(stream: &TcpStream) -> String {
    let Some(facts) = tcp::path_facts(stream) else { return "unknown".to_owned() };
    let PathFacts { least_round_trip_us, sent_segments, resent_segments, congestion, .. } = facts;
    let round_trip = least_round_trip_us.map_or("?".to_owned(), |us| format!("{:.1} ms", us as f64 / 1e3));
    format!("{congestion}, {round_trip}, {resent_segments} of {sent_segments} sent again")
}

/// Between two lines of the log about a tunnel.
pub(super) const REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// Between two reports to the hub.
const INTERVAL: Duration = Duration::from_secs(10);
const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);

/// While there is no session, the oldest are forgotten.
const MOST_ENDED: usize = 4_096;

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    async fn connection() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (near, far) = tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), listener.accept());
        (near.unwrap(), far.unwrap().0)
    }

    /// A tunnel that has carried this number of bytes to its site.
    async fn tunnel(register: &Register, bytes: u64) -> Arc<Tunnel> {
        let ((site, _), (hub, _)) = (connection().await, connection().await);
        let peer = "[::ffff:10.0.0.9]:4000".parse().unwrap();
        let tunnel = register.open(site, hub, peer, "hub:7370");
        tunnel.to_site_bytes.store(bytes, Ordering::Relaxed);
        tunnel
    }

    #[tokio::test]
    async fn a_tunnel_is_reported_while_it_stands_and_once_after_its_end() {
        let register = Register::default();
        register.refuses();
        let tunnel = tunnel(&register, 1_000).await;
        let report = register.report();
        let [facts] = &report.tunnels[..] else { panic!("{report:?}") };
        assert_eq!((facts.site_side.as_str(), facts.target.as_str()), ("10.0.0.9:4000", "hub:7370"));
        assert_eq!(facts.hub_side, tunnel.hub.local_addr().unwrap().to_string());
        assert!(!facts.ended && facts.rate_from_hub_bps > 0 && facts.bytes_from_hub == 1_000, "{facts:?}");
        assert!(!facts.near.congestion.is_empty() && facts.near.round_trip_us.is_some(), "{facts:?}");
        assert_eq!(report.refused, 1);
        register.close(&tunnel, &Ok(()));
        let ended: Vec<bool> = register.report().tunnels.iter().map(|facts| facts.ended).collect();
        assert_eq!(ended, [true]);
        assert_eq!(register.report().tunnels, []);
    }

    #[tokio::test]
    async fn a_report_is_bounded_and_has_the_ended_and_the_fastest_tunnels() {
        let register = Register::default();
        let slow = tunnel(&register, 0).await;
        let mut many = Vec::new();
        for _ in 0..MOST_TUNNELS_TOLD {
            many.push(tunnel(&register, 1_000_000).await);
        }
        register.close(&slow, &Ok(()));
        let report = register.report();
        assert_eq!(report.tunnels.len(), MOST_TUNNELS_TOLD);
        assert!(report.tunnels[0].ended && report.tunnels[1..].iter().all(|it| it.rate_from_hub_bps > 0));
        let slow = tunnel(&register, 0).await;
        let numbers =
            |report: &RelayReport| report.tunnels.iter().filter(|it| it.bytes_from_hub == 0).count();
        assert_eq!(numbers(&register.report()), 0, "the slowest has no room");
        many.iter().for_each(|tunnel| register.close(tunnel, &Ok(())));
        register.report();
        assert_eq!(numbers(&register.report()), 1);
        for _ in 0..MOST_ENDED + 9 {
            register.close(&slow, &Ok(()));
        }
        assert_eq!(register.held().ended.len(), MOST_ENDED);
    }

    #[tokio::test]
    async fn a_tunnel_that_ends_is_reported_soon() {
        let register = Arc::new(Register::default());
        let (sender, mut reports) = mpsc::unbounded_channel();
        let (reporting, began) = (Arc::clone(&register), Instant::now());
        let leg = RelayedLeg { leg: downburst_model::LegId(7), datagrams: 1, bytes: 2, dropped: 3 };
        tokio::spawn(async move { reporting.report_to(sender, || vec![leg.clone()]).await });
        let first = reports.recv().await.unwrap();
        assert_eq!((first.tunnels.len(), first.legs.len()), (0, 1));
        let tunnel = tunnel(&register, 5).await;
        register.close(&tunnel, &Ok(()));
        let second = reports.recv().await.unwrap();
        assert!(second.tunnels.len() == 1 && second.tunnels[0].ended, "{second:?}");
        assert!((SHORTEST_INTERVAL..INTERVAL).contains(&began.elapsed()), "{:?}", began.elapsed());
    }

    #[test]
    fn a_rate_is_that_of_the_time_since_the_last_report() {
        let began = Instant::now();
        let mut rate = Rate { at: began, bytes: 0, bps: None };
        let after = |millis| began + Duration::from_millis(millis);
        assert_eq!(rate.measure(after(500), 1_000), 16_000, "the first, however early");
        assert_eq!(rate.measure(after(600), 9_000), 16_000);
        assert_eq!(rate.measure(after(2_500), 2_000), 4_000);
        assert_eq!(rate.measure(after(4_500), 2_000), 0);
    }
}
