//! One line of actions: reads the site's log and executes the actions on each product, in the log's order.
//!
//! The log is the line's queue: waiting takes no memory, a slow program delays its own line only, and a line
//! resumes at its position. The position moves past a product when its actions are over: after a crash the last
//! ones are repeated, and none is left out.
mod dataset;
mod place;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use downburst_actions::{Due, Product, Rules};
use downburst_log::{FeedLog, LogEntry, ProductLog as _};
use downburst_model::FeedName;

use super::active_rules::FILE_LINE;
use super::dead_letters::DeadLetter;
use super::failure::{Failure, Then};
use super::files::Files;
use super::pipes::Pipes;
use super::programs::{Programs, pause};
use super::publishing::Announcements;
use super::shared::Shared;
use super::task::{About, Job, Task, Work};
use place::Place;

/// A running line, on its own thread.
pub(super) struct LineWorker {
    shared: Arc<Shared>,
    line: String,
    rules: Arc<Vec<Rules>>,
    places: BTreeMap<FeedName, Place>,
    files: Files,
    pipes: Pipes,
    programs: Programs,
    announcements: Announcements,
    /// The feed at which an open fault of the dataset's record is reported, with the rule.
    record_fault: Option<(FeedName, String)>,
    looked: Instant,
}

/// The reason for the early end of a turn.
enum Pause {
    /// The limit of programs is reached.
    Full,
    Stop,
    Disk(io::Error),
}

impl LineWorker {
    pub(super) fn new(shared: Arc<Shared>, line: &str, rules: Arc<Vec<Rules>>) -> Self {
        let directory = &shared.directory;
        Self {
            line: line.to_owned(),
            rules,
            places: BTreeMap::new(),
            files: Files::new(directory),
            pipes: Pipes::new(directory),
            programs: Programs::new(directory),
            announcements: Announcements::new(directory, Arc::clone(&shared.notifier)),
            record_fault: None,
            looked: Instant::now(),
            shared,
        }
    }

    /// Works until the site stops or the rules no longer have the line.
    pub(super) fn run(mut self) {
        loop {
            let counted = self.shared.notifier.count();
            let rules = self.shared.rules_of(&self.line);
            if self.shared.stop.is_asked() || rules.is_none() {
                return self.close();
            }
            self.take_rules(rules.unwrap_or_default());
            // A program that has ended makes room for the next product.
            let moved = self.round() | self.end_programs();
            self.report_waiting();
            self.tend_record();
            self.pipes.let_go();
            if self.line == FILE_LINE && self.looked.elapsed() >= LETTERS_INTERVAL {
                self.looked = Instant::now();
                self.shared.failed.look();
            }
            if !moved {
                self.shared.notifier.wait(counted, self.longest_pause());
            }
        }
    }

    /// Takes the rules in force. Announcements by other ones begin again, as their broker may be another one.
    fn take_rules(&mut self, rules: Arc<Vec<Rules>>) {
        if !Arc::ptr_eq(&rules, &self.rules) && !self.announcements.is_idle() {
            self.announcements.forget();
            self.places.clear();
        }
        self.rules = rules;
    }

    /// Reports products that wait for their broker.
    fn report_waiting(&mut self) {
        if let Some((job, sentence)) = self.announcements.news() {
            tracing::warn!(rule = job.task.rule, "products wait: {sentence}");
            self.shared.failed.reports.waits(&job.task, &job.about, &sentence);
        }
    }

    fn longest_pause(&self) -> Duration {
        match (self.programs.is_idle(), self.announcements.is_idle()) {
            (false, _) => PROGRAM_INTERVAL,
            (true, false) => ANNOUNCEMENT_INTERVAL,
            (true, true) => LONGEST_PAUSE,
        }
    }

    /// Gives each feed a turn; true if anything was read.
    fn round(&mut self) -> bool {
        let mut moved = false;
        for (feed, log) in self.shared.site.logs() {
            match self.turn(&feed, &log) {
                Ok(read) => moved |= read,
                Err(Pause::Full | Pause::Stop) => {}
                Err(Pause::Disk(error)) => {
                    tracing::error!(feed = feed.as_str(), %error, "actions can't continue; check the disk; they \
                        resume by themselves");
                    self.places.remove(&feed);
                }
            }
        }
        moved
    }

    fn turn(&mut self, feed: &FeedName, log: &FeedLog) -> Result<bool, Pause> {
        let mut place = match self.places.remove(feed) {
            Some(place) if place.epoch == log.epoch() => place,
            _ => Place::open(&self.shared, &self.line, feed, log)?,
        };
        let result = self.read_on(&mut place, log);
        let settled = place.settle(&self.shared, feed);
        self.shared.has_done(&self.line, feed, place.position.done());
        self.places.insert(feed.clone(), place);
        settled?;
        result
    }

