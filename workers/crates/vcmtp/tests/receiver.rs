//! The receiver against loss, reordering, repetition and late joins, step by step.
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
use downburst_model::{Class, Machine, Micros, RangeSet, Sequence};
use downburst_vcmtp::{Receiver, ReceiverConfig, ReceiverInput, Sender, SenderInput, SenderOutput};

/// Datagram `n` is packet `n + 1`: a head, then the products of the given sizes at intervals of 1 ms.
fn leg(sizes: &[usize]) -> (Sender, Vec<Bytes>) {
    let mut config = sender_config(1_000_000_000);
    config.burst_bytes = 1 << 20;
    let mut sender = Sender::new(config);
    let mut said = run(&mut sender, 0, 0);
    for (index, size) in sizes.iter().enumerate() {
        let now = 1_000 * (index as u64 + 1);
        sender.handle(at(now), product(index as u64 + 1, *size, Class::Observation));
        said.extend(run(&mut sender, now, now));
    }
    (sender, datagrams(&said))
}

fn receiver(change: impl FnOnce(&mut ReceiverConfig)) -> Receiver {
    let mut config = receiver_config();
    change(&mut config);
    Receiver::new(config)
}

fn set(ranges: &[(u64, u64)]) -> RangeSet {
    ranges.iter().copied().collect()
}

#[test]
fn a_hole_is_asked_for_after_the_reorder_wait_and_again_with_growing_waits() {
    let (_, datagrams) = leg(&[20_000]);
    let (mut receiver, mut taken) = (receiver(|_| ()), Taken::default());
    for (index, datagram) in datagrams.iter().enumerate() {
        if ![3, 4, 7].contains(&index) {
            taken.feed(&mut receiver, 100, datagram);
        }
    }
    assert_eq!(receiver.stats().missed, 3);
    let mut times = Vec::new();
    while times.len() < 7 {
        let due = receiver.deadline().unwrap();
        taken.poll(&mut receiver, due.0);
        if taken.naks.len() > times.len() {
            times.push(due.0);
        }
    }
    assert!(taken.naks.iter().all(|nak| *nak == set(&[(4, 5), (8, 8)])));
    assert_eq!(times[0], 11_000, "10.1 ms, rounded up to the grid");
    let waits: Vec<u64> = times.windows(2).map(|pair| (pair[1] - pair[0]) / 1_000).collect();
    assert_eq!(waits, [100, 200, 400, 800, 800, 800]);
}

#[test]
fn reordered_packets_are_neither_asked_for_nor_lost() {
    let (_, mut datagrams) = leg(&[5_000, 0, 300, 9_000]);
    datagrams[1..].reverse();
    let (mut receiver, mut taken) = (receiver(|_| ()), Taken::default());
    for (index, datagram) in datagrams.iter().enumerate() {
        taken.feed(&mut receiver, index as u64 * 100, datagram);
    }
    assert!(
        taken.is_whole(1, 5_000)
            && taken.is_whole(2, 0)
            && taken.is_whole(3, 300)
            && taken.is_whole(4, 9_000)
    );
    assert!(taken.naks.is_empty());
    assert_eq!(receiver.stats().repaired, 0);
}

#[test]
fn repeated_packets_are_counted_and_told_once() {
    let (_, datagrams) = leg(&[5_000]);
    let (mut receiver, mut taken) = (receiver(|_| ()), Taken::default());
    for datagram in datagrams.iter().chain(&datagrams) {
        taken.feed(&mut receiver, 0, datagram);
    }
    assert!(taken.is_whole(1, 5_000));
    assert_eq!(receiver.stats().repeated, datagrams.len() as u64);
}

#[test]
fn a_lost_tail_is_noticed_by_the_next_head() {
    let (mut sender, datagrams) = leg(&[5_000]);
    let (mut receiver, mut taken) = (receiver(|_| ()), Taken::default());
    let (last, heard) = datagrams.split_last().unwrap();
    heard.iter().for_each(|datagram| taken.feed(&mut receiver, 1_000, datagram));
    assert!(!taken.is_whole(1, 5_000));
    for datagram in common::datagrams(&run(&mut sender, 1_000, 20_000)) {
        taken.feed(&mut receiver, 12_000, &datagram);
    }
    taken.poll(&mut receiver, 22_000);
    assert_eq!(taken.naks, [set(&[(datagrams.len() as u64, datagrams.len() as u64)])]);
    taken.feed(&mut receiver, 30_000, last);
    assert!(taken.is_whole(1, 5_000));
    assert_eq!(receiver.stats().repaired, 1);
}

