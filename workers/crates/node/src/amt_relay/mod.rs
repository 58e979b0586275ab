//! `downburst-node amt-relay`: an AMT relay (RFC 7450) at the edge of a network with multicast.
//!
//! One thread per address answers gateways; one reads the multicast datagrams of the interface and sends a copy to each
//! gateway that has asked for them. Groups are joined while a gateway wants them, so the network sends nothing for
//! nobody. Datagrams stay as they are: those of a hub's legs are sealed, and the relay has none of their keys.
mod carrying;
mod figures;
mod joins;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use clap::Args;
use downburst_amt::{Network, PORT, Relay, RelaySettings};
use downburst_model::Micros;

use crate::signals;
use crate::udp::{ChannelSocket, Interface, Tap};
use carrying::Gateways;
use figures::{Figures, Reporter};
use joins::Joins;

/// The interface with multicast, the addresses for gateways, and the limits.
#[derive(Args, Debug)]
pub struct AmtRelayArguments {
    /// The interface that carries the groups: name, number or address. Needs CAP_NET_RAW.
    #[arg(long)]
    interface: String,
    /// An address for gateways, ADDRESS:PORT; may be given several times. Without it, port 2268 of every address.
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Vec<SocketAddr>,
    /// The address that answers to discoveries name, if gateways ask at another one (anycast); one for each IP version.
    #[arg(long, value_name = "ADDRESS")]
    advertise: Vec<IpAddr>,
    /// Carry only groups of this network, as 239.77.0.0/16; may be given several times. Without it, all but those of a
    /// link.
    #[arg(long, value_name = "NETWORK")]
    groups: Vec<Network>,
    /// Seconds between two queries of a gateway. The copies for a gateway that is gone end after twice this time and a
    /// second.
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=127))]
    query_seconds: u32,
    /// The most tunnels: one for each leg of each site.
    #[arg(long, default_value_t = 1_024, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    max_tunnels: u32,
    /// The most tunnels of one IPv4 address, or of one /64 of IPv6.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    max_tunnels_of_a_network: u32,
    /// The most groups that are joined at a time.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=4_096))]
    max_groups: u32,
    /// The most messages per second that are read from one IPv4 address, or from one /64 of IPv6.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    messages_per_second: u32,
    /// Write the figures of this relay every ten seconds to this file, in Prometheus' text format, for a collector of
    /// text files.
    #[arg(long, value_name = "FILE")]
    metrics: Option<PathBuf>,
}

/// The parts of a running relay that its threads share.
struct Shared {
    relay: Mutex<Relay>,
    gateways: Mutex<Gateways>,
    joins: Mutex<Joins>,
    figures: Figures,
    ends: AtomicBool,
    began: Instant,
}

/// Runs the relay until it is stopped.
pub async fn run(arguments: AmtRelayArguments) -> ExitCode {
    match begin(&arguments) {
        Ok((shared, threads)) => {
            let reporter = Reporter::new(Arc::clone(&shared), arguments.metrics);
            tokio::select! {
                () = signals::ended() => {}
                () = reporter.run() => {}
            }
            shared.ends.store(true, Ordering::Relaxed);
            threads.into_iter().for_each(|thread| drop(thread.join()));
            ExitCode::SUCCESS
        }
        Err(sentence) => {
            eprintln!("downburst-node: {sentence}");
            ExitCode::from(2)
        }
    }
}

fn begin(arguments: &AmtRelayArguments) -> Result<(Arc<Shared>, Vec<JoinHandle<()>>), String> {
    let interface = Interface::find(&arguments.interface).map_err(|error| error.to_string())?;
    let interface = interface.ok_or("name the --interface that carries the groups")?;
    let tap = Tap::open(&interface).map_err(|error| {
        format!("the groups of {} can't be read: {error}; give the relay CAP_NET_RAW", interface.name)
    })?;
    let sockets = sockets(&arguments.listen)?;
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).map_err(|error| format!("no random secret: {error}"))?;
    let shared = Arc::new(Shared {
        relay: Mutex::new(Relay::new(arguments.settings(), &secret)),
        gateways: Mutex::default(),
        joins: Mutex::new(Joins::new(&interface)),
        figures: Figures::default(),
        ends: AtomicBool::new(false),
        began: Instant::now(),
    });
    let mut threads = vec![spawn("amt-groups", {
        let (shared, sockets) = (Arc::clone(&shared), sockets.clone());
        move || carrying::carry(&shared, tap, &sockets)
    })?];
    for (number, socket) in sockets.into_iter().enumerate() {
        let shared = Arc::clone(&shared);
        threads.push(spawn("amt-gateways", move || carrying::answer(&shared, number, &socket))?);
    }
    Ok((shared, threads))
}

/// Of the default addresses, that of IPv6 may be missing.
fn sockets(listen: &[SocketAddr]) -> Result<Vec<Arc<ChannelSocket>>, String> {
    let any = [IpAddr::from([0; 4]), IpAddr::from([0; 16])].map(|address| SocketAddr::new(address, PORT));
    let (wanted, is_named) = if listen.is_empty() { (&any[..], false) } else { (listen, true) };
    let mut sockets = Vec::new();
    for address in wanted {
        match ChannelSocket::of_tunnels(*address) {
            Ok(socket) => {
                let address = socket.address().map(|bound| bound.to_string()).unwrap_or_default();
                tracing::info!(address, "AMT relay is ready");
                sockets.push(Arc::new(socket));
            }
            Err(error) if !is_named && address.is_ipv6() => {
                tracing::warn!(%error, "gateways of IPv6 are not served")
            }
            Err(error) => {
                return Err(format!("the relay can't listen at {address}: {error}; choose another --listen"));
            }
        }
    }
    Ok(sockets)
}

fn spawn(name: &str, thread: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, String> {
    let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(thread);
    spawned.map_err(|error| format!("no thread for the relay: {error}"))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn now(&self) -> Micros {
        Micros(u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    fn goes_on(&self) -> bool {
        !self.ends.load(Ordering::Relaxed)
    }
}

impl AmtRelayArguments {
    fn settings(&self) -> RelaySettings {
        let number = |value: u32| usize::try_from(value).unwrap_or(usize::MAX);
        RelaySettings {
            addresses: self.advertise.clone(),
            groups: self.groups.clone(),
            query_interval_s: self.query_seconds,
            most_tunnels: number(self.max_tunnels),
            most_tunnels_of_a_network: number(self.max_tunnels_of_a_network),
            most_channels: number(self.max_groups),
            messages_per_second: self.messages_per_second,
            ..RelaySettings::default()
        }
    }
}

/// The longest time for which a thread does not see that the relay ends, or that a membership is over.
const PATIENCE_MS: u16 = 200;
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// The help's examples.
pub const EXAMPLES: &str = "Examples:
  downburst-node amt-relay --interface eth1
  downburst-node amt-relay --interface eth1 --groups 239.77.0.0/16 --listen 192.0.2.1:2268
  downburst-node amt-relay --interface eth1 --advertise 192.0.2.1 --metrics /var/lib/node_exporter/amt.prom

The hub names this relay in its setting multicast.amt_relays, and sites whose multicast interface is `amt` have it send
them the legs of their feeds, a copy through each tunnel.";
