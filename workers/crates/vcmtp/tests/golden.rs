//! The bytes on the wire, kept: `tests/golden/vcmtp-packets.json` at the root of the repository holds the
//! datagrams of a small leg under a fixed key and a receiver's reading of each. `vcmtp-proofs.json` beside it
//! holds those of legs whose sender proves its packets, with coded repairs, and the notices to a large group.
//! `DOWNBURST_GOLDEN=write` rewrites the files.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails stops"
)]
mod common;

use std::fmt::Write as _;
use std::path::PathBuf;

use common::*;
use downburst_model::{Class, Machine, Sequence};
use downburst_vcmtp::{
    Receiver, ReceiverInput, ReceiverOutput, Sender, SenderInput, SigningSeed, SiteSecret,
};

/// The key, leg and life of the leg are part of the file, so that another implementation can check itself against it.
fn golden() -> String {
    let mut config = sender_config(100_000_000);
    config.datagram_bytes = 800;
    let mut sender = Sender::new(config);
    let mut said = run(&mut sender, 0, 0);
    sender.handle(at(1_000), product(3, 40, Class::Warning));
    sender.handle(at(1_000), product(4, 0, Class::Observation));
    sender.handle(at(1_000), product(9, 900, Class::Bulk));
    said.extend(run(&mut sender, 1_000, 5_000));
    sender.handle(at(5_000), SenderInput::Head(Sequence(12)));
    said.extend(run(&mut sender, 5_000, 15_000));

    let mut receiver = Receiver::new(receiver_config());
    let packets: Vec<String> = datagrams(&said)
        .into_iter()
        .map(|datagram| {
            let bytes = hex(&datagram);
            receiver.handle(at(0), ReceiverInput::Datagram(datagram.into()));
            let meaning: Vec<String> = drain(&mut receiver, at(0)).iter().map(meaning).collect();
            format!("    {{\"datagram\": \"{bytes}\",\n     \"meaning\": [{}]}}", meaning.join(", "))
        })
        .collect();
    format!(
        "{{\n  \"leg\": {}, \"leg_epoch\": {LEG_EPOCH}, \"key_id\": {}, \"key\": \"{}\",\n  \"packets\": \
         [\n{}\n  ]\n}}\n",
        LEG.0,
        key().id,
        hex(&key().secret),
        packets.join(",\n")
    )
}

fn meaning(output: &ReceiverOutput) -> String {
    match output {
        ReceiverOutput::Joined { after } => format!("\"joined after {}\"", after.0),
        ReceiverOutput::Announce { previous, info } => format!(
            "\"product {} after {}: id {}, feed {}, log epoch {}, origin {}, created {}, stored {}, {} bytes, \
             digest {}, class {:?}\"",
            info.key.sequence.0,
            previous.0,
            info.id,
            info.key.feed,
            info.key.epoch.0,
            info.origin,
            info.created.0,
            info.stored.0,
            info.size,
            info.digest,
            info.class
        ),
        ReceiverOutput::Block { sequence, offset, bytes } => {
            format!("\"block of {} at {offset}: {}\"", sequence.0, hex(bytes))
        }
        ReceiverOutput::Head { previous, head } => format!("\"head {} behind {}\"", head.0, previous.0),
        other => panic!("nothing is lost here: {other:?}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// A leg that proves its packets, by signatures or, with secrets, by MACs; two sites lost the same packets of
/// a large product.
fn proven(name: &str, sites: &[(u64, Option<SiteSecret>)], members: u64) -> String {
    let mut config = sender_config(100_000_000);
    config.datagram_bytes = 800;
    config.signing_seed = Some(SigningSeed([5; 32]));
    let mut sender = Sender::new(config);
    for (site, secret) in sites {
        sender.handle(at(0), SenderInput::Reader { site: *site, secret: secret.clone() });
    }
    sender.handle(at(0), SenderInput::Members(members));
    let mut said = run(&mut sender, 0, 0);
    sender.handle(at(1_000), product(3, 300, Class::Warning));
    sender.handle(at(1_000), product(4, 33_000, Class::Grid));
    said.extend(run(&mut sender, 1_000, 40_000));
    for site in [1, 2] {
        sender.handle(at(40_000), nak(site, &[(12, 13)]));
    }
    said.extend(run(&mut sender, 40_000, 400_000));

    let mut config = receiver_config();
    config.sender_key = sender.key();
    config.proof_secret = sites.first().and_then(|(_, secret)| secret.clone());
    let mut receiver = Receiver::new(config);
    let datagrams: Vec<String> = datagrams(&said)
        .into_iter()
        .map(|datagram| {
            let bytes = hex(&datagram);
            receiver.handle(at(0), ReceiverInput::Datagram(datagram.into()));
            let passed =
                drain(&mut receiver, at(0)).iter().filter_map(known_meaning).collect::<Vec<_>>().join(", ");
            format!("      {{\"datagram\": \"{bytes}\",\n       \"meaning\": [{passed}]}}")
        })
        .collect();
    assert_eq!((receiver.stats().refused, receiver.stats().forged), (0, 0));
    let secrets: Vec<String> = sites
        .iter()
        .filter_map(|(_, secret)| secret.as_ref())
        .map(|secret| format!("{{\"slot\": {}, \"secret\": \"{}\"}}", secret.slot, hex(&secret.secret)))
        .collect();
    format!(
        "    {{\"name\": \"{name}\", \"members\": {members}, \"secrets\": [{}],\n     \"sender_key\": \
         \"{}\",\n     \"datagrams\": [\n{}\n    ]}}",
        secrets.join(", "),
        hex(&sender.key().unwrap().0),
        datagrams.join(",\n")
    )
}

/// Blocks of large products by their length.
fn known_meaning(output: &ReceiverOutput) -> Option<String> {
    match output {
        ReceiverOutput::Block { sequence, offset, bytes } => {
            Some(format!("\"block of {} at {offset}: {} bytes\"", sequence.0, bytes.len()))
        }
        // Requests to an absent hub.
        ReceiverOutput::Nak(_) | ReceiverOutput::Ask(_) => None,
        output => Some(meaning(output)),
    }
}

fn proofs() -> String {
    let secret = |slot: u8| Some(SiteSecret { slot: u16::from(slot), secret: [slot; 32] });
    let legs = [
        proven("signed", &[], 2),
        proven("MACs of two sites", &[(1, secret(7)), (2, secret(8))], 2),
        proven("a large group", &[], 500),
    ];
    format!(
        "{{\n  \"leg\": {}, \"leg_epoch\": {LEG_EPOCH}, \"key_id\": {}, \"key\": \"{}\",\n  \"legs\": [\n{}\n  ]\n}}\n",
        LEG.0,
        key().id,
        hex(&key().secret),
        legs.join(",\n")
    )
}

#[test]
fn the_packets_of_a_small_leg_are_the_same_to_the_last_bit() {
    compare("vcmtp-packets.json", &golden());
}

#[test]
fn proofs_symbols_and_notices_are_the_same_to_the_last_bit() {
    compare("vcmtp-proofs.json", &proofs());
}

fn compare(name: &str, golden: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../tests/golden").join(name);
    if std::env::var("DOWNBURST_GOLDEN").as_deref() == Ok("write") {
        std::fs::write(&path, golden).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    assert_eq!(kept, golden, "the format changed; if it should, run this test with DOWNBURST_GOLDEN=write");
}
