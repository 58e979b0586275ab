//! Values that no correct site sends.
use downburst_model::bounds::{CLOCK_MAX, INTEGER_MAX, OFFSET_MAX_US, ORIGIN_MAX};
use downburst_model::{Class, Lane, Transport};

use super::*;
use crate::{
    ActionFailed, ClockOffset, Filed, Frontier, HeartbeatOut, Late, LinkedSpace, Nak, Outcome, Receipt,
    Receipts, Reception, ResentEnded, ResentFailed,
};

const TOO_MUCH: u64 = INTEGER_MAX + 1;
const TOO_LATE: WallMicros = WallMicros(CLOCK_MAX.0 + 1);
const TOO_EARLY: WallMicros = WallMicros(-1);

/// The violation, if any, that a message of a site causes.
fn violation(message: impl Into<Message>) -> Option<String> {
    let mut bench = Bench::serving(vec![], 10);
    bench.messages(0);
    bench.say(0, message);
    said(&mut bench)
}

fn said(bench: &mut Bench) -> Option<String> {
    let refused = bench.messages(0).iter().any(|message| matches!(message, Message::Refused(_)));
    let found = bench.others.iter().find_map(|output| match output {
        HubOutput::Event(HubEvent::Violation(sentence)) => Some(sentence.clone()),
        _ => None,
    });
    assert_eq!((refused, bench.hub.is_closed()), (found.is_some(), found.is_some()));
    found
}

fn frontier(settled_to: u64) -> Frontier {
    let (feed, settled_to) = (feed(), Sequence(settled_to));
    Frontier { feed, epoch: EPOCH, settled_to, pending: 0, trouble: None, action_failed: None, linked: None }
}

fn key(sequence: u64) -> ProductKey {
    ProductKey { feed: feed(), epoch: EPOCH, sequence: Sequence(sequence) }
}

fn receipt() -> Receipt {
    Receipt {
        lane: Lane::Live,
        transport: Transport::Multicast,
        class: Class::Grid,
        action_done: Some(WallMicros(9)),
        ..Receipt::undescribed(key(3), Outcome::Stored, WallMicros(5))
    }
}

fn receipts(item: Receipt, clock: Option<ClockOffset>) -> Receipts {
    Receipts { clock, items: vec![receipt(), item] }
}

#[test]
fn finding_01_a_frontier_beyond_any_number_ends_the_session_as_a_named_violation() {
    for claim in [TOO_MUCH, u64::MAX] {
        let sentence = violation(frontier(claim)).unwrap();
        assert!(sentence.contains(&format!("`settled_to` of a frontier is {claim}")), "{sentence}");
    }
    assert_eq!(violation(frontier(INTEGER_MAX)), None, "what numbers were given is the driver's to know");
}

#[test]
fn finding_02_a_receipt_with_a_stamp_out_of_range_ends_the_session_as_a_named_violation() {
    let dated = WallMicros(ORIGIN_MAX.0 + 1);
    for (field, item) in [
        ("created", Receipt { created: dated, ..receipt() }),
        ("created", Receipt { created: WallMicros(i64::MIN), ..receipt() }),
        ("hub_stored", Receipt { hub_stored: TOO_LATE, ..receipt() }),
        ("last_byte", Receipt { last_byte: TOO_EARLY, ..receipt() }),
        ("site_stored", Receipt { site_stored: WallMicros(i64::MAX), ..receipt() }),
        ("action_done", Receipt { action_done: Some(TOO_LATE), ..receipt() }),
        ("size", Receipt { size: TOO_MUCH, ..receipt() }),
        ("sequence", Receipt { key: key(u64::MAX), ..receipt() }),
    ] {
        let named = format!("`{field}` of a receipt is ");
        let filed = Filed { items: vec![receipt(), item.clone()] };
        for sentence in [violation(filed), receipts_violation(&receipts(item, None))] {
            assert!(sentence.as_ref().is_some_and(|it| it.contains(&named)), "{field}: {sentence:?}");
        }
    }
    let last = Receipt { created: ORIGIN_MAX, hub_stored: CLOCK_MAX, site_stored: CLOCK_MAX, ..receipt() };
    assert_eq!(receipts_violation(&receipts(last, None)), None);
}

#[test]
fn a_compared_clock_beyond_all_clocks_is_a_violation() {
    let sound = ClockOffset { offset_us: -(OFFSET_MAX_US as i64), bound_us: OFFSET_MAX_US, round_trip_us: 1 };
    assert_eq!(receipts_violation(&receipts(receipt(), Some(sound))), None);
    for clock in [
        ClockOffset { offset_us: i64::MIN, ..sound },
        ClockOffset { bound_us: OFFSET_MAX_US + 1, ..sound },
        ClockOffset { round_trip_us: u64::MAX, ..sound },
    ] {
        let sentence = receipts_violation(&receipts(receipt(), Some(clock))).unwrap();
        assert!(sentence.contains("of a compared clock is"), "{sentence}");
    }
}

