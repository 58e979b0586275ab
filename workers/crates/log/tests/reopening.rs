//! The knowledge of a log after it was closed, dropped or damaged.
// Helpers of tests may fail as loudly as tests.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::{fs, path::Path};

use common::{all, append_at, copy, files, ids, open, overwrite, small, store, store_at, try_open};
use downburst_log::{
    Appended, DuplicateRule, FeedLog, LogError, LogOptions, NewProduct, ProductLog, SourceStamp, contract,
};
use downburst_model::{Epoch, FeedName, ProductKey, Sequence, WallMicros};

#[test]
fn a_closed_log_goes_on_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let (log, recovery) = open(dir.path(), small());
    assert!(recovery.created);
    for n in 0..50 {
        store_at(&log, &format!("{n}"), &[n; 500], i64::from(n));
    }
    let before = all(&log);
    log.close().unwrap();
    drop(log);
    let (log, recovery) = open(dir.path(), small());
    assert!(recovery.clean && !recovery.created);
    assert_eq!(recovery.segments_scanned, 0, "opening after a clean stop reads indexes only");
    assert_eq!(all(&log), before);
    assert_eq!((log.epoch(), log.head()), (Epoch(0xE10C), Sequence(50)));
    assert_eq!(store(&log, "next", b"x"), Sequence(51));
}

#[test]
fn a_dropped_log_skips_the_reserved_block_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), small());
    for n in 0..30 {
        store(&log, &format!("{n}"), &[n; 700]);
    }
    let before = all(&log);
    drop(log);
    let (log, recovery) = open(dir.path(), small());
    assert!(!recovery.clean && recovery.segments_scanned > 1);
    assert_eq!((recovery.cut_bytes, recovery.damaged.len(), recovery.quarantined.len()), (0, 0, 0));
    assert_eq!(all(&log), before);
    assert_eq!(store(&log, "next", b"x"), Sequence(101));
    drop(log);
    assert_eq!(store(&open(dir.path(), small()).0, "after", b"x"), Sequence(201));
}

#[test]
fn a_closed_log_refuses_appends_and_still_reads() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), small());
    store(&log, "a", b"x");
    log.close().unwrap();
    log.close().unwrap();
    let refused = log.append(contract::product("b").unwrap(), &mut &b"x"[..], &|| WallMicros(0));
    assert!(matches!(refused, Err(LogError::Closed { .. })));
    assert_eq!(ids(&log), ["a"]);
}

#[test]
fn a_failed_first_append_leaves_an_empty_log() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), LogOptions { max_product_bytes: 3, ..small() });
    let refused = log.append(contract::product("b").unwrap(), &mut &b"long"[..], &|| WallMicros(0));
    assert!(refused.unwrap_err().to_string().contains("limit of 3 bytes"));
    log.close().unwrap();
    drop(log);
    assert!(files(dir.path(), "segment").is_empty());
    let (log, recovery) = open(dir.path(), small());
    assert!(recovery.clean && recovery.quarantined.is_empty());
    assert_eq!(store(&log, "a", b"x"), Sequence(1));
}

#[test]
fn duplicates_are_known_after_a_restart() {
    for close in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let (log, _) = open(dir.path(), small());
        let of = store(&log, "a", b"content");
        if close {
            log.close().unwrap();
        }
        drop(log);
        let (log, _) = open(dir.path(), small());
        assert_eq!(append_at(&log, "a", b"content", 0), Appended::Duplicate { of });
        store(&log, "b", b"content");
    }
}

