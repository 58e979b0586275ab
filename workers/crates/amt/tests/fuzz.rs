//! Mutants of valid messages: neither machine panics, starts data for an address that did not ask, or grows beyond its
//! limits. A run of make test takes some ten thousand; `DOWNBURST_FUZZ_SECONDS` sets a time instead, and
//! `DOWNBURST_SEED` replays a run.
#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails stops, and may look at the clock"
)]

use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime};

use downburst_amt::ip::{Packet, complete_udp, datagram, forward};
use downburst_amt::membership::{Record, RecordKind, read_query, read_report, report};
use downburst_amt::{
    Channel, Family, Gateway, GatewaySettings, Heard, LONGEST_QUERY, Message, Relay, RelaySettings,
};
use downburst_model::Micros;

const MUTANTS: u64 = 20_000;
const GATEWAY: &str = "198.51.100.1:5000";

struct Mutator(u64);

impl Mutator {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(limit.max(1)).unwrap()).unwrap()
    }

    /// Changes, cuts, repeats or extends octets, up to four times.
    fn mutant(&mut self, octets: &[u8]) -> Vec<u8> {
        let mut mutant = octets.to_vec();
        for _ in 0..=self.below(4) {
            let at = self.below(mutant.len());
            match self.below(5) {
                0 => mutant.truncate(at),
                1 => mutant.extend_from_within(at.min(mutant.len())..),
                2 => mutant.push(0xff),
                _ => {
                    let value = u8::try_from(self.below(256)).unwrap();
                    mutant.get_mut(at).into_iter().for_each(|octet| *octet = value);
                }
            }
        }
        mutant
    }
}

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn channel() -> Channel {
    Channel { group: at("232.1.2.3:1").ip(), source: Some(at("10.0.0.1:1").ip()) }
}

/// A relay with one tunnel, and each message of its gateway.
fn relay_and_messages() -> (Relay, Vec<Vec<u8>>) {
    let limits =
        RelaySettings { messages_per_second: 1_000_000, most_tunnels: 8, ..RelaySettings::default() };
    let mut relay = Relay::new(limits, &[3; 32]);
    let request = Message::Request { nonce: 7, family: Family::V4 }.write();
    let query = relay.take(Micros(0), at(GATEWAY), at("192.0.2.1:1").ip(), &request).unwrap().unwrap();
    let Ok(Message::Query { code, nonce, .. }) = Message::read(&query) else { panic!("no query") };
    let block = Record { kind: RecordKind::Block, ..channel().wanted() };
    let report = report(Family::V4, &[channel().wanted(), block]);
    let update = Message::Update { code, nonce, report: &report }.write();
    let teardown = Message::Teardown { code, nonce, gateway: at(GATEWAY) }.write();
    (relay, vec![request, update, teardown, Message::Discovery { nonce: 7 }.write(), query])
}

fn try_relay(relay: &mut Relay, messages: &[Vec<u8>], mutator: &mut Mutator) {
    let original = mutator.below(messages.len());
    let mutant = mutator.mutant(&messages[original]);
    let from = if mutator.below(2) == 0 { at(GATEWAY) } else { at("203.0.113.9:77") };
    let answer = relay.take(Micros(1), from, at("192.0.2.1:1").ip(), &mutant);
    assert!(answer.ok().flatten().is_none_or(|octets| octets.len() <= LONGEST_QUERY) && relay.tunnels() <= 8);
    let stranger =
        relay.receivers(at("10.0.0.1:1").ip(), channel().group).any(|it| it == at("203.0.113.9:77"));
    assert!(!stranger, "data for a host that has no code");
    while relay.poll_change().is_some() {}
}

fn try_gateway(messages: &[Vec<u8>], mutator: &mut Mutator) {
    let settings = GatewaySettings { relays: vec![at("192.0.2.1:2268")], channel: channel(), port: 17 };
    let mut gateway = Gateway::new(Micros(0), settings, &[1; 32]).unwrap();
    let data = Message::Data(&datagram(at("10.0.0.1:5"), at("232.1.2.3:17"), 5, b"sealed")).write();
    for step in 0..6 {
        let _ = gateway.poll(gateway.deadline().max(Micros(step)));
        let original = if mutator.below(2) == 0 { &data } else { &messages[mutator.below(messages.len())] };
        let mutant = mutator.mutant(original);
        if let Heard::Datagram(place) = gateway.handle(Micros(step), &mutant) {
            assert!(mutant.get(place).is_some());
        }
    }
}

fn try_parsers(messages: &[Vec<u8>], mutator: &mut Mutator) {
    let original = mutator.below(messages.len());
    let mut mutant = mutator.mutant(messages[original].get(12..).unwrap_or_default());
    let _ = (read_query(&mutant), read_report(&mutant));
    if let Ok(packet) = Packet::read(&mutant) {
        assert!(mutant.get(packet.body.clone()).is_some());
        assert!(
            packet.udp(&mutant).is_ok_and(|udp| mutant.get(udp.body).is_some())
                || packet.udp(&mutant).is_err()
        );
        complete_udp(&mut mutant, &packet);
    }
    forward(&mut mutant);
}

#[test]
fn mutants_of_valid_messages_end_well() {
    let first = std::env::var("DOWNBURST_SEED").map_or_else(
        |_| SystemTime::UNIX_EPOCH.elapsed().unwrap().subsec_nanos().into(),
        |seed| seed.parse::<u64>().unwrap(),
    );
    println!("DOWNBURST_SEED={first} cargo test -p downburst-amt --test fuzz");
    let seconds = std::env::var("DOWNBURST_FUZZ_SECONDS").ok().map(|text| text.parse().unwrap());
    let (began, (mut relay, messages)) = (Instant::now(), relay_and_messages());
    let goes_on =
        |tried: u64| seconds.map_or(tried < MUTANTS, |limit| began.elapsed() < Duration::from_secs(limit));
    let mut tried = 0;
    while goes_on(tried) {
        let mut mutator = Mutator(first.wrapping_add(tried).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        try_relay(&mut relay, &messages, &mut mutator);
        try_gateway(&messages, &mut mutator);
        try_parsers(&messages, &mut mutator);
        tried += 1;
    }
}
