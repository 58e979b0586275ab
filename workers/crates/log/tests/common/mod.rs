//! Shared parts of the log's tests.
#![allow(dead_code)]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use downburst_log::{
    Appended, FeedLog, LogEntry, LogError, LogOptions, ProductLog, Recovery, Retention, contract,
};
use downburst_model::{FeedName, Sequence, WallMicros};

pub(crate) const HOUR: i64 = 3_600_000_000;

pub(crate) fn small() -> LogOptions {
    LogOptions {
        retention: Retention { hours: 1_000.0, bytes: 1 << 30 },
        segment_bytes: 8_192,
        sequence_block: 100,
        memory_hours: 10_000.0,
        ..LogOptions::default()
    }
}

pub(crate) fn try_open(dir: &Path, options: LogOptions) -> Result<(FeedLog, Recovery), LogError> {
    FeedLog::open(dir, FeedName::parse("TEST").unwrap(), options, 0xE10C)
}

pub(crate) fn open(dir: &Path, options: LogOptions) -> (FeedLog, Recovery) {
    try_open(dir, options).unwrap()
}

pub(crate) fn append_at(log: &FeedLog, id: &str, bytes: &[u8], now: i64) -> Appended {
    log.append(contract::product(id).unwrap(), &mut &*bytes, &|| WallMicros(now)).unwrap()
}

pub(crate) fn store_at(log: &FeedLog, id: &str, bytes: &[u8], now: i64) -> Sequence {
    match append_at(log, id, bytes, now) {
        Appended::Stored { sequence, .. } => sequence,
        Appended::Duplicate { of } => panic!("{id} is a duplicate of {of:?}"),
    }
}

pub(crate) fn store(log: &FeedLog, id: &str, bytes: &[u8]) -> Sequence {
    store_at(log, id, bytes, 0)
}

pub(crate) fn all(log: &FeedLog) -> Vec<LogEntry> {
    log.read(Sequence(0), Sequence(u64::MAX), usize::MAX, usize::MAX).unwrap().entries
}

pub(crate) fn ids(log: &FeedLog) -> Vec<String> {
    all(log).iter().map(|entry| entry.info.id.to_string()).collect()
}

pub(crate) fn files(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|it| it == extension)).collect();
    found.sort();
    found
}

pub(crate) fn copy(from: &Path) -> tempfile::TempDir {
    let to = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, to.path().join(path.file_name().unwrap())).unwrap();
    }
    to
}

pub(crate) fn overwrite(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut contents = fs::read(path).unwrap();
    change(&mut contents);
    fs::write(path, contents).unwrap();
}

/// Runs a test of this binary again, with a file system of 6 MB of its own whose path is in the environment.
pub(crate) fn on_a_small_disk(variable: &str, test: &str, expected: &str) {
    let dir = tempfile::tempdir().unwrap();
    let script = format!(
        "mount -t tmpfs -o size=6m downburst-test {0} && exec {1} --exact {test} --nocapture",
        dir.path().display(),
        std::env::current_exe().unwrap().display()
    );
    let unshare = |command: &str| {
        Command::new("unshare").args(["-rm", "sh", "-c", command]).env(variable, dir.path()).output()
    };
    let possible = unshare(&format!("mount -t tmpfs none {}", dir.path().display()));
    if !possible.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: no small file system can be mounted here, so a full disk is not tested");
        return;
    }
    let output = unshare(&script).unwrap();
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains(expected), "{said}");
}
