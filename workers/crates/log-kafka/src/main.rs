//! `downburst-node-kafka`: the hub's node for feeds whose logs are on Kafka. Everything else is done by
//! `downburst-node`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use tokio::runtime::Builder;
use tracing_subscriber::EnvFilter;

#[derive(Parser)]
#[command(name = "downburst-node-kafka", version, about = "The node of a hub whose feeds are kept on Kafka")]
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
    /// Ingest and send; driven by JSON lines on stdin, started by `downburst hub` where its settings have
    /// `kafka.products`.
    Hub,
}

fn main() -> ExitCode {
    let Arguments { log_format, role: Role::Hub } = Arguments::parse();
    start_logging(log_format);
    let runtime = match Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(2, &format!("the process can't start: {error}")),
    };
    let code = runtime.block_on(hub());
    // A read of stdin can't be cancelled; it must not keep the process alive.
    runtime.shutdown_background();
    code
}

async fn hub() -> ExitCode {
    downburst_node::system::raise_open_files();
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    match downburst_node::hub::run_with(input, output, downburst_log_kafka::connect).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(1, &format!("the lines of the agent ended with an error: {error}")),
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

fn fail(code: u8, sentence: &str) -> ExitCode {
    eprintln!("downburst-node-kafka: {sentence}");
    ExitCode::from(code)
}
