mod credentials;
mod moving;
mod whatever;

use std::collections::BTreeMap;

use super::*;
use crate::rig::*;
use crate::{LocalNews, ShowOrder, Shown, StoreItem, StoredItem, StoredWhat};
use downburst_model::{Epoch, LegId, Micros, ProductKey, WallMicros};
use downburst_session::{
    CredentialKept, CredentialWanted, Datagrams, FeedHandling, HubInput, LegJoin, RefusalCode, RelayLeg,
    SiteEvent, StoreResult, StreamId,
};

const SECOND: Micros = Micros::from_secs(1);

/// The time until the next attempt.
pub(super) fn next_dial(rig: &mut Rig) -> Micros {
    let began = rig.now_us;
    for _ in 0..10_000 {
        if rig.take_said().contains(&"dial".to_owned()) {
            return Micros(rig.now_us - began);
        }
        rig.wait(Micros::from_millis(10));
    }
    panic!("it does not call");
}

#[test]
fn it_calls_at_once_and_is_well_once_it_was_let_in() {
    let mut rig = Rig::new(settings());
    rig.connect();
    assert_eq!(rig.take_said(), ["well as Serve"]);
    rig.publish(3, 1_000);
    rig.wait(SECOND);
    assert_eq!(rig.receipts.len(), 3);
    assert_eq!((rig.connection.misplaced(), rig.connection.takes_bytes()), (0, true));
}

#[test]
fn pauses_between_calls_depend_on_what_answered() {
    let table: [(Option<Ended>, [u64; 5]); 3] = [
        // Nothing answers: attempts follow each other at short intervals for any length of time.
        (Some(Ended::Unanswered), [200; 5]),
        // A host answers, but there is no session.
        (Some(Ended::Answered), [200, 400, 800, 1_600, 3_200]),
        // Sessions that end immediately.
        (None, [200, 400, 800, 1_600, 3_200]),
    ];
    for (ended, expected) in table {
        let mut rig = Rig::new(settings());
        assert_eq!(next_dial(&mut rig), Micros(0).plus(Micros::from_millis(10)));
        let pauses = expected.map(|_| {
            match ended {
                Some(ended) => rig.fail_to_answer(ended),
                None => {
                    rig.answer();
                    rig.settle();
                    rig.cut();
                }
            }
            next_dial(&mut rig).0 / 10_000 * 10
        });
        assert_eq!(pauses, expected, "{ended:?}");
    }
}

#[test]
fn after_a_good_session_pauses_begin_anew() {
    let mut rig = Rig::new(settings());
    next_dial(&mut rig);
    for _ in 0..6 {
        rig.fail_to_answer(Ended::Answered);
        next_dial(&mut rig);
    }
    rig.answer();
    rig.wait(Micros::from_secs(6));
    rig.cut();
    assert_eq!(next_dial(&mut rig).0 / 10_000, 20);
}

#[test]
fn a_connection_that_breaks_is_reported_once_and_made_again() {
    let mut rig = Rig::new(settings());
    rig.connect();
    rig.take_said();
    rig.cut();
    assert_eq!(rig.take_said(), ["away", "hang up"]);
    rig.tell(Input::Closed("cut again".to_owned()));
    rig.settle();
    assert_eq!(rig.take_said(), Vec::<String>::new());
}

#[test]
fn a_cause_that_lasts_is_logged_once_and_again_after_a_connection() {
    let mut attempts = Attempts::default();
    let news = ["away", "away", "away", "refused", "away"].map(|sentence| attempts.is_news(sentence));
    assert_eq!(news, [true, false, false, true, true]);
    attempts.reported = None;
    assert!(attempts.is_news("away"));
}

#[test]
fn a_hub_that_falls_silent_is_given_up() {
    let mut rig = Rig::new(settings());
    rig.connect();
    rig.take_said();
    rig.hub = None;
    rig.wait(Micros::from_secs(60));
    assert_eq!(rig.take_said()[..2], ["away, silent", "hang up"]);
}

