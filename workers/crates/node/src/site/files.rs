//! Files for local software: a thread that copies from the site's log, exactly once per product.
//!
//! Each feed has a cursor. A product is written aside, its number is noted as about to be shown, it is renamed to its place, and the
//! cursor moves on. A restart between the note and the move looks for the file written aside: if it is gone, the rename happened.
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};
use downburst_log::{FeedLog, LogEntry, ProductLog as _};
use downburst_model::{FeedName, ProductKey, Sequence, WallMicros};
use tokio::sync::mpsc;

use super::store::Logs;
use crate::clock::Clock;
use crate::file_names;

/// Wakes the thread after an append.
#[derive(Clone)]
pub(crate) struct Waker(Sender<()>);

impl Waker {
    pub(super) fn wake(&self) {
        let _ = self.0.try_send(());
    }
}

/// A file stands.
pub(crate) struct Done {
    pub(super) key: ProductKey,
    pub(super) at: WallMicros,
}

/// Whoever wants to know of files: the connection to the hub that serves the site.
#[derive(Clone, Default)]
pub(super) struct DoneTo(Arc<Mutex<Option<mpsc::UnboundedSender<Done>>>>);

impl DoneTo {
    pub(super) fn set(&self, sender: mpsc::UnboundedSender<Done>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
    }

    fn tell(&self, done: Done) {
        if let Some(sender) = self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            // Nobody misses a stamp after the end of the connection.
            let _ = sender.send(done);
        }
    }
}

/// Starts the thread. It ends when the last waker is dropped.
pub(super) fn start(
    logs: Arc<Logs>,
    directory: &Path,
    clock: Clock,
    done: DoneTo,
) -> Result<(Waker, std::thread::JoinHandle<()>), String> {
    let (sender, receiver) = bounded(1);
    let directory = directory.to_owned();
    let thread = std::thread::Builder::new()
        .name("files".to_owned())
        .spawn(move || Files { logs, directory, clock, done, cursors: BTreeMap::new() }.run(&receiver))
        .map_err(|error| format!("no thread to write files: {error}"))?;
    Ok((Waker(sender), thread))
}

struct Files {
    logs: Arc<Logs>,
    directory: PathBuf,
    clock: Clock,
    done: DoneTo,
    cursors: BTreeMap<FeedName, Cursor>,
}

/// How far a feed's files are written. On disk: two sequences, 16 bytes.
struct Cursor {
    file: File,
    /// Files up to here are in their place.
    done: Sequence,
}

impl Files {
    fn run(mut self, wakes: &Receiver<()>) {
        loop {
            let ended = wakes.recv_timeout(RETRY_INTERVAL).is_err_and(|error| error.is_disconnected());
            for (feed, log) in self.logs.all() {
                if let Err(error) = self.catch_up(&feed, &log) {
                    tracing::error!(feed = feed.as_str(), %error, "files can't be written; free space, they follow by themselves");
                }
            }
            if ended {
                return;
            }
        }
    }

    fn catch_up(&mut self, feed: &FeedName, log: &FeedLog) -> io::Result<()> {
        let directory = self.directory.clone();
        let cursor = match self.cursors.entry(feed.clone()) {
            std::collections::btree_map::Entry::Occupied(found) => found.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => {
                place.insert(Cursor::open(&directory, feed, log)?)
            }
        };
        while cursor.done < log.head() {
            let batch =
                log.read(cursor.done, log.head(), READ_BYTES, READ_ENTRIES).map_err(io::Error::other)?;
            for entry in &batch.entries {
                cursor.show(&directory, feed, entry)?;
                if let Some(source) = &entry.source {
                    self.done.tell(Done { key: source.key.clone(), at: self.clock.wall() });
                }
            }
            cursor.move_to(batch.read_to)?;
        }
        Ok(())
    }
}

impl Cursor {
    fn open(directory: &Path, feed: &FeedName, log: &FeedLog) -> io::Result<Self> {
        let path = directory.join("state").join("files");
        fs::create_dir_all(&path)?;
        let path = path.join(file_names::encode(feed.as_str()));
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
        let mut bytes = [0; 16];
        let known = file.read_at(&mut bytes, 0)? == bytes.len();
        let (done, begun) = if known { sequences(&bytes) } else { (Sequence(0), Sequence(0)) };
        let mut cursor = Self { file, done };
        if begun > done {
            cursor.finish(directory, feed, begun, log)?;
        }
        Ok(cursor)
    }

    /// After a restart: puts the product that was about to be shown in its place, unless it is there.
    fn finish(
        &mut self,
        directory: &Path,
        feed: &FeedName,
        begun: Sequence,
        log: &FeedLog,
    ) -> io::Result<()> {
        let aside = aside(directory, feed, begun);
        if aside.exists() {
            let Some(entry) = log.entry(begun).map_err(io::Error::other)? else { return Ok(()) };
            place(directory, &aside, &entry)?;
        }
        self.move_to(begun)
    }

    fn show(&mut self, directory: &Path, feed: &FeedName, entry: &LogEntry) -> io::Result<()> {
        let sequence = entry.info.key.sequence;
        let Some(bytes) = &entry.bytes else {
            tracing::warn!(
                feed = feed.as_str(),
                id = entry.info.id.as_str(),
                "a product left the site's log before its file was written"
            );
            return Ok(());
        };
        let aside = aside(directory, feed, sequence);
        let mut file = File::create(&aside)?;
        file.write_all(bytes)?;
        drop(file);
        self.note(sequence)?;
        place(directory, &aside, entry)?;
        self.move_to(sequence)
    }

    fn note(&self, begun: Sequence) -> io::Result<()> {
        self.file.write_all_at(&begun.0.to_be_bytes(), 8)
    }

    fn move_to(&mut self, done: Sequence) -> io::Result<()> {
        self.done = done;
        self.file.write_all_at(&done.0.to_be_bytes(), 0)
    }
}

fn place(directory: &Path, aside: &Path, entry: &LogEntry) -> io::Result<()> {
    let key = entry.source.as_ref().map_or(&entry.info.key, |source| &source.key);
    let target = directory.join("received").join(file_names::received_path(key, entry.info.id.as_str()));
    match fs::rename(aside, &target) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(target.parent().unwrap_or(directory))?;
            fs::rename(aside, &target)
        }
        result => result,
    }
}

fn aside(directory: &Path, feed: &FeedName, sequence: Sequence) -> PathBuf {
    directory.join("spool").join(format!("out-{}-{}", file_names::encode(feed.as_str()), sequence.0))
}

fn sequences(bytes: &[u8; 16]) -> (Sequence, Sequence) {
    let (done, begun) = bytes.split_at(8);
    let number = |half: &[u8]| Sequence(half.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)));
    (number(done), number(begun))
}

const READ_BYTES: usize = 4 << 20;
const READ_ENTRIES: usize = 256;
const RETRY_INTERVAL: Duration = Duration::from_secs(2);
