//! The directory of raw receipts: file names, the contents of each file, and retention.
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use downburst_model::{Epoch, FeedName, ProductKey, Sequence};
use serde::{Deserialize, Serialize};

use super::Limits;

/// A file of receipts.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    /// The time of the last write.
    pub(super) ended: SystemTime,
}

/// The contents of a file, stored beside it.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Contents {
    pub(super) rows: u64,
    pub(super) feeds: Vec<Stretch>,
}

/// The lowest and the highest sequence of a feed in a file.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stretch {
    pub(super) feed: FeedName,
    /// As decimal text, as everywhere in JSON: it has more digits than a float can hold.
    epoch: String,
    first: Sequence,
    last: Sequence,
}

impl Contents {
    /// Reads the contents stored beside a file; `None` if they are unknown, as after a crash.
    pub(super) fn of(file: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(beside(file)).ok()?).ok()
    }

    /// Counts a row.
    pub(super) fn add(&mut self, key: &ProductKey) {
        self.rows += 1;
        // The feed of the last row is nearly always that of the next one.
        let known =
            self.feeds.iter_mut().rev().find(|stretch| stretch.feed == key.feed && stretch.is_of(key.epoch));
        match known {
            Some(stretch) => {
                stretch.first = stretch.first.min(key.sequence);
                stretch.last = stretch.last.max(key.sequence);
            }
            None => self.feeds.push(Stretch {
                feed: key.feed.clone(),
                epoch: key.epoch.0.to_string(),
                first: key.sequence,
                last: key.sequence,
            }),
        }
    }

    /// False if no receipt of the product can lie in the file.
    pub(super) fn may_hold(&self, key: &ProductKey) -> bool {
        self.feeds.iter().any(|stretch| {
            stretch.feed == key.feed
                && stretch.is_of(key.epoch)
                && (stretch.first..=stretch.last).contains(&key.sequence)
        })
    }

    pub(super) fn write(&self, file: &Path) -> io::Result<()> {
        fs::write(beside(file), serde_json::to_vec(self)?)
    }
}

impl Stretch {
    fn is_of(&self, epoch: Epoch) -> bool {
        self.epoch.parse() == Ok(epoch.0)
    }
}

/// The files, oldest first; the one being written is the last.
pub(super) fn list(directory: &Path) -> io::Result<Vec<Kept>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let is_ours = path.extension().is_some_and(|suffix| suffix == COMPLETE || suffix == UNFINISHED);
        // A file that is removed during the listing is no error.
        if let (true, Ok(metadata)) = (is_ours, fs::metadata(&path)) {
            let ended = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            files.push(Kept { path, bytes: metadata.len(), ended });
        }
    }
    files.sort_by(|one, other| one.path.file_stem().cmp(&other.path.file_stem()));
    Ok(files)
}

/// Completes files that a crash left unfinished: each stays readable up to the tear.
pub(super) fn adopt(directory: &Path) -> io::Result<()> {
    for file in list(directory)? {
        if file.path.extension().is_some_and(|suffix| suffix == UNFINISHED) {
            fs::rename(&file.path, file.path.with_extension(COMPLETE))?;
        }
    }
    Ok(())
}

/// Removes the oldest complete files until the rest is young and small enough.
pub(super) fn retain(directory: &Path, limits: Limits, now: SystemTime) -> io::Result<()> {
    let hours = Duration::from_secs_f64((limits.hours * 3_600.0).clamp(0.0, 1e9));
    let files = list(directory)?;
    let mut total: u64 = files.iter().map(|file| file.bytes).sum();
    for file in files.iter().filter(|file| file.path.extension().is_some_and(|suffix| suffix == COMPLETE)) {
        let is_old = now.duration_since(file.ended).is_ok_and(|age| age > hours);
        if !is_old && total <= limits.bytes {
            break;
        }
        fs::remove_file(&file.path)?;
        let _ = fs::remove_file(beside(&file.path));
        total = total.saturating_sub(file.bytes);
    }
    Ok(())
}

fn beside(file: &Path) -> PathBuf {
    file.with_extension("json")
}

/// The registered name ending of the Arrow IPC stream format.
pub(super) const COMPLETE: &str = "arrows";
pub(super) const UNFINISHED: &str = "part";
