//! A member of the group attacks the others: it has the group's key, and can send any datagram that opens.
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
    SigningSeed, SiteSecret,
};
use proptest::prelude::*;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

/// A leg whose sender proves its statements, an attacked member, and the member's products.
struct World {
    sender: Sender,
    victim: Receiver,
    taken: Taken,
    repaired: u64,
    /// Datagrams handed out.
    sent: u64,
    /// The number of sites that send the victim's requests; several get repairs by the group.
    askers: u64,
    /// The sender is not notified of forgeries.
    is_deaf: bool,
    now: u64,
}

impl World {
    fn new() -> Self {
        Self::of(true)
    }

    /// Proofs have MACs or are signed.
    fn of(has_macs: bool) -> Self {
        let config = SenderConfig { signing_seed: Some(SigningSeed([1; 32])), ..sender_config(100_000_000) };
        let mut sender = Sender::new(config);
        let proof_secret = Some(SiteSecret { slot: 9, secret: [4; 32] });
        let config = ReceiverConfig { sender_key: sender.key(), ..receiver_config() };
        let victim = Receiver::new(ReceiverConfig { proof_secret: proof_secret.clone(), ..config });
        if has_macs {
            sender.handle(at(0), SenderInput::Reader { site: 1, secret: proof_secret });
        }
        Self {
            sender,
            victim,
            taken: Taken::default(),
            repaired: 0,
            sent: 0,
            askers: 1,
            is_deaf: false,
            now: 0,
        }
    }

