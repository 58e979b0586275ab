//! Files for local software: a thread that copies from the site's log, exactly once per product.
//!
//! Each feed has a cursor. A product is written aside, its number is noted as about to be shown, it is
//! renamed to its place, and the cursor moves on. A restart between the note and the move looks for the file
//! written aside: if it is gone, the rename happened. Where a subscription asks for order, live products wait
//! here for earlier ones.
mod told;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};
use downburst_log::disk::{self, File};
use downburst_log::{FeedLog, LogEntry, ProductLog as _};
use downburst_model::{FeedName, Lane, Micros, Sequence};
use downburst_session::{ActionFailed, Missing};
use downburst_site::{Arrival, Order, Shown, Turn};
use nix::errno::Errno;
use nix::unistd::{AccessFlags, access};

pub(crate) use told::DoneTo;

use super::cursor::{Cursor, Last, Life};
use super::proving::{Proof, prove, set_unproven_aside};
use super::store::Logs;
use crate::clock::Clock;
use crate::file_names;

/// Tells the thread what happens.
#[derive(Clone)]
pub(crate) struct Waker {
    wake: Sender<()>,
    wishes: Arc<Mutex<Wishes>>,
}

/// How feeds are to be shown.
#[derive(Default)]
struct Wishes {
    /// The feeds with an order, and how long a missing product holds back later ones.
    holds: BTreeMap<FeedName, Micros>,
    missing: BTreeMap<FeedName, Missing>,
}

impl Waker {
    /// Something was appended to a log.
    pub(super) fn wake(&self) {
        let _ = self.wake.try_send(());
    }

    /// The feeds whose live products are to be shown in order: all of them, or all of `only` these.
    pub(super) fn order(&self, only: Option<&BTreeSet<FeedName>>, mut holds: BTreeMap<FeedName, Micros>) {
        let mut wishes = locked(&self.wishes);
        if let Some(only) = only {
            let others = wishes.holds.iter().filter(|(feed, _)| !only.contains(*feed));
            holds.extend(others.map(|(feed, hold)| (feed.clone(), *hold)));
        }
        wishes.missing.retain(|feed, _| holds.contains_key(feed));
        wishes.holds = holds;
        drop(wishes);
        self.wake();
    }

    /// What a feed with an order still lacks.
    pub(super) fn missing(&self, feed: &FeedName, missing: Missing) {
        locked(&self.wishes).missing.insert(feed.clone(), missing);
        self.wake();
    }
}

/// Starts the thread. It ends when the last waker is dropped.
pub(super) fn start(
    logs: Arc<Logs>,
    directory: &Path,
    clock: Clock,
    done: DoneTo,
) -> Result<(Waker, std::thread::JoinHandle<()>), String> {
    let (wake, receiver) = bounded(1);
    let files = Files::new(logs, directory, clock, done);
    let wishes = Arc::clone(&files.wishes);
    let thread = std::thread::Builder::new()
        .name("files".to_owned())
        .spawn(move || files.run(&receiver))
        .map_err(|error| format!("no thread to write files: {error}"))?;
    Ok((Waker { wake, wishes }, thread))
}

/// What the thread works with.
pub(super) struct Files {
    logs: Arc<Logs>,
    wishes: Arc<Mutex<Wishes>>,
    outlet: Outlet,
    shows: BTreeMap<FeedName, Show>,
    /// The disk is asked to keep what was shown; another thread waits for it.
    proof: Option<Proof>,
    proven_at: Instant,
}

/// Where files are put.
struct Outlet {
    directory: PathBuf,
    clock: Clock,
    done: DoneTo,
}

/// One feed's files.
struct Show {
    cursor: Cursor,
    /// Read from the log up to here; what is not shown of that waits in `order`.
    read_to: Sequence,
    order: Option<Order>,
    waiting: BTreeSet<Sequence>,
}

impl Files {
    pub(super) fn new(logs: Arc<Logs>, directory: &Path, clock: Clock, done: DoneTo) -> Self {
        Self {
            logs,
            wishes: Arc::default(),
            outlet: Outlet { directory: directory.to_owned(), clock, done },
            shows: BTreeMap::new(),
            proof: None,
            proven_at: Instant::now(),
        }
    }

