//! The sender alone, and its output as a receiver reads it without loss.
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
use downburst_model::{
    Class, Hops, HubName, LdmIdent, LdmStamp, Machine, Micros, Origin, ProductId, RangeSet, Sequence,
};
use downburst_vcmtp::{LegKey, Receiver, ReceiverConfig, ReceiverInput, Sender, SenderInput, SenderOutput};

const FAST: u64 = 1_000_000_000;

/// A receiver that heard everything.
fn hear(datagrams: &[Bytes]) -> Taken {
    let (mut receiver, mut taken) = (Receiver::new(receiver_config()), Taken::default());
    datagrams.iter().for_each(|datagram| taken.feed(&mut receiver, 0, datagram));
    assert_eq!(receiver.stats().refused, 0);
    taken
}

fn sent_order(said: &[(u64, SenderOutput)]) -> Vec<u64> {
    said.iter()
        .filter_map(|(_, output)| match output {
            SenderOutput::Sent(sequence) => Some(sequence.0),
            _ => None,
        })
        .collect()
}

#[test]
fn products_of_all_sizes_arrive_whole_and_in_a_chain() {
    let mut sender = Sender::new(sender_config(FAST));
    let mut said = run(&mut sender, 0, 0);
    let sizes = [0usize, 1, 1_000, 1_403, 1_404, 100_000, 0, 5];
    for (index, size) in sizes.iter().enumerate() {
        sender.handle(at(1), product(3 * (index as u64 + 1), *size, Class::Grid));
    }
    said.extend(run(&mut sender, 1, 1_000_000));
    let taken = hear(&datagrams(&said));
    assert_eq!(taken.joined, Some(Sequence(0)));
    for (index, size) in sizes.iter().enumerate() {
        let sequence = 3 * (index as u64 + 1);
        assert!(taken.is_whole(sequence, *size), "{sequence}");
        assert_eq!(taken.announced[&Sequence(sequence)].0, Sequence(sequence - 3));
    }
    assert_eq!(sender.backlog_bytes(), 0);
    assert_eq!(sender.stats().product_bytes, sizes.iter().sum::<usize>() as u64);
}

#[test]
fn a_manifest_that_fits_no_datagram_gets_a_longer_one() {
    let hub = HubName::parse(&"h".repeat(15)).unwrap();
    let mut info = info(1, 900, Class::Grid);
    info.hops = (0..16).fold(None, |way, _| Hops::through(way.as_ref(), hub.clone()));
    info.id = ProductId::parse(&"i".repeat(255)).unwrap();
    info.origin = Origin::parse(&"o".repeat(255)).unwrap();
    info.ldm = Some(LdmStamp {
        signature: [7; 16],
        sequence: u32::MAX,
        feed_type: u32::MAX,
        ident: LdmIdent::new(vec![0xff; 255]),
    });
    let mut config = sender_config(FAST);
    config.datagram_bytes = 800;
    let mut sender = Sender::new(config);
    sender.handle(at(0), SenderInput::Product { info: info.clone(), bytes: content(1, 900).into() });
    sender.handle(at(0), product(2, 900, Class::Grid));
    let taken = hear(&datagrams(&run(&mut sender, 0, 1_000_000)));
    assert!(taken.is_whole(1, 900) && taken.is_whole(2, 900));
    let announced = &taken.announced[&Sequence(1)].1;
    assert_eq!((&announced.hops, &announced.ldm), (&info.hops, &info.ldm));
}

#[test]
fn a_large_product_leaves_in_datagrams_of_equal_size_and_no_datagram_is_larger() {
    let mut sender = Sender::new(sender_config(FAST));
    run(&mut sender, 0, 0);
    for sequence in 1..40 {
        sender.handle(at(1), product(sequence, 900 + 131 * sequence as usize, Class::Grid));
    }
    sender.handle(at(1), product(40, 1_000_000, Class::Grid));
    let lengths: Vec<usize> = datagrams(&run(&mut sender, 1, 9_000)).iter().map(Bytes::len).collect();
    let (last, others) = lengths.split_last().unwrap();
    // Six bytes less than the limit, which is the length of a coded repair.
    assert!(others.len() > 700 && others.iter().all(|length| *length == 1_446), "{lengths:?}");
    assert!(*last <= 1_446);
}