#[test]
fn refusals_end_the_attempts_or_do_not() {
    use RefusalCode::*;
    let final_one = ["refused", "away", "hang up"].as_slice();
    let passing = ["away", "hang up"].as_slice();
    let asked = ["read credentials", "refused", "away", "hang up"].as_slice();
    let table: [(RefusalCode, bool, &[&str], bool); 8] = [
        (Version, true, final_one, false),
        (Token, true, final_one, false),
        (Credential, true, asked, false),
        (Expired, true, asked, false),
        (Busy, true, passing, true),
        (Unavailable, true, passing, true),
        (Protocol, true, passing, true),
        (Token, false, passing, true),
    ];
    for (code, decides, expected, calls_again) in table {
        let mut rig = Rig::new(Settings { decides, ..settings() });
        rig.refuses = Some(code);
        rig.connect();
        let said = rig.take_said();
        assert_eq!(counted(&said).into_keys().collect::<Vec<_>>(), sorted(expected), "{code:?}");
        rig.wait(SECOND);
        assert_eq!(rig.take_said().contains(&"dial".to_owned()), calls_again, "{code:?}");
    }
}

fn sorted(words: &[&'static str]) -> Vec<&'static str> {
    let mut words = words.to_vec();
    words.sort_unstable();
    words
}

#[test]
fn one_that_was_refused_for_good_calls_again_in_another_role() {
    let mut rig = Rig::new(settings());
    rig.refuses = Some(RefusalCode::Token);
    rig.connect();
    rig.wait(Micros::from_secs(100));
    rig.take_said();
    rig.tell(Input::Role(Role::StandBy));
    assert!(next_dial(&mut rig) <= SECOND);
}

#[test]
fn another_role_begins_with_a_connection_of_its_own() {
    let mut rig = Rig::new(settings());
    rig.connect();
    rig.take_said();
    rig.tell(Input::Role(Role::StandBy));
    rig.settle();
    assert_eq!(rig.take_said(), ["away", "hang up"]);
    next_dial(&mut rig);
    rig.answer();
    rig.settle();
    assert_eq!(rig.take_said(), ["well as StandBy"]);
    rig.tell(Input::Role(Role::StandBy));
    rig.settle();
    assert_eq!(rig.take_said(), Vec::<String>::new(), "it has that role");
}

#[test]
fn one_that_leaves_settles_and_reports_all_that_came_by_it() {
    let mut rig = Rig::new(settings());
    rig.connect();
    rig.stores = false;
    rig.publish(3, 40_000);
    rig.take_said();
    rig.tell(Input::Role(Role::Leave));
    rig.wait(Micros::from_secs(3));
    assert_eq!(rig.take_said(), Vec::<String>::new(), "the disk has not answered");
    assert!(!rig.connection.takes_bytes());
    while !rig.storing.is_empty() {
        rig.store_next();
    }
    rig.settle();
    assert_eq!((rig.take_said(), rig.receipts.len()), (vec!["farewell".to_owned()], 3));
    rig.tell(Input::HungUp { random: 0.0 });
    rig.settle();
    assert_eq!(rig.take_said(), ["over, 0 unsaid"]);
    assert_eq!(rig.connection.deadline(), None);
}

#[test]
fn what_one_that_leaves_can_not_report_another_one_says() {
    let mut rig = Rig::new(settings());
    rig.connect();
    rig.stores = false;
    rig.publish(2, 40_000);
    rig.cut();
    while !rig.storing.is_empty() {
        rig.store_next();
    }
    rig.tell(Input::Role(Role::Leave));
    rig.settle();
    let unsaid = rig.outputs.iter().find_map(|output| match output {
        Output::Over(unsaid) => Some(unsaid.clone()),
        _ => None,
    });
    let unsaid = unsaid.expect("it has nobody to tell");
    assert_eq!(unsaid.len(), 2);
    let mut other = Rig::with(settings(), enrolled("secret"), unsaid, Role::Serve);
    other.connect();
    other.wait(SECOND);
    assert_eq!(other.receipts.len(), 2);
}

#[test]
fn a_node_that_does_not_hang_up_is_waited_for_a_second() {
    let mut rig = Rig::new(settings());
    rig.connect();
    rig.take_said();
    rig.tell(Input::Role(Role::Leave));
    rig.wait(Micros::from_millis(999));
    assert_eq!(rig.take_said(), ["farewell"]);
    rig.wait(Micros::from_millis(2));
    assert_eq!(rig.take_said(), ["over, 0 unsaid"]);
}

#[test]
fn the_end_waits_for_nothing_but_the_network() {
    for up in [false, true] {
        let mut rig = Rig::new(settings());
        if up {
            rig.connect();
            rig.stores = false;
            rig.publish(1, 10);
        }
        rig.settle();
        rig.take_said();
        rig.tell(Input::Role(Role::End));
        rig.settle();
        assert_eq!(rig.take_said(), ["hang up", "over, 0 unsaid"]);
        rig.tell(Input::Role(Role::Serve));
        rig.wait(SECOND);
        assert_eq!(rig.take_said(), Vec::<String>::new(), "it is over");
    }
}

#[test]
fn what_is_stored_late_is_reported_by_the_next_connection() {
    let mut rig = Rig::new(settings());
    rig.connect();
    rig.stores = false;
    rig.publish(4, 40_000);
    rig.cut();
    assert!(rig.receipts.is_empty());
    while !rig.storing.is_empty() {
        rig.store_next();
    }
    rig.stores = true;
    next_dial(&mut rig);
    rig.answer();
    rig.wait(SECOND);
    let mut numbers: Vec<u64> = rig.receipts.iter().map(|it| it.key.sequence.0).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, 3, 4], "each once");
}

