//! Arbitrary bytes and arbitrary lists of operations. A failure prints the smallest case; `PROPTEST_CASES`
//! sets how many are tried.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails stops"
)]
mod common;

use bytes::Bytes;
use common::*;
use downburst_model::{Class, Machine, Micros, Sequence};
use downburst_vcmtp::{
    Datagram, Opener, Receiver, ReceiverInput, ReceiverOutput, Sender, SenderInput, SenderOutput,
};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Operation {
    Product { size: usize, class: Class },
    SkipTo(u64),
    Pass { millis: u64, fate: Fate },
    Rate(u64),
    ForeignNak(u64, u64),
    Noise(Vec<u8>),
    ForeignGone(u64, u64),
    ForeignRepair(u64, Vec<u8>),
}

#[derive(Clone, Copy, Debug)]
enum Fate {
    Arrive,
    Lose,
    LoseEach(usize),
    Twice,
    Backwards,
}

fn operation() -> impl Strategy<Value = Operation> {
    let class =
        prop_oneof![Just(Class::Warning), Just(Class::Observation), Just(Class::Grid), Just(Class::Bulk)];
    let fate = prop_oneof![
        Just(Fate::Arrive),
        Just(Fate::Lose),
        (2usize..9).prop_map(Fate::LoseEach),
        Just(Fate::Twice),
        Just(Fate::Backwards)
    ];
    let noise = || prop::collection::vec(any::<u8>(), 0..80);
    prop_oneof![
        4 => (prop_oneof![Just(0usize), 1..3_000usize, 3_000..60_000usize], class)
            .prop_map(|(size, class)| Operation::Product { size, class }),
        1 => (1u64..5).prop_map(Operation::SkipTo),
        5 => (0u64..80, fate).prop_map(|(millis, fate)| Operation::Pass { millis, fate }),
        1 => prop_oneof![Just(0u64), 1_000_000u64..1_000_000_000].prop_map(Operation::Rate),
        1 => (any::<u64>(), any::<u64>()).prop_map(|(first, last)| Operation::ForeignNak(first, last)),
        1 => noise().prop_map(Operation::Noise),
        1 => (100_000u64..u64::MAX, any::<u64>()).prop_map(|(first, last)| Operation::ForeignGone(first, last)),
        1 => (100_000u64..u64::MAX, noise()).prop_map(|(packet, bytes)| Operation::ForeignRepair(packet, bytes)),
    ]
}

/// A sender, a receiver, a network with given effects on datagrams, and a session without delay.
struct Pair {
    sender: Sender,
    receiver: Receiver,
    taken: Taken,
    /// Opens the datagrams outside of the receiver, if there is one.
    opener: Option<Opener>,
    now: u64,
    counter: usize,
}

impl Pair {
    fn new(is_opened_apart: bool) -> Self {
        let mut pair = Self {
            sender: Sender::new(sender_config(100_000_000)),
            receiver: Receiver::new(receiver_config()),
            taken: Taken::default(),
            opener: is_opened_apart.then(|| Opener::new(LEG, LEG_EPOCH, &key())),
            now: 0,
            counter: 0,
        };
        pair.pass(0, Fate::Arrive);
        pair
    }

    fn pass(&mut self, millis: u64, fate: Fate) {
        let until = self.now + millis * 1_000;
        loop {
            self.drain(fate);
            let due = self.sender.deadline().into_iter().chain(self.receiver.deadline()).min();
            match due {
                Some(due) if due.0 <= until => {
                    assert!(due.0 > self.now, "a deadline that has passed after polling");
                    self.now = due.0;
                }
                _ => break,
            }
        }
        self.now = until;
        self.drain(fate);
    }

    fn drain(&mut self, fate: Fate) {
        loop {
            let from_sender = drain(&mut self.sender, at(self.now));
            let from_receiver = drain(&mut self.receiver, at(self.now));
            if from_sender.is_empty() && from_receiver.is_empty() {
                return;
            }
            from_receiver.into_iter().for_each(|output| self.said_by_receiver(output));
            self.said_by_sender(from_sender, fate);
        }
    }

    fn said_by_receiver(&mut self, output: ReceiverOutput) {
        if let ReceiverOutput::Nak(request) = &output {
            self.sender.handle(at(self.now), SenderInput::Nak { site: 1, request: request.clone() });
        }
        self.taken.take(output);
    }

