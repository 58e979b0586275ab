//! Peers that send valid XDR without sense: every value at its extremes, in both roles, in virtual time.
//!
//! `DOWNBURST_SEED` replays one story; `DOWNBURST_FUZZ_SECONDS` searches longer.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::disallowed_methods,
    reason = "a test that fails stops, and looks for new stories by the clock"
)]
mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use common::*;
use downburst_ldm6::*;
use downburst_model::{Machine, Micros, WallMicros};

#[test]
fn absurd_values_end_in_products_that_can_be_or_in_a_named_violation() {
    if let Ok(seed) = std::env::var("DOWNBURST_SEED") {
        return play(seed.parse().unwrap());
    }
    let seconds = std::env::var("DOWNBURST_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    let until = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let first = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs() * 1_000_000;
    println!("stories from seed {first}");
    let mut tried = 0;
    while until.map_or(tried < STORIES, |until| Instant::now() < until) {
        let seed = first + tried;
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| play(seed))) {
            eprintln!("replay: DOWNBURST_SEED={seed} cargo test -p downburst-ldm6 --test absurd");
            std::panic::resume_unwind(panic);
        }
        tried += 1;
    }
}

#[test]
fn a_product_of_no_clock_ends_its_connection_and_the_sentence_says_so() {
    for (seconds, micros) in [(-1, 0), (5, 1_000_000), (i32::MIN, i32::MAX)] {
        let description = Description {
            seconds,
            micros,
            feed: 1 << 30,
            ident: b"rtstats".to_vec(),
            ..Description::sound()
        };
        for body in [description.here_is(b""), description.coming_soon()] {
            let mut server = pushed_to();
            server.hear(at(1.0), &body);
            assert!(
                matches!(server.events.last(), Some(UpstreamEvent::Ended(why)) if why.is_violation()
                    && why.to_string().contains(&format!("{seconds} s and {micros} µs"))),
                "{:?}",
                server.events
            );
        }
    }
}

#[test]
fn calls_that_can_t_be_are_not_answered_without_end() {
    let mut server = Server::new(at(0.0), upstream_config(access("ANY", None)), Vec::new());
    for xid in 0..100 {
        server.hear(at(0.5), &record(&call(xid, 6, 77).freeze()));
    }
    let refused = server.events.iter().filter(|event| matches!(event, UpstreamEvent::Refused(_))).count();
    assert!(server.is_closed && refused <= 8, "{refused} were refused");
}

#[test]
fn bytes_behind_a_product_s_last_one_are_padding_or_a_violation() {
    for (behind, is_sound) in [(0, true), (3, true), (4, false), (100_000, false)] {
        let mut server = pushed_to();
        let body = Description { size: 0, ident: b"rtstats".to_vec(), ..Description::sound() };
        server.hear(at(1.0), &body.here_is(&vec![0; behind]));
        assert_eq!(server.is_closed, !is_sound, "{behind} bytes: {:?}", server.events);
    }
}

/// Plays one peer in each role, with a story of its own.
fn play(seed: u64) {
    let mut server = Server::new(at(0.0), upstream_config(access("ANY", None)), vec![product(1, 40_000)]);
    if seed.is_multiple_of(2) {
        server = pushed_to();
    }
    let mut dice = Dice(seed);
    for step in 0..dice.below(12) {
        let message = dice.message();
        for part in message.chunks(dice.below(700) + 1) {
            server.hear(at(1.0 + step as f64), part);
        }
    }
    check(server.events.iter().filter_map(|event| match event {
        UpstreamEvent::Taken(taken) => Some(taken),
        _ => None,
    }));
    play_upstream(&mut dice);
}

