//! Logs whose sequences are assigned elsewhere, and their copies.
// Helpers of tests may fail as loudly as tests.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::path::Path;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use common::{all, ids, small};
use downburst_log::{Appended, FeedLog, Given, LogError, LogOptions, NewProduct, ProductLog, contract};
use downburst_model::{Epoch, FeedName, Sequence, WallMicros};

/// Assigns numbers like a store in which every group takes one extra number, and keeps the numbered products.
#[derive(Default)]
struct Store {
    next: u64,
    kept: Vec<(Given, Bytes)>,
}

impl Store {
    fn append(&mut self, log: &FeedLog, products: Vec<(NewProduct, Bytes)>) -> Vec<Option<Appended>> {
        let done = log.append_all_numbered(products, &|| WallMicros(7), &mut |drafts| {
            let numbers = drafts.iter().map(|draft| {
                self.next += 1;
                let given = Given::read(Sequence(self.next), &draft.description()).unwrap();
                self.kept.push((given, draft.bytes().unwrap().clone()));
                Sequence(self.next)
            });
            let numbers = numbers.collect();
            self.next += 1;
            Some(numbers)
        });
        done.copied.unwrap();
        done.results.into_iter().map(|result| result.transpose().unwrap()).collect()
    }
}

fn open(dir: &Path, epoch: u64, forgotten: u64) -> Result<FeedLog, LogError> {
    let feed = FeedName::parse("TEST").unwrap();
    FeedLog::open_copy(dir, feed, small(), Epoch(epoch), Sequence(forgotten)).map(|(log, _)| log)
}

fn product(id: &str, bytes: &'static [u8]) -> (NewProduct, Bytes) {
    (contract::product(id).unwrap(), Bytes::from_static(bytes))
}

fn group(of: std::ops::Range<usize>) -> Vec<(NewProduct, Bytes)> {
    of.map(|n| (contract::product(&n.to_string()).unwrap(), Bytes::from(vec![n as u8; n * 37 % 900])))
        .collect()
}

fn numbers(log: &FeedLog) -> Vec<u64> {
    all(log).iter().map(|entry| entry.info.key.sequence.0).collect()
}

#[test]
fn products_get_the_numbers_of_the_store_and_repeat_each_other_within_a_group() {
    let dir = tempfile::tempdir().unwrap();
    let (log, mut store) = (open(dir.path(), 5, 0).unwrap(), Store { next: 10, ..Store::default() });
    let appended = store.append(&log, vec![product("a", b"a"), product("a", b"a"), product("b", b"b")]);
    assert_eq!(appended[1], Some(Appended::Duplicate { of: Sequence(11) }));
    let appended = store.append(&log, vec![product("b", b"b"), product("c", b"c"), product("c", b"c")]);
    assert_eq!(appended[0], Some(Appended::Duplicate { of: Sequence(12) }));
    assert_eq!(appended[2], Some(Appended::Duplicate { of: Sequence(14) }));
    assert_eq!((numbers(&log), log.head(), log.epoch()), (vec![11, 12, 14], Sequence(14), Epoch(5)));
    assert!(
        matches!(&appended[1], Some(Appended::Stored { sequence: Sequence(14), info }) if info.id.as_str() == "c")
    );
}

#[test]
fn a_short_copy_remembers_all_that_its_store_keeps() {
    let (dir, feed) = (tempfile::tempdir().unwrap(), FeedName::parse("TEST").unwrap());
    let options = LogOptions { copy_bytes: Some(6_000), ..small() };
    let (copy, _) = FeedLog::open_copy(dir.path(), feed, options, Epoch(5), Sequence(0)).unwrap();
    let mut store = Store::default();
    // Their descriptions alone take more space than the copy may use for their bytes.
    for n in 0..40 {
        store.append(&copy, vec![(contract::product(&n.to_string()).unwrap(), Bytes::from(vec![n; 2_000]))]);
    }
    let retained = copy.retain(WallMicros(8)).unwrap();
    assert_eq!(retained.forgotten_to, None);
    let batch = copy.read(Sequence(0), copy.head(), usize::MAX, usize::MAX).unwrap();
    assert_eq!((batch.entries.len(), batch.forgotten), (40, None), "each can be fetched from the store");
    let held = batch.entries.iter().filter(|entry| entry.bytes.is_some()).count();
    assert!(held <= 3, "{held} products of 2 kB are held");
}

