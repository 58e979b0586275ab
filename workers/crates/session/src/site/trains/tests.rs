use bytes::{Bytes, BytesMut};
use downburst_model::*;

use super::*;
use crate::frame::{Decoder, Frame, Message, slice_header, train_header};
use crate::train::{Base, Head, put_car};
use crate::{
    Covered, FeedStart, ProductBegin, Proof, Receipts, SiteInput, SiteState, Subscription, Subscriptions,
    VERSION, Welcome,
};

const EPOCH: Epoch = Epoch(7);

fn at(millis: u64) -> Now {
    Now { monotonic: Micros::from_millis(millis), wall: WallMicros(9_000_000 + millis as i64 * 1_000) }
}

fn feed() -> FeedName {
    FeedName::parse("CONDUIT").unwrap()
}

fn info(sequence: u64, bytes: &[u8]) -> ProductInfo {
    ProductInfo {
        key: ProductKey { feed: feed(), epoch: EPOCH, sequence: Sequence(sequence) },
        id: ProductId::parse("x").unwrap(),
        origin: Origin::parse("hub").unwrap(),
        created: WallMicros(1),
        stored: WallMicros(sequence as i64),
        size: bytes.len() as u64,
        digest: Digest([0; 32]),
        class: Class::Grid,
        hops: None,
        ldm: None,
        properties: None,
    }
}

/// A site whose feed begins behind 0.
struct Bench {
    site: SiteSession,
    decoder: Decoder,
    trains: Vec<Arc<Train>>,
    others: Vec<SiteOutput>,
    receipts: Vec<Receipt>,
    wants: Vec<(u64, u64)>,
}

impl Bench {
    fn started(version: u16) -> Self {
        let site = SiteSession::new("test".to_owned(), SiteState::default());
        let nothing = Vec::new;
        let mut bench = Self {
            site,
            decoder: Decoder::default(),
            trains: Vec::new(),
            others: Vec::new(),
            receipts: nothing(),
            wants: Vec::new(),
        };
        bench.connect(version);
        bench
    }

    fn connect(&mut self, version: u16) {
        self.decoder.reset();
        let site = SiteName::parse("oslo").unwrap();
        let proof = Proof::Credential { site: site.clone(), secret: "s".to_owned() };
        self.site.handle(at(0), SiteInput::Connected(proof));
        self.say(Welcome { version, site, hub: "hub".to_owned(), stand_by: None });
        let wish = Subscription { feed: feed(), pattern: "x".to_owned(), not_pattern: None, within: None };
        self.say(Subscriptions { items: vec![wish], heads: vec![] });
        self.say(FeedStart { feed: feed(), epoch: EPOCH, after: Sequence(0), duplicates: None });
    }

    fn say(&mut self, message: impl Into<Message>) {
        self.bytes(message.into().encode());
    }

    fn bytes(&mut self, bytes: Bytes) {
        self.site.handle(at(0), SiteInput::Bytes { stream: crate::StreamId::FIRST, bytes });
        self.drain(0);
    }

    /// Sends a train of products of three bytes, with the limits of the numbers around them.
    fn train(&mut self, previous: u64, numbers: &[u64], to: u64) {
        self.products(
            previous,
            &numbers.iter().map(|number| (*number, b"abc".as_slice())).collect::<Vec<_>>(),
            to,
        );
    }

    fn products(&mut self, previous: u64, products: &[(u64, &[u8])], to: u64) {
        let first = info(products[0].0, b"");
        let base = Base {
            sequence: products[0].0,
            created: first.created,
            stored: first.stored,
            origin: first.origin,
            hops: None,
        };
        let mut run = BytesMut::new();
        products.iter().for_each(|(number, bytes)| put_car(&mut run, &base, &info(*number, bytes), bytes));
        let head = Head {
            feed: feed(),
            epoch: EPOCH,
            class: Class::Grid,
            lane: Lane::Live,
            leg: LegId(1),
            previous,
            to,
            base,
        };
        self.bytes(train_header(&head, run.len()));
        self.bytes(run.freeze());
    }

