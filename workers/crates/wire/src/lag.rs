//! The wire's own lag: the time between a frame's due time and its writing.

use std::collections::BTreeMap;

/// A histogram of lags. Its size is bounded: lags are kept to the microsecond below one millisecond and to two
/// significant digits above.
#[derive(Debug, Default)]
pub(crate) struct Lags {
    by_us: BTreeMap<u64, u64>,
    count: u64,
    largest_us: u64,
}

impl Lags {
    /// Adds one lag.
    pub(crate) fn add(&mut self, lag_ns: u64) {
        let lag_us = lag_ns / 1_000;
        *self.by_us.entry(rounded(lag_us)).or_default() += 1;
        self.count += 1;
        self.largest_us = self.largest_us.max(lag_us);
    }

    /// Returns the lag that the given share of frames did not exceed; 0 if there were no frames.
    pub(crate) fn quantile_us(&self, share: f64) -> u64 {
        let rank = (self.count as f64 * share).ceil() as u64;
        let mut seen = 0;
        for (lag_us, count) in &self.by_us {
            seen += count;
            if seen >= rank.max(1) {
                return *lag_us;
            }
        }
        0
    }

    /// Returns the largest lag.
    pub(crate) fn largest_us(&self) -> u64 {
        self.largest_us
    }
}

fn rounded(lag_us: u64) -> u64 {
    let mut step = 1;
    while lag_us / step >= 1_000 {
        step *= 10;
    }
    // Above one millisecond a step is a tenth of the leading digits kept below it.
    let step = if step == 1 { 1 } else { step * 10 };
    lag_us / step * step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_follow_the_ranks() {
        let mut lags = Lags::default();
        for lag_us in 1..=100 {
            lags.add(lag_us * 1_000);
        }
        assert_eq!(lags.quantile_us(0.5), 50);
        assert_eq!(lags.quantile_us(0.99), 99);
        assert_eq!(lags.largest_us(), 100);
    }

    #[test]
    fn an_idle_wire_has_no_lag() {
        assert_eq!(Lags::default().quantile_us(0.99), 0);
    }

    #[test]
    fn the_histogram_stays_small() {
        let mut lags = Lags::default();
        for exponent in 0..60 {
            for offset in 0..1_000 {
                lags.add((1_u64 << exponent).saturating_add(offset * 1_000_000));
            }
        }
        assert!(lags.by_us.len() < 4_000, "{}", lags.by_us.len());
        assert_eq!(rounded(999), 999);
        assert_eq!(rounded(12_345), 12_000);
    }
}