#[test]
fn a_late_joiner_gets_what_is_announced_after_its_first_packet_and_nothing_else() {
    let (_, datagrams) = leg(&[50_000, 700, 50_000]);
    let (mut receiver, mut taken) = (receiver(|_| ()), Taken::default());
    datagrams[10..].iter().for_each(|datagram| taken.feed(&mut receiver, 0, datagram));
    assert_eq!(taken.joined, Some(Sequence(1)));
    assert!(!taken.bytes.contains_key(&Sequence(1)));
    assert!(taken.is_whole(2, 700) && taken.is_whole(3, 50_000));
    datagrams[..10].iter().for_each(|datagram| taken.feed(&mut receiver, 0, datagram));
    taken.poll(&mut receiver, 1_000_000);
    assert!(taken.naks.is_empty(), "nothing before the join is missing");
}

#[test]
fn blocks_wait_for_their_manifest() {
    let (_, datagrams) = leg(&[5_000]);
    let (mut receiver, mut taken) = (receiver(|_| ()), Taken::default());
    for index in [0, 2, 3, 4] {
        taken.feed(&mut receiver, 0, &datagrams[index]);
    }
    assert!(taken.announced.is_empty());
    taken.feed(&mut receiver, 0, &datagrams[1]);
    assert!(taken.is_whole(1, 5_000));
}

#[test]
fn held_blocks_are_bounded_and_what_exceeds_the_bound_is_asked_for() {
    let size = 30_000_000;
    let (_, datagrams) = {
        let mut sender = Sender::new(sender_config(10_000_000_000));
        let mut said = run(&mut sender, 0, 0);
        sender.handle(at(1), product(1, size, Class::Grid));
        said.extend(run(&mut sender, 1, 60_000));
        (sender, datagrams(&said))
    };
    let (mut receiver, mut taken) = (receiver(|_| ()), Taken::default());
    for (index, datagram) in datagrams.iter().enumerate().filter(|(index, _)| *index != 1) {
        taken.feed(&mut receiver, index as u64, datagram);
    }
    taken.feed(&mut receiver, 50_000, &datagrams[1]);
    let told = taken.received[&Sequence(1)];
    assert!(told > 3 << 20 && told < 5 << 20, "held {told} bytes, each with its datagram");
    let mut now = 60_000;
    while taken.received[&Sequence(1)] < size as u64 {
        taken.naks.clear();
        taken.poll(&mut receiver, now);
        now = receiver.deadline().map_or(now, |due| due.0.max(now));
        for nak in std::mem::take(&mut taken.naks) {
            assert!(nak.count() <= 4_096, "the ask window");
            for (first, last) in nak.iter() {
                (first..=last)
                    .for_each(|packet| taken.feed(&mut receiver, now, &datagrams[packet as usize - 1]));
            }
        }
    }
    assert!(taken.is_whole(1, size) && taken.given_up.is_empty());
}

#[test]
fn gone_packets_are_given_up_and_their_orphans_dropped() {
    let (_, datagrams) = leg(&[5_000, 4_000]);
    let (mut receiver, mut taken) = (receiver(|_| ()), Taken::default());
    for (index, datagram) in datagrams.iter().enumerate() {
        if index != 1 {
            taken.feed(&mut receiver, 0, datagram);
        }
    }
    taken.input(&mut receiver, 1, ReceiverInput::Gone(set(&[(1, 4), (100, 200)])));
    assert_eq!(taken.given_up, set(&[(2, 2)]));
    assert!(taken.is_whole(2, 4_000) && !taken.announced.contains_key(&Sequence(1)));
    taken.feed(&mut receiver, 2, &datagrams[1]);
    assert!(!taken.announced.contains_key(&Sequence(1)), "given up is given up");
    taken.poll(&mut receiver, 1_000_000);
    assert!(taken.naks.is_empty());
    assert_eq!(receiver.stats().given_up, 1);
}

#[test]
fn over_the_limit_the_oldest_are_given_up() {
    let (_, datagrams) = leg(&[100_000]);
    let (mut receiver, mut taken) = (receiver(|config| config.missing_limit = 10), Taken::default());
    taken.feed(&mut receiver, 0, &datagrams[0]);
    taken.feed(&mut receiver, 0, &datagrams[30]);
    assert_eq!(taken.given_up, set(&[(2, 20)]));
    taken.poll(&mut receiver, 20_000);
    assert_eq!(taken.naks, [set(&[(21, 30)])]);
}

#[test]
fn a_leap_of_the_packet_number_costs_no_time_and_no_memory() {
    let mut seal = leg(&[]).1;
    let (mut receiver, mut taken) = (receiver(|_| ()), Taken::default());
    taken.feed(&mut receiver, 0, &seal.remove(0));
    taken.input(&mut receiver, 0, ReceiverInput::Gone(set(&[(0, u64::MAX)])));
    taken.input(&mut receiver, 0, ReceiverInput::Repair { packet: u64::MAX, payload: Bytes::new() });
    assert_eq!(receiver.stats().repeated, 1);
    assert!(taken.given_up.is_empty());
}

