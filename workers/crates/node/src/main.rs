//! `downburst-node`: the data plane of a hub, or a whole receiving site.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use downburst_node::log_tools::LogTool;
use downburst_node::site::{Ending, Receive};
use tracing_subscriber::EnvFilter;

#[derive(Parser)]
#[command(name = "downburst-node", version, about = "Moves meteorology products between a hub and its sites")]
struct Arguments {
    /// How log lines look on stderr.
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
    /// Receive: connects to a hub and keeps what the operator subscribed this site to.
    #[command(after_help = RECEIVE_EXAMPLES)]
    Receive(ReceiveArguments),
    /// Look into the product logs of a hub or a site; nothing is changed, and a running node is not disturbed.
    #[command(subcommand)]
    Log(LogTool),
}

#[derive(clap::Args)]
struct ReceiveArguments {
    /// The hub's address for sites.
    #[arg(long, value_name = "HOST:PORT")]
    hub: String,
    /// The enrolment token from the hub's operator; needed at the first start.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Where everything of this site lies: received/, log/, state/.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// How many hours products stay in this site's log.
    #[arg(long, default_value_t = 24.0)]
    retention_hours: f64,
    /// How many bytes of each feed stay in this site's log.
    #[arg(long, default_value_t = 10_000_000_000)]
    retention_bytes: u64,
    /// Keep products in this site's log only; write no file for each.
    #[arg(long)]
    no_files: bool,
    /// Shifts this site's wall clock by so many microseconds, to test the clock comparison.
    #[arg(long, default_value_t = 0, hide = true, allow_negative_numbers = true)]
    shift_clock_us: i64,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    start_logging(arguments.log_format);
    match arguments.role {
        Role::Hub => drive(hub()),
        Role::Receive(arguments) => drive(receive(arguments)),
        Role::Log(tool) => downburst_node::log_tools::run(&tool),
    }
}

fn drive(role: impl Future<Output = ExitCode>) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(2, &format!("the process can't start: {error}")),
    };
    let code = runtime.block_on(role);
    // A read of stdin can't be cancelled; it must not keep the process alive.
    runtime.shutdown_background();
    code
}

async fn hub() -> ExitCode {
    match downburst_node::hub::run(tokio::io::stdin(), tokio::io::stdout()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(1, &format!("the lines of the agent ended with an error: {error}")),
    }
}

async fn receive(arguments: ReceiveArguments) -> ExitCode {
    match downburst_node::site::run(arguments.into()).await {
        Ending::Stopped => ExitCode::SUCCESS,
        Ending::BadUse(sentence) => fail(2, &sentence),
        Ending::Refused(sentence) => fail(3, &sentence),
    }
}

fn start_logging(format: LogFormat) {
    let filter = EnvFilter::try_from_env("DOWNBURST_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let builder =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    match format {
        LogFormat::Text => builder.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).init(),
        LogFormat::Plain => builder.with_ansi(false).without_time().init(),
    }
}

fn fail(code: u8, sentence: &str) -> ExitCode {
    eprintln!("downburst-node: {sentence}");
    ExitCode::from(code)
}

impl From<ReceiveArguments> for Receive {
    fn from(arguments: ReceiveArguments) -> Self {
        Self {
            hub: arguments.hub,
            token_file: arguments.token_file,
            directory: arguments.dir,
            retention_hours: arguments.retention_hours,
            retention_bytes: arguments.retention_bytes,
            files: !arguments.no_files,
            wall_shift_us: arguments.shift_clock_us,
        }
    }
}

const RECEIVE_EXAMPLES: &str = "Examples:
  downburst-node receive --hub hub.example.edu:7370 --token-file token --dir /var/lib/downburst
  downburst-node receive --hub hub.example.edu:7370 --dir /var/lib/downburst     (after the first start)";