    fn said_by_sender(&mut self, outputs: Vec<SenderOutput>, fate: Fate) {
        let mut datagrams = Vec::new();
        for output in outputs {
            match output {
                SenderOutput::Datagram(bytes) => datagrams.push(bytes.freeze()),
                SenderOutput::Repair { site: 1, packet, payload } => {
                    self.tell(ReceiverInput::Repair { packet, payload });
                }
                SenderOutput::Gone { site: 1, packets } => self.tell(ReceiverInput::Gone(packets)),
                _ => {}
            }
        }
        self.deliver(datagrams, fate);
    }

    fn deliver(&mut self, mut datagrams: Vec<Bytes>, fate: Fate) {
        match fate {
            Fate::Arrive => {}
            Fate::Lose => datagrams.clear(),
            Fate::LoseEach(nth) => datagrams.retain(|_| {
                self.counter += 1;
                !self.counter.is_multiple_of(nth)
            }),
            Fate::Twice => datagrams = datagrams.iter().flat_map(|one| [one.clone(), one.clone()]).collect(),
            Fate::Backwards => datagrams.reverse(),
        }
        let batch: Vec<Datagram> = match &mut self.opener {
            None => datagrams.into_iter().map(Datagram::from).collect(),
            Some(opener) => {
                let take = |datagram: Bytes| opener.take(Micros(self.now), &mut datagram.to_vec());
                datagrams.into_iter().for_each(take);
                opener.finish()
            }
        };
        let now = at(self.now);
        batch.into_iter().for_each(|datagram| self.receiver.handle(now, ReceiverInput::Datagram(datagram)));
        self.poll();
    }

    fn tell(&mut self, input: ReceiverInput) {
        self.receiver.handle(at(self.now), input);
        self.poll();
    }

    fn poll(&mut self) {
        while let Some(output) = self.receiver.poll(at(self.now)) {
            self.said_by_receiver(output);
        }
    }
}

proptest! {
    #[test]
    fn arbitrary_datagrams_are_refused(
        datagrams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..100), 0..20),
    ) {
        let mut receiver = Receiver::new(receiver_config());
        for datagram in &datagrams {
            receiver.handle(at(0), ReceiverInput::Datagram(datagram[..].into()));
            prop_assert_eq!(receiver.poll(at(0)), None);
        }
        prop_assert_eq!(receiver.stats().refused, datagrams.len() as u64);
    }

    #[test]
    fn whatever_happens_the_receiver_ends_with_every_byte(
        operations in prop::collection::vec(operation(), 0..40),
        is_opened_apart: bool,
    ) {
        let mut pair = Pair::new(is_opened_apart);
        let (mut sequence, mut head, mut products) = (0, 0, Vec::new());
        for operation in operations {
            match operation {
                Operation::Product { size, class } => {
                    sequence = head.max(sequence) + 1;
                    products.push((sequence, size, class));
                    pair.sender.handle(at(pair.now), product(sequence, size, class));
                }
                Operation::SkipTo(more) => {
                    head = head.max(sequence) + more;
                    pair.sender.handle(at(pair.now), SenderInput::Head(Sequence(head)));
                }
                Operation::Pass { millis, fate } => pair.pass(millis, fate),
                Operation::Rate(rate) => pair.sender.handle(at(pair.now), SenderInput::Rate(rate)),
                Operation::ForeignNak(first, last) => pair.sender.handle(at(pair.now), nak(9, &[(first, last)])),
                Operation::Noise(bytes) => pair.tell(ReceiverInput::Datagram(bytes[..].into())),
                Operation::ForeignGone(first, last) => {
                    pair.tell(ReceiverInput::Gone([(first, last)].into_iter().collect()));
                }
                Operation::ForeignRepair(packet, bytes) => {
                    pair.tell(ReceiverInput::Repair { packet, payload: bytes.into() });
                }
            }
        }
        pair.sender.handle(at(pair.now), SenderInput::Rate(100_000_000));
        pair.pass(5_000, Fate::Arrive);
        prop_assert_eq!(pair.taken.joined, Some(Sequence(0)));
        prop_assert!(pair.taken.given_up.is_empty());
        prop_assert_eq!(pair.taken.announced.len(), products.len());
        let mut previous = 0;
        for (sequence, size, class) in products {
            prop_assert!(pair.taken.is_whole(sequence, size), "{sequence}");
            let (before, said) = &pair.taken.announced[&Sequence(sequence)];
            prop_assert_eq!((*before, said), (Sequence(previous), &info(sequence, size, class)));
            previous = sequence;
        }
        prop_assert_eq!(pair.sender.backlog_bytes(), 0);
        let last = pair.taken.heads.iter().max().copied();
        prop_assert_eq!(last, Some((Sequence(previous), Sequence(head.max(previous)))));
    }
}
