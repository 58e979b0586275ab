use downburst_model::{
    Class, Digest, Epoch, LegId, Origin, ProductId, ProductInfo, ProductKey, RangeSet, Sequence, WallMicros,
};
use downburst_vcmtp::LegKey;
use proptest::prelude::*;

use super::*;
use crate::{Covered, Entry, FIRST_CATCH_UP, FeedStart, LegJoin, LegJoined, LegLeft, Proof, Standing, Want};

mod bounds;
mod catch_up;
mod credentials;
mod heartbeats;
mod keys;
mod narrowing;
mod nodes;
mod pacing;
mod relayed;
mod siblings;
mod streams;
mod ways;

const EPOCH: Epoch = Epoch(7);

/// Large enough to be sent by itself.
const SIZE: usize = 20_000;

fn at(millis: u64) -> Now {
    Now { monotonic: Micros::from_millis(millis), wall: WallMicros(1_000_000 + millis as i64 * 1_000) }
}

fn feed() -> FeedName {
    FeedName::parse("CONDUIT").unwrap()
}

fn entry(sequence: u64, id: &str) -> Entry {
    let info = ProductInfo {
        key: ProductKey { feed: feed(), epoch: EPOCH, sequence: Sequence(sequence) },
        id: ProductId::parse(id).unwrap(),
        origin: Origin::parse("hub").unwrap(),
        created: WallMicros(1),
        stored: WallMicros(sequence as i64),
        size: SIZE as u64,
        digest: Digest([0; 32]),
        class: Class::Grid,
        hops: None,
        ldm: None,
        properties: None,
    };
    Entry { info, bytes: Some(vec![7; SIZE].into()) }
}

fn hello(feeds: Vec<FeedPosition>) -> Message {
    let proof = Proof::Token { secret: "s".to_owned(), credential_sha256: String::new() };
    Hello {
        versions: VERSIONS.to_vec(),
        software: "test".to_owned(),
        proof,
        feeds,
        stand_by: None,
        one_node: None,
    }
    .into()
}

fn position(settled: &[(u64, u64)]) -> FeedPosition {
    let settled = settled.iter().copied().collect();
    FeedPosition { feed: feed(), epoch: EPOCH, settled, newest_stored: WallMicros(5) }
}

fn join(leg: u32) -> LegJoin {
    LegJoin {
        leg: LegId(leg),
        feed: feed(),
        epoch: EPOCH,
        leg_epoch: 1,
        group: "239.0.0.1".to_owned(),
        port: 5_000,
        key: LegKey::new(1, [1; 32]),
        key_in_use: None,
        sender_key: None,
        proof_secret: None,
        pass: None,
        interface: String::new(),
        rate_bps: 1_000_000,
        source: None,
        channel: None,
    }
}

/// A hub session whose outputs are read as frames.
struct Bench {
    hub: HubSession,
    decoder: Decoder,
    others: Vec<HubOutput>,
}

impl Bench {
    fn new() -> Self {
        let mut hub = HubSession::new("hub".to_owned());
        hub.handle(at(0), HubInput::Room { stream: StreamId::FIRST, bytes: 1 << 20 });
        Self { hub, decoder: Decoder::default(), others: Vec::new() }
    }

    /// A session that serves one feed whose log ends at `head`.
    fn serving(feeds: Vec<FeedPosition>, head: u64) -> Self {
        let mut bench = Self::new();
        bench.say(0, hello(feeds));
        let site = SiteName::parse("oslo").unwrap();
        let wish = Subscription { feed: feed(), pattern: "^x".to_owned(), not_pattern: None, within: None };
        bench.hub.handle(at(0), HubInput::Admit { site, subscriptions: vec![wish] });
        bench.head(head);
        bench
    }

    fn head(&mut self, head: u64) {
        let (feed, head) = (feed(), Sequence(head));
        self.hub.handle(at(0), HubInput::Feed { feed, epoch: EPOCH, head, unicast_leg: LegId(1) });
    }

    fn say(&mut self, millis: u64, message: impl Into<Message>) {
        self.hub
            .handle(at(millis), HubInput::Bytes { stream: StreamId::FIRST, bytes: message.into().encode() });
    }

