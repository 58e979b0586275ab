//! Eviction: its order, and the memory of evicted products.
// Helpers of tests may fail as loudly as tests.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use common::{HOUR, all, append_at, files, open, small, store_at};
use downburst_log::{
    Appended, FeedLog, Forgotten, LogError, LogOptions, ProductLog, Retained, Retention, contract,
};
use downburst_model::{ProductId, Sequence, WallMicros};

fn hourly(options: LogOptions, hours: u8) -> (tempfile::TempDir, FeedLog) {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), options);
    for n in 0..hours {
        store_at(&log, &format!("{n}"), &[n + 1; 1_000], i64::from(n) * HOUR);
        log.retain(WallMicros(i64::from(n) * HOUR)).unwrap();
    }
    (dir, log)
}

fn with_bytes(log: &FeedLog) -> Vec<String> {
    all(log).iter().filter(|entry| entry.bytes.is_some()).map(|entry| entry.info.id.to_string()).collect()
}

#[test]
fn hours_take_bytes_and_leave_the_exact_list() {
    let options = LogOptions { retention: Retention { hours: 3.0, bytes: 1 << 30 }, ..small() };
    let (dir, log) = hourly(options.clone(), 10);
    assert_eq!(with_bytes(&log), ["6", "7", "8", "9"]);
    let entries = all(&log);
    assert_eq!(entries.len(), 10, "a late reader gets the list of what it lost");
    assert_eq!(entries[0].info.digest, contract::digest(&[1; 1_000]));
    assert_eq!((entries[0].info.size, entries[0].info.stored), (1_000, WallMicros(0)));
    assert_eq!((log.first(), log.head()), (Sequence(7), Sequence(10)));
    let stat = log.stat();
    assert_eq!((stat.products, stat.remembered, stat.oldest_stored), (4, 6, Some(WallMicros(6 * HOUR))));
    assert_eq!(append_at(&log, "0", &[1; 1_000], 10 * HOUR), Appended::Duplicate { of: Sequence(1) });
    drop(log);
    let (log, _) = open(dir.path(), options);
    assert_eq!(all(&log), entries, "memory outlives a restart");
    assert_eq!(append_at(&log, "0", &[1; 1_000], 10 * HOUR), Appended::Duplicate { of: Sequence(1) });
}

#[test]
fn an_idle_feed_is_evicted_too() {
    let (dir, log) = hourly(LogOptions { retention: Retention { hours: 3.0, bytes: 1 << 30 }, ..small() }, 1);
    let retained = log.retain(WallMicros(4 * HOUR)).unwrap();
    assert_eq!((retained.evicted, retained.products), (vec![(Sequence(1), Sequence(1))], 1));
    assert!(retained.bytes > 1_000);
    assert!(files(dir.path(), "segment").is_empty());
    assert!(log.first() > log.head());
}

#[test]
fn the_ceiling_wins_over_the_hours_and_says_so() {
    let options = LogOptions { retention: Retention { hours: 1_000.0, bytes: 40_000 }, ..small() };
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), options);
    let mut cut = 0;
    for n in 0..100 {
        store_at(&log, &format!("{n}"), &[n; 1_000], 0);
        let retained = log.retain(WallMicros(0)).unwrap();
        cut += retained.products_cut_by_ceiling;
        let stat = log.stat();
        assert!(stat.bytes + stat.memory_bytes <= stat.ceiling_bytes, "{stat:?}");
    }
    let stat = log.stat();
    assert!(cut > 50 && cut == 100 - stat.products, "{cut} {stat:?}");
    assert_eq!(with_bytes(&log).last().map(String::as_str), Some("99"), "the newest stay");
}

#[test]
fn memory_expires_into_a_range() {
    let options =
        LogOptions { retention: Retention { hours: 2.0, bytes: 1 << 30 }, memory_hours: 5.0, ..small() };
    let (dir, log) = hourly(options.clone(), 10);
    let forgotten = Forgotten { from: Sequence(1), to: Sequence(4) };
    let check = |log: &FeedLog| {
        let batch = log.read(Sequence(0), Sequence(u64::MAX), usize::MAX, usize::MAX).unwrap();
        assert_eq!((batch.forgotten, batch.entries.len()), (Some(forgotten), 6));
        let batch = log.read(Sequence(2), Sequence(3), usize::MAX, usize::MAX).unwrap();
        let part = Forgotten { from: Sequence(3), to: Sequence(3) };
        assert_eq!((batch.forgotten, batch.entries.len(), batch.read_to), (Some(part), 0, Sequence(3)));
        assert_eq!(log.read(Sequence(4), Sequence(9), usize::MAX, usize::MAX).unwrap().forgotten, None);
        assert_eq!(append_at(log, "5", &[6; 1_000], 0), Appended::Duplicate { of: Sequence(6) });
        assert_eq!(
            log.find_duplicate(&ProductId::parse("0").unwrap(), 1_000, &contract::digest(&[1; 1_000]))
                .unwrap(),
            None
        );
    };
    check(&log);
    drop(log);
    let (log, _) = open(dir.path(), options.clone());
    check(&log);
    log.retain(WallMicros(1_000 * HOUR)).unwrap();
    log.close().unwrap();
    drop(log);
    assert!(files(dir.path(), "index").is_empty());
    let (log, _) = open(dir.path(), options);
    assert_eq!((log.head(), all(&log).len()), (Sequence(10), 0), "an emptied log keeps its head");
    assert!(store_at(&log, "0", &[1; 1_000], 0) > Sequence(10));
}

