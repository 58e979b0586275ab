//! A network without sockets: what is sent at one moment comes out at a later one, or never.
use std::collections::{BTreeMap, VecDeque};

use downburst_model::Micros;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// Randomness from a seed.
#[derive(Clone, Debug)]
pub struct Dice(ChaCha8Rng);

/// How a link loses packets.
#[derive(Clone, Copy, Debug, Default)]
pub enum Loss {
    /// It does not.
    #[default]
    None,
    /// Each packet by itself, with this probability.
    Independent(f64),
    /// In bursts (Gilbert and Elliott): the link is good or bad, and may change before each packet.
    Bursts {
        /// Probability that a good link turns bad.
        enter: f64,
        /// Probability that a bad link turns good: its inverse is the mean length of a burst in packets.
        leave: f64,
        /// Loss while the link is bad.
        loss: f64,
    },
}

/// What a datagram meets on its way to one receiver.
#[derive(Clone, Copy, Debug)]
pub struct LinkConfig {
    /// The shortest time on the way.
    pub delay: Micros,
    /// Up to so much is added to each packet's time by chance: packets overtake each other.
    pub jitter: Micros,
    /// What gets lost.
    pub loss: Loss,
    /// Probability that a packet comes twice.
    pub duplicate: f64,
    /// The bottleneck, in bits per second of what [`Link::send`] is told. `None`: none.
    pub rate_bps: Option<u64>,
    /// What waits before the bottleneck at most; the rest is dropped.
    pub buffer_bytes: u64,
}

/// What happened on a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Packets sent.
    pub sent: u64,
    /// Packets lost by chance.
    pub lost: u64,
    /// Packets dropped before the bottleneck.
    pub dropped: u64,
    /// Packets that came twice.
    pub duplicated: u64,
}

/// The way of datagrams to one receiver.
#[derive(Clone, Debug)]
pub struct Link<T> {
    config: LinkConfig,
    dice: Dice,
    bad: bool,
    free: Micros,
    under_way: BTreeMap<(Micros, u64), T>,
    count: u64,
    stats: LinkStats,
}

/// The reliable, ordered way of a session in one direction: delayed, never lost.
#[derive(Clone, Debug)]
pub struct Stream<T> {
    delay: Micros,
    rate_bps: Option<u64>,
    free: Micros,
    under_way: VecDeque<(Micros, T)>,
}

impl Dice {
    /// Dice that fall the same way for the same seed and name.
    pub fn new(seed: u64, name: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(name);
        Self(rng)
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && ((self.0.next_u64() >> 11) as f64) < probability * (1u64 << 53) as f64
    }

    /// A number below `end`; 0 if `end` is 0.
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

impl<T: Clone> Link<T> {
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

    /// When the next packet arrives.
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

    /// When the packet is through the bottleneck; `None` if the buffer before it is full.
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

    /// Sends an item that takes `bytes` of the bottleneck; returns how long it waits before it.
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

    /// When the next item arrives.
    pub fn deadline(&self) -> Option<Micros> {
        self.under_way.front().map(|(time, _)| *time)
    }

    /// The connection breaks: what is under way is lost.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(config: LinkConfig, seed: u64, packets: u64, gap: u64) -> (Vec<(u64, u64)>, LinkStats) {
        let mut link = Link::new(config, Dice::new(seed, 0));
        (0..packets).for_each(|number| link.send(Micros(number * gap), number, 1_000));
        let mut out = Vec::new();
        while let Some(now) = link.deadline() {
            out.extend(link.receive(now).map(|number| (now.0, number)));
        }
        (out, link.stats())
    }

    #[test]
    fn the_same_seed_gives_the_same_run_and_another_a_different_one() {
        let config =
            LinkConfig { loss: Loss::Independent(0.1), jitter: Micros(500), ..LinkConfig::default() };
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
}
