//! Corrupted conversations: the golden sessions with frames flipped, cut, repeated, swapped, left out and taken
//! from others. Neither half panics, loops forever or makes absurd requests to its driver; in every case the
//! next connection works.
//!
//! A run of make test takes some thousand mutants; `DOWNBURST_FUZZ_SECONDS` sets a time instead. A mutant that
//! fails is stored in `tests/corpus`, and each run replays the conversations there: `DOWNBURST_GOLDEN=write`
//! writes a first dozen.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "a test that fails stops and may look at the clock; of the golden sessions' peers not all is used"
)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use file::{Conversation, What};
use mutate::Mutator;
use peers::{HubPeer, SitePeer};

#[path = "../golden/file.rs"]
mod file;
mod mutate;
#[path = "../golden/peers.rs"]
mod peers;

#[test]
fn what_was_kept_ends_well() {
    let kept = conversations_in(&corpus());
    assert!(kept.len() >= 10, "the corpus is gone");
    for (name, mutant) in kept {
        println!("{name}");
        lead(&mutant);
    }
}

#[test]
fn mutants_of_the_golden_sessions_end_well() {
    let golden = golden();
    let first = std::env::var("DOWNBURST_SEED").map_or_else(|_| fresh_seed(), |seed| seed.parse().unwrap());
    let seconds =
        std::env::var("DOWNBURST_FUZZ_SECONDS").ok().map(|text| Duration::from_secs(text.parse().unwrap()));
    if std::env::var("DOWNBURST_GOLDEN").as_deref() == Ok("write") {
        (1..=12).for_each(|seed| keep(&golden, seed));
    }
    let began = Instant::now();
    let goes_on = |tried: u64| seconds.map_or(tried < MUTANTS, |limit| began.elapsed() < limit);
    let mut tried = 0;
    while goes_on(tried) {
        try_mutant(&golden, first.wrapping_add(tried));
        tried += 1;
    }
    println!("{tried} mutants from seed {first}");
}

fn try_mutant(golden: &[Conversation], seed: u64) {
    let mutant = Mutator::new(seed).mutant(golden);
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| lead(&mutant))) {
        let kept = corpus().join(format!("found-{seed}.json"));
        std::fs::write(&kept, mutant.text()).unwrap();
        eprintln!(
            "the mutant is kept as {}; replay: cargo test -p downburst-session --test fuzz kept",
            kept.display()
        );
        std::panic::resume_unwind(panic);
    }
}

fn keep(golden: &[Conversation], seed: u64) {
    let mutant = Mutator::new(seed).mutant(golden);
    std::fs::write(corpus().join(format!("mutant-{seed:02}.json")), mutant.text()).unwrap();
}

fn lead(mutant: &Conversation) {
    lead_hub(mutant);
    lead_site(mutant);
}

/// Runs a hub against the mutant's site: it gives up the site once it is silent.
fn lead_hub(mutant: &Conversation) {
    let mut hub = HubPeer::default();
    for event in &mutant.events {
        let at_us = event.at_us;
        while let Some(due) = hub.deadline_us().filter(|due| *due < at_us) {
            hub.frames(due);
        }
        match &event.what {
            What::Connect(_) => hub.accept(at_us),
            What::Disconnect => hub.hang_up(),
            What::Hub(act) => hub.act(at_us, act),
            What::StreamBreaks(stream) => hub.stream_breaks(at_us, *stream),
            what => what.of_site().iter().for_each(|said| hub.hear(at_us, said)),
        }
        hub.frames(at_us);
    }
    let late = mutant.events.last().map_or(0, |event| event.at_us) + A_MINUTE_US;
    hub.frames(late);
    assert_eq!(hub.deadline_us(), None, "a silent site is given up");
}

/// Runs a site against the mutant's hub; after that it reconnects as usual.
fn lead_site(mutant: &Conversation) {
    let mut site = SitePeer::new(mutant);
    site.is_lied_to = true;
    for event in &mutant.events {
        let at_us = event.at_us;
        while let Some(due) = site.deadline_us().filter(|due| *due < at_us) {
            site.frames(due);
        }
        match &event.what {
            What::Connect(show) => site.connect(at_us, show),
            What::Disconnect => site.hang_up(at_us),
            What::Datagram { leg, bytes } => site.datagram(at_us, *leg, &bytes.0),
            What::StreamStands(stream) => site.stream_stands(at_us, *stream),
            What::StreamBreaks(stream) => site.stream_breaks(at_us, *stream),
            what => what.of_hub().iter().for_each(|said| site.hear(at_us, said)),
        }
        site.frames(at_us);
    }
    let late = mutant.events.last().map_or(0, |event| event.at_us) + A_MINUTE_US;
    site.hang_up(late);
    site.frames(late);
    let show = mutant.events.iter().find_map(|event| match &event.what {
        What::Connect(show) => Some(show),
        _ => None,
    });
    site.connect(late, show.expect("every conversation begins with a connection"));
    let hello = site.frames(late);
    assert_eq!(hello.first().map(|(_, frame)| frame.0[0]), Some(1), "it says hello again");
}

fn golden() -> Vec<Conversation> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../tests/golden/sessions");
    let mut releases: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    releases.sort();
    let folders = releases.into_iter().filter(|path| path.is_dir());
    folders.flat_map(|folder| conversations_in(&folder)).map(|(_, conversation)| conversation).collect()
}

fn conversations_in(folder: &Path) -> Vec<(String, Conversation)> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let read = |path: PathBuf| {
        let conversation = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        (path.file_name().unwrap().to_string_lossy().into_owned(), conversation)
    };
    files.into_iter().map(read).collect()
}

fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

fn fresh_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    // The seeds of one run do not overlap those of the next.
    now.as_secs() * 1_000_000
}

/// The number of mutants in a run of make test.
const MUTANTS: u64 = 3_000;
const A_MINUTE_US: u64 = 60_000_000;
