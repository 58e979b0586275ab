//! Products that the hub refers to siblings.
use super::*;
use crate::{
    Fetch, Fingerprint, Referral, ReferralEnded, Referred, SiblingFault, SiblingGrant, SiblingInput,
    SiblingPort, SiblingTerms, SiblingWithdrawn, Ticket,
};

fn referral(number: u32, items: &[(u64, u64)]) -> Referral {
    let items = items.iter().map(|(sequence, previous)| Referred {
        info: info(*sequence, "x", 6),
        previous: Sequence(*previous),
        to: None,
    });
    Referral {
        number,
        ticket: Ticket([1; 16]),
        sibling: SiteName::parse("bergen").unwrap(),
        address: "bergen:7380".to_owned(),
        fingerprint: Fingerprint([2; 32]),
        leg: LegId(1),
        items: items.collect(),
    }
}

impl Bench {
    fn sibling(&mut self, input: SiblingInput) -> Vec<Message> {
        self.site.handle(at(self.millis), SiteInput::Sibling(input));
        self.messages()
    }

    fn piece(&mut self, number: u32, sequence: u64, offset: u64, bytes: &'static [u8]) {
        let (sequence, bytes) = (Sequence(sequence), Bytes::from_static(bytes));
        self.sibling(SiblingInput::Piece { number, sequence, offset, bytes });
    }

    fn fetches(&mut self) -> Vec<Fetch> {
        let fetches = self.others.iter().filter_map(|output| match output {
            SiteOutput::Event(SiteEvent::Fetch(fetch)) => Some((**fetch).clone()),
            _ => None,
        });
        fetches.collect()
    }

    /// The products that are whole.
    fn complete(&self) -> Vec<u64> {
        let whole = self.others.iter().filter_map(|output| match output {
            SiteOutput::Complete { info, .. } => Some(info.key.sequence.0),
            _ => None,
        });
        whole.collect()
    }
}

/// The missing ranges of an ended referral, and the sibling's fault.
type Ended = (Vec<(u64, u64)>, Option<SiblingFault>);

fn ended(messages: &[Message]) -> Vec<Ended> {
    let ends = messages.iter().filter_map(|message| match message {
        Message::ReferralEnded(ReferralEnded { missing, fault, .. }) => {
            Some((missing.iter().collect(), *fault))
        }
        _ => None,
    });
    ends.collect()
}

#[test]
fn referred_products_are_fetched_completed_and_reported() {
    let mut bench = Bench::started();
    bench.say(referral(4, &[(3, 0), (5, 3)]));
    bench.messages();
    let fetches = bench.fetches();
    let [Fetch { number: 4, products, .. }] = &fetches[..] else { panic!("{fetches:?}") };
    assert_eq!(products.iter().map(|one| (one.sequence.0, one.size)).collect::<Vec<_>>(), [(3, 6), (5, 6)]);
    bench.piece(4, 3, 0, b"abc");
    bench.piece(4, 3, 3, b"def");
    bench.piece(4, 5, 0, b"ghijkl");
    assert_eq!(bench.complete(), [3, 5]);
    bench.settled(3, StoreResult::Stored);
    bench.settled(5, StoreResult::Stored);
    let told = bench.sibling(SiblingInput::Ended { number: 4, fault: None });
    assert_eq!(ended(&told), [(vec![], None)]);
    bench.millis += 1_000;
    bench.messages();
    assert_eq!(bench.receipts.len(), 2);
}

#[test]
fn what_did_not_come_is_reported_missing_and_the_hub_may_send_it() {
    let mut bench = Bench::started();
    bench.say(referral(4, &[(3, 0), (5, 3)]));
    bench.messages();
    bench.piece(4, 3, 0, b"abcdef");
    bench.piece(4, 5, 0, b"ghi");
    let told = bench.sibling(SiblingInput::Ended { number: 4, fault: Some(SiblingFault::Slow) });
    assert_eq!(ended(&told), [(vec![(5, 5)], Some(SiblingFault::Slow))]);
    bench.say(ProductBegin { info: info(5, "x", 6), ..begin(5, 3, 6) });
    bench.slice(5, 0, b"ghijkl");
    bench.messages();
    assert_eq!(bench.complete(), [3, 5]);
    let told = bench.sibling(SiblingInput::Ended { number: 4, fault: None });
    assert!(ended(&told).is_empty(), "it was over");
}

