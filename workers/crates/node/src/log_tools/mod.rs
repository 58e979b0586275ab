//! `downburst-node log`: tools that read product logs, of a hub or a site, running or stopped, and change nothing.
mod cat;
mod export;
mod places;
mod stat;
mod tail;
mod verify;

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{ArgGroup, Args, Subcommand};
use downburst_log::{LogError, LogReader};

/// The tools for product logs.
#[derive(Debug, Subcommand)]
pub enum LogTool {
    /// Print one line per feed: epoch, sequences, products, bytes, ages.
    #[command(after_help = STAT_EXAMPLES)]
    Stat(StatArguments),
    /// Read every record and check it; ends with 0 if all is intact, with 1 if anything is damaged.
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(VerifyArguments),
    /// Print the newest products: time, size, creation time, feed, sequence, id.
    #[command(after_help = TAIL_EXAMPLES)]
    Tail(TailArguments),
    /// Write the bytes of one product to standard output.
    #[command(after_help = CAT_EXAMPLES)]
    Cat(CatArguments),
    /// Copy products to files, named as at a receiving site.
    #[command(after_help = EXPORT_EXAMPLES)]
    Export(ExportArguments),
}

/// The logs to count.
#[derive(Args, Debug)]
pub struct StatArguments {
    /// Logs of feeds, or data directories of hubs or sites with several.
    #[arg(value_name = "DIR", required = true)]
    dirs: Vec<PathBuf>,
    /// Print JSON; moments are microseconds since 1970.
    #[arg(long)]
    json: bool,
}

/// The logs to check.
#[derive(Args, Debug)]
pub struct VerifyArguments {
    /// The log of a feed, or a data directory with several.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

/// The products to list.
#[derive(Args, Debug)]
pub struct TailArguments {
    /// The log of a feed, or a data directory with several.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The number of products to begin with.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    lines: usize,
    /// Continue with products stored from now on, until interrupted.
    #[arg(short, long)]
    follow: bool,
}

/// Which product to write.
#[derive(Args, Debug)]
#[command(group(ArgGroup::new("product").required(true).args(["sequence", "id"])))]
pub struct CatArguments {
    /// The log of a feed, or a data directory with several.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Its sequence in this log.
    #[arg(long, value_name = "N")]
    sequence: Option<u64>,
    /// Its id; the newest product with it is taken.
    #[arg(long)]
    id: Option<String>,
    /// Search this feed only.
    #[arg(long)]
    feed: Option<String>,
}

/// Which products to copy, and where to.
#[derive(Args, Debug)]
pub struct ExportArguments {
    /// The log of a feed, or a data directory with several.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The directory for the files; created if missing.
    #[arg(long, value_name = "OUT")]
    to: PathBuf,
    /// Products whose id matches this regular expression anywhere.
    #[arg(long, value_name = "RE")]
    pattern: Option<String>,
    /// Products stored at this moment or later: 2026-01-31T12:00:00Z, 2026-01-31, or microseconds since 1970.
    #[arg(long, value_name = "T")]
    from: Option<String>,
    /// Products stored before this moment.
    #[arg(long, value_name = "T")]
    until: Option<String>,
    /// Export this feed only.
    #[arg(long)]
    feed: Option<String>,
}

/// Runs a tool: 0 if all went well, 1 after a failure or damage, 2 after bad use.
pub fn run(tool: &LogTool) -> ExitCode {
    let outcome = match tool {
        LogTool::Stat(arguments) => stat::run(arguments),
        LogTool::Verify(arguments) => verify::run(arguments),
        LogTool::Tail(arguments) => tail::run(arguments),
        LogTool::Cat(arguments) => cat::run(arguments),
        LogTool::Export(arguments) => export::run(arguments),
    };
    match outcome {
        Ok(()) | Err(Stop::NobodyReads) => ExitCode::SUCCESS,
        Err(Stop::Told) => ExitCode::FAILURE,
        Err(Stop::Failed(sentence)) => told(1, &sentence),
        Err(Stop::BadUse(sentence)) => told(2, &sentence),
    }
}

/// Why a tool ends early.
#[derive(Debug)]
enum Stop {
    BadUse(String),
    Failed(String),
    /// The reader of the output went, as `head` does.
    NobodyReads,
    /// The failure has been reported already.
    Told,
}

type Outcome = Result<(), Stop>;

impl From<LogError> for Stop {
    fn from(error: LogError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Failures of the output; those of files have sentences of their own.
impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::NobodyReads,
            _ => Self::Failed(format!("the output can't be written: {error}; check where it goes")),
        }
    }
}

/// The logs in a directory, for other tools.
///
/// # Errors
/// A sentence for people.
pub fn readers(dir: &Path) -> Result<Vec<LogReader>, String> {
    places::readers(dir, None).map_err(|stop| match stop {
        Stop::BadUse(sentence) | Stop::Failed(sentence) => sentence,
        Stop::NobodyReads | Stop::Told => String::new(),
    })
}

fn told(code: u8, sentence: &str) -> ExitCode {
    eprintln!("downburst-node: {sentence}");
    ExitCode::from(code)
}

const STAT_EXAMPLES: &str = "Examples:
  downburst-node log stat /var/lib/downburst
  downburst-node log stat --json /var/lib/downburst/log/NGRID";
const VERIFY_EXAMPLES: &str = "Example:
  downburst-node log verify /var/lib/downburst";
const TAIL_EXAMPLES: &str = "Examples:
  downburst-node log tail /var/lib/downburst -n 20
  downburst-node log tail /var/lib/downburst -f | grep NGRID";
const CAT_EXAMPLES: &str = "Examples:
  downburst-node log cat /var/lib/downburst --feed NGRID --sequence 4711 > product
  downburst-node log cat /var/lib/downburst --id 'SDUS54 KOUN 161540 /pN0RTLX' > product";
const EXPORT_EXAMPLES: &str = "Example:
  downburst-node log export /var/lib/downburst --to out --pattern '^SDUS5' --from 2026-01-31T12:00:00Z";
