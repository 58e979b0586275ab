//! A log that ends or is damaged at any byte opens again, keeps complete products and never repeats a sequence.
// Helpers of tests may fail as loudly as tests.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::{collections::BTreeSet, fs, path::Path};

use common::{all, copy, files, open, small, store};
use downburst_log::{FeedLog, LogOptions, ProductLog, Recovery};
use downburst_model::Sequence;

const SIZES: [usize; 8] = [100, 0, 1, 511, 8, 3_000, 17, 64];

struct Written {
    dir: tempfile::TempDir,
    /// The start and end of each product's record in the only segment.
    places: Vec<(usize, usize)>,
}

fn written() -> Written {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), LogOptions { segment_bytes: 16_384, ..small() });
    let mut begin = 40;
    let mut places = Vec::new();
    for (n, size) in SIZES.iter().enumerate() {
        store(&log, &format!("{n}"), &vec![n as u8 + 1; *size]);
        let end = log.stat().bytes as usize;
        places.push((begin, end));
        begin = end.next_multiple_of(8);
    }
    Written { dir, places }
}

/// Reopens a copy after `change` to its segment; returns the numbers of the products that are there.
fn survivors(written: &Written, change: impl FnOnce(&Path)) -> (BTreeSet<usize>, Recovery) {
    let copy = copy(written.dir.path());
    change(&files(copy.path(), "segment")[0]);
    let (log, recovery) = open(copy.path(), small());
    check_contents(&log);
    let found = all(&log).iter().map(|entry| entry.info.id.as_str().parse().unwrap()).collect();
    let next = store(&log, "next", b"next");
    assert!(next > Sequence(SIZES.len() as u64), "{next:?} was given before");
    drop(log);
    let (log, again) = open(copy.path(), small());
    check_contents(&log);
    assert_eq!((again.cut_bytes, again.damaged.len()), (0, 0), "recovery is complete the first time");
    assert_eq!(all(&log).last().unwrap().whole().as_deref(), Some(&b"next"[..]));
    (found, recovery)
}

fn check_contents(log: &FeedLog) {
    for entry in all(log).iter().filter(|entry| entry.info.id.as_str() != "next") {
        let n: usize = entry.info.id.as_str().parse().unwrap();
        assert_eq!(entry.info.key.sequence, Sequence(n as u64 + 1));
        assert_eq!(entry.whole().as_deref(), Some(&vec![n as u8 + 1; SIZES[n]][..]), "product {n}");
    }
}

fn interesting(places: &[(usize, usize)]) -> BTreeSet<usize> {
    let around =
        |at: usize| [at.saturating_sub(9), at - 1, at, at + 1, at + 7, at + 8, at + 33, at + 45, at + 120];
    places.iter().flat_map(|(begin, end)| [around(*begin), around(*end)]).flatten().collect()
}

#[test]
fn a_segment_may_end_anywhere() {
    let written = written();
    for cut in interesting(&written.places) {
        let whole: BTreeSet<usize> = (0..SIZES.len()).filter(|n| written.places[*n].1 <= cut).collect();
        let begun = written.places.iter().filter(|(begin, _)| *begin < cut).count();
        let shortened =
            |path: &Path| fs::File::options().write(true).open(path).unwrap().set_len(cut as u64).unwrap();
        let (found, _) = survivors(&written, shortened);
        assert_eq!(found, whole, "shortened at {cut}");
        let (found, _) = survivors(&written, |path| common::overwrite(path, |bytes| bytes[cut..].fill(0)));
        assert!(
            found.is_superset(&whole) && found == (0..found.len()).collect(),
            "zero from {cut}: {found:?}"
        );
        assert!(found.len() <= begun, "zero from {cut}: {found:?}");
    }
}

#[test]
fn rubbish_behind_the_last_record_is_cut() {
    let written = written();
    let end = written.places.last().unwrap().1;
    let rubbish = |path: &Path| common::overwrite(path, |bytes| bytes[end + 8..end + 500].fill(0x55));
    let (found, recovery) = survivors(&written, rubbish);
    assert_eq!((found.len(), recovery.cut_bytes), (SIZES.len(), 500));
}

#[test]
fn a_flipped_bit_costs_one_product_at_most() {
    let written = written();
    let end = written.places.last().unwrap().1;
    for at in (40..end).step_by(11) {
        let (found, recovery) =
            survivors(&written, |path| common::overwrite(path, |bytes| bytes[at] ^= 0x10));
        let hit = written.places.iter().position(|(begin, end)| (*begin..*end).contains(&at));
        let lost: Vec<usize> = (0..SIZES.len()).filter(|n| !found.contains(n)).collect();
        assert!(lost.is_empty() || lost == [hit.unwrap()], "byte {at}: lost {lost:?}");
        assert_eq!(
            recovery.damaged.is_empty() && recovery.cut_bytes == 0,
            lost.is_empty(),
            "byte {at}: {recovery:?}"
        );
    }
}