/// Release 0.1.0 kept hashes of upstream keys in its indexes, and a 0 in the field that now holds their kind.
#[test]
fn upstream_keys_in_indexes_of_the_first_release_are_known() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), small());
    let key = |n| ProductKey { feed: FeedName::parse("UP").unwrap(), epoch: Epoch(9), sequence: Sequence(n) };
    let upstream = |n: u64| {
        let source = Some(SourceStamp::live(key(n), WallMicros(7), None));
        let product = NewProduct { source, ..contract::product("a").unwrap() };
        log_append(&log, product)
    };
    let given: Vec<Sequence> = (5..9).map(upstream).collect();
    log.close().unwrap();
    drop(log);
    overwrite(&files(dir.path(), "index")[0], |index| {
        index[48..52].fill(0);
        (0..4).for_each(|row| index[56 + 88 * row + 80..][..8].fill(0xAA + row as u8));
        let table = crc32fast::hash(&index[56..56 + 4 * 88]);
        index[12..16].copy_from_slice(&table.to_le_bytes());
        let header = crc32fast::hash(&index[..52]);
        index[52..56].copy_from_slice(&header.to_le_bytes());
    });
    let (log, recovery) = open(dir.path(), small());
    assert_eq!(recovery.segments_scanned, 0, "the index was taken as it is");
    for (n, sequence) in (5..9).zip(given) {
        assert_eq!(log.find_source(&key(n)).unwrap(), Some(sequence));
    }
    log.retain(WallMicros(i64::MAX)).unwrap();
    assert_eq!(log.find_source(&key(5)).unwrap(), None, "forgotten with the rest");
}

fn log_append(log: &FeedLog, product: NewProduct) -> Sequence {
    match log.append(product, &mut &b""[..], &|| WallMicros(0)).unwrap() {
        Appended::Stored { sequence, .. } => sequence,
        Appended::Duplicate { of } => panic!("a duplicate of {of:?}"),
    }
}

#[test]
fn the_rule_can_change_while_the_log_is_open() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), small());
    let first = store(&log, "a", b"\x01\r\r\n123\r\r\nSAUS KWBC");
    store(&log, "a", b"\x01\r\r\n124\r\r\nSAUS KWBC");
    let last = log.head();
    log.set_options(LogOptions { duplicate_rule: DuplicateRule::ContentWithoutWmoStart, ..small() });
    for content in [&b"\x01\r\r\n999\r\r\nSAUS KWBC"[..], b"SAUS KWBC"] {
        assert_eq!(append_at(&log, "b", content, 0), Appended::Duplicate { of: last });
    }
    store(&log, "b", b"\x01\r\r\n123\r\r\nSAUS EDZW");
    store(&log, "only a starting line", b"\x01\r\r\n123\r\r\n");
    store(&log, "only a starting line", b"\x01\r\r\n123\r\r\n");
    log.set_options(LogOptions { duplicate_rule: DuplicateRule::None, ..small() });
    assert!(store(&log, "a", b"SAUS KWBC") > first);
    log.set_options(LogOptions { duplicate_rule: DuplicateRule::Id, ..small() });
    assert!(matches!(append_at(&log, "a", b"", 0), Appended::Duplicate { .. }));
}

#[test]
fn a_missing_or_wrong_index_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), small());
    for n in 0..30 {
        store(&log, &format!("{n}"), &[n; 700]);
    }
    let before = all(&log);
    log.close().unwrap();
    drop(log);
    let indexes = files(dir.path(), "index");
    fs::remove_file(&indexes[0]).unwrap();
    overwrite(&indexes[1], |contents| contents[60] ^= 1);
    let (log, recovery) = open(dir.path(), small());
    assert_eq!((recovery.segments_scanned, recovery.clean), (2, true));
    assert_eq!(all(&log), before);
    drop(log);
    assert_eq!(open(dir.path(), small()).1.segments_scanned, 0);
}

#[test]
fn damage_in_the_middle_is_stepped_over_and_reported() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), LogOptions { segment_bytes: 1 << 20, ..small() });
    let ends: Vec<u64> = (0..9)
        .map(|n: u8| {
            store(&log, &format!("{n}"), &[n + 1; 700]);
            log.stat().bytes
        })
        .collect();
    drop(log);
    let segment = files(dir.path(), "segment").remove(0);
    overwrite(&segment, |contents| {
        contents[ends[2] as usize + 60] ^= 1;
        contents[ends[5] as usize - 1] ^= 1;
        contents[ends[6] as usize - 1] ^= 1;
    });
    let (log, recovery) = open(dir.path(), small());
    assert_eq!(ids(&log), ["0", "1", "2", "4", "7", "8"]);
    let places: Vec<u64> = recovery.damaged.iter().map(|damage| damage.offset / 8 * 8).collect();
    assert_eq!(places, [ends[2].next_multiple_of(8), ends[4].next_multiple_of(8)]);
    assert!(recovery.damaged.iter().all(|damage| damage.segment == segment && damage.bytes > 700));
    store(&log, "5", &[6; 700]);
    drop(log);
    assert_eq!(open(dir.path(), small()).1.damaged, [], "reported once");
}