    /// Runs the hub until it is idle and returns the frames written; other outputs are kept.
    fn frames(&mut self, millis: u64) -> Vec<Frame> {
        while let Some(output) = self.hub.poll(at(millis)) {
            match output {
                HubOutput::Write { stream: StreamId::FIRST, bytes, .. } => self.decoder.push(bytes),
                other => self.others.push(other),
            }
        }
        std::iter::from_fn(|| self.decoder.next().unwrap()).collect()
    }

    fn messages(&mut self, millis: u64) -> Vec<Message> {
        let frames = self.frames(millis).into_iter();
        frames
            .filter_map(|frame| if let Frame::Message(message) = frame { Some(message) } else { None })
            .collect()
    }

    /// The requested ranges of the log.
    fn reads(&mut self) -> Vec<(u64, u64)> {
        let reads = self.others.iter().filter_map(|output| match output {
            HubOutput::Read { after, to, .. } => Some((after.0, to.0)),
            _ => None,
        });
        let reads = reads.collect();
        self.others.clear();
        reads
    }

    fn answer(&mut self, after: u64, read_to: u64, entries: Vec<Entry>) {
        let (feed, after, read_to) = (feed(), Sequence(after), Sequence(read_to));
        self.hub.handle(at(0), HubInput::Entries { feed, after, entries, read_to });
    }
}

fn covered(from: u64, to: u64) -> Message {
    Covered { feed: feed(), epoch: EPOCH, from: Sequence(from), to: Sequence(to) }.into()
}

#[test]
fn nothing_is_written_before_there_is_room() {
    let mut hub = HubSession::new("hub".to_owned());
    hub.handle(at(0), HubInput::Bytes { stream: StreamId::FIRST, bytes: hello(vec![]).encode() });
    assert!(matches!(hub.poll(at(0)), Some(HubOutput::Authenticate(_))));
    let site = SiteName::parse("oslo").unwrap();
    hub.handle(at(0), HubInput::Admit { site, subscriptions: vec![] });
    assert!(matches!(hub.poll(at(0)), Some(HubOutput::Event(HubEvent::Hello(_)))));
    assert!(hub.poll(at(0)).is_none());
    hub.handle(at(0), HubInput::Room { stream: StreamId::FIRST, bytes: 1 });
    assert!(matches!(hub.poll(at(0)), Some(HubOutput::Write { .. })));
    assert!(hub.poll(at(0)).is_none(), "one frame may exceed what was granted, not two");
}

#[test]
fn a_fresh_subscription_begins_at_the_head() {
    let mut bench = Bench::serving(vec![], 40);
    let messages = bench.messages(0);
    assert!(matches!(messages[0], Message::Welcome(_)) && matches!(messages[1], Message::Subscriptions(_)));
    let start = FeedStart { feed: feed(), epoch: EPOCH, after: Sequence(40), duplicates: None };
    assert_eq!(messages[2..], [start.into()]);
    assert_eq!(bench.reads(), []);
    bench.head(42);
    bench.messages(0);
    assert_eq!(bench.reads(), [(40, 42)]);
}

#[test]
fn a_log_that_was_told_before_the_site_was_let_in_is_known() {
    let mut bench = Bench::new();
    bench.head(4);
    bench.say(0, hello(vec![position(&[(0, 1)])]));
    bench.head(5);
    let site = SiteName::parse("oslo").unwrap();
    let wish = Subscription { feed: feed(), pattern: "^x".to_owned(), not_pattern: None, within: None };
    bench.hub.handle(at(0), HubInput::Admit { site, subscriptions: vec![wish] });
    bench.messages(0);
    assert_eq!(bench.reads(), [(1, 5)]);
}

#[test]
fn a_known_site_resumes_at_its_frontier_without_what_it_holds_above() {
    let mut bench = Bench::serving(vec![position(&[(0, 10), (15, 20)])], 30);
    let start = FeedStart { feed: feed(), epoch: EPOCH, after: Sequence(10), duplicates: None };
    assert_eq!(bench.messages(0)[2..], [start.into()]);
    assert_eq!(bench.reads(), [(10, 14)]);
    bench.answer(10, 14, vec![]);
    bench.messages(0);
    assert_eq!(bench.reads(), [(20, 30)]);
}