#[test]
fn small_products_share_datagrams() {
    let mut sender = Sender::new(sender_config(FAST));
    run(&mut sender, 0, 0);
    (1..=60).for_each(|sequence| sender.handle(at(1), product(sequence, 50, Class::Observation)));
    let datagrams = datagrams(&run(&mut sender, 1, 5_000));
    assert!(datagrams.len() < 15, "{}", datagrams.len());
}

#[test]
fn first_byte_precedes_the_datagram_and_sent_follows_the_last() {
    let mut sender = Sender::new(sender_config(FAST));
    run(&mut sender, 0, 0);
    sender.handle(at(1), product(1, 2_000, Class::Grid));
    sender.handle(at(1), product(2, 0, Class::Grid));
    let shape: Vec<String> = run(&mut sender, 1, 2)
        .iter()
        .map(|(_, output)| match output {
            SenderOutput::Datagram(_) => "datagram".to_owned(),
            output => format!("{output:?}"),
        })
        .collect();
    let expected =
        ["FirstByte(Sequence(2))", "FirstByte(Sequence(1))", "datagram", "Sent(Sequence(2))", "datagram"];
    assert_eq!(shape[..5], expected);
    assert_eq!(shape[5..], ["Sent(Sequence(1))"]);
}

#[test]
fn urgent_products_and_their_manifests_pass_the_rest_of_a_large_one() {
    let mut sender = Sender::new(sender_config(10_000_000));
    run(&mut sender, 0, 0);
    sender.handle(at(1), product(1, 1_000_000, Class::Bulk));
    let mut said = run(&mut sender, 1, 100_000);
    sender.handle(at(100_000), product(2, 20_000, Class::Grid));
    sender.handle(at(100_000), product(3, 5_000, Class::Warning));
    said.extend(run(&mut sender, 100_000, 2_000_000));
    assert_eq!(sent_order(&said), [3, 2, 1]);
    let warned = said.iter().find(|(_, output)| *output == SenderOutput::Sent(Sequence(3))).unwrap().0;
    assert!(warned < 107_000, "the warning took until {warned}");
    let taken = hear(&datagrams(&said));
    assert_eq!(taken.announced[&Sequence(3)].0, Sequence(2));
    assert!(taken.is_whole(1, 1_000_000) && taken.is_whole(2, 20_000) && taken.is_whole(3, 5_000));
}

#[test]
fn a_warning_passes_thousands_of_manifests() {
    let mut sender = Sender::new(sender_config(20_000_000));
    run(&mut sender, 0, 0);
    (1..=20_000).for_each(|sequence| sender.handle(at(1), product(sequence, 50, Class::Observation)));
    let mut said = run(&mut sender, 1, 100_000);
    assert_eq!(sender.backlog_products(), 20_000 - sent_order(&said).len());
    sender.handle(at(100_000), product(20_001, 1_500, Class::Warning));
    said.extend(run(&mut sender, 100_000, 130_000));
    let warned = said.iter().find(|(_, output)| *output == SenderOutput::Sent(Sequence(20_001))).unwrap().0;
    assert!(warned < 102_000, "the warning took until {warned}");
    let taken = hear(&datagrams(&said));
    assert_eq!(taken.announced[&Sequence(20_001)].0, Sequence(20_000));
    assert!(taken.is_whole(20_001, 1_500));
}

#[test]
fn who_joins_behind_an_overtaking_manifest_gets_all_of_what_it_was_promised() {
    let mut sender = Sender::new(sender_config(20_000_000));
    run(&mut sender, 0, 0);
    (1..=500).for_each(|sequence| sender.handle(at(1), product(sequence, 50, Class::Observation)));
    sender.handle(at(1), product(501, 50, Class::Warning));
    let early = datagrams(&run(&mut sender, 1, 1_000));
    (502..=600).for_each(|sequence| sender.handle(at(1_000), product(sequence, 50, Class::Observation)));
    let late = datagrams(&run(&mut sender, 1_000, 1_000_000));
    assert!(early.len() > 1 && late.len() > 20);
    let taken = hear(&late);
    let after = taken.joined.unwrap().0;
    assert_eq!(after, 501, "what is announced below it goes by unicast");
    assert!((after + 1..=600).all(|sequence| taken.is_whole(sequence, 50)));
    assert!(taken.announced.keys().all(|sequence| sequence.0 > after));
}

