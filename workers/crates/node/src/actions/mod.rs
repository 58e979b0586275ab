//! A site's actions on its products, apart from their files in `received/`: the rules of `--actions`, and the
//! removal of old files by those of `--scour`.
//!
//! A thread per line of actions ([`line_worker`]) reads the site's log by itself, from its own position
//! ([`positions`]), so that nothing here reaches the session or the receipts, and a slow program delays its
//! own line only. Files of all rules are one line; programs begin with a product when its files are written.
//! Products that fail for good go to a folder ([`dead_letters`]), and the hub is notified ([`failure_reports`]).
mod active_rules;
mod children;
mod dead_letters;
mod failure;
mod failure_reports;
mod files;
mod lag;
mod line_worker;
mod notifier;
mod pipes;
mod positions;
mod programs;
mod scour;
mod stop;
mod task;
pub mod tools;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use downburst_actions::Rules;
use downburst_ldm6::FeedType;
use downburst_log::{LogEntry, ProductLog as _};
use downburst_model::{FeedName, Sequence};

use crate::clock::Clock;
use crate::site::{DoneTo, Logs};
use active_rules::{ActiveRules, FILE_LINE};
pub use dead_letters::Keep;
use dead_letters::{DeadLetter, DeadLetters};
use failure_reports::FailureReports;
use lag::Lag;
use line_worker::LineWorker;
pub(crate) use notifier::Notifier;
use positions::Positions;
pub(crate) use positions::is_whole as place_is_whole;
pub(crate) use scour::Scouring;
pub use scour::Wanted as ScourWanted;
use stop::Stop;
use task::About;
pub use task::Defaults;

/// What a site is started with.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Files of rules; none: nothing is done.
    pub files: Vec<PathBuf>,
    /// Where relative paths begin, and programs are started; absent: `data` in the site's directory.
    pub directory: Option<PathBuf>,
    /// What LDM calls the kind of feeds whose names don't say it.
    pub feed_types: BTreeMap<FeedName, FeedType>,
    /// Where rules say nothing.
    pub defaults: Defaults,
    /// A line that has not done for so long what the site's log holds is told of.
    pub lag: Duration,
    /// What failed stays in its folder as far as this.
    pub keep_failed: Keep,
}

/// Actions at work.
pub(crate) struct Actions {
    shared: Arc<Shared>,
    paths: Vec<PathBuf>,
    workers: Vec<(String, JoinHandle<()>)>,
}

/// What all lines share.
struct Shared {
    logs: Arc<Logs>,
    clock: Clock,
    notifier: Arc<Notifier>,
    stop: Stop,
    active_rules: RwLock<Arc<ActiveRules>>,
    /// Where relative paths begin, and programs are started.
    directory: PathBuf,
    feed_types: BTreeMap<FeedName, FeedType>,
    defaults: Defaults,
    positions: Positions,
    /// How far products are written to files.
    filed: Mutex<BTreeMap<FeedName, Sequence>>,
    letters: DeadLetters,
    keep_failed: Keep,
    /// DeadLetters in the folder, as of the last look.
    letter_count: AtomicUsize,
    failure_reports: FailureReports,
    lag: Lag,
    lag_patience: Duration,
}

impl Actions {
    /// Begins, if rules are given. Malformed rules are set aside; the error names the file that can't be
    /// used.
    pub(crate) fn start(
        wanted: &Wanted,
        site: &Path,
        logs: &Arc<Logs>,
        notifier: Arc<Notifier>,
        clock: Clock,
        reports: &DoneTo,
    ) -> Result<Option<Self>, String> {
        if wanted.files.is_empty() {
            return Ok(None);
        }
        let active_rules = ActiveRules::read(&wanted.files)?;
        active_rules.tell_of_set_aside();
        let directory = wanted.directory.clone().unwrap_or_else(|| site.join("data"));
        let unwritable = |path: &Path, error: &io::Error| crate::disk::unwritable(path, error);
        std::fs::create_dir_all(&directory).map_err(|error| unwritable(&directory, &error))?;
        let directory = directory.canonicalize().map_err(|error| unwritable(&directory, &error))?;
        let heads = logs.all().into_iter().map(|(feed, log)| (feed, log.epoch(), log.head()));
        let positions = Positions::open(site, heads).map_err(|error| unwritable(site, &error))?;
        positions.forget_others(active_rules.lines.keys());
        let letters = DeadLetters::new(site);
        let failure_reports = FailureReports::new(reports.clone(), &letters);
        let shared = Shared {
            logs: Arc::clone(logs),
            clock,
            notifier,
            stop: Stop::default(),
            active_rules: RwLock::new(Arc::new(active_rules)),
            directory,
            feed_types: wanted.feed_types.clone(),
            defaults: wanted.defaults,
            positions,
            filed: Mutex::default(),
            letter_count: AtomicUsize::new(letters.count()),
            letters,
            keep_failed: wanted.keep_failed,
            failure_reports,
            lag: Lag::default(),
            lag_patience: wanted.lag,
        };
        let mut actions = Self { shared: Arc::new(shared), paths: wanted.files.clone(), workers: Vec::new() };
        actions.begin_lanes()?;
        Ok(Some(actions))
    }

    /// Reads the rules again. Where something is wrong in them, those before stay in force.
    pub(crate) fn reread(&mut self) {
        match ActiveRules::read(&self.paths).and_then(ActiveRules::without_set_aside) {
            Ok(active_rules) => {
                let rules = active_rules.files.iter().map(|file| file.rules.len()).sum::<usize>();
                *self.shared.active_rules.write().unwrap_or_else(PoisonError::into_inner) =
                    Arc::new(active_rules);
                self.shared.notifier.notify();
                match self.begin_lanes() {
                    Ok(()) => tracing::info!(rules, "the rules were read again"),
                    Err(sentence) => tracing::error!("{sentence}"),
                }
            }
            Err(wrong) => {
                wrong.lines().for_each(|line| tracing::error!("{line}"));
                tracing::error!("the former rules stay in force; correct the file and send SIGHUP again");
            }
        }
    }

