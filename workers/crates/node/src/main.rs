//! `downburst-node`: the data plane of a hub, or a whole receiving site.
#![forbid(unsafe_code)]

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};
use downburst_ldm_gateway::tools::LdmTool;
use downburst_node::amt_relay::{self, AmtRelayArguments};
use downburst_node::circuits::CircuitTool;
use downburst_node::log_tools::LogTool;
use downburst_node::relay::{Enrolment, Relay};
use downburst_node::scrub::Scrub;
use downburst_node::site::{
    Ending, FileMode, HostUse, HubChoice, Reading, Receive, SiblingsUse, Via, control,
};
use downburst_node::tracer::{self, TracerArguments};
use downburst_pqact::SiteArguments;
use downburst_pqact::tools::{ActionsTool, ScourArguments};
use downburst_stamp_host::StampTool;
use tokio::runtime::Builder;
use tracing_subscriber::EnvFilter;

#[derive(Parser)]
#[command(name = "downburst-node", version, about = "Moves meteorology products between a hub and its sites")]
struct Arguments {
    /// The format of log lines on stderr.
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
    #[command(subcommand)]
    role: Role,
}

#[derive(Clone, Copy, ValueEnum)]
enum LogFormat {
    /// For people.
    Text,
    /// Without colours and time, for a parent process that adds them.
    Plain,
}

#[derive(Subcommand)]
enum Role {
    /// Ingest and send; driven by JSON lines on stdin, started by `downburst hub`.
    Hub,
    /// Receive: connects to a hub and keeps the products that the operator subscribed this site to.
    #[command(after_help = RECEIVE_EXAMPLES)]
    Receive(Box<ReceiveArguments>),
    /// Carry connections of sites to a hub in two segments, each with a TCP of its own. The bytes stay sealed.
    #[command(after_help = RELAY_EXAMPLES)]
    Relay(RelayArguments),
    /// Carry multicast groups to sites whose network has no multicast (AMT, RFC 7450): a copy through each tunnel.
    #[command(after_help = amt_relay::EXAMPLES)]
    AmtRelay(Box<AmtRelayArguments>),
    /// Show or change the hub that serves a site on this machine.
    #[command(after_help = CONTROL_EXAMPLES)]
    SiteControl(ControlArguments),
    /// Check rules of actions, show their effect, and list failures.
    #[command(subcommand)]
    Actions(ActionsTool),
    /// Remove old files by rules: age, bytes, free space.
    #[command(after_help = SCOUR_EXAMPLES)]
    Scour(ScourArguments),
    /// Inspect the product logs of a hub or a site; nothing is changed, and a running node is not disturbed.
    #[command(subcommand)]
    Log(LogTool),
    /// Record the TCP connections of any process on this host, and name their limits.
    #[command(after_help = tracer::EXAMPLES)]
    Tracer(TracerArguments),
    /// Ask LDM servers, as ldmping and notifyme do.
    #[command(subcommand)]
    Ldm(LdmTool),
    /// Read patterns from standard input, one per line, and list those that a hub refuses and those that
    /// match other ids than LDM's. Ends with 1 if any is refused.
    Patterns,
    /// Show this host's abilities for circuits.
    #[command(subcommand)]
    Circuits(CircuitTool),
    /// Measure a path by STAMP (RFC 8762), or answer those who do.
    #[command(subcommand)]
    Stamp(StampTool),
}

