/// A share in weighted fair queueing: the one with the least service relative to its weight is next.
///
/// An idle share gains no credit: on return it starts at the level of the others, and so is next without delay.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FairShare {
    had: u64,
}

impl FairShare {
    /// Rejoins the order after an idle time. `level` is that of the last share served, before its charge.
    pub(crate) fn rejoin(&mut self, level: u64) {
        self.had = self.had.max(level);
    }

    /// Counts a slice of `bytes`, each worth `cost`: the reciprocal of a weight.
    pub(crate) fn charge(&mut self, bytes: usize, cost: u64) {
        let bytes = (bytes as u64).saturating_add(SLICE_OVERHEAD_BYTES);
        self.had = self.had.saturating_add(bytes.saturating_mul(cost));
    }

    /// The sort key of the order; the smallest is next.
    pub(crate) fn level(self) -> u64 {
        self.had
    }
}

/// Small products cost more than their bytes: a frame header, and processing.
const SLICE_OVERHEAD_BYTES: u64 = 512;