/// Plays an upstream that accepts a request and then sends arbitrary messages.
fn play_upstream(dice: &mut Dice) {
    let mode = if dice.below(2) == 0 { Mode::Primary } else { Mode::Alternate };
    let oldest = Micros(u64::MAX);
    let config = DownstreamConfig { mode, oldest, ..downstream_config(vec![spec("ANY", ".*")]) };
    let mut client = Client::new(config);
    let question = client.connect(at(0.0));
    let mut server = Server::new(at(0.0), upstream_config(access("ANY", None)), Vec::new());
    server.hear(at(0.0), &question);
    client.hear(at(0.0), &server.take_said());
    for step in 0..dice.below(12) {
        let message = dice.message();
        message.chunks(dice.below(700) + 1).for_each(|part| client.hear(at(1.0 + step as f64), part));
        client.poll(at(1.0 + step as f64));
    }
    check(client.events.iter().filter_map(|event| match event {
        DownstreamEvent::Taken(taken) => Some(taken),
        _ => None,
    }));
    client.handle(at(20.0), DownstreamInput::Disconnected);
    if client.machine.deadline().is_none() {
        // The client is already connecting again, which fails.
        client.handle(at(20.0), DownstreamInput::Disconnected);
    }
    let due = client.machine.deadline();
    assert!(due.is_some_and(|due| due <= Micros::from_secs(90)), "it goes on: {due:?}");
}

/// Checks that a hub can store the output and that each product has the announced number of bytes.
fn check<'a>(taken: impl Iterator<Item = &'a Taken>) {
    let mut coming: Option<(u32, usize)> = None;
    for one in taken {
        match one {
            Taken::Begins(info) => {
                can_be(info);
                assert!(!info.feed.is_none(), "a product of no feed");
                coming = Some((info.size, 0));
            }
            Taken::Bytes(bytes) => {
                let (size, came) = coming.as_mut().expect("bytes of a product that began");
                *came += bytes.len();
                assert!(*came <= *size as usize, "more bytes than were announced");
            }
            Taken::Ends => {
                let (size, came) = coming.take().expect("the end of a product that began");
                assert_eq!(size as usize, came);
            }
            Taken::Broken => drop(coming.take()),
            Taken::Offered(info) | Taken::Dropped(info, _) | Taken::Notified(info) => can_be(info),
        }
    }
}

fn can_be(info: &ProductInfo) {
    assert!(info.arrival.is_sound(), "{info:?}");
    let created = WallMicros::from(info.arrival);
    assert!(created.is_on_a_clock() && created.has_a_date(), "{info:?}");
    assert!(info.ident.as_bytes().len() <= 255 && info.origin.as_bytes().len() <= 64);
}

/// A connection that may push `rtstats` and `s/`.
fn pushed_to() -> Server {
    let config = UpstreamConfig { oldest: Micros(u64::MAX), ..upstream_config(access("ANY", None)) };
    let mut server = Server::new(at(0.0), config, Vec::new());
    let mut hiya = call(1, 6, HIYA);
    put_class(&mut hiya, (0, 0), (i32::MAX, 999_999), &[(u32::MAX, b".*")]);
    server.hear(at(0.0), &record(&hiya));
    assert!(matches!(server.events.last(), Some(UpstreamEvent::Taking(_))), "{:?}", server.events);
    server
}

/// A peer's description of a product, sound or not.
#[derive(Clone)]
struct Description {
    seconds: i32,
    micros: i32,
    origin: Vec<u8>,
    feed: u32,
    sequence: u32,
    ident: Vec<u8>,
    size: u32,
}

impl Description {
    fn sound() -> Self {
        let seconds = (START_WALL_US / 1_000_000) as i32;
        let (origin, ident) = (b"host".to_vec(), b"s/1".to_vec());
        Self { seconds, micros: 0, origin, feed: 1 << 30, sequence: 1, ident, size: 0 }
    }

    fn put(&self, out: &mut BytesMut) {
        out.put_i32(self.seconds);
        out.put_i32(self.micros);
        out.put_bytes(0xa5, 16);
        put_text(out, &self.origin);
        out.put_u32(self.feed);
        out.put_u32(self.sequence);
        put_text(out, &self.ident);
        out.put_u32(self.size);
    }

    fn here_is(&self, bytes: &[u8]) -> Bytes {
        let mut body = call(7, 6, HEREIS);
        self.put(&mut body);
        body.extend_from_slice(bytes);
        record(&body)
    }

    fn coming_soon(&self) -> Bytes {
        let mut body = call(7, 6, COMINGSOON);
        self.put(&mut body);
        body.put_u32(self.size);
        record(&body)
    }
}

struct Dice(u64);

