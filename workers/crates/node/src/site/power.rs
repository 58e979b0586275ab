//! Power cuts at a site: the ordinary code opens the directory as a cut left it.
//!
//! A site's life is recorded step by step: an enrolment, products that are stored, shown and settled,
//! checkpoints, restarts. The power is cut before a step. `DOWNBURST_CUT_STATES` sets the number of different
//! states opened; `DOWNBURST_SEED` replays a run.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use downburst_log::disk::{Chances, Planted, Recording, Trace};
use downburst_log::{Appended, FeedLog, NewProduct, ProductLog as _, Retention, SourceStamp, contract};
use downburst_model::{Epoch, FeedName, ProductKey, Sequence, SiteName, WallMicros};
use downburst_session::FeedPosition;
use downburst_site::StoredPosition;

use super::files::{BOOT, DoneTo, FileMode, Files, Placing};
use super::state::{keep_one, load_positions};
use super::store::Logs;
use super::{HubPlace, Identity, prepare};
use crate::clock::Clock;

/// The events before a mark of the trace.
enum Event {
    /// The hub knows the site by the credential that it presented.
    Enrolled(String),
    /// The site's log assigned this sequence.
    Given(u64),
    /// The hub's sequences up to this one are in a checkpoint.
    Settled(u64),
}

struct Story {
    trace: Trace,
    events: Vec<Event>,
    _root: tempfile::TempDir,
}

struct Teller {
    recording: Recording,
    events: Vec<Event>,
    chances: Chances,
    /// The hub's newest sequence.
    head: u64,
}

impl Story {
    fn tell(seed: u64, planted: Planted) -> Self {
        BOOT.set(Some(1));
        let root = tempfile::tempdir().unwrap();
        let recording = Recording::begin(root.path(), planted).unwrap();
        let mut teller = Teller { recording, events: Vec::new(), chances: Chances::new(seed), head: 0 };
        for _ in 0..2 {
            teller.one_run(root.path());
        }
        Self { trace: teller.recording.trace(), events: teller.events, _root: root }
    }

    fn cut(&self, at: usize, seed: u64) -> ([u8; 32], Option<String>) {
        let dir = tempfile::tempdir().unwrap();
        let state = self.trace.cut(at, &mut Chances::new(seed), dir.path()).unwrap();
        BOOT.set(Some(2));
        (state, self.check(at, dir.path()).err())
    }

    fn check(&self, at: usize, root: &Path) -> Result<(), String> {
        let (mut enrolled, mut given, mut settled) = (None, 0, 0);
        for label in self.trace.marks_before(at) {
            match &self.events[label as usize] {
                Event::Enrolled(secret) => enrolled = Some(secret),
                Event::Given(sequence) => given = given.max(*sequence),
                Event::Settled(to) => settled = settled.max(*to),
            }
        }
        prepare(root)?;
        if let Some(secret) = enrolled {
            let identity = Identity::load(&place(root), None)?;
            let credentials = identity.credentials;
            assert!(!credentials.is_new() && credentials.shown() == secret, "the credential is another one");
        }
        let logs = logs(root);
        let log = logs.of(&feed()).map_err(|error| error.to_string())?;
        check_checkpoint(&place(root).state, &log, settled)?;
        let mut files = files(root, &logs);
        files.show_all();
        check_files(root, &log)?;
        let next = store(&log, 9_999);
        if next > given { Ok(()) } else { Err(format!("{next} was given before")) }
    }
}

/// A checkpoint claims no more than the log holds, and no less than was made durable.
fn check_checkpoint(state: &Path, log: &FeedLog, settled: u64) -> Result<(), String> {
    let stored = load_positions(state).whole.remove(&feed());
    let says: BTreeSet<u64> = stored
        .iter()
        .flat_map(|stored| (1..=settled.max(500)).filter(|it| stored.position.settled.contains(*it)))
        .collect();
    if !(1..=settled).all(|number| says.contains(&number)) {
        return Err(format!("a checkpoint of {settled} products is gone"));
    }
    let missing = says.iter().find(|number| log.find_source(&key(**number)).ok().flatten().is_none());
    missing.map_or(Ok(()), |number| Err(format!("{number} is settled, and the log lacks it")))
}

/// Every product in the log has its file, and every file is complete.
fn check_files(root: &Path, log: &FeedLog) -> Result<(), String> {
    let standing = standing(&root.join("received"));
    for (number, contents) in &standing {
        if *contents != content(*number) {
            return Err(format!("the file of {number} is not whole: {} bytes", contents.len()));
        }
    }
    for entry in log.read(Sequence(0), log.head(), usize::MAX, usize::MAX).unwrap().entries {
        let number = entry.source.as_ref().unwrap().key.sequence.0;
        if entry.whole().as_deref() != Some(content(number).as_slice()) {
            return Err(format!("{number} is not what was stored"));
        }
        if !standing.contains_key(&number) {
            return Err(format!("{number} is stored and was never shown"));
        }
    }
    Ok(())
}

fn standing(received: &Path) -> BTreeMap<u64, Vec<u8>> {
    let home = received.join("X");
    let read = |path: PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let number = name.split(['-', '_']).nth(1).unwrap().parse().unwrap();
        (number, fs::read(path).unwrap())
    };
    fs::read_dir(home).into_iter().flatten().map(|entry| read(entry.unwrap().path())).collect()
}

