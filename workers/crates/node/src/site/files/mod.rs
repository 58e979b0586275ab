//! Files for local software: a thread that copies from the site's log, exactly once per product.
//!
//! A large product's file shares the bytes of the log where the file system can ([`Placing`]).
//!
//! The `site` crate's machine of each feed ([`FeedRelease`]) decides which product becomes a file next, and what is
//! recorded of that. The thread does the work on the log and the disk for it.
pub(super) mod cursor;
mod done_to;
mod linked;
mod placing;
mod proving;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};
use downburst_log::disk;
use downburst_log::{FeedLog, LogEntry, ProductLog as _};
use downburst_model::{Content, FeedName, Lane, Machine as _, Sequence};
use downburst_site::{
    Arrival, Candidate, FeedRelease, OrderRequests, Release, ReleaseInput, ReleaseOutput, ShowOrder, Shown,
    damaged_state,
};
use nix::errno::Errno;
use nix::unistd::{AccessFlags, access};

#[cfg(test)]
pub(super) use cursor::tests::BOOT;
pub(crate) use done_to::DoneTo;
pub(super) use linked::LinkedFiles;
pub use placing::FileMode;
pub(crate) use placing::Placing;

use self::cursor::CursorFile;
use self::proving::{Proof, prove, set_unproven_aside};
use super::store::Logs;
use crate::clock::Clock;
use crate::file_names;

/// Sends events to the thread.
#[derive(Clone)]
pub(crate) struct Waker {
    wake: Sender<()>,
    requests: Arc<Mutex<OrderRequests>>,
}

impl Waker {
    /// Wakes the thread after an append to a log.
    pub(super) fn wake(&self) {
        let _ = self.wake.try_send(());
    }

    /// Passes on a connection's order of how to show feeds.
    pub(super) fn order(&self, order: ShowOrder) {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).take(order);
        self.wake();
    }
}

/// Starts the thread. It ends when the last waker is dropped.
pub(super) fn start(
    logs: Arc<Logs>,
    directory: &Path,
    placing: Placing,
    clock: Clock,
    done: DoneTo,
) -> Result<(Waker, std::thread::JoinHandle<()>), String> {
    let (wake, receiver) = bounded(1);
    let files = Files::new(logs, directory, placing, clock, done);
    let requests = Arc::clone(&files.requests);
    let thread = std::thread::Builder::new()
        .name("files".to_owned())
        .spawn(move || files.run(&receiver))
        .map_err(|error| format!("no thread to write files: {error}"))?;
    Ok((Waker { wake, requests }, thread))
}

/// The state of the thread.
pub(super) struct Files {
    logs: Arc<Logs>,
    requests: Arc<Mutex<OrderRequests>>,
    outlet: Outlet,
    release: Release,
    kept: BTreeMap<FeedName, FeedFiles>,
    /// The pending confirmation by the disk of the files shown so far; another thread waits for it.
    proof: Option<Proof>,
}

/// A feed, its log, and the outlet of its files.
#[derive(Clone, Copy)]
struct FeedAt<'a> {
    outlet: &'a Outlet,
    feed: &'a FeedName,
    log: &'a FeedLog,
}

/// The place of the files.
struct Outlet {
    directory: PathBuf,
    placing: Placing,
    clock: Clock,
    done: DoneTo,
}

/// The resources for the machine of a feed.
struct FeedFiles {
    cursor: CursorFile,
    at_hand: AtHand,
}

/// Products of a feed that were read from its log.
#[derive(Default)]
struct AtHand {
    /// The products of the last read, in the log's order.
    batch: Vec<LogEntry>,
    /// A product that was read alone.
    single: Option<LogEntry>,
}

impl Files {
    pub(super) fn new(
        logs: Arc<Logs>,
        directory: &Path,
        placing: Placing,
        clock: Clock,
        done: DoneTo,
    ) -> Self {
        Self {
            logs,
            requests: Arc::default(),
            outlet: Outlet { directory: directory.to_owned(), placing, clock, done },
            release: Release::new(clock.monotonic()),
            kept: BTreeMap::new(),
            proof: None,
        }
    }

    fn run(mut self, wakes: &Receiver<()>) {
        loop {
            let patience = self.release.patience(self.outlet.clock.monotonic());
            let woken = wakes.recv_timeout(Duration::from_micros(patience.0));
            self.show_all();
            if woken.is_err_and(|error| error.is_disconnected()) {
                self.close();
                return;
            }
            self.take_proof(false);
            if self.release.prove(self.outlet.clock.now()) {
                self.start_proof();
            }
        }
    }

    /// Shows the products in the logs.
    pub(super) fn show_all(&mut self) {
        for (feed, log) in self.logs.all() {
            if let Err(error) = self.catch_up(&feed, &log) {
                self.release.failed(&feed);
                self.kept.remove(&feed);
                tracing::error!(feed = feed.as_str(), %error, "files can't be written; free space; writing resumes \
                    by itself");
            }
        }
    }

