//! Files that are on the disk for good, and those that a power cut may have torn.
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use downburst_log::{FeedLog, ProductLog as _, disk};
use downburst_model::{Epoch, FeedName, ProductKey, Sequence, WallMicros};

use crate::file_names;

/// The disk is keeping what was shown up to these places of the log.
pub(super) struct Proof {
    thread: JoinHandle<bool>,
    shown: BTreeMap<FeedName, Sequence>,
    at: WallMicros,
}

/// Has another thread wait for the disk to keep everything that was written so far: files and the log that
/// they come from.
pub(super) fn prove(directory: &Path, shown: BTreeMap<FeedName, Sequence>, at: WallMicros) -> Option<Proof> {
    let received = directory.join("received");
    let work = move || match disk::sync_file_system(&received) {
        Ok(()) => true,
        Err(error) => {
            tracing::warn!(path = %received.display(), %error, "the disk does not confirm the files shown so far");
            false
        }
    };
    let thread = std::thread::Builder::new().name("proof".to_owned()).spawn(work);
    thread.ok().map(|thread| Proof { thread, shown, at })
}

impl Proof {
    /// True if the disk has answered.
    pub(super) fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for the disk; what it keeps now, and since when.
    pub(super) fn proven(self) -> Option<(BTreeMap<FeedName, Sequence>, WallMicros)> {
        let (shown, at) = (self.shown, self.at);
        self.thread.join().is_ok_and(|kept| kept).then_some((shown, at))
    }
}

/// Removes files that were shown shortly before a power cut and that the site's log does not know: nothing
/// proves that they are whole. The hub brings them again. They go to `spool/unproven`.
pub(super) fn set_unproven_aside(
    directory: &Path,
    feed: &FeedName,
    log: &FeedLog,
    since: WallMicros,
) -> io::Result<()> {
    let home = directory.join("received").join(file_names::encode(feed.as_str()));
    let since = u64::try_from(since.0.saturating_sub(SLACK_US)).unwrap_or_default();
    let since = SystemTime::UNIX_EPOCH + Duration::from_micros(since);
    let mut unknown = Vec::new();
    collect(&home, since, &mut unknown);
    for path in unknown {
        let Some(key) = key_of(feed, path.strip_prefix(&home).unwrap_or(&path)) else { continue };
        if log.find_source(&key).map_err(io::Error::other)?.is_some() {
            continue;
        }
        let aside = directory.join("spool").join("unproven");
        disk::make_directory(&aside)?;
        let name =
            format!("{}-{:016x}-{:010}", file_names::encode(feed.as_str()), key.epoch.0, key.sequence.0);
        disk::rename(&path, &aside.join(name))?;
        tracing::warn!(
            path = %path.display(),
            "a file that the site's log lost in the power cut was moved to spool/unproven; the hub brings the \
             product again"
        );
    }
    Ok(())
}

fn collect(directory: &Path, since: SystemTime, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => collect(&entry.path(), since, found),
            Ok(metadata) if metadata.modified().is_ok_and(|at| at >= since) => found.push(entry.path()),
            _ => {}
        }
    }
}

/// The product that a file below `received/FEED` is of, by its name.
fn key_of(feed: &FeedName, path: &Path) -> Option<ProductKey> {
    let first = path.components().next()?.as_os_str().to_str()?;
    let (epoch, rest) = first.split_once('-')?;
    let (sequence, _) = rest.split_once('_')?;
    let epoch = Epoch(u64::from_str_radix(epoch, 16).ok()?);
    Some(ProductKey { feed: feed.clone(), epoch, sequence: Sequence(sequence.parse().ok()?) })
}

/// Clocks of file systems tick coarsely, and a clock may have been set.
const SLACK_US: i64 = 60_000_000;
