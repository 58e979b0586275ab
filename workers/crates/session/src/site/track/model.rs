//! A track compared with a model of plain sets, under random operations.
use std::collections::BTreeSet;

use downburst_model::{Class, Digest, Origin, Transport};
use proptest::prelude::*;

use super::*;
use crate::{Outcome, StoreResult};

/// An operation on a track. Operations that the session can't do at the moment change nothing.
#[derive(Clone, Debug)]
enum Operation {
    Start {
        other_epoch: bool,
        after: u64,
    },
    End,
    Cover {
        from: u64,
        to: u64,
    },
    Expire {
        from: u64,
        to: u64,
    },
    /// An announcement by the session, or by a leg.
    Announce {
        number: u64,
        leg: Option<u32>,
    },
    Resend {
        number: u64,
    },
    Bytes {
        number: u64,
        all: bool,
    },
    TransferEnds {
        number: u64,
    },
    TransferLost {
        number: u64,
    },
    LegEnds {
        leg: u32,
        known_to: u64,
    },
    Settle {
        which: usize,
        result: StoreResult,
    },
    Pass {
        number: u64,
        wanted_later: bool,
    },
    Reconsider {
        head: u64,
    },
    AskUnknown {
        from: u64,
        to: u64,
    },
    Wait {
        millis: u64,
    },
}

/// The model: the state of a session, number by number.
#[derive(Debug, Default)]
struct Model {
    epoch: u64,
    started: bool,
    settled: BTreeSet<u64>,
    pending: BTreeMap<u64, Coming>,
    waiting: BTreeMap<(u64, u64), Kept>,
    /// Time, number, and whether the product is wanted later.
    passed: Vec<(u64, u64, bool)>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Coming {
    transfers: u32,
    legs: BTreeSet<u32>,
    failures: u8,
    resend: Option<u64>,
    /// The stream that carried it ended: the hub sends it again without a request.
    lost: bool,
}

#[derive(Clone, Copy, Debug)]
struct Kept {
    failures: u8,
    resend: Option<u64>,
}

struct Run {
    track: Track,
    model: Model,
    millis: u64,
    out: Outputs,
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(400),
        ..ProptestConfig::default()
    })]
    #[test]
    fn a_track_is_what_plain_sets_say(operations in prop::collection::vec(operation(), 1..80)) {
        let mut run = Run::new();
        for operation in operations {
            run.apply(operation);
            run.compare();
        }
    }
}

impl Run {
    fn new() -> Self {
        let track = Track::new(feed(), Epoch(0));
        let mut run = Self { track, model: Model::default(), millis: 0, out: Outputs::new() };
        run.apply(Operation::Start { other_epoch: false, after: 0 });
        run
    }

    fn now(&self) -> Now {
        let micros = self.millis * 1_000;
        Now { monotonic: Micros(micros), wall: WallMicros(micros as i64) }
    }

    fn apply(&mut self, operation: Operation) {
        let now = self.now();
        match operation {
            Operation::Start { other_epoch, after } if other_epoch || !self.model.started => {
                let epoch = self.model.epoch + u64::from(other_epoch);
                self.track.start(now, Epoch(epoch), after, &mut self.out);
                self.begin(epoch, after);
            }
            Operation::Settle { which, result } => self.settle(which, result),
            Operation::Wait { millis } => {
                self.millis += millis;
                self.track.due_asks(self.now());
                self.track.ask_stalled(self.now(), |_| None);
            }
            _ if !self.model.started => {}
            Operation::End => {
                self.track.end(now, &mut self.out);
                self.end();
            }
            Operation::Cover { from, to } => {
                self.cover(from, to);
                self.track.cover(now, from, to, &mut self.out);
            }
            Operation::Expire { from, to } => self.expire(from, to),
            Operation::Announce { number, leg } => self.announce(number, leg),
            Operation::Resend { number } => self.resend(number),
            Operation::Bytes { number, all } => self.bytes(number, all),
            Operation::TransferEnds { number } => self.transfer_over(number, false),
            Operation::TransferLost { number } => self.transfer_over(number, true),
            Operation::LegEnds { leg, known_to } => self.leg_ends(leg, known_to),
            Operation::Pass { number, wanted_later } => self.pass(number, wanted_later),
            Operation::Reconsider { head } => self.reconsider(head),
            Operation::AskUnknown { from, to } => self.ask_unknown(from, to),
            Operation::Start { .. } => {}
        }
    }