impl Dice {
    /// A message of any kind, valid in the protocol or not.
    fn message(&mut self) -> Bytes {
        let procedure =
            [HEREIS, HEREIS, COMINGSOON, BLKDATA, NOTIFICATION, FEEDME, HIYA, NOTIFYME, ALIVE, NULL]
                [self.below(10)];
        if self.below(12) == 0 {
            return self.reply();
        }
        let version = [6, 6, 6, 5, 7, u32::MAX][self.below(6)];
        let mut body = call(self.word(), version, procedure);
        match procedure {
            HEREIS | COMINGSOON | NOTIFICATION => {
                let described = self.description();
                described.put(&mut body);
                body.put_bytes(1, described.size.min(4_000) as usize);
                body.put_bytes(0, self.below(5));
            }
            BLKDATA => {
                body.put_bytes(0xa5, 16);
                body.put_u32(self.word());
                let bytes = self.below(3_000) as u32;
                body.put_u32(if self.below(2) == 0 { bytes } else { self.word() });
                body.put_bytes(2, bytes as usize);
            }
            FEEDME | HIYA | NOTIFYME => self.put_class(&mut body),
            _ => body.put_u32(self.word()),
        }
        record(&body)
    }

    fn description(&mut self) -> Description {
        let sound = Description::sound();
        Description {
            seconds: if self.below(3) == 0 { self.word() as i32 } else { sound.seconds },
            micros: if self.below(3) == 0 { self.word() as i32 } else { 999_999 },
            origin: self.text(80),
            feed: self.word(),
            sequence: self.word(),
            ident: [b"s/".to_vec(), self.text(270)].concat(),
            size: if self.below(2) == 0 { self.below(4_000) as u32 } else { self.word() },
        }
    }

    fn put_class(&mut self, out: &mut BytesMut) {
        let stamps = (self.word() as i32, self.word() as i32);
        let specs: Vec<(u32, Vec<u8>)> = (0..self.below(36))
            .map(|_| (self.word(), if self.below(4) == 0 { self.text(260) } else { b"(a|b)*".to_vec() }))
            .collect();
        let specs: Vec<(u32, &[u8])> = specs.iter().map(|(feeds, text)| (*feeds, &text[..])).collect();
        put_class(out, stamps, (stamps.1, stamps.0), &specs);
    }

    fn reply(&mut self) -> Bytes {
        let mut body = BytesMut::new();
        [self.word(), 1, 0, 0, 0, [0, 1, 2, 3, 4][self.below(5)]].iter().for_each(|word| body.put_u32(*word));
        body.put_u32(self.word());
        self.put_class(&mut body);
        record(&body)
    }

    fn text(&mut self, most: usize) -> Vec<u8> {
        let (bytes, of) = (self.below(most), [b'a', 0, 0xff, b'/', b'.', b'%', 0x1b][self.below(7)]);
        vec![of; bytes]
    }

    fn word(&mut self) -> u32 {
        let extreme = [0, 1, 999_999, 1_000_000, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x6b01_190d];
        if self.below(4) == 0 { self.next() as u32 } else { extreme[self.below(8)] }
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

fn call(xid: u32, version: u32, procedure: u32) -> BytesMut {
    let mut out = BytesMut::new();
    [xid, 0, 2, 300_029, version, procedure, 0, 0, 0, 0].iter().for_each(|word| out.put_u32(*word));
    out
}

fn put_class(out: &mut BytesMut, from: (i32, i32), to: (i32, i32), specs: &[(u32, &[u8])]) {
    [from.0, from.1, to.0, to.1].iter().for_each(|word| out.put_i32(*word));
    out.put_u32(specs.len() as u32);
    for (feeds, pattern) in specs {
        out.put_u32(*feeds);
        put_text(out, pattern);
    }
}

fn put_text(out: &mut BytesMut, text: &[u8]) {
    out.put_u32(text.len() as u32);
    out.put_slice(text);
    out.put_bytes(0, text.len().wrapping_neg() % 4);
}

fn record(body: &[u8]) -> Bytes {
    let mut out = BytesMut::new();
    out.put_u32(1 << 31 | body.len() as u32);
    out.put_slice(body);
    out.freeze()
}

const NULL: u32 = 0;
const HEREIS: u32 = 1;
const FEEDME: u32 = 4;
const HIYA: u32 = 5;
const NOTIFICATION: u32 = 8;
const NOTIFYME: u32 = 9;
const COMINGSOON: u32 = 12;
const BLKDATA: u32 = 13;
const ALIVE: u32 = 14;

/// Number of stories in a run of make test.
const STORIES: u64 = 3_000;
