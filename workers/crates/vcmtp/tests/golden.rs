//! The bytes on the wire, kept: `tests/golden/vcmtp-packets.json` at the root of the repository holds the datagrams of a small leg
//! under a fixed key and what a receiver reads from each. `DOWNBURST_GOLDEN=write` writes the file anew.
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
use downburst_vcmtp::{Receiver, ReceiverInput, ReceiverOutput, Sender, SenderInput};

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
        "{{\n  \"leg\": {}, \"leg_epoch\": {LEG_EPOCH}, \"key_id\": {}, \"key\": \"{}\",\n  \"packets\": [\n{}\n  ]\n}}\n",
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
            "\"product {} after {}: id {}, feed {}, log epoch {}, origin {}, created {}, stored {}, {} bytes, digest {}, class {:?}\"",
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

#[test]
fn the_packets_of_a_small_leg_are_the_same_to_the_last_bit() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../tests/golden/vcmtp-packets.json");
    if std::env::var("DOWNBURST_GOLDEN").as_deref() == Ok("write") {
        std::fs::write(&path, golden()).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    assert_eq!(kept, golden(), "the format changed; if it should, run this test with DOWNBURST_GOLDEN=write");
}
