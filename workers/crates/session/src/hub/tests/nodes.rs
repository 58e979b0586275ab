//! The messages of a hub with several nodes.
use super::*;
use crate::{NodeFeeds, Nodes};

fn nodes(version: u64) -> Nodes {
    Nodes { version, items: vec![NodeFeeds { address: "two:1".to_owned(), feeds: vec![feed()] }] }
}

fn told(messages: &[Message]) -> Vec<Nodes> {
    let said = messages.iter().filter_map(|message| match message {
        Message::Nodes(nodes) => Some(nodes.clone()),
        _ => None,
    });
    said.collect()
}

/// Admits a site, and sends it the nodes.
fn admitted(one_node: Option<bool>, stand_by: Option<bool>, nodes: Nodes) -> (Bench, Vec<Message>) {
    let mut bench = Bench::new();
    let Message::Hello(said) = hello(vec![position(&[(0, 2)])]) else { panic!("a hello is one") };
    bench.say(0, Hello { one_node, stand_by, ..said });
    let site = SiteName::parse("oslo").unwrap();
    bench.hub.handle(at(0), HubInput::Admit { site, subscriptions: Vec::new() });
    bench.hub.handle(at(0), HubInput::Nodes(nodes));
    let said = bench.messages(0);
    (bench, said)
}

#[test]
fn a_site_is_told_once_and_again_when_that_changes() {
    let (mut bench, said) = admitted(None, None, nodes(1));
    assert_eq!(told(&said), [nodes(1)]);
    bench.hub.handle(at(0), HubInput::Nodes(nodes(1)));
    assert_eq!(told(&bench.messages(0)), []);
    bench.hub.handle(at(0), HubInput::Nodes(nodes(2)));
    assert_eq!(told(&bench.messages(0)), [nodes(2)]);
}

#[test]
fn a_site_that_takes_all_feeds_from_one_node_is_told_nothing() {
    let (bench, said) = admitted(Some(true), None, nodes(1));
    assert!(!bench.hub.takes_several_nodes());
    assert_eq!(told(&said), []);
}

#[test]
fn a_hub_of_one_node_says_so_only_to_whoever_may_ask() {
    assert_eq!(told(&admitted(None, None, Nodes::default()).1), []);
    assert_eq!(told(&admitted(None, Some(true), Nodes::default()).1), [Nodes::default()]);
}

#[test]
fn a_feed_that_comes_here_during_the_session_goes_on_where_the_hello_said() {
    let (mut bench, _) = admitted(None, None, nodes(1));
    bench.head(5);
    assert_eq!(bench.messages(0), [], "another node serves it");
    let wish = Subscription { feed: feed(), pattern: "^x".to_owned(), not_pattern: None, within: None };
    bench.hub.handle(at(0), HubInput::Subscriptions(vec![wish]));
    bench.head(5);
    let begun = bench.messages(0).into_iter().find_map(|message| match message {
        Message::FeedStart(start) => Some(start.after),
        _ => None,
    });
    assert_eq!(begun, Some(Sequence(2)), "not at the head, as a feed that is new to the site does");
}
