//! Many receiving sites in one process: real sessions over real TLS, driven by the machine that every site
//! runs, without logs and files.
//!
//! For tests and measurements. What it prints is one object of JSON per line on stdout; the last one sums up the run.
#![forbid(unsafe_code)]
// A shell around the session's machine, as the node is.
#![allow(clippy::disallowed_methods)]

mod hostile;
mod identity;
mod insider;
mod probe;
mod products;
mod site;
mod statistics;

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use crate::hostile::{Attack, KnownFeed};
use crate::identity::{Enrolled, Identity};
use crate::probe::Probe;
use crate::site::{Manner, Site};
use crate::statistics::Statistics;

/// Connects as many receiving sites to a hub as the token file has lines, and counts what they get.
///
/// No site has a log: what it received is forgotten, and after a restart each feed begins at its head.
#[derive(Debug, Parser)]
#[command(name = "downburst-swarm", version, after_help = EXAMPLES)]
struct Arguments {
    /// The hub's address for sites.
    #[arg(long, value_name = "HOST:PORT")]
    hub: String,
    /// One site per line: an enrolment token, or a line that --enrolled-file wrote.
    #[arg(long, value_name = "FILE")]
    token_file: PathBuf,
    /// The number of lines to use; all if not given.
    #[arg(long, value_name = "N")]
    sites: Option<usize>,
    /// Put each product together and check its digest before its receipt; otherwise bytes are dropped unread.
    #[arg(long)]
    receive: bool,
    /// End after this number of seconds; otherwise at SIGTERM, SIGINT.
    #[arg(long)]
    seconds: Option<f64>,
    /// The number of sites that begin to connect per second at the start.
    #[arg(long, value_name = "N", default_value_t = 200.0)]
    connects_per_second: f64,
    /// The interval between two lines, in seconds.
    #[arg(long, default_value_t = 1.0)]
    every: f64,
    /// Threads that drive the sites.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Take part in multicast legs on the interface with this address, and forge datagrams of their groups: for tests.
    #[arg(long, value_name = "ADDRESS", hide = true)]
    insider: Option<Ipv4Addr>,
    /// Acknowledge everything and deliver nothing, like receivers whose consumers are cut off: for tests.
    #[arg(long, hide = true)]
    swallow: bool,
    /// Play this number of sessions of hostile sites, then end: frames that decode well and make no sense,
    /// for tests. The lines are those that --enrolled-file wrote.
    #[arg(long, value_name = "SESSIONS", hide = true)]
    hostile: Option<u64>,
    /// Of the hostile sessions; equal seeds, equal words. Drawn and printed if not given.
    #[arg(long, hide = true)]
    seed: Option<u64>,
    /// The number of the first hostile session, to play a part of a run again.
    #[arg(long, default_value_t = 0, hide = true)]
    first: u64,
    /// A feed that hostile sites know beside those that the hub names to them.
    #[arg(long, value_name = "NAME:EPOCH:HEAD", hide = true)]
    feed: Vec<KnownFeed>,
    /// Write a line for each admitted site; a later run takes the file as its --token-file.
    #[arg(long, value_name = "FILE")]
    enrolled_file: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(arguments.threads.max(1))
        .enable_all()
        .build();
    let result = runtime
        .map_err(|error| format!("the process can't start: {error}"))
        .and_then(|runtime| runtime.block_on(run(arguments)));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("downburst-swarm: {sentence}");
            ExitCode::from(2)
        }
    }
}

async fn run(arguments: Arguments) -> Result<(), String> {
    downburst_node::system::raise_open_files();
    let identities = Identity::load(&arguments.token_file, arguments.sites)?;
    if let Some(sessions) = arguments.hostile {
        let seed = arguments.seed.map_or_else(getrandom::u64, Ok).map_err(|error| error.to_string())?;
        let numbers = arguments.first..arguments.first.saturating_add(sessions);
        let attack = Attack { hub: arguments.hub, seed, numbers, feeds: arguments.feed };
        return attack.run(identities, Duration::from_secs_f64(arguments.every.clamp(0.05, 3_600.0))).await;
    }
    let enrolled = Arc::new(Enrolled::open(arguments.enrolled_file.as_deref())?);
    let statistics = Arc::new(Statistics::new(identities.len()));
    let probe = Probe::start();
    tokio::spawn(begin_all(
        arguments.hub,
        identities,
        Manner { receive: arguments.receive, swallows: arguments.swallow, insider: arguments.insider },
        arguments.connects_per_second,
        {
            let statistics = Arc::clone(&statistics);
            move |site| (Arc::clone(&statistics), Arc::clone(&enrolled), site)
        },
    ));
    let every = Duration::from_secs_f64(arguments.every.clamp(0.05, 3_600.0));
    let end = arguments.seconds.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds.max(0.0)));
    let mut ended = std::pin::pin!(ended(end));
    let mut lines = tokio::time::interval_at(Instant::now() + every, every);
    loop {
        tokio::select! {
            _ = lines.tick() => say(&statistics.line(probe.take_worst())),
            () = &mut ended => break,
        }
    }
    say(&statistics.summary(probe.worst()));
    Ok(())
}

/// Starts the sites one after the other.
async fn begin_all(
    hub: String,
    identities: Vec<Identity>,
    manner: Manner,
    per_second: f64,
    shared: impl Fn(usize) -> (Arc<Statistics>, Arc<Enrolled>, usize),
) {
    let mut pace = tokio::time::interval(Duration::from_secs_f64(1.0 / per_second.clamp(0.1, 100_000.0)));
    for (number, identity) in identities.into_iter().enumerate() {
        pace.tick().await;
        let (statistics, enrolled, number) = shared(number);
        tokio::spawn(Site::new(hub.clone(), identity, manner, number, statistics, enrolled).run());
    }
}

async fn ended(end: Option<Instant>) {
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return;
    };
    let end = end.unwrap_or_else(|| Instant::now() + LONGEST_RUN);
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        () = tokio::time::sleep_until(end) => {}
    }
}

fn say(line: &impl serde::Serialize) {
    if let Ok(text) = serde_json::to_string(line) {
        println!("{text}");
    }
}

/// A month: a longer run means that the process was forgotten.
const LONGEST_RUN: Duration = Duration::from_secs(30 * 86_400);

const EXAMPLES: &str = "Examples:
  downburst-swarm --hub 127.0.0.1:7370 --token-file tokens --sites 570 --receive --seconds 60
  downburst-swarm --hub 127.0.0.1:7370 --token-file tokens --enrolled-file enrolled     (then, at the next run:)
  downburst-swarm --hub 127.0.0.1:7370 --token-file enrolled

Each line has: at_us (wall clock), connected (sites with a session now), connects, refused, failed (connections
that could not be made or broke), products, bytes, bad (digest mismatches), latency_ms {count, p50, p99, max} from
the hub's log to here by this host's clock, gap_ms (the longest time that a site got nothing while a product stood
in the hub's log for it), probe_ms (how late this host woke a thread that sleeps 1 ms, at the worst). The last line
has \"summary\": true and covers the whole run.";
