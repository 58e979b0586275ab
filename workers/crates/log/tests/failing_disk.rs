//! Disks that are full, read-only or losing data: the log reports it, serves what it has, and resumes later.
// Helpers of tests may fail as loudly as tests.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    process::Command,
};

use common::{all, files, on_a_small_disk, open, overwrite, small, store, try_open};
use downburst_log::{
    Copied, FeedLog, LogEntry, LogError, LogOptions, LogReader, ProductLog, Retention, contract,
};
use downburst_model::{Sequence, WallMicros};
use nix::fcntl::{FallocateFlags, fallocate};

#[test]
fn mapped_bytes_that_the_disk_lost_do_not_end_the_process() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), LogOptions { segment_bytes: 1 << 20, ..small() });
    let sequences: Vec<_> = (0..20).map(|n| store(&log, &format!("{n}"), &[n; 10_000])).collect();
    assert!(all(&log).iter().all(|entry| entry.bytes.is_some()), "mapped by now");
    let segment = File::options().write(true).open(&files(dir.path(), "segment")[0]).unwrap();
    // Pages beyond the end of a file behave like pages of a bad sector: touching one ends the process.
    segment.set_len(24 * 4_096).unwrap();
    let left = all(&log).iter().filter(|entry| entry.bytes.is_some()).count();
    assert!((8..=10).contains(&left) && intact(&log) == left, "{left} of 20 are left");
    assert!(log.entry(sequences[3]).unwrap().unwrap().bytes.is_some());
    assert!(log.entry(sequences[19]).unwrap().is_none_or(|entry| entry.bytes.is_none()));
}

#[test]
fn a_product_that_was_damaged_since_is_found_once_and_handed_out_no_more() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), small());
    let sequences: Vec<_> = (0..30).map(|n| store(&log, &format!("{n}"), &[n; 700])).collect();
    log.retain(WallMicros(0)).unwrap();
    let segments = files(dir.path(), "segment");
    // One product in a sealed segment and one in the segment that is being written.
    for (n, path) in [(1, &segments[0]), (29, segments.last().unwrap())] {
        overwrite(path, |contents| {
            let at = contents.windows(700).position(|bytes| bytes == [n; 700]).unwrap();
            contents[at + 300] ^= 1;
        });
        let sequence = sequences[usize::from(n)];
        let Copied::Damaged(damage) = log.examine(sequence).unwrap() else { panic!("{n} is damaged") };
        assert_eq!((&damage.segment, damage.bytes), (path, 700));
        assert_eq!(log.examine(sequence).unwrap(), Copied::Gone);
        let entry = log.entry(sequence).unwrap().unwrap();
        assert_eq!((entry.info.id.to_string(), entry.bytes), (n.to_string(), None));
        assert!(store(&log, &format!("{n}"), &[n; 700]) > sequence, "its source may bring it again");
    }
    assert_eq!((intact(&log), all(&log).len()), (30, 32));
    assert_eq!(log.examine(sequences[2]).unwrap(), Copied::Intact);
    assert_eq!(log.examine(Sequence(9_999)).unwrap(), Copied::Gone);
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

const FULL: &str = "DOWNBURST_TEST_FULL";

/// Runs inside a small file system of its own; does nothing in an ordinary run.
#[test]
fn child_meets_a_full_disk() {
    let Ok(disk) = std::env::var(FULL) else { return };
    let dir = Path::new(&disk).join("log");
    let (log, _) = open(&dir, small());
    for n in 0..30 {
        store(&log, &format!("{n}"), &[n; 700]);
    }
    let indexes = files(&dir, "index").len();
    let filler = fill(Path::new(&disk));
    let stored = 30 + append_until_refused(&log, |error| matches!(error, LogError::DiskFull { .. }));
    let error = log.retain(WallMicros(0)).unwrap_err().to_string();
    assert!(error.contains("is full; free space"), "{error}");
    assert_eq!((files(&dir, "index").len(), intact(&log)), (indexes, stored), "nothing could be sealed");
    drop(log);

    let (log, recovery) = open(&dir, small());
    assert_eq!((recovery.damaged.len(), intact(&log)), (0, stored));
    append_until_refused(&log, |error| matches!(error, LogError::DiskFull { .. }));
    fs::remove_file(filler).unwrap();
    check_that_it_goes_on(log, &dir, stored);
    println!("the full disk was met");
}

