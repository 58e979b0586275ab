//! Measures appends to a real Kafka: `DOWNBURST_KAFKA=127.0.0.1:9092 cargo run --example figures`.
// A program for engineers may stop where it stands, and it measures.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::{env, process, time::Instant};

use bytes::Bytes;
use downburst_log::{NewProduct, ProductLog, contract};
use downburst_log_kafka::{Cluster, KafkaLog, KafkaOptions};
use downburst_model::{Epoch, FeedName, Sequence, WallMicros};

fn main() {
    let brokers = env::var("DOWNBURST_KAFKA").unwrap();
    let cluster = Cluster { brokers, prefix: format!("figures-{}", process::id()), replicas: 1 };
    let open = || {
        KafkaLog::open(&cluster, FeedName::parse("F").unwrap(), KafkaOptions::default(), Epoch(1)).unwrap()
    };
    let log = open();
    single(&log);
    groups(&log);
    reads(&log);
    let began = Instant::now();
    let products = open().stat().products;
    println!("opening: {products} products known after {:.2} s", began.elapsed().as_secs_f64());
}

fn single(log: &KafkaLog) {
    let mut took_ms: Vec<f64> = (0..SINGLES)
        .map(|n| {
            let began = Instant::now();
            let (product, bytes) = numbered("single", n);
            log.append(product, &mut &*bytes, &|| WallMicros(0)).unwrap();
            began.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    took_ms.sort_by(f64::total_cmp);
    let at = |share: usize| took_ms.get(SINGLES * share / 100).copied().unwrap_or_default();
    println!("one product of 2 kB per append: median {:.1} ms, p99 {:.1} ms", at(50), at(99));
}

fn groups(log: &KafkaLog) {
    let began = Instant::now();
    for group in 0..GROUPS {
        let products = (0..GROUP).map(|n| numbered("group", group * GROUP + n)).collect();
        log.append_all(products, &|| WallMicros(0)).into_iter().for_each(|appended| drop(appended.unwrap()));
    }
    let rate = (GROUPS * GROUP) as f64 / began.elapsed().as_secs_f64();
    println!("groups of {GROUP} products of 2 kB: {rate:.0} products/s");
}

fn reads(log: &KafkaLog) {
    let (began, mut cursor, mut count) = (Instant::now(), Sequence(0), 0);
    while cursor < log.head() {
        let batch = log.read(cursor, log.head(), 1 << 20, GROUP).unwrap();
        count += batch.entries.iter().filter(|entry| entry.bytes.is_some()).count();
        cursor = batch.read_to;
    }
    println!("reading all in order: {:.0} products/s", count as f64 / began.elapsed().as_secs_f64());
    let began = Instant::now();
    for n in 0..RANDOM_READS {
        log.entry(Sequence(1 + n * 7_919 % log.head().0)).unwrap().unwrap();
    }
    println!("one product anywhere: {:.1} ms", began.elapsed().as_secs_f64() * 1e3 / RANDOM_READS as f64);
}

fn numbered(name: &str, n: usize) -> (NewProduct, Bytes) {
    let id = format!("{name} {n}");
    let bytes: Vec<u8> = id.bytes().cycle().take(2_000).collect();
    (contract::product(&id).unwrap(), bytes.into())
}

const SINGLES: usize = 200;
const GROUPS: usize = 40;
const GROUP: usize = 500;
const RANDOM_READS: u64 = 50;
