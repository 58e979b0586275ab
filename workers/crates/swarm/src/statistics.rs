//! Statistics over all sites, by line of output and for the whole run.
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

/// Counts of all sites.
#[derive(Debug)]
pub(crate) struct Statistics {
    sites: usize,
    counts: Mutex<Counts>,
}

/// A line of output.
#[derive(Debug, Serialize)]
pub(crate) struct Line {
    at_us: i64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    summary: bool,
    sites: usize,
    connected: usize,
    #[serde(flatten)]
    totals: Totals,
    latency_ms: Quantiles,
    gap_ms: f64,
    probe_ms: f64,
}

/// Cumulative counts.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Totals {
    connects: u64,
    refused: u64,
    failed: u64,
    products: u64,
    bytes: u64,
    bad: u64,
    #[serde(skip_serializing_if = "is_zero")]
    heard: u64,
    #[serde(skip_serializing_if = "is_zero")]
    opened: u64,
    #[serde(skip_serializing_if = "is_zero")]
    forged: u64,
}

#[derive(Debug, Serialize)]
struct Quantiles {
    count: u64,
    p50: f64,
    p99: f64,
    max: f64,
}

#[derive(Debug, Default)]
struct Counts {
    connected: usize,
    lately: Stretch,
    ever: Stretch,
}

#[derive(Debug, Default)]
struct Stretch {
    totals: Totals,
    latencies: Histogram,
    gap_us: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Statistics {
    pub(crate) fn new(sites: usize) -> Self {
        Self { sites, counts: Mutex::default() }
    }

    /// Records that a site was admitted.
    pub(crate) fn connected(&self) {
        self.change(|counts| counts.connected += 1);
        self.count(|totals| totals.connects += 1);
    }

    /// Records that an admitted site lost its session.
    pub(crate) fn disconnected(&self) {
        self.change(|counts| counts.connected = counts.connected.saturating_sub(1));
    }

    /// Records a refusal by a hub.
    pub(crate) fn refused(&self) {
        self.count(|totals| totals.refused += 1);
    }

    /// Records a failed or broken connection.
    pub(crate) fn failed(&self) {
        self.count(|totals| totals.failed += 1);
    }

    /// Records a product that did not match its digest.
    pub(crate) fn bad(&self) {
        self.count(|totals| totals.bad += 1);
    }

    /// Records a datagram received by an insider: `opened` if its key opened it, and the number of forgeries sent.
    pub(crate) fn insider(&self, opened: bool, forged: u64) {
        self.count(|totals| {
            totals.heard += 1;
            totals.opened += u64::from(opened);
            totals.forged += forged;
        });
    }

    /// Records a complete product; with a latency if it arrived as it was stored, and not later.
    pub(crate) fn product(&self, bytes: u64, latency_us: Option<u64>) {
        self.count(|totals| {
            totals.products += 1;
            totals.bytes += bytes;
        });
        if let Some(latency_us) = latency_us {
            self.stretches(|stretch| stretch.latencies.add(latency_us));
        }
    }

    /// Records the time for which a site received nothing while the hub's log held a product for it.
    pub(crate) fn gap(&self, gap_us: u64) {
        self.stretches(|stretch| stretch.gap_us = stretch.gap_us.max(gap_us));
    }

    /// The latencies and gap since the last line, with the counts since the start.
    pub(crate) fn line(&self, probe_ms: f64) -> Line {
        self.change(|counts| {
            let lately = std::mem::take(&mut counts.lately);
            let totals = counts.ever.totals;
            self.described(counts.connected, totals, &lately, probe_ms)
        })
    }

    /// The summary of the whole run.
    pub(crate) fn summary(&self, probe_ms: f64) -> Line {
        self.change(|counts| {
            let line = self.described(counts.connected, counts.ever.totals, &counts.ever, probe_ms);
            Line { summary: true, ..line }
        })
    }

    fn described(&self, connected: usize, totals: Totals, stretch: &Stretch, probe_ms: f64) -> Line {
        let gap_ms = stretch.gap_us as f64 / 1_000.0;
        let latency_ms = stretch.latencies.quantiles();
        Line {
            at_us: wall_us(),
            summary: false,
            sites: self.sites,
            connected,
            totals,
            latency_ms,
            gap_ms,
            probe_ms,
        }
    }

    fn count(&self, count: impl Fn(&mut Totals)) {
        self.stretches(|stretch| count(&mut stretch.totals));
    }

    fn stretches(&self, change: impl Fn(&mut Stretch)) {
        self.change(|counts| {
            change(&mut counts.lately);
            change(&mut counts.ever);
        });
    }

    fn change<T>(&self, change: impl FnOnce(&mut Counts) -> T) -> T {
        change(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// This host's wall clock.
pub(crate) fn wall_us() -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX)
}

/// Counts by size, with buckets of 1/64 of their power of two: quantiles are accurate to 2 %.
#[derive(Debug, Default)]
struct Histogram {
    buckets: Vec<u64>,
    count: u64,
    max_us: u64,
}

impl Histogram {
    fn add(&mut self, value_us: u64) {
        let bucket = bucket(value_us);
        if self.buckets.len() <= bucket {
            self.buckets.resize(bucket + 1, 0);
        }
        if let Some(count) = self.buckets.get_mut(bucket) {
            *count += 1;
        }
        self.count += 1;
        self.max_us = self.max_us.max(value_us);
    }

    fn quantiles(&self) -> Quantiles {
        let millis = |us: u64| us as f64 / 1_000.0;
        Quantiles {
            count: self.count,
            p50: millis(self.quantile(0.50)),
            p99: millis(self.quantile(0.99)),
            max: millis(self.max_us),
        }
    }

    /// The upper edge of the bucket in which this share of the values is reached.
    fn quantile(&self, share: f64) -> u64 {
        let goal = (self.count as f64 * share).ceil() as u64;
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= goal {
                return upper_edge(bucket).min(self.max_us);
            }
        }
        self.max_us
    }
}

fn bucket(value_us: u64) -> usize {
    let shift = (u64::BITS - value_us.leading_zeros()).saturating_sub(STEP_BITS + 1);
    (shift << STEP_BITS) as usize + (value_us >> shift) as usize
}

fn upper_edge(bucket: usize) -> u64 {
    let steps = 1 << STEP_BITS;
    let shift = (bucket >> STEP_BITS).saturating_sub(1);
    let base = if bucket < 2 * steps { bucket } else { steps + (bucket & (steps - 1)) };
    ((base as u64 + 1) << shift).saturating_sub(1)
}

const STEP_BITS: u32 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_narrow_and_in_order() {
        let mut last = 0;
        for value in (0..5_000).chain((5_000..50_000_000).step_by(9_973)) {
            let bucket = bucket(value);
            assert!(bucket >= last && upper_edge(bucket) >= value, "{value}");
            assert!(
                upper_edge(bucket) as f64 <= value as f64 * 1.02 + 1.0,
                "{value}: {}",
                upper_edge(bucket)
            );
            last = bucket;
        }
        assert!(bucket(u64::MAX) < 4_096, "a wild value costs little memory");
    }

