use super::*;
use downburst_vcmtp::{SenderKey, SigningSeed};

use crate::{FeedHandling, Forged, Handling, KeyTaken, NextKey};

fn datagrams(after: u64, products: &[(u64, &str, &'static [u8])]) -> Vec<Bytes> {
    proven_datagrams(None, after, products).1
}

/// The datagrams that a leg's sender makes of these products, with the key that proves them if there is a seed.
fn proven_datagrams(
    signing_seed: Option<SigningSeed>,
    after: u64,
    products: &[(u64, &str, &'static [u8])],
) -> (Option<SenderKey>, Vec<Bytes>) {
    let key = LegKey::new(1, [1; 32]);
    let config = SenderConfig::new(LegId(100), 1, key, Sequence(after), 1_000_000_000);
    let (mut sender, mut out) = (Sender::new(SenderConfig { signing_seed, ..config }), Vec::new());
    for (sequence, id, bytes) in products {
        let product = SenderInput::Product {
            info: info(*sequence, id, bytes.len() as u64),
            bytes: Bytes::from_static(bytes).into(),
        };
        sender.handle(at(0), product);
        while let Some(output) = sender.poll(at(0)) {
            if let SenderOutput::Datagram(bytes) = output {
                out.push(bytes.freeze());
            }
        }
    }
    (sender.key(), out)
}

fn hear(bench: &mut Bench, datagram: &Bytes) {
    let input = SiteInput::Datagrams { leg: LegId(100), batch: vec![datagram.clone().into()] };
    bench.site.handle(at(bench.millis), input);
}

#[test]
fn a_leg_that_is_not_heard_is_left_with_what_the_host_supposes() {
    for (foreign, expected) in [
        (false, "nothing was received from the leg's group: the interface is down"),
        (
            true,
            "nothing was received from the leg's group: 1 datagrams came, and none was of this leg; another sender \
             uses the group",
        ),
    ] {
        let mut bench = Bench::started();
        bench.say(join(100));
        let reason = "the interface is down".to_owned();
        bench.site.handle(at(1_000), SiteInput::Deaf { leg: LegId(100), reason });
        if foreign {
            hear(&mut bench, &Bytes::from_static(b"something else"));
        }
        let left = LegLeft { leg: LegId(100), known_to: None, reason: expected.to_owned(), too_slow: None };
        let said = bench.wait(6_000);
        assert!(said.contains(&left.into()), "{said:?}");
    }
}

#[test]
fn how_the_host_receives_is_told_with_the_join() {
    let mut bench = Bench::started();
    bench.say(join(100));
    let reception =
        Reception { buffer_bytes: 425_984, path: "batches".to_owned(), advice: Some("more".to_owned()) };
    let told = SiteInput::GroupJoined { leg: LegId(100), reception: reception.clone() };
    bench.site.handle(at(0), told);
    hear(&mut bench, &datagrams(4, &[(5, "x", b"abc")])[0]);
    let reception = Some(reception);
    let joined = LegJoined { leg: LegId(100), leg_epoch: 1, after: Sequence(4), reception };
    assert!(bench.messages().contains(&joined.into()));
}

#[test]
fn a_leg_is_joined_announces_and_is_left_with_what_is_known() {
    let mut bench = Bench::started();
    bench.say(join(100));
    assert_eq!(bench.count(|output| matches!(output, SiteOutput::JoinGroup(_))), 1);
    let packets = datagrams(4, &[(5, "x", b"abc"), (6, "y", b"abc"), (8, "x", b"abc"), (9, "x", b"abc")]);
    hear(&mut bench, &packets[0]);
    let joined = LegJoined { leg: LegId(100), leg_epoch: 1, after: Sequence(4), reception: None };
    assert!(bench.messages().contains(&joined.into()));
    hear(&mut bench, &packets[1]);
    hear(&mut bench, &packets[3]);
    assert_eq!(bench.count(is_complete), 2, "5 is wanted, 6 is not, 8 is lost, 9 is wanted");
    bench.say(LegLeave { leg: LegId(100) });
    let said = bench.messages();
    let left = LegLeft {
        leg: LegId(100),
        known_to: Some(Sequence(6)),
        reason: "the hub asked".to_owned(),
        too_slow: None,
    };
    assert!(said.contains(&left.into()), "{said:?}");
    assert_eq!(bench.count(|output| matches!(output, SiteOutput::LeaveGroup(_))), 1);
    assert_eq!(bench.ranges(), [(0, 0), (6, 6)]);
}

#[test]
fn what_a_leg_left_unfinished_is_asked_at_once() {
    let mut bench = Bench::started();
    bench.say(join(100));
    let packets = datagrams(0, &[(1, "x", &[7; 5_000])]);
    assert!(packets.len() > 2);
    hear(&mut bench, &packets[0]);
    bench.messages();
    bench.say(LegLeave { leg: LegId(100) });
    assert_eq!(wants(&bench.messages()), [[(1, 1)]]);
    bench.say(ProductBegin { previous: None, ..begin(1, 0, 5_000) });
    bench.slice(1, 0, &[7; 5_000]);
    assert_eq!(bench.count(is_complete), 1);
    bench.settled(1, StoreResult::Stored);
    bench.wait(100);
    let receipts = bench.receipts();
    assert!(receipts[0].size == 5_000 && receipts[0].leg == LegId(1));
}

#[test]
fn a_product_that_comes_on_two_ways_is_stored_once() {
    let mut bench = Bench::started();
    bench.say(join(100));
    let packets = datagrams(0, &[(1, "x", b"abcdef"), (2, "x", b"abcdef")]);
    hear(&mut bench, &packets[0]);
    bench.say(begin(2, 1, 6));
    bench.slice(2, 0, b"abc");
    hear(&mut bench, &packets[1]);
    bench.slice(2, 3, b"def");
    bench.messages();
    let bytes: usize = bench
        .others
        .iter()
        .map(|output| match output {
            SiteOutput::Block { key, bytes, .. } if key.sequence.0 == 2 => bytes.len(),
            _ => 0,
        })
        .sum();
    assert_eq!(bytes, 6, "no byte is written twice");
    assert_eq!(bench.count(is_complete), 2);
}

#[test]
fn a_leg_that_is_not_heard_is_left_after_five_seconds() {
    let mut bench = Bench::started();
    bench.say(join(100));
    assert!(!bench.wait(4_999).iter().any(|message| matches!(message, Message::LegLeft(_))));
    let left = |message: &Message| matches!(message, Message::LegLeft(left) if left.known_to.is_none());
    assert!(bench.wait(2).iter().any(left));
}

#[test]
fn every_leg_join_is_answered_by_one_leg_left() {
    let mut bench = Bench::started();
    bench.say(LegJoin { epoch: Epoch(1), ..join(99) });
    bench.say(join(100));
    bench.say(join(101));
    for _ in 0..2 {
        let reason = "no such interface".to_owned();
        bench.site.handle(at(0), SiteInput::JoinFailed { leg: LegId(100), reason });
    }
    bench.say(LegJoin { leg_epoch: 2, ..join(101) });
    bench.say(LegLeave { leg: LegId(101) });
    bench.say(LegLeave { leg: LegId(101) });
    let left: Vec<u32> = bench
        .messages()
        .into_iter()
        .filter_map(|message| if let Message::LegLeft(left) = message { Some(left.leg.0) } else { None })
        .collect();
    assert_eq!(left, [99, 100, 101, 101]);
}

#[test]
fn a_key_told_ahead_is_confirmed_and_opens_what_comes() {
    let mut bench = Bench::started();
    bench.say(LegJoin {
        key: LegKey::new(2, [2; 32]),
        key_in_use: Some(LegKey::new(1, [1; 32])),
        ..join(100)
    });
    hear(&mut bench, &datagrams(4, &[(5, "x", b"abc")])[0]);
    assert_eq!(bench.count(is_complete), 1, "the key in use counts until another is used");
    let key = LegKey::new(3, [3; 32]);
    bench.say(NextKey { leg: LegId(100), leg_epoch: 1, key: key.clone() });
    let taken = KeyTaken { leg: LegId(100), leg_epoch: 1, key_id: 3 };
    assert!(bench.messages().contains(&taken.into()));
    bench.say(NextKey { leg: LegId(100), leg_epoch: 2, key });
    assert!(!bench.messages().iter().any(|message| matches!(message, Message::KeyTaken(_))));
}

#[test]
fn what_a_leg_brought_wrong_comes_by_the_session_and_the_leg_can_not_spoil_it_again() {
    let mut bench = Bench::started();
    bench.say(join(100));
    let packets = datagrams(0, &[(1, "x", &[7; 5_000])]);
    packets.iter().for_each(|packet| hear(&mut bench, packet));
    assert_eq!(bench.count(is_complete), 1);
    bench.settled(1, StoreResult::DigestMismatch);
    bench.say(LegLeave { leg: LegId(100) });
    bench.say(join(100));
    packets.iter().for_each(|packet| hear(&mut bench, packet));
    assert_eq!(bench.count(is_complete), 1, "blocks of the group can be anybody's");
    bench.say(ProductBegin { previous: None, ..begin(1, 0, 5_000) });
    bench.slice(1, 0, &[7; 5_000]);
    assert_eq!(bench.count(is_complete), 2);
    bench.settled(1, StoreResult::Stored);
    assert_eq!(bench.ranges(), [(0, 1)]);
}

#[test]
fn a_site_says_once_that_somebody_forges_datagrams_of_its_leg() {
    let mut bench = Bench::started();
    let (sender_key, proven) = proven_datagrams(Some(SigningSeed([3; 32])), 0, &[(1, "x", &[7; 5_000])]);
    bench.say(LegJoin { sender_key, ..join(100) });
    proven.iter().for_each(|packet| hear(&mut bench, packet));
    assert_eq!(bench.count(is_complete), 1);
    bench.messages();
    let forged = datagrams(0, &[(1, "x", &[8; 5_000])]);
    forged.iter().for_each(|packet| hear(&mut bench, packet));
    let said = bench.messages().into_iter().filter(|message| matches!(message, Message::Forged(_)));
    assert_eq!(said.collect::<Vec<_>>(), [Forged { leg: LegId(100), leg_epoch: 1 }.into()]);
}

#[test]
fn a_product_that_the_sender_left_out_is_requested_although_no_packet_is_missing() {
    for deadline in [1, 3].map(Micros::from_secs) {
        assert_eq!(wanted_of_a_hole(Some(deadline)), [[(2, 2)]], "{deadline:?}");
    }
}

#[test]
fn a_product_without_a_deadline_that_others_overtook_is_awaited() {
    assert!(wanted_of_a_hole(None).is_empty());
}

/// The requests of a site whose leg brings the first and the third product, and then no others for nine seconds.
fn wanted_of_a_hole(deadline: Option<Micros>) -> Vec<Vec<(u64, u64)>> {
    let mut bench = Bench::started();
    let deadline_us = deadline.map(|deadline| deadline.0);
    let items = vec![FeedHandling { feed: feed(), hold_us: None, max_age_us: None, deadline_us }];
    bench.say(Handling { items });
    bench.say(join(100));
    let config = SenderConfig::new(LegId(100), 1, LegKey::new(1, [1; 32]), Sequence(0), 1_000_000_000);
    let mut sender = Sender::new(config);
    sender.handle(at(0), SenderInput::Deadline(Some(Micros::from_secs(6))));
    let later = at(20_000);
    for (sequence, stored) in [(1, later), (2, at(0)), (3, later)] {
        let info = ProductInfo { stored: stored.wall, ..info(sequence, "x", 3) };
        sender.handle(later, SenderInput::Product { info, bytes: Bytes::from_static(b"abc").into() });
        hear_all(&mut bench, &mut sender, later);
    }
    assert_eq!(bench.count(is_complete), 2, "the second one is too late for the leg");
    let mut said = Vec::new();
    for second in 1..=9 {
        said.extend(bench.wait(1_000));
        hear_all(&mut bench, &mut sender, at(20_000 + 1_000 * second));
        assert!(second > 5 || wants(&said).is_empty(), "a packet that was overtaken might bring it");
    }
    wants(&said)
}

fn hear_all(bench: &mut Bench, sender: &mut Sender, now: Now) {
    while let Some(output) = sender.poll(now) {
        if let SenderOutput::Datagram(bytes) = output {
            hear(bench, &bytes.freeze());
        }
    }
}
