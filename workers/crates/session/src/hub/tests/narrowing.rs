//! A site whose rights or subscriptions are narrowed: its queued products follow.
use downburst_model::{IdFilter, Lane};

use super::*;
use crate::{ResendOrder, ResentBegin};

fn only(pattern: &str) -> Vec<Subscription> {
    let granted = IdFilter { pattern: pattern.to_owned(), not_pattern: None };
    vec![Subscription {
        feed: feed(),
        pattern: "^x".to_owned(),
        not_pattern: None,
        within: Some(vec![granted]),
    }]
}

type Pairs = Vec<(u64, u64)>;

/// The numbers of the products that begin, each with its `previous`, and the covered ranges.
fn said(messages: Vec<Message>) -> (Pairs, Pairs) {
    let (mut begun, mut covered) = (Vec::new(), Vec::new());
    for message in messages {
        match message {
            Message::ProductBegin(begin) => {
                begun.push((begin.info.key.sequence.0, begin.previous.map_or(0, |previous| previous.0)));
            }
            Message::Covered(range) => covered.push((range.from.0, range.to.0)),
            _ => {}
        }
    }
    (begun, covered)
}

/// A session with three queued products and no room.
fn queued() -> (Bench, i64) {
    let mut bench = Bench::serving(vec![position(&[(0, 0)])], 3);
    bench.messages(0);
    bench.reads();
    let room = std::mem::replace(&mut bench.hub.line.room_bytes, 0);
    bench.answer(0, 3, vec![entry(1, "x near"), entry(2, "x far"), entry(3, "x near too")]);
    bench.messages(0);
    (bench, room)
}

#[test]
fn what_is_queued_and_not_allowed_any_more_does_not_go() {
    let (mut bench, room) = queued();
    bench.hub.handle(at(0), HubInput::Subscriptions(only("near")));
    bench.hub.line.room_bytes = room;
    let (begun, _) = said(bench.messages(0));
    assert_eq!(begun, [(1, 0), (3, 2)], "the others go as they were");
    assert_eq!(bench.reads(), [(1, 2)], "the site has to hear of its number");
    bench.answer(1, 2, vec![]);
    assert_eq!(said(bench.messages(100)), (vec![], vec![(2, 2)]));
}

#[test]
fn limits_that_are_told_again_take_nothing_back() {
    let (mut bench, room) = queued();
    let wish = Subscription { feed: feed(), pattern: "^x".to_owned(), not_pattern: None, within: None };
    bench.hub.handle(at(0), HubInput::Subscriptions(vec![wish]));
    bench.hub.line.room_bytes = room;
    assert_eq!(said(bench.messages(0)).0, [(1, 0), (2, 1), (3, 2)]);
    assert_eq!(bench.reads(), []);
}

#[test]
fn what_a_leg_lost_and_the_site_may_not_take_any_more_is_covered() {
    let mut bench = Bench::serving(vec![position(&[(0, 0)])], 0);
    bench.hub.handle(at(0), HubInput::JoinLeg(Box::new(join(100))));
    bench.messages(0);
    bench.say(0, LegJoined { leg: LegId(100), leg_epoch: 1, after: Sequence(0), reception: None });
    bench.head(5);
    bench.messages(0);
    bench.say(0, Want { feed: feed(), epoch: EPOCH, sequences: [(4, 4)].into_iter().collect() });
    bench.messages(0);
    let room = std::mem::replace(&mut bench.hub.line.room_bytes, 0);
    bench.answer(3, 4, vec![entry(4, "x far")]);
    bench.hub.handle(at(0), HubInput::Subscriptions(only("near")));
    bench.reads();
    bench.hub.line.room_bytes = room;
    let (begun, _) = said(bench.messages(0));
    assert_eq!(begun, []);
    assert_eq!(bench.reads(), [(3, 4)]);
    bench.answer(3, 4, vec![]);
    assert_eq!(said(bench.messages(100)).1, [(4, 4)]);
}

