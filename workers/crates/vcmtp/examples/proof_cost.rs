//! The cost of proofs: processor time per datagram, at the sender and at a receiver, with and without proofs,
//! and the cost of their primitives. One thread, no sockets; the best of several rounds.
//!
//! `cargo run --release -p downburst-vcmtp --example proof_cost`
#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement for people"
)]
use std::hint::black_box;

use bytes::{Bytes, BytesMut};
use downburst_model::{
    Class, Digest, Epoch, FeedName, LegId, Machine as _, Micros, Now, Origin, ProductId, ProductInfo,
    ProductKey, Sequence, WallMicros,
};
use downburst_vcmtp::{
    LegKey, Receiver, ReceiverConfig, ReceiverInput, Sender, SenderConfig, SenderInput, SenderOutput,
    SigningSeed, SiteSecret,
};
use nix::time::{ClockId, clock_gettime};
use ring::digest::{SHA256, digest};
use ring::hmac;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};

fn main() {
    println!("Mbit/s   product proofs        datagrams  sender ns/datagram  receiver ns/datagram");
    let cases = RATES_BPS.into_iter().flat_map(|rate_bps| SIZES.map(|size| (rate_bps, size)));
    for (rate_bps, size) in cases {
        let mut best = [[f64::MAX; 2]; MODES.len()];
        for round in 0..ROUNDS {
            for (mode, name) in MODES.iter().enumerate() {
                let (datagrams, sender, receiver) = measure((rate_bps, size), mode);
                let [best_sender, best_receiver] = &mut best[mode];
                (*best_sender, *best_receiver) = (best_sender.min(sender), best_receiver.min(receiver));
                if round == ROUNDS - 1 {
                    println!(
                        "{:>6} {size:>9} {name:<12} {datagrams:>10} {best_sender:>19.0} {best_receiver:>21.0}",
                        rate_bps / 1_000_000
                    );
                }
            }
        }
        for (mode, name) in MODES.iter().enumerate().skip(1) {
            let more = |index: usize| 100.0 * (best[mode][index] / best[0][index] - 1.0);
            println!("                 more, {name:<18} {:>18.1}% {:>20.1}%", more(0), more(1));
        }
    }
    primitives();
}

/// The primitives of a proof: a signature for all sites, or a MAC for each site; and hashes of a datagram's payload.
fn primitives() {
    let pair = Ed25519KeyPair::from_seed_unchecked(&[9; 32]).unwrap();
    let public = UnparsedPublicKey::new(&ED25519, pair.public_key().as_ref().to_vec());
    let mac = hmac::Key::new(hmac::HMAC_SHA256, &[9; 32]);
    let (proof, payload) = (vec![5; 100], vec![5; 1_400]);
    let signature = pair.sign(&proof);
    println!("Ed25519 signing       {:>8.0} ns", cost(|| black_box(pair.sign(&proof))));
    println!("Ed25519 verifying     {:>8.0} ns", cost(|| public.verify(&proof, signature.as_ref()).unwrap()));
    println!("HMAC-SHA256, one site {:>8.0} ns", cost(|| black_box(hmac::sign(&mac, &proof))));
    println!("SHA-256 of 1,400 bytes {:>7.0} ns", cost(|| black_box(digest(&SHA256, &payload))));
    println!("BLAKE3 of 1,400 bytes {:>8.0} ns", cost(|| black_box(blake3::hash(&payload))));
}

/// Nanoseconds per call, in the best of several rounds.
fn cost<T>(work: impl Fn() -> T) -> f64 {
    let round = |_| {
        let begun_ns = cpu_ns();
        (0..REPEATS).for_each(|_| drop(work()));
        (cpu_ns() - begun_ns) as f64 / f64::from(REPEATS)
    };
    (0..20).map(round).fold(f64::MAX, f64::min)
}

/// The number of datagrams, and the nanoseconds per datagram at the sender and at a receiver.
fn measure((rate_bps, size): (u64, usize), mode: usize) -> (u32, f64, f64) {
    let mut config = SenderConfig::new(LegId(1), 1, LegKey::new(1, [7; 32]), Sequence(0), rate_bps);
    config.signing_seed = (mode > 0).then_some(SigningSeed([9; 32]));
    let mut sender = Sender::new(config);
    let secret = |slot| SiteSecret { slot, secret: [slot as u8; 32] };
    if mode == 1 {
        (1..=SITES).for_each(|site| {
            let secret = Some(secret(site));
            sender.handle(at(0), SenderInput::Reader { site: u64::from(site), secret });
        });
    }
    if mode == 3 {
        sender.handle(at(0), SenderInput::Forged);
    }
    let mut config = ReceiverConfig::new(LegId(1), 1, LegKey::new(1, [7; 32]), 1);
    config.sender_key = sender.key();
    config.proof_secret = Some(secret(1));
    let mut receiver = Receiver::new(config);
    let bytes = Bytes::from(vec![5; size]);
    let (mut coming, mut now, mut sent) = (BYTES / size, 0, 0);
    let (mut trains, begun_ns) = (Vec::new(), cpu_ns());
    while coming > 0 || sender.backlog_bytes() > 0 {
        while coming > 0 && sender.backlog_bytes() < 1 << 20 {
            sender.handle(
                at(now),
                SenderInput::Product { info: info(coming, size), bytes: bytes.clone().into() },
            );
            coming -= 1;
        }
        while let Some(output) = sender.poll(at(now)) {
            if let SenderOutput::Datagram(datagram) = output {
                trains.push((now, datagram));
                sent += 1;
            }
        }
        now += 1_000;
    }
    let sender_ns = cpu_ns() - begun_ns;
    // A socket returns bytes in memory of their own.
    let own = |(now, datagram): (u64, BytesMut)| (now, BytesMut::from(datagram.as_ref()));
    let trains: Vec<_> = trains.into_iter().map(own).collect();
    let begun_ns = cpu_ns();
    for (now, datagram) in trains {
        receiver.handle(at(now), ReceiverInput::Datagram(datagram.into()));
        while receiver.poll(at(now)).is_some() {}
    }
    let receiver_ns = cpu_ns() - begun_ns;
    assert_eq!((receiver.stats().missed, receiver.stats().forged), (0, 0));
    (sent, sender_ns as f64 / f64::from(sent), receiver_ns as f64 / f64::from(sent))
}

/// Processor time of this thread, which excludes other users of the machine.
fn cpu_ns() -> i64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
    time.tv_sec() * 1_000_000_000 + time.tv_nsec()
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
        ldm: None,
        properties: None,
    }
}

fn at(micros: u64) -> Now {
    Now { monotonic: Micros(micros), wall: WallMicros(0) }
}

/// The group key alone; a MAC for each site of a small group; signatures; signatures and the hash of every
/// packet, after a forgery was detected.
const MODES: [&str; 4] = ["none", "MACs", "signed", "all packets"];

/// The largest group that gets MACs.
const SITES: u16 = 8;

const REPEATS: u32 = 200;
const RATES_BPS: [u64; 2] = [100_000_000, 1_000_000_000];
const BYTES: usize = 20_000_000;
const ROUNDS: usize = 5;
const SIZES: [usize; 3] = [2_000, 100_000, 10_000_000];
