//! A member of the group turns on the others: it has the group's key, and can send whatever opens.
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
use downburst_model::{Class, Machine, Sequence};
use downburst_vcmtp::{
    Receiver, ReceiverConfig, ReceiverInput, ReceiverOutput, Sender, SenderConfig, SenderInput, SenderOutput,
    SigningSeed,
};
use proptest::prelude::*;

/// A leg whose sender proves what it says, a member that is attacked, and what it has.
struct World {
    sender: Sender,
    victim: Receiver,
    taken: Taken,
    repaired: u64,
    now: u64,
}

impl World {
    fn new() -> Self {
        let config = SenderConfig { signing_seed: Some(SigningSeed([1; 32])), ..sender_config(100_000_000) };
        let sender = Sender::new(config);
        let victim = Receiver::new(ReceiverConfig { sender_key: sender.key(), ..receiver_config() });
        Self { sender, victim, taken: Taken::default(), repaired: 0, now: 0 }
    }

    /// Sends what is due until then; `attack` says what reaches the victim in the place of each datagram.
    fn until(&mut self, until: u64, attack: &mut impl FnMut(&Bytes) -> Vec<Bytes>) {
        for (now, output) in run(&mut self.sender, self.now, until) {
            match output {
                SenderOutput::Datagram(datagram) => {
                    for forged in attack(&datagram) {
                        self.hear(now, ReceiverInput::Datagram(forged));
                    }
                }
                SenderOutput::Repair { packet, payload, .. } => {
                    self.repaired += 1;
                    let repair = ReceiverInput::Repair { packet, payload };
                    self.hear(now, repair);
                }
                _ => {}
            }
        }
        self.now = until;
        self.poll(until);
    }

    fn hear(&mut self, now: u64, input: ReceiverInput) {
        self.victim.handle(at(now), input);
        self.poll(now);
    }

    /// Blocks are not proven: as a site does, this passes over those of no announced product, or beyond its end.
    fn poll(&mut self, now: u64) {
        for output in drain(&mut self.victim, at(now)) {
            let plausible = match &output {
                ReceiverOutput::Block { sequence, offset, bytes } => {
                    let product = self.taken.announced.get(sequence);
                    product.is_some_and(|(_, info)| offset + bytes.len() as u64 <= info.size)
                }
                _ => true,
            };
            if plausible {
                self.taken.take(output);
            }
        }
    }

    /// Plays on until the victim asks for nothing more.
    fn settle(&mut self, attack: &mut impl FnMut(&Bytes) -> Vec<Bytes>) {
        for _ in 0..400 {
            let asked = std::mem::take(&mut self.taken.requests);
            for request in asked {
                self.sender.handle(at(self.now), SenderInput::Nak { site: 1, request });
            }
            self.until(self.now + 10_000, attack);
        }
    }

    fn product(&mut self, sequence: u64, size: usize) {
        self.sender.handle(at(self.now), product(sequence, size, Class::Grid));
    }

    /// The manifests that the victim believes are the sender's.
    fn believes_only(&self, products: &[(u64, usize)]) {
        let joined = self.taken.joined.expect("it joins").0;
        let products: Vec<(u64, usize)> = products.iter().filter(|(it, _)| *it > joined).copied().collect();
        let known: Vec<u64> = self.taken.announced.keys().map(|sequence| sequence.0).collect();
        assert_eq!(known, products.iter().map(|(sequence, _)| *sequence).collect::<Vec<_>>());
        for (sequence, size) in &products {
            assert_eq!(self.taken.announced[&Sequence(*sequence)].1, info(*sequence, *size, Class::Grid));
        }
        let last = products.last().map_or(joined, |(sequence, _)| *sequence);
        assert!(self.taken.heads.iter().all(|(_, head)| head.0 <= last));
    }
}

/// What another holder of the group's key makes: datagrams of its own leg's life, with any number and content.
fn insider(products: &[(u64, usize)], signs: bool) -> Vec<Bytes> {
    let signing_seed = signs.then_some(SigningSeed([66; 32]));
    let mut sender = Sender::new(SenderConfig { signing_seed, ..sender_config(1_000_000_000) });
    for (sequence, size) in products {
        sender.handle(at(0), product(*sequence, *size, Class::Grid));
    }
    sender.handle(at(0), SenderInput::Head(Sequence(1_000_000)));
    datagrams(&run(&mut sender, 0, 40_000))
}

fn honest(datagram: &Bytes) -> Vec<Bytes> {
    vec![datagram.clone()]
}

fn packet_of(datagram: &[u8]) -> u64 {
    u64::from_be_bytes(datagram[6..14].try_into().unwrap())
}

const PRODUCTS: [(u64, usize); 3] = [(2, 60_000), (3, 500), (9, 8_000)];

fn play(attack: &mut impl FnMut(&Bytes) -> Vec<Bytes>) -> World {
    let mut world = World::new();
    world.until(5_000, attack);
    for (sequence, size) in PRODUCTS {
        world.product(sequence, size);
        world.until(world.now + 20_000, attack);
    }
    world.settle(attack);
    world
}

#[test]
fn without_an_attack_nothing_is_held_back_for_long_or_asked() {
    let world = play(&mut honest);
    world.believes_only(&PRODUCTS);
    assert!(PRODUCTS.iter().all(|(sequence, size)| world.taken.is_whole(*sequence, *size)));
    assert_eq!((world.repaired, world.victim.stats().forged, world.victim.stats().missed), (0, 0, 0));
}