#[test]
fn nothing_is_read_while_too_much_waits_for_the_disk() {
    let mut rig = Rig::new(Settings { memory_limit_bytes: usize::MAX, ..settings() });
    rig.connect();
    rig.stores = false;
    rig.publish(1, 64 << 20);
    assert!(!rig.connection.takes_bytes());
    rig.store_next();
    rig.settle();
    assert!(rig.connection.takes_bytes());
}

#[test]
fn a_large_product_goes_to_a_place_and_is_dropped_there_with_its_connection() {
    let mut rig = Rig::new(Settings { memory_limit_bytes: 1_000, ..settings() });
    rig.connect();
    rig.stores = false;
    rig.publish(1, 100_000);
    let is_placed = match &rig.storing[0].items[0] {
        StoreItem::Product { contents, .. } => matches!(contents, crate::Contents::Place(_)),
        StoreItem::Train { .. } => panic!("it came alone"),
    };
    assert!(is_placed);
    let begun = rig.outputs.iter().filter(|it| matches!(it, Output::Place(crate::PlaceOrder::Begin(..))));
    assert_eq!(begun.count(), 1);
}

#[test]
fn a_new_life_of_the_hubs_log_is_guarded_against() {
    let mut rig = Rig::new(settings());
    rig.connect();
    rig.publish(3, 100);
    rig.wait(SECOND);
    rig.cut();
    rig.take_said();
    (rig.epoch, rig.log) = (Epoch(2), Vec::new());
    next_dial(&mut rig);
    rig.answer();
    rig.settle();
    rig.publish(3, 100);
    rig.wait(SECOND);
    assert_eq!(counted(&rig.take_said()).get("guard"), Some(&1));
    assert_eq!(rig.connection.feeds().brought(&feed()).map(|it| it.0), Some(Epoch(2)));
}

#[test]
fn feeds_are_shown_in_order_as_the_hub_that_serves_asks() {
    let handling =
        || vec![FeedHandling { feed: feed(), hold_us: Some(2_000_000), max_age_us: None, deadline_us: None }];
    for (role, has_files, expected) in
        [(Role::Serve, true, 1), (Role::Serve, false, 0), (Role::StandBy, true, 0)]
    {
        let mut local = LocalSoftware::new(has_files);
        let order = local.order(role == Role::Serve, None, &handling());
        assert_eq!(order.iter().count(), expected, "{role:?} {has_files}");
        if let Some(order) = order {
            let holds = BTreeMap::from([(feed(), Micros::from_secs(2))]);
            assert_eq!(order, ShowOrder::Feeds { only: None, holds });
        }
    }
    let mut local = LocalSoftware::new(true);
    let other = [downburst_model::FeedName::parse("G").unwrap()].into();
    let ShowOrder::Feeds { holds, .. } = local.order(true, Some(&other), &handling()).unwrap() else {
        panic!()
    };
    assert!(holds.is_empty(), "other connections decide about their feeds");
}

#[test]
fn what_is_missing_is_told_where_an_order_was_asked_for_and_when_it_changed() {
    let mut local = LocalSoftware::new(true);
    let handling = FeedHandling { feed: feed(), hold_us: Some(1), max_age_us: None, deadline_us: None };
    local.order(true, None, &[handling]);
    let missing = |to| Missing { to: downburst_model::Sequence(to), ..Missing::default() };
    assert!(local.changes(|_| missing(5)).is_empty(), "nothing happened");
    local.may_have_changed();
    assert_eq!(local.changes(|_| missing(5)), [ShowOrder::Missing(feed(), missing(5))]);
    local.may_have_changed();
    assert!(local.changes(|_| missing(5)).is_empty());
    local.may_have_changed();
    assert_eq!(local.changes(|_| missing(6)).len(), 1);
}

