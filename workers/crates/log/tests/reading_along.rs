//! Reading a log from another process's point of view: beside its writer, after its end, and with damage in it.
// Helpers of tests may fail as loudly as tests.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{Seek, SeekFrom, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    time::Duration,
};

use common::{files, open, small, store, store_at};
use downburst_log::{
    Copied, FeedLog, Finding, Flaw, LogError, LogOptions, LogReader, ProductLog, Retention, StoredEntry,
    Verified,
};
use downburst_model::{Sequence, WallMicros};
use proptest::prelude::*;

fn content(n: usize) -> Vec<u8> {
    format!("{n} ").repeat(1 + n * 37 % 500).into_bytes()
}

fn fill(log: &FeedLog, products: usize) -> Vec<Sequence> {
    (0..products).map(|n| store_at(log, &format!("product {n}"), &content(n), n as i64)).collect()
}

fn read(entry: &StoredEntry) -> (Vec<u8>, Copied) {
    let mut bytes = Vec::new();
    let copied = entry
        .copy_to(&mut |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        })
        .unwrap();
    (bytes, copied)
}

fn ids(reader: &LogReader, after: Sequence) -> Vec<String> {
    reader.entries(after).map(|entry| entry.unwrap().info.id.to_string()).collect()
}

fn verify(dir: &Path) -> (Verified, Vec<Flaw>) {
    let mut flaws = Vec::new();
    let verified = LogReader::open(dir)
        .unwrap()
        .verify(&mut |finding| {
            if let Finding::Flaw(flaw) = finding {
                flaws.push(flaw);
            }
        })
        .unwrap();
    assert_eq!(verified.flaws, flaws.len() as u64);
    (verified, flaws)
}

fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let paths = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    paths.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

fn flip(path: &Path, offset: u64) {
    let byte = fs::read(path).unwrap()[offset as usize];
    let mut file = File::options().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(offset)).unwrap();
    file.write_all(&[byte ^ 0x10]).unwrap();
}

#[test]
fn a_reader_sees_what_the_writer_sees_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path(), small()).0;
    fill(&log, 40);
    log.retain(WallMicros(0)).unwrap();
    fs::write(dir.path().join("identity.aside"), b"being written").unwrap();
    let before = contents(dir.path());
    assert!(!files(dir.path(), "index").is_empty(), "nothing is sealed");
    let reader = LogReader::open(dir.path()).unwrap();
    assert_eq!((reader.feed(), reader.epoch()), (log.feed(), log.epoch()));
    let entries: Vec<StoredEntry> = reader.entries(Sequence(0)).map(Result::unwrap).collect();
    assert_eq!(entries.len(), 40);
    for (found, wanted) in entries.iter().zip(common::all(&log)) {
        assert_eq!(found.info, wanted.info);
        assert_eq!(read(found), (wanted.whole().unwrap().to_vec(), Copied::Intact));
    }
    let (summary, stat) = (reader.summary().unwrap(), log.stat());
    assert_eq!((summary.first, summary.head), (stat.first, stat.head));
    assert_eq!((summary.products, summary.segments), (stat.products, stat.segments));
    assert_eq!((summary.bytes, summary.memory_bytes), (stat.bytes, stat.memory_bytes));
    assert_eq!((summary.oldest_stored, summary.newest_stored), (stat.oldest_stored, stat.newest_stored));
    assert_eq!(verify(dir.path()), (Verified { products: 40, remembered: 0, flaws: 0 }, vec![]));
    assert_eq!(contents(dir.path()), before);
    store(&log, "one more", b"the writer goes on");
}

#[test]
fn a_record_whose_bytes_are_on_their_way_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path(), LogOptions { segment_bytes: 1 << 20, ..small() }).0;
    fill(&log, 20);
    let segment = files(dir.path(), "segment").pop().unwrap();
    let whole = fs::read(&segment).unwrap();
    let last = content(19);
    let at = whole.windows(last.len()).rposition(|window| window == last).unwrap();
    let begun = |reads: &dyn Fn()| {
        let file = File::options().write(true).open(&segment).unwrap();
        file.write_all_at(&vec![0; last.len()], at as u64).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                file.write_all_at(&last, at as u64).unwrap();
            });
            reads();
        });
    };
    begun(&|| assert_eq!(verify(dir.path()).0, Verified { products: 20, remembered: 0, flaws: 0 }));
    begun(&|| {
        let reader = LogReader::open(dir.path()).unwrap();
        let entry = reader.follow(Sequence(19)).next().unwrap().unwrap();
        assert_eq!(read(&entry), (last.clone(), Copied::Intact));
    });
    let file = File::options().write(true).open(&segment).unwrap();
    file.write_all_at(&vec![0; last.len()], at as u64).unwrap();
    assert_eq!(verify(dir.path()).0, Verified { products: 19, remembered: 0, flaws: 1 }, "it never comes");
}

