//! A site at one of several nodes of a hub.
use super::*;
use crate::{NodeFeeds, Nodes};

fn other() -> FeedName {
    FeedName::parse("NGRID").unwrap()
}

fn only(feeds: &[FeedName]) -> Bench {
    let mut bench = Bench::new();
    bench.site =
        SiteSession::new("test".to_owned(), SiteState::default()).only(Some(feeds.iter().cloned().collect()));
    bench
}

#[test]
fn what_it_is_not_for_is_passed_over_whatever_the_node_gives() {
    let mut bench = only(&[other()]);
    bench.connect();
    bench.messages();
    bench.say(FeedStart { feed: feed(), epoch: EPOCH, after: Sequence(0), duplicates: None });
    bench.say(begin(1, 0, 2));
    bench.slice(1, 0, b"hi");
    assert_eq!(bench.count(is_complete), 0);
    assert_eq!(bench.site.positions(), [], "another connection knows where the feed stands");
}

#[test]
fn the_hello_speaks_of_no_other_feeds() {
    let mut bench = only(&[other()]);
    let position =
        |feed| FeedPosition { feed, epoch: EPOCH, settled: RangeSet::new(), newest_stored: WallMicros(1) };
    bench.site.handle(at(0), SiteInput::ResumeAt(vec![position(feed()), position(other())]));
    let proof = Proof::Credential { site: SiteName::parse("oslo").unwrap(), secret: "s".to_owned() };
    bench.site.handle(at(0), SiteInput::Connected(proof));
    let said = bench.messages();
    let Some(Message::Hello(hello)) = said.first() else { panic!("a hello is first") };
    assert_eq!(hello.feeds, [position(other())]);
}

#[test]
fn it_hears_which_nodes_there_are() {
    let mut bench = Bench::started();
    let nodes =
        Nodes { version: 7, items: vec![NodeFeeds { address: "two:1".to_owned(), feeds: vec![feed()] }] };
    bench.say(nodes.clone());
    bench.messages();
    assert!(
        bench
            .others
            .iter()
            .any(|it| matches!(it, SiteOutput::Event(SiteEvent::Nodes(told)) if *told == nodes))
    );
}