    /// Restarts lines that ended with the former rules and are wanted again, reports lines that do not keep
    /// up, and drops failures of long ago.
    pub(crate) fn tend(&mut self) {
        if let Err(sentence) = self.begin_lanes() {
            tracing::error!("{sentence}");
        }
        self.shared.tell_of_lag();
        self.shared.let_go_of_letters();
    }

    /// Begins the lines that are not at work yet.
    fn begin_lanes(&mut self) -> Result<(), String> {
        self.workers.retain(|(_, thread)| !thread.is_finished());
        let active_rules = self.shared.active_rules();
        let at_work: BTreeSet<String> = self.workers.iter().map(|(line, _)| line.clone()).collect();
        let beginning = || active_rules.lines.iter().filter(|(line, _)| !at_work.contains(*line));
        for (line, _) in beginning() {
            let begun = self.shared.positions.begin(line);
            begun.map_err(|error| {
                format!("the progress of actions can't be stored: {error}; check the disk")
            })?;
        }
        for (line, rules) in beginning() {
            let worker = LineWorker::new(Arc::clone(&self.shared), line, Arc::clone(rules));
            let thread = std::thread::Builder::new().name("actions".to_owned()).spawn(move || worker.run());
            let thread = thread.map_err(|error| format!("no thread for actions: {error}"))?;
            self.workers.push((line.clone(), thread));
        }
        Ok(())
    }

    /// Ends. What is at work has a moment; what it does not end begins again at the next start.
    pub(crate) fn stop(self) {
        self.shared.stop.ask(&self.shared.notifier);
        for (_, thread) in self.workers {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn active_rules(&self) -> Arc<ActiveRules> {
        Arc::clone(&self.active_rules.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn rules_of(&self, line: &str) -> Option<Arc<Vec<Rules>>> {
        self.active_rules().lines.get(line).cloned()
    }

    fn types_of(&self, feed: &FeedName) -> FeedType {
        types_of(&self.feed_types, feed)
    }

    /// How far programs may look at a feed with this head: its products are in their files first.
    fn files_done(&self, feed: &FeedName, head: Sequence) -> Sequence {
        if !self.active_rules().has_files {
            return head;
        }
        let filed = self.filed.lock().unwrap_or_else(PoisonError::into_inner);
        filed.get(feed).copied().unwrap_or_default().min(head)
    }

    /// Says which lines have not done what the site's log held some time ago, and tells the hub.
    fn tell_of_lag(&self) {
        let active_rules = self.active_rules();
        self.lag.retain(|line| active_rules.lines.contains_key(line));
        let logs: BTreeMap<FeedName, _> = self.logs.all().into_iter().collect();
        let heads = logs.iter().map(|(feed, log)| (feed.clone(), log.head())).collect();
        let late = self.lag.late(&heads, Instant::now(), self.lag_patience);
        let mut behind = Vec::new();
        for late in late {
            let Some(log) = logs.get(&late.feed) else { continue };
            let about = |next: &LogEntry| About::new(next, self.types_of(&late.feed));
            let Some(found) = late.behind(log, about) else { continue };
            if late.is_new {
                tracing::warn!(rule = found.rule, feed = late.feed.as_str(), "{}", found.sentence);
            }
            behind.push(found);
        }
        self.failure_reports.lag(&behind);
    }

    /// Takes out of the folder of what failed what is too old, or too much.
    fn let_go_of_letters(&self) {
        match self.letters.let_go(self.clock.wall(), self.keep_failed) {
            Ok(0) => {}
            Ok(gone) => {
                self.letter_count.store(self.letters.count(), Ordering::Relaxed);
                tracing::warn!(
                    gone,
                    "products were removed from the folder of failed products because of its limits (--failed-age, \
                     --failed-bytes)"
                );
            }
            Err(error) => tracing::error!(%error, "the folder of failed products can't be read"),
        }
    }

    /// Products of a feed are done up to here by a line; those of files may be seen by programs.
    fn has_done(&self, line: &str, feed: &FeedName, done: Sequence) {
        self.lag.note(line, feed, done);
        if line != FILE_LINE {
            return;
        }
        let mut filed = self.filed.lock().unwrap_or_else(PoisonError::into_inner);
        if filed.insert(feed.clone(), done) != Some(done) {
            drop(filed);
            self.notifier.notify();
        }
    }

    /// Puts a letter into the folder; answers its name.
    fn keep(&self, letter: &DeadLetter, bytes: Option<&[u8]>) -> io::Result<String> {
        if self.letter_count.fetch_add(1, Ordering::Relaxed) >= MOST_LETTERS {
            let count = self.letters.count();
            self.letter_count.store(count, Ordering::Relaxed);
            if count >= MOST_LETTERS {
                tracing::error!(
                    "the folder of failed products already holds {MOST_LETTERS}, and this one is not kept there; \
                     see downburst-node actions failed"
                );
                return Ok(String::new());
            }
        }
        self.letters.put(letter, bytes)
    }
}

/// What LDM calls a feed's kind: as said, or by its name.
fn types_of(said: &BTreeMap<FeedName, FeedType>, feed: &FeedName) -> FeedType {
    said.get(feed).copied().or_else(|| feed.as_str().parse().ok()).unwrap_or_default()
}

/// More than anybody looks at one by one.
const MOST_LETTERS: usize = 10_000;
