//! Durable files, and those that a power cut may have torn.
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use downburst_log::{FeedLog, ProductLog as _, disk};
use downburst_model::{FeedName, WallMicros};
use downburst_site::{product_of_file, set_aside_name, unproven_since};

use crate::file_names;

/// The pending confirmation by the disk of the files shown so far.
pub(super) struct Proof(JoinHandle<bool>);

/// Has another thread wait until the disk holds everything written so far: the files, and the log from which
/// they were copied.
pub(super) fn prove(directory: &Path) -> Option<Proof> {
    let received = directory.join("received");
    let work = move || match disk::sync_file_system(&received) {
        Ok(()) => true,
        Err(error) => {
            tracing::warn!(path = %received.display(), %error, "the disk does not confirm the files shown so far");
            false
        }
    };
    let thread = std::thread::Builder::new().name("proof".to_owned()).spawn(work);
    thread.ok().map(Proof)
}

impl Proof {
    /// True if the disk has answered.
    pub(super) fn is_over(&self) -> bool {
        self.0.is_finished()
    }

    /// Waits for the disk; true if everything is durable.
    pub(super) fn wait(self) -> bool {
        self.0.join().is_ok_and(|kept| kept)
    }
}

/// Removes files that were shown shortly before a power cut and that the site's log does not contain: nothing
/// proves that they are complete. The hub sends them again. They are moved to `spool/unproven`.
pub(super) fn set_unproven_aside(
    directory: &Path,
    feed: &FeedName,
    log: &FeedLog,
    since: WallMicros,
) -> io::Result<()> {
    let name = file_names::encode(feed.as_str());
    let home = directory.join("received").join(&name);
    let since = Duration::from_micros(unproven_since(since).0.unsigned_abs());
    let mut unknown = Vec::new();
    collect(&home, SystemTime::UNIX_EPOCH + since, &mut unknown);
    for path in unknown {
        let first = path.strip_prefix(&home).unwrap_or(&path).components().next();
        let first = first.and_then(|first| first.as_os_str().to_str());
        let Some(key) = first.and_then(|first| product_of_file(feed, first)) else { continue };
        if log.find_source(&key).map_err(io::Error::other)?.is_some() {
            continue;
        }
        let aside = directory.join("spool").join("unproven");
        disk::make_directory(&aside)?;
        disk::rename(&path, &aside.join(set_aside_name(&name, &key)))?;
        tracing::warn!(
            path = %path.display(),
            "a file that the site's log lost in the power cut was moved to spool/unproven; the hub brings the \
             product again"
        );
    }
    Ok(())
}

fn changed(metadata: &fs::Metadata) -> SystemTime {
    let micros = metadata.ctime().saturating_mul(1_000_000).saturating_add(metadata.ctime_nsec() / 1_000);
    SystemTime::UNIX_EPOCH + Duration::from_micros(micros.unsigned_abs())
}

fn collect(directory: &Path, since: SystemTime, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => collect(&entry.path(), since, found),
            // A second name of a body is younger than the bytes: the change of the file counts.
            Ok(metadata) if changed(&metadata) >= since => found.push(entry.path()),
            _ => {}
        }
    }
}