    fn catch_up(&mut self, feed: &FeedName, log: &FeedLog) -> io::Result<()> {
        let (hold, missing) = self.requests.lock().unwrap_or_else(PoisonError::into_inner).of(feed);
        if !self.kept.contains_key(feed) {
            let (cursor, kept) = CursorFile::open(&self.outlet.directory, feed)?;
            self.release.open(feed, FeedRelease::open(kept, cursor::life(log, self.outlet.clock.wall())));
            self.kept.insert(feed.clone(), FeedFiles { cursor, at_hand: AtHand::default() });
        }
        let at = FeedAt { outlet: &self.outlet, feed, log };
        let (Some(release), Some(files)) = (self.release.feed(feed), self.kept.get_mut(feed)) else {
            return Ok(());
        };
        files.carry_out_all(at, release)?;
        release.handle(self.outlet.clock.now(), ReleaseInput::Woken { head: log.head(), hold, missing });
        files.carry_out_all(at, release)?;
        files.at_hand = AtHand::default();
        Ok(())
    }

    fn close(&mut self) {
        for (feed, numbers) in self.release.close(self.outlet.clock.wall()) {
            if let Err(error) = self.kept.get_mut(&feed).map_or(Ok(()), |files| files.cursor.put(numbers)) {
                tracing::error!(feed = feed.as_str(), %error, "the position of shown files can't be stored");
            }
        }
    }

    /// Waits until the files shown so far are durable.
    #[cfg(test)]
    pub(super) fn prove_now(&mut self) {
        self.take_proof(true);
        if self.release.prove_at_once(self.outlet.clock.now()) {
            self.start_proof();
        }
        self.take_proof(true);
    }

    /// Has another thread wait for the disk.
    fn start_proof(&mut self) {
        self.proof = prove(&self.outlet.directory);
        if self.proof.is_none() {
            self.release.proven(false);
        }
    }

    fn take_proof(&mut self, wait: bool) {
        let Some(proof) = self.proof.take_if(|proof| wait || proof.is_over()) else { return };
        for (feed, numbers) in self.release.proven(proof.wait()) {
            if let Err(error) = self.kept.get_mut(&feed).map_or(Ok(()), |files| files.cursor.put(numbers)) {
                tracing::error!(feed = feed.as_str(), %error, "the position of files on the disk can't be stored");
            }
        }
    }
}

impl FeedFiles {
    fn carry_out_all(&mut self, feed: FeedAt<'_>, release: &mut FeedRelease) -> io::Result<()> {
        let mut now = feed.outlet.clock.now();
        while let Some(output) = release.poll(now) {
            let answer = self.carry_out(feed, release, output)?;
            now = feed.outlet.clock.now();
            release.handle(now, answer);
        }
        Ok(())
    }

    fn carry_out(
        &mut self,
        feed: FeedAt<'_>,
        release: &FeedRelease,
        output: ReleaseOutput,
    ) -> io::Result<ReleaseInput> {
        match output {
            ReleaseOutput::Damaged(sentence) => feed.damaged(sentence),
            ReleaseOutput::SetUnprovenAside { since } => {
                set_unproven_aside(&feed.outlet.directory, feed.feed, feed.log, since)?;
            }
            ReleaseOutput::KeepNumbers(numbers) => self.cursor.put(numbers)?,
            ReleaseOutput::KeepAhead => self.cursor.keep_ahead(release.cursor().ahead())?,
            ReleaseOutput::SyncNumbers => self.cursor.sync()?,
            ReleaseOutput::Report { at, late } => {
                self.at_hand.entry(feed, at)?.iter().for_each(|entry| feed.outlet.report(entry, late));
            }
            ReleaseOutput::Read { after, to } => return self.at_hand.read(feed.log, after, to),
            ReleaseOutput::Finish(at) => return self.at_hand.finish(feed, at),
            ReleaseOutput::Look(at) => return self.at_hand.look(feed, at),
            ReleaseOutput::Write(at) => return self.at_hand.write(feed, at),
            ReleaseOutput::Place(at) => return self.at_hand.place(feed, at),
            ReleaseOutput::Discard(at) => return feed.outlet.discard(&feed.aside(at)),
        }
        Ok(ReleaseInput::Done)
    }
}

impl FeedAt<'_> {
    fn damaged(&self, sentence: String) {
        tracing::error!(feed = self.feed.as_str(), "{sentence}");
        self.outlet.done.acts(self.feed, Some(damaged_state(sentence)));
    }

    fn aside(&self, at: Sequence) -> PathBuf {
        let name = file_names::encode(self.feed.as_str());
        self.outlet.directory.join("spool").join(format!("out-{name}-{}", at.0))
    }
}

impl AtHand {
    fn read(&mut self, log: &FeedLog, after: Sequence, to: Sequence) -> io::Result<ReleaseInput> {
        let batch = log.read(after, to, READ_BYTES, READ_ENTRIES).map_err(io::Error::other)?;
        self.batch = batch.entries;
        let products = self.batch.iter().map(candidate).collect();
        Ok(ReleaseInput::Read { products, read_to: batch.read_to, head: log.head() })
    }