    fn read_on(&mut self, place: &mut Place, log: &FeedLog) -> Result<bool, Pause> {
        let head =
            if self.line == FILE_LINE { log.head() } else { self.shared.files_done(log.feed(), log.head()) };
        if place.read_to >= head {
            return Ok(false);
        }
        if self.programs.is_full() || self.announcements.is_full() {
            return Err(Pause::Full);
        }
        let batch = log.read(place.read_to, head, READ_BYTES, READ_ENTRIES).map_err(io::Error::other)?;
        for entry in &batch.entries {
            let acted = self.product(place, entry)?;
            place.read_to = entry.info.key.sequence;
            if acted {
                place.settle(&self.shared, log.feed())?;
            }
        }
        place.read_to = batch.read_to;
        Ok(true)
    }

    /// Executes or starts the actions due for a product; true if any was due.
    fn product(&mut self, place: &mut Place, entry: &LogEntry) -> Result<bool, Pause> {
        if entry.info.id.is_heartbeat() {
            return Ok(false);
        }
        let about = About::new(entry, place.types);
        let product = Product {
            feed: &about.feed,
            types: place.types,
            id: &about.id,
            created: about.created_us,
            sequence: about.counted(),
        };
        let rules = Arc::clone(&self.rules);
        let due: Vec<Due<'_>> = rules.iter().flat_map(|rules| rules.due(&product)).collect();
        let programs = due.iter().filter(|due| due.action.word() == "exec").count();
        // Checked before the first action: after a stop of the site, all actions of the product begin again.
        if programs > 0 && self.programs.is_full() {
            return Err(Pause::Full);
        }
        let is_announced = due.iter().any(|due| due.action.word() == "publish");
        if is_announced && self.announcements.must_wait(about.id.as_str()) {
            return Err(Pause::Full);
        }
        let acted = !due.is_empty();
        for due in due {
            let (action, what) = (due.action, due.what);
            match what.map(|what| Task::new(action, what, entry, self.shared.defaults)) {
                Ok(None) => {}
                Ok(Some(task)) => {
                    let job = Job { task, about: about.clone(), product: entry.clone() };
                    self.start(place, job)?;
                }
                Err(sentence) => self.impossible(action, &about, entry, sentence)?,
            }
        }
        Ok(acted)
    }

    fn start(&mut self, place: &mut Place, job: Job) -> Result<(), Pause> {
        if job.product.bytes.is_none() {
            let failure = Failure::new(
                Then::GiveUp,
                "the product left the site's log before its turn came: give the log more hours or bytes, or make \
                 the program faster",
            );
            return self.give_up(&job, 0, failure);
        }
        let (is_program, is_announced) =
            (matches!(job.task.work, Work::Exec { .. }), matches!(job.task.work, Work::Publish { .. }));
        if !is_program && !is_announced {
            return self.try_on(&job);
        }
        place.began(job.product.info.key.sequence);
        if is_program {
            self.programs.begin(job);
        } else {
            self.announcements.begin(job);
        }
        Ok(())
    }

    /// Tries until the action succeeds or is given up.
    fn try_on(&mut self, job: &Job) -> Result<(), Pause> {
        if let Some(content) = &job.product.bytes
            && self.files.share(&job.task, |to| self.shared.site.share(content, to))
        {
            self.shared.failed.reports.done(&job.task, &job.about);
            return Ok(());
        }
        let Some(product) = job.product.whole() else {
            return self.give_up(job, 0, Failure::new(Then::GiveUp, UNREADABLE));
        };
        let bytes = job.task.bytes(&job.about, &product);
        let (mut attempts, mut told) = (0, false);
        loop {
            let done = match job.task.work {
                Work::File { .. } => self.files.write(&job.task.work, &bytes),
                _ => self.pipes.write(&job.task, &bytes, &self.shared.stop),
            };
            let Err(failure) = done else {
                self.shared.failed.reports.done(&job.task, &job.about);
                return Ok(());
            };
            let wait = match failure.then {
                Then::Stop => return Err(Pause::Stop),
                Then::WaitForRoom => {
                    if !std::mem::replace(&mut told, true) {
                        tracing::error!(rule = job.task.rule, "{}", failure.sentence);
                        self.shared.failed.reports.waits(&job.task, &job.about, &failure.sentence);
                    }
                    ROOM_INTERVAL
                }
                Then::Again | Then::GiveUp => {
                    attempts += 1;
                    if failure.then == Then::GiveUp || attempts >= job.task.attempts {
                        return self.give_up(job, attempts, failure);
                    }
                    tracing::warn!(rule = job.task.rule, attempt = attempts, "{}", failure.sentence);
                    // Files of all rules share a line: one that can't be written must delay the others only
                    // briefly.
                    if self.line == FILE_LINE { FILE_PAUSE } else { pause(attempts) }
                }
            };
            self.rest(wait)?;
        }
    }