#[derive(clap::Args)]
struct ReceiveArguments {
    #[command(flatten)]
    hubs: HubArguments,
    /// The directory of this site, with received/, log/ and state/.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    #[command(flatten)]
    log: SiteLogArguments,
    /// Keep products in this site's log only; write no file for each.
    #[arg(long)]
    no_files: bool,
    /// The way in which the files of large products below received/ get their bytes from this site's log. The choice
    /// is kept. A new site clones; a site of an earlier release copies until this option is given.
    #[arg(long, value_enum, value_name = "HOW")]
    files: Option<FileMode>,
    #[command(flatten)]
    actions: SiteArguments,
    #[command(flatten)]
    reading: ReadingArguments,
    /// Have this AMT relay (RFC 7450) send multicast groups, because this host's network carries none: ADDRESS or
    /// ADDRESS:PORT, several with commas, best first. An interface that the hub names for this site comes first.
    #[arg(long, value_name = "ADDRESS,...")]
    amt: Option<String>,
    /// Do not record the counters of this host (processors, disk, interfaces; 8 MB at most) in counters/ of the site's
    /// directory. `downburst analyze --counters` reads them.
    #[arg(long)]
    no_counters: bool,
    /// Let the hub's operator use this interface for circuits to this site: tunnels, shaping and addresses
    /// are made on it and removed. Needs CAP_NET_ADMIN. May be given several times.
    #[arg(long, value_name = "INTERFACE")]
    circuits: Vec<String>,
    /// The highest rate, in Mb/s, of probes by which the hub measures the path to this site; 0 refuses them. Without it
    /// this site has no limit of its own.
    #[arg(long, value_name = "MBPS")]
    probes_max_mbps: Option<u32>,
    /// Answer STAMP requests (RFC 8762) at this address while the site runs: at most 100 a second from one source, and
    /// never with more octets than came. Off without this option.
    #[arg(long, value_name = "ADDRESS:PORT")]
    stamp_listen: Option<SocketAddr>,
    #[command(flatten)]
    siblings: SiblingArguments,
    /// Shifts this site's wall clock by this number of microseconds, to test the clock comparison.
    #[arg(long, default_value_t = 0, hide = true, allow_negative_numbers = true)]
    shift_clock_us: i64,
    /// Speaks only these versions of the session, best first, as a node of another release does.
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_values_t = downburst_session::VERSIONS, hide = true)]
    session_versions: Vec<u16>,
}

// The exchange with siblings.
#[derive(clap::Args)]
struct SiblingArguments {
    /// Give products to sibling sites of the hub at this address, and take from them what this site lacks, once the
    /// exchange is switched on at the hub for both sites (`downburst siblings on`). Off without this option.
    #[arg(long, value_name = "ADDRESS:PORT")]
    siblings_listen: Option<SocketAddr>,
    /// Spoils a byte of each product that siblings fetch, to test that they notice.
    #[arg(long, hide = true, requires = "siblings_listen")]
    siblings_spoil: bool,
}

// Groups of arguments have plain comments: a doc comment would become that of the command.

// The hubs of a site.
#[derive(clap::Args)]
struct HubArguments {
    /// The hub's address for sites. Several hubs: the first one serves as long as it can, the others stand by.
    #[arg(long, value_name = "HOST:PORT", required = true)]
    hub: Vec<String>,
    /// The enrolment token from the operator of the hub named before it; needed at the first start.
    #[arg(long, value_name = "FILE")]
    token_file: Vec<PathBuf>,
    /// Seconds of uninterrupted connection after which the first hub serves again.
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0)]
    return_after: f64,
    /// A relay by which the hubs are reached, or a chain of relays in the order of the way. Given several times: the
    /// first that leads to the hub is taken at each connection, and the direct way after the last. Without it, the hubs
    /// may name relays.
    #[arg(long, value_name = "HOST:PORT[,HOST:PORT]")]
    via: Vec<String>,
    /// Never connect directly.
    #[arg(long)]
    via_only: bool,
}

#[derive(clap::Args)]
struct RelayArguments {
    /// The address for sites.
    #[arg(long, value_name = "HOST:PORT", default_value = "0.0.0.0:7379")]
    listen: String,
    /// An address to which tunnels lead, as sites write it: a hub's node, or a further relay. May be given several
    /// times; all other addresses are refused. Without it, tunnels lead to --hub.
    #[arg(long, value_name = "HOST:PORT", required_unless_present = "hub")]
    to: Vec<String>,
    #[command(flatten)]
    enrolment: EnrolmentArguments,
    /// The congestion control towards sites; without it, the system's.
    #[arg(long, value_name = "NAME")]
    congestion: Option<String>,
    /// The congestion control towards hubs; without it, the system's.
    #[arg(long, value_name = "NAME")]
    congestion_onward: Option<String>,
    /// The most tunnels at a time; an address may have a quarter of them.
    #[arg(long, value_name = "NUMBER", default_value_t = 1000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    most_tunnels: u32,
}

