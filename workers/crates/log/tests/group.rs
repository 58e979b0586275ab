//! Groups of products: the remains after a crash or a full disk in the middle of one.
// Helpers of tests may fail as loudly as tests.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::{
    collections::BTreeSet,
    fs,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use common::{all, files, ids, open, small, store};
use downburst_log::{
    Appended, DuplicateRule, Durability, FeedLog, LogError, LogOptions, NewProduct, ProductLog, contract,
};
use downburst_model::{Pieces, Sequence, WallMicros};

const SIZES: [usize; 8] = [700, 0, 1, 2_000, 8, 9, 3_000, 64];

fn group(sizes: &[usize]) -> Vec<(NewProduct, Bytes)> {
    let product = |n: usize| contract::product(&format!("{n}")).unwrap();
    let content = |n: usize| Bytes::from(vec![(n + 1) as u8; sizes[n]]);
    (0..sizes.len()).map(|n| (product(n), content(n))).collect()
}

fn append(log: &FeedLog, products: Vec<(NewProduct, Bytes)>) -> Vec<Result<Sequence, LogError>> {
    let appended = log.append_all(products, &|| WallMicros(0));
    let sequence = |appended: Result<Appended, LogError>| {
        appended.map(|appended| match appended {
            Appended::Stored { sequence, .. } => sequence,
            Appended::Duplicate { of } => panic!("a duplicate of {of:?}"),
        })
    };
    appended.into_iter().map(sequence).collect()
}

fn one_segment() -> LogOptions {
    LogOptions { segment_bytes: 1 << 20, ..small() }
}

#[test]
fn a_group_reads_the_same_from_outside_and_after_reopening() {
    for durability in [Durability::Process, Durability::Power] {
        let dir = tempfile::tempdir().unwrap();
        let options = LogOptions { durability, ..one_segment() };
        let (log, _) = open(dir.path(), options.clone());
        store(&log, "single", b"single");
        assert!(append(&log, group(&SIZES)).iter().all(Result::is_ok));
        store(&log, "another", b"another");
        let before = all(&log);
        assert_eq!(before.len(), SIZES.len() + 2);
        let reader = downburst_log::LogReader::open(dir.path()).unwrap();
        let verified = reader.verify(&mut |_| ()).unwrap();
        assert_eq!((verified.products, verified.flaws), (before.len() as u64, 0));
        drop(log);
        let (log, recovery) = open(dir.path(), options);
        assert_eq!((recovery.cut_bytes, recovery.damaged.len()), (0, 0));
        assert_eq!(all(&log), before);
    }
}

#[test]
fn a_group_runs_over_segments_and_large_products_have_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), small());
    let sizes: Vec<usize> = (0..60).map(|n| if n % 20 == 7 { 30_000 } else { n * 31 }).collect();
    assert!(append(&log, group(&sizes)).iter().all(Result::is_ok));
    assert!(files(dir.path(), "segment").len() > 6);
    let found: Vec<Vec<u8>> = all(&log).into_iter().map(|entry| entry.whole().unwrap().to_vec()).collect();
    let wanted: Vec<Vec<u8>> = group(&sizes).into_iter().map(|(_, bytes)| bytes.to_vec()).collect();
    assert_eq!(found, wanted);
}

#[test]
fn listeners_are_called_once_per_group() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), one_segment());
    let calls = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&calls);
    log.on_append(Box::new(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
    }));
    append(&log, group(&[50; 300]));
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

/// Whatever prefix of the write reached the file when the process died, complete products stay and the rest is
/// cut.
#[test]
fn a_group_cut_anywhere_leaves_whole_products_only() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), one_segment());
    store(&log, "single", b"single");
    let begin = log.stat().bytes.next_multiple_of(8) as usize;
    append(&log, group(&SIZES));
    let end = log.stat().bytes as usize;
    drop(log);
    let segment = files(dir.path(), "segment").remove(0);
    let name = segment.file_name().unwrap().to_owned();
    for cut in (begin..end).step_by(29) {
        let copy = common::copy(dir.path());
        common::overwrite(&copy.path().join(&name), |bytes| bytes[cut..].fill(0));
        let (log, recovery) = open(copy.path(), one_segment());
        let found = ids(&log);
        let whole: Vec<String> = (0..found.len() - 1).map(|n| n.to_string()).collect();
        assert_eq!((&found[0][..], &found[1..]), ("single", &whole[..]), "cut at {cut}");
        assert!(recovery.damaged.is_empty(), "cut at {cut}: {recovery:?}");
        for (n, entry) in all(&log).iter().skip(1).enumerate() {
            assert_eq!(entry.whole().as_deref(), Some(&vec![n as u8 + 1; SIZES[n]][..]), "cut at {cut}");
        }
        let next = store(&log, "next", b"next");
        assert!(next > Sequence(SIZES.len() as u64 + 1), "cut at {cut}: {next:?} may have been given before");
    }
}

#[test]
fn a_closed_log_refuses_every_product_of_a_group() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), one_segment());
    log.close().unwrap();
    let refused = append(&log, group(&SIZES));
    assert_eq!(refused.len(), SIZES.len());
    assert!(refused.iter().all(|result| matches!(result, Err(LogError::Closed { .. }))));
}