#[test]
fn a_disk_may_be_full_at_opening_appending_and_sealing() {
    on_a_small_disk(FULL, "child_meets_a_full_disk", "the full disk was met");
}

const READ_ONLY: &str = "DOWNBURST_TEST_READ_ONLY";

/// Runs inside a small file system of its own; does nothing in an ordinary run.
#[test]
fn child_meets_a_read_only_disk() {
    let Ok(disk) = std::env::var(READ_ONLY) else { return };
    let dir = Path::new(&disk).join("log");
    let (log, _) = open(&dir, small());
    for n in 0..30 {
        store(&log, &format!("{n}"), &[n; 700]);
    }
    // Over the directory, because a file system with files that are being written can't be turned read-only by hand.
    mount(&["--bind", "-o", "ro", &dir.to_string_lossy(), &dir.to_string_lossy()]);
    let stored = 30 + append_until_refused(&log, |error| matches!(error, LogError::ReadOnly { .. }));
    log.set_options(LogOptions { retention: Retention { hours: 1_000.0, bytes: 1 }, ..small() });
    let error = log.retain(WallMicros(0)).unwrap_err().to_string();
    assert!(error.contains("is read-only; look for its failures"), "{error}");
    assert_eq!(intact(&log), stored);
    assert_eq!(LogReader::open(&dir).unwrap().entries(Sequence(0)).count(), stored, "tools can read it");
    let error = try_open(&dir, small()).err().unwrap().to_string();
    assert!(error.contains("is read-only"), "{error}");

    // Lazily, because mapped segments hold it.
    assert!(Command::new("umount").arg("-l").arg(&dir).status().unwrap().success());
    log.set_options(small());
    check_that_it_goes_on(log, &dir, stored);
    println!("the read-only disk was met");
}

#[test]
fn a_disk_may_be_read_only_at_opening_appending_sealing_and_retaining() {
    on_a_small_disk(READ_ONLY, "child_meets_a_read_only_disk", "the read-only disk was met");
}

/// Appends until the disk takes no more, then a few times again; returns the number of products stored.
fn append_until_refused(log: &FeedLog, is_expected: impl Fn(&LogError) -> bool) -> usize {
    let head = log.head();
    let (mut stored, mut refused) = (0, 0);
    while refused < 5 {
        let id = format!("{head:?} {}", stored + refused);
        match log.append(contract::product(&id).unwrap(), &mut &[9; 600][..], &|| WallMicros(0)) {
            Ok(_) => stored += 1,
            Err(error) => {
                assert!(is_expected(&error), "{error}");
                refused += 1;
            }
        }
        assert!(stored < 10_000, "the disk refuses nothing");
    }
    stored
}

/// Checks that once the disk is back, stored products are there, and appending and sealing need no help.
fn check_that_it_goes_on(log: FeedLog, dir: &Path, stored: usize) {
    let head = log.head();
    assert!(store(&log, "after", b"x") > head);
    log.retain(WallMicros(0)).unwrap();
    assert_eq!(intact(&log), stored + 1);
    drop(log);
    let (log, recovery) = open(dir, small());
    assert_eq!((recovery.damaged.len(), recovery.quarantined.len(), intact(&log)), (0, 0, stored + 1));
    log.close().unwrap();
    assert_eq!(files(dir, "index").len(), files(dir, "segment").len(), "all are sealed");
}

fn mount(arguments: &[&str]) {
    assert!(Command::new("mount").args(arguments).status().unwrap().success());
}

/// The number of products with intact bytes.
fn intact(log: &FeedLog) -> usize {
    let is_intact = |entry: &LogEntry| {
        entry.whole().as_deref().is_some_and(|bytes| contract::digest(bytes) == entry.info.digest)
    };
    all(log).iter().filter(|entry| is_intact(entry)).count()
}

/// Fills the disk completely; returns the file that takes the space.
fn fill(disk: &Path) -> PathBuf {
    let path = disk.join("filler");
    let file = File::create(&path).unwrap();
    let mut at = 0;
    while let Ok(written @ 1..) = file.write_at(&[7; 4_096], at) {
        at += written as u64;
    }
    path
}
