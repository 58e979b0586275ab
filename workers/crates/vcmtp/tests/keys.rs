//! A leg that takes other keys while it runs.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails stops"
)]
mod common;

use std::collections::BTreeMap;

use bytes::Bytes;
use common::*;
use downburst_model::{Class, Machine, Sequence};
use downburst_vcmtp::{LegKey, Receiver, ReceiverInput, Sender, SenderConfig, SenderInput, SenderOutput};
use proptest::prelude::*;

fn next_key() -> LegKey {
    LegKey::new(4, [4; 32])
}

#[test]
fn a_receiver_follows_from_key_to_key_and_one_without_the_next_reads_nothing_more() {
    let mut sender = Sender::new(sender_config(1_000_000_000));
    let (mut member, mut barred) = (Receiver::new(receiver_config()), Receiver::new(receiver_config()));
    let (mut taken, mut kept) = (Taken::default(), Taken::default());
    sender.handle(at(0), product(1, 40_000, Class::Grid));
    let before = datagrams(&run(&mut sender, 0, 9_000));
    member.handle(at(9_000), ReceiverInput::Key(next_key()));
    sender.handle(at(9_000), SenderInput::Key(next_key()));
    sender.handle(at(9_000), product(2, 40_000, Class::Grid));
    let after = datagrams(&run(&mut sender, 9_000, 15_000));
    assert!(after.iter().all(|datagram| datagram[1] == 4));
    for datagram in before.iter().chain(&after) {
        taken.feed(&mut member, 15_000, datagram);
        kept.feed(&mut barred, 15_000, datagram);
    }
    assert!(taken.is_whole(1, 40_000) && taken.is_whole(2, 40_000));
    assert!(kept.is_whole(1, 40_000));
    assert_eq!(kept.announced.keys().collect::<Vec<_>>(), [&Sequence(1)]);
    assert_eq!(barred.stats().refused, after.len() as u64);
}

#[test]
fn a_repair_of_an_older_packet_is_sealed_with_the_key_in_use() {
    let mut sender = Sender::new(sender_config(1_000_000_000));
    sender.handle(at(0), product(1, 40_000, Class::Observation));
    let lost = datagrams(&run(&mut sender, 0, 9_000));
    sender.handle(at(9_000), SenderInput::Key(next_key()));
    sender.handle(at(9_000), nak(1, &[(2, 2)]));
    sender.handle(at(9_000), nak(2, &[(2, 2)]));
    let again = datagrams(&run(&mut sender, 9_000, 9_900));
    let repair = again.iter().find(|datagram| packet_of(datagram) == 2).expect("a repair to the group");
    assert_eq!(repair[1], 4);
    assert_ne!(repair[14..], lost[1][14..]);
}

#[test]
fn who_gets_the_key_late_asks_for_what_it_missed() {
    let mut sender = Sender::new(sender_config(1_000_000_000));
    let (mut receiver, mut taken) = (Receiver::new(receiver_config()), Taken::default());
    run(&mut sender, 0, 0).iter().for_each(|(_, output)| {
        if let SenderOutput::Datagram(datagram) = output {
            taken.feed(&mut receiver, 0, &datagram.clone().freeze());
        }
    });
    sender.handle(at(1_000), SenderInput::Key(next_key()));
    sender.handle(at(1_000), product(1, 40_000, Class::Grid));
    let missed = datagrams(&run(&mut sender, 1_000, 9_000));
    missed.iter().for_each(|datagram| taken.feed(&mut receiver, 9_000, datagram));
    assert!(taken.announced.is_empty());
    receiver.handle(at(9_000), ReceiverInput::Key(next_key()));
    let head = datagrams(&run(&mut sender, 9_000, 60_000));
    head.iter().for_each(|datagram| taken.feed(&mut receiver, 60_000, datagram));
    taken.poll(&mut receiver, 100_000);
    let asked = taken.naks.pop().expect("it asks");
    assert_eq!(asked.iter().next().map(|(first, _)| first), Some(2));
    sender.handle(at(100_000), SenderInput::Nak { site: 1, request: asked.into() });
    for (_, output) in run(&mut sender, 100_000, 200_000) {
        if let SenderOutput::Repair { packet, payload, .. } = output {
            taken.input(&mut receiver, 200_000, ReceiverInput::Repair { packet, payload });
        }
    }
    assert!(taken.is_whole(1, 40_000));
}

#[derive(Clone, Debug)]
enum Op {
    Product(usize),
    Head,
    Key,
    Nak(u64, u64, u64),
    Wait(u64),
    Restart,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        (0usize..6_000).prop_map(Op::Product),
        Just(Op::Head),
        Just(Op::Key),
        (1u64..4, 1u64..40, 0u64..20).prop_map(|(site, first, more)| Op::Nak(site, first, more)),
        (0u64..60_000).prop_map(Op::Wait),
        Just(Op::Restart),
    ]
}

/// Every sealed datagram by the inputs of its key stream. The driver draws a new secret for each start and
/// each rotation; it may draw the same leg epoch, and ids come round.
#[derive(Default)]
struct Streams {
    used: BTreeMap<([u8; 32], u32, u64), Bytes>,
    sealed: usize,
}

impl Streams {
    fn note(&mut self, secret: [u8; 32], leg_epoch: u64, datagram: Bytes) {
        self.sealed += 1;
        let nonce = (secret, leg_epoch as u32, packet_of(&datagram));
        let before = self.used.entry(nonce).or_insert_with(|| datagram.clone());
        assert_eq!(*before, datagram, "a nonce stands for two contents");
    }
}

fn packet_of(datagram: &[u8]) -> u64 {
    u64::from_be_bytes(datagram[6..14].try_into().unwrap())
}

proptest! {
    /// Under a key, a nonce has one content, whatever is sent, repaired, rekeyed and restarted.
    #[test]
    fn a_nonce_never_stands_for_two_contents(ops in prop::collection::vec(op(), 1..60), epochs in 1u64..3) {
        let (mut streams, mut now, mut sequence, mut drawn) = (Streams::default(), 0u64, 0u64, 0u64);
        let mut draw = || {
            drawn += 1;
            let mut secret = [0; 32];
            secret[..8].copy_from_slice(&drawn.to_be_bytes());
            LegKey::new((drawn % 3) as u8, secret)
        };
        let mut key = draw();
        let mut leg_epoch = 0;
        let start = |key: &LegKey, leg_epoch: u64, after: u64| {
            Sender::new(SenderConfig::new(LEG, leg_epoch, key.clone(), Sequence(after), 100_000_000))
        };
        let mut sender = start(&key, leg_epoch, 0);
        for op in ops {
            match op {
                Op::Product(size) => {
                    sequence += 1;
                    sender.handle(at(now), product(sequence, size, Class::Grid));
                }
                Op::Head => sender.handle(at(now), SenderInput::Head(Sequence(sequence))),
                Op::Key => {
                    key = draw();
                    sender.handle(at(now), SenderInput::Key(key.clone()));
                }
                Op::Nak(site, first, more) => sender.handle(at(now), nak(site, &[(first, first + more)])),
                Op::Wait(micros) => now += micros,
                Op::Restart => {
                    key = draw();
                    leg_epoch = (leg_epoch + 1) % epochs;
                    sender = start(&key, leg_epoch, sequence);
                }
            }
            for datagram in datagrams(&run(&mut sender, now, now)) {
                streams.note(key.secret, leg_epoch, datagram);
            }
        }
        prop_assert!(streams.used.len() <= streams.sealed);
    }
}
