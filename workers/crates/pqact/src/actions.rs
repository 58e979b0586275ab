//! Start and end of a site's actions: one thread for each line.
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use downburst_clock::Clock;
use downburst_ldm6::FeedType;
use downburst_log::{ProductLog as _, disk};
use downburst_model::FeedName;

use super::active_rules::ActiveRules;
use super::dead_letters::Keep;
use super::failed_products::FailedProducts;
use super::lag::Lag;
use super::line_worker::LineWorker;
use super::notifier::Notifier;
use super::positions::Positions;
use super::shared::Shared;
use super::site::Site;
use super::stop::Stop;
use super::task::Defaults;

/// The settings of a site's actions.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Files of rules; none: no actions.
    pub files: Vec<PathBuf>,
    /// The base of relative paths and the working directory of programs; absent: `data` in the site's directory.
    pub directory: Option<PathBuf>,
    /// LDM's feed types of feeds whose names do not imply them.
    pub feed_types: BTreeMap<FeedName, FeedType>,
    /// Limits for rules that set none.
    pub defaults: Defaults,
    /// The time after which a line that has not reached an earlier head of the site's log is reported.
    pub lag: Duration,
    /// The limits of the folder of failed products.
    pub keep_failed: Keep,
}

/// Running actions.
pub struct Actions {
    shared: Arc<Shared>,
    paths: Vec<PathBuf>,
    workers: Vec<(String, JoinHandle<()>)>,
}

impl Actions {
    /// Starts the actions of the site in directory `home`, if rules are given. Every append to the site's logs must
    /// notify `notifier`. Malformed rules are set aside.
    ///
    /// # Errors
    /// A sentence that names the file that can't be used.
    pub fn start(
        wanted: &Wanted,
        home: &Path,
        site: Arc<dyn Site>,
        notifier: Arc<Notifier>,
        clock: Clock,
    ) -> Result<Option<Self>, String> {
        if wanted.files.is_empty() {
            return Ok(None);
        }
        let active_rules = ActiveRules::read(&wanted.files)?;
        active_rules.tell_of_set_aside();
        let directory = wanted.directory.clone().unwrap_or_else(|| home.join("data"));
        let unwritable = |path: &Path, error: &io::Error| disk::unwritable(path, error);
        std::fs::create_dir_all(&directory).map_err(|error| unwritable(&directory, &error))?;
        let directory = directory.canonicalize().map_err(|error| unwritable(&directory, &error))?;
        let heads = site.logs().into_iter().map(|(feed, log)| (feed, log.epoch(), log.head()));
        let positions = Positions::open(home, heads).map_err(|error| unwritable(home, &error))?;
        positions.forget_others(active_rules.lines.keys());
        let failed = FailedProducts::open(home, wanted.keep_failed, Arc::clone(&site));
        let shared = Shared {
            site,
            clock,
            notifier,
            stop: Stop::default(),
            active_rules: RwLock::new(Arc::new(active_rules)),
            directory,
            feed_types: wanted.feed_types.clone(),
            defaults: wanted.defaults,
            positions,
            filed: Mutex::default(),
            failed,
            lag: Lag::default(),
            lag_patience: wanted.lag,
        };
        let mut actions = Self { shared: Arc::new(shared), paths: wanted.files.clone(), workers: Vec::new() };
        actions.begin_lanes()?;
        Ok(Some(actions))
    }

    /// Reads the rules again. If there is a fault in them, the former rules stay in force.
    pub fn reread(&mut self) {
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
    /// up, and applies the limits of the folder of failed products.
    pub fn tend(&mut self) {
        if let Err(sentence) = self.begin_lanes() {
            tracing::error!("{sentence}");
        }
        self.shared.tell_of_lag();
        self.shared.failed.let_go(self.shared.clock.wall());
    }

    /// Starts the lines that do not run yet.
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

    /// Stops all lines. Running programs have a short time to end; unfinished actions begin again at the next start.
    pub fn stop(self) {
        self.shared.stop.ask(&self.shared.notifier);
        for (_, thread) in self.workers {
            let _ = thread.join();
        }
    }
}
