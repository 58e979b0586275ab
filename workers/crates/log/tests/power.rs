//! Losing power: writes that the disk had not confirmed are lost or partly present, in any order.
//!
//! A story of appends, retention and restarts is recorded step by step. The power is cut before a step, the
//! directories that a cut can leave are built from the trace, and the ordinary code opens them.
//! `DOWNBURST_CUT_STATES` sets the number of different ones; `DOWNBURST_SEED` replays.
// Helpers of tests may fail as loudly as tests.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use bytes::Bytes;
use common::{all, open, small, try_open};
use downburst_log::{
    Appended, Durability, FeedLog, Finding, Flaw, LogOptions, LogReader, ProductLog, Retention, contract,
    disk::{Chances, Planted, Recording, Trace},
};
use downburst_model::WallMicros;

/// The event at a mark of the trace.
enum Event {
    /// A sequence was assigned, and its product acknowledged.
    Given(u64),
    /// Retention began: these may be gone from here on.
    Evicted(BTreeSet<u64>),
}

/// A log's life, recorded.
struct Story {
    durability: Durability,
    trace: Trace,
    events: Vec<Event>,
    _root: tempfile::TempDir,
}

impl Story {
    fn tell(durability: Durability, seed: u64, planted: Planted) -> Self {
        let root = tempfile::tempdir().unwrap();
        let recording = Recording::begin(root.path(), planted).unwrap();
        let mut teller = Teller { recording, events: Vec::new(), next: 0, chances: Chances::new(seed) };
        let options = options(durability);
        for _ in 0..2 {
            let (log, _) = open(&root.path().join(LOG), options.clone());
            for _ in 0..4 {
                teller.one_thing(&log, &options);
            }
            if teller.chances.below(2) == 0 {
                log.close().unwrap();
            }
        }
        let trace = teller.recording.trace();
        check_that_nothing_passed_the_layer_by(&trace, root.path());
        Self { durability, trace, events: teller.events, _root: root }
    }

    /// Builds one state and opens it with the ordinary code; returns its digest and the fault, if any.
    fn cut(&self, at: usize, seed: u64) -> ([u8; 32], Option<String>) {
        let dir = tempfile::tempdir().unwrap();
        let state = self.trace.cut(at, &mut Chances::new(seed), dir.path()).unwrap();
        (state, self.check(at, dir.path()).err())
    }

    fn check(&self, at: usize, root: &Path) -> Result<(), String> {
        let (mut given, mut gone) = (BTreeSet::new(), BTreeSet::new());
        for label in self.trace.marks_before(at) {
            match &self.events[label as usize] {
                Event::Given(sequence) => drop(given.insert(*sequence)),
                Event::Evicted(sequences) => gone.extend(sequences),
            }
        }
        let (log, _) =
            try_open(&root.join(LOG), options(self.durability)).map_err(|error| error.to_string())?;
        let mut found = BTreeMap::new();
        for entry in all(&log) {
            let right = content(entry.info.id.as_str().parse().unwrap());
            if entry.whole().as_deref().is_some_and(|bytes| bytes != right) {
                return Err(format!("{} is not what was given", entry.info.id));
            }
            found.insert(entry.info.key.sequence.0, entry.bytes.is_some());
        }
        let lost = given.difference(&gone).find(|sequence| found.get(*sequence) != Some(&true));
        if let (Durability::Power, Some(sequence)) = (self.durability, lost) {
            return Err(format!("{sequence} was acknowledged and is gone"));
        }
        let next = append(&log, &[1_000_000])[0];
        if given.last().is_some_and(|last| *last >= next) {
            return Err(format!("{next} may have been given before"));
        }
        log.close().map_err(|error| error.to_string())?;
        let mut flaws = Vec::new();
        let mut note = |finding| match finding {
            Finding::Flaw(Flaw { path, offset, sentence, .. }) => flaws.push((path, offset, sentence)),
            Finding::Read(_) => {}
        };
        LogReader::open(&root.join(LOG)).unwrap().verify(&mut note).unwrap();
        if flaws.is_empty() { Ok(()) } else { Err(format!("{flaws:?}")) }
    }
}

struct Teller {
    recording: Recording,
    events: Vec<Event>,
    next: usize,
    chances: Chances,
}

impl Teller {
    fn one_thing(&mut self, log: &FeedLog, options: &LogOptions) {
        match self.chances.below(6) {
            0 => self.retain(log, options),
            1 => {
                let ids = self.ids(1);
                let bytes = content(ids[0]);
                let product = contract::product(&ids[0].to_string()).unwrap();
                let appended = log.append(product, &mut bytes.as_slice(), &|| WallMicros(0)).unwrap();
                let Appended::Stored { sequence, .. } = appended else { panic!("{ids:?} is no duplicate") };
                self.mark(Event::Given(sequence.0));
            }
            _ => {
                let count = 1 + self.chances.below(6) as usize;
                let ids = self.ids(count);
                append(log, &ids).into_iter().for_each(|sequence| self.mark(Event::Given(sequence)));
            }
        }
    }