#[test]
fn no_class_starves() {
    let mut sender = Sender::new(sender_config(20_000_000));
    run(&mut sender, 0, 0);
    let classes = [Class::Warning, Class::Observation, Class::Grid, Class::Bulk];
    for (sequence, class) in (1..).zip(classes) {
        sender.handle(at(1), product(sequence, 20_000_000, class));
    }
    let taken = hear(&datagrams(&run(&mut sender, 1, 4_000_000)));
    let bytes = |sequence| taken.received[&Sequence(sequence)] as f64;
    let all = bytes(1) + bytes(2) + bytes(3) + bytes(4);
    assert!((0.75..0.85).contains(&(bytes(1) / all)), "{}", bytes(1) / all);
    for sequence in 2..=4 {
        assert!((0.05..0.07).contains(&(bytes(sequence) / all)), "{sequence}: {}", bytes(sequence) / all);
    }
}

#[test]
fn a_sequence_that_does_not_rise_is_ignored() {
    let mut sender = Sender::new(sender_config(FAST));
    sender.handle(at(0), product(5, 10, Class::Grid));
    sender.handle(at(0), product(5, 10, Class::Grid));
    sender.handle(at(0), product(4, 10, Class::Grid));
    assert_eq!(sender.stats().products, 1);
    assert_eq!(sender.backlog_bytes(), 10);
}

#[test]
fn an_idle_leg_says_its_head_soon_and_then_less_often() {
    let mut sender = Sender::new(sender_config(FAST));
    assert_eq!(datagrams(&run(&mut sender, 0, 0)).len(), 1, "the first head is due at once");
    sender.handle(at(1_000), product(1, 100, Class::Grid));
    let times: Vec<u64> = run(&mut sender, 1_000, 2_000_000)
        .into_iter()
        .filter(|(_, output)| matches!(output, SenderOutput::Datagram(_)))
        .map(|(time, _)| time)
        .collect();
    let gaps: Vec<u64> = times.windows(2).map(|pair| (pair[1] - pair[0]) / 1_000).collect();
    assert_eq!(gaps[..7], [10, 20, 40, 80, 160, 250, 250]);
}

#[test]
fn a_head_that_moves_is_told() {
    let mut sender = Sender::new(sender_config(FAST));
    let mut said = run(&mut sender, 0, 0);
    sender.handle(at(50_000), product(4, 100, Class::Grid));
    sender.handle(at(50_000), SenderInput::Head(Sequence(9)));
    said.extend(run(&mut sender, 50_000, 70_000));
    sender.handle(at(400_000), SenderInput::Head(Sequence(11)));
    said.extend(run(&mut sender, 400_000, 411_000));
    let taken = hear(&datagrams(&said));
    let pair = |previous, head| (Sequence(previous), Sequence(head));
    assert_eq!(taken.heads, [pair(0, 0), pair(4, 9), pair(4, 11)]);
}

#[test]
fn the_rate_can_change_while_products_flow() {
    let mut sender = Sender::new(sender_config(8_000_000));
    run(&mut sender, 0, 0);
    sender.handle(at(1), product(1, 20_000_000, Class::Grid));
    let sent = |sender: &mut Sender, from: u64, until: u64| {
        let said = run(sender, from, until);
        datagrams(&said).iter().map(|datagram| datagram.len() as u64 + 46).sum::<u64>()
    };
    sent(&mut sender, 1, 1_000_000);
    let slow = sent(&mut sender, 1_000_000, 3_000_000);
    sender.handle(at(3_000_000), SenderInput::Rate(80_000_000));
    let fast = sent(&mut sender, 3_000_000, 4_000_000);
    assert!(slow.abs_diff(2_000_000) < 20_000, "{slow}");
    assert!(fast.abs_diff(10_000_000) < 100_000, "{fast}");
}