#[test]
fn every_number_and_stamp_that_a_site_says_is_bounded() {
    let failed = ActionFailed {
        rule: String::new(),
        exit: None,
        last_error: String::new(),
        product: String::new(),
        sequence: Sequence(1),
        epoch: None,
        count: 1,
        others: vec![],
    };
    let of_action = |failed: ActionFailed| Frontier { action_failed: Some(failed), ..frontier(1) };
    let of_files = |space: LinkedSpace| Frontier { linked: Some(space), ..frontier(1) };
    let numbers: RangeSet = [(1, TOO_MUCH)].into_iter().collect();
    let nak = Nak {
        leg: LegId(1),
        leg_epoch: 1,
        packets: RangeSet::new(),
        heard: None,
        symbols: vec![],
        unanswered: None,
        losses: None,
    };
    let reception = Reception { buffer_bytes: TOO_MUCH, path: String::new(), advice: None };
    let joined = LegJoined { leg: LegId(1), leg_epoch: 1, after: Sequence(1), reception: None };
    let messages: Vec<Message> = vec![
        Frontier { pending: TOO_MUCH, ..frontier(1) }.into(),
        of_action(ActionFailed { sequence: Sequence(TOO_MUCH), ..failed.clone() }).into(),
        of_action(ActionFailed { count: TOO_MUCH, ..failed.clone() }).into(),
        of_action(ActionFailed { others: vec![Sequence(1), Sequence(TOO_MUCH)], ..failed }).into(),
        of_files(LinkedSpace { bytes: TOO_MUCH, free_bytes: 1 }).into(),
        of_files(LinkedSpace { bytes: 1, free_bytes: TOO_MUCH }).into(),
        LegJoined { after: Sequence(TOO_MUCH), ..joined.clone() }.into(),
        LegJoined { reception: Some(reception), ..joined }.into(),
        LegLeft { leg: LegId(1), known_to: Some(Sequence(TOO_MUCH)), reason: String::new(), too_slow: None }
            .into(),
        Nak { packets: numbers.clone(), ..nak.clone() }.into(),
        Nak { heard: Some(TOO_MUCH), ..nak }.into(),
        Want { feed: feed(), epoch: EPOCH, sequences: numbers.clone() }.into(),
        HeartbeatOut { key: key(TOO_MUCH), at: WallMicros(1) }.into(),
        HeartbeatOut { key: key(1), at: TOO_LATE }.into(),
        Late { feed: feed(), products: TOO_MUCH }.into(),
        ResentEnded { resend: 1, key: key(TOO_MUCH), outcome: Outcome::Stored, size: 1 }.into(),
        ResentEnded { resend: 1, key: key(1), outcome: Outcome::Stored, size: TOO_MUCH }.into(),
        ResentFailed { resend: 1, sequences: numbers }.into(),
    ];
    for message in messages {
        let told = format!("{message:?}");
        let sentence = violation(message);
        assert!(
            sentence.is_some_and(|it| it.contains(&TOO_MUCH.to_string()) || it.contains("stamp")),
            "{told}"
        );
    }
}

#[test]
fn positions_of_a_hello_are_bounded_once_the_site_is_known() {
    let beyond = position(&[(0, u64::MAX)]);
    let late = FeedPosition { newest_stored: TOO_LATE, ..position(&[(0, 3)]) };
    for (positions, field) in [(vec![beyond], "`settled`"), (vec![late], "`newest_stored`")] {
        let sentence = said(&mut Bench::serving(positions, 10)).unwrap();
        assert!(sentence.contains(field), "{sentence}");
    }
    let many = vec![position(&[(0, 3)]); 5_000];
    assert!(said(&mut Bench::serving(many, 10)).unwrap().contains("5000 feeds"));
}

#[test]
fn a_driver_that_knows_better_ends_the_session_as_a_violation() {
    let mut bench = Bench::serving(vec![], 10);
    bench.messages(0);
    bench.hub.handle(at(0), HubInput::Violation("never given".to_owned()));
    assert_eq!(said(&mut bench).unwrap(), "never given");
}

/// The same for a frame of receipts.
fn receipts_violation(receipts: &Receipts) -> Option<String> {
    let mut bench = Bench::serving(vec![], 10);
    bench.messages(0);
    let bytes = crate::frame::receipts_frame(receipts);
    bench.hub.handle(at(0), HubInput::Bytes { stream: StreamId::FIRST, bytes });
    said(&mut bench)
}
