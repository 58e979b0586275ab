/// A share in weighted fair queueing: the one that has had least, measured against its weight, is next.
///
/// An idle one gains no credit: on return it starts where the others are, and so is next without delay.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FairShare {
    had: u64,
}

impl FairShare {
    /// Joins the order again after a time with nothing to send. `level` is what the last one served had before it.
    pub(crate) fn rejoin(&mut self, level: u64) {
        self.had = self.had.max(level);
    }

    /// Counts a slice of `bytes`, each worth `cost`: the reciprocal of a weight.
    pub(crate) fn charge(&mut self, bytes: usize, cost: u64) {
        let bytes = (bytes as u64).saturating_add(SLICE_OVERHEAD_BYTES);
        self.had = self.had.saturating_add(bytes.saturating_mul(cost));
    }

    /// What the place in the order depends on; the smallest is next.
    pub(crate) fn level(self) -> u64 {
        self.had
    }
}

/// Small products cost more than their bytes: a frame to describe them, and work.
const SLICE_OVERHEAD_BYTES: u64 = 512;
