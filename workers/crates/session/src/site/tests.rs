use downburst_model::{
    Class, Digest, Epoch, Lane, LegId, Origin, ProductId, ProductInfo, ProductKey, Sequence, SiteName,
    WallMicros,
};
use downburst_vcmtp::{LegKey, Sender, SenderConfig, SenderInput, SenderOutput};
use proptest::prelude::*;

use super::*;
use crate::frame::slice_header;
use crate::{
    ClockReply, Covered, Expired, FeedStart, Frontier, LegJoin, LegJoined, LegLeave, LegLeft, Outcome,
    ProductBegin, Proof, Receipt, Reception, StoreResult, Subscription, Welcome,
};

mod clocks;
mod credentials;
mod heartbeats;
mod legs;
mod nodes;
mod relayed;
mod siblings;
mod streams;
mod trouble;
mod ways;

const EPOCH: Epoch = Epoch(7);

fn at(millis: u64) -> Now {
    Now { monotonic: Micros::from_millis(millis), wall: WallMicros(9_000_000 + millis as i64 * 1_000) }
}

fn feed() -> FeedName {
    FeedName::parse("CONDUIT").unwrap()
}

fn info(sequence: u64, id: &str, size: u64) -> ProductInfo {
    ProductInfo {
        key: ProductKey { feed: feed(), epoch: EPOCH, sequence: Sequence(sequence) },
        id: ProductId::parse(id).unwrap(),
        origin: Origin::parse("hub").unwrap(),
        created: WallMicros(1),
        stored: WallMicros(sequence as i64),
        size,
        digest: Digest([0; 32]),
        class: Class::Grid,
        hops: None,
        ldm: None,
        properties: None,
    }
}

fn begin(sequence: u64, previous: u64, size: u64) -> ProductBegin {
    ProductBegin {
        info: info(sequence, "x", size),
        previous: Some(Sequence(previous)),
        lane: Lane::Live,
        leg: LegId(1),
        transfer: sequence as u32,
    }
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
        rate_bps: 1_000_000_000,
        source: None,
        channel: None,
    }
}

/// A site session whose writes are read as frames.
struct Bench {
    site: SiteSession,
    decoder: Decoder,
    others: Vec<SiteOutput>,
    receipts: Vec<Receipt>,
    millis: u64,
}

impl Bench {
    fn new() -> Self {
        let site = SiteSession::new("test".to_owned(), SiteState::default());
        Self { site, decoder: Decoder::default(), others: Vec::new(), receipts: Vec::new(), millis: 0 }
    }

    /// An admitted site with the subscription `^x` whose feed begins behind 0.
    fn started() -> Self {
        let mut bench = Self::new();
        bench.connect();
        bench.say(FeedStart { feed: feed(), epoch: EPOCH, after: Sequence(0), duplicates: None });
        bench.messages();
        bench
    }

    fn connect(&mut self) {
        self.decoder.reset();
        let name = SiteName::parse("oslo").unwrap();
        let proof = Proof::Credential { site: name.clone(), secret: "s".to_owned() };
        self.site.handle(at(self.millis), SiteInput::Connected(proof));
        self.say(Welcome { version: VERSIONS[0], site: name, hub: "hub".to_owned(), stand_by: None });
        let wish = Subscription { feed: feed(), pattern: "^x".to_owned(), not_pattern: None, within: None };
        self.say(Subscriptions { items: vec![wish], heads: vec![] });
    }

    fn say(&mut self, message: impl Into<Message>) {
        self.bytes(message.into().encode());
    }

    fn bytes(&mut self, bytes: Bytes) {
        self.site.handle(at(self.millis), SiteInput::Bytes { stream: StreamId::FIRST, bytes });
    }

    fn slice(&mut self, transfer: u32, offset: u64, bytes: &'static [u8]) {
        self.bytes(slice_header(transfer, offset, bytes.len()));
        self.bytes(Bytes::from_static(bytes));
    }

    fn settled(&mut self, sequence: u64, result: StoreResult) {
        let key = info(sequence, "x", 0).key;
        self.site.handle(at(self.millis), SiteInput::Settled { key, result, at: at(self.millis).wall });
    }

