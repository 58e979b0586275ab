//! Random runs against a list in memory: append one or many under changing rules, fail, read, find, resize,
//! retain, close, crash.
// Helpers of tests may fail as loudly as tests.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::{
    collections::BTreeMap,
    io::{self, Read},
};

use bytes::Bytes;
use common::{HOUR, append_at, files, open, overwrite, small};
use downburst_log::{Appended, DuplicateRule, FeedLog, LogOptions, ProductLog, Retention, contract};
use downburst_model::{Sequence, WallMicros};
use proptest::{prelude::*, test_runner::FileFailurePersistence};

#[derive(Clone, Debug)]
enum Operation {
    Append { id: u8, content: u8, size: usize },
    AppendAll { first: u8, products: Vec<(u8, usize)> },
    BreakOff { size: usize },
    Close,
    FindTime { back: i64 },
    Resize { ceiling: u64, hours: i64 },
    SetRule(DuplicateRule),
    Crash { rubbish: bool },
    Read { after: u64, entries: usize, bytes: usize },
    Retain { hours: i64 },
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        12 => (0..6_u8, 1..5_u8, 0..3_000_usize)
            .prop_map(|(id, content, size)| Operation::Append { id, content, size: size.saturating_sub(500) }),
        4 => (0..6_u8, prop::collection::vec((1..5_u8, 0..3_000_usize), 0..12))
            .prop_map(|(first, products)| Operation::AppendAll { first, products }),
        1 => (0..300 * HOUR).prop_map(|back| Operation::FindTime { back }),
        1 => (30_000..120_000_u64, 1..9_i64).prop_map(|(ceiling, hours)| Operation::Resize { ceiling, hours }),
        1 => prop::sample::select(vec![
            DuplicateRule::IdAndContent, DuplicateRule::Id, DuplicateRule::Content, DuplicateRule::None,
        ]).prop_map(Operation::SetRule),
        1 => (0..20_000_usize).prop_map(|size| Operation::BreakOff { size }),
        1 => Just(Operation::Close),
        1 => any::<bool>().prop_map(|rubbish| Operation::Crash { rubbish }),
        3 => (0..400_u64, 1..9_usize, 0..9_000_usize)
            .prop_map(|(after, entries, bytes)| Operation::Read { after, entries, bytes }),
        2 => (0..4_i64).prop_map(|hours| Operation::Retain { hours }),
    ]
}

struct ModelProduct {
    id: String,
    content: Vec<u8>,
    stored: i64,
    has_bytes: bool,
}

struct Run {
    dir: tempfile::TempDir,
    log: Option<FeedLog>,
    now: i64,
    products: BTreeMap<u64, ModelProduct>,
    highest: u64,
    forgotten_to: u64,
    options: LogOptions,
}

/// More zeros than a header of an empty product ends with.
const PADDING_BYTES: usize = 128;

fn options() -> LogOptions {
    let retention = Retention { hours: 5.0, bytes: 60_000 };
    LogOptions {
        retention,
        segment_bytes: 9_000,
        sequence_block: 5,
        memory_hours: 9.0,
        body_bytes: 1_200,
        ..small()
    }
}