    fn run(mut self, wakes: &Receiver<()>) {
        loop {
            let ended = wakes.recv_timeout(self.patience()).is_err_and(|error| error.is_disconnected());
            self.show_all();
            if ended {
                self.close();
                return;
            }
            self.take_proof(false);
            self.prove(PROOF_INTERVAL);
        }
    }

    /// Shows what the logs hold.
    pub(super) fn show_all(&mut self) {
        for (feed, log) in self.logs.all() {
            if let Err(error) = self.catch_up(&feed, &log) {
                // What waited is read from the log again.
                self.shows.remove(&feed);
                tracing::error!(feed = feed.as_str(), %error, "files can't be written; free space; writing resumes \
                    by itself");
            }
        }
    }

    /// A machine that is shut down in order writes everything out; an end in order need not wait for that.
    fn close(&mut self) {
        let at = self.outlet.clock.wall();
        for (feed, show) in &mut self.shows {
            let done = show.cursor.done();
            if let Err(error) = show.cursor.prove(done, at) {
                tracing::error!(feed = feed.as_str(), %error, "the position of shown files can't be stored");
            }
        }
    }

    /// Waits until what was shown is on the disk for good.
    #[cfg(test)]
    pub(super) fn prove_now(&mut self) {
        self.take_proof(true);
        self.prove(Duration::ZERO);
        self.take_proof(true);
    }

    /// Has the disk keep for good what was shown, every now and then.
    fn prove(&mut self, interval: Duration) {
        let shown = self.shows.iter().filter(|(_, show)| show.cursor.proven() < show.cursor.done());
        let shown: BTreeMap<FeedName, Sequence> =
            shown.map(|(feed, show)| (feed.clone(), show.cursor.done())).collect();
        if self.proof.is_none() && !shown.is_empty() && self.proven_at.elapsed() >= interval {
            self.proven_at = Instant::now();
            self.proof = prove(&self.outlet.directory, shown, self.outlet.clock.wall());
        }
    }

    fn take_proof(&mut self, wait: bool) {
        let Some(proof) = self.proof.take_if(|proof| wait || proof.is_over()) else { return };
        let Some((proven, at)) = proof.proven() else { return };
        for (feed, sequence) in proven {
            let Some(show) = self.shows.get_mut(&feed) else { continue };
            if let Err(error) = show.cursor.prove(sequence, at) {
                tracing::error!(feed = feed.as_str(), %error, "the position of files on the disk can't be stored");
            }
        }
    }

    fn patience(&self) -> Duration {
        let deadlines = self.shows.values().filter_map(|show| show.order.as_ref()?.deadline());
        let due = deadlines.min().map(|at| Duration::from_micros(at.since(self.outlet.clock.monotonic()).0));
        due.map_or(RETRY_INTERVAL, |due| due.min(RETRY_INTERVAL))
    }

    fn catch_up(&mut self, feed: &FeedName, log: &FeedLog) -> io::Result<()> {
        let (hold, missing) = {
            let wishes = locked(&self.wishes);
            (wishes.holds.get(feed).copied(), wishes.missing.get(feed).cloned().unwrap_or_default())
        };
        let show = match self.shows.entry(feed.clone()) {
            std::collections::btree_map::Entry::Occupied(found) => found.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => {
                place.insert(Show::open(&self.outlet, feed, log)?)
            }
        };
        show.set_hold(hold)?;
        show.catch_up(&self.outlet, feed, log)?;
        show.take_turns(&self.outlet, feed, log, &missing)
    }
}

impl Show {
    /// Takes up where the site stopped: the product that was about to be shown is put in its place, unless it is there.
    fn open(outlet: &Outlet, feed: &FeedName, log: &FeedLog) -> io::Result<Self> {
        let (cursor, opened) = Cursor::open(&outlet.directory, feed, Life::of(log, outlet.clock.wall()))?;
        if let Some(sentence) = opened.damage {
            tracing::error!(feed = feed.as_str(), "{sentence}");
            outlet.done.acts(feed, Some(damaged(sentence)));
        }
        if let Some(since) = opened.unproven_since {
            set_unproven_aside(&outlet.directory, feed, log, since)?;
        }
        let mut show = Self { read_to: cursor.done(), cursor, order: None, waiting: BTreeSet::new() };
        show.cursor.begin()?;
        if let Some(begun) = opened.begun {
            let aside = aside(&outlet.directory, feed, begun);
            let entry = log.entry(begun).map_err(io::Error::other)?;
            if let Some(entry) = entry.iter().find(|_| aside.exists()) {
                place(&outlet.directory, &aside, entry)?;
            }
            let done = if show.cursor.is_ordering() { show.cursor.done() } else { begun };
            show.cursor.shown(begun, done)?;
            entry.iter().for_each(|entry| outlet.tell(entry, false));
            show.read_to = show.cursor.done();
        }
        Ok(show)
    }

