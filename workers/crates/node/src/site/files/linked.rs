//! Measures the space of products that left the site's log, while their files below `received/` still exist.
//!
//! Such a file was a second name of the log's body: it is read-only, and its space returns when it is removed. Nothing
//! is recorded for this: the files themselves are compared with the bodies, also after a restart.
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::os::unix::fs::{DirEntryExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use downburst_log::ADOPTED_BYTES;
use downburst_model::FeedName;
use downburst_session::LinkedSpace;
use nix::sys::statvfs::statvfs;

use super::done_to::DoneTo;
use crate::file_names;

/// The thread that measures. It ends with this value.
pub(crate) struct LinkedFiles {
    bytes: Arc<AtomicU64>,
    _ending: Sender<()>,
}

impl LinkedFiles {
    /// Starts the thread; it reports the space of each feed to the hub.
    pub(crate) fn start(directory: &Path, done: DoneTo) -> Result<Self, String> {
        let (ending, ended) = bounded(0);
        let bytes = Arc::<AtomicU64>::default();
        let measuring = Measuring {
            received: directory.join("received"),
            log: directory.join("log"),
            done,
            bytes: Arc::clone(&bytes),
            reported: BTreeMap::new(),
            has_failed: false,
        };
        std::thread::Builder::new()
            .name("linked-files".to_owned())
            .spawn(move || measuring.run(&ended))
            .map_err(|error| format!("no thread to measure linked files: {error}"))?;
        Ok(Self { bytes, _ending: ending })
    }

    /// The bytes of all feeds at the last measurement.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

struct Measuring {
    received: PathBuf,
    log: PathBuf,
    done: DoneTo,
    bytes: Arc<AtomicU64>,
    /// By feed, the space that the hub knows of.
    reported: BTreeMap<FeedName, LinkedSpace>,
    has_failed: bool,
}

impl Measuring {
    fn run(mut self, ended: &Receiver<()>) {
        loop {
            let begun = Instant::now();
            self.measure();
            let pause = LEAST_PAUSE.max(begun.elapsed().saturating_mul(PAUSE_PER_WALK));
            if ended.recv_timeout(pause) == Err(RecvTimeoutError::Disconnected) {
                return;
            }
        }
    }

    /// Measures and reports. A directory that can't be read leaves the last figures in force.
    fn measure(&mut self) {
        let measured = self.by_feed().and_then(|feeds| Ok((feeds, free_bytes(&self.received)?)));
        match measured {
            Ok((feeds, free_bytes)) => self.report(&feeds, free_bytes),
            Err(error) if !self.has_failed => {
                tracing::warn!(%error, "the space of linked files below received/ can't be measured");
                self.has_failed = true;
            }
            Err(_) => {}
        }
    }

    /// The bytes of files whose products left the log, by feed.
    fn by_feed(&self) -> io::Result<BTreeMap<FeedName, u64>> {
        let mut files = BTreeMap::new();
        each_entry(&self.received, |entry| {
            let name = entry.file_name().to_str().and_then(file_names::decode);
            if let Some(feed) = name.and_then(|name| FeedName::parse(&name).ok()) {
                files.insert(feed, linked_files(entry.path())?);
            }
            Ok(())
        })?;
        // After the files: a body that leaves the log meanwhile counts, and a new one is not among them.
        let bodies = inodes(self.log.clone())?;
        let left = |files: Vec<Linked>| {
            files.iter().filter(|file| !bodies.contains(&file.inode)).map(|file| file.bytes).sum()
        };
        Ok(files.into_iter().map(|(feed, files)| (feed, left(files))).collect())
    }

    fn report(&mut self, feeds: &BTreeMap<FeedName, u64>, free_bytes: u64) {
        self.has_failed = false;
        self.bytes.store(feeds.values().sum(), Ordering::Relaxed);
        let space = |bytes| LinkedSpace { bytes: rounded(bytes), free_bytes: rounded(free_bytes) };
        let held = feeds.iter().filter(|(_, bytes)| **bytes > 0);
        let held: BTreeMap<_, _> = held.map(|(feed, bytes)| (feed.clone(), space(*bytes))).collect();
        for feed in self.reported.keys().filter(|feed| !held.contains_key(*feed)) {
            self.done.linked_files(feed, None);
        }
        held.iter().for_each(|(feed, space)| self.done.linked_files(feed, Some(*space)));
        self.reported = held;
    }
}

/// A file that is or was a second name of a body.
struct Linked {
    inode: u64,
    bytes: u64,
}

fn linked_files(directory: PathBuf) -> io::Result<Vec<Linked>> {
    let (mut files, mut directories) = (Vec::new(), vec![directory]);
    while let Some(directory) = directories.pop() {
        each_entry(&directory, |entry| {
            let metadata = entry.metadata()?;
            if metadata.is_dir() {
                directories.push(entry.path());
            } else if is_linked(&metadata) {
                files.push(Linked { inode: metadata.ino(), bytes: metadata.len() });
            }
            Ok(())
        })?;
    }
    Ok(files)
}

/// True for a name of a body. Copies and clones are writable, and small products have no bodies.
fn is_linked(metadata: &Metadata) -> bool {
    metadata.is_file() && metadata.mode() & 0o222 == 0 && metadata.len() >= ADOPTED_BYTES
}

/// The inodes of all bodies of a site's logs.
fn inodes(log: PathBuf) -> io::Result<BTreeSet<u64>> {
    let (mut inodes, mut directories) = (BTreeSet::new(), vec![log]);
    while let Some(directory) = directories.pop() {
        each_entry(&directory, |entry| {
            if entry.file_type()?.is_dir() {
                directories.push(entry.path());
            } else {
                inodes.insert(entry.ino());
            }
            Ok(())
        })?;
    }
    Ok(inodes)
}

/// Takes the entries of a directory one by one; local software may remove it, and any of them, at any time.
fn each_entry(directory: &Path, mut take: impl FnMut(DirEntry) -> io::Result<()>) -> io::Result<()> {
    let entries = match fs::read_dir(directory) {
        Err(error) if is_passing(&error) => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        match entry.and_then(&mut take) {
            Err(error) if !is_passing(&error) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The bytes that are free for this process on the disk of a directory.
fn free_bytes(received: &Path) -> io::Result<u64> {
    let place = if received.exists() { received } else { received.parent().unwrap_or(received) };
    let room = statvfs(place)?;
    Ok(room.blocks_available().saturating_mul(room.fragment_size()))
}

/// Three digits: a disk's free space changes all the time, and each change is a message to the hub.
fn rounded(bytes: u64) -> u64 {
    let step = 10_u64.pow(bytes.checked_ilog10().unwrap_or(0).saturating_sub(2));
    (bytes / step).saturating_mul(step)
}

/// A hub hears of removed files this soon, unless there are very many.
const LEAST_PAUSE: Duration = Duration::from_secs(10);
/// The pause after a walk, relative to its length: walks take a hundredth of the time.
const PAUSE_PER_WALK: u32 = 100;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use downburst_site::LocalNews;
    use tokio::sync::mpsc;

    use super::*;

    const SIZE: u64 = ADOPTED_BYTES + 7;

    /// A site's directory with a feed.
    struct Bench {
        site: tempfile::TempDir,
        measuring: Measuring,
        told: mpsc::UnboundedReceiver<LocalNews>,
    }

    impl Bench {
        fn new() -> Self {
            let site = tempfile::tempdir().unwrap();
            let done = DoneTo::default();
            let (sender, told) = mpsc::unbounded_channel();
            done.set(Some(sender), BTreeMap::new());
            let measuring = Measuring {
                received: site.path().join("received"),
                log: site.path().join("log"),
                done,
                bytes: Arc::default(),
                reported: BTreeMap::new(),
                has_failed: false,
            };
            Self { site, measuring, told }
        }

        fn file(&self, name: &str, size: u64, mode: u32) -> PathBuf {
            let path = self.site.path().join("received").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, vec![1; usize::try_from(size).unwrap()]).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        }

        /// The bytes in the reports of a measurement, by feed.
        fn measured(&mut self) -> Vec<(String, Option<u64>)> {
            self.measuring.measure();
            let news = std::iter::from_fn(|| self.told.try_recv().ok());
            let reported = news.map(|news| match news {
                LocalNews::LinkedFiles { feed, space } => {
                    assert!(space.is_none_or(|space| space.free_bytes > 0));
                    (feed.as_str().to_owned(), space.map(|space| space.bytes))
                }
                other => panic!("{other:?}"),
            });
            reported.collect()
        }
    }

    #[test]
    fn files_that_left_the_log_are_counted_until_they_are_removed() {
        let mut bench = Bench::new();
        assert_eq!(bench.measured(), [], "no product has come");
        let body = bench.file("NGRID/1_a", SIZE, 0o444);
        let bodies = bench.site.path().join("log/NGRID/1.bodies");
        fs::create_dir_all(&bodies).unwrap();
        fs::hard_link(&body, bodies.join("1")).unwrap();
        fs::hard_link(&body, bench.site.path().join("of an action")).unwrap();
        assert_eq!(bench.measured(), [], "its space is the log's");
        fs::remove_dir_all(bodies).unwrap();
        bench.file("NGRID/1_long~/b", SIZE, 0o444);
        let told = ("NGRID".to_owned(), Some(rounded(2 * SIZE)));
        assert_eq!(bench.measured(), std::slice::from_ref(&told));
        assert_eq!(bench.measured(), [told], "it is repeated");
        assert_eq!(bench.measuring.bytes.load(Ordering::Relaxed), 2 * SIZE);
        fs::remove_dir_all(bench.site.path().join("received/NGRID")).unwrap();
        assert_eq!(bench.measured(), [("NGRID".to_owned(), None)]);
        assert_eq!(bench.measured(), []);
        assert_eq!(bench.measuring.bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn copies_small_products_and_files_of_others_are_not_counted() {
        let mut bench = Bench::new();
        bench.file("NGRID/1_copy", SIZE, 0o644);
        bench.file("NGRID/1_small", ADOPTED_BYTES - 1, 0o444);
        bench.file("lost+found", SIZE, 0o444);
        let elsewhere = bench.site.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, bench.site.path().join("received/NGRID/link")).unwrap();
        bench.file("../elsewhere/1_a", SIZE, 0o444);
        assert_eq!(bench.measured(), []);
    }

    #[test]
    fn a_directory_that_cannot_be_read_leaves_the_last_figures() {
        let mut bench = Bench::new();
        bench.file("NGRID/1_a", SIZE, 0o444);
        bench.measured();
        bench.measuring.received = PathBuf::from("/\0");
        assert_eq!(bench.measured(), []);
        assert_eq!(bench.measuring.bytes.load(Ordering::Relaxed), SIZE);
    }

    #[test]
    fn figures_have_three_digits() {
        assert_eq!([0, 7, 999, 1_234, 65_543].map(rounded), [0, 7, 999, 1_230, 65_500]);
        assert_eq!(rounded(u64::MAX), 18_400_000_000_000_000_000);
    }

    #[test]
    fn the_thread_ends_with_its_owner() {
        let site = tempfile::tempdir().unwrap();
        let done = DoneTo::default();
        let (sender, mut told) = mpsc::unbounded_channel();
        done.set(Some(sender), BTreeMap::new());
        drop(LinkedFiles::start(site.path(), done).unwrap());
        assert!(told.blocking_recv().is_none(), "the thread held the last sender");
    }
}
