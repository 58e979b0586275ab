//! Datagrams that are opened on another thread than the receiver's.
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
use downburst_model::{Class, Machine, Micros};
use downburst_vcmtp::{
    Datagram, LegKey, Opener, Receiver, ReceiverConfig, ReceiverInput, ReceiverOutput, Sender, SenderConfig,
    SigningSeed,
};

const SIZE: usize = 300_000;

fn opener() -> Opener {
    Opener::new(LEG, LEG_EPOCH, &key())
}

/// Opens datagrams that were received into one buffer, one after the other.
fn opened<'a>(opener: &mut Opener, datagrams: impl IntoIterator<Item = &'a Bytes>) -> Vec<Datagram> {
    let mut buffer = vec![0; 2_000];
    for datagram in datagrams {
        buffer[..datagram.len()].copy_from_slice(datagram);
        opener.take(Micros(0), &mut buffer[..datagram.len()]);
        buffer.fill(0xff);
    }
    opener.finish()
}

/// The datagrams of a product, with proofs or without.
fn sent(proves: bool) -> (Vec<Bytes>, Receiver) {
    let seed = proves.then_some(SigningSeed([5; 32]));
    let mut sender = Sender::new(SenderConfig { signing_seed: seed, ..sender_config(1_000_000_000) });
    let sender_key = sender.key();
    sender.handle(at(0), product(1, SIZE, Class::Grid));
    let datagrams = datagrams(&run(&mut sender, 0, 9_000));
    (datagrams, Receiver::new(ReceiverConfig { sender_key, ..receiver_config() }))
}

/// The outputs of a receiver of this batch.
fn told(receiver: &mut Receiver, batch: Vec<Datagram>) -> Vec<ReceiverOutput> {
    batch.into_iter().for_each(|datagram| receiver.handle(at(1), ReceiverInput::Datagram(datagram)));
    drain(receiver, at(1))
}

/// The lengths of the blocks, and the collected outputs.
fn blocks(outputs: Vec<ReceiverOutput>) -> (Vec<usize>, Taken) {
    let (mut lengths, mut taken) = (Vec::new(), Taken::default());
    for output in outputs {
        if let ReceiverOutput::Block { bytes, .. } = &output {
            lengths.push(bytes.len());
        }
        taken.take(output);
    }
    (lengths, taken)
}

#[test]
fn a_batch_becomes_long_pieces_of_its_product_and_its_buffer_is_free_at_once() {
    for proves in [false, true] {
        let (datagrams, mut receiver) = sent(proves);
        let batch = opened(&mut opener(), &datagrams);
        let (lengths, taken) = blocks(told(&mut receiver, batch));
        assert!(taken.is_whole(1, SIZE));
        assert!(lengths.len() <= 5 && lengths[0] > 100_000, "{lengths:?}");
        assert_eq!((receiver.stats().refused, receiver.stats().missed), (0, 0));
    }
}

#[test]
fn a_lost_datagram_cuts_a_piece_in_two_and_its_repair_is_a_piece_of_its_own() {
    let (datagrams, mut receiver) = sent(false);
    let (lost, others): (Vec<_>, Vec<_>) = datagrams.iter().enumerate().partition(|(at, _)| *at == 40);
    let only =
        |some: Vec<(usize, _)>| some.into_iter().map(|(_, datagram)| datagram).collect::<Vec<&Bytes>>();
    let mut opener = opener();
    let first = opened(&mut opener, only(others));
    let again = opened(&mut opener, only(lost));
    let (lengths, mut taken) = blocks(told(&mut receiver, first));
    assert!(!taken.is_whole(1, SIZE) && lengths[0] < 60_000 && lengths[1] > 30_000, "{lengths:?}");
    told(&mut receiver, again).into_iter().for_each(|output| taken.take(output));
    assert!(taken.is_whole(1, SIZE));
}

#[test]
fn products_side_by_side_are_not_mixed() {
    let mut sender = Sender::new(sender_config(1_000_000_000));
    (1..60).for_each(|number| sender.handle(at(0), product(number, 900 * number as usize, Class::Grid)));
    let datagrams = datagrams(&run(&mut sender, 0, 90_000));
    let (mut opener, mut receiver, mut taken) =
        (opener(), Receiver::new(receiver_config()), Taken::default());
    for batch in datagrams.chunks(37) {
        let batch = opened(&mut opener, batch);
        told(&mut receiver, batch).into_iter().for_each(|output| taken.take(output));
    }
    assert!((1..60).all(|number| taken.is_whole(number, 900 * number as usize)));
}

#[test]
fn an_unknown_key_and_the_hubs_answers_are_left_to_the_receiver_and_garbage_is_refused() {
    let (datagrams, mut receiver) = sent(false);
    let mut stranger = Opener::new(LEG, LEG_EPOCH, &LegKey::new(9, [9; 32]));
    let batch = opened(&mut stranger, &datagrams);
    assert!(batch.iter().all(|datagram| matches!(datagram, Datagram::Sealed(_))));
    let (_, taken) = blocks(told(&mut receiver, batch));
    assert!(taken.is_whole(1, SIZE));
    stranger.insert(&key());
    let batch = opened(&mut stranger, &datagrams);
    assert!(batch.iter().all(|datagram| matches!(datagram, Datagram::Opened(_))));
    let answer = Bytes::from_static(&[0xb1, 1, 2, 3]);
    let mut flipped = datagrams[0].to_vec();
    flipped[30] ^= 1;
    let batch = opened(&mut stranger, [&answer, &flipped.into(), &Bytes::from_static(b"\xd1\x03")]);
    assert!(matches!(batch[..], [Datagram::Sealed(_), Datagram::Refused, Datagram::Refused]), "{batch:?}");
    told(&mut receiver, batch);
    assert_eq!(receiver.stats().refused, 3);
}

#[test]
fn a_datagram_opened_under_a_key_that_was_replaced_is_refused() {
    let (datagrams, mut receiver) = sent(false);
    let batch = opened(&mut opener(), &datagrams);
    receiver.handle(at(0), ReceiverInput::Key(LegKey::new(key().id, [8; 32])));
    assert_eq!(told(&mut receiver, batch), []);
    assert_eq!(receiver.stats().refused, datagrams.len() as u64);
}
