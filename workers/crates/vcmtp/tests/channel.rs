//! The repair channel: requests and repairs of one site as datagrams, and their fate when datagrams are lost.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails stops"
)]
mod common;

use bytes::Bytes;
use common::*;
use downburst_model::{Class, Machine, Micros};
use downburst_vcmtp::{
    Cipher, HubChannel, Receiver, ReceiverConfig, ReceiverInput, RepairChannel, Sender, SenderInput,
    SenderOutput,
};

const ROUND_TRIP: u64 = 8_000;

/// A sender, a receiver that lost one packet of a small product, and a channel between them.
struct Pair {
    sender: Sender,
    hub: HubChannel,
    receiver: Receiver,
    taken: Taken,
    now: u64,
}

fn channel() -> RepairChannel {
    RepairChannel {
        id: 0x0102_0304,
        port: 7370,
        secret: *b"the secret of one site, 32 bytes",
        cipher: Cipher::default(),
    }
}

impl Pair {
    /// Both ends know each other; the leg has sent its first datagrams.
    fn new() -> Self {
        let config = ReceiverConfig { channel: Some(channel()), ..receiver_config() };
        let mut pair = Self {
            sender: Sender::new(sender_config(100_000_000)),
            hub: HubChannel::new(&channel()),
            receiver: Receiver::new(config),
            taken: Taken::default(),
            now: 0,
        };
        for datagram in datagrams(&run(&mut pair.sender, 0, 0)) {
            pair.taken.feed(&mut pair.receiver, 0, &datagram);
        }
        pair
    }

    /// Opens the channel by the answer to a probe.
    fn open(mut self) -> Self {
        let probe = self.asks().remove(0);
        let heard = self.hub.hear(Micros(ROUND_TRIP / 2), probe).unwrap();
        assert_eq!(heard.request, None);
        self.wait(ROUND_TRIP);
        self.hear(heard.answer);
        assert_eq!(self.taken.channel, [true]);
        self
    }

    fn asks(&mut self) -> Vec<Bytes> {
        self.taken.poll(&mut self.receiver, self.now);
        std::mem::take(&mut self.taken.asks)
    }

    fn hear(&mut self, datagram: Bytes) {
        self.taken.input(&mut self.receiver, self.now, ReceiverInput::Datagram(datagram.into()));
    }

    fn wait(&mut self, micros: u64) {
        self.now += micros;
    }

    /// Sends a product of ten packets of which the second is lost; returns the lost packet's number.
    fn lose_one(&mut self) -> u64 {
        self.sender.handle(at(self.now), product(5, 12_000, Class::Grid));
        let sent = datagrams(&run(&mut self.sender, self.now, self.now + 2_000));
        self.wait(2_000);
        let lost = u64::from_be_bytes(sent[1][6..14].try_into().unwrap());
        sent.iter().enumerate().filter(|(place, _)| *place != 1).for_each(|(_, datagram)| {
            self.taken.feed(&mut self.receiver, self.now, datagram);
        });
        lost
    }

    /// Advances time until the receiver sends a datagram.
    fn next_ask(&mut self) -> Bytes {
        for _ in 0..10_000 {
            if let Some(ask) = self.asks().into_iter().next() {
                return ask;
            }
            self.wait(1_000);
        }
        panic!("nothing is asked for");
    }
}

#[test]
fn a_lost_packet_comes_back_by_datagrams() {
    let mut pair = Pair::new().open();
    let lost = pair.lose_one();
    let ask = pair.next_ask();
    let heard = pair.hub.hear(Micros(pair.now), ask).unwrap();
    let request = heard.request.unwrap();
    assert_eq!(request.packets, [(lost, lost)].into_iter().collect());
    assert!(request.heard.unwrap() > lost);
    pair.sender.handle(at(pair.now), SenderInput::Nak { site: 1, request });
    let said = run(&mut pair.sender, pair.now, pair.now + 6_000);
    let repair = said.iter().find_map(|(_, output)| match output {
        SenderOutput::Repair { packet, payload, .. } => Some((*packet, payload.clone())),
        _ => None,
    });
    let (packet, payload) = repair.expect("nobody else asked");
    let datagram = pair.hub.repair(packet, &payload).unwrap();
    assert!(datagram.len() <= 1_452);
    pair.wait(ROUND_TRIP);
    pair.hear(heard.answer);
    pair.hear(datagram);
    assert!(pair.taken.is_whole(5, 12_000));
    assert!(pair.taken.naks.is_empty(), "the session was not needed");
    assert_eq!(pair.receiver.stats().channel_repairs, 1);
}