#[test]
fn spoilt_bytes_are_dropped_and_count_as_no_failure_of_the_product() {
    let mut bench = Bench::started();
    for number in 1..=5 {
        bench.say(referral(number, &[(3, 0)]));
        bench.messages();
        bench.piece(number, 3, 0, b"xyz");
        bench.sibling(SiblingInput::Spoilt { number, sequence: Sequence(3) });
        let told = bench.sibling(SiblingInput::Ended { number, fault: Some(SiblingFault::Rubbish) });
        assert_eq!(ended(&told), [(vec![(3, 3)], Some(SiblingFault::Rubbish))]);
    }
    bench.say(ProductBegin { info: info(3, "x", 6), ..begin(3, 0, 6) });
    bench.slice(3, 0, b"abcdef");
    bench.messages();
    assert_eq!(bench.complete(), [3]);
}

#[test]
fn products_that_are_here_already_are_not_fetched() {
    let mut bench = Bench::started();
    bench.say(ProductBegin { info: info(3, "x", 6), ..begin(3, 0, 6) });
    bench.slice(3, 0, b"abcdef");
    bench.settled(3, StoreResult::Stored);
    bench.say(referral(4, &[(3, 0)]));
    assert_eq!(ended(&bench.messages()), [(vec![], None)]);
    assert!(bench.fetches().is_empty());
}

#[test]
fn the_end_of_the_session_ends_the_referrals() {
    let mut bench = Bench::started();
    bench.say(referral(4, &[(3, 0)]));
    bench.messages();
    bench.site.handle(at(bench.millis), SiteInput::Disconnected);
    bench.piece(4, 3, 0, b"abcdef");
    assert!(bench.complete().is_empty());
    assert!(bench.sibling(SiblingInput::Ended { number: 4, fault: None }).is_empty());
}

#[test]
fn too_many_referrals_and_mixed_ones_break_the_protocol() {
    let violates = |bench: &Bench| {
        bench.others.iter().any(|it| matches!(it, SiteOutput::Event(SiteEvent::Violation(_))))
    };
    let mut bench = Bench::started();
    for number in 0..=crate::MOST_REFERRALS as u32 {
        assert!(!violates(&bench));
        bench.say(referral(number, &[(u64::from(number) + 1, u64::from(number))]));
        bench.messages();
    }
    assert!(violates(&bench));
    for items in [vec![], vec![(5, 4), (5, 4)], vec![(5, 4), (3, 2)]] {
        let mut bench = Bench::started();
        bench.say(referral(1, &items));
        bench.messages();
        assert!(violates(&bench), "{items:?}");
    }
}

#[test]
fn terms_grants_and_their_end_are_passed_to_the_driver_and_the_port_to_the_hub() {
    let mut bench = Bench::started();
    let terms = SiblingTerms { on: true, upload_bytes_per_second: 5, upload_bytes_per_day: 6 };
    let grant = SiblingGrant {
        ticket: Ticket([1; 16]),
        sibling: SiteName::parse("bergen").unwrap(),
        fingerprint: Fingerprint([2; 32]),
        feed: feed(),
        epoch: EPOCH,
        sequences: [(1, 3)].into_iter().collect(),
    };
    bench.say(terms);
    bench.say(grant.clone());
    bench.say(SiblingWithdrawn { tickets: vec![Ticket([1; 16])] });
    bench.messages();
    let told: Vec<&SiteEvent> = bench
        .others
        .iter()
        .filter_map(|it| match it {
            SiteOutput::Event(event) => Some(event),
            _ => None,
        })
        .collect();
    assert!(told.iter().any(|it| matches!(it, SiteEvent::SiblingTerms(of) if *of == terms)));
    assert!(told.iter().any(|it| matches!(it, SiteEvent::SiblingGrant(of) if **of == grant)));
    assert!(told.iter().any(|it| matches!(it, SiteEvent::SiblingWithdrawn(of) if of.len() == 1)));
    let port = SiblingPort { port: 7, fingerprint: Fingerprint([3; 32]) };
    assert_eq!(bench.sibling(SiblingInput::Port(port)), [port.into()]);
}
