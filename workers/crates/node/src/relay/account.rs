//! The log of a relay's performance: bytes and rates of each tunnel, round trip and loss of both its segments.
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use downburst_hub::PathFacts;
use tokio::net::TcpStream;

use crate::tcp;

/// One tunnel's account.
pub(super) struct Account {
    site: SocketAddr,
    target: String,
    began: Instant,
    pub(super) to_hub_bytes: AtomicU64,
    pub(super) to_site_bytes: AtomicU64,
}

impl Account {
    pub(super) fn new(site: SocketAddr, target: &str) -> Self {
        tracing::info!(%site, target, "tunnel");
        let (to_hub_bytes, to_site_bytes) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { site, target: target.to_owned(), began: Instant::now(), to_hub_bytes, to_site_bytes }
    }

    /// Logs a tunnel that stands.
    pub(super) fn goes_on(&self, site: &TcpStream, hub: &TcpStream) {
        self.log("tunnel goes on", site, hub);
    }

    /// Logs the end of a tunnel.
    pub(super) fn ended(&self, site: &TcpStream, hub: &TcpStream, carried: &io::Result<()>) {
        match carried {
            Ok(()) => self.log("tunnel ended", site, hub),
            // A node that ends a session resets what it no longer reads.
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => {
                self.log("tunnel ended: one side reset it", site, hub);
            }
            Err(error) => self.log(&format!("tunnel broke: {error}"), site, hub),
        }
    }

    fn log(&self, event: &str, site: &TcpStream, hub: &TcpStream) {
        let seconds = self.began.elapsed().as_secs_f64();
        let to_site_bytes = self.to_site_bytes.load(Ordering::Relaxed);
        tracing::info!(
            site = %self.site,
            target = self.target,
            seconds = format!("{seconds:.1}"),
            to_site_bytes,
            to_hub_bytes = self.to_hub_bytes.load(Ordering::Relaxed),
            to_site_mbps = format!("{:.3}", to_site_bytes as f64 * 8e-6 / seconds.max(1e-3)),
            site_segment = segment(site),
            hub_segment = segment(hub),
            "{event}"
        );
    }
}

/// The kernel's figures of a segment, as text.
fn segment(stream: &TcpStream) -> String {
    let Some(facts) = tcp::path_facts(stream) else { return "unknown".to_owned() };
    let PathFacts { least_round_trip_us, sent_segments, resent_segments, congestion, .. } = facts;
    let round_trip = least_round_trip_us.map_or("?".to_owned(), |us| format!("{:.1} ms", us as f64 / 1e3));
    format!("{congestion}, {round_trip}, {resent_segments} of {sent_segments} sent again")
}

pub(super) const REPORT_INTERVAL: Duration = Duration::from_secs(60);