#[test]
fn bytes_in_hand_survive_eviction() {
    let (_dir, log) =
        hourly(LogOptions { retention: Retention { hours: 3.0, bytes: 1 << 30 }, ..small() }, 1);
    let bytes = all(&log)[0].bytes.clone().unwrap();
    assert_eq!(log.retain(WallMicros(100 * HOUR)).unwrap().products, 1);
    assert_eq!(all(&log)[0].bytes, None);
    drop(log);
    assert_eq!(bytes, *vec![1; 1_000].as_slice());
}

#[test]
fn a_large_product_has_a_segment_of_its_own() {
    for announced in [None, Some(100_000)] {
        let dir = tempfile::tempdir().unwrap();
        let (log, _) = open(dir.path(), small());
        store_at(&log, "small", b"x", 0);
        let product =
            downburst_log::NewProduct { expected_size: announced, ..contract::product("large").unwrap() };
        log.append(product, &mut &[7; 100_000][..], &|| WallMicros(0)).unwrap();
        store_at(&log, "next", b"x", 0);
        let segments = files(dir.path(), "segment").len();
        assert_eq!(segments, if announced.is_some() { 3 } else { 2 });
        assert_eq!(all(&log)[1].whole().as_deref(), Some(&[7; 100_000][..]));
        drop(log);
        assert_eq!(all(&open(dir.path(), small()).0).len(), 3);
    }
}

#[test]
fn readers_run_beside_eviction() {
    let dir = tempfile::tempdir().unwrap();
    let retention = Retention { hours: 1.0, bytes: 60_000 };
    let options = LogOptions { retention, memory_hours: 2.0, segment_bytes: 5_000, ..small() };
    let (log, _) = open(dir.path(), options);
    let count = 1_500_u64;
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut cursor, mut listed, mut held) = (Sequence(0), 0, Vec::new());
            while cursor.0 < count {
                let batch = log.read(cursor, Sequence(u64::MAX), 20_000, 10).unwrap();
                listed += batch.entries.len() as u64;
                listed += batch.forgotten.map_or(0, |range| range.to.0 + 1 - range.from.0);
                held.extend(
                    batch.entries.into_iter().filter_map(|entry| Some((entry.info.digest, entry.bytes?))),
                );
                cursor = batch.read_to;
                std::thread::yield_now();
            }
            assert!(held.iter().all(|(digest, bytes)| contract::digest(&bytes.whole().unwrap()) == *digest));
            (listed, held.len())
        });
        for n in 0..count {
            let now = n as i64 * HOUR / 100;
            store_at(&log, &format!("{n}"), &[n as u8; 1_000], now);
            if n % 20 == 0 {
                log.retain(WallMicros(now)).unwrap();
            }
        }
        let (listed, held) = reader.join().unwrap();
        assert!(listed >= count && held > 0, "{listed} listed, {held} with bytes");
    });
    assert!(log.stat().products < 100);
}

#[test]
fn a_live_change_of_ceiling_and_hours_holds_at_once_and_leaves_readers_their_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let keeping = |hours, bytes| LogOptions { retention: Retention { hours, bytes }, ..small() };
    let (log, _) = open(dir.path(), keeping(1_000.0, 1 << 30));
    let put = |n: u8| store_at(&log, &format!("{n}"), &[n + 1; 1_000], i64::from(n) * HOUR);
    (0..60).for_each(|n| assert_eq!(put(n), Sequence(u64::from(n) + 1)));
    let held = all(&log);
    log.set_options(keeping(1_000.0, 40_000));
    let shrunk = log.retain(WallMicros(60 * HOUR)).unwrap();
    assert!(shrunk.products_cut_by_ceiling > 20, "{shrunk:?}");
    let stat = log.stat();
    assert!(stat.products > 0 && stat.bytes + stat.memory_bytes <= 40_000, "{stat:?}");
    assert_eq!(with_bytes(&log).last().map(String::as_str), Some("59"));
    log.set_options(keeping(1_000.0, 1 << 30));
    (60..90).for_each(|n| assert_eq!(put(n), Sequence(u64::from(n) + 1)));
    assert_eq!(log.retain(WallMicros(90 * HOUR)).unwrap().products, 0, "grown again, nothing goes");
    log.set_options(keeping(0.001, 1 << 30));
    log.retain(WallMicros(91 * HOUR)).unwrap();
    assert_eq!((with_bytes(&log).len(), log.first()), (0, Sequence(91)), "hours near zero");
    assert_eq!(all(&log).len(), 90, "the list of what went");
    for (n, entry) in held.iter().enumerate() {
        assert_eq!(entry.whole().as_deref(), Some(&[n as u8 + 1; 1_000][..]), "bytes in hand");
    }
    assert_eq!(put(90), Sequence(91));
}

