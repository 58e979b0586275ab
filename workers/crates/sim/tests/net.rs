//! The network of the worlds loses, delays, duplicates and drops packets as configured.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // A test may fail.

use downburst_model::Micros;
use downburst_sim::net::{Dice, LinkConfig, LinkStats, Loss, SimulatedLink, Stream};

fn arrivals(config: LinkConfig, seed: u64, packets: u64, gap: u64) -> (Vec<(u64, u64)>, LinkStats) {
    let mut link = SimulatedLink::new(config, Dice::new(seed, 0));
    (0..packets).for_each(|number| link.send(Micros(number * gap), number, 1_000));
    let mut out = Vec::new();
    while let Some(now) = link.deadline() {
        out.extend(link.receive(now).map(|number| (now.0, number)));
    }
    (out, link.stats())
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_a_different_one() {
    let config = LinkConfig { loss: Loss::Independent(0.1), jitter: Micros(500), ..LinkConfig::default() };
    assert_eq!(arrivals(config, 1, 1_000, 10), arrivals(config, 1, 1_000, 10));
    assert_ne!(arrivals(config, 1, 1_000, 10), arrivals(config, 2, 1_000, 10));
}

#[test]
fn loss_is_what_was_asked_for() {
    for (loss, expected) in [
        (Loss::Independent(0.05), 0.05),
        (Loss::Bursts { enter: 0.002, leave: 0.1, loss: 0.8 }, 0.8 * 0.002 / 0.102),
    ] {
        let (_, stats) = arrivals(LinkConfig { loss, ..LinkConfig::default() }, 7, 1_000_000, 1);
        let share = stats.lost as f64 / stats.sent as f64;
        assert!((share / expected - 1.0).abs() < 0.1, "{loss:?}: {share}, expected {expected}");
    }
}

#[test]
fn bursts_are_longer_than_chance() {
    let longest = |loss| {
        let (out, _) = arrivals(LinkConfig { loss, ..LinkConfig::default() }, 3, 100_000, 1);
        out.windows(2).map(|pair| pair[1].1 - pair[0].1 - 1).max().unwrap()
    };
    let bursts = Loss::Bursts { enter: 0.000_5, leave: 0.05, loss: 1.0 };
    assert!(longest(bursts) > 40 && longest(Loss::Independent(0.01)) < 5);
}

#[test]
fn jitter_reorders_and_duplicates_come_twice() {
    let config = LinkConfig { jitter: Micros(2_000), duplicate: 0.1, ..LinkConfig::default() };
    let (out, stats) = arrivals(config, 1, 10_000, 10);
    assert!(out.windows(2).any(|pair| pair[1].1 < pair[0].1));
    assert_eq!(out.len() as u64, 10_000 + stats.duplicated);
    assert!(stats.duplicated > 900 && stats.duplicated < 1_100);
}

#[test]
fn a_bottleneck_holds_its_rate_and_drops_the_tail() {
    let config = LinkConfig { rate_bps: Some(8_000_000), buffer_bytes: 50_000, ..LinkConfig::default() };
    let (out, stats) = arrivals(config, 1, 2_000, 500);
    assert_eq!(out.len() as u64 + stats.dropped, 2_000);
    let span = out.last().unwrap().0 - out[0].0;
    assert!((span / 1_000).abs_diff(out.len() as u64) <= 1, "{} packets in {span} us", out.len());
    assert!(out.len() > 1_000 && out.len() < 1_060);
}

#[test]
fn a_stream_keeps_order_and_takes_its_time() {
    let mut stream = Stream::new(Micros(1_000), Some(8_000_000));
    assert_eq!(stream.send(Micros(0), 'a', 1_000), Micros(0));
    assert_eq!(stream.send(Micros(0), 'b', 1_000), Micros(1_000));
    assert_eq!(stream.receive(Micros(1_999)), None);
    assert_eq!(stream.receive(Micros(2_000)), Some('a'));
    assert_eq!((stream.receive(Micros(2_000)), stream.deadline()), (None, Some(Micros(3_000))));
    stream.cut();
    assert_eq!(stream.deadline(), None);
}
