//! A site with one of several nodes of a hub.
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

#[test]
fn who_leaves_says_its_receipts_at_once() {
    let mut bench = Bench::started();
    stored(&mut bench, 1);
    assert_eq!(bench.receipts(), [], "others may come in the same moment");
    bench.site.handle(at(bench.millis), SiteInput::Leave);
    assert_eq!(bench.receipts().len(), 1);
    assert_eq!(bench.site.take_unsaid(), []);
}

#[test]
fn what_was_not_said_is_said_once_by_the_connection_that_takes_over() {
    let mut bench = Bench::started();
    bench.say(begin(1, 0, 2));
    bench.slice(1, 0, b"hi");
    bench.messages();
    bench.site.handle(at(0), SiteInput::Disconnected);
    bench.settled(1, StoreResult::Stored);
    bench.site.handle(at(0), SiteInput::Leave);
    assert_eq!(bench.receipts(), [], "there is no connection");
    let unsaid = bench.site.take_unsaid();
    assert_eq!(unsaid.iter().map(|it| it.key.sequence.0).collect::<Vec<_>>(), [1]);
    assert_eq!(bench.site.take_unsaid(), []);
    let mut next = Bench::new();
    next.site = SiteSession::new("test".to_owned(), SiteState::default()).owing(unsaid.clone());
    next.connect();
    next.wait(100);
    assert_eq!(next.receipts(), unsaid);
    next.wait(10_000);
    assert_eq!(next.receipts(), []);
}

fn stored(bench: &mut Bench, sequence: u64) {
    bench.say(begin(sequence, sequence - 1, 2));
    bench.slice(sequence as u32, 0, b"hi");
    bench.messages();
    bench.settled(sequence, StoreResult::Stored);
}