    fn begin(&mut self, epoch: u64, after: u64) {
        if epoch != self.model.epoch {
            self.end();
            self.model.epoch = epoch;
            self.model.settled.clear();
        }
        self.model.started = true;
        self.cover(0, after);
    }

    fn end(&mut self) {
        let (model, millis) = (&mut self.model, self.millis);
        model.started = false;
        model.pending.clear();
        for (at, number, _) in std::mem::take(&mut model.passed) {
            if millis - at < crate::LIVENESS_LIMIT.0 / 1_000 {
                model.settled.remove(&number);
            }
        }
    }

    fn cover(&mut self, from: u64, to: u64) {
        for number in from..=to {
            let comes = self.model.pending.get(&number).is_some_and(|coming| {
                coming.transfers > 0 || (!coming.legs.is_empty() && !self.track.requests.has(number))
            });
            if !comes && !self.is_waiting(number) {
                self.model.pending.remove(&number);
                self.model.settled.insert(number);
            }
        }
    }

    fn expire(&mut self, from: u64, to: u64) {
        let lost: Vec<u64> = (from..=to).filter(|number| !self.is_over(*number)).collect();
        let receipts = self.track.expire(
            self.now(),
            (&[(from, to)].into_iter().collect(), Outcome::Expired),
            &mut self.out,
        );
        let named: Vec<u64> = receipts.iter().map(|receipt| receipt.key.sequence.0).collect();
        assert_eq!(named, lost, "each is receipted once");
        for number in lost {
            self.model.pending.remove(&number);
            self.model.settled.insert(number);
        }
        self.cover(from, to);
    }

    fn announce(&mut self, number: u64, leg: Option<u32>) {
        let (now, info) = (self.now(), info(self.model.epoch, number));
        let over = self.is_over(number);
        let coming = self.track.announce(now, info, Lane::Live, source(leg), &mut self.out);
        assert_eq!(coming.is_some(), !over && size(number) > 0);
        if let Some(coming) = coming {
            match leg {
                Some(leg) => drop(coming.legs.insert(LegId(leg))),
                None => coming.transfers += 1,
            }
        }
        if over {
            return;
        }
        let coming = self.model.pending.entry(number).or_default();
        match leg {
            Some(leg) => drop(coming.legs.insert(leg)),
            None => (coming.transfers, coming.lost) = (coming.transfers + 1, false),
        }
        self.complete_if(number, size(number) == 0);
    }

    fn resend(&mut self, number: u64) {
        let (now, info) = (self.now(), info(self.model.epoch, number));
        let waiting = self.is_waiting(number);
        let sender = (Lane::Resend, source(None));
        let coming = self.track.announce_again(now, info, 1, sender, &mut self.out);
        assert_eq!(coming.is_some(), !waiting && size(number) > 0);
        if let Some(coming) = coming {
            coming.transfers += 1;
        }
        if !waiting {
            let coming = self.model.pending.entry(number).or_default();
            (coming.resend, coming.transfers, coming.lost) = (Some(1), coming.transfers + 1, false);
            self.complete_if(number, size(number) == 0);
        }
    }

    fn bytes(&mut self, number: u64, all: bool) {
        let (length, now) = (if all { size(number) } else { size(number) / 2 }, self.now());
        let bytes = Bytes::from(vec![0; length as usize]);
        self.track.block(now, source(None), (number, 0), &bytes, false, &mut self.out);
        self.complete_if(number, all && length > 0);
    }

    fn complete_if(&mut self, number: u64, complete: bool) {
        if let Some(coming) = self.model.pending.remove(&number) {
            if complete {
                let kept = Kept { failures: coming.failures, resend: coming.resend };
                self.model.waiting.insert((self.model.epoch, number), kept);
            } else {
                self.model.pending.insert(number, coming);
            }
        }
    }

    fn transfer_over(&mut self, number: u64, lost: bool) {
        let Some(coming) = self.model.pending.get_mut(&number).filter(|coming| coming.transfers > 0) else {
            return;
        };
        coming.transfers -= 1;
        coming.lost |= lost && coming.transfers == 0;
        if lost {
            self.track.transfer_lost(number);
        } else {
            self.track.transfer_ended(self.now(), number);
        }
    }

