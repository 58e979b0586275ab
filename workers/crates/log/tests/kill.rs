//! `kill -9` during appends, repeatedly on the same directory.
// Helpers of tests may fail as loudly as tests.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::{
    collections::BTreeSet,
    env,
    io::{BufRead, BufReader, Read, Write},
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Child, Command, Stdio},
};

use common::{all, open, small};
use downburst_log::{Appended, LogOptions, ProductLog, contract};
use downburst_model::WallMicros;

const DIRECTORY: &str = "DOWNBURST_TEST_LOG_DIRECTORY";
const MOMENT: &str = "DOWNBURST_TEST_MOMENT";
const ROUND: &str = "DOWNBURST_TEST_ROUND";

fn options() -> LogOptions {
    LogOptions { segment_bytes: 400_000, sequence_block: 16, body_bytes: 5_000, ..small() }
}

/// The child: appends until it is killed, and prints what was acknowledged. Does nothing in an ordinary run.
#[test]
fn child_appends_until_killed() {
    let (Ok(dir), Ok(round)) = (env::var(DIRECTORY), env::var(ROUND)) else { return };
    let (log, _) = open(Path::new(&dir), options());
    let mut out = std::io::stdout().lock();
    for n in 0_u64.. {
        let size = (n * n * 7_919) % 90_000;
        let product = contract::product(&format!("{round}/{n}")).unwrap();
        let mut bytes = std::io::repeat(n as u8).take(size);
        match log.append(product, &mut bytes, &|| WallMicros(0)).unwrap() {
            Appended::Stored { sequence, info } => {
                writeln!(out, "acknowledged {} {} {}", sequence.0, info.id, info.digest).unwrap();
                out.flush().unwrap();
            }
            Appended::Duplicate { of } => panic!("{n} is a duplicate of {of:?}"),
        }
        if n % 50 == 49 {
            log.retain(WallMicros(0)).unwrap();
        }
    }
}

/// The child: dies during its third append, while bytes are copied or just before the header is written.
#[test]
fn child_dies_in_mid_append() {
    let (Ok(dir), Ok(moment)) = (env::var(DIRECTORY), env::var(MOMENT)) else { return };
    let (log, _) = open(Path::new(&dir), options());
    common::store(&log, "first", &[1; 70_000]);
    common::store(&log, "second", b"");
    let product = contract::product("third").unwrap();
    match moment.parse() {
        Ok(bytes) => {
            log.append(product, &mut std::io::repeat(3).take(bytes).chain(Deadly), &|| WallMicros(0))
        }
        Err(_) => log.append(product, &mut &[3; 5_000][..], &|| std::process::abort()),
    }
    .unwrap();
}

struct Deadly;

impl Read for Deadly {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        std::process::abort()
    }
}

#[test]
fn an_append_that_dies_leaves_no_record() {
    for moment in ["0", "100", "300000", "900000", "at the clock"] {
        let dir = tempfile::tempdir().unwrap();
        let output = Command::new(env::current_exe().unwrap())
            .args(["--exact", "child_dies_in_mid_append"])
            .env(DIRECTORY, dir.path())
            .env(MOMENT, moment)
            .output()
            .unwrap();
        assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{moment}: {output:?}");
        let (log, recovery) = open(dir.path(), options());
        assert_eq!(common::ids(&log), ["first", "second"], "{moment}");
        assert!(recovery.damaged.is_empty() && !recovery.clean, "{moment}: {recovery:?}");
        assert_eq!(recovery.cut_bytes > 0, !["0", "100"].contains(&moment), "{moment}: {recovery:?}");
        assert!(common::store(&log, "third", &[3; 5_000]).0 > 2);
    }
}

fn start(dir: &Path, round: usize) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "child_appends_until_killed", "--nocapture"])
        .env(DIRECTORY, dir)
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Kills the child after `count` acknowledgements; returns all that it printed.
fn acknowledged(mut child: Child, count: usize) -> Vec<(u64, String, String)> {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut given = Vec::new();
    while let Some(Ok(line)) = lines.next() {
        if let Some((_, line)) = line.split_once("acknowledged ") {
            let mut words = line.split(' ').map(str::to_owned);
            given.extend((|| Some((words.next()?.parse().ok()?, words.next()?, words.next()?)))());
        }
        if given.len() == count {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    given
}

#[test]
fn what_was_acknowledged_survives_and_no_sequence_repeats() {
    let dir = tempfile::tempdir().unwrap();
    let mut everything: Vec<(u64, String, String)> = Vec::new();
    for round in 0..8 {
        let given = acknowledged(start(dir.path(), round), 1 + round * 13);
        assert!(given.len() > round * 13, "the child ended by itself: {given:?}");
        everything.extend(given);
        let (log, recovery) = open(dir.path(), options());
        assert!(
            !recovery.clean && recovery.damaged.is_empty() && recovery.quarantined.is_empty(),
            "{recovery:?}"
        );
        let stored: BTreeSet<(u64, String, String)> = all(&log)
            .iter()
            .inspect(|entry| assert_eq!(contract::digest(&entry.whole().unwrap()), entry.info.digest))
            .map(|entry| {
                (entry.info.key.sequence.0, entry.info.id.to_string(), entry.info.digest.to_string())
            })
            .collect();
        let lost: Vec<_> = everything.iter().filter(|product| !stored.contains(product)).collect();
        assert!(lost.is_empty(), "acknowledged and gone: {lost:?}");
        let sequences: BTreeSet<u64> = stored.iter().map(|(sequence, ..)| *sequence).collect();
        assert_eq!(sequences.len(), stored.len(), "a sequence names two products");
    }
}