#[test]
fn silence_is_said_once_until_something_is_heard() {
    let (mut sender, datagrams) = leg(&[]);
    let (mut receiver, mut taken) =
        (receiver(|config| config.silence_limit = Micros(500_000)), Taken::default());
    assert_eq!(receiver.deadline(), None);
    taken.feed(&mut receiver, 1_000, &datagrams[0]);
    assert_eq!(receiver.deadline(), Some(Micros(501_000)));
    taken.poll(&mut receiver, 500_999);
    assert_eq!(taken.silent, 0);
    taken.poll(&mut receiver, 501_000);
    taken.poll(&mut receiver, 9_000_000);
    assert_eq!((taken.silent, receiver.deadline()), (1, None));
    sender.handle(at(9_000_000), SenderInput::Head(Sequence(4)));
    for datagram in common::datagrams(&run(&mut sender, 9_000_000, 9_000_000)) {
        taken.feed(&mut receiver, 9_000_000, &datagram);
    }
    assert_eq!(receiver.deadline(), Some(Micros(9_500_000)));
}

#[test]
fn while_the_session_brings_repairs_the_rest_is_not_asked_again() {
    let (mut sender, datagrams) = leg(&[200_000]);
    let (mut receiver, mut taken) = (receiver(|_| ()), Taken::default());
    taken.feed(&mut receiver, 2_000, &datagrams[0]);
    taken.feed(&mut receiver, 2_000, &datagrams[141]);
    taken.poll(&mut receiver, 12_000);
    assert_eq!(taken.naks, [set(&[(2, 141)])]);
    sender.handle(at(12_000), SenderInput::Nak { site: 1, request: taken.requests[0].clone() });
    let repairs: Vec<(u64, Bytes)> = run(&mut sender, 12_000, 18_000)
        .into_iter()
        .filter_map(|(_, output)| match output {
            SenderOutput::Repair { packet, payload, .. } => Some((packet, payload)),
            _ => None,
        })
        .collect();
    assert_eq!(repairs.len(), 140);
    for (index, (packet, payload)) in repairs.into_iter().take(12).enumerate() {
        let now = 12_000 + 60_000 * (index as u64 + 1);
        taken.input(&mut receiver, now, ReceiverInput::Repair { packet, payload });
    }
    assert_eq!(taken.naks.len(), 1, "a slow session is not asked twice");
    taken.poll(&mut receiver, 12_000 + 800_000 + 100_000);
    assert_eq!(taken.naks.len(), 2, "but patience ends");
}

#[test]
fn what_was_overtaken_in_the_session_is_asked_again_in_time() {
    let (_, datagrams) = leg(&[20_000]);
    let (mut receiver, mut taken) = (receiver(|_| ()), Taken::default());
    let clear = |packet: u64| {
        let mut sender = leg(&[20_000]).0;
        sender.handle(at(2_000), nak(1, &[(packet, packet)]));
        let said = run(&mut sender, 2_000, 8_000);
        said.into_iter()
            .find_map(|(_, output)| match output {
                SenderOutput::Repair { packet, payload, .. } => {
                    Some(ReceiverInput::Repair { packet, payload })
                }
                _ => None,
            })
            .unwrap()
    };
    taken.feed(&mut receiver, 0, &datagrams[0]);
    taken.feed(&mut receiver, 0, &datagrams[2]);
    taken.feed(&mut receiver, 30_000, &datagrams[4]);
    taken.poll(&mut receiver, 40_000);
    assert_eq!(taken.naks, [set(&[(2, 2)]), set(&[(4, 4)])]);
    taken.input(&mut receiver, 100_000, clear(4));
    taken.poll(&mut receiver, 130_000);
    assert_eq!(taken.naks.len(), 3, "packet 2 was asked for before packet 4 and is not in the queue");
}

#[test]
fn a_malformed_repair_leaves_the_packet_missing() {
    let (_, datagrams) = leg(&[5_000]);
    let (mut receiver, mut taken) = (receiver(|_| ()), Taken::default());
    taken.feed(&mut receiver, 0, &datagrams[0]);
    taken.feed(&mut receiver, 0, &datagrams[2]);
    taken.input(&mut receiver, 0, ReceiverInput::Repair { packet: 2, payload: Bytes::from_static(b"no") });
    assert_eq!(receiver.stats().refused, 1);
    taken.poll(&mut receiver, 10_000);
    assert_eq!(taken.naks, [set(&[(2, 2)])]);
}
