//! Referrals: what the hub leaves to siblings, and what it takes back.
use super::*;
use crate::{
    Fingerprint, ReferRequest, Referral, ReferralEnded, ReferralReport, SiblingChoice, SiblingFault,
    SiblingNews, SiblingPort, SiblingTerms, Ticket, Want,
};

const TERMS: SiblingTerms =
    SiblingTerms { on: true, upload_bytes_per_second: 1_000, upload_bytes_per_day: 9_000 };

/// A session whose site lacks the numbers 3 to 9, and may fetch them from siblings.
fn exchanging() -> Bench {
    let mut bench = Bench::new();
    bench.say(0, hello(vec![position(&[(0, 2)])]));
    bench.hub.handle(at(0), HubInput::SiblingTerms(TERMS));
    let site = SiteName::parse("oslo").unwrap();
    let wish = Subscription { feed: feed(), pattern: "^x".to_owned(), not_pattern: None, within: None };
    bench.hub.handle(at(0), HubInput::Admit { site, subscriptions: vec![wish] });
    bench.head(9);
    let told = bench.messages(0);
    assert!(told.contains(&TERMS.into()));
    bench
}

/// The same, whose port is known and whose log was read.
fn asking(entries: Vec<Entry>) -> Bench {
    let mut bench = exchanging();
    bench.hub.handle(at(0), HubInput::Refers(true));
    bench.messages(0);
    assert_eq!(bench.reads(), [(2, 9)]);
    bench.answer(2, 9, entries);
    bench.messages(0);
    bench
}

fn asked(bench: &mut Bench) -> Vec<ReferRequest> {
    let requests = bench.others.iter().filter_map(|output| match output {
        HubOutput::Refer(request) => Some(request.clone()),
        _ => None,
    });
    let requests = requests.collect();
    bench.others.clear();
    requests
}

fn choice(holds: (u64, u64)) -> Option<SiblingChoice> {
    Some(SiblingChoice {
        site: SiteName::parse("bergen").unwrap(),
        address: "bergen:7380".to_owned(),
        fingerprint: Fingerprint([5; 32]),
        ticket: Ticket([6; 16]),
        holds: [holds].into_iter().collect(),
    })
}

fn referrals(messages: &[Message]) -> Vec<Vec<u64>> {
    let numbers = |referral: &Referral| {
        referral.items.iter().map(|item| item.info.key.sequence.0).collect::<Vec<u64>>()
    };
    let found = messages.iter().filter_map(|message| match message {
        Message::Referral(referral) => Some(numbers(referral)),
        _ => None,
    });
    found.collect()
}

/// The numbers of products that begin.
fn begun(messages: &[Message]) -> Vec<u64> {
    let found = messages.iter().filter_map(|message| match message {
        Message::ProductBegin(begin) => Some(begin.info.key.sequence.0),
        _ => None,
    });
    found.collect()
}

#[test]
fn late_products_wait_for_the_port_of_the_site_and_not_for_ever() {
    let mut bench = exchanging();
    assert_eq!(bench.reads(), []);
    assert!(bench.hub.deadline().is_some_and(|due| due <= at(1_000).monotonic));
    bench.messages(1_001);
    assert_eq!(bench.reads(), [(2, 9)], "it has none");
}

#[test]
fn the_port_of_a_site_becomes_an_event() {
    let mut bench = exchanging();
    let port = SiblingPort { port: 7_380, fingerprint: Fingerprint([1; 32]) };
    bench.say(0, port);
    bench.messages(0);
    let news = SiblingNews::Port(port);
    let told = |it: &HubOutput| matches!(it, HubOutput::Event(HubEvent::Sibling(told)) if *told == news);
    assert!(bench.others.iter().any(told));
}

#[test]
fn products_that_a_sibling_holds_are_described_and_the_others_are_sent() {
    let mut bench = asking(vec![entry(3, "x"), entry(5, "x"), entry(8, "x")]);
    let [request] = &asked(&mut bench)[..] else { panic!("one request") };
    assert_eq!(request.sequences, [(3, 3), (5, 5), (8, 8)].into_iter().collect());
    bench.hub.handle(at(0), HubInput::Referred { number: request.number, sibling: choice((3, 6)) });
    let told = bench.messages(0);
    assert_eq!((referrals(&told), begun(&told)), (vec![vec![3, 5]], vec![8]));
}

#[test]
fn without_a_sibling_the_hub_sends_as_always() {
    let mut bench = asking(vec![entry(3, "x"), entry(5, "x")]);
    let number = asked(&mut bench)[0].number;
    bench.hub.handle(at(0), HubInput::Referred { number, sibling: None });
    assert_eq!(begun(&bench.messages(0)), [3, 5]);
    bench.hub.handle(at(0), HubInput::Referred { number, sibling: choice((0, 9)) });
    assert!(bench.messages(0).is_empty(), "it was answered");
}

#[test]
fn small_products_cost_as_much_to_describe_as_to_send() {
    let mut small = entry(3, "x");
    small.info.size = 600;
    small.bytes = Some(vec![7; 600].into());
    let mut bench = asking(vec![small, entry(5, "x")]);
    assert_eq!(asked(&mut bench)[0].sequences, [(5, 5)].into_iter().collect());
}

