//! What proofs cost: processor time for each datagram, at the sender and at a receiver, with and without them. One thread, no sockets.
//!
//! `cargo run --release -p downburst-vcmtp --example proof_cost`
#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement for people"
)]
use std::time::Instant;

use bytes::Bytes;
use downburst_model::{
    Class, Digest, Epoch, FeedName, LegId, Machine as _, Micros, Now, Origin, ProductId, ProductInfo,
    ProductKey, Sequence, WallMicros,
};
use downburst_vcmtp::{
    LegKey, Receiver, ReceiverConfig, ReceiverInput, Sender, SenderConfig, SenderInput, SenderOutput,
    SigningSeed,
};

fn main() {
    println!("product   proofs  datagrams  sender ns/datagram  receiver ns/datagram");
    for size in [2_000, 100_000, 10_000_000] {
        let mut best = [[f64::MAX; 2]; 2];
        for round in 0..2 * ROUNDS {
            let proves = round % 2;
            let (datagrams, sender, receiver) = measure(size, proves == 1);
            let [best_sender, best_receiver] = &mut best[proves];
            (*best_sender, *best_receiver) = (best_sender.min(sender), best_receiver.min(receiver));
            if round >= 2 * ROUNDS - 2 {
                println!(
                    "{size:>9} {:>6} {datagrams:>10} {best_sender:>19.0} {best_receiver:>21.0}",
                    proves == 1
                );
            }
        }
        let [without, with] = best;
        let more = |index: usize| 100.0 * (with[index] / without[index] - 1.0);
        println!("          more                  {:>18.1}% {:>20.1}%", more(0), more(1));
    }
}

/// Datagrams, and nanoseconds for each at both sides.
fn measure(size: usize, proves: bool) -> (usize, f64, f64) {
    let mut config = SenderConfig::new(LegId(1), 1, LegKey::new(1, [7; 32]), Sequence(0), RATE_BPS);
    config.signing_seed = proves.then_some(SigningSeed([9; 32]));
    let mut sender = Sender::new(config);
    let mut config = ReceiverConfig::new(LegId(1), 1, LegKey::new(1, [7; 32]));
    config.sender_key = sender.key();
    let mut receiver = Receiver::new(config);
    let bytes = Bytes::from(vec![5; size]);
    let (mut coming, mut now, mut sent) = (BYTES / size, 0, 0);
    let (mut sender_ns, mut receiver_ns) = (0, 0);
    while coming > 0 || sender.backlog_bytes() > 0 {
        let mut train = Vec::new();
        let begun = Instant::now();
        while coming > 0 && sender.backlog_bytes() < 1 << 20 {
            sender.handle(at(now), SenderInput::Product { info: info(coming, size), bytes: bytes.clone() });
            coming -= 1;
        }
        while let Some(output) = sender.poll(at(now)) {
            if let SenderOutput::Datagram(datagram) = output {
                train.push(datagram);
            }
        }
        sender_ns += begun.elapsed().as_nanos();
        sent += train.len();
        // What a socket hands over: bytes of its own.
        let train: Vec<Bytes> = train.iter().map(|datagram| Bytes::copy_from_slice(datagram)).collect();
        let begun = Instant::now();
        for datagram in train {
            receiver.handle(at(now), ReceiverInput::Datagram(datagram));
            while receiver.poll(at(now)).is_some() {}
        }
        receiver_ns += begun.elapsed().as_nanos();
        now += 1_000;
    }
    assert_eq!((receiver.stats().missed, receiver.stats().forged), (0, 0));
    (sent, sender_ns as f64 / sent as f64, receiver_ns as f64 / sent as f64)
}

fn info(coming: usize, size: usize) -> ProductInfo {
    let sequence = Sequence((BYTES / size - coming + 1) as u64);
    ProductInfo {
        key: ProductKey { feed: FeedName::parse("NGRID").unwrap(), epoch: Epoch(1), sequence },
        id: ProductId::parse("SDUS54 KOUN 161540 /pN0RTLX").unwrap(),
        origin: Origin::parse("idd.example.edu").unwrap(),
        created: WallMicros(0),
        stored: WallMicros(0),
        size: size as u64,
        digest: Digest([0; 32]),
        class: Class::Grid,
        hops: None,
    }
}

fn at(micros: u64) -> Now {
    Now { monotonic: Micros(micros), wall: WallMicros(0) }
}

const RATE_BPS: u64 = 1_000_000_000;
const BYTES: usize = 100_000_000;
const ROUNDS: usize = 5;