    #[test]
    fn quantiles_of_a_known_set() {
        let mut histogram = Histogram::default();
        (1..=1_000).for_each(|value| histogram.add(value * 1_000));
        let quantiles = histogram.quantiles();
        assert!((quantiles.p50 - 500.0).abs() < 10.0, "{quantiles:?}");
        assert!((quantiles.p99 - 990.0).abs() < 20.0, "{quantiles:?}");
        assert_eq!((quantiles.max, quantiles.count), (1_000.0, 1_000));
    }

    #[test]
    fn a_line_tells_totals_and_what_was_new_and_the_summary_all() {
        let statistics = Statistics::new(2);
        statistics.connected();
        statistics.product(10, Some(5_000));
        statistics.gap(90_000);
        let first = serde_json::to_value(statistics.line(0.5)).unwrap();
        assert_eq!(
            (&first["products"], &first["gap_ms"], &first["connected"]),
            (&1.into(), &90.0.into(), &1.into())
        );
        statistics.product(10, Some(1_000));
        statistics.disconnected();
        let second = serde_json::to_value(statistics.line(0.5)).unwrap();
        assert_eq!((&second["products"], &second["latency_ms"]["max"]), (&2.into(), &1.0.into()));
        assert_eq!((&second["gap_ms"], &second["connected"]), (&0.0.into(), &0.into()));
        let summary = serde_json::to_value(statistics.summary(0.5)).unwrap();
        assert_eq!((&summary["summary"], &summary["latency_ms"]["count"]), (&true.into(), &2.into()));
        assert_eq!((&summary["latency_ms"]["max"], &summary["gap_ms"]), (&5.0.into(), &90.0.into()));
    }
}