    fn leg_ends(&mut self, leg: u32, known_to: u64) {
        let mut gone = Vec::new();
        for (number, coming) in &mut self.model.pending {
            let orphan = coming.legs.remove(&leg) && coming.legs.is_empty() && coming.transfers == 0;
            if orphan && *number > known_to {
                gone.push(*number);
            }
        }
        gone.iter().for_each(|number| drop(self.model.pending.remove(number)));
        self.track.leg_ended(self.now(), LegId(leg), known_to, &mut self.out);
    }

    fn pass(&mut self, number: u64, wanted_later: bool) {
        let id = ProductId::parse(if wanted_later { "wanted" } else { "not" }).unwrap();
        if !self.is_over(number) && !self.model.pending.contains_key(&number) {
            self.model.settled.insert(number);
            self.model.passed.push((self.millis, number, wanted_later));
        }
        self.track.pass(self.now(), number, id);
    }

    fn reconsider(&mut self, head: u64) {
        for (_, number, wanted) in std::mem::take(&mut self.model.passed) {
            if wanted && number > head {
                self.model.settled.remove(&number);
            }
        }
        self.track.reconsider(self.now(), head, |id| id == "wanted");
    }

    fn ask_unknown(&mut self, from: u64, to: u64) {
        self.track.ask_unknown(self.now(), [(from, to)].into_iter().collect());
        let unknown = (from..=to).filter(|n| !self.is_over(*n) && !self.model.pending.contains_key(n));
        unknown.for_each(|number| assert!(self.track.requests.has(number), "{number} is asked"));
    }

    fn settle(&mut self, which: usize, result: StoreResult) {
        let count = self.model.waiting.len();
        let Some((epoch, number)) = self.model.waiting.keys().nth(which % count.max(1)).copied() else {
            return;
        };
        let key = info(epoch, number).key;
        let receipt = self.track.settle(self.now(), &key, result.clone(), self.now().wall, &mut self.out);
        let Some(Kept { failures, resend }) = self.model.waiting.remove(&(epoch, number)) else { return };
        let present = epoch == self.model.epoch;
        let has_it = present && self.model.settled.contains(&number);
        let failures =
            failures + u8::from(result == StoreResult::DigestMismatch && !(resend.is_some() && has_it));
        let rejected = failures == 3 && result == StoreResult::DigestMismatch;
        let ended = matches!(result, StoreResult::Stored | StoreResult::Held)
            || (rejected && !(resend.is_some() && has_it));
        assert_eq!(receipt.is_some(), ended, "{number}: {result:?} after {failures} failures");
        if ended && present {
            self.model.settled.insert(number);
        } else if !ended && present && self.model.started && !has_it {
            self.model.pending.insert(number, Coming { failures, ..Coming::default() });
        }
    }

    fn is_waiting(&self, number: u64) -> bool {
        self.model.waiting.contains_key(&(self.model.epoch, number))
    }

    fn is_over(&self, number: u64) -> bool {
        self.model.settled.contains(&number) || self.is_waiting(number)
    }

    fn compare(&self) {
        let Self { track, model, .. } = self;
        let settled: Vec<u64> = track.settled.iter().flat_map(|(first, last)| first..=last).collect();
        assert_eq!(settled, model.settled.iter().copied().collect::<Vec<_>>(), "settled");
        let waiting: Vec<u64> =
            track.waiting.numbers().iter().flat_map(|(first, last)| first..=last).collect();
        let present = model.waiting.keys().filter(|(epoch, _)| *epoch == model.epoch);
        assert_eq!(waiting, present.map(|(_, number)| *number).collect::<Vec<_>>(), "waiting");
        let pending: BTreeMap<u64, Coming> =
            track.pending.iter().map(|(n, it)| (*n, coming(it, model, *n))).collect();
        assert_eq!(pending, model.pending, "pending");
        let frontier = track.frontier();
        assert_eq!(
            frontier.settled_to.0,
            (0..).take_while(|n| model.settled.contains(n)).last().unwrap_or(0)
        );
        assert_eq!(frontier.pending, (model.pending.len() + model.waiting.len()) as u64);
        for (number, coming) in &model.pending {
            assert!(!self.is_waiting(*number), "{number} comes and is stored at once");
            assert!(
                coming.resend.is_some() || !model.settled.contains(number),
                "{number} is settled and comes"
            );
            let cared_for = coming.transfers > 0 || !coming.legs.is_empty() || coming.lost;
            let forgotten = !cared_for && !track.requests.has(*number) && !model.settled.contains(number);
            assert!(!forgotten, "nobody brings {number}, and nobody requests it");
        }
        for known in 0..NUMBERS {
            let accounted = |n: &u64| self.is_over(*n) || model.pending.contains_key(n);
            let to = (known + 1..).take_while(accounted).last().unwrap_or(known);
            assert_eq!(track.known_to(known), to, "known from {known} on");
        }
    }
}