#[test]
fn false_manifests_ends_and_heads_are_not_believed_whichever_comes_first() {
    for (before, signs) in [(true, false), (true, true), (false, false), (false, true)] {
        let forged = insider(&[(2, 70), (4, 100), (5_000, 40_000)], signs);
        let mut attack = |datagram: &Bytes| {
            let same = forged.iter().filter(|it| packet_of(it) == packet_of(datagram)).cloned();
            let mut all: Vec<Bytes> = same.collect();
            all.insert(if before { all.len() } else { 0 }, datagram.clone());
            all
        };
        let world = play(&mut attack);
        world.believes_only(&PRODUCTS);
        assert!(world.victim.stats().forged > 0);
    }
}

#[test]
fn huge_packet_numbers_make_nobody_ask() {
    let mut config = sender_config(1_000_000_000);
    config.signing_seed = None;
    let mut forger = Sender::new(config);
    (1..400).for_each(|sequence| forger.handle(at(0), product(sequence, 30_000, Class::Grid)));
    let far: Vec<Bytes> = datagrams(&run(&mut forger, 0, 200_000));
    assert!(packet_of(far.last().unwrap()) > 8_000);
    let mut at_once = Some(far);
    let mut attack = |datagram: &Bytes| {
        let mut all = honest(datagram);
        if packet_of(datagram) == 3 {
            all.extend(at_once.take().unwrap_or_default());
        }
        all
    };
    let world = play(&mut attack);
    world.believes_only(&PRODUCTS);
    let stats = world.victim.stats();
    assert!(stats.missed <= 100, "{stats:?}");
    assert!(world.repaired <= 100 && world.taken.given_up.is_empty());
}

#[test]
fn a_forged_packet_in_the_place_of_a_proof_or_a_manifest_is_asked_for_and_replaced() {
    let noise = insider(&[(2, 900_000)], false);
    let mut attack = |datagram: &Bytes| {
        let forged = noise.iter().skip(1).find(|it| packet_of(it) == packet_of(datagram));
        forged.into_iter().chain([datagram]).cloned().collect()
    };
    let world = play(&mut attack);
    world.believes_only(&PRODUCTS);
}

#[test]
fn the_true_packet_lost_and_the_forged_one_taken_for_it_is_repaired_when_it_speaks() {
    let forged = insider(&[(2, 70), (4, 100)], true);
    let mut attack = |datagram: &Bytes| {
        let same: Vec<Bytes> =
            forged.iter().filter(|it| packet_of(it) == packet_of(datagram)).cloned().collect();
        if same.is_empty() { honest(datagram) } else { same }
    };
    let world = play(&mut attack);
    world.believes_only(&PRODUCTS);
    assert!(world.repaired > 0);
}

#[test]
fn old_datagrams_again_change_nothing() {
    let mut heard: Vec<Bytes> = Vec::new();
    let mut attack = |datagram: &Bytes| {
        heard.push(datagram.clone());
        heard.clone()
    };
    let world = play(&mut attack);
    world.believes_only(&PRODUCTS);
    assert!(PRODUCTS.iter().all(|(sequence, size)| world.taken.is_whole(*sequence, *size)));
    assert_eq!((world.repaired, world.victim.stats().forged), (0, 0));
}

#[test]
fn a_lost_proof_comes_again_with_the_next_and_only_its_packet_is_repaired() {
    let mut world = World::new();
    world.until(5_000, &mut honest);
    let mut proofs = 0;
    let mut lossy = |datagram: &Bytes| {
        proofs += usize::from(datagram.len() < 400 && packet_of(datagram) > 4);
        if proofs == 1 && datagram.len() < 400 { Vec::new() } else { honest(datagram) }
    };
    world.product(2, 60_700);
    world.until(8_000, &mut lossy);
    world.product(3, 3_200);
    world.settle(&mut lossy);
    assert_eq!((world.repaired, world.victim.stats().missed), (1, 1));
    world.believes_only(&[(2, 60_700), (3, 3_200)]);
    assert!(world.taken.is_whole(2, 60_700) && world.taken.is_whole(3, 3_200));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever is lost, forged, doubled or put first: what is believed of products is the sender's, all of it comes, and no more
    /// is asked than was lost or forged.
    #[test]
    fn only_the_sender_is_believed(choices in prop::collection::vec(0u8..8, 400), signs in any::<bool>()) {
        let forged = insider(&[(1, 70), (2, 3_000), (7, 90_000), (60_000, 5)], signs);
        let (mut turn, mut bad) = (0, 0u64);
        let mut attack = |datagram: &Bytes| {
            turn += 1;
            let choice = choices.get(turn).copied().unwrap_or(7);
            let other = forged.get(turn % forged.len()).cloned();
            let same = forged.iter().find(|it| packet_of(it) == packet_of(datagram)).cloned();
            bad += u64::from(choice < 5);
            let all = match choice {
                0 => vec![],
                1 => vec![same.clone(), Some(datagram.clone())],
                2 => vec![Some(datagram.clone()), same.clone()],
                3 => vec![same.clone()],
                4 => vec![other, Some(datagram.clone())],
                5 => vec![Some(datagram.clone()), Some(datagram.clone())],
                _ => vec![Some(datagram.clone())],
            };
            all.into_iter().flatten().collect()
        };
        let world = play(&mut attack);
        world.believes_only(&PRODUCTS);
        prop_assert!(world.taken.given_up.is_empty());
        prop_assert!(world.repaired <= 3 * bad + 70, "{} repairs for {bad} bad packets", world.repaired);
    }
}
