//! Delays in bounded memory.
use minicbor::{Decode, Encode};

/// Delays of packets, microseconds: the receiver's wall clock minus the sender's, as they are. The offset of both
/// clocks is in them, so they may be negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Delays {
    /// The least.
    #[n(0)]
    pub min: i64,
    /// The median.
    #[n(1)]
    pub median: i64,
    /// The 99th percentile.
    #[n(2)]
    pub p99: i64,
    /// The greatest.
    #[n(3)]
    pub max: i64,
}

impl Delays {
    /// The same delays by clocks that agree: `offset_us` is the receiver's clock minus the sender's.
    pub fn corrected(self, offset_us: i64) -> Self {
        let corrected = |delay: i64| delay.saturating_sub(offset_us);
        Self {
            min: corrected(self.min),
            median: corrected(self.median),
            p99: corrected(self.p99),
            max: corrected(self.max),
        }
    }
}

/// Counts delays by their distance from the first one, in classes of at most 1/32 of that distance.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    first: Option<i64>,
    min: i64,
    max: i64,
    count: u64,
    below: Vec<u64>,
    above: Vec<u64>,
}

impl Default for Histogram {
    fn default() -> Self {
        let (below, above) = (vec![0; CLASSES], vec![0; CLASSES]);
        Self { first: None, min: i64::MAX, max: i64::MIN, count: 0, below, above }
    }
}

impl Histogram {
    pub(crate) fn add(&mut self, delay_us: i64) {
        let first = *self.first.get_or_insert(delay_us);
        self.min = self.min.min(delay_us);
        self.max = self.max.max(delay_us);
        self.count = self.count.saturating_add(1);
        let side = if delay_us < first { &mut self.below } else { &mut self.above };
        if let Some(count) = side.get_mut(class_of(delay_us.abs_diff(first))) {
            *count = count.saturating_add(1);
        }
    }

    pub(crate) fn min(&self) -> Option<i64> {
        self.first.map(|_| self.min)
    }

    pub(crate) fn delays(&self) -> Option<Delays> {
        self.first?;
        Some(Delays { min: self.min, median: self.quantile(50), p99: self.quantile(99), max: self.max })
    }

    fn quantile(&self, percent: u64) -> i64 {
        let first = self.first.unwrap_or_default();
        let rank = self.count.saturating_mul(percent).div_ceil(100);
        let below = self.below.iter().enumerate().rev();
        let below = below.map(|(class, count)| (first.saturating_sub_unsigned(middle_of(class)), *count));
        let above = self.above.iter().enumerate();
        let above = above.map(|(class, count)| (first.saturating_add_unsigned(middle_of(class)), *count));
        let mut passed = 0_u64;
        let at_rank = below.chain(above).find(|(_, count)| {
            passed = passed.saturating_add(*count);
            passed >= rank
        });
        at_rank.map_or(self.max, |(delay, _)| delay.clamp(self.min, self.max))
    }
}

/// The class of a distance: each doubling has 32 of the same width.
fn class_of(distance: u64) -> usize {
    let distance = distance.min(LONGEST_DISTANCE);
    let doublings = (u64::BITS - distance.leading_zeros()).saturating_sub(FINE_BITS + 1);
    ((u64::from(doublings) << FINE_BITS) + (distance >> doublings)) as usize
}

/// The middle of a class.
fn middle_of(class: usize) -> u64 {
    let doublings = (class >> FINE_BITS).saturating_sub(1) as u32;
    let start = (class as u64 - (u64::from(doublings) << FINE_BITS)) << doublings;
    start + ((1 << doublings) >> 1)
}

const FINE_BITS: u32 = 5;
/// A day and more.
const LONGEST_DISTANCE: u64 = (1 << 37) - 1;
const CLASSES: usize = (37 - FINE_BITS as usize + 1) << FINE_BITS;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(delays: &[i64]) -> Delays {
        let mut histogram = Histogram::default();
        delays.iter().for_each(|delay| histogram.add(*delay));
        histogram.delays().unwrap()
    }

    #[test]
    fn no_packet_has_no_delay_and_one_has_its_own() {
        assert_eq!((Histogram::default().delays(), Histogram::default().min()), (None, None));
        assert_eq!(of(&[-250_007]), Delays { min: -250_007, median: -250_007, p99: -250_007, max: -250_007 });
    }

    #[test]
    fn a_clock_that_is_off_by_years_costs_no_precision() {
        let off = 1_700_000_000_000_000;
        let delays: Vec<i64> = (0..100).map(|number| off + 20_000 + number % 10).collect();
        let found = of(&delays);
        assert_eq!((found.min - off, found.median - off, found.max - off), (20_000, 20_004, 20_009));
        assert_eq!(found.corrected(off), Delays { min: 20_000, median: 20_004, p99: 20_009, max: 20_009 });
    }

    #[test]
    fn classes_ascend_and_contain_their_middle() {
        let distances = (0..37).flat_map(|bit| [1_u64 << bit, (1 << bit) + (1 << bit >> 1), (2 << bit) - 1]);
        let classes: Vec<usize> = distances.clone().map(class_of).collect();
        assert!(classes.is_sorted() && classes.iter().all(|class| *class < CLASSES));
        (0..CLASSES).for_each(|class| assert_eq!(class_of(middle_of(class)), class));
        assert_eq!(class_of(u64::MAX), CLASSES - 1);
    }

    proptest! {
        #[test]
        fn quantiles_are_those_of_the_sorted_delays(
            delays in prop::collection::vec(-2_000_000_i64..2_000_000, 1..300),
        ) {
            let found = of(&delays);
            let mut sorted = delays.clone();
            sorted.sort_unstable();
            prop_assert_eq!((found.min, found.max), (sorted[0], sorted[sorted.len() - 1]));
            for (percent, quantile) in [(50, found.median), (99, found.p99)] {
                let exact = sorted[(sorted.len() * percent).div_ceil(100) - 1];
                let allowed = exact.abs_diff(delays[0]) / 32 + 1;
                prop_assert!(quantile.abs_diff(exact) <= allowed, "{percent} %: {quantile}, not {exact}");
            }
        }

        #[test]
        fn absurd_delays_do_no_harm(delays in prop::collection::vec(any::<i64>(), 1..20), offset: i64) {
            of(&delays).corrected(offset);
        }
    }
}
