//! Backfill that a stream beside the live leg delivers to several sites.
use super::*;

const STREAM: u32 = FIRST_CATCH_UP + 100;

impl Bench {
    /// A session that lacks 1..=20, whose live leg delivers everything behind 20, and whose backfill is held.
    fn held() -> Self {
        let mut bench = Self::new();
        bench.say(0, hello(vec![position(&[(0, 0)])]));
        let site = SiteName::parse("oslo").unwrap();
        let wish = Subscription { feed: feed(), pattern: "^x".to_owned(), not_pattern: None, within: None };
        bench.hub.handle(at(0), HubInput::Admit { site, subscriptions: vec![wish] });
        bench.hub.handle(at(0), HubInput::HoldBackfill { feed: feed(), until: at(2_000).monotonic });
        bench.head(20);
        bench.hub.handle(at(0), HubInput::JoinLeg(Box::new(join(100))));
        bench.messages(0);
        bench.joins(0, 100, 20);
        bench
    }

    fn joins(&mut self, millis: u64, leg: u32, after: u64) {
        let leg = LegId(leg);
        self.say(millis, LegJoined { leg, leg_epoch: 1, after: Sequence(after), reception: None });
        self.messages(millis);
    }

    fn leaves(&mut self, millis: u64, known_to: u64) {
        let (leg, known_to, reason) = (LegId(STREAM), Some(Sequence(known_to)), String::new());
        self.say(millis, LegLeft { leg, known_to, reason, too_slow: None });
        self.messages(millis);
    }

    fn offer(&mut self, millis: u64, to: u64) -> Vec<Message> {
        let (join, to) = (Box::new(join(STREAM)), Sequence(to));
        self.hub.handle(at(millis), HubInput::CatchUp { join, to });
        self.messages(millis)
    }
}

#[test]
fn held_backfill_is_read_when_its_time_is_over_or_it_is_released() {
    let mut bench = Bench::held();
    assert_eq!(bench.reads(), []);
    assert_eq!(bench.hub.deadline(), Some(at(2_000).monotonic));
    bench.messages(1_999);
    assert_eq!(bench.reads(), []);
    bench.messages(2_000);
    assert_eq!(bench.reads(), [(0, 20)]);
    let mut bench = Bench::held();
    bench.hub.handle(at(1), HubInput::ReleaseBackfill(feed()));
    bench.messages(1);
    assert_eq!(bench.reads(), [(0, 20)]);
}

#[test]
fn a_stream_takes_its_part_over_and_the_live_leg_stays() {
    let mut bench = Bench::held();
    let offered = bench.offer(1, 20);
    assert!(matches!(&offered[..], [Message::LegJoin(join)] if join.leg == LegId(STREAM)), "{offered:?}");
    bench.joins(1, STREAM, 5);
    assert_eq!(bench.reads(), [(0, 5)], "the part before the stream comes by the session");
    let standing = |bench: &Bench, sequence| {
        bench.hub.standing(&ProductKey { feed: feed(), epoch: EPOCH, sequence: Sequence(sequence) })
    };
    assert_eq!(standing(&bench, 12), Standing::LeftToLeg);
    assert!(bench.hub.is_left_to_leg(&feed()), "new products come by the live leg");
    bench.answer(0, 5, vec![]);
    bench.leaves(2, 18);
    bench.messages(200);
    assert_eq!(bench.reads(), [(18, 20)], "the rest of the stream's range, and nothing of the live leg's");
    bench.head(30);
    bench.messages(200);
    assert_eq!(bench.reads(), []);
}

#[test]
fn a_stream_that_was_never_heard_changes_nothing() {
    let mut bench = Bench::held();
    bench.offer(1, 20);
    let (leg, reason) = (LegId(STREAM), "silence".to_owned());
    bench.say(2, LegLeft { leg, known_to: None, reason, too_slow: None });
    bench.messages(2);
    assert_eq!(bench.reads(), []);
    bench.messages(2_000);
    assert_eq!(bench.reads(), [(0, 20)]);
}

#[test]
fn new_products_come_by_session_if_the_live_leg_ends_during_a_stream() {
    let mut bench = Bench::held();
    bench.offer(1, 20);
    bench.joins(1, STREAM, 0);
    let (leg, known_to) = (LegId(100), Some(Sequence(20)));
    bench.say(2, LegLeft { leg, known_to, reason: String::new(), too_slow: None });
    bench.messages(2);
    bench.head(25);
    bench.messages(2);
    assert_eq!(bench.reads(), [(20, 25)], "the stream's own part is not read");
}