// The enrolment of a relay.
#[derive(clap::Args)]
struct EnrolmentArguments {
    /// The address for sites of the hub that enrols this relay. The relay holds a session with it.
    #[arg(long, value_name = "HOST:PORT", requires = "dir")]
    hub: Option<String>,
    /// The enrolment token from the hub's operator; needed at the first start.
    #[arg(long, value_name = "FILE", requires = "hub")]
    token_file: Option<PathBuf>,
    /// The directory of this relay's credential. No product is stored.
    #[arg(long, value_name = "DIR", requires = "hub")]
    dir: Option<PathBuf>,
    /// The interface, by name, number or address, by which multicast legs leave; without it, the system's choice.
    #[arg(long, value_name = "INTERFACE", requires = "hub")]
    interface: Option<String>,
    /// Let the hub's operator use this interface for circuits to this relay: tunnels, shaping and addresses (needs
    /// CAP_NET_ADMIN). May be given several times. Tunnels may then lead to the opposite ends of these circuits.
    #[arg(long, value_name = "INTERFACE", requires = "hub")]
    circuits: Vec<String>,
    /// The highest rate, in Mb/s, of probes by which the hub measures the path to this relay; 0 refuses them. Without
    /// it this relay has no limit of its own.
    #[arg(long, value_name = "MBPS", requires = "hub")]
    probes_max_mbps: Option<u32>,
    /// Seconds after which a relay that the hub refused asks again.
    #[arg(long, value_name = "SECONDS", default_value_t = 300.0, hide = true)]
    ask_again_after: f64,
}

// How long products stay in a site's log, and how damage in it is found.
#[derive(clap::Args)]
struct SiteLogArguments {
    /// Hours that products stay in this site's log.
    #[arg(long, default_value_t = 24.0)]
    retention_hours: f64,
    /// Bytes of each feed that stay in this site's log.
    #[arg(long, default_value_t = 10_000_000_000)]
    retention_bytes: u64,
    /// Bytes per second that are read to find damage in this site's log before the damaged bytes are needed.
    #[arg(long, value_name = "BYTES", default_value_t = 10_000_000)]
    scrub_bytes_per_second: u64,
    /// Hours between two readings of this site's whole log in search of damage; 0: never.
    #[arg(long, value_name = "HOURS", default_value_t = 24.0)]
    scrub_hours: f64,
}

// How groups are read.
#[derive(clap::Args)]
struct ReadingArguments {
    /// Read multicast groups at this real-time priority (SCHED_RR), so that other work on a busy host causes
    /// no loss. Needs CAP_SYS_NICE.
    #[arg(long, value_name = "1-99", value_parser = clap::value_parser!(u8).range(1..=99))]
    receive_priority: Option<u8>,
    /// The receive buffer to request for each group: for hosts that have little memory. Without this 16 MiB.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(4_096..=1 << 30))]
    receive_buffer: Option<u32>,
    /// Take datagrams one by one from the kernel: for network cards whose UDP GRO is broken.
    #[arg(long)]
    no_udp_offload: bool,
}

#[derive(clap::Args)]
struct ControlArguments {
    /// The site's directory, as given to receive.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    request: ControlRequest,
}

#[derive(Subcommand)]
enum ControlRequest {
    /// List the site's hubs, and the one that serves it.
    Status,
    /// Prefer a hub, by address or name, until the site restarts: it serves immediately if it is well.
    Prefer {
        /// Its address or name.
        hub: String,
    },
}

fn main() -> ExitCode {
    let matches = Arguments::command().get_matches();
    let arguments = match Arguments::from_arg_matches(&matches) {
        Ok(arguments) => arguments,
        Err(error) => error.exit(),
    };
    start_logging(arguments.log_format);
    match arguments.role {
        Role::Receive(arguments) => {
            let hubs = paired_hubs(&arguments, matches.subcommand_matches("receive"));
            match hubs.and_then(|hubs| arguments.with(hubs)) {
                Ok(wanted) => drive(site_runtime(), receive(wanted)),
                Err(sentence) => fail(2, &sentence),
            }
        }
        Role::Relay(arguments) => drive(hub_runtime(), relay(arguments)),
        Role::AmtRelay(arguments) => drive(site_runtime(), amt_relay::run(*arguments)),
        Role::SiteControl(arguments) => site_control(arguments),
        Role::Hub => drive(hub_runtime(), hub()),
        Role::Tracer(arguments) => drive(site_runtime(), tracer::run(arguments)),
        Role::Stamp(tool) => drive(site_runtime(), downburst_stamp_host::run(tool)),
        Role::Circuits(tool) => downburst_node::circuits::run(&tool),
        Role::Ldm(tool) => downburst_ldm_gateway::tools::run(&tool),
        Role::Patterns => downburst_node::patterns::run(),
        Role::Actions(tool) => downburst_pqact::tools::run(&tool, downburst_node::log_tools::readers),
        Role::Scour(arguments) => downburst_pqact::tools::run_scour(&arguments),
        Role::Log(tool) => downburst_node::log_tools::run(&tool),
    }
}