fn coming(assembly: &Assembly, model: &Model, number: u64) -> Coming {
    Coming {
        transfers: assembly.transfers,
        legs: assembly.legs.iter().map(|leg| leg.0).collect(),
        failures: assembly.failures,
        resend: assembly.resend,
        lost: model.pending.get(&number).is_some_and(|coming| coming.lost),
    }
}

fn operation() -> impl Strategy<Value = Operation> {
    let number = || 1..NUMBERS;
    let range = || (0..NUMBERS, 0..6_u64).prop_map(|(from, more)| (from, from + more));
    let result = prop_oneof![
        4 => Just(StoreResult::Stored),
        1 => Just(StoreResult::Held),
        3 => Just(StoreResult::DigestMismatch),
        2 => Just(StoreResult::Failed("the disk is full".to_owned())),
    ];
    prop_oneof![
        2 => (prop::bool::weighted(0.2), 0..6_u64)
            .prop_map(|(other_epoch, after)| Operation::Start { other_epoch, after }),
        1 => Just(Operation::End),
        3 => range().prop_map(|(from, to)| Operation::Cover { from, to }),
        1 => range().prop_map(|(from, to)| Operation::Expire { from, to }),
        8 => (number(), prop::option::of(1..4_u32)).prop_map(|(number, leg)| Operation::Announce { number, leg }),
        2 => number().prop_map(|number| Operation::Resend { number }),
        8 => (number(), any::<bool>()).prop_map(|(number, all)| Operation::Bytes { number, all }),
        2 => number().prop_map(|number| Operation::TransferEnds { number }),
        2 => number().prop_map(|number| Operation::TransferLost { number }),
        2 => (1..4_u32, 0..NUMBERS).prop_map(|(leg, known_to)| Operation::LegEnds { leg, known_to }),
        8 => (0..8_usize, result).prop_map(|(which, result)| Operation::Settle { which, result }),
        2 => (number(), any::<bool>()).prop_map(|(number, wanted_later)| Operation::Pass { number, wanted_later }),
        1 => (0..NUMBERS).prop_map(|head| Operation::Reconsider { head }),
        1 => range().prop_map(|(from, to)| Operation::AskUnknown { from, to }),
        3 => (1..12_000_u64).prop_map(|millis| Operation::Wait { millis }),
    ]
}

fn feed() -> FeedName {
    FeedName::parse("CONDUIT").unwrap()
}

fn info(epoch: u64, number: u64) -> ProductInfo {
    ProductInfo {
        key: ProductKey { feed: feed(), epoch: Epoch(epoch), sequence: Sequence(number) },
        id: ProductId::parse("x").unwrap(),
        origin: Origin::parse("hub").unwrap(),
        created: WallMicros(1),
        stored: WallMicros(number as i64),
        size: size(number),
        digest: Digest([0; 32]),
        class: Class::Grid,
        hops: None,
        ldm: None,
        properties: None,
    }
}

/// Every seventh product is empty.
fn size(number: u64) -> u64 {
    if number.is_multiple_of(7) { 0 } else { 10 }
}

fn source(leg: Option<u32>) -> Source {
    match leg {
        Some(leg) => Source { leg: LegId(leg), transport: Transport::Multicast },
        None => Source { leg: LegId(0), transport: Transport::Unicast },
    }
}

/// Few numbers, so that the operations hit the same ones repeatedly.
const NUMBERS: u64 = 24;