    /// Sends everything due until then; `attack` gives the datagrams that reach the victim instead of each.
    fn until(&mut self, until: u64, attack: &mut impl FnMut(&Bytes) -> Vec<Bytes>) {
        for (now, output) in run(&mut self.sender, self.now, until) {
            match output {
                SenderOutput::Datagram(datagram) => {
                    self.sent += 1;
                    for forged in attack(&datagram.freeze()) {
                        self.hear(now, ReceiverInput::Datagram(forged.into()));
                    }
                }
                SenderOutput::Repair { site: 1, packet, payload } => {
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

    /// Blocks are not proven: like a site, this skips those of unannounced products or beyond their end.
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

    /// Continues until the victim has no more requests.
    fn settle(&mut self, attack: &mut impl FnMut(&Bytes) -> Vec<Bytes>) {
        for _ in 0..400 {
            let asked = std::mem::take(&mut self.taken.requests);
            for (request, site) in asked.iter().flat_map(|it| (1..=self.askers).map(move |site| (it, site))) {
                self.sender.handle(at(self.now), SenderInput::Nak { site, request: request.clone() });
            }
            if std::mem::take(&mut self.taken.alarms) > 0 && !self.is_deaf {
                self.sender.handle(at(self.now), SenderInput::Forged);
            }
            self.until(self.now + 10_000, attack);
        }
    }

    fn product(&mut self, sequence: u64, size: usize) {
        self.sender.handle(at(self.now), product(sequence, size, Class::Grid));
    }

    /// The victim believes only manifests of the sender.
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

/// Datagrams of another holder of the group's key: of its own leg's life, with any number and content.
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
    play_in(World::new(), attack)
}

fn play_in(mut world: World, attack: &mut impl FnMut(&Bytes) -> Vec<Bytes>) -> World {
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
    for has_macs in [true, false] {
        let world = play_in(World::of(has_macs), &mut honest);
        world.believes_only(&PRODUCTS);
        assert!(PRODUCTS.iter().all(|(sequence, size)| world.taken.is_whole(*sequence, *size)));
        assert_eq!((world.repaired, world.victim.stats().forged, world.victim.stats().missed), (0, 0, 0));
    }
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
        for has_macs in [true, false] {
            let world = play_in(World::of(has_macs), &mut attack);
            world.believes_only(&PRODUCTS);
            assert!(world.victim.stats().forged > 0);
        }
    }
}

#[test]
fn a_leg_goes_on_while_sites_that_have_secrets_and_some_that_have_none_come_and_go() {
    let mut world = World::new();
    world.until(5_000, &mut honest);
    for (change, sequence) in (0..12).zip(20..) {
        let other = |site: u64| SiteSecret { slot: site as u16, secret: [site as u8; 32] };
        let reader = |site, secret| SenderInput::Reader { site, secret };
        world.sender.handle(
            at(world.now),
            match change {
                0..4 => reader(50 + change, Some(other(50 + change))),
                4..8 => reader(60, (change % 2 == 0).then(|| other(60))),
                8..10 => SenderInput::ReaderLeft(44 + change),
                _ => reader(70 + change, Some(other(70 + change))),
            },
        );
        world.product(sequence, 40_000);
        world.until(world.now + 12_000, &mut honest);
    }
    world.settle(&mut honest);
    world.believes_only(&(20..32).map(|sequence| (sequence, 40_000)).collect::<Vec<_>>());
    assert_eq!((world.repaired, world.victim.stats().forged), (0, 0));
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

/// A forgery by a member that has the group's key: the same number, other bytes of the product.
fn corrupted(datagram: &Bytes) -> Option<Bytes> {
    corrupted_at(datagram, 60)
}

/// Forgeries of different places differ.
fn corrupted_at(datagram: &Bytes, from_end: usize) -> Option<Bytes> {
    let mut payload = opened(datagram);
    let place = payload.len().checked_sub(from_end).filter(|_| payload.len() > 800)?;
    payload[place] ^= 0x55;
    Some(sealed(&datagram[..14], payload))
}

/// The bytes of this datagram under the number of a later one.
fn ahead(datagram: &Bytes, by: u64) -> Bytes {
    let number = packet_of(datagram) + by;
    sealed(&[&datagram[..6], &number.to_be_bytes()].concat(), opened(datagram))
}

fn opened(datagram: &[u8]) -> Vec<u8> {
    let (header, sealed) = datagram.split_at(14);
    let mut payload = sealed.to_vec();
    let length = secret().open_in_place(nonce(header), Aad::from(header), &mut payload).unwrap().len();
    payload.truncate(length);
    payload
}

fn sealed(header: &[u8], mut payload: Vec<u8>) -> Bytes {
    secret().seal_in_place_append_tag(nonce(header), Aad::from(header), &mut payload).unwrap();
    Bytes::from([header, &payload].concat())
}

fn secret() -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &key().secret).unwrap())
}

fn nonce(header: &[u8]) -> Nonce {
    let nonce = [&LEG_EPOCH.to_be_bytes()[4..], &header[6..14]].concat();
    Nonce::assume_unique_for_key(nonce.try_into().unwrap())
}

const LARGE: (u64, usize) = (12, 3_000_000);

/// A large product, and a second one when the sender knows of the attack; true and forged blocks in the order
/// given by `attack`.
fn play_large(attack: &mut impl FnMut(&Bytes) -> Vec<Bytes>) -> (World, u64) {
    let mut world = World::new();
    world.until(5_000, attack);
    world.product(LARGE.0, LARGE.1);
    world.settle(attack);
    let repaired = world.repaired;
    world.product(LARGE.0 + 1, LARGE.1);
    world.settle(attack);
    world.believes_only(&[LARGE, (LARGE.0 + 1, LARGE.1)]);
    (world, repaired)
}

#[test]
fn blocks_forged_ahead_of_the_true_ones_are_in_doubt_until_the_sender_knows_and_cost_nothing() {
    let mut attack = |datagram: &Bytes| corrupted(datagram).into_iter().chain([datagram.clone()]).collect();
    let (world, _) = play_large(&mut attack);
    assert_eq!(world.repaired, 0, "the sender says late what those in doubt hash to");
    assert!(world.taken.is_whole(LARGE.0, LARGE.1) && world.taken.is_whole(LARGE.0 + 1, LARGE.1));
    assert!(world.victim.stats().forged > 2_000);
}

#[test]
fn packets_forged_before_anything_of_their_number_came_cost_nothing_once_the_sender_knows() {
    let mut attack = |datagram: &Bytes| {
        let is_symbol = packet_of(datagram) >> 63 == 1;
        let forged = [1, 10, 20].map(|by| ahead(datagram, by)).into_iter().filter(|_| !is_symbol);
        forged.chain([datagram.clone()]).collect()
    };
    let (world, _) = play_large(&mut attack);
    assert_eq!(world.repaired, 0, "the first ones are noticed before there is a product");
    assert!(world.taken.is_whole(LARGE.0, LARGE.1) && world.taken.is_whole(LARGE.0 + 1, LARGE.1));
}

#[test]
fn a_block_in_doubt_of_which_the_sender_says_nothing_is_repaired_once() {
    let mut attack = |datagram: &Bytes| corrupted(datagram).into_iter().chain([datagram.clone()]).collect();
    let mut world = World { is_deaf: true, ..World::new() };
    world.until(5_000, &mut attack);
    world.product(LARGE.0, 100_000);
    world.settle(&mut attack);
    assert!(world.taken.is_whole(LARGE.0, 100_000));
    assert!((60..=80).contains(&world.repaired), "each packet once: {}", world.repaired);
}

#[test]
fn blocks_forged_behind_the_true_ones_are_noticed_and_cost_nothing() {
    let mut attack = |datagram: &Bytes| [datagram.clone()].into_iter().chain(corrupted(datagram)).collect();
    let (world, repaired) = play_large(&mut attack);
    assert!(repaired <= 200 && world.repaired == repaired, "{repaired}");
    assert!(world.taken.is_whole(LARGE.0, LARGE.1) && world.taken.is_whole(LARGE.0 + 1, LARGE.1));
}

#[test]
fn more_forgeries_than_are_held_cost_no_wrong_byte_once_the_sender_knows() {
    let mut attack = |datagram: &Bytes| {
        let forged = (60..66).filter_map(|place| corrupted_at(datagram, place));
        forged.chain([datagram.clone()]).collect()
    };
    let (world, _) = play_large(&mut attack);
    assert!(world.taken.is_whole(LARGE.0 + 1, LARGE.1));
    assert!(world.taken.given_up.is_empty());
}

#[test]
fn what_is_lost_and_forged_is_repaired_once_the_sender_knows() {
    let mut count = 0;
    let mut attack = |datagram: &Bytes| {
        count += 1;
        let forged = corrupted(datagram).into_iter();
        if count % 20 == 0 { forged.collect() } else { forged.chain([datagram.clone()]).collect() }
    };
    let (world, before) = play_large(&mut attack);
    assert!(world.taken.is_whole(LARGE.0 + 1, LARGE.1));
    let lost = LARGE.1 as u64 / 1_400 / 20;
    assert!(
        world.repaired - before <= 2 * lost,
        "{} repairs for {lost} lost packets",
        world.repaired - before
    );
}

#[test]
fn forged_symbols_restore_nothing_and_ask_for_nothing() {
    let repairs = [false, true].map(|forges| {
        let mut world = World { askers: 2, ..World::new() };
        let mut count = 0;
        let mut attack = |datagram: &Bytes| {
            count += 1;
            let is_symbol = packet_of(datagram) >> 63 == 1;
            match corrupted(datagram) {
                Some(_) if !is_symbol && count % 50 == 0 => Vec::new(),
                Some(forged) if is_symbol && forges => vec![forged, datagram.clone()],
                _ => honest(datagram),
            }
        };
        world.until(5_000, &mut attack);
        world.product(LARGE.0, LARGE.1);
        world.settle(&mut attack);
        world.believes_only(&[LARGE]);
        assert!(world.taken.is_whole(LARGE.0, LARGE.1));
        let stats = world.victim.stats();
        assert!(stats.decoded > 20, "symbols are what repairs here: {stats:?}");
        assert_eq!(stats.forged > 0, forges);
        let sent = world.sender.stats();
        sent.group_repair_bytes + sent.site_repair_bytes
    });
    assert!(repairs[1] <= 2 * repairs[0], "repaired bytes without and with forgeries: {repairs:?}");
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

    /// Believed statements about products are the sender's, whatever is lost, forged, doubled or put first;
    /// all of them come, and no more is requested than was lost or forged.
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