#[test]
fn every_cursor_begins_at_the_right_product() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path(), small()).0;
    let sequences = fill(&log, 30);
    for closed in [false, true] {
        if closed {
            log.close().unwrap();
        }
        let reader = LogReader::open(dir.path()).unwrap();
        for (n, sequence) in sequences.iter().enumerate() {
            assert_eq!(ids(&reader, *sequence).len(), 29 - n);
            let entry = reader.entry(*sequence).unwrap().unwrap();
            assert_eq!(read(&entry).0, content(n));
            let last = reader.start_of_last(n).unwrap();
            assert_eq!(ids(&reader, last).len(), n, "after {last:?}");
        }
        assert_eq!(ids(&reader, reader.start_of_last(99).unwrap()).len(), 30);
        assert!(reader.entry(Sequence(0)).unwrap().is_none());
        assert!(reader.entry(Sequence(31)).unwrap().is_none());
    }
}

#[test]
fn a_follower_misses_nothing_while_segments_come_and_are_sealed() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path(), small()).0;
    store(&log, "before", b"");
    let reader = LogReader::open(dir.path()).unwrap();
    let mut following = reader.follow(Sequence(1));
    assert!(following.next().is_none());
    let products = 400;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..products {
                store(&log, &format!("product {n}"), &content(n));
                if n % 50 == 0 {
                    log.retain(WallMicros(0)).unwrap();
                }
            }
        });
        let mut seen = 0;
        while seen < products {
            for entry in following.by_ref() {
                let entry = entry.unwrap();
                assert_eq!(entry.info.id.as_str(), format!("product {seen}"));
                assert_eq!(read(&entry), (content(seen), Copied::Intact));
                seen += 1;
            }
        }
    });
    assert!(files(dir.path(), "segment").len() > 5);
}

#[test]
fn a_log_that_was_emptied_and_one_without_products_are_followed_too() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path(), small()).0;
    let reader = LogReader::open(dir.path()).unwrap();
    assert_eq!(reader.summary().unwrap().first, Sequence(1));
    let mut following = reader.follow(Sequence(0));
    assert!(following.next().is_none());
    store(&log, "first", b"x");
    assert_eq!(following.next().unwrap().unwrap().info.id.as_str(), "first");
}

#[test]
fn a_segment_that_goes_empty_and_is_made_again_is_followed() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path(), small()).0;
    store(&log, "one", b"x");
    log.close().unwrap();
    drop(log);
    let reader = LogReader::open(dir.path()).unwrap();
    let mut following = reader.follow(Sequence(1));
    let log = open(dir.path(), small()).0;
    common::append_at(&log, "one", b"x", 0);
    let empty = files(dir.path(), "segment");
    assert_eq!(empty.len(), 2, "the duplicate made no segment");
    assert!(following.next().is_none());
    log.close().unwrap();
    drop(log);
    assert!(following.next().is_none());
    let log = open(dir.path(), small()).0;
    store(&log, "two", b"y");
    assert_eq!(files(dir.path(), "segment"), empty, "another segment was made");
    assert_eq!(following.next().unwrap().unwrap().info.id.as_str(), "two");
    assert!(following.next().is_none());
}

#[test]
fn evicted_products_are_remembered_without_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let options = LogOptions { retention: Retention { hours: 1.0, bytes: 1 << 30 }, ..small() };
    let log = open(dir.path(), options).0;
    let sequences = fill(&log, 30);
    log.retain(WallMicros(10 * common::HOUR)).unwrap();
    log.retain(WallMicros(10 * common::HOUR)).unwrap();
    let reader = LogReader::open(dir.path()).unwrap();
    let summary = reader.summary().unwrap();
    assert_eq!((summary.products, summary.remembered), (0, 30));
    assert_eq!((summary.first, summary.head), (Sequence(31), Sequence(30)));
    let entry = reader.entry(sequences[3]).unwrap().unwrap();
    assert!(!entry.has_bytes());
    assert_eq!((entry.info.id.as_str(), read(&entry)), ("product 3", (vec![], Copied::Gone)));
    assert_eq!(verify(dir.path()).0, Verified { products: 0, remembered: 30, flaws: 0 });
}