#[test]
fn another_epoch_resumes_by_time() {
    let foreign =
        FeedPosition { epoch: Epoch(1), newest_stored: WallMicros(900_000_000), ..position(&[(0, 99)]) };
    let mut bench = Bench::serving(vec![foreign], 30);
    bench.messages(0);
    let time = WallMicros(300_000_000);
    assert!(
        bench
            .others
            .iter()
            .any(|output| matches!(output, HubOutput::FindTime { time: asked, .. } if *asked == time))
    );
    bench.hub.handle(at(0), HubInput::FoundTime { feed: feed(), after: Sequence(12) });
    let start = FeedStart { feed: feed(), epoch: EPOCH, after: Sequence(12), duplicates: None };
    assert_eq!(bench.messages(0), [start.into()]);
    assert_eq!(bench.reads(), [(12, 30)]);
}

#[test]
fn what_does_not_match_is_told_by_previous_or_covered() {
    let mut bench = Bench::serving(vec![position(&[(0, 0)])], 9);
    bench.messages(0);
    assert_eq!(bench.reads(), [(0, 9)]);
    bench.answer(0, 9, vec![entry(1, "y"), entry(3, "x"), entry(5, "x"), entry(8, "y")]);
    let begins: Vec<(u64, Option<Sequence>)> = bench
        .messages(0)
        .into_iter()
        .filter_map(|message| match message {
            Message::ProductBegin(begin) => Some((begin.info.key.sequence.0, begin.previous)),
            _ => None,
        })
        .collect();
    assert_eq!(begins, [(3, Some(Sequence(0))), (5, Some(Sequence(3)))]);
    assert_eq!(bench.messages(99), [], "the tail waits for what may follow");
    assert_eq!(bench.messages(100), [covered(6, 9)]);
}

#[test]
fn ranges_without_matches_merge() {
    let mut bench = Bench::serving(vec![position(&[(0, 0)])], 3);
    bench.messages(0);
    bench.answer(0, 3, vec![entry(2, "y")]);
    bench.head(6);
    bench.messages(0);
    bench.answer(3, 6, vec![entry(6, "y")]);
    assert_eq!(bench.messages(100), [covered(1, 6)]);
}

#[test]
fn evicted_products_expire() {
    let mut bench = Bench::serving(vec![position(&[(0, 0)])], 3);
    bench.messages(0);
    let gone = |sequence, id| Entry { bytes: None, ..entry(sequence, id) };
    bench.answer(0, 3, vec![gone(1, "x"), gone(2, "y"), gone(3, "x")]);
    let messages = bench.messages(100);
    let sequences: RangeSet = [(1, 1), (3, 3)].into_iter().collect();
    let expired = crate::Expired { feed: feed(), epoch: EPOCH, sequences, late: None, stored: None };
    assert!(messages.contains(&expired.into()) && messages.contains(&covered(2, 2)), "{messages:?}");
}

#[test]
fn unicast_ends_where_a_leg_begins_and_goes_on_where_it_ended() {
    let mut bench = Bench::serving(vec![], 10);
    bench.hub.handle(at(0), HubInput::JoinLeg(Box::new(join(100))));
    bench.hub.handle(at(0), HubInput::JoinLeg(Box::new(join(100))));
    let offers = bench.messages(0).into_iter().filter(|message| matches!(message, Message::LegJoin(_)));
    assert_eq!(offers.count(), 1, "an offer repeated changes nothing");
    bench.say(0, LegJoined { leg: LegId(100), leg_epoch: 1, after: Sequence(12), reception: None });
    bench.head(20);
    bench.messages(0);
    assert_eq!(bench.reads(), [(10, 12)]);
    bench.answer(10, 12, vec![]);
    bench.head(25);
    bench.say(
        0,
        LegLeft { leg: LegId(100), known_to: Some(Sequence(22)), reason: String::new(), too_slow: None },
    );
    bench.messages(0);
    assert_eq!(bench.reads(), [(22, 25)]);
}

#[test]
fn what_a_leg_brings_is_neither_queued_nor_left_in_the_queue() {
    let begun = |messages: Vec<Message>| -> Vec<(u64, Option<Sequence>)> {
        let begins = messages.into_iter().filter_map(|message| match message {
            Message::ProductBegin(begin) => Some((begin.info.key.sequence.0, begin.previous)),
            _ => None,
        });
        begins.collect()
    };
    let mut bench = Bench::serving(vec![], 10);
    bench.hub.handle(at(0), HubInput::JoinLeg(Box::new(join(100))));
    bench.head(13);
    bench.messages(0);
    let room = std::mem::replace(&mut bench.hub.line.room_bytes, 0);
    bench.answer(10, 13, vec![entry(11, "x"), entry(13, "x")]);
    bench.head(20);
    bench.messages(0);
    bench.say(0, LegJoined { leg: LegId(100), leg_epoch: 1, after: Sequence(12), reception: None });
    bench.answer(13, 20, vec![entry(15, "x")]);
    bench.hub.line.room_bytes = room;
    assert_eq!(begun(bench.messages(0)), [(11, Some(Sequence(10)))]);
    bench.reads();
    bench.answer(11, 12, vec![]);
    assert_eq!(
        bench.messages(100),
        [covered(12, 12)],
        "what the product that was taken back said is said otherwise"
    );
}

