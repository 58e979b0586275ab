use std::sync::Arc;

use downburst_model::*;

use super::*;
use crate::frame::receipts_frame;
use crate::train::Around;
use crate::{
    Entry, FeedHandling, LegJoin, LegJoined, LegLeft, Outcome, Proof, Receipt, Receipts, Stretch, Train,
    TrainSent, VERSIONS, Want,
};

const EPOCH: Epoch = Epoch(7);

fn now() -> Now {
    Now { monotonic: Micros(0), wall: WallMicros(1_000_000) }
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
        size: 3,
        digest: Digest([0; 32]),
        class: Class::Grid,
        hops: None,
        ldm: None,
        properties: None,
    };
    Entry { info, bytes: Some(b"abc".to_vec().into()) }
}

fn wish(pattern: &str) -> Subscription {
    Subscription { feed: feed(), pattern: pattern.to_owned(), not_pattern: None, within: None }
}

/// A hub session that serves the products behind the site's position.
struct Bench {
    hub: HubSession,
    decoder: Decoder,
    reads: Vec<(u64, u64, Arc<crate::Filter>)>,
    events: Vec<HubEvent>,
}

impl Bench {
    fn serving(settled: &[(u64, u64)], head: u64) -> Self {
        let hub = HubSession::new("hub".to_owned());
        let mut bench = Self { hub, decoder: Decoder::default(), reads: vec![], events: vec![] };
        let proof = Proof::Token { secret: "s".to_owned(), credential_sha256: String::new() };
        let settled = settled.iter().copied().collect();
        let position = FeedPosition { feed: feed(), epoch: EPOCH, settled, newest_stored: WallMicros(5) };
        bench.say(Hello {
            versions: VERSIONS.to_vec(),
            software: "test".to_owned(),
            proof,
            feeds: vec![position],
            stand_by: None,
            one_node: None,
        });
        let site = SiteName::parse("oslo").unwrap();
        bench.hub.handle(now(), HubInput::Admit { site, subscriptions: vec![wish("x")] });
        bench.head(head);
        bench
    }

    fn say(&mut self, message: impl Into<Message>) {
        self.hub.handle(now(), HubInput::Bytes { stream: StreamId::FIRST, bytes: message.into().encode() });
    }

    fn head(&mut self, head: u64) {
        let (feed, head) = (feed(), Sequence(head));
        self.hub.handle(now(), HubInput::Feed { feed, epoch: EPOCH, head, unicast_leg: LegId(1) });
    }

    /// Grants the session `room` bytes and runs it until it is idle.
    fn run(&mut self, room: usize) -> Vec<Frame> {
        self.hub.handle(now(), HubInput::Room { stream: StreamId::FIRST, bytes: room });
        while let Some(output) = self.hub.poll(now()) {
            match output {
                HubOutput::Write { bytes, .. } => self.decoder.push(bytes),
                HubOutput::Read { after, to, filter, .. } => self.reads.push((after.0, to.0, filter)),
                HubOutput::Event(event) => self.events.push(event),
                _ => {}
            }
        }
        std::iter::from_fn(|| self.decoder.next().unwrap()).collect()
    }

    /// The sent trains: the `previous`, the numbers, and the end of the numbers covered behind.
    fn trains(&mut self) -> Vec<(u64, Vec<u64>, u64)> {
        let trains = self.run(1 << 20).into_iter().filter_map(|frame| match frame {
            Frame::Train(Train { cars, .. }, Around { previous, to }) => {
                Some((previous, cars.iter().map(|car| car.sequence.0).collect(), to))
            }
            _ => None,
        });
        trains.collect()
    }

    /// Answers the pending read with all entries in `after+1..=to`: products for the site at these numbers,
    /// others elsewhere.
    fn answer(&mut self, after: u64, to: u64, wanted: &[u64]) {
        let (_, _, filter) = self.reads.pop().expect("a read is out");
        let entries = (after + 1..=to).map(|n| entry(n, if wanted.contains(&n) { "x" } else { "y" }));
        let range = (Sequence(after), Sequence(to));
        let stretch = Stretch::new((feed(), EPOCH), range, entries, filter);
        self.hub.handle(now(), HubInput::Stretch(Arc::new(stretch)));
    }

    fn asked(&mut self) -> Vec<(u64, u64)> {
        self.reads.iter().map(|(after, to, _)| (*after, *to)).collect()
    }
}

#[test]
fn what_matches_in_a_stretch_leaves_together_and_says_what_lies_around() {
    let mut bench = Bench::serving(&[(0, 0)], 9);
    bench.run(1 << 20);
    assert_eq!(bench.asked(), [(0, 9)]);
    bench.answer(0, 9, &[3, 4, 7]);
    assert_eq!(bench.trains(), [(0, vec![3, 4, 7], 9)]);
    let sent = bench.events.iter().filter_map(|event| match event {
        HubEvent::TrainSent(TrainSent { first, last, products, product_bytes, .. }) => {
            Some((first.0, last.0, *products, *product_bytes))
        }
        _ => None,
    });
    assert_eq!(sent.collect::<Vec<_>>(), [(3, 7, 3, 9)]);
}

#[test]
fn a_feed_whose_products_may_be_too_old_is_sent_one_by_one() {
    let mut bench = Bench::serving(&[(0, 0)], 2);
    let handling =
        FeedHandling { feed: feed(), hold_us: None, max_age_us: Some(i64::MAX), deadline_us: None };
    bench.hub.handle(now(), HubInput::Handling(vec![handling]));
    bench.hub.handle(now(), HubInput::Subscriptions(vec![wish("x")]));
    bench.run(1 << 20);
    bench.answer(0, 2, &[1, 2]);
    let frames = bench.run(1 << 20);
    let begins = frames.iter().filter(|frame| matches!(frame, Frame::Message(Message::ProductBegin(_))));
    assert_eq!(begins.count(), 2);
    assert!(!frames.iter().any(|frame| matches!(frame, Frame::Train(..))));
}