#[test]
fn damage_in_an_unsealed_segment_is_told_with_its_place_and_stepped_over() {
    let dir = tempfile::tempdir().unwrap();
    let options = LogOptions { segment_bytes: 1 << 20, ..small() };
    let log = open(dir.path(), options).0;
    fill(&log, 5);
    drop(log);
    let path = files(dir.path(), "segment").remove(0);
    let second = fs::read(&path).unwrap();
    let mark = &second[40..48];
    let places: Vec<usize> =
        (40..second.len()).step_by(8).filter(|at| second[*at..].starts_with(mark)).collect();
    assert_eq!(places.len(), 5);
    flip(&path, places[1] as u64 + 9);
    let (verified, flaws) = verify(dir.path());
    assert_eq!((verified.products, flaws[0].offset, &flaws[0].path), (4, places[1] as u64, &path));
    let reader = LogReader::open(dir.path()).unwrap();
    assert_eq!(ids(&reader, Sequence(0)), ["product 0", "product 2", "product 3", "product 4"]);
    // In its mark, and after the mark.
    for distance in [2, 9] {
        flip(&path, places[4] as u64 + distance);
        let (verified, flaws) = verify(dir.path());
        assert_eq!((verified.products, flaws.len(), flaws[1].offset), (3, 2, places[4] as u64));
        assert!(flaws[1].sentence.contains("last record"), "{}", flaws[1].sentence);
        flip(&path, places[4] as u64 + distance);
    }
}

#[test]
fn an_unfinished_append_is_no_damage() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path(), small()).0;
    fill(&log, 3);
    let end = log.stat().bytes;
    drop(log);
    let path = files(dir.path(), "segment").remove(0);
    let mut file = File::options().write(true).open(&path).unwrap();
    file.seek(SeekFrom::Start(end + 400)).unwrap();
    file.write_all(b"bytes whose header was never written").unwrap();
    assert_eq!(verify(dir.path()), (Verified { products: 3, remembered: 0, flaws: 0 }, vec![]));
}

#[test]
fn a_damaged_index_is_told_and_read_around() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path(), small()).0;
    fill(&log, 10);
    log.close().unwrap();
    let index = files(dir.path(), "index").remove(0);
    flip(&index, 20);
    let (verified, flaws) = verify(dir.path());
    assert_eq!((verified.products, flaws.len(), &flaws[0].path), (10, 1, &index));
    assert_eq!(ids(&LogReader::open(dir.path()).unwrap(), Sequence(0)).len(), 10);
}

#[test]
fn a_log_without_identity_is_refused_with_advice() {
    let dir = tempfile::tempdir().unwrap();
    assert!(!LogReader::is_log(dir.path()));
    fill(&open(dir.path(), small()).0, 1);
    fs::write(dir.path().join("identity"), b"rubbish").unwrap();
    assert!(LogReader::is_log(dir.path()));
    let error = LogReader::open(dir.path()).unwrap_err();
    assert!(matches!(error, LogError::NoLog { .. }), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    /// Whatever byte rots, in a sealed segment or an open one: no wrong bytes are served as intact, at most one
    /// product is lost, and unless padding was hit the damage is reported.
    #[test]
    fn any_flipped_byte_costs_at_most_one_product(sealed: bool, place in 0.0..1.0_f64) {
        let dir = tempfile::tempdir().unwrap();
        let log = open(dir.path(), LogOptions { segment_bytes: 1 << 20, ..small() }).0;
        fill(&log, 8);
        let end = log.stat().bytes;
        if sealed { log.close().unwrap() } else { drop(log) }
        let path = files(dir.path(), "segment").remove(0);
        let offset = 40 + ((end - 40) as f64 * place) as u64;
        flip(&path, offset);
        let (verified, flaws) = verify(dir.path());
        let mut intact = 0;
        for entry in LogReader::open(dir.path()).unwrap().entries(Sequence(0)) {
            let entry = entry.unwrap();
            let n: usize = entry.info.id.as_str().strip_prefix("product ").unwrap().parse().unwrap();
            let (bytes, copied) = read(&entry);
            if copied == Copied::Intact {
                prop_assert_eq!(bytes, content(n));
                intact += 1;
            }
        }
        prop_assert!(verified.products >= 7, "{flaws:?}");
        prop_assert_eq!(verified.products == 8, flaws.is_empty(), "{:?}", flaws);
        // A sealed segment's descriptions are in the index as well.
        prop_assert!(intact >= verified.products);
    }
}
