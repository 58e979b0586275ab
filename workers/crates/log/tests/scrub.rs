//! Scrubs of an open log: damage is found, reported, and no longer served.
// Helpers of tests may fail as loudly as tests.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::{collections::BTreeSet, fs, path::Path, sync::Arc};

use common::{all, files, open, overwrite, small, store};
use downburst_log::{FeedLog, Flaw, ProductLog};
use downburst_model::WallMicros;

const PRODUCTS: u8 = 80;

/// A closed log of sealed segments, with one bit flipped in each of these products.
fn damaged(dir: &Path, wanted: impl Iterator<Item = u8>) -> BTreeSet<u64> {
    let (log, _) = open(dir, small());
    let sequences: Vec<u64> = (0..PRODUCTS).map(|n| store(&log, &format!("{n}"), &[n; 700]).0).collect();
    log.close().unwrap();
    let flip = |n: u8| {
        for path in files(dir, "segment") {
            let has = |contents: &[u8]| contents.windows(700).position(|bytes| bytes == [n; 700]);
            if has(&fs::read(&path).unwrap()).is_some() {
                overwrite(&path, |contents| {
                    let at = has(contents).unwrap();
                    contents[at + 99] ^= 4;
                });
            }
        }
        sequences[usize::from(n)]
    };
    wanted.map(flip).collect()
}

fn scrub(log: &Arc<FeedLog>) -> (Vec<Flaw>, u64) {
    let (mut flaws, mut read) = (Vec::new(), 0);
    let log = Arc::downgrade(log);
    let verified =
        FeedLog::scrub(&log, &mut |bytes| read += bytes, &mut |flaw| flaws.push(flaw), &mut |_| ()).unwrap();
    assert_eq!(verified.flaws, flaws.len() as u64);
    (flaws, read)
}

#[test]
fn finding_19_a_log_without_its_sequence_file_says_so_and_is_read_through() {
    let dir = tempfile::tempdir().unwrap();
    let bad = damaged(dir.path(), 10..66);
    assert_eq!(bad.len(), 56);
    fs::remove_file(dir.path().join("sequence")).unwrap();
    let (log, recovery) = open(dir.path(), small());
    let log = Arc::new(log);
    assert!(recovery.sequence_lost && !recovery.clean && log.is_suspect(), "{recovery:?}");
    let (flaws, _) = scrub(&log);
    let found: BTreeSet<u64> = flaws.iter().filter_map(|flaw| Some(flaw.sequence?.0)).collect();
    assert_eq!(found, bad);
    for entry in all(&log) {
        assert_eq!(entry.bytes.is_none(), bad.contains(&entry.info.key.sequence.0), "{}", entry.info.id);
    }
    assert!(store(&log, "20", &[20; 700]).0 > 1_000_000_000, "its source may bring it again");
}

#[test]
fn a_log_that_is_whole_is_read_as_a_whole_and_nothing_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    damaged(dir.path(), 0..0);
    let (log, recovery) = open(dir.path(), small());
    let log = Arc::new(log);
    assert!(recovery.clean && !log.is_suspect());
    store(&log, "newest", &[200; 700]);
    let (flaws, read) = scrub(&log);
    assert_eq!((flaws, read), (Vec::new(), 700 * (u64::from(PRODUCTS) + 1)));
}

#[test]
fn small_files_are_written_anew_from_the_open_log() {
    let dir = tempfile::tempdir().unwrap();
    let log = Arc::new(open(dir.path(), small()).0);
    store(&log, "a", b"a");
    for name in ["identity", "sequence"] {
        let good = fs::read(dir.path().join(name)).unwrap();
        overwrite(&dir.path().join(name), |contents| contents[17] ^= 1);
        let (flaws, _) = scrub(&log);
        assert_eq!(flaws.len(), 1);
        assert_eq!(flaws[0].path, dir.path().join(name));
        assert_eq!(fs::read(dir.path().join(name)).unwrap(), good);
    }
    log.retain(WallMicros(0)).unwrap();
    assert_eq!(scrub(&log).0, Vec::new());
}