    fn messages(&mut self) -> Vec<Message> {
        while let Some(output) = self.site.poll(at(self.millis)) {
            match output {
                SiteOutput::Write { stream: StreamId::FIRST, bytes } => self.decoder.push(bytes),
                other => self.others.push(other),
            }
        }
        let frames = std::iter::from_fn(|| self.decoder.next().unwrap());
        let mut messages = Vec::new();
        for frame in frames {
            match frame {
                Frame::Message(message) => messages.push(message),
                Frame::Receipts(receipts) => self.receipts.extend(receipts.items),
                _ => {}
            }
        }
        messages
    }

    /// The receipts that were sent since the last call.
    fn receipts(&mut self) -> Vec<Receipt> {
        self.messages();
        std::mem::take(&mut self.receipts)
    }

    /// Advances time and returns the messages sent in that time.
    fn wait(&mut self, millis: u64) -> Vec<Message> {
        let (end, mut said) = (self.millis + millis, self.messages());
        while let Some(next) = self.site.deadline().filter(|at| *at <= Micros::from_millis(end)) {
            self.millis = self.millis.max(next.0.div_ceil(1_000));
            said.extend(self.messages());
        }
        self.millis = end;
        said
    }

    fn count(&mut self, which: impl Fn(&SiteOutput) -> bool) -> usize {
        let said = self.messages();
        assert!(said.iter().all(|message| !matches!(message, Message::Hello(_))));
        self.others.iter().filter(|output| which(output)).count()
    }

    fn position(&self) -> FeedPosition {
        self.site.positions().remove(0)
    }

    fn ranges(&self) -> Vec<(u64, u64)> {
        self.position().settled.iter().collect()
    }
}

fn wants(messages: &[Message]) -> Vec<Vec<(u64, u64)>> {
    let wants = messages.iter().filter_map(|message| match message {
        Message::Want(want) => Some(want.sequences.iter().collect()),
        _ => None,
    });
    wants.collect()
}

fn is_complete(output: &SiteOutput) -> bool {
    matches!(output, SiteOutput::Complete { .. })
}

#[test]
fn a_product_by_unicast_is_begun_written_completed_and_settled() {
    let mut bench = Bench::started();
    bench.say(begin(3, 0, 5));
    bench.slice(3, 0, b"win");
    assert_eq!(bench.count(is_complete), 0);
    assert_eq!(bench.ranges(), [(0, 2)]);
    bench.slice(3, 3, b"dy");
    assert_eq!(bench.count(is_complete), 1);
    assert_eq!(bench.count(|output| matches!(output, SiteOutput::Begin(_))), 1);
    assert_eq!(bench.count(|output| matches!(output, SiteOutput::Block { .. })), 2);
    bench.settled(3, StoreResult::Stored);
    let said = bench.wait(300);
    let receipt = &bench.receipts()[0];
    assert_eq!((receipt.outcome, receipt.leg, receipt.size), (Outcome::Stored, LegId(1), 5));
    let frontier = Frontier {
        feed: feed(),
        epoch: EPOCH,
        settled_to: Sequence(3),
        pending: 0,
        trouble: None,
        action_failed: None,
        linked: None,
    };
    assert!(said.contains(&frontier.into()));
    assert_eq!(bench.position().newest_stored, WallMicros(3));
    let kept = bench.others.iter().rev().find_map(|output| match output {
        SiteOutput::Checkpoint(position) => Some(position.clone()),
        _ => None,
    });
    assert_eq!(kept, Some(bench.position()));
}

#[test]
fn an_empty_product_is_complete_at_once() {
    let mut bench = Bench::started();
    bench.say(begin(1, 0, 0));
    assert_eq!(bench.count(is_complete), 1);
}

#[test]
fn what_is_settled_or_being_stored_is_passed_over() {
    let mut bench = Bench::started();
    bench.say(begin(1, 0, 2));
    bench.slice(1, 0, b"ab");
    bench.say(ProductBegin { transfer: 9, ..begin(1, 0, 2) });
    bench.slice(9, 0, b"ab");
    bench.settled(1, StoreResult::Stored);
    bench.say(ProductBegin { transfer: 10, ..begin(1, 0, 2) });
    bench.slice(10, 0, b"ab");
    assert_eq!(bench.count(is_complete), 1);
}

#[test]
fn covered_settles_what_is_not_on_its_way() {
    let mut bench = Bench::started();
    bench.say(begin(3, 2, 5));
    bench.say(Covered { feed: feed(), epoch: EPOCH, from: Sequence(1), to: Sequence(9) });
    assert_eq!(bench.ranges(), [(0, 2), (4, 9)]);
    bench.say(Covered { feed: feed(), epoch: Epoch(8), from: Sequence(3), to: Sequence(99) });
    assert_eq!(bench.ranges(), [(0, 2), (4, 9)]);
}

