//! A relay and gateways in virtual time, over a network that loses datagrams: seeds replay a run
//! (`DOWNBURST_SEED=7 cargo test -p downburst-amt --test worlds`).
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "a test that fails stops")]

use std::collections::BTreeMap;
use std::net::SocketAddr;

use downburst_amt::ip::datagram;
use downburst_amt::{
    Change, Channel, Gateway, GatewaySettings, Heard, Message, Relay, RelaySettings, Standing,
};
use downburst_model::Micros;

const STEP: Micros = Micros::from_millis(10);
const RELAY: &str = "192.0.2.1:2268";
const SOURCE: &str = "10.0.0.1:4000";
const GROUP: &str = "232.1.2.3:17001";

/// A generator of which every value follows from the seed (xorshift).
struct Dice(u64);

impl Dice {
    fn loses(&mut self, percent: u64) -> bool {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % 100 < percent
    }
}

struct World {
    now: Micros,
    dice: Dice,
    loss_percent: u64,
    relay: Relay,
    joined: bool,
    gateways: BTreeMap<SocketAddr, Gateway>,
    heard: BTreeMap<SocketAddr, Vec<Micros>>,
    copies: u64,
}

impl World {
    fn new(seed: u64, loss_percent: u64, gateways: u16) -> Self {
        let settings = GatewaySettings {
            relays: vec![RELAY.parse().unwrap()],
            channel: Channel { group: at(GROUP).ip(), source: Some(at(SOURCE).ip()) },
            port: at(GROUP).port(),
        };
        let gateway = |number: u16| {
            let seed = [u8::try_from(number % 251).unwrap(); 32];
            let gateway = Gateway::new(Micros(0), settings.clone(), &seed).unwrap();
            (SocketAddr::new(at("198.51.100.1:1").ip(), 5_000 + number), gateway)
        };
        let limits =
            RelaySettings { query_interval_s: 2, messages_per_second: 1_000, ..RelaySettings::default() };
        Self {
            now: Micros(0),
            dice: Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            loss_percent,
            relay: Relay::new(limits, &[3; 32]),
            joined: false,
            gateways: (0..gateways).map(gateway).collect(),
            heard: BTreeMap::new(),
            copies: 0,
        }
    }

    /// Lets a time pass; the source sends a datagram in each step.
    fn run(&mut self, length: Micros) {
        let end = self.now.plus(length);
        while self.now < end {
            self.now = self.now.plus(STEP);
            self.control();
            self.relay.wake(self.now);
            while let Some(change) = self.relay.poll_change() {
                self.joined = matches!(change, Change::Join(_));
            }
            self.data();
        }
    }

    fn control(&mut self) {
        for (address, gateway) in &mut self.gateways {
            while let Some(sent) = gateway.poll(self.now) {
                assert_eq!(sent.to, at(RELAY));
                if self.dice.loses(self.loss_percent) {
                    continue;
                }
                let answer = self.relay.take(self.now, *address, sent.to.ip(), &sent.octets).unwrap();
                if let Some(answer) = answer.filter(|_| !self.dice.loses(self.loss_percent)) {
                    gateway.handle(self.now, &answer);
                }
            }
        }
    }

    fn data(&mut self) {
        if !self.joined {
            return;
        }
        let packet = datagram(at(SOURCE), at(GROUP), 5, b"sealed");
        let data = Message::Data(&packet).write();
        let receivers: Vec<SocketAddr> = self.relay.receivers(at(SOURCE).ip(), at(GROUP).ip()).collect();
        for address in receivers {
            self.copies += 1;
            let Some(gateway) = self.gateways.get_mut(&address) else { continue };
            if !self.dice.loses(self.loss_percent)
                && matches!(gateway.handle(self.now, &data), Heard::Datagram(_))
            {
                self.heard.entry(address).or_default().push(self.now);
            }
        }
    }
}

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn seeds() -> std::ops::Range<u64> {
    let seed = std::env::var("DOWNBURST_SEED").ok().map(|text| text.parse().unwrap());
    seed.map_or(1..21, |seed| seed..seed + 1)
}

#[test]
fn without_loss_every_gateway_hears_everything_after_its_first_update() {
    let mut world = World::new(1, 0, 50);
    world.run(Micros::from_secs(20));
    for gateway in world.gateways.values() {
        assert_eq!(gateway.standing(), Standing::Heard);
    }
    let steps = usize::try_from(Micros::from_secs(20).0 / STEP.0).unwrap();
    assert!(world.heard.values().all(|heard| heard.len() == steps), "one copy each, from the first step on");
    assert_eq!(world.copies, 50 * steps as u64);
    assert_eq!(world.relay.counts().refused(), 0);
}

#[test]
fn a_fifth_of_all_datagrams_lost_ends_no_reception_for_long() {
    for seed in seeds() {
        let mut world = World::new(seed, 20, 10);
        world.run(Micros::from_secs(120));
        assert_eq!(world.heard.len(), 10, "seed {seed}");
        for (address, heard) in &world.heard {
            assert!(heard[0] < Micros::from_secs(20), "seed {seed}: {address} heard first at {:?}", heard[0]);
            let longest = heard.windows(2).map(|pair| pair[1].since(pair[0])).max().unwrap();
            assert!(longest < Micros::from_secs(10), "seed {seed}: {address} heard nothing for {longest:?}");
        }
    }
}

#[test]
fn copies_for_killed_gateways_end_within_the_query_time() {
    for seed in seeds() {
        let mut world = World::new(seed, 5, 4);
        world.run(Micros::from_secs(30));
        world.gateways.clear();
        let membership =
            RelaySettings { query_interval_s: 2, ..RelaySettings::default() }.times().membership();
        world.run(membership.plus(Micros::from_secs(1)));
        let copies = world.copies;
        world.run(Micros::from_secs(60));
        assert_eq!((world.copies, world.joined, world.relay.tunnels()), (copies, false, 0), "seed {seed}");
    }
}

#[test]
fn a_relay_that_restarts_with_another_secret_is_back_after_some_seconds() {
    let mut world = World::new(5, 0, 4);
    world.run(Micros::from_secs(9));
    let limits = RelaySettings { query_interval_s: 2, ..RelaySettings::default() };
    (world.relay, world.joined) = (Relay::new(limits, &[4; 32]), false);
    let restarted = world.now;
    world.run(Micros::from_secs(6));
    for heard in world.heard.values() {
        assert!(heard.last().unwrap().since(restarted) > Micros::from_secs(3), "heard again");
    }
}