    fn drain(&mut self, millis: u64) {
        while let Some(output) = self.site.poll(at(millis)) {
            match output {
                SiteOutput::Write { bytes, .. } => self.decoder.push(bytes),
                SiteOutput::Train { train, .. } => self.trains.push(train),
                other => self.others.push(other),
            }
        }
        while let Some(frame) = self.decoder.next().unwrap() {
            match frame {
                Frame::Receipts(Receipts { items, .. }) => self.receipts.extend(items),
                Frame::Message(Message::Want(want)) => self.wants.extend(want.sequences.iter()),
                _ => {}
            }
        }
    }

    fn settle(&mut self, results: &[StoreResult]) {
        let input = SiteInput::TrainSettled {
            train: self.trains.remove(0),
            results: results.to_vec(),
            at: WallMicros(5),
        };
        self.site.handle(at(0), input);
        self.drain(0);
    }

    fn settle_product(&mut self, sequence: u64, result: StoreResult) {
        self.site
            .handle(at(0), SiteInput::Settled { key: info(sequence, b"").key, result, at: WallMicros(5) });
        self.drain(0);
    }

    fn ranges(&self) -> Vec<(u64, u64)> {
        self.site.positions().remove(0).settled.iter().collect()
    }

    fn count(&self, which: impl Fn(&SiteOutput) -> bool) -> usize {
        self.others.iter().filter(|output| which(output)).count()
    }

    fn completed(&self) -> Vec<u64> {
        let complete = self.others.iter().filter_map(|output| match output {
            SiteOutput::Complete { info, .. } => Some(info.key.sequence.0),
            _ => None,
        });
        complete.collect()
    }
}

#[test]
fn a_train_is_stored_as_one_and_settles_what_lies_between_its_products() {
    let mut bench = Bench::started(VERSION);
    bench.train(2, &[4, 5, 8], 10);
    assert_eq!(bench.trains[0].cars.len(), 3);
    assert_eq!(bench.ranges(), [(0, 0), (3, 3), (6, 7), (9, 10)], "1 and 2 are nobody's word yet");
    bench.say(Covered { feed: feed(), epoch: EPOCH, from: Sequence(1), to: Sequence(10) });
    assert_eq!(bench.ranges(), [(0, 3), (6, 7), (9, 10)], "what is being stored is not settled");
    bench.settle(&[StoreResult::Stored, StoreResult::Stored, StoreResult::Stored]);
    assert_eq!(bench.ranges(), [(0, 10)]);
    bench.drain(60);
    let numbers: Vec<u64> = bench.receipts.iter().map(|receipt| receipt.key.sequence.0).collect();
    assert_eq!(numbers, [4, 5, 8]);
    let first = &bench.receipts[0];
    assert_eq!((first.size, first.hub_stored, first.site_stored), (3, WallMicros(4), WallMicros(5)));
    assert_eq!((first.leg, first.transport, first.outcome), (LegId(1), Transport::Unicast, Outcome::Stored));
}

#[test]
fn products_that_fail_are_asked_again_and_the_others_are_settled() {
    let mut bench = Bench::started(VERSION);
    bench.train(0, &[1, 2, 3, 4], 4);
    let full = StoreResult::Failed("the disk is full".to_owned());
    bench.settle(&[StoreResult::Stored, StoreResult::DigestMismatch, full, StoreResult::Held]);
    assert_eq!(bench.ranges(), [(0, 1), (4, 4)]);
    assert_eq!(bench.wants, [(2, 2)], "a bad digest is asked at once");
    bench.drain(5_000);
    assert_eq!(bench.wants[1..], [(2, 3)], "a full disk after a pause, and the other once more");
    let ended: Vec<_> =
        bench.receipts.iter().map(|receipt| (receipt.key.sequence.0, receipt.outcome)).collect();
    assert_eq!(ended, [(1, Outcome::Stored), (4, Outcome::Held)]);
}

#[test]
fn the_third_bad_digest_rejects_whatever_train_it_comes_in() {
    let mut bench = Bench::started(VERSION);
    bench.train(0, &[1, 2], 2);
    bench.settle(&[StoreResult::DigestMismatch, StoreResult::Stored]);
    for _ in 0..2 {
        bench.train(0, &[1], 2);
        assert!(bench.trains.is_empty(), "a product that is known goes its own way");
        bench.settle_product(1, StoreResult::DigestMismatch);
    }
    assert_eq!(bench.count(|output| matches!(output, SiteOutput::Event(crate::SiteEvent::Lost { .. }))), 1);
    assert_eq!(bench.ranges(), [(0, 2)]);
}