    /// Waits, unless the site stops.
    fn rest(&self, length: Duration) -> Result<(), Pause> {
        let until = Instant::now() + length;
        loop {
            let counted = self.shared.notifier.count();
            if self.shared.stop.is_asked() {
                return Err(Pause::Stop);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            self.shared.notifier.wait(counted, left);
        }
    }

    fn impossible(
        &mut self,
        action: &downburst_actions::Action,
        about: &About,
        entry: &LogEntry,
        sentence: String,
    ) -> Result<(), Pause> {
        let work =
            Work::File { path: String::new(), overwrite: false, close: true, flush: false, log: false };
        let task = Task {
            rule: action.place.to_string(),
            work,
            shape: super::task::Shaping::default(),
            limit_s: 0,
            attempts: 1,
        };
        let job = Job { task, about: about.clone(), product: entry.clone() };
        self.give_up(&job, 1, Failure::new(Then::GiveUp, sentence))
    }

    /// Puts the product into the folder of failed products; the line waits until that succeeds.
    fn give_up(&self, job: &Job, attempts: u32, failure: Failure) -> Result<(), Pause> {
        tracing::error!(
            rule = job.task.rule,
            feed = job.about.feed.as_str(),
            id = job.about.id.as_str(),
            "{}",
            failure.sentence
        );
        let (exit, sentence) = (failure.exit, failure.sentence.clone());
        let bytes = job.product.whole();
        let mut letter =
            DeadLetter::new(self.shared.clock.wall(), job.about.clone(), job.task.clone(), attempts, failure);
        letter.has_bytes = bytes.is_some();
        loop {
            match self.shared.failed.keep(&letter, bytes.as_deref()) {
                Ok(name) => {
                    self.shared.failed.reports.failed(&name, &job.task, &job.about, exit, &sentence);
                    return Ok(());
                }
                Err(error) => {
                    let sentence = format!("{sentence}; and the failed product can't be stored: {error}");
                    self.shared.failed.reports.waits(&job.task, &job.about, &sentence);
                    tracing::error!("{sentence}");
                    self.rest(ROOM_INTERVAL)?;
                }
            }
        }
    }

    /// Handles the results of ended programs and announcements; true if any ended.
    fn end_programs(&mut self) -> bool {
        let mut ended = self.programs.ended(&self.shared.stop);
        ended.extend(self.announcements.ended(&self.shared.stop));
        let any = !ended.is_empty();
        for (job, attempts, result) in ended {
            let over = match result {
                Ok(()) => {
                    self.shared.failed.reports.done(&job.task, &job.about);
                    Ok(())
                }
                Err(failure) if failure.then == Then::Stop => Err(Pause::Stop),
                Err(failure) => self.give_up(&job, attempts, failure),
            };
            let sequence = job.product.info.key.sequence;
            if let (Ok(()), Some(place)) = (over, self.places.get_mut(&job.about.feed)) {
                place.ended(sequence);
                if let Err(error) = place.settle(&self.shared, &job.about.feed) {
                    tracing::error!(%error, "the progress of actions can't be stored; check the disk");
                }
            }
        }
        any
    }

    /// Gives running programs a short time to end; unfinished actions begin again at the next start.
    fn close(mut self) {
        self.announcements.forget();
        self.announcements.close();
        self.end_record_fault();
        while !self.programs.is_idle() {
            self.end_programs();
            std::thread::sleep(PROGRAM_INTERVAL);
        }
        self.pipes.close(&self.shared.stop);
        if !self.shared.stop.is_asked() {
            self.shared.positions.forget(&self.line);
        }
    }
}

impl From<io::Error> for Pause {
    fn from(error: io::Error) -> Self {
        Self::Disk(error)
    }
}

const READ_BYTES: usize = 4 << 20;
/// Limit of a feed's turn: feeds alternate.
const READ_ENTRIES: usize = 64;
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
const PROGRAM_INTERVAL: Duration = Duration::from_millis(20);
const UNREADABLE: &str =
    "the disk can't return the product's bytes from the site's log; look for failures of the disk";
const ANNOUNCEMENT_INTERVAL: Duration = Duration::from_millis(500);
const ROOM_INTERVAL: Duration = Duration::from_secs(2);
const FILE_PAUSE: Duration = Duration::from_millis(100);
const LETTERS_INTERVAL: Duration = Duration::from_secs(2);