    /// A product; `None` if the log no longer lists it.
    fn entry(&mut self, feed: FeedAt<'_>, at: Sequence) -> io::Result<Option<&LogEntry>> {
        let place = |entry: &LogEntry| entry.info.key.sequence;
        if let Ok(index) = self.batch.binary_search_by_key(&at, place) {
            return Ok(self.batch.get(index));
        }
        if self.single.as_ref().is_none_or(|entry| place(entry) != at) {
            self.single = feed.log.entry(at).map_err(io::Error::other)?;
        }
        Ok(self.single.as_ref())
    }

    fn finish(&mut self, feed: FeedAt<'_>, at: Sequence) -> io::Result<ReleaseInput> {
        let aside = feed.aside(at);
        let entry = self.entry(feed, at)?;
        if let Some(entry) = entry.filter(|_| aside.exists()) {
            feed.outlet.place(&aside, entry)?;
        }
        Ok(ReleaseInput::Finished(entry.is_some()))
    }

    fn look(&mut self, feed: FeedAt<'_>, at: Sequence) -> io::Result<ReleaseInput> {
        let entry = self.entry(feed, at)?.filter(|entry| content_of(feed.feed, entry).is_some());
        Ok(entry.map_or(ReleaseInput::Gone, |entry| ReleaseInput::Stands(feed.outlet.stands(entry))))
    }

    fn write(&mut self, feed: FeedAt<'_>, at: Sequence) -> io::Result<ReleaseInput> {
        let content = self.entry(feed, at)?.and_then(|entry| content_of(feed.feed, entry));
        let Some(content) = content else { return Ok(ReleaseInput::Gone) };
        let is_laid = feed.outlet.placing.lay(content, &feed.aside(at))?;
        Ok(if is_laid { ReleaseInput::Written } else { ReleaseInput::Gone })
    }

    fn place(&mut self, feed: FeedAt<'_>, at: Sequence) -> io::Result<ReleaseInput> {
        if let Some(entry) = self.entry(feed, at)? {
            feed.outlet.place(&feed.aside(at), entry)?;
        }
        Ok(ReleaseInput::Placed)
    }
}

impl Outlet {
    fn report(&self, entry: &LogEntry, late: bool) {
        if let Some(source) = &entry.source {
            let heartbeat = entry.info.id.is_heartbeat();
            self.done.tell(Shown { key: source.key.clone(), at: self.clock.wall(), late, heartbeat });
        }
    }

    fn target(&self, entry: &LogEntry) -> PathBuf {
        let key = entry.source.as_ref().map_or(&entry.info.key, |source| &source.key);
        self.directory.join("received").join(file_names::received_path(key, entry.info.id.as_str()))
    }

    fn place(&self, aside: &Path, entry: &LogEntry) -> io::Result<()> {
        let target = self.target(entry);
        match disk::rename(aside, &target) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                disk::make_directory(target.parent().unwrap_or(&self.directory))?;
                disk::rename(aside, &target)
            }
            result => result,
        }?;
        if self.placing.used != FileMode::Link {
            return Ok(());
        }
        // A rename between two names of one file does nothing: the product is shown already.
        match disk::remove_file(aside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// True if the product's file exists and is complete.
    fn stands(&self, entry: &LogEntry) -> bool {
        let target = self.target(entry);
        let is_as_long = fs::metadata(&target).is_ok_and(|it| it.is_file() && it.len() == entry.info.size);
        let digest = || blake3::Hasher::new().update_reader(fs::File::open(&target)?).map(|it| it.finalize());
        is_as_long && digest().is_ok_and(|digest| *digest.as_bytes() == entry.info.digest.0)
    }

    /// Checks that a file could be placed for local software: a heartbeat goes this far, and leaves none.
    fn discard(&self, aside: &Path) -> io::Result<ReleaseInput> {
        disk::remove_file(aside)?;
        let received = self.directory.join("received");
        match access(&received, AccessFlags::W_OK | AccessFlags::X_OK) {
            Err(Errno::ENOENT) => disk::make_directory(&received)?,
            result => result.map_err(io::Error::from)?,
        }
        Ok(ReleaseInput::Placed)
    }
}

fn content_of<'a>(feed: &FeedName, entry: &'a LogEntry) -> Option<&'a Content> {
    if entry.bytes.is_none() {
        tracing::warn!(
            feed = feed.as_str(),
            id = entry.info.id.as_str(),
            "a product left the site's log before its file was written"
        );
    }
    entry.bytes.as_ref()
}

fn candidate(entry: &LogEntry) -> Candidate {
    let at = entry.info.key.sequence;
    let is_live = |lane: Option<Lane>| lane.unwrap_or(Lane::Live) == Lane::Live;
    let arrival = entry.source.as_ref().filter(|source| is_live(source.lane)).map(|source| Arrival {
        at,
        class: entry.info.class,
        epoch: source.key.epoch,
        sequence: source.key.sequence,
    });
    Candidate { at, arrival, heartbeat: entry.info.id.is_heartbeat() }
}

const READ_BYTES: usize = 4 << 20;
const READ_ENTRIES: usize = 256;