#[test]
fn a_record_damaged_after_sealing_is_read_without_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), small());
    store(&log, "a", &[1; 300]);
    let end = log.stat().bytes as usize;
    store(&log, "b", &[2; 300]);
    log.close().unwrap();
    drop(log);
    overwrite(&files(dir.path(), "segment")[0], |contents| contents[end.next_multiple_of(8) + 50] ^= 1);
    let (log, _) = open(dir.path(), small());
    let entries = all(&log);
    assert_eq!((entries[0].bytes.is_some(), entries[1].bytes.is_some()), (true, false));
    assert_eq!((entries[1].info.id.as_str(), entries[1].info.size), ("b", 300));
}

#[test]
fn a_product_that_looks_like_a_record_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), small());
    store(&log, "inner", b"inner bytes");
    drop(log);
    let segment = fs::read(&files(dir.path(), "segment")[0]).unwrap();
    let other = tempfile::tempdir().unwrap();
    let (log, _) = open(other.path(), small());
    store(&log, "outer", &segment[..600]);
    let end = log.stat().bytes as usize;
    store(&log, "last", b"x");
    drop(log);
    overwrite(&files(other.path(), "segment")[0], |contents| contents[50] ^= 1);
    let (log, recovery) = open(other.path(), small());
    assert_eq!(ids(&log), ["last"]);
    assert_eq!(recovery.damaged[0].bytes + recovery.damaged[0].offset, end.next_multiple_of(8) as u64);
}

#[test]
fn an_unreadable_file_is_set_aside() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), small());
    for n in 0..30 {
        store(&log, &format!("{n}"), &[n; 700]);
    }
    let head = log.head();
    drop(log);
    let segments = files(dir.path(), "segment");
    overwrite(&segments[1], |contents| contents[9] ^= 1);
    fs::remove_file(files(dir.path(), "index").get(1).unwrap_or(&dir.path().join("none"))).ok();
    let (log, recovery) = open(dir.path(), small());
    assert_eq!(recovery.quarantined.len(), 1, "{recovery:?}");
    assert!(recovery.quarantined[0].exists() && !segments[1].exists());
    assert!(ids(&log).len() < 30 && log.head() == head);
    assert!(store(&log, "next", b"x") > head);
}

/// A mishap to one file of the middle segment, and the number of products that are then lost.
type Mishap = (&'static str, &'static str, fn(&Path), std::ops::RangeInclusive<usize>);

#[test]
fn a_middle_segment_in_any_state_costs_no_more_than_itself() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), small());
    for n in 0..40 {
        store(&log, &format!("{n}"), &[n; 700]);
    }
    let (head, before) = (log.head(), all(&log));
    log.close().unwrap();
    drop(log);
    let own = before.len() / files(dir.path(), "segment").len() + 1;
    let mishaps: [Mishap; 8] = [
        ("segment", "is missing", |path| fs::remove_file(path).unwrap(), 1..=own),
        ("segment", "is shortened", |path| overwrite(path, |bytes| bytes.truncate(3_000)), 1..=own),
        ("segment", "is empty", |path| overwrite(path, Vec::clear), 1..=own),
        ("segment", "is a directory", into_directory, 1..=own),
        ("segment", "is rubbish", |path| overwrite(path, |bytes| bytes.fill(0xA5)), 1..=own),
        ("index", "is missing", |path| fs::remove_file(path).unwrap(), 0..=0),
        ("index", "is a directory", into_directory, 0..=0),
        ("index", "is rubbish", |path| overwrite(path, |bytes| bytes.fill(0xA5)), 0..=0),
    ];
    for (extension, what, happen, lost) in mishaps {
        let copy = copy(dir.path());
        happen(&files(copy.path(), extension)[1]);
        let (log, _) =
            try_open(copy.path(), small()).unwrap_or_else(|error| panic!("{extension} {what}: {error}"));
        let entries = all(&log);
        let intact = entries.iter().filter(|entry| {
            entry.whole().as_deref().is_some_and(|bytes| contract::digest(bytes) == entry.info.digest)
        });
        let intact = intact.count();
        assert!(lost.contains(&(before.len() - intact)), "{extension} {what}: {intact} of {}", before.len());
        assert_eq!(log.head(), head, "{extension} {what}");
        assert!(store(&log, "next", b"x") > head, "{extension} {what}");
        log.close().unwrap();
    }
}

