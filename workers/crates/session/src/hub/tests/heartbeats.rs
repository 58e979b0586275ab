//! Heartbeats on their way to a site.
use super::*;
use crate::HeartbeatOut;

const BEAT: &str = "downburst:heartbeat:9";

/// A hub with heartbeats that serves a site with the subscription `^x`.
fn serving() -> (Bench, Vec<Message>) {
    let mut bench = Bench::new();
    bench.hub = HubSession::new("hub".to_owned()).with_heartbeats();
    bench.hub.handle(at(0), HubInput::Room { stream: StreamId::FIRST, bytes: 1 << 20 });
    bench.say(0, hello(vec![position(&[(0, 0)])]));
    let site = SiteName::parse("oslo").unwrap();
    let wish = Subscription { feed: feed(), pattern: "^x".to_owned(), not_pattern: None, within: None };
    bench.hub.handle(at(0), HubInput::Admit { site, subscriptions: vec![wish] });
    bench.head(3);
    let said = bench.messages(0);
    (bench, said)
}

fn begun(messages: &[Message]) -> Vec<u64> {
    let begun = messages.iter().filter_map(|message| match message {
        Message::ProductBegin(begin) => Some(begin.info.key.sequence.0),
        _ => None,
    });
    begun.collect()
}

fn not_patterns(messages: &[Message]) -> Vec<Option<String>> {
    let said = messages.iter().filter_map(|message| match message {
        Message::Subscriptions(said) => Some(said.items.iter().map(|item| item.not_pattern.clone())),
        _ => None,
    });
    said.flatten().collect()
}

#[test]
fn a_site_gets_them_whatever_it_wants_and_they_are_not_counted() {
    let (mut bench, said) = serving();
    assert_eq!(not_patterns(&said), [None]);
    assert!(bench.hub.reports_heartbeats());
    bench.answer(0, 3, vec![entry(1, "x"), entry(2, BEAT), entry(3, "y")]);
    assert_eq!(begun(&bench.messages(0)), [1, 2]);
    let sent = bench.others.iter().filter_map(|output| match output {
        HubOutput::Event(HubEvent::Sent { key, .. }) => Some(key.sequence.0),
        _ => None,
    });
    assert_eq!(sent.collect::<Vec<u64>>(), [1]);
}

#[test]
fn one_that_left_the_log_is_covered_and_no_loss() {
    let (mut bench, _) = serving();
    bench.answer(0, 3, vec![Entry { bytes: None, ..entry(2, BEAT) }]);
    assert_eq!(bench.messages(100), [covered(1, 3)]);
}

#[test]
fn the_word_that_one_came_out_is_passed_on() {
    let (mut bench, _) = serving();
    let out = HeartbeatOut { key: entry(2, BEAT).info.key, at: WallMicros(5) };
    bench.say(0, out.clone());
    bench.messages(0);
    let heard = bench.others.iter().filter_map(|output| match output {
        HubOutput::Event(HubEvent::HeartbeatOut(out)) => Some(out.clone()),
        _ => None,
    });
    assert_eq!(heard.collect::<Vec<_>>(), [out]);
}
