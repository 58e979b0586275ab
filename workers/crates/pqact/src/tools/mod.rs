//! `downburst-node actions` checks rules, shows their actions for given products, and lists failures.
//! `downburst-node scour` removes old files once.
mod check;
mod failed;
mod rehearse;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use downburst_actions::Rules;
use downburst_ldm6::FeedType;
use downburst_log::LogReader;
use downburst_model::FeedName;

use super::active_rules;
use super::scour::{Places, Scoured, clear, now, read_all};

/// The tools for rules.
#[derive(Debug, Subcommand)]
pub enum ActionsTool {
    /// Read files of rules, LDM's pqact.conf or YAML, as a receiver does, and report their faults. Ends with
    /// 1 if there are any.
    #[command(after_help = CHECK_EXAMPLES)]
    Check {
        /// The files.
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show the effect of rules on products of a site's log, those of the last hour for example.
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunArguments),
    /// List the actions that failed for good: `failed/` in the site's directory. Ends with 1 if there are
    /// any.
    #[command(after_help = FAILED_EXAMPLES)]
    Failed {
        /// The site's directory.
        #[arg(long, value_name = "DIR")]
        dir: PathBuf,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Repeat failed actions, and remove those that succeed from the list. Ends with 1 if any fails again.
    #[command(after_help = RETRY_EXAMPLES)]
    Retry(LettersArguments),
    /// Remove entries from the list without repeating their actions.
    Drop(LettersArguments),
}

/// Which products, and which rules.
#[derive(Args, Debug)]
pub struct RunArguments {
    /// Only show the effect. Required: `receive` alone executes rules.
    #[arg(long, required = true)]
    dry_run: bool,
    /// How far back: 30m, 1h, 2d.
    #[arg(long, value_name = "TIME", default_value = "1h")]
    last: String,
    /// The site's directory, or that of a hub.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// LDM's feed type of a feed whose name does not imply it.
    #[arg(long, value_name = "FEED=TYPE", value_parser = feed_type)]
    feed_type: Vec<(FeedName, FeedType)>,
    /// The number of products shown for each rule.
    #[arg(long, value_name = "N", default_value_t = 3)]
    examples: usize,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// The files of rules.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

/// Which entries.
#[derive(Args, Debug)]
pub struct LettersArguments {
    /// The site's directory.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Directory of relative paths and of programs, if `receive` was given --actions-dir.
    #[arg(long, value_name = "DIR")]
    actions_dir: Option<PathBuf>,
    /// Their names, as `failed` lists them; none: all.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

/// Which files to remove.
#[derive(Args, Debug)]
pub struct ScourArguments {
    /// List the files to remove, and remove nothing.
    #[arg(long)]
    dry_run: bool,
    /// Where relative directories begin; absent: the current directory.
    #[arg(long, value_name = "DIR")]
    actions_dir: Option<PathBuf>,
    /// A site's directory: relative ones begin in its `data`, and its receiver's own files are never touched.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// LDM's scour.conf, or YAML.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

/// Finds the logs in a directory of a hub or a site; the error is a sentence.
pub type FindLogs = fn(&Path) -> Result<Vec<LogReader>, String>;

/// Runs a tool: 0 if all went well, 1 where something is wrong, 2 after bad use.
pub fn run(tool: &ActionsTool, logs: FindLogs) -> ExitCode {
    told(match tool {
        ActionsTool::Check { files, json } => check::check(files, *json),
        ActionsTool::Run(arguments) => rehearse::run(arguments, logs),
        ActionsTool::Failed { dir, json } => failed::list(dir, *json),
        ActionsTool::Retry(arguments) => failed::retry(arguments),
        ActionsTool::Drop(arguments) => failed::drop_them(arguments),
    })
}

/// Removes old files once.
pub fn run_scour(arguments: &ScourArguments) -> ExitCode {
    told(scour(arguments))
}

/// The feed and the type of an option `FEED=TYPE`.
///
/// # Errors
/// A sentence for people.
pub fn feed_type(text: &str) -> Result<(FeedName, FeedType), String> {
    let (feed, types) = text.split_once('=').ok_or("write FEED=TYPE, for example radar=NEXRAD3")?;
    let feed = FeedName::parse(feed).map_err(|error| error.to_string())?;
    Ok((feed, types.parse().map_err(|error: downburst_ldm6::FeedTypeError| error.to_string())?))
}

/// True: all is well. False: something is wrong, and was reported.
type Outcome = Result<bool, String>;

fn told(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(sentence) => {
            eprintln!("downburst-node: {sentence}");
            ExitCode::from(2)
        }
    }
}

/// Prints a line; a reader that went needs no more.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// The rules of files. Those set aside are reported on standard error.
fn rules_of(files: &[PathBuf]) -> Result<Vec<Rules>, String> {
    let active_rules = active_rules::ActiveRules::read(files)?;
    active_rules.set_aside.iter().for_each(|problem| eprintln!("downburst-node: {problem} (set aside)"));
    Ok(active_rules.files)
}

fn types_of(said: &[(FeedName, FeedType)]) -> BTreeMap<FeedName, FeedType> {
    said.iter().cloned().collect()
}

fn scour(arguments: &ScourArguments) -> Outcome {
    let found = read_all(&arguments.files)?;
    found.set_aside.iter().for_each(|problem| eprintln!("downburst-node: {problem} (set aside)"));
    let places = Places::new(arguments.actions_dir.as_deref(), arguments.dir.as_deref());
    let (mut well, mut said) = (found.set_aside.is_empty(), Vec::new());
    for rule in &found.rules {
        let done = places.root(rule).and_then(|root| {
            let mut agrees = |path: &Path| {
                if arguments.dry_run && !arguments.json && path != Path::new("") {
                    say(&format!("would go: {}", root.join(path).display()));
                }
                !arguments.dry_run
            };
            clear(rule, &root, now(), &mut agrees, &|| false)
        });
        let (scoured, failed) = match done {
            Ok(scoured) => (scoured.clone(), scoured.failed),
            Err(sentence) => (Scoured::default(), Some(sentence)),
        };
        well &= failed.is_none();
        let (files, bytes, place) = (scoured.files, scoured.bytes, rule.place.to_string());
        if arguments.json {
            said.push(serde_json::json!({
                "rule": place, "directory": rule.directory, "files": files, "bytes": bytes,
                "directories": scoured.directories, "failed": failed,
            }));
            continue;
        }
        let verb = if arguments.dry_run { "would go" } else { "went" };
        say(&format!("{place}: {files} files with {bytes} bytes {verb} from {}", rule.directory));
        if let Some(sentence) = failed {
            say(&format!("{place}: {sentence}"));
        }
    }
    if arguments.json {
        say(&serde_json::json!({"dry_run": arguments.dry_run, "rules": said}).to_string());
    }
    Ok(well)
}

const CHECK_EXAMPLES: &str = "Examples:
  downburst-node actions check /etc/ldm/pqact.conf
  downburst-node actions check --json rules.yaml";
const RUN_EXAMPLES: &str = "Examples:
  downburst-node actions run --dry-run --last 1h --dir /data/downburst pqact.conf
  downburst-node actions run --dry-run --last 10m --dir /data/downburst --feed-type radar=NEXRAD3 --json rules.yaml";
const FAILED_EXAMPLES: &str = "Example:
  downburst-node actions failed --dir /data/downburst";
const RETRY_EXAMPLES: &str = "Examples:
  downburst-node actions retry --dir /data/downburst
  downburst-node actions retry --dir /data/downburst 20260131120000.250-NGRID-0000004711-3fa2c001";
