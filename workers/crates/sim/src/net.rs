//! A network without sockets: a packet arrives some time after it is sent, or never.
use std::collections::{BTreeMap, VecDeque};

use downburst_model::Micros;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// Randomness from a seed.
#[derive(Clone, Debug)]
pub struct Dice(ChaCha8Rng);

/// The loss model of a link.
#[derive(Clone, Copy, Debug, Default)]
pub enum Loss {
    /// No loss.
    #[default]
    None,
    /// Independent loss of each packet, with this probability.
    Independent(f64),
    /// Loss in bursts (Gilbert and Elliott): the link is good or bad, and may change before each packet.
    Bursts {
        /// Probability that a good link turns bad.
        enter: f64,
        /// Probability that a bad link turns good: its inverse is the mean length of a burst in packets.
        leave: f64,
        /// Loss while the link is bad.
        loss: f64,
    },
}

/// The properties of the path of datagrams to one receiver.
#[derive(Clone, Copy, Debug)]
pub struct LinkConfig {
    /// The shortest delay.
    pub delay: Micros,
    /// The longest random addition to each packet's delay: packets overtake each other.
    pub jitter: Micros,
    /// The loss model.
    pub loss: Loss,
    /// Probability that a packet is duplicated.
    pub duplicate: f64,
    /// The bottleneck's rate in bits per second, by the sizes given to [`SimulatedLink::send`]; `None`: unlimited.
    pub rate_bps: Option<u64>,
    /// The size of the queue before the bottleneck; packets beyond it are dropped.
    pub buffer_bytes: u64,
}

/// The counters of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Packets sent.
    pub sent: u64,
    /// Packets lost by chance.
    pub lost: u64,
    /// Packets dropped at the bottleneck's full queue.
    pub dropped: u64,
    /// Packets duplicated.
    pub duplicated: u64,
}

/// The path of datagrams to one receiver.
#[derive(Clone, Debug)]
pub struct SimulatedLink<T> {
    config: LinkConfig,
    dice: Dice,
    bad: bool,
    free: Micros,
    under_way: BTreeMap<(Micros, u64), T>,
    count: u64,
    stats: LinkStats,
}

/// One direction of a session's connection: reliable and ordered; items are delayed, never lost.
#[derive(Clone, Debug)]
pub struct Stream<T> {
    delay: Micros,
    rate_bps: Option<u64>,
    free: Micros,
    under_way: VecDeque<(Micros, T)>,
}

impl Dice {
    /// Dice that give the same numbers for the same seed and name.
    pub fn new(seed: u64, name: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(name);
        Self(rng)
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && ((self.0.next_u64() >> 11) as f64) < probability * (1u64 << 53) as f64
    }

    /// A random number below `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64().checked_rem(end).unwrap_or(0)
    }
}

impl Default for LinkConfig {
    /// A clean local network: 1 ms, in order, no bottleneck.
    fn default() -> Self {
        Self {
            delay: Micros::from_millis(1),
            jitter: Micros(0),
            loss: Loss::None,
            duplicate: 0.0,
            rate_bps: None,
            buffer_bytes: 1 << 20,
        }
    }
}

impl<T: Clone> SimulatedLink<T> {
    /// An idle link.
    pub fn new(config: LinkConfig, dice: Dice) -> Self {
        Self {
            config,
            dice,
            bad: false,
            free: Micros(0),
            under_way: BTreeMap::new(),
            count: 0,
            stats: LinkStats::default(),
        }
    }

    /// Sends a packet that takes `bytes` of the bottleneck.
    pub fn send(&mut self, now: Micros, packet: T, bytes: u64) {
        self.stats.sent += 1;
        if self.loses() {
            self.stats.lost += 1;
            return;
        }
        let Some(out) = self.pass_bottleneck(now, bytes) else {
            self.stats.dropped += 1;
            return;
        };
        if self.dice.chance(self.config.duplicate) {
            self.stats.duplicated += 1;
            self.carry(out, packet.clone());
        }
        self.carry(out, packet);
    }

    /// The next packet that has arrived.
    pub fn receive(&mut self, now: Micros) -> Option<T> {
        let first = self.under_way.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(first.remove())
    }

    /// The arrival time of the next packet.
    pub fn deadline(&self) -> Option<Micros> {
        self.under_way.first_key_value().map(|((time, _), _)| *time)
    }

    /// Changes the link under load.
    pub fn change(&mut self, config: LinkConfig) {
        self.config = config;
    }

    /// Counters since the start.
    pub fn stats(&self) -> LinkStats {
        self.stats
    }

    fn loses(&mut self) -> bool {
        match self.config.loss {
            Loss::None => false,
            Loss::Independent(probability) => self.dice.chance(probability),
            Loss::Bursts { enter, leave, loss } => {
                let turn = self.dice.chance(if self.bad { leave } else { enter });
                self.bad = self.bad != turn;
                self.bad && self.dice.chance(loss)
            }
        }
    }

    /// The time at which the packet leaves the bottleneck; `None` if the buffer before it is full.
    fn pass_bottleneck(&mut self, now: Micros, bytes: u64) -> Option<Micros> {
        let Some(rate_bps) = self.config.rate_bps else { return Some(now) };
        let waiting = bytes_in(self.free.since(now), rate_bps);
        if waiting.saturating_add(bytes) > self.config.buffer_bytes {
            return None;
        }
        self.free = self.free.max(now).plus(time_of(bytes, rate_bps));
        Some(self.free)
    }

    fn carry(&mut self, out: Micros, packet: T) {
        let jitter = Micros(self.dice.below(self.config.jitter.0.saturating_add(1)));
        self.count += 1;
        self.under_way.insert((out.plus(self.config.delay).plus(jitter), self.count), packet);
    }
}

impl<T> Stream<T> {
    /// A stream whose items take `delay`, and share `rate_bps` if there is a bottleneck.
    pub fn new(delay: Micros, rate_bps: Option<u64>) -> Self {
        Self { delay, rate_bps, free: Micros(0), under_way: VecDeque::new() }
    }

    /// Sends an item that takes `bytes` of the bottleneck; returns the item's wait before it.
    pub fn send(&mut self, now: Micros, item: T, bytes: u64) -> Micros {
        let start = self.free.max(now);
        self.free = start.plus(self.rate_bps.map_or(Micros(0), |rate| time_of(bytes, rate)));
        self.under_way.push_back((self.free.plus(self.delay), item));
        start.since(now)
    }

    /// The next item that has arrived.
    pub fn receive(&mut self, now: Micros) -> Option<T> {
        let due = self.under_way.front().is_some_and(|(time, _)| *time <= now);
        due.then(|| self.under_way.pop_front()).flatten().map(|(_, item)| item)
    }

    /// The arrival time of the next item.
    pub fn deadline(&self) -> Option<Micros> {
        self.under_way.front().map(|(time, _)| *time)
    }

    /// Breaks the connection: items in transit are lost.
    pub fn cut(&mut self) {
        self.under_way.clear();
        self.free = Micros(0);
    }
}

fn time_of(bytes: u64, rate_bps: u64) -> Micros {
    Micros(bytes.saturating_mul(8_000_000).checked_div(rate_bps).unwrap_or(u64::MAX))
}

fn bytes_in(time: Micros, rate_bps: u64) -> u64 {
    u64::try_from(u128::from(time.0) * u128::from(rate_bps) / 8_000_000).unwrap_or(u64::MAX)
}