/// A hub has a task for each session.
fn hub_runtime() -> Builder {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(2);
    builder
}

/// A site is one task and its threads: a runtime on this thread wakes it without a detour through another,
/// which costs a seventh of the rate.
fn site_runtime() -> Builder {
    Builder::new_current_thread()
}

fn drive(mut builder: Builder, role: impl Future<Output = ExitCode>) -> ExitCode {
    let runtime = match builder.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(2, &format!("the process can't start: {error}")),
    };
    let code = runtime.block_on(role);
    // A read of stdin can't be cancelled; it must not keep the process alive.
    runtime.shutdown_background();
    code
}

async fn hub() -> ExitCode {
    downburst_node::system::raise_open_files();
    match downburst_node::hub::run(tokio::io::stdin(), tokio::io::stdout()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(1, &format!("the lines of the agent ended with an error: {error}")),
    }
}

/// Gives each hub the token file that follows it on the command line; a single hub takes it from anywhere.
fn paired_hubs(
    arguments: &ReceiveArguments,
    matches: Option<&clap::ArgMatches>,
) -> Result<Vec<HubChoice>, String> {
    let places = |name| matches.and_then(|matches| matches.indices_of(name)).into_iter().flatten();
    let mut hubs: Vec<(usize, HubChoice)> = places("hub")
        .zip(&arguments.hubs.hub)
        .map(|(place, hub)| (place, HubChoice { address: hub.clone(), token_file: None }))
        .collect();
    let alone = hubs.len() == 1;
    for (place, file) in places("token_file").zip(&arguments.hubs.token_file) {
        let named_before = |(at, _): &&mut (usize, HubChoice)| alone || *at < place;
        let hub = hubs.iter_mut().rfind(named_before).filter(|(_, hub)| hub.token_file.is_none());
        let (_, hub) = hub.ok_or_else(|| {
            format!(
                "--token-file {} follows no --hub of its own; name each hub before its token",
                file.display()
            )
        })?;
        hub.token_file = Some(file.clone());
    }
    let hubs: Vec<HubChoice> = hubs.into_iter().map(|(_, hub)| hub).collect();
    let mut addresses: Vec<&str> = hubs.iter().map(|hub| hub.address.as_str()).collect();
    addresses.sort_unstable();
    addresses.dedup();
    if addresses.len() < hubs.len() {
        return Err("a hub is named twice; name each --hub once".to_owned());
    }
    Ok(hubs)
}

fn site_control(arguments: ControlArguments) -> ExitCode {
    let request = match arguments.request {
        ControlRequest::Status => control::Request::Status,
        ControlRequest::Prefer { hub } => control::Request::Prefer { hub },
    };
    let answer = match control::ask(&arguments.dir, &request) {
        Ok(answer) => answer,
        Err(sentence) => return fail(1, &sentence),
    };
    if arguments.json {
        println!(
            "{}",
            serde_json::json!({"hubs": answer.hubs, "files": answer.files, "groups": answer.groups})
        );
        return ExitCode::SUCCESS;
    }
    print!("{}", control::in_words(&answer));
    ExitCode::SUCCESS
}

async fn relay(arguments: RelayArguments) -> ExitCode {
    downburst_node::system::raise_open_files();
    match downburst_node::relay::run(arguments.relay()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => fail(2, &sentence),
    }
}

async fn receive(wanted: Receive) -> ExitCode {
    match downburst_node::site::run(wanted).await {
        Ending::Stopped => ExitCode::SUCCESS,
        Ending::BadUse(sentence) => fail(2, &sentence),
        Ending::Refused(sentence) => fail(3, &sentence),
    }
}

fn start_logging(format: LogFormat) {
    let filter = EnvFilter::try_from_env("DOWNBURST_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false)
        // A log on a full disk is no reason to end: to complain of it to the same place would panic.
        .log_internal_errors(false);
    match format {
        LogFormat::Text => builder.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).init(),
        LogFormat::Plain => builder.with_ansi(false).without_time().init(),
    }
}

fn bits_per_second(megabits: u32) -> u64 {
    u64::from(megabits) * 1_000_000
}

fn fail(code: u8, sentence: &str) -> ExitCode {
    eprintln!("downburst-node: {sentence}");
    ExitCode::from(code)
}