#[test]
fn one_asker_is_served_alone_after_the_hold_and_two_by_the_group() {
    let mut sender = Sender::new(sender_config(FAST));
    run(&mut sender, 0, 0);
    sender.handle(at(1), product(1, 10_000, Class::Grid));
    let first = datagrams(&run(&mut sender, 1, 1));
    sender.handle(at(2), nak(1, &[(3, 4)]));
    sender.handle(at(3), nak(2, &[(4, 5)]));
    let said = run(&mut sender, 3, 6_000);
    assert_eq!(datagrams(&said), [first[4 - 2].clone()], "the same bytes again");
    let alone: Vec<(u64, u64)> = said
        .iter()
        .filter_map(|(_, output)| match output {
            SenderOutput::Repair { site, packet, .. } => Some((*site, *packet)),
            _ => None,
        })
        .collect();
    assert_eq!(alone, [(1, 3), (2, 5)]);
    assert_eq!(sender.stats().group_repair_bytes, first[2].len() as u64);
    assert!(sender.stats().site_repair_bytes > 2_000);
}

#[test]
fn a_repair_by_the_session_is_worth_the_datagram() {
    let mut sender = Sender::new(sender_config(FAST));
    let mut first = datagrams(&run(&mut sender, 0, 0));
    sender.handle(at(1), product(1, 4_000, Class::Grid));
    first.extend(datagrams(&run(&mut sender, 1, 1)));
    sender.handle(at(2), nak(1, &[(3, 3)]));
    let said = run(&mut sender, 2, 9_000);
    let Some((_, SenderOutput::Repair { packet: 3, payload, .. })) = said.first() else { panic!("{said:?}") };
    let (mut receiver, mut taken) = (Receiver::new(receiver_config()), Taken::default());
    for datagram in [&first[0], &first[1], &first[3]] {
        taken.feed(&mut receiver, 0, datagram);
    }
    assert!(!taken.is_whole(1, 4_000));
    taken.input(&mut receiver, 1, ReceiverInput::Repair { packet: 3, payload: payload.clone() });
    assert!(taken.is_whole(1, 4_000));
}

#[test]
fn nothing_is_repaired_twice_within_the_hold_off() {
    let mut sender = Sender::new(sender_config(FAST));
    run(&mut sender, 0, 0);
    sender.handle(at(1), product(1, 10_000, Class::Grid));
    run(&mut sender, 1, 1);
    let repairs = |sender: &mut Sender, now: u64| {
        let said = run(sender, now, now + 5_000);
        said.iter().filter(|(_, output)| matches!(output, SenderOutput::Repair { .. })).count()
    };
    sender.handle(at(2), nak(1, &[(3, 3)]));
    assert_eq!(repairs(&mut sender, 2), 1);
    sender.handle(at(15_000), nak(1, &[(3, 3)]));
    assert_eq!(repairs(&mut sender, 15_000), 0, "on its way");
    sender.handle(at(30_000), nak(1, &[(3, 3)]));
    assert_eq!(repairs(&mut sender, 30_000), 1, "lost, it seems");
    let groups = |sender: &mut Sender, now: u64| {
        sender.handle(at(now), nak(1, &[(4, 4)]));
        sender.handle(at(now), nak(2, &[(4, 4)]));
        let before = sender.stats().group_repair_bytes;
        run(sender, now, now + 1_000);
        sender.stats().group_repair_bytes - before
    };
    assert!(groups(&mut sender, 50_000) > 0);
    assert_eq!(groups(&mut sender, 60_000), 0);
    assert_eq!(groups(&mut sender, 71_000), 0, "to the group once");
    let alone = run(&mut sender, 72_000, 77_000);
    let alone = alone.iter().filter(|(_, output)| matches!(output, SenderOutput::Repair { packet: 4, .. }));
    assert_eq!(alone.count(), 2, "then to each who asks");
}

#[test]
fn packets_outside_the_window_are_gone_and_unsent_ones_ignored() {
    let mut config = sender_config(FAST);
    config.repair_window = Micros::from_millis(500);
    let mut sender = Sender::new(config);
    sender.handle(at(0), product(1, 10_000, Class::Grid));
    run(&mut sender, 0, 1_000_000);
    let newest = sender.stats().datagrams;
    sender.handle(at(1_000_000), nak(4, &[(2, u64::MAX)]));
    let said = run(&mut sender, 1_000_000, 1_010_000);
    let mut gone = RangeSet::new();
    for (_, output) in &said {
        if let SenderOutput::Gone { site: 4, packets } = output {
            packets.iter().for_each(|(first, last)| assert!(gone.insert(first, last) > 0, "told twice"));
        }
    }
    assert_eq!((gone.first(), gone.range_count()), (Some(2), 1));
    assert!(gone.last().unwrap() < newest);
    assert!(
        said.iter()
            .all(|(_, output)| !matches!(output, SenderOutput::Repair { packet, .. } if *packet > newest))
    );
}

