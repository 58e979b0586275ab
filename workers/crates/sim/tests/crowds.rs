//! Groups of many sites: the number of requests, and the cost of repairs. `DOWNBURST_SEED=n` replays one seed.
//! `DOWNBURST_CROWD_SITES=n` sets the number of sites instead of 200; `make test-all` plays 500.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails stops"
)]
use downburst_model::{Class, Micros};
use downburst_sim::multicast_world::{PlannedProduct, PlannedReceiver, Report, Scenario, run};
use downburst_sim::net::{LinkConfig, Loss};

fn crowd() -> u64 {
    std::env::var("DOWNBURST_CROWD_SITES").map_or(200, |sites| sites.parse().expect("a number of sites"))
}

/// The UDP payload of a full datagram.
const FULL_DATAGRAM_BYTES: f64 = 1_452.0;

fn seed() -> u64 {
    std::env::var("DOWNBURST_SEED").map_or(1, |seed| seed.parse().expect("DOWNBURST_SEED is a number"))
}

fn play(test: &str, scenario: Scenario) -> Report {
    let seed = scenario.seed;
    let report = run(scenario).unwrap();
    assert!(
        report.faults.is_empty(),
        "seed {seed}: {:#?}\nreplay: DOWNBURST_SEED={seed} cargo test -p downburst-sim --test crowds {test}",
        report.faults
    );
    report
}

/// `count` products of `size` bytes, offered at 90 Mbit/s to a leg of 100.
fn steady(count: u64, size: usize) -> Vec<PlannedProduct> {
    let gap = size as u64 * 8_000_000 / 90_000_000;
    let product =
        |number: u64| PlannedProduct { at: Micros(50_000 + number * gap), size, class: Class::Grid };
    (0..count).map(product).collect()
}

/// Sites in one country, with one-way delays of 2 to 22 ms. A small number of different delays makes the run fast.
fn sites(loss: Loss) -> Vec<PlannedReceiver> {
    let site = |number: u64| {
        let delay = Micros::from_millis(2 + number % 5 * 5);
        let link = LinkConfig { loss, delay, ..LinkConfig::default() };
        PlannedReceiver { link, session_delay: delay, ..PlannedReceiver::default() }
    };
    (0..crowd()).map(site).collect()
}

fn world(products: Vec<PlannedProduct>, receivers: Vec<PlannedReceiver>, shared: Loss) -> Scenario {
    Scenario {
        seed: seed(),
        rate_bps: 100_000_000,
        shared,
        shared_bps: None,
        slack: Micros(1_000),
        products,
        receivers,
    }
}

fn say(what: &str, report: &Report) {
    let sender = report.sender;
    println!(
        "{} receivers, {what}: {} datagrams, {} runs lost to all, {} requests, {} notices, repairs {:.2} % \
         (group {} B, coded {} B, single {} B)",
        report.receivers.len(),
        sender.datagrams,
        report.shared_losses,
        sender.requests,
        sender.notices,
        report.repair_share() * 100.0,
        sender.group_repair_bytes,
        sender.coded_repair_bytes,
        sender.site_repair_bytes,
    );
}

#[test]
fn a_crowd_of_sites_costs_little_more_than_seven() {
    let independent = Loss::Independent(0.01);
    let report = play("a_crowd_of_sites", world(steady(4, 600_000), sites(independent), Loss::None));
    println!(
        "{} receivers, 1 % loss: repairs {:.2} % of the product bytes",
        crowd(),
        report.repair_share() * 100.0
    );
    say("1 % loss", &report);
    assert!(report.receivers.iter().all(|receiver| receiver.whole.len() == 4));
    assert!(report.repair_share() < 0.03, "{}", report.repair_share());
    // Each site lost some twenty packets: without suppression, each would send several requests.
    assert!(report.sender.requests < crowd(), "{}", report.sender.requests);
}

#[test]
fn a_loss_that_all_share_is_asked_for_by_ten_at_most_and_repaired_once() {
    let shared = Loss::Independent(0.005);
    let report = play("a_loss_that", world(steady(3, 600_000), sites(Loss::None), shared));
    say("losses that all share", &report);
    let (losses, lost) = (report.shared_losses as f64, report.shared_lost as f64);
    println!(
        "{} receivers, a loss that all share: {:.2} requests, {:.2} repairs of each packet",
        crowd(),
        report.sender.requests as f64 / losses,
        report.sender.group_repair_bytes as f64 / (lost * FULL_DATAGRAM_BYTES),
    );
    assert!(report.shared_losses >= 3, "{}", report.shared_losses);
    assert!(report.receivers.iter().all(|receiver| receiver.whole.len() == 3));
    assert!(report.sender.requests <= 10 * report.shared_losses, "{}", report.sender.requests);
    // Each lost packet is repaired once, whatever the number of sites that lack it.
    assert!(report.sender.group_repair_bytes as f64 <= lost * FULL_DATAGRAM_BYTES, "{:?}", report.sender);
    assert_eq!(report.sender.site_repair_bytes, 0);
}

/// Only a few sites request a shared loss, and these know nothing of the others.
#[test]
fn a_crowd_behind_a_path_that_does_not_carry_the_rate_is_sent_what_it_carries() {
    let (rate_bps, shared_bps) = (12_000_000, Some(6_000_000));
    let product = |number: u64| PlannedProduct {
        at: Micros(50_000 + number * 80_000),
        size: 100_000,
        class: Class::Grid,
    };
    let receivers = sites(Loss::None).into_iter().take(36).collect();
    let products = (0..70).map(product).collect();
    let scenario = Scenario { rate_bps, shared_bps, ..world(products, receivers, Loss::None) };
    let report = play("a_crowd_behind", scenario);
    say("all behind 6 Mb/s", &report);
    assert!(report.receivers.iter().all(|receiver| receiver.whole.len() == 70 && !receiver.too_slow));
    // Later, there is little to send.
    let end = report.receivers[0].whole.values().max().unwrap();
    let (cuts, rates) = (&report.rates[0], report.rates.iter().filter(|(at, _)| at.0 < end.0 * 3 / 4));
    assert!(cuts.0 < Micros::from_secs(6) && cuts.1 < rate_bps, "{cuts:?}");
    let rates: Vec<u64> = rates.map(|(_, rate)| *rate).collect();
    println!("{rates:?} by {end:?}");
    assert!(rates.iter().all(|rate| (4_000_000..=8_000_000).contains(rate)), "{rates:?}");
}