/// Stamps follow the clock. A product stored in an hour that occurs twice is kept by its own stamp, a segment as
/// long as its newest one, and a search by time finds the first product at or after it, so that nothing is
/// skipped.
#[test]
fn a_clock_that_steps_back_loses_nothing_and_hides_nothing() {
    let options = LogOptions { retention: Retention { hours: 3.0, bytes: 1 << 30 }, ..small() };
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), options.clone());
    let stamps = [10, 11, 12, 11, 12, 13];
    for (n, hour) in stamps.iter().enumerate() {
        store_at(&log, &format!("{n}"), &[n as u8 + 1; 3_000], hour * HOUR);
    }
    let check = |log: &FeedLog| {
        for moment in 9..15 {
            let after = log.find_time(WallMicros(moment * HOUR));
            let found = log.read(after, Sequence(u64::MAX), usize::MAX, usize::MAX).unwrap().entries;
            let due = stamps.iter().filter(|stamp| **stamp >= moment).count();
            let listed = found.iter().filter(|entry| entry.info.stored.0 >= moment * HOUR).count();
            assert_eq!(listed, due, "from hour {moment} on");
        }
        let kept: Vec<i64> = all(log).iter().map(|entry| entry.info.stored.0 / HOUR).collect();
        assert_eq!(kept, stamps);
    };
    check(&log);
    assert_eq!(log.retain(WallMicros(12 * HOUR)).unwrap().products, 0, "nothing is older than three hours");
    drop(log);
    let (log, _) = open(dir.path(), options);
    check(&log);
    log.retain(WallMicros(30 * HOUR)).unwrap();
    assert_eq!(with_bytes(&log).len(), 0);
    store_at(&log, "after", b"x", 9 * HOUR);
    assert_eq!(with_bytes(&log), ["after"]);
}

#[test]
fn nothing_due_changes_nothing() {
    let (_dir, log) = hourly(small(), 3);
    assert_eq!(log.retain(WallMicros(3 * HOUR)).unwrap(), Retained::default());
}

const FULL_DISK: &str = "DOWNBURST_TEST_FULL_DISK";

/// Runs inside a small file system of its own; does nothing in an ordinary run.
#[test]
fn child_fills_a_disk() {
    let Ok(dir) = std::env::var(FULL_DISK) else { return };
    let dir = std::path::Path::new(&dir).join("log");
    let options = LogOptions { segment_bytes: 1 << 20, ..small() };
    let (log, _) = open(&dir, options.clone());
    let mut stored = 0_u64;
    let error = loop {
        let content = vec![stored as u8; 300_000];
        let product = contract::product(&format!("{stored}")).unwrap();
        match log.append(product, &mut &content[..], &|| WallMicros(0)) {
            Ok(_) => stored += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, LogError::DiskFull { .. }), "{error}");
    assert!(stored > 5 && all(&log).len() as u64 == stored);
    let huge = log.append(contract::product("huge").unwrap(), &mut &vec![1; 8 << 20][..], &|| WallMicros(0));
    assert!(matches!(huge, Err(LogError::DiskFull { .. })), "{huge:?}");
    log.set_options(LogOptions {
        retention: Retention { hours: 1_000.0, bytes: 2 << 20 },
        ..options.clone()
    });
    let retained = log.retain(WallMicros(0)).unwrap();
    assert!(retained.products_cut_by_ceiling > 0, "{retained:?}");
    store_at(&log, "after", b"x", 0);
    let before = all(&log);
    drop(log);
    let (log, recovery) = open(&dir, options);
    assert_eq!(recovery.damaged, []);
    assert_eq!(all(&log), before);
    println!("the disk was filled");
}

#[test]
fn a_full_disk_is_said_and_survived() {
    common::on_a_small_disk(FULL_DISK, "child_fills_a_disk", "the disk was filled");
}
