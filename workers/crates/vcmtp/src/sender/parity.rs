use std::collections::VecDeque;

use downburst_model::Micros;

/// The number of symbols that a block gets before any request. Where loss is steady this saves the way to the
/// hub and back; where there is none it costs nothing, because the share follows the blocks' measured need.
///
/// | a block was | the share |
/// |---|---|
/// | asked for, and needed so many symbols in all | moves towards that by an eighth |
/// | not asked for | falls by a thirty-second of itself |
#[derive(Debug, Default)]
pub(crate) struct Parity {
    /// The upper limit of the share.
    limit: f64,
    share: f64,
    /// Fractions of symbols for which earlier blocks were too small.
    credit: f64,
    /// Blocks with outstanding requests, the oldest first, with the time at which all should have arrived.
    unjudged: VecDeque<(Micros, u64)>,
}

impl Parity {
    /// A share of at most this number of symbols per packet; 0: none.
    pub(crate) fn up_to(limit: f64) -> Self {
        Self { limit: if limit.is_finite() { limit.clamp(0.0, MOST) } else { 0.0 }, ..Self::default() }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.limit > 0.0
    }

    /// The number of symbols that a block of `packets` gets without a request.
    pub(crate) fn of(&mut self, packets: u64) -> u64 {
        let wanted = self.share * packets as f64 + self.credit;
        self.credit = wanted.fract();
        wanted as u64
    }

    /// The block was closed; its need is known at this time.
    pub(crate) fn judge_at(&mut self, time: Micros, first: u64) {
        self.unjudged.push_back((time, first));
    }

    /// The next block whose need is known by now.
    pub(crate) fn judged(&mut self, now: Micros) -> Option<u64> {
        self.unjudged.front().filter(|(time, _)| *time <= now)?;
        self.unjudged.pop_front().map(|(_, first)| first)
    }

    /// Learns from a block of `packets`; `needed` is the number of its symbols if a site requested it.
    pub(crate) fn learn(&mut self, packets: u64, needed: Option<u16>) {
        let step = match needed {
            Some(symbols) => (f64::from(symbols) / packets.max(1) as f64 - self.share) / 8.0,
            None => -self.share / 32.0,
        };
        self.share = (self.share + step).clamp(0.0, self.limit);
    }
}

/// A network that loses more is served better without multicast.
const MOST: f64 = 0.3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_follows_the_need_up_to_its_limit_and_falls_where_nobody_asks() {
        let mut parity = Parity::up_to(0.05);
        (0..60).for_each(|_| parity.learn(800, Some(16)));
        assert!((parity.share - 0.02).abs() < 0.000_1, "{}", parity.share);
        (0..100).for_each(|_| parity.learn(800, None));
        assert!(parity.share < 0.001, "{}", parity.share);
        (0..100).for_each(|_| parity.learn(800, Some(400)));
        assert!((parity.share - 0.05).abs() < 0.000_1, "{}", parity.share);
    }

    #[test]
    fn small_blocks_get_together_what_a_large_one_gets() {
        let mut parity = Parity { share: 0.02, ..Parity::up_to(0.1) };
        assert_eq!((0..100).map(|_| parity.of(8)).sum::<u64>(), 16);
        assert_eq!(parity.of(800), 16);
    }

    #[test]
    fn what_is_no_share_is_none() {
        for limit in [f64::NAN, f64::INFINITY, -1.0, 0.0] {
            assert!(!Parity::up_to(limit).is_on(), "{limit}");
        }
        assert!((Parity::up_to(7.0).limit - MOST).abs() < 1e-9);
    }
}