#[test]
fn one_site_cannot_make_the_sender_copy_faster_than_the_leg() {
    let mut sender = Sender::new(sender_config(FAST / 50));
    sender.handle(at(0), product(1, 8_000_000, Class::Grid));
    run(&mut sender, 0, 5_000_000);
    let before = sender.stats();
    for round in 0..50 {
        let now = 5_000_000 + round * 21_000;
        sender.handle(at(now), nak(1, &[(1, u64::MAX)]));
        run(&mut sender, now, now + 20_999);
    }
    let copied = sender.stats().site_repair_bytes - before.site_repair_bytes;
    assert!(copied > 1_000_000 && copied < 3_200_000, "{copied} bytes in a second at 2.5 MB/s");
}

#[test]
fn repairs_and_data_share_the_rate() {
    for (data, expected) in [(Class::Bulk, 0.75), (Class::Warning, 0.25)] {
        let mut sender = Sender::new(sender_config(20_000_000));
        sender.handle(at(0), product(1, 2_000_000, Class::Observation));
        run(&mut sender, 0, 1_500_000);
        sender.handle(at(1_500_000), product(2, 50_000_000, data));
        let before = sender.stats();
        for round in 0..20 {
            let now = 1_500_000 + 20_000 * round;
            sender.handle(at(now), nak(1, &[(1, 1_300)]));
            sender.handle(at(now), nak(2, &[(1, 1_300)]));
            run(&mut sender, now, now + 20_000 - 1);
        }
        let after = sender.stats();
        let all = (after.datagram_bytes - before.datagram_bytes) as f64;
        let share = (after.group_repair_bytes - before.group_repair_bytes) as f64 / all;
        assert!((share - expected).abs() < 0.03, "{data:?}: {share}");
    }
}

#[test]
fn foreign_keys_legs_and_lives_are_refused() {
    let mut sender = Sender::new(sender_config(FAST));
    sender.handle(at(0), product(1, 3_000, Class::Grid));
    let datagrams = datagrams(&run(&mut sender, 0, 0));
    let base = receiver_config();
    let others = [
        ReceiverConfig { leg: downburst_model::LegId(8), ..base.clone() },
        ReceiverConfig { leg_epoch: LEG_EPOCH + 1, ..base.clone() },
        ReceiverConfig { key: LegKey { id: 4, ..key() }, ..base.clone() },
        ReceiverConfig { key: LegKey::new(3, [0; 32]), ..base },
    ];
    for config in others {
        let (mut receiver, mut taken) = (Receiver::new(config), Taken::default());
        datagrams.iter().for_each(|datagram| taken.feed(&mut receiver, 0, datagram));
        assert_eq!(receiver.stats().refused, datagrams.len() as u64);
        assert_eq!(taken.joined, None);
        assert_eq!(receiver.deadline(), None);
    }
}

#[test]
fn a_leg_goes_on_with_shorter_datagrams_and_with_longer_ones_again() {
    let mut sender = Sender::new(sender_config(FAST));
    let mut receiver = Receiver::new(receiver_config());
    let (mut taken, mut now) = (Taken::default(), 0);
    for (sequence, bytes) in [(1, 1_452), (2, 1_252), (3, 0), (4, 1_452)] {
        sender.handle(at(now), SenderInput::DatagramBytes(bytes));
        sender.handle(at(now), product(sequence, 50_000, Class::Grid));
        let sent = datagrams(&run(&mut sender, now, now + 100_000));
        now += 100_000;
        sent.iter().for_each(|datagram| taken.feed(&mut receiver, now, datagram));
        let longest = sent.iter().map(Bytes::len).max().unwrap();
        // The smallest that any manifest fits into.
        let most = bytes.max(800);
        assert!((most - 8..=most).contains(&longest), "{longest} of {bytes}");
        assert!(taken.is_whole(sequence, 50_000));
    }
}