#[test]
fn a_longer_stretch_is_cut_to_what_the_site_is_owed() {
    let mut bench = Bench::serving(&[(0, 4), (6, 7)], 10);
    bench.run(1 << 20);
    assert_eq!(bench.asked(), [(4, 5)]);
    bench.answer(0, 20, &[1, 5, 6, 8, 10, 11, 20]);
    assert_eq!(
        bench.trains(),
        [(4, vec![5], 5), (7, vec![8, 10], 10)],
        "one stretch serves every hole in it"
    );
    bench.head(20);
    bench.run(1 << 20);
    assert_eq!(bench.asked(), [(10, 20)], "what came later is owed live and read as such");
}

#[test]
fn a_stretch_of_former_patterns_is_read_again() {
    let mut bench = Bench::serving(&[(0, 0)], 5);
    bench.run(1 << 20);
    bench.hub.handle(now(), HubInput::Subscriptions(vec![wish("y")]));
    bench.answer(0, 5, &[1, 2, 3]);
    assert_eq!(bench.trains(), []);
    assert_eq!(bench.asked(), [(0, 5)]);
    bench.answer(0, 5, &[1, 2, 3]);
    assert_eq!(bench.trains(), [(0, vec![4, 5], 5)]);
}

#[test]
fn a_train_that_a_leg_overtakes_is_taken_back_and_its_earlier_part_sent_again() {
    let mut bench = Bench::serving(&[(0, 0)], 9);
    bench.run(1 << 20);
    let join = LegJoin {
        leg: LegId(100),
        feed: feed(),
        epoch: EPOCH,
        leg_epoch: 1,
        group: String::new(),
        port: 1,
        key: downburst_vcmtp::LegKey::new(1, [1; 32]),
        key_in_use: None,
        sender_key: None,
        proof_secret: None,
        pass: None,
        interface: String::new(),
        rate_bps: 1,
        source: None,
        channel: None,
    };
    bench.hub.handle(now(), HubInput::JoinLeg(Box::new(join)));
    bench.run(1 << 20);
    bench.hub.line.room_bytes = 0;
    bench.answer(0, 9, &[2, 5, 8]);
    bench.say(LegJoined { leg: LegId(100), leg_epoch: 1, after: Sequence(6), reception: None });
    assert_eq!(bench.trains(), []);
    assert_eq!(bench.asked(), [(0, 6)]);
    bench.answer(0, 9, &[2, 5, 8]);
    assert_eq!(bench.trains(), [(0, vec![2, 5], 6)]);
    bench.say(LegLeft {
        leg: LegId(100),
        known_to: Some(Sequence(7)),
        reason: String::new(),
        too_slow: None,
    });
    bench.run(1 << 20);
    assert_eq!(bench.asked(), [(7, 9)]);
}

#[test]
fn wanted_numbers_on_their_way_are_not_read_again() {
    let mut bench = Bench::serving(&[(0, 0)], 9);
    bench.run(1 << 20);
    bench.hub.line.room_bytes = 0;
    bench.answer(0, 9, &[2, 5]);
    bench.say(Want { feed: feed(), epoch: EPOCH, sequences: [(2, 9)].into_iter().collect() });
    bench.run(0);
    assert_eq!(bench.asked(), []);
    assert_eq!(bench.trains().len(), 1);
    bench.say(Want { feed: feed(), epoch: EPOCH, sequences: [(5, 5)].into_iter().collect() });
    bench.run(0);
    assert_eq!(bench.asked(), [(4, 5)]);
}

#[test]
fn receipts_are_noted_and_told() {
    let mut bench = Bench::serving(&[(0, 0)], 9);
    let items: Vec<Receipt> = [1, 2, 3, 7]
        .map(|n| Receipt::undescribed(entry(n, "x").info.key, Outcome::Stored, WallMicros(3)))
        .into();
    let frame = receipts_frame(&Receipts { clock: None, items: items.clone() });
    bench.hub.handle(now(), HubInput::Bytes { stream: StreamId::FIRST, bytes: frame.clone() });
    bench.run(1 << 20);
    assert_eq!(bench.asked(), [(3, 6)], "what is receipted is not owed");
    assert!(
        bench
            .events
            .iter()
            .any(|event| matches!(event, HubEvent::Receipts { items: told, .. } if *told == items))
    );
}

#[test]
fn what_ldm_said_travels_in_trains() {
    let stamp = LdmStamp { signature: [3; 16], sequence: 4_711, feed_type: 8, ident: None };
    let mut bench = Bench::serving(&[(0, 0)], 2);
    bench.run(1 << 20);
    let (_, _, filter) = bench.reads.pop().expect("a read is out");
    let entries = [1, 2].map(|number| {
        let plain = entry(number, "x");
        Entry { info: ProductInfo { ldm: Some(stamp.clone()), ..plain.info }, ..plain }
    });
    let stretch = Stretch::new((feed(), EPOCH), (Sequence(0), Sequence(2)), entries, filter);
    bench.hub.handle(now(), HubInput::Stretch(Arc::new(stretch)));
    let frames = bench.run(1 << 20);
    let train = frames.iter().find_map(|frame| match frame {
        Frame::Train(train, _) => Some(train),
        _ => None,
    });
    let told: Vec<_> = train.expect("both ride").cars.iter().map(|car| car.ldm.clone()).collect();
    assert_eq!(told, [Some(stamp.clone()), Some(stamp)]);
}