#[test]
fn a_digest_failure_is_asked_again_twice_and_then_rejected() {
    let mut bench = Bench::started();
    for attempt in 1..=3 {
        bench.say(ProductBegin { transfer: attempt, ..begin(1, 0, 2) });
        bench.slice(attempt, 0, b"ab");
        assert_eq!(bench.count(is_complete), attempt as usize);
        bench.settled(1, StoreResult::DigestMismatch);
        let said = bench.wait(100);
        if attempt < 3 {
            assert_eq!(wants(&said), [[(1, 1)]]);
        } else {
            assert_eq!(wants(&said), [[]; 0]);
            assert_eq!(bench.receipts()[0].outcome, Outcome::Rejected);
        }
    }
    assert_eq!(bench.ranges(), [(0, 1)]);
}

#[test]
fn what_could_not_be_stored_is_asked_after_a_pause_and_again() {
    let mut bench = Bench::started();
    bench.say(begin(1, 0, 0));
    bench.settled(1, StoreResult::Failed("full".to_owned()));
    assert_eq!(wants(&bench.wait(4_900)), [[]; 0]);
    assert_eq!(wants(&bench.wait(200)), [[(1, 1)]]);
    // A keep-alive.
    bench.say(ClockReply { request_sent: WallMicros(0), received: WallMicros(0), sent: WallMicros(0) });
    assert_eq!(wants(&bench.wait(3_800)), [[]; 0]);
    assert_eq!(wants(&bench.wait(300)), [[(1, 1)]]);
}

#[test]
fn the_end_of_a_session_drops_what_is_half_received_and_keeps_the_rest() {
    let mut bench = Bench::started();
    bench.say(begin(1, 0, 2));
    bench.slice(1, 0, b"ab");
    bench.say(begin(2, 1, 2));
    bench.slice(2, 0, b"a");
    bench.site.handle(at(0), SiteInput::Disconnected);
    assert_eq!(bench.count(|output| matches!(output, SiteOutput::Abandon(key) if key.sequence.0 == 2)), 1);
    bench.settled(1, StoreResult::Stored);
    assert_eq!(bench.ranges(), [(0, 1)]);
    bench.connect();
    let said = bench.wait(100);
    assert!(matches!(&said[0], Message::Hello(hello) if hello.feeds == [bench.position()]));
    assert_eq!(bench.receipts().len(), 1, "the receipt waited for a connection");
}

#[test]
fn another_epoch_begins_anew_and_is_kept_at_once() {
    let mut bench = Bench::started();
    bench.say(Covered { feed: feed(), epoch: EPOCH, from: Sequence(1), to: Sequence(50) });
    bench.wait(300);
    bench.others.clear();
    bench.say(FeedStart { feed: feed(), epoch: Epoch(8), after: Sequence(4), duplicates: None });
    bench.messages();
    let kept = |output: &SiteOutput| matches!(output, SiteOutput::Checkpoint(position) if position.epoch == Epoch(8));
    assert_eq!(bench.count(kept), 1);
    assert_eq!(bench.ranges(), [(0, 4)]);
}

#[test]
fn expired_numbers_are_settled_named_and_receipted() {
    let mut bench = Bench::started();
    bench.say(Expired {
        feed: feed(),
        epoch: EPOCH,
        sequences: [(1, 2)].into_iter().collect(),
        late: None,
        stored: None,
    });
    bench.wait(100);
    assert_eq!(
        bench.receipts().iter().map(|receipt| receipt.outcome).collect::<Vec<_>>(),
        [Outcome::Expired; 2]
    );
    assert_eq!(bench.ranges(), [(0, 2)]);
    assert_eq!(bench.count(|output| matches!(output, SiteOutput::Event(SiteEvent::Lost { .. }))), 2);
}

#[test]
fn a_silent_hub_is_dead() {
    let mut bench = Bench::started();
    bench.wait(LIVENESS_LIMIT.0 / 1_000 - 10);
    assert_eq!(bench.count(|output| matches!(output, SiteOutput::Close)), 0);
    bench.wait(20);
    assert_eq!(bench.count(|output| matches!(output, SiteOutput::Event(SiteEvent::Dead))), 1);
    assert_eq!(bench.count(|output| matches!(output, SiteOutput::Close)), 1);
}

