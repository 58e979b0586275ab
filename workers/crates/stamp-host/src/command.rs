//! `downburst-node stamp`.
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use downburst_clock::Clock;
use downburst_model::Micros;
use downburst_stamp::{Counts, Format, Key, ReflectorSettings, Sender, SenderSettings};
use tokio::signal::unix::{SignalKind, signal};

use crate::reflecting::{Reflecting, ReflectingSettings};
use crate::sending::{Run, send};
use crate::words;

/// Measure a path by STAMP (RFC 8762), or answer those who do.
#[derive(Debug, Subcommand)]
pub enum StampTool {
    /// Answer requests until stopped; answers are never larger than requests.
    #[command(after_help = REFLECT_EXAMPLES)]
    Reflect(ReflectArguments),
    /// Send requests to a reflector, and report delays, losses and the standing of both clocks.
    #[command(after_help = SEND_EXAMPLES)]
    Send(SendArguments),
}

// Groups of arguments have plain comments: a doc comment would become that of the command.

#[derive(Debug, Args)]
pub struct ReflectArguments {
    /// The address to answer at. May be given several times.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "0.0.0.0:862")]
    listen: Vec<SocketAddr>,
    #[command(flatten)]
    key: KeyArgument,
    /// Repeat the numbers of requests instead of counting the answers of each session.
    #[arg(long)]
    stateless: bool,
    /// The most sessions that are counted at a time.
    #[arg(long, value_name = "N", default_value_t = 1_024, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    most_sessions: u32,
    /// Seconds after which a silent session is forgotten.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=86_400))]
    session_expiry: u64,
    /// The most requests of one source in a second; further ones are not answered.
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    requests_per_second: u32,
    /// Shifts this end's wall clock by this number of microseconds, to test the comparison of clocks.
    #[arg(long, default_value_t = 0, hide = true, allow_negative_numbers = true)]
    shift_clock_us: i64,
}

#[derive(Debug, Args)]
pub struct SendArguments {
    /// The reflector.
    #[arg(long, value_name = "HOST:PORT")]
    to: String,
    /// The number of requests.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    count: u32,
    /// Milliseconds from one request to the next.
    #[arg(long, value_name = "MS", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    interval_ms: u64,
    /// Milliseconds for which answers are awaited after the last request.
    #[arg(long, value_name = "MS", default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    wait_ms: u64,
    #[command(flatten)]
    key: KeyArgument,
    /// Octets of padding behind each request (RFC 8972).
    #[arg(long, value_name = "OCTETS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=8_900))]
    padding: u32,
    /// The session's identifier (RFC 8972); 0: none.
    #[arg(long, value_name = "N", default_value_t = 0)]
    session: u16,
    /// Ask for this host's address as the reflector sees it.
    #[arg(long)]
    location: bool,
    /// Write stamps as PTPv2 does instead of NTP.
    #[arg(long)]
    ptp: bool,
    /// The reflector is known to count the answers of each session.
    #[arg(long)]
    stateful: bool,
    /// Print JSON; delays in nanoseconds.
    #[arg(long)]
    json: bool,
    /// Shifts this end's wall clock by this number of microseconds, to test the comparison of clocks.
    #[arg(long, default_value_t = 0, hide = true, allow_negative_numbers = true)]
    shift_clock_us: i64,
}

