//! Disks that are full, read-only or losing what was written: the log says so, serves what it has, and goes on later.
// Helpers of tests may fail as loudly as tests.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::{
    fs::File,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use common::{all, files, on_a_small_disk, open, small, store};
use downburst_log::{FeedLog, LogEntry, LogOptions, ProductLog, contract};
use nix::fcntl::{FallocateFlags, fallocate};

#[test]
fn mapped_bytes_that_the_disk_lost_do_not_end_the_process() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), LogOptions { segment_bytes: 1 << 20, ..small() });
    let sequences: Vec<_> = (0..20).map(|n| store(&log, &format!("{n}"), &[n; 10_000])).collect();
    assert!(all(&log).iter().all(|entry| entry.bytes.is_some()), "mapped by now");
    let segment = File::options().write(true).open(&files(dir.path(), "segment")[0]).unwrap();
    // Pages behind the end of a file are what pages of a bad sector are: touching one ends the process.
    segment.set_len(24 * 4_096).unwrap();
    let left = all(&log);
    assert!((8..=10).contains(&left.len()), "{} of 20 are left", left.len());
    for entry in &left {
        assert_eq!(contract::digest(entry.bytes.as_ref().unwrap()), entry.info.digest);
    }
    assert!(log.entry(sequences[3]).unwrap().unwrap().bytes.is_some());
    assert!(log.entry(sequences[19]).unwrap().is_none_or(|entry| entry.bytes.is_none()));
}

const HOLES: &str = "DOWNBURST_TEST_HOLES";

/// Runs inside a small file system of its own; does nothing in an ordinary run.
#[test]
fn child_reads_holes_of_a_full_disk() {
    let Ok(disk) = std::env::var(HOLES) else { return };
    let dir = Path::new(&disk).join("log");
    let options = LogOptions { segment_bytes: 2 << 20, ..small() };
    let (log, _) = open(&dir, options.clone());
    for n in 0..10 {
        store(&log, &format!("{n}"), &[0; 100_000]);
    }
    let segment = File::options().write(true).open(&files(&dir, "segment")[0]).unwrap();
    let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
    // Inside the bytes of the fifth product, which are zeros, as those of a sparsely copied file are.
    fallocate(&segment, flags, 430_000, 50_000).unwrap();
    fill(Path::new(&disk));
    assert_eq!(intact(&log), 10);
    drop(log);
    let (log, recovery) = open(&dir, options);
    assert_eq!((recovery.damaged.len(), recovery.segments_scanned), (0, 1), "{recovery:?}");
    assert_eq!(intact(&log), 10);
    println!("holes were read");
}

#[test]
fn holes_of_a_full_disk_in_memory_are_read_without_being_touched() {
    on_a_small_disk(HOLES, "child_reads_holes_of_a_full_disk", "holes were read");
}

/// How many products are there with the bytes that were stored.
fn intact(log: &FeedLog) -> usize {
    let is_intact = |entry: &LogEntry| {
        entry.bytes.as_deref().is_some_and(|bytes| contract::digest(bytes) == entry.info.digest)
    };
    all(log).iter().filter(|entry| is_intact(entry)).count()
}

/// Leaves no byte of the disk free; returns what takes its place.
fn fill(disk: &Path) -> PathBuf {
    let path = disk.join("filler");
    let file = File::create(&path).unwrap();
    let mut at = 0;
    while let Ok(written @ 1..) = file.write_at(&[7; 4_096], at) {
        at += written as u64;
    }
    path
}