#[test]
fn small_products_together_are_described_one_by_one_if_they_are_large_enough() {
    let of = |number| {
        let mut entry = entry(number, "x");
        (entry.info.size, entry.bytes) = (4_000, Some(vec![7; 4_000].into()));
        entry
    };
    let mut bench = asking((3..=8).map(of).collect());
    let [request] = &asked(&mut bench)[..] else { panic!("one request") };
    bench.hub.handle(at(0), HubInput::Referred { number: request.number, sibling: choice((0, 9)) });
    let told = bench.messages(0);
    assert_eq!(referrals(&told), [(3..=8).collect::<Vec<u64>>()]);
    let Some(Message::Referral(referral)) = told.iter().find(|it| matches!(it, Message::Referral(_))) else {
        panic!("a referral")
    };
    let around: Vec<_> =
        referral.items.iter().map(|item| (item.previous.0, item.to.map(|to| to.0))).collect();
    assert_eq!(around, [(2, None), (3, None), (4, None), (5, None), (6, None), (7, Some(9))]);
    assert_eq!(referral.items[2].info, of(5).info);
}

#[test]
fn what_a_sibling_failed_to_give_comes_from_the_hub_and_is_not_referred_again() {
    let mut bench = asking(vec![entry(3, "x"), entry(5, "x")]);
    let number = asked(&mut bench)[0].number;
    bench.hub.handle(at(0), HubInput::Referred { number, sibling: choice((0, 9)) });
    bench.messages(0);
    let missing = [(5, 5)].into_iter().collect();
    bench.say(0, ReferralEnded { number, missing, fault: Some(SiblingFault::Lacking) });
    bench.messages(0);
    let report = ReferralReport {
        number,
        feed: feed(),
        products: 1,
        bytes: SIZE as u64,
        fault: Some(SiblingFault::Lacking),
    };
    let news = SiblingNews::Ended(report);
    let told = |it: &HubOutput| matches!(it, HubOutput::Event(HubEvent::Sibling(told)) if *told == news);
    assert!(bench.others.iter().any(told), "{:?}", bench.others);
    assert_eq!(bench.reads(), [(3, 5)]);
    bench.answer(3, 5, vec![entry(5, "x")]);
    assert_eq!(begun(&bench.messages(0)), [5]);
    assert!(asked(&mut bench).is_empty());
}

#[test]
fn a_referral_without_an_end_is_taken_over_in_time() {
    let mut bench = asking(vec![entry(3, "x")]);
    let number = asked(&mut bench)[0].number;
    bench.hub.handle(at(0), HubInput::Referred { number, sibling: choice((0, 9)) });
    bench.messages(0);
    // The site is heard all the time.
    for seconds in 1..=90 {
        bench
            .hub
            .handle(at(seconds * 1_000), HubInput::Bytes { stream: StreamId::FIRST, bytes: Bytes::new() });
        bench.messages(seconds * 1_000);
    }
    assert_eq!(bench.reads(), [(2, 3)]);
}

#[test]
fn a_request_for_lost_products_is_referred_too_and_live_ones_are_not() {
    let mut bench = asking(vec![]);
    bench.head(12);
    bench.messages(0);
    bench.reads();
    bench.answer(9, 12, vec![entry(10, "x"), entry(12, "x")]);
    assert_eq!(begun(&bench.messages(0)), [10, 12]);
    assert!(asked(&mut bench).is_empty());
    bench.say(0, Want { feed: feed(), epoch: EPOCH, sequences: [(12, 12)].into_iter().collect() });
    bench.messages(0);
    assert_eq!(bench.reads(), [(11, 12)]);
    bench.answer(11, 12, vec![entry(12, "x")]);
    bench.messages(0);
    assert_eq!(asked(&mut bench).len(), 1);
}

#[test]
fn a_feed_that_ends_takes_its_referrals_along() {
    let mut bench = asking(vec![entry(3, "x")]);
    let number = asked(&mut bench)[0].number;
    bench.hub.handle(at(0), HubInput::Subscriptions(Vec::new()));
    bench.hub.handle(at(0), HubInput::Referred { number, sibling: choice((0, 9)) });
    assert!(referrals(&bench.messages(0)).is_empty());
    bench.say(0, ReferralEnded { number, missing: RangeSet::new(), fault: None });
    bench.messages(0);
    assert!(!bench.others.iter().any(|it| matches!(it, HubOutput::Close)), "its end is no news");
}

#[test]
fn an_exchange_that_is_switched_off_refers_nothing_more() {
    let mut bench = exchanging();
    bench.hub.handle(at(0), HubInput::Refers(true));
    bench.hub.handle(at(0), HubInput::SiblingTerms(SiblingTerms::default()));
    assert!(bench.messages(0).contains(&SiblingTerms::default().into()));
    assert_eq!(bench.reads(), [(2, 9)]);
    bench.answer(2, 9, vec![entry(3, "x")]);
    assert_eq!(begun(&bench.messages(0)), [3]);
}