#[derive(Debug, Args)]
struct KeyArgument {
    /// A file with the shared secret, at least 16 octets; a final line break is not part of it. Packets are then
    /// authenticated.
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

/// Runs a command. The code is 1 where no request was answered, 2 where it can't run.
pub async fn run(tool: StampTool) -> ExitCode {
    let code = match tool {
        StampTool::Reflect(arguments) => reflect(arguments).await,
        StampTool::Send(arguments) => send_all(&arguments),
    };
    code.unwrap_or_else(|sentence| {
        eprintln!("downburst-node: {sentence}");
        ExitCode::from(2)
    })
}

async fn reflect(arguments: ReflectArguments) -> Result<ExitCode, String> {
    let reflector = ReflectorSettings {
        key: arguments.key.read()?,
        stateful: !arguments.stateless,
        most_sessions: usize::try_from(arguments.most_sessions).unwrap_or(usize::MAX),
        session_expiry: Micros::from_secs(arguments.session_expiry),
        requests_per_second: arguments.requests_per_second,
    };
    let clock = Clock::start(arguments.shift_clock_us);
    let start = |listen: &SocketAddr| {
        Reflecting::start(ReflectingSettings { listen: *listen, reflector: reflector.clone(), clock })
    };
    let running = arguments.listen.iter().map(start).collect::<Result<Vec<Reflecting>, String>>()?;
    stopped().await;
    for reflecting in running {
        let (address, counts) = (reflecting.local(), reflecting.end());
        let Counts { answered, malformed, not_authentic, too_frequent, no_room } = counts;
        tracing::info!(%address, answered, malformed, not_authentic, too_frequent, no_room, "STAMP's reflector ended");
    }
    Ok(ExitCode::SUCCESS)
}

fn send_all(arguments: &SendArguments) -> Result<ExitCode, String> {
    let run = arguments.run()?;
    let finished = send(&run)?;
    if arguments.json {
        println!("{}", words::as_json(&run, &finished));
    } else {
        println!("{}", words::as_text(&run, &finished));
    }
    Ok(ExitCode::from(u8::from(finished.report.answered == 0)))
}

async fn stopped() {
    match (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
        (Ok(mut terminate), Ok(mut interrupt)) => {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        }
        _ => std::future::pending().await,
    }
}

impl SendArguments {
    fn run(&self) -> Result<Run, String> {
        let no_address = |reason: &str| format!("{} is no address: {reason}; give HOST:PORT", self.to);
        let mut found = self.to.to_socket_addrs().map_err(|error| no_address(&error.to_string()))?;
        let sender = SenderSettings {
            key: self.key.read()?,
            session: self.session,
            format: if self.ptp { Format::Ptp } else { Format::Ntp },
            padding: usize::try_from(self.padding).unwrap_or(0),
            location: self.location,
            stateful: self.stateful,
        };
        Ok(Run {
            to: found.next().ok_or_else(|| no_address("the name has none"))?,
            count: self.count.min(u32::try_from(Sender::MOST_REQUESTS).unwrap_or(u32::MAX)),
            interval: Duration::from_millis(self.interval_ms),
            patience: Duration::from_millis(self.wait_ms),
            sender,
            clock: Clock::start(self.shift_clock_us),
        })
    }
}

impl KeyArgument {
    fn read(&self) -> Result<Option<Key>, String> {
        self.key_file.as_deref().map(read_key).transpose()
    }
}

fn read_key(file: &Path) -> Result<Key, String> {
    let text = std::fs::read(file).map_err(|error| format!("{} can't be read: {error}", file.display()))?;
    let secret = text.strip_suffix(b"\n").unwrap_or(&text);
    Key::new(secret).map_err(|error| format!("{}: {error}", file.display()))
}

const REFLECT_EXAMPLES: &str = "Examples:
  downburst-node stamp reflect --listen 192.0.2.1:862
  downburst-node stamp reflect --listen 0.0.0.0:862 --listen [::]:862 --key-file stamp.key --requests-per-second 100

Port 862 needs CAP_NET_BIND_SERVICE.";

const SEND_EXAMPLES: &str = "Examples:
  downburst-node stamp send --to reflector.example.edu:862
  downburst-node stamp send --to 192.0.2.1:862 --count 600 --interval-ms 100 --json
  downburst-node stamp send --to 192.0.2.1:862 --location --padding 1000

One-way delays are true where both clocks are in step with UTC; the report says so, or why not.
The exit code is 1 where no request was answered.";
