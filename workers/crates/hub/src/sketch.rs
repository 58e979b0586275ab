//! A mergeable sketch of latencies with a relative accuracy of 2 % (the mapping of DDSketch, Masson et al., VLDB 2019).
use std::collections::BTreeMap;
use std::fmt;

use downburst_model::bounds::LATENCY_SUM_MS_MAX;
use serde::{Serialize, Serializer};

/// Counts of values in logarithmic buckets; negative values are kept apart, never clipped.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Sketch {
    count: u64,
    sum_ms: f64,
    min_ms: f64,
    max_ms: f64,
    negative: u64,
    bound_ms: Option<f64>,
    buckets: BTreeMap<Bucket, u64>,
}

/// The bucket of a value: its sign and the logarithm of its size; values nearer to zero than a microsecond
/// have no logarithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Bucket {
    Negative(i64),
    Zero,
    Positive(i64),
}

impl Sketch {
    /// Adds a value in milliseconds, known to within `bound_ms`.
    pub(crate) fn add(&mut self, value_ms: f64, bound_ms: Option<f64>) {
        if self.count == 0 {
            (self.min_ms, self.max_ms) = (value_ms, value_ms);
        }
        self.count += 1;
        self.sum_ms = (self.sum_ms + value_ms).clamp(-LATENCY_SUM_MS, LATENCY_SUM_MS);
        self.min_ms = self.min_ms.min(value_ms);
        self.max_ms = self.max_ms.max(value_ms);
        self.negative += u64::from(value_ms < 0.0);
        if let Some(bound) = bound_ms {
            self.bound_ms = Some(self.bound_ms.map_or(bound, |known| known.max(bound)));
        }
        *self.buckets.entry(bucket(value_ms)).or_default() += 1;
    }
}

fn bucket(value_ms: f64) -> Bucket {
    let size = value_ms.abs();
    if size < SMALLEST_MS {
        return Bucket::Zero;
    }
    // The cast also turns a ceiling of minus zero into zero.
    let index = (size.ln() / GAMMA.ln()).ceil() as i64;
    if value_ms < 0.0 { Bucket::Negative(index) } else { Bucket::Positive(index) }
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Negative(index) => write!(f, "n{index}"),
            Self::Zero => f.write_str("z"),
            Self::Positive(index) => write!(f, "{index}"),
        }
    }
}

impl Serialize for Bucket {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// (1 + accuracy) / (1 - accuracy) for an accuracy of 2 %.
const GAMMA: f64 = 1.02 / 0.98;

/// As the ledger keeps sums.
const LATENCY_SUM_MS: f64 = LATENCY_SUM_MS_MAX as f64;

/// One microsecond, the resolution of a stamp; anything nearer to zero counts as zero.
const SMALLEST_MS: f64 = 0.001;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_golden_buckets() {
        let golden = include_str!("../../../../tests/golden/sketch.json");
        let golden: serde_json::Value = serde_json::from_str(golden).unwrap();
        let values = golden["values"].as_array().unwrap();
        assert!(values.len() > 20);
        for value in values {
            let bucket = bucket(value["ms"].as_f64().unwrap()).to_string();
            assert_eq!(bucket, value["bucket"].as_str().unwrap(), "{value}");
        }
    }

    /// The value of nearest rank, as readers compute it from these sketches: the smallest that `share` of the
    /// values do not exceed.
    fn quantile(sketch: &Sketch, share: f64) -> f64 {
        let rank = ((share * sketch.count as f64 - 1e-9).ceil() as u64).max(1);
        let worth = |bucket: &Bucket| {
            let size = |index: i64| 2.0 * GAMMA.powi(i32::try_from(index).unwrap()) / (GAMMA + 1.0);
            match *bucket {
                Bucket::Negative(index) => -size(index),
                Bucket::Zero => 0.0,
                Bucket::Positive(index) => size(index),
            }
        };
        let mut held: Vec<(f64, u64)> =
            sketch.buckets.iter().map(|(bucket, held)| (worth(bucket), *held)).collect();
        held.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut seen = 0;
        let found = held.iter().find(|(_, held)| {
            seen += held;
            seen >= rank
        });
        found.unwrap().0.clamp(sketch.min_ms, sketch.max_ms)
    }

    #[test]
    fn has_the_golden_quantiles() {
        let golden = include_str!("../../../../tests/golden/sketch.json");
        let golden: serde_json::Value = serde_json::from_str(golden).unwrap();
        for set in golden["sets"].as_array().unwrap() {
            let mut sketch = Sketch::default();
            for value in set["values_ms"].as_array().unwrap() {
                sketch.add(value.as_f64().unwrap(), None);
            }
            for (share, wanted) in set["quantiles_ms"].as_object().unwrap() {
                let (found, wanted) = (quantile(&sketch, share.parse().unwrap()), wanted.as_f64().unwrap());
                assert!((found - wanted).abs() < 1e-6, "{} p{share}: {found} and not {wanted}", set["why"]);
            }
        }
    }

    #[test]
    fn negative_values_are_kept_and_counted() {
        let mut sketch = Sketch::default();
        for value in [-5.0, 1.0, 3.0] {
            sketch.add(value, Some(0.5));
        }
        assert_eq!((sketch.count, sketch.negative), (3, 1));
        assert_eq!((sketch.min_ms, sketch.max_ms), (-5.0, 3.0));
        assert!(matches!(sketch.buckets.keys().next(), Some(Bucket::Negative(_))));
        let line = serde_json::to_value(&sketch).unwrap();
        assert!(line["buckets"].as_object().unwrap().keys().any(|key| key.starts_with('n')), "{line}");
    }
}
