//! `downburst-node ldm`: tools that ask LDM servers. They speak LDM's own protocol, change nothing and need no hub.
mod fetch;
mod notify;
mod ping;
mod watch;
mod wire;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use downburst_ldm6::{ClassError, FeedType, ProductInfo, TextError};
use downburst_model::WallMicros;

/// The requests to an LDM server.
#[derive(Debug, Subcommand)]
pub enum LdmTool {
    /// Check whether a server answers, and how fast: ends with 0 if it does, else with 1.
    #[command(after_help = PING_EXAMPLES)]
    Ping(PingArguments),
    /// Print a line for each product that a server gets, without fetching it: time, size, creation time,
    /// feed, number, id.
    #[command(after_help = NOTIFY_EXAMPLES)]
    Notify(NotifyArguments),
    /// Fetch products into files, from where the last run ended, and print a JSON object for each.
    #[command(after_help = FETCH_EXAMPLES)]
    Fetch(FetchArguments),
}

/// The server to check.
#[derive(Args, Debug)]
pub struct PingArguments {
    /// The server; port 388 if none is given.
    #[arg(value_name = "HOST[:PORT]")]
    server: String,
    /// Seconds to wait for a connection and the answer.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    timeout: f64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The products to list.
#[derive(Args, Debug)]
pub struct NotifyArguments {
    /// The server; port 388 if none is given.
    #[arg(value_name = "HOST[:PORT]")]
    server: String,
    /// Feeds, as in an LDM configuration: NGRID, "IDS|DDPLUS", "ANY - NEXRAD2".
    #[arg(long, default_value = "ANY")]
    feed: FeedType,
    /// Products whose id matches this regular expression anywhere.
    #[arg(long, value_name = "RE", default_value = ".*")]
    pattern: String,
    /// Begin with products made this number of seconds ago.
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    since: u32,
    /// End after this number of products.
    #[arg(short = 'n', long, value_name = "N")]
    count: Option<u64>,
    /// Print a JSON object per line; moments are microseconds since 1970.
    #[arg(long)]
    json: bool,
}

/// The products to fetch, and the directory for them.
#[derive(Args, Debug)]
pub struct FetchArguments {
    /// The server; port 388 if none is given.
    #[arg(value_name = "HOST[:PORT]")]
    server: String,
    /// Feeds, as in an LDM configuration: NGRID, "IDS|DDPLUS", "ANY - NEXRAD2".
    #[arg(long)]
    feed: FeedType,
    /// Products whose id matches this regular expression anywhere.
    #[arg(long, value_name = "RE", default_value = ".*")]
    pattern: String,
    /// The directory for the files; created if missing. One for each request: it also holds the place to
    /// resume.
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// Seconds to go back at the first run, or if the server has forgotten the last product.
    #[arg(long, value_name = "SECONDS", default_value_t = 3_600)]
    since: u32,
    /// End after this number of products.
    #[arg(short = 'n', long, value_name = "N")]
    count: Option<u64>,
}

/// Runs a tool: 0 if all went well, 1 after a failure, 2 after bad use, 3 if the server refuses.
pub fn run(tool: &LdmTool) -> ExitCode {
    let outcome = match tool {
        LdmTool::Ping(arguments) => ping::run(arguments),
        LdmTool::Notify(arguments) => notify::run(arguments),
        LdmTool::Fetch(arguments) => fetch::run(arguments),
    };
    match outcome {
        Ok(()) | Err(Stop::NobodyReads) => ExitCode::SUCCESS,
        Err(Stop::Failed(sentence)) => told(1, &sentence),
        Err(Stop::BadUse(sentence)) => told(2, &sentence),
        Err(Stop::Refused(sentence)) => told(3, &sentence),
    }
}

/// Why a tool ends early.
#[derive(Debug)]
enum Stop {
    BadUse(String),
    Failed(String),
    Refused(String),
    /// The reader of the output went, as `head` does.
    NobodyReads,
}

type Outcome = Result<(), Stop>;

/// Failures of the output; those of connections have sentences of their own.
impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::NobodyReads,
            _ => Self::Failed(format!("the output can't be written: {error}; check where it goes")),
        }
    }
}

impl From<ClassError> for Stop {
    fn from(error: ClassError) -> Self {
        Self::BadUse(error.to_string())
    }
}

impl From<TextError> for Stop {
    fn from(error: TextError) -> Self {
        Self::BadUse(error.to_string())
    }
}

/// A product as programs read it; moments are microseconds since 1970.
fn as_json(info: &ProductInfo) -> serde_json::Value {
    serde_json::json!({
        "feed": info.feed.to_string(),
        "id": info.ident.to_string(),
        "size": info.size,
        "created_us": WallMicros::from(info.arrival).0,
        "origin": info.origin.to_string(),
        "sequence": info.sequence,
        "signature": info.signature.to_string(),
    })
}

fn told(code: u8, sentence: &str) -> ExitCode {
    eprintln!("downburst-node: {sentence}");
    ExitCode::from(code)
}

const PING_EXAMPLES: &str = "Examples:
  downburst-node ldm ping idd.example.edu
  downburst-node ldm ping --json --timeout 3 idd.example.edu:388";
const NOTIFY_EXAMPLES: &str = "Examples:
  downburst-node ldm notify idd.example.edu --feed 'IDS|DDPLUS' --since 3600
  downburst-node ldm notify idd.example.edu --feed NEXRAD3 --pattern '/pN0R' -n 10 --json";
const FETCH_EXAMPLES: &str = "Examples:
  downburst-node ldm fetch idd.example.edu --feed NGRID --to ngrid
  downburst-node ldm fetch idd.example.edu --feed 'IDS|DDPLUS' --pattern '^W' --to warnings -n 100";
