//! One group of very many sites: requests, repairs, and the sender's work. `DOWNBURST_GROUP_SITES` is the number of
//! sites (1,000 in `make test-all`), `DOWNBURST_SEED=n` replays one seed.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test that fails stops")]
use std::sync::OnceLock;

use downburst_model::{Class, Micros};
use downburst_sim::multicast_world::{PlannedProduct, PlannedReceiver, Report, Scenario, run};
use downburst_sim::net::{LinkConfig, Loss};

const LOSS: Loss = Loss::Independent(0.01);
const PRODUCTS: u64 = 2;

/// The whole group, played once for all tests: a thousand sites take half a minute of a core.
static INDEPENDENT: OnceLock<Report> = OnceLock::new();
static SHARED: OnceLock<Report> = OnceLock::new();

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("the variable is a number"))
}

/// Products of 600 kB, offered at 90 Mbit/s to a leg of 100.
fn products() -> Vec<PlannedProduct> {
    let product = |number: u64| PlannedProduct {
        at: Micros(50_000 + number * 53_333),
        size: 600_000,
        class: Class::Grid,
    };
    (0..PRODUCTS).map(product).collect()
}

/// Sites in one country, with one-way delays of 2 to 22 ms; a small number of different delays makes the run fast.
fn group(sites: u64, loss: Loss, shared: Loss) -> Scenario {
    let site = |number: u64| {
        let delay = Micros::from_millis(2 + number % 5 * 5);
        let link = LinkConfig { loss, delay, ..LinkConfig::default() };
        PlannedReceiver { link, session_delay: delay, ..PlannedReceiver::default() }
    };
    Scenario {
        seed: number("DOWNBURST_SEED", 1),
        rate_bps: 100_000_000,
        shared,
        shared_bps: None,
        slack: Micros(1_000),
        products: products(),
        receivers: (0..sites).map(site).collect(),
    }
}

/// Plays a group to its end: every site has every product.
fn play(name: &str, scenario: Scenario) -> Report {
    let (seed, sites) = (scenario.seed, scenario.receivers.len());
    let report = run(scenario).unwrap();
    assert!(
        report.faults.is_empty(),
        "seed {seed}: {:#?}\nreplay: DOWNBURST_SEED={seed} DOWNBURST_GROUP_SITES={sites} cargo test -p downburst-sim \
         --test groups {name}",
        report.faults
    );
    assert!(report.receivers.iter().all(|receiver| receiver.whole.len() as u64 == PRODUCTS));
    let sender = report.sender;
    println!(
        "{name} loss, {sites} sites: {} datagrams, {} lost to all in {} runs, {} requests, {} notices, repairs {:.2} % \
         (group {} B, coded {} B, single {} B), work {:.2} for each site",
        sender.datagrams,
        report.shared_lost,
        report.shared_losses,
        sender.requests,
        sender.notices,
        report.repair_share() * 100.0,
        sender.group_repair_bytes,
        sender.coded_repair_bytes,
        sender.site_repair_bytes,
        work(&report) / sites as f64,
    );
    report
}

fn independent() -> &'static Report {
    INDEPENDENT.get_or_init(|| play("independent", group(sites(), LOSS, Loss::None)))
}

fn shared() -> &'static Report {
    SHARED.get_or_init(|| play("share", group(sites(), Loss::None, LOSS)))
}

/// The operations of the sender: datagrams of data, repairs and notices, requests that it handles, and wake-ups.
fn work(report: &Report) -> f64 {
    (report.sender.datagrams + report.sender.requests + report.wakes) as f64
}

fn sites() -> u64 {
    number("DOWNBURST_GROUP_SITES", 200)
}

#[test]
fn independent_losses_of_a_thousand_sites_cost_four_per_cent() {
    let report = independent();
    assert!(report.repair_share() <= 0.04, "{}", report.repair_share());
    // Each datagram is lost somewhere.
    assert!(report.sender.requests <= 10 * report.sender.packets, "{}", report.sender.requests);
    let requests = report.sender.requests;
    assert!(requests <= sites(), "a site requests one of its losses: {requests}");
}

#[test]
fn a_loss_that_a_thousand_sites_share_is_repaired_once() {
    let report = shared();
    assert!(report.shared_losses >= 5, "{}", report.shared_losses);
    assert!(report.repair_share() <= 0.02, "{}", report.repair_share());
    assert!(report.sender.requests <= 10 * report.shared_losses, "{}", report.sender.requests);
}

#[test]
fn the_senders_work_for_each_site_does_not_rise_with_their_number() {
    let few_sites = sites() / 10;
    let of = |report: &Report, sites: u64| work(report) / sites as f64;
    for (name, loss, in_common, many) in
        [("independent", LOSS, Loss::None, independent()), ("share", Loss::None, LOSS, shared())]
    {
        let (few, many) = (of(&play(name, group(few_sites, loss, in_common)), few_sites), of(many, sites()));
        println!(
            "{name} loss: {few:.2} operations for each of {few_sites}, {many:.2} for each of {}",
            sites()
        );
        assert!(many <= few * 1.05, "{many} for each of many sites, {few} for each of few");
        let (few, many) = (few * few_sites as f64, many * sites() as f64);
        assert!(many <= few * 1.5, "{many} in all for many sites, {few} for few");
    }
}