#[test]
fn news_of_local_software_reach_the_session() {
    let key = ProductKey { feed: feed(), epoch: Epoch(1), sequence: downburst_model::Sequence(1) };
    let shown = |late, heartbeat| {
        LocalNews::Shown(Shown { key: key.clone(), at: WallMicros(1), late, heartbeat }).into_inputs().count()
    };
    assert_eq!(
        [shown(false, false), shown(true, false), shown(false, true), shown(true, true)],
        [1, 2, 1, 1]
    );
    assert_eq!(LocalNews::Acts { feed: feed(), failed: None }.into_inputs().count(), 1);
    assert_eq!(LocalNews::LinkedFiles { feed: feed(), space: None }.into_inputs().count(), 1);
}

#[test]
fn what_was_on_its_way_when_the_connection_ended_is_passed_over() {
    let mut rig = Rig::new(settings());
    rig.connect();
    rig.cut();
    rig.take_said();
    let stream = StreamId(1);
    rig.tell(Input::Bytes { stream: StreamId::FIRST, bytes: bytes::Bytes::from_static(b"rubbish") });
    rig.tell(Input::StreamOpened(stream));
    rig.tell(Input::StreamClosed { stream, reason: String::new() });
    rig.tell(Input::Leg(LegId(1), LegNews::Deaf(String::new())));
    rig.tell(Input::Dialled(Ok(Linked { resume_at: Vec::new() })));
    let unknown = StoredItem {
        what: StoredWhat::Product(info(Epoch(1), 9, "x", 1), StoreResult::Stored),
        at: WallMicros(0),
        log_sequence: None,
    };
    rig.tell(Input::Stored(Stored { id: 77, items: vec![unknown] }));
    while let Some(output) = rig.connection.poll(rig.now()) {
        assert!(!matches!(output, Output::Write { .. } | Output::Event(_)), "{output:?}");
    }
}

#[test]
fn a_leg_is_joined_and_left_with_the_connection() {
    let mut rig = Rig::new(settings());
    rig.connect();
    rig.publish(1, 10);
    let join = LegJoin {
        leg: LegId(7),
        feed: feed(),
        epoch: Epoch(1),
        leg_epoch: 1,
        group: "239.1.1.1".to_owned(),
        port: 5_000,
        key: downburst_vcmtp::LegKey::new(1, [7; 32]),
        key_in_use: None,
        sender_key: None,
        proof_secret: None,
        pass: None,
        interface: String::new(),
        rate_bps: 1_000_000,
        source: None,
        channel: None,
    };
    hub_says(&mut rig, HubInput::JoinLeg(Box::new(join)));
    let joined = |rig: &Rig| {
        rig.outputs.iter().any(|it| matches!(it, Output::JoinGroup(join) if join.leg == LegId(7)))
    };
    let left = |rig: &Rig| rig.outputs.iter().any(|it| matches!(it, Output::LeaveGroup(LegId(7))));
    assert!(joined(&rig) && !left(&rig));
    hub_says(&mut rig, HubInput::LeaveLeg(LegId(7)));
    assert!(left(&rig));
}

#[test]
fn a_relay_gets_its_leg_and_the_datagrams() {
    let mut rig = Rig::new(settings());
    rig.connect();
    let leg = RelayLeg {
        leg: LegId(7),
        group: "239.1.1.1".to_owned(),
        port: 5,
        rate_bps: 1,
        hops: 1,
        unicast: None,
    };
    let train = Datagrams { leg: LegId(7), segment_bytes: 2, bytes: vec![1, 2, 3].into() };
    hub_says(&mut rig, HubInput::RelayLeg(leg.clone()));
    hub_says(&mut rig, HubInput::Datagrams { train: train.clone(), queue_bytes: 0 });
    let asked = |it: &Output| matches!(it, Output::Event(SiteEvent::RelayLeg(asked)) if *asked == leg);
    assert!(rig.outputs.iter().any(asked));
    assert!(rig.outputs.iter().any(|it| matches!(it, Output::Relay(came) if *came == train)));
}

/// Makes the hub send this.
pub(super) fn hub_says(rig: &mut Rig, input: HubInput) {
    let now = rig.now();
    rig.hub.as_mut().unwrap().handle(now, input);
    rig.settle();
}