#[test]
fn a_newer_leg_takes_over_before_the_older_one_ends() {
    let mut bench = Bench::serving(vec![], 10);
    bench.hub.handle(at(0), HubInput::JoinLeg(Box::new(join(100))));
    bench.say(0, LegJoined { leg: LegId(100), leg_epoch: 1, after: Sequence(10), reception: None });
    bench.hub.handle(at(0), HubInput::JoinLeg(Box::new(join(101))));
    bench.head(20);
    let left =
        |messages: Vec<Message>| messages.iter().any(|message| matches!(message, Message::LegLeave(_)));
    assert!(!left(bench.messages(0)));
    bench.say(0, LegJoined { leg: LegId(101), leg_epoch: 1, after: Sequence(18), reception: None });
    assert!(left(bench.messages(0)));
    assert_eq!(bench.reads(), []);
    bench.say(
        0,
        LegLeft { leg: LegId(100), known_to: Some(Sequence(15)), reason: String::new(), too_slow: None },
    );
    bench.messages(0);
    assert_eq!(bench.reads(), [(15, 18)]);
}

#[test]
fn another_life_of_a_leg_is_offered_once_the_first_was_left() {
    let mut bench = Bench::serving(vec![], 10);
    bench.hub.handle(at(0), HubInput::JoinLeg(Box::new(join(100))));
    bench.messages(0);
    let second = LegJoin { leg_epoch: 2, ..join(100) };
    bench.hub.handle(at(0), HubInput::JoinLeg(Box::new(second.clone())));
    assert_eq!(bench.messages(0), [crate::LegLeave { leg: LegId(100) }.into()]);
    bench.say(0, LegLeft { leg: LegId(100), known_to: None, reason: String::new(), too_slow: None });
    assert_eq!(bench.messages(0), [second.into()]);
}

#[test]
fn what_is_wanted_is_read_again_and_what_is_queued_is_not() {
    let mut bench = Bench::serving(vec![position(&[(0, 9)])], 10);
    bench.messages(0);
    bench.reads();
    bench.hub.line.room_bytes = 0;
    bench.answer(9, 10, vec![entry(10, "x")]);
    let sequences: RangeSet = [(3, 4), (10, 99)].into_iter().collect();
    bench.say(0, Want { feed: feed(), epoch: EPOCH, sequences: sequences.clone() });
    bench.say(0, Want { feed: feed(), epoch: Epoch(1), sequences });
    bench.messages(0);
    assert_eq!(bench.reads(), [(2, 4)]);
}

#[test]
fn a_malformed_stream_is_a_violation_and_ends_the_session() {
    let mut bench = Bench::serving(vec![], 1);
    bench.messages(0);
    bench.hub.handle(
        at(0),
        HubInput::Bytes { stream: StreamId::FIRST, bytes: Bytes::from_static(&[15, 0, 0, 0, 1, 0xff]) },
    );
    assert!(matches!(bench.messages(0)[..], [Message::Refused(_)]));
    assert!(bench.others.iter().any(|output| matches!(output, HubOutput::Event(HubEvent::Violation(_)))));
    assert!(matches!(bench.others.last(), Some(HubOutput::Close)));
    assert_eq!(bench.hub.deadline(), None);
}

#[test]
fn a_site_without_a_common_version_is_refused() {
    let mut bench = Bench::new();
    let Message::Hello(hello) = hello(vec![]) else { unreachable!() };
    bench.say(0, Hello { versions: vec![99], ..hello });
    let messages = bench.messages(0);
    assert!(matches!(&messages[..], [Message::Refused(refused)] if refused.code == RefusalCode::Version));
}

