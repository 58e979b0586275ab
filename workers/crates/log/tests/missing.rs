//! Bytes that vanished without eviction: a log reports them when it is opened, and accepts the products again.
// Helpers of tests may fail as loudly as tests.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::{fs, path::Path};

use common::{files, ids, open, overwrite, small, store, store_at};
use downburst_log::{LogOptions, ProductLog as _, Retention};
use downburst_model::{Sequence, WallMicros};

const HOUR: i64 = common::HOUR;

/// A log that was closed, with some products in each of several segments.
fn closed(dir: &Path) {
    let (log, _) = open(dir, small());
    for n in 0..40 {
        store(&log, &n.to_string(), &[n; 700]);
    }
    log.close().unwrap();
}

#[test]
fn a_segment_that_was_removed_is_lost_and_its_products_may_come_again() {
    let dir = tempfile::tempdir().unwrap();
    closed(dir.path());
    let segments = files(dir.path(), "segment");
    assert!(segments.len() > 2);
    fs::remove_file(&segments[1]).unwrap();
    let (log, recovery) = open(dir.path(), small());
    let [lost] = recovery.lost.as_slice() else { panic!("{recovery:?}") };
    assert_eq!(lost.segment, segments[1]);
    let (first, last) = lost.sequences;
    assert_eq!((lost.products, ids(&log).len() as u64), (last.0 - first.0 + 1, 40 - lost.products));
    let (id, byte) = ((first.0 - 1).to_string(), (first.0 - 1) as u8);
    assert_eq!(store(&log, &id, &[byte; 700]), Sequence(41), "it is no duplicate of what is lost");
    log.close().unwrap();
    drop(log);
    assert_eq!(open(dir.path(), small()).1.lost, [], "it is said once");
}

#[test]
fn a_sealed_segment_that_lost_its_end_is_not_said_to_be_whole() {
    for keep in [0, 20, 3_000] {
        let dir = tempfile::tempdir().unwrap();
        closed(dir.path());
        let segments = files(dir.path(), "segment");
        overwrite(&segments[0], |contents| contents.truncate(keep));
        let (log, recovery) = open(dir.path(), small());
        let lost: u64 = recovery.lost.iter().map(|lost| lost.products).sum();
        assert_eq!(lost, 40 - ids(&log).len() as u64, "{keep} bytes are left: {recovery:?}");
        assert!(lost > 0 && recovery.cut_bytes == 0, "{recovery:?}");
    }
}

#[test]
fn what_was_evicted_is_not_lost() {
    for close in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let options = LogOptions { retention: Retention { hours: 1.0, bytes: 1 << 30 }, ..small() };
        let (log, _) = open(dir.path(), options.clone());
        for n in 0..40 {
            store_at(&log, &n.to_string(), &[n; 700], i64::from(n) * HOUR / 40);
        }
        let retained = log.retain(WallMicros(HOUR * 3 / 2)).unwrap();
        assert!(retained.products > 0);
        if close {
            log.close().unwrap();
        }
        drop(log);
        let (log, recovery) = open(dir.path(), options.clone());
        assert_eq!(recovery.lost, [], "closed: {close}");
        assert!(log.retain(WallMicros(HOUR * 9)).unwrap().products > 0);
        drop(log);
        assert_eq!(open(dir.path(), options).1.lost, []);
    }
}