    fn set_hold(&mut self, hold: Option<Micros>) -> io::Result<()> {
        match (hold, &mut self.order) {
            (Some(hold), Some(order)) => order.set_hold(hold),
            (Some(hold), None) => {
                self.cursor.begin_ordering()?;
                let mut order = Order::new(hold);
                for Last { class, epoch, sequence } in self.cursor.last() {
                    order.resume(*class, *epoch, *sequence);
                }
                self.order = Some(order);
            }
            (None, Some(_)) => {
                // Read again from the first that was not shown: what waited goes in the log's order.
                (self.order, self.read_to) = (None, self.cursor.done());
                self.waiting.clear();
            }
            (None, None) if self.cursor.is_ordering() => self.cursor.end_ordering()?,
            (None, None) => {}
        }
        Ok(())
    }

    fn catch_up(&mut self, outlet: &Outlet, feed: &FeedName, log: &FeedLog) -> io::Result<()> {
        while self.read_to < log.head() && self.waiting.len() < WAITING_LIMIT {
            let batch =
                log.read(self.read_to, log.head(), READ_BYTES, READ_ENTRIES).map_err(io::Error::other)?;
            for entry in &batch.entries {
                let at = entry.info.key.sequence;
                if !self.cursor.is_shown(at) {
                    self.take(outlet, feed, log, entry)?;
                }
                self.read_to = at;
            }
            self.read_to = batch.read_to;
            self.cursor.move_to(self.done_to(self.read_to))?;
        }
        Ok(())
    }

    /// Shows an entry, or lets it wait for its turn.
    fn take(&mut self, outlet: &Outlet, feed: &FeedName, log: &FeedLog, entry: &LogEntry) -> io::Result<()> {
        let at = entry.info.key.sequence;
        let in_order = arrival(entry).filter(|_| !entry.info.id.is_heartbeat());
        let (Some(order), Some(arrival)) = (&mut self.order, in_order) else {
            return self.show(outlet, feed, entry, false);
        };
        let turns = order.arrive(arrival, outlet.clock.monotonic());
        self.waiting.insert(at);
        turns.into_iter().try_for_each(|turn| self.take_turn(outlet, feed, log, turn))
    }

    fn take_turns(
        &mut self,
        outlet: &Outlet,
        feed: &FeedName,
        log: &FeedLog,
        missing: &Missing,
    ) -> io::Result<()> {
        let Some(order) = &mut self.order else { return Ok(()) };
        let turns = order.take_due(missing, outlet.clock.monotonic());
        if turns.is_empty() {
            return Ok(());
        }
        turns.into_iter().try_for_each(|turn| self.take_turn(outlet, feed, log, turn))?;
        let shown = self.order.iter().flat_map(Order::shown);
        let last = shown.map(|(class, epoch, sequence)| Last { class, epoch, sequence }).collect();
        self.cursor.keep_last(last)
    }

    fn take_turn(&mut self, outlet: &Outlet, feed: &FeedName, log: &FeedLog, turn: Turn) -> io::Result<()> {
        self.waiting.remove(&turn.at);
        match log.entry(turn.at).map_err(io::Error::other)? {
            Some(entry) => self.show(outlet, feed, &entry, turn.late),
            None => Ok(()),
        }
    }

    fn show(&mut self, outlet: &Outlet, feed: &FeedName, entry: &LogEntry, late: bool) -> io::Result<()> {
        let sequence = entry.info.key.sequence;
        let Some(bytes) = &entry.bytes else {
            tracing::warn!(
                feed = feed.as_str(),
                id = entry.info.id.as_str(),
                "a product left the site's log before its file was written"
            );
            return Ok(());
        };
        if self.cursor.is_doubtful(sequence) && stands(&outlet.directory, entry) {
            self.cursor.shown(sequence, self.done_to(sequence))?;
            outlet.tell(entry, false);
            return Ok(());
        }
        let aside = aside(&outlet.directory, feed, sequence);
        File::create(&aside)?.write_all_at(bytes, 0)?;
        if entry.info.id.is_heartbeat() {
            disk::remove_file(&aside)?;
            check_place(&outlet.directory)?;
            self.cursor.shown(sequence, self.done_to(sequence))?;
            outlet.tell(entry, late);
            return Ok(());
        }
        self.cursor.note(sequence)?;
        place(&outlet.directory, &aside, entry)?;
        self.cursor.shown(sequence, self.done_to(sequence))?;
        outlet.tell(entry, late);
        Ok(())
    }