#[test]
fn a_silent_site_is_dead() {
    let mut bench = Bench::serving(vec![], 1);
    bench.messages(0);
    assert_eq!(bench.hub.deadline(), Some(LIVENESS_LIMIT));
    bench.messages(LIVENESS_LIMIT.0 / 1_000 - 1);
    assert!(!bench.others.iter().any(|output| matches!(output, HubOutput::Close)));
    bench.messages(LIVENESS_LIMIT.0 / 1_000);
    assert!(bench.others.iter().any(|output| matches!(output, HubOutput::Event(HubEvent::Dead))));
    assert!(matches!(bench.others.last(), Some(HubOutput::Close)));
}

proptest! {
    /// Whatever a site sends, before and after its admission, the hub neither panics nor sends without end.
    #[test]
    fn no_bytes_from_a_site_panic(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..12)) {
        for mut bench in [Bench::new(), Bench::serving(vec![position(&[(0, 3)])], 20)] {
            for piece in &pieces {
                bench.hub.handle(at(0), HubInput::Bytes { stream: StreamId::FIRST, bytes: piece.clone().into() });
                bench.messages(0);
            }
        }
    }

    /// The hub survives extreme numbers in every message of a site, and owed numbers stay within the log.
    #[test]
    fn extreme_numbers_are_survived(
        numbers in prop::collection::vec(
            prop_oneof![0u64..50, Just(u64::MAX), Just(u64::MAX - 1), any::<u64>()],
            6,
        ),
    ) {
        let mut bench = Bench::serving(vec![position(&[(0, numbers[0])])], 30);
        bench.hub.handle(at(0), HubInput::JoinLeg(Box::new(join(100))));
        bench.messages(0);
        bench.say(0, LegJoined { leg: LegId(100), leg_epoch: 1, after: Sequence(numbers[1]), reception: None });
        let sequences: RangeSet = [(numbers[2].min(numbers[3]), numbers[3])].into_iter().collect();
        bench.say(0, Want { feed: feed(), epoch: EPOCH, sequences });
        bench.messages(0);
        let (known_to, reason) = (Some(Sequence(numbers[4])), String::new());
        bench.say(0, LegLeft { leg: LegId(100), known_to, reason, too_slow: None });
        bench.say(
            0,
            crate::Frontier {
                feed: feed(),
                epoch: EPOCH,
                settled_to: Sequence(numbers[5]),
                pending: 0,
                trouble: None,
                action_failed: None,
                linked: None,
            },
        );
        bench.messages(0);
        for (after, to) in bench.reads() {
            prop_assert!(after < to && to <= 30, "{after}..{to}");
        }
    }
}

#[test]
fn a_site_that_stands_by_is_let_in_and_gets_no_feeds() {
    let mut bench = Bench::new();
    let Message::Hello(hello) = hello(vec![position(&[(0, 0)])]) else { panic!("a hello") };
    bench.say(0, Hello { stand_by: Some(true), ..hello });
    let wish =
        || vec![Subscription { feed: feed(), pattern: "^x".to_owned(), not_pattern: None, within: None }];
    let site = SiteName::parse("oslo").unwrap();
    bench.hub.handle(at(0), HubInput::Admit { site, subscriptions: wish() });
    bench.head(9);
    let said = bench.messages(0);
    assert!(matches!(&said[0], Message::Welcome(welcome) if welcome.stand_by == Some(true)), "{said:?}");
    assert!(matches!(&said[1], Message::Subscriptions(set) if set.items.is_empty()), "{said:?}");
    bench.hub.handle(at(1), HubInput::Subscriptions(wish()));
    bench.head(10);
    assert!(bench.messages(1).iter().all(|said| !matches!(said, Message::FeedStart(_))));
    assert_eq!(bench.reads(), []);
}

#[test]
fn a_rule_for_duplicates_that_is_not_the_usual_one_is_told_where_the_feed_begins() {
    for (rule, said) in [(Duplicates::IdAndContent, None), (Duplicates::Id, Some(Duplicates::Id))] {
        let mut bench = Bench::new();
        bench.say(0, hello(vec![]));
        bench.hub.handle(at(0), HubInput::Duplicates { feed: feed(), rule });
        let site = SiteName::parse("oslo").unwrap();
        let wish = Subscription { feed: feed(), pattern: "^x".to_owned(), not_pattern: None, within: None };
        bench.hub.handle(at(0), HubInput::Admit { site, subscriptions: vec![wish] });
        bench.head(3);
        let starts = bench.messages(0);
        assert!(
            starts.iter().any(|it| matches!(it, Message::FeedStart(start) if start.duplicates == said)),
            "{starts:?}"
        );
    }
}