/// A resend of three products to a site with these rights.
fn order(within: Option<Vec<IdFilter>>) -> ResendOrder {
    ResendOrder {
        resend: 7,
        feed: feed(),
        epoch: EPOCH,
        after: Sequence(0),
        to: Sequence(3),
        lane: Lane::Resend,
        wanted: IdFilter { pattern: "^x".to_owned(), not_pattern: None },
        had: vec![],
        within,
        left: None,
    }
}

#[test]
fn a_resend_brings_no_more_than_the_site_may_take_when_it_goes() {
    let resent = |messages: Vec<Message>| -> Vec<u64> {
        let begun = messages.into_iter().filter_map(|message| match message {
            Message::ResentBegin(ResentBegin { begin, .. }) => Some(begin.info.key.sequence.0),
            _ => None,
        });
        begun.collect()
    };
    let mut bench = Bench::new();
    bench.say(0, hello(vec![position(&[(0, 3)])]));
    let site = SiteName::parse("oslo").unwrap();
    bench.hub.handle(at(0), HubInput::Admit { site, subscriptions: only("x") });
    bench.head(3);
    bench.hub.handle(at(0), HubInput::Resends(vec![order(None)]));
    bench.messages(0);
    let room = std::mem::replace(&mut bench.hub.line.room_bytes, 0);
    let entries = vec![entry(1, "x near"), entry(2, "x far"), entry(3, "x near too")];
    let (after, read_to) = (Sequence(0), Sequence(3));
    bench.hub.handle(at(0), HubInput::ResendEntries { resend: 7, entries, after, read_to });
    let near = IdFilter { pattern: "near".to_owned(), not_pattern: None };
    bench.hub.handle(at(0), HubInput::Resends(vec![order(Some(vec![near]))]));
    bench.hub.line.room_bytes = room;
    assert_eq!(resent(bench.messages(0)), [1, 3]);
}

#[test]
fn what_is_queued_of_a_resend_goes_nowhere_once_the_site_lost_the_feed() {
    let mut bench = Bench::new();
    bench.say(0, hello(vec![position(&[(0, 3)])]));
    let site = SiteName::parse("oslo").unwrap();
    bench.hub.handle(at(0), HubInput::Admit { site, subscriptions: only("x") });
    bench.head(3);
    bench.hub.handle(at(0), HubInput::Resends(vec![order(None)]));
    bench.messages(0);
    let room = std::mem::replace(&mut bench.hub.line.room_bytes, 0);
    let (after, read_to, entries) = (Sequence(0), Sequence(3), vec![entry(2, "x")]);
    bench.hub.handle(at(0), HubInput::ResendEntries { resend: 7, entries, after, read_to });
    bench.hub.handle(at(0), HubInput::Subscriptions(vec![]));
    bench.hub.line.room_bytes = room;
    let went = bench.messages(0).into_iter().any(|message| matches!(message, Message::ResentBegin(_)));
    assert!(!went);
}

/// The start of the feed as sent to the site, if any.
fn began(messages: &[Message]) -> Option<u64> {
    messages.iter().find_map(|message| match message {
        Message::FeedStart(start) => Some(start.after.0),
        _ => None,
    })
}

#[test]
fn a_subscription_that_comes_back_goes_on_where_the_site_stands() {
    let mut bench = Bench::serving(vec![position(&[(0, 4), (6, 6)])], 9);
    assert_eq!(began(&bench.messages(0)), Some(4));
    bench.reads();
    bench.hub.handle(at(1), HubInput::Subscriptions(vec![]));
    bench.head(12);
    assert_eq!(began(&bench.messages(1)), None);
    bench.hub.handle(at(2), HubInput::Subscriptions(only("near")));
    bench.head(15);
    assert_eq!(
        began(&bench.messages(2)),
        Some(4),
        "what was put while the feed was not subscribed does not count as settled"
    );
}

#[test]
fn a_subscription_that_began_at_the_head_comes_back_at_that_head() {
    let mut bench = Bench::serving(vec![], 9);
    assert_eq!(began(&bench.messages(0)), Some(9));
    bench.hub.handle(at(1), HubInput::Subscriptions(vec![]));
    bench.hub.handle(at(2), HubInput::Subscriptions(only("near")));
    bench.head(15);
    assert_eq!(began(&bench.messages(2)), Some(9));
}
