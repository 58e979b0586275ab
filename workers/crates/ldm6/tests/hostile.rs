//! Hostile peers. With any input, the machines neither panic nor exceed their bounds, and a request continues on
//! the next connection. `DOWNBURST_SEED` replays one stream, `DOWNBURST_FUZZ_SECONDS` searches for others; a
//! stream that fails is kept in `tests/corpus`, which is replayed in each run.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that fails stops, and looks for new streams by the clock"
)]
mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use common::*;
use downburst_ldm6::*;
use downburst_model::{Machine, Micros};

#[test]
fn kept_streams() {
    for stream in corpus_files() {
        lead(&std::fs::read(&stream).unwrap());
    }
}

#[test]
fn mutated_messages() {
    if let Ok(seed) = std::env::var("DOWNBURST_SEED") {
        lead(&Mutator(seed.parse().unwrap()).stream(&messages()));
        return;
    }
    let seconds = std::env::var("DOWNBURST_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    let until = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let first = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs() * 1_000_000;
    let (messages, mut tried) = (messages(), 0);
    while until.map_or(tried < STREAMS, |until| Instant::now() < until) {
        try_stream(&messages, first + tried);
        tried += 1;
    }
    println!("{tried} streams from seed {first}");
}

fn try_stream(messages: &[Vec<u8>], seed: u64) {
    let stream = Mutator(seed).stream(messages);
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| lead(&stream))) {
        let kept = corpus().join(format!("found-{seed}.bin"));
        std::fs::write(&kept, &stream).unwrap();
        eprintln!(
            "kept as {}; replay: DOWNBURST_SEED={seed} cargo test -p downburst-ldm6 --test hostile",
            kept.display()
        );
        std::panic::resume_unwind(panic);
    }
}

/// Feeds the stream to every machine, whole and in small parts, and then a sound peer.
fn lead(stream: &[u8]) {
    for split in [stream.len().max(1), 7] {
        for mode in [Mode::Primary, Mode::Alternate] {
            lead_downstream(stream, split, mode);
        }
        let mut server = Server::new(at(0.0), upstream_config(access("ANY", None)), vec![product(1, 40_000)]);
        stream.chunks(split).for_each(|part| server.hear(at(0.5), part));
        server.poll(at(1.5));
        lead_to_its_end(&mut server);
    }
}

fn lead_downstream(stream: &[u8], split: usize, mode: Mode) {
    let time_offset = Micros::from_secs(7_200);
    let config = DownstreamConfig { mode, time_offset, ..downstream_config(vec![spec("ANY", ".*")]) };
    let mut client = Client::new(config);
    let question = client.connect(at(0.0));
    let mut server = Server::new(at(0.0), upstream_config(access("ANY", None)), Vec::new());
    server.hear(at(0.0), &question);
    client.hear(at(0.0), &server.take_said());
    stream.chunks(split).for_each(|part| client.hear(at(0.5), part));
    client.handle(at(1.0), DownstreamInput::Disconnected);
    client.take_said();
    let again = client.machine.deadline().expect("it goes on");
    assert!(again <= Micros::from_secs(62), "within a minute");
    client.poll(at_micros(again));
    client.handle(at_micros(again), DownstreamInput::Connected);
    let mut well = Server::new(at_micros(again), upstream_config(access("ANY", None)), vec![product(1, 10)]);
    talk(at_micros(again), &mut client, &mut well, 10_000);
    let before = client.products.len();
    talk(at_micros(again.plus(Micros::from_secs(1))), &mut client, &mut well, 10_000);
    assert_eq!(client.products.len(), before + 1, "a sound upstream is heard");
}

/// Checks that the connection of a silent peer is closed.
fn lead_to_its_end(server: &mut Server) {
    for _ in 0..10 {
        let Some(deadline) = server.machine.deadline() else { break };
        server.poll(at_micros(deadline));
    }
    assert!(server.is_closed, "{:?}", server.events);
}

struct Mutator(u64);

impl Mutator {
    /// A few messages with a few changes.
    fn stream(mut self, messages: &[Vec<u8>]) -> Vec<u8> {
        let mut stream = Vec::new();
        for _ in 0..=self.below(5) {
            let mut message = messages[self.below(messages.len())].clone();
            for _ in 0..self.below(4) {
                self.change(&mut message);
            }
            if self.below(4) > 0 {
                let length = (message.len() as u32).saturating_sub(4) | 1 << 31;
                message.get_mut(..4).into_iter().for_each(|mark| mark.copy_from_slice(&length.to_be_bytes()));
            }
            stream.extend(message);
        }
        stream
    }

    fn change(&mut self, message: &mut Vec<u8>) {
        if message.is_empty() {
            return;
        }
        // Heads are short, and their content matters more than that of products.
        let place = self.below(message.len().min(160));
        let word = place & !3;
        match self.below(6) {
            0 => message[place] ^= 1 << self.below(8),
            1 => message.truncate(place),
            2 => message.drain(place..message.len().min(place + 8)).for_each(drop),
            3 => drop(message.splice(word..word, [0, 0, 0, self.below(256) as u8])),
            _ => {
                let extreme =
                    [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x00ff_ffff, 2, 13][self.below(8)];
                let end = message.len().min(word + 4);
                message[word..end].copy_from_slice(&u32::to_be_bytes(extreme)[..end - word]);
            }
        }
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

fn messages() -> Vec<Vec<u8>> {
    let text = include_str!("../../../../tests/golden/ldm6/messages.json");
    let file: serde_json::Value = serde_json::from_str(text).unwrap();
    let hex = |hex: &str| {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    };
    file["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| hex(message["bytes"].as_str().unwrap()))
        .collect()
}

fn corpus_files() -> Vec<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(corpus()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "the corpus is there");
    files
}

fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

/// Number of streams in a run of make test.
const STREAMS: u64 = 500;
