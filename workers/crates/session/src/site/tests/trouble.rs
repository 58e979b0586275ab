//! A site that can't store.
use super::*;
use crate::LinkedSpace;

fn troubles(messages: &[Message]) -> Vec<Option<String>> {
    let frontiers = messages.iter().filter_map(|message| match message {
        Message::Frontier(frontier) => Some(frontier.trouble.clone()),
        _ => None,
    });
    frontiers.collect()
}

fn full() -> StoreResult {
    StoreResult::Failed("the disk is full".to_owned())
}

#[test]
fn the_hub_is_told_why_nothing_is_stored_until_something_is() {
    let mut bench = Bench::started();
    bench.say(begin(1, 0, 0));
    bench.say(begin(2, 1, 0));
    bench.wait(300);
    bench.settled(1, full());
    let told = troubles(&bench.wait(300));
    assert_eq!(told, [Some("the disk is full".to_owned())]);
    bench.settled(2, StoreResult::Stored);
    assert_eq!(troubles(&bench.wait(300)), [None]);
    assert_eq!(bench.ranges(), [(0, 0), (2, 2)], "what was not stored is not settled");
}

#[test]
fn a_site_that_stores_nothing_asks_for_one_product_at_a_time() {
    let mut bench = Bench::started();
    for sequence in 1..=5 {
        bench.say(begin(sequence, sequence - 1, 0));
    }
    bench.messages();
    (1..=5).for_each(|sequence| bench.settled(sequence, full()));
    assert_eq!(wants(&bench.wait(5_100)), [[(1, 1)]]);
    bench.say(ProductBegin { previous: None, transfer: 9, ..begin(1, 0, 0) });
    bench.messages();
    bench.settled(1, StoreResult::Stored);
    assert_eq!(wants(&bench.wait(5_100)), [[(2, 5)]], "then for all of them");
}

#[test]
fn the_trouble_is_told_again_to_the_next_connection_and_is_bounded() {
    let mut bench = Bench::started();
    bench.say(begin(1, 0, 0));
    bench.messages();
    bench.settled(1, StoreResult::Failed("ä".repeat(10_000)));
    bench.messages();
    bench.site.handle(at(bench.millis), SiteInput::Disconnected);
    bench.connect();
    bench.say(FeedStart { feed: feed(), epoch: EPOCH, after: Sequence(0), duplicates: None });
    let told = troubles(&bench.wait(1_000));
    assert_eq!(told, [Some("ä".repeat(300))]);
}

#[test]
fn a_product_that_was_damaged_later_is_requested_again_and_one_of_another_epoch_is_not() {
    let mut bench = Bench::started();
    bench.say(begin(1, 0, 0));
    bench.say(begin(2, 1, 0));
    bench.messages();
    (1..=2).for_each(|sequence| bench.settled(sequence, StoreResult::Stored));
    bench.wait(300);
    let damaged = |key: ProductKey| SiteInput::Damaged(key);
    let other = ProductKey { epoch: Epoch(EPOCH.0 + 1), ..info(1, "x", 0).key };
    bench.site.handle(at(bench.millis), damaged(other));
    assert_eq!((wants(&bench.wait(1_000)), bench.ranges()), (vec![], vec![(0, 2)]));
    bench.site.handle(at(bench.millis), damaged(info(1, "x", 0).key));
    assert_eq!((wants(&bench.wait(1_000)), bench.ranges()), (vec![vec![(1, 1)]], vec![(0, 0), (2, 2)]));
    bench.say(ProductBegin { previous: None, transfer: 9, ..begin(1, 0, 0) });
    bench.messages();
    bench.settled(1, StoreResult::Stored);
    assert_eq!(bench.ranges(), [(0, 2)]);
}

#[test]
fn the_space_of_linked_files_is_told_when_it_changes_and_to_the_next_connection() {
    let mut bench = Bench::started();
    let linked = |messages: &[Message]| {
        let frontiers = messages.iter().filter_map(|message| match message {
            Message::Frontier(frontier) => Some(frontier.linked),
            _ => None,
        });
        frontiers.collect::<Vec<_>>()
    };
    let space = Some(LinkedSpace { bytes: 5, free_bytes: 1 });
    let told = |space| SiteInput::LinkedFiles { feed: feed(), space };
    bench.wait(1_000);
    bench.site.handle(at(bench.millis), told(space));
    assert_eq!(linked(&bench.wait(300)), [space]);
    bench.site.handle(at(bench.millis), told(space));
    assert_eq!(linked(&bench.wait(300)), [], "it is known");
    bench.site.handle(at(bench.millis), SiteInput::Disconnected);
    bench.connect();
    bench.say(FeedStart { feed: feed(), epoch: EPOCH, after: Sequence(0), duplicates: None });
    assert_eq!(linked(&bench.wait(1_000)).last(), Some(&space));
    bench.site.handle(at(bench.millis), told(None));
    assert_eq!(linked(&bench.wait(300)), [None]);
}