fn into_directory(path: &Path) {
    fs::remove_file(path).unwrap();
    fs::create_dir(path).unwrap();
}

#[test]
fn lost_small_files_never_lead_to_a_repeated_sequence() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), small());
    let last = (0..20).map(|n| store(&log, &format!("{n}"), &[n; 700])).last().unwrap();
    log.close().unwrap();
    drop(log);
    for lost in [&["sequence"][..], &["identity"], &["sequence", "identity"]] {
        let copy = copy(dir.path());
        lost.iter().for_each(|name| fs::remove_file(copy.path().join(name)).unwrap());
        let (log, _) = FeedLog::open(copy.path(), FeedName::parse("TEST").unwrap(), small(), 999).unwrap();
        assert_eq!((log.epoch(), ids(&log).len()), (Epoch(0xE10C), 20), "{lost:?}");
        assert!(store(&log, "next", b"x") > last);
    }
    let copy = copy(dir.path());
    for path in files(copy.path(), "segment").into_iter().chain(files(copy.path(), "index")) {
        fs::remove_file(path).unwrap();
    }
    fs::remove_file(copy.path().join("sequence")).unwrap();
    let (log, _) = FeedLog::open(copy.path(), FeedName::parse("TEST").unwrap(), small(), 999).unwrap();
    assert_eq!(
        (log.epoch(), store(&log, "next", b"x")),
        (Epoch(999), Sequence(1)),
        "nothing is known: a fresh epoch"
    );
}

#[test]
fn a_second_writer_is_refused_with_the_directory() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), small());
    let refused = try_open(dir.path(), small()).map(|_| ()).unwrap_err();
    assert!(matches!(refused, LogError::Locked { .. }));
    let sentence = refused.to_string();
    let process = format!("process {}", std::process::id());
    assert!(sentence.contains(dir.path().to_str().unwrap()) && sentence.contains(&process), "{sentence}");
    drop(log);
    open(dir.path(), small());
}

#[test]
fn a_flipped_version_is_damage_and_keeps_no_log_from_opening() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), small());
    let stored: Vec<Sequence> =
        (0..8).map(|number| store(&log, &format!("product {number}"), &[7; 400])).collect();
    let epoch = log.epoch();
    drop(log);
    for name in fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()) {
        let path = dir.path().join(&name);
        if name == "identity" || name == "sequence" || path.extension().is_some_and(|kind| kind == "index") {
            overwrite(&path, |contents| contents[8] ^= 0x40);
        }
    }
    let (log, _) = open(dir.path(), small());
    assert_eq!((log.epoch(), log.head() >= stored[7]), (epoch, true));
    assert_eq!(ids(&log).len(), stored.len());
}

#[test]
fn bad_directories_are_refused_with_a_sentence() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path(), small()));
    let other = FeedLog::open(dir.path(), FeedName::parse("OTHER").unwrap(), small(), 1).map(|_| ());
    let sentence = other.unwrap_err().to_string();
    assert!(sentence.contains("belongs to feed TEST, not to OTHER"), "{sentence}");
    let file = dir.path().join("file");
    fs::write(&file, b"").unwrap();
    let sentence = try_open(&file, small()).map(|_| ()).unwrap_err().to_string();
    assert!(sentence.contains("can't be written"), "{sentence}");
    overwrite(&dir.path().join("identity"), |contents| {
        contents[8] = 200;
        let crc = crc32fast::hash(&[&contents[8..12], &contents[16..]].concat());
        contents[12..16].copy_from_slice(&crc.to_le_bytes());
    });
    let sentence = try_open(dir.path(), small()).map(|_| ()).unwrap_err().to_string();
    assert!(sentence.contains("format 200"), "{sentence}");
}
