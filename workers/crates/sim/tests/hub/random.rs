//! Random operations by seed.
use super::*;

#[test]
fn random_scenarios_end_level() {
    let seeds = match std::env::var("DOWNBURST_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => {
            let count = std::env::var("DOWNBURST_SEEDS").map_or(40, |count| count.parse().unwrap());
            (0..count).collect()
        }
    };
    for seed in seeds {
        println!("seed {seed}; replay: DOWNBURST_SEED={seed} cargo test -p downburst-sim --test hub random");
        Scenario::new(seed).play();
    }
}

struct Scenario {
    dice: Dice,
    world: HubWorld,
    legs: Vec<(FeedName, LegId)>,
    sites: usize,
}

impl Scenario {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed, 1);
        let sites = 1 + dice.below(4) as usize;
        let configs = (0..sites).map(|_| random_site(&mut dice)).collect();
        let mut world = world(seed, configs);
        let legs = [feed("A"), feed("A"), feed("B")].map(|feed| {
            let window = [20_000, 1 << 20, 64 << 20][dice.below(3) as usize];
            let leg = world.start_leg(&feed, 2_000_000 + dice.below(40_000_000), window);
            (feed, leg)
        });
        Self { dice, world, legs: legs.into(), sites }
    }

    fn play(mut self) {
        start(&mut self.world);
        for _ in 0..150 {
            // Some rounds publish many products together, which then travel in trains.
            let most = if self.dice.chance(0.1) { 60 } else { 6 };
            for _ in 0..self.dice.below(most) {
                self.publish();
            }
            if self.dice.chance(0.3) {
                self.disturb();
            }
            let pause = self.dice.below(100_000);
            self.world.run_for(Micros(pause));
        }
        assert_level(&mut self.world);
    }

    fn publish(&mut self) {
        let class =
            [Class::Warning, Class::Observation, Class::Grid, Class::Bulk][self.dice.below(4) as usize];
        let size = match self.dice.below(10) {
            0 => 0,
            1 => self.dice.below(200_000) as usize,
            _ => self.dice.below(4_000) as usize,
        };
        let kind = ['x', 'y'][self.dice.below(2) as usize];
        let name = ["A", "B"][self.dice.below(2) as usize];
        self.world.publish(&feed(name), product(class, size, kind));
    }

    fn disturb(&mut self) {
        let site = self.dice.below(self.sites as u64) as usize;
        let pause = Micros(self.dice.below(1_000_000));
        match self.dice.below(32) {
            0..10 => {
                let (feed, leg) = self.legs[self.dice.below(self.legs.len() as u64) as usize].clone();
                self.world.plan(site, &feed, Some(leg));
            }
            10..15 => {
                let name = ["A", "B"][self.dice.below(2) as usize];
                self.world.plan(site, &feed(name), None);
            }
            15..18 => self.world.cut(site, pause),
            18..20 => {
                let with_log = self.dice.chance(0.5);
                self.world.restart_site(site, pause, with_log);
            }
            20 => self.world.restart_hub(pause),
            21 => {
                let subscriptions = random_subscriptions(&mut self.dice);
                self.world.subscribe(site, subscriptions);
            }
            22..28 => self.world.break_stream(site, Micros::from_secs(2)),
            28..30 => {
                let streams = random_streams(&mut self.dice);
                self.world.plan_streams(site, streams);
            }
            30 => self.world.evict(&feed("A"), 20),
            _ => self.world.renew_log(&feed("B"), pause),
        }
    }
}

fn random_site(dice: &mut Dice) -> SiteConfig {
    let loss = match dice.below(3) {
        0 => Loss::None,
        1 => Loss::Independent(dice.below(10) as f64 / 100.0),
        _ => Loss::Bursts { enter: 0.01, leave: 0.2, loss: 0.7 },
    };
    SiteConfig {
        subscriptions: random_subscriptions(dice),
        rate_bps: 1_000_000 + dice.below(50_000_000),
        delay: Micros(dice.below(60_000)),
        streams: random_streams(dice),
        data_delays: (0..4).map(|_| Micros(dice.below(300_000))).collect(),
        link: LinkConfig {
            loss,
            delay: Micros(dice.below(40_000)),
            jitter: Micros(dice.below(5_000)),
            duplicate: 0.01,
            ..LinkConfig::default()
        },
        bad_digest: [0.0, 0.05][dice.below(2) as usize],
        store_failure: [0.0, 0.02][dice.below(2) as usize],
        clock_us: dice.below(2_000_000) as i64 - 1_000_000,
        versions: [VERSIONS.as_slice(), &[VERSION + 1, VERSION]][usize::from(dice.chance(0.25))],
    }
}

fn random_streams(dice: &mut Dice) -> StreamPlan {
    let ride = |dice: &mut Dice, number: usize| Ride {
        path: StreamPath { to: format!("10.9.0.{number}:7370"), from: "10.9.1.1".to_owned() },
        feeds: ["A", "B"].into_iter().filter(|_| dice.chance(0.5)).map(feed).collect(),
        streams: random_classes(dice),
    };
    let rides = (0..dice.below(3) as usize).map(|number| ride(dice, number)).collect();
    StreamPlan { routed: random_classes(dice), rides }
}

fn random_classes(dice: &mut Dice) -> Vec<Classes> {
    let sets = [
        Classes::all(),
        Classes::of(Class::Observation),
        Classes::of(Class::Grid).with(Class::Bulk),
        Classes::NONE,
    ];
    (0..dice.below(5)).map(|_| sets[dice.below(sets.len() as u64) as usize]).collect()
}

fn random_subscriptions(dice: &mut Dice) -> Vec<Subscription> {
    let pattern = |dice: &mut Dice| [".", "^x", "^y", "7$"][dice.below(4) as usize];
    let mut subscriptions = vec![wish("A", pattern(dice))];
    if dice.chance(0.7) {
        subscriptions.push(wish("B", pattern(dice)));
    }
    subscriptions
}
