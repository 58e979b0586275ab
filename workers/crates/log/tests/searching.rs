//! Finding products by id and by the beginning of their digest.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // A test may fail.

mod common;

use std::ops::ControlFlow;

use common::{HOUR, open, small, store, store_at};
use downburst_log::{FeedLog, ProductLog, SearchLimits, Searched, Sought, contract};
use downburst_model::{ProductId, Sequence, WallMicros};

const AMPLE: SearchLimits = SearchLimits { entries: 100, rows: u64::MAX };
const NEWEST: Sequence = Sequence(u64::MAX);

fn id(text: &str) -> Sought {
    Sought::Id(ProductId::parse(text).unwrap())
}

fn sequences(searched: &Searched) -> Vec<u64> {
    searched.entries.iter().map(|entry| entry.info.key.sequence.0).collect()
}

fn search(log: &FeedLog, sought: &Sought) -> Vec<u64> {
    sequences(&log.search(sought, NEWEST, AMPLE).unwrap())
}

/// A log of several segments, each with products of 1 kB: every tenth is called "again".
fn filled(log: &FeedLog, count: u64) -> Vec<u64> {
    let mut again = Vec::new();
    for number in 0..count {
        let name = if number % 10 == 0 { "again".to_owned() } else { format!("once {number}") };
        let bytes = format!("{number:>1000}");
        let sequence = store(log, &name, bytes.as_bytes()).0;
        if number % 10 == 0 {
            again.push(sequence);
        }
    }
    again.reverse();
    again
}

#[test]
fn all_products_of_an_id_come_newest_first_from_every_segment() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), small());
    let again = filled(&log, 60);
    assert!(log.stat().segments > 3);
    assert_eq!(search(&log, &id("again")), again);
    assert_eq!(search(&log, &id("agai")), [] as [u64; 0]);
    log.close().unwrap();
    drop(log);
    let (log, _) = open(dir.path(), small());
    assert_eq!(search(&log, &id("again")), again, "sealed segments, too");
}

#[test]
fn a_search_goes_on_where_the_last_one_ended() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), small());
    let again = filled(&log, 60);
    for limits in [SearchLimits { entries: 2, rows: u64::MAX }, SearchLimits { entries: 100, rows: 7 }] {
        let (mut before, mut found, mut rounds) = (NEWEST, Vec::new(), 0);
        loop {
            let part = log.search(&id("again"), before, limits).unwrap();
            found.extend(sequences(&part));
            rounds += 1;
            assert!(part.searched_to < before && rounds < 100);
            before = Sequence(part.searched_to.0 + 1);
            if part.complete {
                break;
            }
        }
        assert_eq!(found, again, "{limits:?}");
        assert!(rounds > 3);
    }
}

#[test]
fn the_beginning_of_a_digest_finds_its_product() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), small());
    filled(&log, 30);
    let sequence = store(&log, "wanted", b"these bytes").0;
    let digest = contract::digest(b"these bytes").to_string();
    for digits in [4, 8, 15, 16, 17, 33, 64] {
        let found = search(&log, &Sought::Digest(digest[..digits].to_owned()));
        assert!(found.contains(&sequence), "{digits} digits");
        assert!(digits < 8 || found == [sequence], "{digits} digits: {found:?}");
    }
    let mut other = digest.clone();
    other.replace_range(40..41, if &digest[40..41] == "0" { "1" } else { "0" });
    for nothing in [other.as_str(), "", "xyz", &format!("{digest}0")] {
        assert_eq!(search(&log, &Sought::Digest(nothing.to_owned())), [] as [u64; 0], "{nothing:?}");
    }
}

#[test]
fn what_was_evicted_is_found_without_its_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = small();
    options.retention.hours = 1.0;
    let (log, _) = open(dir.path(), options);
    for number in 0..40_u64 {
        store_at(&log, &format!("p{number}"), format!("{number:>1000}").as_bytes(), 0);
    }
    store_at(&log, "young", b"young", 3 * HOUR);
    log.retain(WallMicros(3 * HOUR)).unwrap();
    let found = log.search(&id("p3"), NEWEST, AMPLE).unwrap().entries;
    assert_eq!((found.len(), found[0].bytes.is_none()), (1, true));
}

#[test]
fn a_look_back_shows_every_product_of_its_range_once_and_goes_on_where_it_ended() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), small());
    for number in 0..60_u64 {
        store_at(&log, &format!("p{number}"), format!("{number:>1000}").as_bytes(), number as i64 * HOUR);
    }
    let after = log.find_time(WallMicros(10 * HOUR));
    for most in [u64::MAX, 7] {
        let (mut before, mut ids) = (NEWEST, Vec::new());
        loop {
            let looked = log
                .look_back(after, before, most, |info, _| {
                    ids.push(info.id.as_str().to_owned());
                    ControlFlow::Continue(())
                })
                .unwrap();
            assert!(looked.shown <= most && looked.searched_to < before);
            before = looked.searched_to;
            if looked.complete {
                break;
            }
        }
        let expected: Vec<String> = (10..60).rev().map(|number| format!("p{number}")).collect();
        assert_eq!(ids, expected, "{most} at once");
    }
    let mut shown = 0;
    let looked = log.look_back(Sequence(0), NEWEST, u64::MAX, |_, _| {
        shown += 1;
        if shown < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    assert_eq!((shown, looked.unwrap().complete), (3, false));
}