impl RelayArguments {
    fn relay(self) -> Relay {
        let Self { listen, to, enrolment, congestion, congestion_onward, most_tunnels } = self;
        let to = if to.is_empty() { enrolment.hub.iter().cloned().collect() } else { to };
        let most_tunnels = usize::try_from(most_tunnels).unwrap_or(usize::MAX);
        Relay { listen, to, congestion, congestion_onward, most_tunnels, enrolment: enrolment.enrolment() }
    }
}

impl EnrolmentArguments {
    fn enrolment(self) -> Option<Enrolment> {
        Some(Enrolment {
            hub: HubChoice { address: self.hub?, token_file: self.token_file },
            directory: self.dir?,
            interface: self.interface.unwrap_or_default(),
            circuits: self.circuits,
            probes_most_bps: self.probes_max_mbps.map(bits_per_second),
            ask_again_after: Duration::from_secs_f64(self.ask_again_after.clamp(0.1, 86_400.0)),
        })
    }
}

impl SiblingArguments {
    fn wanted(&self) -> Option<SiblingsUse> {
        self.siblings_listen.map(|listen| SiblingsUse { listen, spoils: self.siblings_spoil })
    }
}

impl ReceiveArguments {
    fn with(self, hubs: Vec<HubChoice>) -> Result<Receive, String> {
        let (actions, scour) = self.actions.wanted();
        Ok(Receive {
            hubs,
            via: Via::parse(&self.hubs.via, self.hubs.via_only)?,
            return_after: Duration::from_secs_f64(self.hubs.return_after.clamp(0.0, 86_400.0)),
            directory: self.dir,
            retention_hours: self.log.retention_hours,
            retention_bytes: self.log.retention_bytes,
            files: !self.no_files,
            file_mode: self.files,
            scrub: Scrub { bytes_per_second: self.log.scrub_bytes_per_second, hours: self.log.scrub_hours },
            actions,
            scour,
            reading: Reading {
                offload: !self.reading.no_udp_offload,
                priority: self.reading.receive_priority,
                buffer_bytes: self.reading.receive_buffer.map(|bytes| bytes as usize),
            },
            host: HostUse {
                amt: self.amt.map(|relays| format!("amt:{relays}")),
                circuits: self.circuits,
                probes_most_bps: self.probes_max_mbps.map(bits_per_second),
                counters: !self.no_counters,
                stamp_listen: self.stamp_listen,
                siblings: self.siblings.wanted(),
            },
            wall_shift_us: self.shift_clock_us,
            session_versions: self.session_versions,
        })
    }
}

const CONTROL_EXAMPLES: &str = "Examples:
  downburst-node site-control --dir /var/lib/downburst status
  downburst-node site-control --dir /var/lib/downburst prefer hub-b.example.edu:7370";

const SCOUR_EXAMPLES: &str = "Examples:
  downburst-node scour --dry-run --dir /var/lib/downburst scour.conf
  downburst-node scour --json --actions-dir /data rules.yaml";

const RELAY_EXAMPLES: &str = "Examples:
  downburst-node relay --to hub.example.edu:7370
  downburst-node relay --listen 0.0.0.0:7379 --to hub.example.edu:7370 --congestion bbr --congestion-onward cubic
  downburst-node relay --to far-relay.example.edu:7379 --to hub.example.edu:7370
  downburst-node relay --hub hub.example.edu:7370 --token-file token --dir /var/lib/downburst-relay --interface eth1

A site is started with --via RELAY:7379. Each tunnel is logged with its rate and the round trip and loss of both
segments, at its end and each minute. A relay that a hub has enrolled (--hub) also sends multicast legs into its
network, of which it receives one copy; it carries nothing once the hub refuses it.";

const RECEIVE_EXAMPLES: &str = "Examples:
  downburst-node receive --hub hub.example.edu:7370 --token-file token --dir /var/lib/downburst
  downburst-node receive --hub hub.example.edu:7370 --dir /var/lib/downburst     (after the first start)
  downburst-node receive --hub hub.example.edu:7370 --dir /var/lib/downburst --actions pqact.conf --scour scour.conf
  downburst-node receive --hub hub.example.edu:7370 --via relay.example.edu:7379 --dir /var/lib/downburst
  downburst-node receive --hub a.example.edu:7370 --token-file token-a \\
    --hub b.example.edu:7370 --token-file token-b --dir /var/lib/downburst";