#[test]
fn groups_and_single_appends_of_many_threads_give_each_sequence_once() {
    for durability in [Durability::Process, Durability::Power] {
        let dir = tempfile::tempdir().unwrap();
        let options = LogOptions { durability, ..small() };
        let (log, _) = open(dir.path(), options.clone());
        let given: Vec<Vec<(u64, String)>> = std::thread::scope(|scope| {
            let start = |thread: usize| {
                let log = &log;
                scope.spawn(move || (0..12).flat_map(|turn| take_turn(log, thread, turn)).collect())
            };
            let threads: Vec<_> = (0..4).map(start).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for own in &given {
            assert!(own.is_sorted_by(|one, next| one.0 < next.0), "one thread's products keep their order");
        }
        let given: BTreeSet<(u64, String)> = given.into_iter().flatten().collect();
        let stored: BTreeSet<(u64, String)> =
            all(&log).iter().map(|entry| (entry.info.key.sequence.0, entry.info.id.to_string())).collect();
        assert_eq!(given, stored);
        drop(log);
        assert_eq!(all(&open(dir.path(), options).0).len(), given.len());
    }
}

/// A group of three and a single product.
fn take_turn(log: &FeedLog, thread: usize, turn: usize) -> Vec<(u64, String)> {
    let id = |n: usize| format!("{thread}/{turn}/{n}");
    let content = Bytes::from(vec![thread as u8; turn * 90 + 1]);
    let named = |n| (contract::product(&id(n)).unwrap(), content.clone());
    let group = append(log, (0..3).map(named).collect());
    let mut given: Vec<u64> = group.into_iter().map(|sequence| sequence.unwrap().0).collect();
    given.push(store(log, &id(3), &content).0);
    given.into_iter().enumerate().map(|(n, sequence)| (sequence, id(n))).collect()
}

const FULL_DISK: &str = "DOWNBURST_TEST_FULL_DISK_GROUP";

/// Runs inside a small file system of its own; does nothing in an ordinary run.
#[test]
fn child_fills_a_disk_with_groups() {
    let Ok(dir) = std::env::var(FULL_DISK) else { return };
    let dir = std::path::Path::new(&dir).join("log");
    let options = LogOptions { segment_bytes: 1 << 20, ..small() };
    let (log, _) = open(&dir, options.clone());
    fs::write(dir.join("reserve"), vec![7; 2_000_000]).unwrap();
    let mut stored = BTreeSet::new();
    let refused = loop {
        let round = stored.len();
        let named = |n: usize| (contract::product(&format!("{round}/{n}")).unwrap(), content(n));
        let results = append(&log, (0..20).map(named).collect());
        let refused = results.iter().filter(|result| result.is_err()).count();
        assert!(results.iter().flatten().all(|sequence| stored.insert(sequence.0)), "a sequence twice");
        if refused > 0 {
            let full = |result: &Result<Sequence, LogError>| matches!(result, Err(LogError::DiskFull { .. }));
            assert!(results.iter().filter(|result| result.is_err()).all(full), "{results:?}");
            break refused;
        }
    };
    assert!(refused < 20, "what fits is stored, product by product");
    assert_eq!(all(&log).len(), stored.len());
    fs::remove_file(dir.join("reserve")).unwrap();
    let after = append(&log, group(&[9; 3]));
    assert!(after.iter().all(|result| stored.insert(result.as_ref().unwrap().0)), "{after:?}");
    let before = all(&log);
    drop(log);
    let (log, recovery) = open(&dir, options);
    assert_eq!((recovery.damaged.len(), all(&log)), (0, before));
    println!("the disk was filled");
}

fn content(n: usize) -> Bytes {
    Bytes::from(vec![n as u8 + 1; 30_000 + n])
}

#[test]
fn a_full_disk_takes_what_fits_and_no_record_of_the_rest() {
    common::on_a_small_disk(FULL_DISK, "child_fills_a_disk_with_groups", "the disk was filled");
}

/// A bulletin with this number in its starting line.
fn bulletin(number: u16, size: usize) -> Bytes {
    let mut bytes = format!("\u{1}\r\r\n{number:03} \r\r\nSDUS54").into_bytes();
    bytes.resize(size, b'x');
    bytes.into()
}

/// The same bytes, cut at these places.
fn cut(whole: &Bytes, cuts: &[usize]) -> Pieces {
    let ends = cuts.iter().copied().chain([whole.len()]);
    let mut from = 0;
    let pieces = ends.map(|end| whole.slice(std::mem::replace(&mut from, end)..end));
    pieces.collect::<Vec<_>>().into()
}

#[test]
fn a_product_in_pieces_is_stored_and_recognised_as_in_one() {
    for (size, cuts) in
        [100, 3_000].into_iter().flat_map(|size| [(size, vec![5, 40]), (size, vec![60, 60, 70])])
    {
        for rule in [DuplicateRule::None, DuplicateRule::ContentWithoutWmoStart, DuplicateRule::Signature] {
            let dir = tempfile::tempdir().unwrap();
            let options = LogOptions { duplicate_rule: rule, body_bytes: 2_000, ..one_segment() };
            let (log, _) = open(dir.path(), options);
            let append = |id: &str, pieces: Pieces| {
                let group = vec![(contract::product(id).unwrap(), pieces)];
                log.append_pieces(group, &|| WallMicros(0)).remove(0).unwrap()
            };
            let number = if rule == DuplicateRule::Signature { 123 } else { 124 };
            let again = bulletin(number, size);
            append("whole", bulletin(123, size).into());
            let found = append("pieces", cut(&again, &cuts));
            match (rule, found) {
                (DuplicateRule::None, Appended::Stored { info, .. }) => {
                    assert_eq!(info.digest.0, *blake3::hash(&again).as_bytes());
                    assert!(all(&log).iter().any(|entry| entry.whole() == Some(again.clone())));
                }
                (DuplicateRule::None, duplicate) => panic!("{duplicate:?}"),
                (_, found) => assert_eq!(found, Appended::Duplicate { of: Sequence(1) }, "{rule:?} {size}"),
            }
        }
    }
}