    /// The evicted sequences are known only afterwards, but their mark precedes the eviction.
    fn retain(&mut self, log: &FeedLog, options: &LogOptions) {
        let ceiling = if self.chances.below(3) == 0 { 15_000 } else { 1 << 30 };
        log.set_options(LogOptions {
            retention: Retention { bytes: ceiling, ..options.retention },
            ..options.clone()
        });
        let had: BTreeSet<u64> = all(log).iter().map(|entry| entry.info.key.sequence.0).collect();
        self.mark(Event::Evicted(BTreeSet::new()));
        log.retain(WallMicros(0)).unwrap();
        let has =
            |entry: &downburst_log::LogEntry| entry.bytes.is_some().then_some(entry.info.key.sequence.0);
        let left: BTreeSet<u64> = all(log).iter().filter_map(has).collect();
        if let Some(Event::Evicted(gone)) = self.events.last_mut() {
            *gone = had.difference(&left).copied().collect();
        }
        log.set_options(options.clone());
    }

    fn mark(&mut self, event: Event) {
        self.recording.mark(self.events.len() as u64);
        self.events.push(event);
    }

    fn ids(&mut self, count: usize) -> Vec<usize> {
        self.next += count;
        (self.next - count..self.next).collect()
    }
}

#[test]
fn under_power_nothing_acknowledged_is_lost() {
    cut_states(Durability::Power);
}

#[test]
fn under_process_what_is_there_is_whole_and_no_sequence_is_given_twice() {
    cut_states(Durability::Process);
}

#[test]
fn a_missing_synchronisation_of_a_file_is_found() {
    let (syncs, _) = Story::tell(Durability::Power, PLANTED_SEED, Planted::Nothing).trace.syncs();
    check_plants(syncs, &[3, 4, 5], Planted::FileSync);
}

#[test]
fn a_missing_synchronisation_of_a_directory_is_found() {
    let (_, syncs) = Story::tell(Durability::Power, PLANTED_SEED, Planted::Nothing).trace.syncs();
    check_plants(syncs, &[0, 1], Planted::DirectorySync);
}

/// Finds the synchronisations that no other one makes up for. If many states are requested, all are tried, and the
/// findings are printed.
fn check_plants(syncs: usize, needed: &[usize], planted: impl Fn(usize) -> Planted) {
    let tried: Vec<usize> =
        if number("DOWNBURST_CUT_STATES") >= Some(1_000) { (0..syncs).collect() } else { needed.to_vec() };
    let found: Vec<usize> = tried.into_iter().filter(|n| is_found(planted(*n))).collect();
    println!("{found:?} of {syncs} synchronisations were found to be missing");
    assert!(needed.iter().all(|n| found.contains(n)), "{found:?}");
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// True if the checker detects that one synchronisation of the story is left out.
fn is_found(planted: Planted) -> bool {
    let story = Story::tell(Durability::Power, PLANTED_SEED, planted);
    let steps = story.trace.steps();
    (0..MOST_TRIES).any(|seed| {
        let at = Chances::new(seed).below(steps as u64 + 1) as usize;
        story.cut(at, seed).1.is_some()
    })
}

/// Cuts until the requested number of different states was opened.
fn cut_states(durability: Durability) {
    let wanted = number("DOWNBURST_CUT_STATES").unwrap_or(60) as usize;
    let first = number("DOWNBURST_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!(
        "replay: DOWNBURST_CUT_STATES={wanted} DOWNBURST_SEED={first} cargo test -p downburst-log --test power"
    );
    let mut states = BTreeSet::new();
    for seed in first.. {
        let story = Story::tell(durability, seed, Planted::Nothing);
        let mut chances = Chances::new(seed);
        for cut in 0..CUTS_PER_STORY {
            let at = chances.below(story.trace.steps() as u64 + 1) as usize;
            let (state, wrong) = story.cut(at, seed.wrapping_add(cut));
            assert_eq!(wrong, None, "seed {seed}, cut {cut} before step {at} of {}", story.trace.steps());
            states.insert(state);
        }
        if states.len() >= wanted {
            break;
        }
    }
    println!("{} different states were opened", states.len());
}

/// Checks that the trace reproduces the directory: no change bypassed the layer.
fn check_that_nothing_passed_the_layer_by(trace: &Trace, root: &Path) {
    let replayed = tempfile::tempdir().unwrap();
    trace.replay(replayed.path()).unwrap();
    assert_eq!(snapshot(replayed.path()), snapshot(root));
}

fn snapshot(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(root).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_dir() {
            files.extend(
                snapshot(&entry.path()).into_iter().map(|(inner, bytes)| (format!("{name}/{inner}"), bytes)),
            );
        } else {
            files.insert(name, fs::read(entry.path()).unwrap());
        }
    }
    files
}

fn append(log: &FeedLog, ids: &[usize]) -> Vec<u64> {
    let named = |n: &usize| (contract::product(&format!("{n}")).unwrap(), Bytes::from(content(*n)));
    let appended = log.append_all(ids.iter().map(named).collect(), &|| WallMicros(0));
    let given = |(n, appended): (&usize, Result<Appended, _>)| match appended.unwrap() {
        Appended::Stored { sequence, .. } => sequence.0,
        Appended::Duplicate { of } => panic!("{n} is a duplicate of {of:?}"),
    };
    ids.iter().zip(appended).map(given).collect()
}

fn content(n: usize) -> Vec<u8> {
    format!("{n} ").repeat(1 + n * 131 % 900).into_bytes()
}

fn options(durability: Durability) -> LogOptions {
    // About half of the products have bodies.
    LogOptions { durability, segment_bytes: 12_000, sequence_block: 10, body_bytes: 1_500, ..small() }
}

/// A new directory inside a new one.
const LOG: &str = "log/TEST";
const CUTS_PER_STORY: u64 = 12;
const PLANTED_SEED: u64 = 7;
/// States that are tried before a planted fault counts as not found.
const MOST_TRIES: u64 = 150;