#[test]
fn slices_that_do_not_follow_are_a_violation() {
    for (transfer, offset, bytes) in [(9, 0, &b"a"[..]), (1, 1, b"a"), (1, 0, b"abc"), (1, 0, b"")] {
        let mut bench = Bench::started();
        bench.say(begin(1, 0, 2));
        bench.slice(transfer, offset, bytes);
        assert_eq!(bench.count(|output| matches!(output, SiteOutput::Event(SiteEvent::Violation(_)))), 1);
        assert_eq!(bench.count(|output| matches!(output, SiteOutput::Close)), 1);
    }
}

proptest! {
    /// Whatever a hub sends, the site neither panics nor sends without end.
    #[test]
    fn no_bytes_from_a_hub_panic(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..12)) {
        for mut bench in [Bench::new(), Bench::started()] {
            for piece in &pieces {
                bench.bytes(piece.clone().into());
                bench.messages();
            }
        }
    }

    /// The site survives extreme numbers in the messages of a hub.
    #[test]
    fn extreme_numbers_are_survived(
        numbers in prop::collection::vec(
            prop_oneof![0u64..50, Just(u64::MAX), Just(u64::MAX - 1), any::<u64>()],
            8,
        ),
    ) {
        let mut bench = Bench::started();
        bench.say(begin(numbers[0], numbers[1], numbers[2]));
        bench.say(Covered { feed: feed(), epoch: EPOCH, from: Sequence(numbers[3]), to: Sequence(numbers[4]) });
        let sequences = [(numbers[5].min(numbers[6]), numbers[6])].into_iter().collect();
        bench.say(Expired { feed: feed(), epoch: EPOCH, sequences, late: None, stored: None });
        bench.say(FeedStart { feed: feed(), epoch: EPOCH, after: Sequence(numbers[7]), duplicates: None });
        bench.say(ClockReply {
            request_sent: WallMicros(numbers[0] as i64),
            received: WallMicros(numbers[1] as i64),
            sent: WallMicros(numbers[2] as i64),
        });
        bench.wait(20_000);
        prop_assert!(bench.position().settled.contains(0));
    }
}

#[test]
fn a_resume_that_another_hub_led_to_is_said_once_in_place_of_the_own_position() {
    let mut bench = Bench::started();
    bench.say(Covered { feed: feed(), epoch: EPOCH, from: Sequence(1), to: Sequence(50) });
    bench.wait(300);
    bench.site.handle(at(300), SiteInput::Disconnected);
    let settled = RangeSet::new();
    let elsewhere =
        FeedPosition { feed: feed(), epoch: Epoch(99), settled, newest_stored: WallMicros(7_000) };
    bench.site.handle(at(300), SiteInput::StandBy(true));
    bench.site.handle(at(300), SiteInput::ResumeAt(vec![elsewhere.clone()]));
    bench.connect();
    let said = bench.messages();
    let hello = |said: &[Message]| {
        said.iter().find_map(|it| if let Message::Hello(it) = it { Some(it.clone()) } else { None })
    };
    let told = hello(&said).unwrap();
    assert_eq!((told.feeds, told.stand_by), (vec![elsewhere], Some(true)));
    bench.say(FeedStart { feed: feed(), epoch: EPOCH, after: Sequence(70), duplicates: None });
    assert_eq!(
        bench.ranges(),
        [(0, 70)],
        "what the other hub brought is settled, and what was settled stays so"
    );
    bench.site.handle(at(300), SiteInput::Disconnected);
    bench.site.handle(at(300), SiteInput::StandBy(false));
    bench.connect();
    let told = hello(&bench.messages()).unwrap();
    assert_eq!((told.feeds, told.stand_by), (vec![bench.position()], None));
}

#[test]
fn a_feed_is_complete_up_to_the_stamp_behind_which_nothing_is_missing() {
    let mut bench = Bench::started();
    let complete = |bench: &Bench| bench.site.complete_to(&feed());
    let began = complete(&bench);
    assert!(began.is_some(), "a feed that begins at the head misses nothing of before");
    for (sequence, previous) in [(2_000_000, 0), (4_000_000, 2_000_000)] {
        bench.say(begin(sequence, previous, 0));
    }
    bench.settled(4_000_000, StoreResult::Stored);
    assert_eq!(complete(&bench), began, "an earlier product is still on its way");
    bench.settled(2_000_000, StoreResult::Held);
    assert_eq!(complete(&bench), Some(WallMicros(4_000_000)));
}