#[test]
fn what_is_settled_or_being_stored_is_passed_over() {
    let mut bench = Bench::started(VERSION);
    bench.train(0, &[1, 2], 2);
    bench.train(1, &[2, 3], 3);
    assert_eq!((bench.trains.len(), bench.completed()), (1, vec![3]));
    bench.settle(&[StoreResult::Stored, StoreResult::Stored]);
    bench.settle_product(3, StoreResult::Stored);
    bench.train(0, &[1, 2, 3], 3);
    assert_eq!((bench.trains.len(), bench.completed()), (0, vec![3]));
    assert_eq!(bench.ranges(), [(0, 3)]);
}

#[test]
fn a_product_that_is_half_there_is_completed_by_a_train() {
    let mut bench = Bench::started(VERSION);
    let begin = ProductBegin {
        info: info(2, b"abc"),
        previous: Some(Sequence(1)),
        lane: Lane::Live,
        leg: LegId(1),
        transfer: 9,
    };
    bench.say(begin);
    bench.bytes(slice_header(9, 0, 1));
    bench.bytes(Bytes::from_static(b"a"));
    bench.train(0, &[1, 2], 2);
    assert_eq!(bench.completed(), [1, 2]);
    assert!(bench.trains.is_empty());
    bench.bytes(slice_header(9, 1, 2));
    bench.bytes(Bytes::from_static(b"bc"));
    assert_eq!(bench.completed(), [1, 2], "the rest of the slices changes nothing");
}

#[test]
fn empty_products_ride_like_others() {
    let mut bench = Bench::started(VERSION);
    bench.products(0, &[(1, b""), (2, b"")], 2);
    assert_eq!(bench.trains[0].cars.len(), 2);
    bench.train(2, &[3], 3);
    bench.products(1, &[(2, b""), (4, b"")], 4);
    assert_eq!(bench.completed(), [4]);
    bench.settle(&[StoreResult::Stored, StoreResult::Stored]);
    assert_eq!(bench.ranges(), [(0, 2)]);
}

#[test]
fn a_train_cut_by_the_end_of_the_connection_comes_again() {
    let mut bench = Bench::started(VERSION);
    bench.train(0, &[1, 2], 2);
    let stored = bench.trains.remove(0);
    bench.site.handle(at(0), SiteInput::Disconnected);
    bench.connect(VERSION);
    bench.train(0, &[1, 2, 3], 3);
    assert_eq!(bench.completed(), [3], "the first two are still being stored");
    bench.trains.push(stored);
    bench.settle(&[StoreResult::Stored, StoreResult::Stored]);
    assert_eq!(bench.ranges(), [(0, 2)]);
}

#[test]
fn results_of_a_former_epoch_settle_nothing_in_the_present_one() {
    let mut bench = Bench::started(VERSION);
    bench.train(0, &[1, 2], 2);
    bench.say(FeedStart { feed: feed(), epoch: Epoch(8), after: Sequence(0), duplicates: None });
    bench.settle(&[StoreResult::Stored, StoreResult::Stored]);
    assert_eq!(bench.ranges(), [(0, 0)]);
    bench.drain(60);
    assert_eq!(bench.receipts.len(), 2, "the hub learns of it all the same");
}

#[test]
fn a_driver_that_says_too_little_has_not_stored_the_rest() {
    let mut bench = Bench::started(VERSION);
    bench.train(0, &[1, 2], 2);
    bench.settle(&[StoreResult::Stored]);
    assert_eq!(bench.ranges(), [(0, 1)]);
    bench.train(2, &[3], 3);
    bench.settle(&[StoreResult::Stored, StoreResult::Stored]);
    assert_eq!(bench.ranges(), [(0, 1), (3, 3)]);
}

#[test]
fn a_version_that_was_not_offered_is_refused() {
    let mut bench = Bench::started(99);
    bench.drain(0);
    let violations =
        bench.count(|output| matches!(output, SiteOutput::Event(crate::SiteEvent::Violation(_))));
    assert!(violations == 1 && bench.site.positions().is_empty());
}