impl Teller {
    fn one_run(&mut self, root: &Path) {
        prepare(root).unwrap();
        self.enrol(root);
        let logs = logs(root);
        let log = logs.of(&feed()).unwrap();
        let mut files = files(root, &logs);
        for _ in 0..7 {
            match self.chances.below(6) {
                0 => self.checkpoint(root, &log),
                1 => files.prove_now(),
                2 | 3 => files.show_all(),
                _ => self.store(&log),
            }
        }
        if self.chances.below(2) == 0 {
            files.show_all();
            files.prove_now();
            log.close().unwrap();
        }
    }

    fn enrol(&mut self, root: &Path) {
        if !self.events.is_empty() {
            return;
        }
        let token = tempfile::NamedTempFile::new().unwrap();
        fs::write(token.path(), format!("dbt1.{}.one", "ab".repeat(32))).unwrap();
        let mut identity = Identity::load(&place(root), Some(token.path())).unwrap();
        identity.credentials.accepted(&SiteName::parse("unl").unwrap());
        identity.save().unwrap();
        let secret = identity.credentials.shown().to_owned();
        self.mark(Event::Enrolled(secret));
    }

    fn store(&mut self, log: &FeedLog) {
        for _ in 0..=self.chances.below(4) {
            self.head += 1;
            let sequence = store(log, self.head);
            self.mark(Event::Given(sequence));
        }
    }

    fn checkpoint(&mut self, root: &Path, log: &FeedLog) {
        let settled = [(0, self.head)].into_iter().collect();
        let position = FeedPosition { feed: feed(), epoch: HUB, settled, newest_stored: WallMicros(0) };
        let stored = StoredPosition { position, log_head: log.head(), guarded: false, complete: None };
        keep_one(&place(root).state, &stored, Some(log)).unwrap();
        self.mark(Event::Settled(self.head));
    }

    fn mark(&mut self, event: Event) {
        self.recording.mark(self.events.len() as u64);
        self.events.push(event);
    }
}

#[test]
fn after_a_power_cut_a_site_shows_whole_files_and_asks_for_what_it_lost() {
    let wanted = number("DOWNBURST_CUT_STATES").unwrap_or(60) as usize;
    let first = number("DOWNBURST_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!(
        "replay: DOWNBURST_CUT_STATES={wanted} DOWNBURST_SEED={first} cargo test -p downburst-node site::power"
    );
    let mut states = BTreeSet::new();
    for seed in first.. {
        let story = Story::tell(seed, Planted::Nothing);
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

#[test]
fn a_missing_synchronisation_at_a_site_is_found() {
    let (files, directories) = Story::tell(PLANTED_SEED, Planted::Nothing).trace.syncs();
    let found = |count: usize, planted: fn(usize) -> Planted| (0..count).find(|n| is_found(planted(*n)));
    let (file, directory) = (found(files, Planted::FileSync), found(directories, Planted::DirectorySync));
    println!("found: {file:?} of {files} files, {directory:?} of {directories} directories");
    assert!(file.is_some() && directory.is_some());
}

fn is_found(planted: Planted) -> bool {
    let story = Story::tell(PLANTED_SEED, planted);
    (0..MOST_TRIES).any(|seed| {
        let at = Chances::new(seed).below(story.trace.steps() as u64 + 1) as usize;
        let caught =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| story.cut(at, seed).1.is_some()));
        caught.unwrap_or(true)
    })
}

fn store(log: &FeedLog, number: u64) -> u64 {
    let source = Some(SourceStamp::live(key(number), WallMicros(0), None));
    let product = NewProduct { source, ..contract::product(&format!("p{number}")).unwrap() };
    let mut appended = log.append_all(vec![(product, Bytes::from(content(number)))], &|| WallMicros(0));
    match appended.remove(0).unwrap() {
        Appended::Stored { sequence, .. } => sequence.0,
        Appended::Duplicate { of } => panic!("{number} is a duplicate of {of:?}"),
    }
}

/// About half of the products have bodies, and their files are second names of them.
fn logs(root: &Path) -> Arc<Logs> {
    let logs = Logs::new(&root.join("log"), Retention { hours: 24.0, bytes: 100_000 }, false);
    Arc::new(logs.with_bodies_from(600))
}

fn files(root: &Path, logs: &Arc<Logs>) -> Files {
    let placing = Placing::find(FileMode::Link, &root.join("log"), &root.join("spool"));
    assert_eq!(placing.used, FileMode::Link);
    Files::new(Arc::clone(logs), root, placing, Clock::start(0), DoneTo::default())
}

fn place(root: &Path) -> HubPlace {
    HubPlace { address: "a:1".to_owned(), state: root.join("state"), spool: root.join("spool/hub-0") }
}

fn content(number: u64) -> Vec<u8> {
    format!("{number} ").repeat(1 + number as usize * 131 % 400).into_bytes()
}

fn key(number: u64) -> ProductKey {
    ProductKey { feed: feed(), epoch: HUB, sequence: Sequence(number) }
}

fn feed() -> FeedName {
    FeedName::parse("X").unwrap()
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

const HUB: Epoch = Epoch(77);
const CUTS_PER_STORY: u64 = 15;
const PLANTED_SEED: u64 = 3;
/// The number of states tried before a planted fault counts as not found.
const MOST_TRIES: u64 = 100;
