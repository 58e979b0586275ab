//! Attacks on the machines by members of the group and their links: datagrams that open and have any content,
//! requests for any packets, in any order. The machines never panic, loop for ever, or set a timer in the
//! past; a receiver that checks proofs believes only the sender's own packets.
//!
//! A run of make test takes some thousand mutants; `DOWNBURST_FUZZ_SECONDS` sets a time instead. A mutant
//! that fails is kept in `tests/corpus`, which each run replays: `DOWNBURST_GOLDEN=write` puts a first dozen
//! there.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails stops and may look at the clock"
)]
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[path = "../common/mod.rs"]
mod common;
mod mutate;
mod story;

use mutate::Mutator;
use story::Story;

#[test]
fn what_was_kept_ends_well() {
    let kept: Vec<PathBuf> =
        std::fs::read_dir(corpus()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(kept.len() >= 10, "the corpus is gone");
    for path in kept {
        println!("{}", path.display());
        Story::read(&std::fs::read_to_string(&path).unwrap()).play();
    }
}

#[test]
fn mutants_end_well() {
    let first = std::env::var("DOWNBURST_SEED").map_or_else(|_| fresh_seed(), |seed| seed.parse().unwrap());
    let seconds = std::env::var("DOWNBURST_FUZZ_SECONDS").ok();
    let limit = seconds.map(|text| Duration::from_secs(text.parse().unwrap()));
    let told = Story::told();
    if std::env::var("DOWNBURST_GOLDEN").as_deref() == Ok("write") {
        for seed in 1..=12 {
            keep(&Mutator::new(seed).mutant(&told), &format!("mutant-{seed:02}"));
        }
    }
    let (began, mut tried) = (Instant::now(), 0);
    while limit.map_or(tried < MUTANTS, |limit| began.elapsed() < limit) {
        try_mutant(&told, first.wrapping_add(tried));
        tried += 1;
    }
    println!("{tried} mutants from seed {first}");
}

#[test]
fn the_story_itself_is_whole() {
    let heard = Story::told().play();
    assert_eq!(heard, [2, 2, 2], "products that each receiver has");
}

fn try_mutant(told: &Story, seed: u64) {
    let mutant = Mutator::new(seed).mutant(told);
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| mutant.play())) {
        let kept = keep(&mutant, &format!("found-{seed}"));
        eprintln!(
            "the mutant is kept as {}; replay: cargo test -p downburst-vcmtp --test fuzz kept",
            kept.display()
        );
        std::panic::resume_unwind(panic);
    }
}

fn keep(mutant: &Story, name: &str) -> PathBuf {
    let path = corpus().join(format!("{name}.txt"));
    std::fs::write(&path, mutant.text()).unwrap();
    path
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

fn fresh_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    now.as_nanos() as u64
}

/// They take some seconds.
const MUTANTS: u64 = 1_000;