#[test]
fn a_request_that_gets_lost_is_made_again_after_the_measured_round_trip() {
    let mut pair = Pair::new().open();
    pair.lose_one();
    let first = pair.next_ask();
    let asked_at = pair.now;
    let second = pair.next_ask();
    let waited = pair.now - asked_at;
    assert!((ROUND_TRIP..5 * ROUND_TRIP).contains(&waited), "{waited} us");
    let newest = pair.hub.hear(Micros(pair.now), second.clone()).unwrap();
    assert!(newest.newest && newest.request.is_some());
    assert_eq!(pair.hub.hear(Micros(pair.now), second), None, "a datagram that comes twice counts once");
    assert_eq!(pair.hub.hear(Micros(pair.now), first), None, "it was overtaken by 20 ms or more");
}

#[test]
fn where_no_datagram_gets_through_the_session_asks_at_once() {
    let mut pair = Pair::new();
    let lost = pair.lose_one();
    for _ in 0..200 {
        pair.asks();
        pair.wait(1_000);
    }
    assert_eq!(pair.taken.naks[0], [(lost, lost)].into_iter().collect());
    assert!(!pair.taken.requests[0].unanswered, "too early to tell");
    for _ in 0..9_000 {
        pair.asks();
        pair.wait(1_000);
        let head = SenderInput::Head(downburst_model::Sequence(5 + pair.now / 1_000));
        pair.sender.handle(at(pair.now), head);
        for datagram in datagrams(&run(&mut pair.sender, pair.now, pair.now)) {
            pair.taken.feed(&mut pair.receiver, pair.now, &datagram);
        }
    }
    assert!(pair.taken.requests.last().unwrap().unanswered);
    assert!(pair.taken.channel.is_empty(), "it never was open");
}

#[test]
fn a_channel_that_falls_silent_hands_over_to_the_session_and_comes_back() {
    let mut pair = Pair::new().open();
    let lost = pair.lose_one();
    let mut last = Bytes::new();
    while pair.taken.naks.is_empty() && pair.now < 9_000_000 {
        last = pair.asks().pop().unwrap_or(last);
        pair.wait(1_000);
    }
    assert_eq!(pair.taken.channel, [true, false]);
    assert_eq!(pair.taken.naks[0], [(lost, lost)].into_iter().collect());
    assert!((2_000_000..5_000_000).contains(&pair.now), "{}", pair.now);
    assert!(!last.is_empty());
    let probe = loop {
        pair.wait(1_000);
        if let Some(probe) = pair.asks().pop() {
            break probe;
        }
        assert!(pair.now < 9_000_000, "no probe");
    };
    let heard = pair.hub.hear(Micros(pair.now), probe).unwrap();
    pair.hear(heard.answer);
    assert_eq!(pair.taken.channel, [true, false, true]);
}

#[test]
fn the_bytes_are_the_same_to_the_last_bit() {
    let mut hub = HubChannel::new(&channel());
    let repair = hub.repair(41, b"a packet in clear").unwrap();
    let mut pair = Pair::new();
    let probe = pair.asks().remove(0);
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let path = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../../tests/golden/vcmtp-repair-channel.json");
    let now = format!(
        "{{\n  \"channel\": {}, \"key\": \"{}\",\n  \"probe at 0 us\": \"{}\",\n  \"repair of packet 41, 'a packet \
         in clear'\": \"{}\"\n}}\n",
        channel().id,
        hex(&channel().secret),
        hex(&probe),
        hex(&repair)
    );
    if std::env::var("DOWNBURST_GOLDEN").as_deref() == Ok("write") {
        std::fs::write(&path, &now).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), now);
}