impl Run {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let log = Some(open(dir.path(), options()).0);
        let options = options();
        Self { dir, log, now: 0, products: BTreeMap::new(), highest: 0, forgotten_to: 0, options }
    }

    fn log(&self) -> &FeedLog {
        self.log.as_ref().unwrap()
    }

    fn apply(&mut self, operation: &Operation) {
        match *operation {
            Operation::Append { id, content, size } => self.append(id, &vec![content; size]),
            Operation::AppendAll { first, ref products } => self.append_all(first, products),
            Operation::FindTime { back } => self.find_time(self.now - back),
            Operation::Resize { ceiling, hours } => {
                self.options.retention = Retention { hours: hours as f64, bytes: ceiling };
                self.log().set_options(self.options.clone());
            }
            Operation::SetRule(rule) => {
                self.options.duplicate_rule = rule;
                self.log().set_options(self.options.clone());
            }
            Operation::BreakOff { size } => self.break_off(size),
            Operation::Close => {
                self.log().close().unwrap();
                self.reopen(true);
            }
            Operation::Crash { rubbish } => self.crash(rubbish),
            Operation::Read { after, entries, bytes } => self.read(after, entries, bytes),
            Operation::Retain { hours } => self.retain(hours),
        }
    }

    fn append(&mut self, id: u8, content: &[u8]) {
        self.now += 1;
        let appended = append_at(self.log(), &format!("product {id}"), content, self.now);
        self.settle(id, content, appended);
        assert_eq!(self.log().head(), Sequence(self.highest));
    }

    fn append_all(&mut self, first: u8, products: &[(u8, usize)]) {
        self.now += 1;
        let numbered = products
            .iter()
            .enumerate()
            .map(|(n, (content, size))| ((first + n as u8) % 6, vec![*content; size.saturating_sub(500)]));
        let numbered: Vec<(u8, Vec<u8>)> = numbered.collect();
        let named = |(id, content): &(u8, Vec<u8>)| {
            (contract::product(&format!("product {id}")).unwrap(), Bytes::from(content.clone()))
        };
        let group = numbered.iter().map(named).collect();
        let appended = self.log().append_all(group, &|| WallMicros(self.now));
        assert_eq!(appended.len(), numbered.len());
        for ((id, content), appended) in numbered.iter().zip(appended) {
            self.settle(*id, content, appended.unwrap());
        }
    }

    /// Compares the result of an append with the model's expectation, and updates the model.
    fn settle(&mut self, id: u8, content: &[u8], appended: Appended) {
        let id = format!("product {id}");
        let rule = self.options.duplicate_rule;
        let same = |(_, known): &(&u64, &ModelProduct)| match rule {
            DuplicateRule::Id => known.id == id,
            DuplicateRule::Content => known.content == content && !content.is_empty(),
            DuplicateRule::IdAndContent => known.id == id && known.content == content && !content.is_empty(),
            _ => false,
        };
        let twin = self.products.iter().rev().find(same).map(|(sequence, _)| *sequence);
        match (appended, twin) {
            (Appended::Duplicate { of }, Some(twin)) => assert_eq!(of, Sequence(twin)),
            (Appended::Stored { sequence, info }, None) => {
                assert!(sequence.0 > self.highest, "{sequence:?} after {}", self.highest);
                assert_eq!(info.stored, WallMicros(self.now));
                self.highest = sequence.0;
                let known = ModelProduct { id, content: content.to_vec(), stored: self.now, has_bytes: true };
                self.products.insert(sequence.0, known);
            }
            (appended, twin) => panic!("{appended:?}, but the model knows {twin:?}"),
        }
    }

    fn find_time(&self, moment: i64) {
        let after = self.log().find_time(WallMicros(moment)).0;
        let first = self.products.iter().find(|(_, known)| known.stored >= moment);
        match first {
            Some((sequence, _)) => assert_eq!(after, sequence - 1),
            None => assert_eq!(after, self.highest),
        }
    }

    fn break_off(&mut self, size: usize) {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("broken"))
            }
        }
        let mut bytes = io::repeat(0xd8).take(size as u64).chain(Broken);
        let product = contract::product("broken").unwrap();
        assert!(self.log().append(product, &mut bytes, &|| WallMicros(0)).is_err());
    }

    fn crash(&mut self, rubbish: bool) {
        self.log = None;
        if let (true, [.., last]) = (rubbish, &files(self.dir.path(), "segment")[..]) {
            overwrite(last, |contents| {
                let used = contents.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
                let behind = used + PADDING_BYTES;
                contents.resize(contents.len().max(behind + 64), 0);
                contents[behind..behind + 64].fill(0xd8);
            });
        }
        self.reopen(false);
    }

    fn reopen(&mut self, closed: bool) {
        self.log = None;
        let (log, recovery) = open(self.dir.path(), self.options.clone());
        assert!(recovery.damaged.is_empty() && recovery.quarantined.is_empty(), "{recovery:?}");
        assert!(recovery.clean || !closed);
        self.log = Some(log);
    }

    fn read(&self, after: u64, limit_entries: usize, limit_bytes: usize) {
        let batch = self.log().read(Sequence(after), Sequence(u64::MAX), limit_bytes, limit_entries).unwrap();
        let expected: Vec<u64> = self
            .products
            .range(after + 1..)
            .map(|(sequence, _)| *sequence)
            .take(batch.entries.len())
            .collect();
        let found: Vec<u64> = batch.entries.iter().map(|entry| entry.info.key.sequence.0).collect();
        assert_eq!(found, expected);
        assert!(found.len() <= limit_entries);
        let bytes: usize =
            batch.entries.iter().filter_map(|entry| entry.bytes.as_ref()).map(|it| it.len()).sum();
        assert!(bytes <= limit_bytes || found.len() == 1);
        let next = self.products.range(batch.read_to.0 + 1..).next();
        assert!(!found.is_empty() || next.is_none(), "an empty read, but {:?} follows", next.map(|it| it.0));
        assert_eq!(batch.forgotten.is_some(), after < self.forgotten_to);
    }

    fn retain(&mut self, hours: i64) {
        self.now += hours * HOUR;
        let retained = self.log().retain(WallMicros(self.now)).unwrap();
        let mut evicted = 0;
        for (first, last) in retained.evicted {
            for known in self.products.range_mut(first.0..=last.0).map(|(_, known)| known) {
                assert!(std::mem::take(&mut known.has_bytes), "evicted twice");
                evicted += 1;
            }
        }
        assert_eq!(evicted, retained.products);
        if let Some(to) = retained.forgotten_to {
            self.forgotten_to = to.0;
            self.products.retain(|sequence, _| *sequence > to.0);
        }
        let stat = self.log().stat();
        assert!(stat.bytes + stat.memory_bytes <= stat.ceiling_bytes, "{stat:?}");
        let kept = |known: &ModelProduct| {
            known.has_bytes
                && known.stored < self.now - (self.options.retention.hours * 1.125) as i64 * HOUR - HOUR
        };
        assert!(!self.products.values().any(kept), "bytes outlived their hours");
    }

    fn compare(&self) {
        let entries = common::all(self.log());
        assert_eq!(entries.len(), self.products.len());
        for (entry, (sequence, known)) in entries.iter().zip(&self.products) {
            assert_eq!((entry.info.key.sequence.0, entry.info.id.as_str()), (*sequence, known.id.as_str()));
            assert_eq!(
                (entry.info.stored.0, entry.info.digest),
                (known.stored, contract::digest(&known.content))
            );
            assert_eq!(entry.whole().as_deref(), known.has_bytes.then_some(&known.content[..]), "{sequence}");
        }
        assert_eq!(self.log().head().0, self.highest);
    }
}

proptest! {
    // A failing run prints its operations and a seed, which it keeps in this file's regressions; this replays it:
    // `cargo test --manifest-path workers/Cargo.toml -p downburst-log --test model`
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(48),
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    })]
    #[test]
    fn behaves_like_a_list(operations in prop::collection::vec(operation(), 1..120)) {
        let mut run = Run::new();
        for operation in &operations {
            run.apply(operation);
            run.compare();
        }
        run.crash(false);
        run.compare();
    }
}
