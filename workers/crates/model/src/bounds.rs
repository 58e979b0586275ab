//! Limits of values that cross an external interface: from a site, from the agent, or to it. The agent has the same
//! limits (`downburst.foundation.bounds`); `tests/golden/bounds.json` keeps the two alike, and `docs/node-lines.md`
//! describes them.
use crate::WallMicros;

/// The highest count, size or number: the ledger's databases keep signed integers of 64 bits.
pub const INTEGER_MAX: u64 = i64::MAX as u64;

/// The earliest stamp of a host's clock: 1970-01-01 00:00 UTC. A host without a clock of its own begins there.
pub const CLOCK_MIN: WallMicros = WallMicros(0);

/// The last stamp of a host's clock: the end of the year 2199.
pub const CLOCK_MAX: WallMicros = WallMicros(7_258_118_399_999_999);

/// The earliest stamp of a product's origin: the first time that a date can express, in the year 1.
pub const ORIGIN_MIN: WallMicros = WallMicros(-62_135_596_800_000_000);

/// The last stamp of a product's origin: the last time that a date can express, in the year 9999.
pub const ORIGIN_MAX: WallMicros = WallMicros(253_402_300_799_999_999);

/// The largest difference between two clocks, in microseconds: the time between the first and the last stamp.
pub const OFFSET_MAX_US: u64 = 7_258_118_400_000_000;

/// The highest index of a sketch's bucket, of either sign; the longest time between two stamps has 919.
pub const BUCKET_MAX: u64 = 1_000;

/// The largest number of values in one sketch.
pub const SKETCH_COUNT_MAX: u64 = 1 << 40;

/// The longest latency in milliseconds, of either sign: the time between any two stamps is shorter.
pub const LATENCY_MS_MAX: u64 = 1_000_000_000_000_000;

/// The largest sum of a sketch's latencies in milliseconds, of either sign: in microseconds it is an integer
/// of 64 bits.
pub const LATENCY_SUM_MS_MAX: u64 = 9_000_000_000_000_000;

/// The longest sentence on a line between node and agent, in characters.
pub const SENTENCE_CHARS_MAX: usize = 4_000;

/// The longest line between node and agent, in bytes.
pub const LINE_BYTES_MAX: usize = 16 << 20;

/// The longest batch file, in bytes.
pub const BATCH_BYTES_MAX: u64 = 256 << 20;

/// The largest number of entries in one list of a batch file.
pub const BATCH_ENTRIES_MAX: usize = 1_000_000;

impl WallMicros {
    /// True for a time that a host's clock may show.
    pub fn is_on_a_clock(self) -> bool {
        (CLOCK_MIN..=CLOCK_MAX).contains(&self)
    }

    /// True for a time that a date can express: the origin of a product may state it.
    pub fn has_a_date(self) -> bool {
        (ORIGIN_MIN..=ORIGIN_MAX).contains(&self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_golden_bounds() {
        let golden = include_str!("../../../../tests/golden/bounds.json");
        let golden: serde_json::Value = serde_json::from_str(golden).unwrap();
        let unsigned = [
            ("integer_max", INTEGER_MAX),
            ("offset_max_us", OFFSET_MAX_US),
            ("bucket_max", BUCKET_MAX),
            ("sketch_count_max", SKETCH_COUNT_MAX),
            ("latency_ms_max", LATENCY_MS_MAX),
            ("latency_sum_ms_max", LATENCY_SUM_MS_MAX),
            ("sentence_chars_max", SENTENCE_CHARS_MAX as u64),
            ("line_bytes_max", LINE_BYTES_MAX as u64),
            ("batch_bytes_max", BATCH_BYTES_MAX),
            ("batch_entries_max", BATCH_ENTRIES_MAX as u64),
        ];
        for (name, bound) in unsigned {
            assert_eq!(golden[name].as_u64(), Some(bound), "{name}");
        }
        let stamps = [
            ("clock_min_us", CLOCK_MIN),
            ("clock_max_us", CLOCK_MAX),
            ("origin_min_us", ORIGIN_MIN),
            ("origin_max_us", ORIGIN_MAX),
        ];
        for (name, bound) in stamps {
            assert_eq!(golden[name].as_i64(), Some(bound.0), "{name}");
        }
        assert_eq!(golden.as_object().unwrap().len(), unsigned.len() + stamps.len() + 1, "and the dates");
    }

    #[test]
    fn stamps_are_bounded_on_both_sides() {
        let on_a_clock = [CLOCK_MIN.0 - 1, CLOCK_MIN.0, CLOCK_MAX.0, CLOCK_MAX.0 + 1];
        assert_eq!(on_a_clock.map(|at| WallMicros(at).is_on_a_clock()), [false, true, true, false]);
        let dated = [ORIGIN_MIN.0 - 1, ORIGIN_MIN.0, ORIGIN_MAX.0, ORIGIN_MAX.0 + 1];
        assert_eq!(dated.map(|at| WallMicros(at).has_a_date()), [false, true, true, false]);
    }
}
