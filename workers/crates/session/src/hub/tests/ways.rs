//! The ways by relays that a hub tells its sites, and the reports of relays.
use super::*;
use crate::{RelayReport, Segment, TunnelFacts};

fn chains(chains: &[&str]) -> Vec<String> {
    chains.iter().map(|&chain| chain.to_owned()).collect()
}

fn told(messages: &[Message]) -> Vec<Vec<String>> {
    let said = messages.iter().filter_map(|message| match message {
        Message::Ways(ways) => Some(ways.chains.clone()),
        _ => None,
    });
    said.collect()
}

/// Admits a site of these ways.
fn admitted(given: &[&str]) -> (Bench, Vec<Message>) {
    let mut bench = Bench::new();
    bench.say(0, hello(vec![position(&[(0, 2)])]));
    bench.hub.handle(at(0), HubInput::Ways(chains(given)));
    let site = SiteName::parse("oslo").unwrap();
    bench.hub.handle(at(0), HubInput::Admit { site, subscriptions: Vec::new() });
    let said = bench.messages(0);
    (bench, said)
}

#[test]
fn a_site_hears_its_ways_before_its_subscriptions_and_again_only_when_they_change() {
    let (mut bench, said) = admitted(&["a:1"]);
    let kinds: Vec<u8> = said.iter().map(|message| message.encode()[0]).collect();
    assert_eq!(kinds, [2, 60, 4], "welcome, ways, subscriptions");
    let mut tell = |given: &[&str]| {
        bench.hub.handle(at(0), HubInput::Ways(chains(given)));
        told(&bench.messages(0))
    };
    assert!(tell(&["a:1"]).is_empty());
    assert_eq!(tell(&["b:1", "a:1"]), [chains(&["b:1", "a:1"])]);
    assert_eq!(tell(&[]), [chains(&[])], "back to the direct way");
    assert!(tell(&[]).is_empty());
}

#[test]
fn a_site_without_ways_hears_of_none() {
    assert!(told(&admitted(&[]).1).is_empty());
}

#[test]
fn a_report_of_a_relay_becomes_an_event() {
    let (mut bench, _) = admitted(&[]);
    let tunnel = TunnelFacts { near: Segment::default(), ..TunnelFacts::default() };
    let report = RelayReport { tunnels: vec![tunnel], legs: Vec::new(), refused: 3 };
    bench.say(0, report.clone());
    bench.messages(0);
    let heard = bench
        .others
        .iter()
        .any(|it| matches!(it, HubOutput::Event(HubEvent::RelayReport(heard)) if *heard == report));
    assert!(heard, "{:?}", bench.others);
}