#[test]
fn what_got_no_number_is_not_there_and_may_come_again() {
    let dir = tempfile::tempdir().unwrap();
    let (log, mut store) = (open(dir.path(), 5, 0).unwrap(), Store::default());
    store.append(&log, vec![product("a", b"a")]);
    let refused = log.append_all_numbered(
        vec![product("a", b"a"), product("b", b"b"), product("b", b"b")],
        &|| WallMicros(0),
        &mut |_| None,
    );
    let results: Vec<_> = refused.results.iter().map(Option::is_some).collect();
    assert_eq!(results, [true, false, false], "only the duplicate of what is stored is settled");
    assert_eq!(ids(&log), ["a"]);
    let (large, _) =
        log.append_numbered(contract::product("b").unwrap(), &mut &b"b"[..], &|| WallMicros(0), &mut |_| {
            Err(LogError::Closed { feed: FeedName::parse("TEST").unwrap() })
        });
    assert!(matches!(large, Err(LogError::Closed { .. })));
    let appended = store.append(&log, vec![product("b", b"b")]);
    assert!(matches!(appended[0], Some(Appended::Stored { .. })));
    assert_eq!(ids(&log), ["a", "b"]);
}

#[test]
fn a_copy_has_the_same_products_under_the_same_numbers_across_unclean_ends() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let mut store = Store::default();
    let log = open(dirs[0].path(), 5, 0).unwrap();
    for begin in (0..400).step_by(40) {
        store.append(&log, group(begin..begin + 40));
        // A dropped copy was never closed. It receives again the products that it already has.
        let copy = open(dirs[1].path(), 5, 0).unwrap();
        copy.append_given(store.kept.clone()).unwrap();
        assert_eq!(copy.head(), log.head());
    }
    let large = vec![9; 300_000];
    let (mut number, mut description) = (store.next + 5, Vec::new());
    let (appended, copied) = log.append_numbered(
        contract::product("large").unwrap(),
        &mut &*large,
        &|| WallMicros(8),
        &mut |draft| {
            description = draft.description();
            number += 1;
            Ok(Sequence(number))
        },
    );
    copied.unwrap();
    assert!(matches!(appended, Ok(Appended::Stored { sequence, .. }) if sequence.0 == number));
    let copy = open(dirs[1].path(), 5, 0).unwrap();
    let given = || Given::read(Sequence(number), &description).unwrap();
    copy.append_given_from(given(), &mut &large[1..]).unwrap_err();
    copy.append_given_from(given(), &mut &*large).unwrap();
    copy.append_given_from(given(), &mut &*large).unwrap();
    assert_eq!(all(&copy), all(&log));
    assert_eq!(
        open(dirs[0].path(), 5, 0).err().map(|error| error.to_string().contains("in use")),
        Some(true)
    );
}

#[test]
fn a_copy_of_another_life_or_of_what_is_gone_is_made_anew_and_a_log_of_its_own_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::default();
    store.append(&open(dir.path(), 5, 0).unwrap(), group(0..50));
    let head = open(dir.path(), 5, 0).unwrap().head();
    assert_eq!(open(dir.path(), 5, head.0 - 1).unwrap().head(), head, "the store forgot what is here");
    let log = open(dir.path(), 5, 1_000).unwrap();
    assert_eq!((numbers(&log), log.head()), (Vec::new(), Sequence(1_000)));
    let batch = log.read(Sequence(0), Sequence(u64::MAX), usize::MAX, usize::MAX).unwrap();
    assert_eq!(batch.forgotten.map(|gone| gone.to), Some(Sequence(1_000)), "what is gone is told as gone");
    store.next = 2_000;
    store.append(&log, group(50..60));
    drop(log);
    let log = open(dir.path(), 6, 0).unwrap();
    assert_eq!((log.epoch(), log.head()), (Epoch(6), Sequence(0)));
    drop(log);
    let own = tempfile::tempdir().unwrap();
    let feed = FeedName::parse("TEST").unwrap();
    let (log, _) = FeedLog::open(own.path(), feed, small(), 1).unwrap();
    common::store(&log, "mine", b"mine");
    drop(log);
    assert!(matches!(open(own.path(), 1, 0), Err(LogError::NoCopy { .. })));
    assert!(!common::files(own.path(), "segment").is_empty(), "nothing of it was touched");
}

#[test]
fn a_copy_tells_of_each_heartbeat_that_it_takes_over_once() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let (mut store, log) = (Store::default(), open(dirs[0].path(), 5, 0).unwrap());
    let copy = open(dirs[1].path(), 5, 0).unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let ears = Arc::clone(&told);
    copy.on_heartbeat(move |info| ears.lock().unwrap().push(info.key.sequence));
    let beat = || (contract::product("downburst:heartbeat:1").unwrap(), Bytes::from_static(b"heartbeat"));
    let mut products = group(0..3);
    products.insert(1, beat());
    store.append(&log, products);
    copy.append_given(store.kept.clone()).unwrap();
    copy.append_given(store.kept.clone()).unwrap();
    assert_eq!(*told.lock().unwrap(), [store.kept[1].0.sequence]);
    assert_eq!(copy.head(), log.head());
}
