/// How a feed's log is kept. Everything can be changed while the log is open.
#[derive(Clone, Debug, PartialEq)]
pub struct LogOptions {
    /// The limits of time and disk.
    pub retention: Retention,
    /// A segment is closed before it grows beyond this, or beyond an eighth of the retained bytes if that is less.
    pub segment_bytes: u64,
    /// The failures that an acknowledged product survives.
    pub durability: Durability,
    /// The rule that makes two products the same.
    pub duplicate_rule: DuplicateRule,
    /// How long id, sequence, size and digest are remembered, counted from the moment a product was stored, in hours.
    pub memory_hours: f64,
    /// How many sequences are reserved at a time. An unclean stop leaves at most this many unused.
    pub sequence_block: u64,
    /// Larger products are refused while they are copied.
    pub max_product_bytes: u64,
    /// A product of at least this size lies in a file of its own, its body; a smaller one lies in the segment. A spool
    /// file of this process becomes a body from [`ADOPTED_BYTES`] on.
    pub body_bytes: u64,
    /// For a copy: the most bytes that it holds, while it remembers every product that its store keeps. Without
    /// that memory, the products would never be fetched from the store.
    pub copy_bytes: Option<u64>,
}

/// How long a product's bytes are kept. Whole segments are evicted, so a product may stay an eighth longer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retention {
    /// Hours after which bytes are deleted.
    pub hours: f64,
    /// The disk ceiling in bytes, including the memory of evicted products. It overrides the hours.
    pub bytes: u64,
}

/// The failures that an acknowledged product survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The death of the process (`kill -9`), because the kernel has the bytes.
    Process,
    /// The loss of power, because the disk has the bytes before the append returns. Concurrent callers, and all
    /// products of a group, share one synchronisation.
    Power,
}

/// The rule that makes two products of a feed the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DuplicateRule {
    /// Equal bytes, whatever the ids.
    Content,
    /// Equal bytes after the WMO starting line, whatever the ids.
    ContentWithoutWmoStart,
    /// Equal ids, whatever the bytes; the only rule under which an empty product can be a duplicate.
    Id,
    /// Equal ids and equal bytes.
    IdAndContent,
    /// Equal signatures, whatever the ids and bytes, as LDM does. A product without one gets the MD5 of its bytes.
    Signature,
    /// No rule; every product is stored. If the rule ignores starting lines later, bulletins stored under this one
    /// are known by their full bytes only.
    None,
}

impl Default for LogOptions {
    /// Suits a feed of a few GB per day: a day of bytes, a week of memory.
    fn default() -> Self {
        Self {
            retention: Retention { hours: 24.0, bytes: 16 * GIB },
            segment_bytes: GIB / 4,
            durability: Durability::Process,
            duplicate_rule: DuplicateRule::IdAndContent,
            memory_hours: 168.0,
            sequence_block: 10_000,
            max_product_bytes: 16 * GIB,
            body_bytes: BODY_BYTES,
            copy_bytes: None,
        }
    }
}

impl LogOptions {
    /// The size at which the open segment is closed: several fit below the ceiling, so that eviction never
    /// takes everything.
    pub(crate) fn roll_bytes(&self) -> u64 {
        self.segment_bytes.min(self.held_bytes() / 8).max(SMALLEST_SEGMENT_BYTES)
    }

    /// The ceiling for the bytes of products.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.copy_bytes.unwrap_or(u64::MAX).min(self.retention.bytes)
    }

    /// True if a product of this size gets a body, and if `is_adopted` from a file that becomes it.
    pub(crate) fn has_body(&self, size: u64, is_adopted: bool) -> bool {
        let least = if is_adopted { self.adopted_bytes() } else { self.body_bytes };
        size >= least.max(1)
    }

    /// The size from which a spool file of this process becomes a body.
    pub(crate) fn adopted_bytes(&self) -> u64 {
        self.body_bytes.min(ADOPTED_BYTES)
    }

    pub(crate) fn retention_micros(&self) -> i64 {
        micros(self.retention.hours)
    }

    pub(crate) fn memory_micros(&self) -> i64 {
        micros(self.memory_hours)
    }
}

/// The cast saturates: absurdly many hours mean forever.
fn micros(hours: f64) -> i64 {
    (hours.max(0.0) * 3_600e6) as i64
}

const GIB: u64 = 1 << 30;
/// The size from which a spool file is worth a second name, and a site's product one file instead of a record and a
/// file: see "Bodies" in docs/performance.md.
pub const ADOPTED_BYTES: u64 = 64 << 10;
/// The size from which creating a file costs less than copying from memory into the segment.
const BODY_BYTES: u64 = 256 << 10;
const SMALLEST_SEGMENT_BYTES: u64 = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_segments_fit_below_the_ceiling() {
        let options =
            LogOptions { retention: Retention { hours: 1.0, bytes: 800_000 }, ..LogOptions::default() };
        assert_eq!(options.roll_bytes(), 100_000);
        assert_eq!(LogOptions { copy_bytes: Some(80_000), ..options.clone() }.roll_bytes(), 10_000);
        assert_eq!(LogOptions { segment_bytes: 50_000, ..options }.roll_bytes(), 50_000);
    }

    #[test]
    fn hours_saturate() {
        assert_eq!(micros(1.0), 3_600_000_000);
        assert_eq!(micros(-1.0), 0);
        assert_eq!(micros(f64::INFINITY), i64::MAX);
        assert_eq!(micros(f64::NAN), 0);
    }
}
