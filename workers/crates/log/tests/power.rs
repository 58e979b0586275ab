//! Losing power: what the disk had not confirmed is gone or stands there in part, in any order.
//!
//! A copy of the directory is taken at each moment that the kernel confirmed (an acknowledged append under `Power`, a
//! sealed segment under `Process`) and another at the cut. After the cut each block of a file has what it had at the last
//! confirmation or what it was to have; the file's length is one of the two.
// Helpers of tests may fail as loudly as tests.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use bytes::Bytes;
use common::{all, open, small};
use downburst_log::{Appended, Durability, FeedLog, LogOptions, LogReader, ProductLog, contract};
use downburst_model::{Sequence, WallMicros};
use proptest::{prelude::*, test_runner::FileFailurePersistence};

type Files = BTreeMap<String, Vec<u8>>;
type Given = BTreeMap<u64, Vec<u8>>;

fn snapshot(dir: &Path) -> Files {
    let read = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry.unwrap().path();
        (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(path).unwrap())
    };
    fs::read_dir(dir).unwrap().map(read).collect()
}

/// What the disk holds after a cut between two states; `chance` decides for each block.
fn after_the_cut(synced: &Files, cut: &Files, chance: &mut dyn FnMut() -> bool) -> Files {
    let torn = |(name, new): (&String, &Vec<u8>)| {
        let old = synced.get(name);
        // A name that was never synchronised may be missing; one that is replaced is there, as the old or the new file.
        if old.is_none() && chance() {
            return None;
        }
        if !name.ends_with(".segment") {
            let contents = if chance() { new } else { old.unwrap_or(new) };
            return Some((name.clone(), contents.clone()));
        }
        let empty = Vec::new();
        let old = old.unwrap_or(&empty);
        let length = if chance() || old.is_empty() { new.len() } else { old.len() };
        let mut contents = vec![0; length];
        for at in (0..length).step_by(BLOCK_BYTES) {
            let end = (at + BLOCK_BYTES).min(length);
            let from = if chance() { new } else { old };
            let known = from.get(at..end.min(from.len()).max(at)).unwrap_or_default();
            contents[at..at + known.len()].copy_from_slice(known);
        }
        Some((name.clone(), contents))
    };
    cut.iter().filter_map(torn).collect()
}

fn restore(files: &Files) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    files.iter().for_each(|(name, contents)| fs::write(dir.path().join(name), contents).unwrap());
    dir
}

fn append(log: &FeedLog, ids: &[usize]) -> Given {
    let named = |n: &usize| (contract::product(&format!("{n}")).unwrap(), Bytes::from(content(*n)));
    let appended = log.append_all(ids.iter().map(named).collect(), &|| WallMicros(0));
    let given = |(n, appended): (&usize, Result<Appended, _>)| match appended.unwrap() {
        Appended::Stored { sequence, .. } => (sequence.0, content(*n)),
        Appended::Duplicate { of } => panic!("{n} is a duplicate of {of:?}"),
    };
    ids.iter().zip(appended).map(given).collect()
}

fn content(n: usize) -> Vec<u8> {
    format!("{n} ").repeat(1 + n * 131 % 900).into_bytes()
}

/// Everything that is there is as it was given, the log verifies, and goes on above all that was ever given.
fn check(files: &Files, options: &LogOptions, given: &Given) -> BTreeSet<u64> {
    let dir = restore(files);
    let (log, _) = open(dir.path(), options.clone());
    let entries = all(&log);
    for entry in &entries {
        let sequence = entry.info.key.sequence.0;
        assert_eq!(entry.bytes.as_deref(), given.get(&sequence).map(Vec::as_slice), "{sequence}");
    }
    let next = append(&log, &[1_000_000]);
    assert!(next.keys().next() > given.keys().last(), "{:?} may have been given before", next.keys().next());
    log.close().unwrap();
    let verified = LogReader::open(dir.path()).unwrap().verify(&mut |_| ()).unwrap();
    assert_eq!((verified.flaws, verified.products), (0, entries.len() as u64 + 1));
    entries.iter().map(|entry| entry.info.key.sequence.0).collect()
}

/// Groups of products; whoever calls decides what is confirmed after each.
fn run(
    groups: &[u8],
    durability: Durability,
    mut confirmed: impl FnMut(&FeedLog, &Path, &Given),
) -> (Files, Given, LogOptions) {
    let dir = tempfile::tempdir().unwrap();
    let options = LogOptions { durability, segment_bytes: 20_000, ..small() };
    let (log, _) = open(dir.path(), options.clone());
    let (mut given, mut next) = (Given::new(), 0);
    for size in groups {
        let ids: Vec<usize> = (next..next + usize::from(*size)).collect();
        next += ids.len();
        given.extend(append(&log, &ids));
        confirmed(&log, dir.path(), &given);
    }
    (snapshot(dir.path()), given, options)
}

/// A small generator of chances, so that a failure is replayed by its numbers alone.
fn chances(seed: u64) -> impl FnMut() -> bool {
    let mut state = seed | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 63 == 1
    }
}

proptest! {
    // A failing run prints its numbers and a seed; a line with the seed in this file's regressions replays it.
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(40),
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn under_power_nothing_acknowledged_is_lost(
        groups in prop::collection::vec(1..7_u8, 1..8), last in 1..7_u8, seed: u64
    ) {
        let mut states = Vec::new();
        let all_groups: Vec<u8> = groups.iter().copied().chain([last]).collect();
        let (cut, given, options) = run(&all_groups, Durability::Power, |_, dir, given| {
            states.push((snapshot(dir), given.clone()));
        });
        let (synced, acknowledged) = &states[groups.len() - 1];
        let found = check(&after_the_cut(synced, &cut, &mut chances(seed)), &options, &given);
        for sequence in acknowledged.keys() {
            prop_assert!(found.contains(sequence), "{sequence} was acknowledged and is gone");
        }
    }

    #[test]
    fn under_process_only_what_was_not_sealed_is_lost(
        groups in prop::collection::vec(1..7_u8, 2..9), sealed_after in 0..8_usize, seed: u64
    ) {
        let (mut turn, mut state) = (0, None);
        let (cut, given, options) = run(&groups, Durability::Process, |log, dir, _| {
            if turn == sealed_after.min(groups.len() - 1) {
                log.retain(WallMicros(0)).unwrap();
                state = Some((snapshot(dir), sealed_to(dir)));
            }
            turn += 1;
        });
        let (synced, sealed_to) = state.unwrap();
        let found = check(&after_the_cut(&synced, &cut, &mut chances(seed)), &options, &given);
        for sequence in given.keys().filter(|sequence| **sequence <= sealed_to) {
            prop_assert!(found.contains(sequence), "{sequence} was sealed and is gone");
        }
    }
}

/// The last sequence in a sealed segment: sealing synchronises.
fn sealed_to(dir: &Path) -> u64 {
    let sealed = common::files(dir, "index").len();
    let open_base = common::files(dir, "segment").get(sealed).map(|path| {
        let stem = path.file_stem().unwrap().to_str().unwrap();
        Sequence(stem.parse().unwrap())
    });
    open_base.map_or(0, |base| base.0 - 1)
}

/// Smaller than a real block, so that records are torn in many ways.
const BLOCK_BYTES: usize = 512;
