//! Measures appends to a real Kafka, and the delay until a sender has the products:
//! `DOWNBURST_KAFKA=127.0.0.1:9092 cargo run --example figures`.
// A program for engineers may panic on errors, and it measures time.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

#[path = "../tests/broker/mod.rs"]
mod broker;

use std::time::{Duration, Instant};

use broker::{Node, fresh_prefix, open};
use bytes::Bytes;
use downburst_log::{NewProduct, contract};
use downburst_log_kafka::Role;
use downburst_model::WallMicros;

fn main() {
    let (base, prefix) = (tempfile::tempdir().unwrap(), fresh_prefix());
    let ingest = open(&prefix, Role::Ingest, &base.path().join("ingest"));
    let sender = open(&prefix, Role::Sender, &base.path().join("sender"));
    singles(&ingest, &sender);
    groups(&ingest, &sender);
    let began = Instant::now();
    let anew = open(&prefix, Role::Sender, &base.path().join("anew"));
    anew.wait_for(ingest.log.head());
    let (products, seconds) = (anew.log.stat().products, began.elapsed().as_secs_f64());
    println!("a copy that was lost: {products} products again in {seconds:.2} s");
}

fn singles(ingest: &Node, sender: &Node) {
    let (mut stored_ms, mut copied_ms) = (Vec::new(), Vec::new());
    for n in 0..SINGLES {
        let (product, bytes) = numbered("single", n);
        let began = Instant::now();
        ingest.log.append(product, &mut &*bytes, &|| WallMicros(0)).unwrap();
        stored_ms.push(began.elapsed().as_secs_f64() * 1e3);
        while sender.log.head() < ingest.log.head() {
            std::thread::sleep(Duration::from_micros(50));
        }
        copied_ms.push(began.elapsed().as_secs_f64() * 1e3);
    }
    for (what, mut took_ms) in [("stored", stored_ms), ("at a sender", copied_ms)] {
        took_ms.sort_by(f64::total_cmp);
        let at = |share: usize| took_ms.get(SINGLES * share / 100).copied().unwrap_or_default();
        println!("one product of 2 kB per append, {what}: median {:.1} ms, p99 {:.1} ms", at(50), at(99));
    }
}

fn groups(ingest: &Node, sender: &Node) {
    let began = Instant::now();
    for group in 0..GROUPS {
        let products = (0..GROUP).map(|n| numbered("group", group * GROUP + n)).collect();
        let appended = ingest.log.append_all(products, &|| WallMicros(0));
        appended.into_iter().for_each(|appended| drop(appended.unwrap()));
    }
    let rate = |began: Instant| (GROUPS * GROUP) as f64 / began.elapsed().as_secs_f64();
    println!("groups of {GROUP} products of 2 kB: {:.0} products/s stored", rate(began));
    sender.wait_for(ingest.log.head());
    println!("the same, until a sender had them: {:.0} products/s", rate(began));
}

fn numbered(name: &str, n: usize) -> (NewProduct, Bytes) {
    let id = format!("{name} {n}");
    let bytes: Vec<u8> = id.bytes().cycle().take(2_000).collect();
    (contract::product(&id).unwrap(), bytes.into())
}

const SINGLES: usize = 200;
const GROUPS: usize = 40;
const GROUP: usize = 250;