    /// Nothing up to here waits to be shown, now that `shown` stands.
    fn done_to(&self, shown: Sequence) -> Sequence {
        let read_to = self.read_to.max(shown);
        self.waiting.first().map_or(read_to, |first| Sequence(first.0.saturating_sub(1)).min(read_to))
    }
}

impl Outlet {
    fn tell(&self, entry: &LogEntry, late: bool) {
        if let Some(source) = &entry.source {
            let heartbeat = entry.info.id.is_heartbeat();
            self.done.tell(Shown { key: source.key.clone(), at: self.clock.wall(), late, heartbeat });
        }
    }
}

/// A product that has a place in an order: live ones have.
fn arrival(entry: &LogEntry) -> Option<Arrival> {
    let source = entry.source.as_ref().filter(|source| source.lane.unwrap_or(Lane::Live) == Lane::Live)?;
    Some(Arrival {
        at: entry.info.key.sequence,
        class: entry.info.class,
        epoch: source.key.epoch,
        sequence: source.key.sequence,
    })
}

fn locked(wishes: &Mutex<Wishes>) -> std::sync::MutexGuard<'_, Wishes> {
    wishes.lock().unwrap_or_else(PoisonError::into_inner)
}

fn target(directory: &Path, entry: &LogEntry) -> PathBuf {
    let key = entry.source.as_ref().map_or(&entry.info.key, |source| &source.key);
    directory.join("received").join(file_names::received_path(key, entry.info.id.as_str()))
}

fn place(directory: &Path, aside: &Path, entry: &LogEntry) -> io::Result<()> {
    let target = target(directory, entry);
    match disk::rename(aside, &target) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            disk::make_directory(target.parent().unwrap_or(directory))?;
            disk::rename(aside, &target)
        }
        result => result,
    }
}

/// True if the product's file stands, whole.
fn stands(directory: &Path, entry: &LogEntry) -> bool {
    let target = target(directory, entry);
    let is_as_long = fs::metadata(&target).is_ok_and(|it| it.is_file() && it.len() == entry.info.size);
    is_as_long && fs::read(&target).is_ok_and(|it| *blake3::hash(&it).as_bytes() == entry.info.digest.0)
}

/// What the hub is told of a file of the site's state.
pub(super) fn damaged(sentence: String) -> ActionFailed {
    ActionFailed {
        rule: DAMAGED_STATE.to_owned(),
        exit: None,
        last_error: sentence,
        product: String::new(),
        sequence: Sequence(0),
        epoch: None,
        count: 1,
        others: Vec::new(),
    }
}

/// Whether a file could be put where local software looks: a heartbeat goes as far as that, and leaves nothing.
fn check_place(directory: &Path) -> io::Result<()> {
    let received = directory.join("received");
    match access(&received, AccessFlags::W_OK | AccessFlags::X_OK) {
        Err(Errno::ENOENT) => disk::make_directory(&received),
        result => result.map_err(io::Error::from),
    }
}

fn aside(directory: &Path, feed: &FeedName, sequence: Sequence) -> PathBuf {
    directory.join("spool").join(format!("out-{}-{}", file_names::encode(feed.as_str()), sequence.0))
}

/// How often the disk is asked to keep what was shown. After a power cut files since the last time are looked at again.
const PROOF_INTERVAL: Duration = Duration::from_secs(30);
/// Stands in the place of a rule where the site's own state was found damaged; the hub raises `damaged-data` of it.
pub(super) const DAMAGED_STATE: &str = "damaged state";
const READ_BYTES: usize = 4 << 20;
const READ_ENTRIES: usize = 256;
const RETRY_INTERVAL: Duration = Duration::from_secs(2);

/// Products that may wait for those before them; beyond it the log is read on when some have gone.
const WAITING_LIMIT: usize = 65_536;
