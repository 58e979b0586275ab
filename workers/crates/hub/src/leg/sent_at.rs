//! The times at which products left over a leg.
use std::collections::BTreeMap;

use downburst_model::{Sequence, WallMicros};

/// The time at which the first byte of a product left, for the latest products of a leg.
#[derive(Debug, Default)]
pub struct LegFirstBytes(BTreeMap<Sequence, WallMicros>);

impl LegFirstBytes {
    /// Notes the time of a product. Beyond [`KEPT`] of them, the lowest sequence is dropped.
    pub fn insert(&mut self, sequence: Sequence, at: WallMicros) {
        self.0.insert(sequence, at);
        if self.0.len() > KEPT {
            self.0.pop_first();
        }
    }

    /// The time of a product, if still known.
    pub fn find(&self, sequence: Sequence) -> Option<WallMicros> {
        self.0.get(&sequence).copied()
    }
}

const KEPT: usize = 65_536;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_products_are_kept() {
        let mut first_bytes = LegFirstBytes::default();
        for number in 1..=KEPT as u64 + 3 {
            first_bytes.insert(Sequence(number), WallMicros(number as i64));
        }
        assert_eq!(first_bytes.0.len(), KEPT);
        assert_eq!(
            [1, 3, 4].map(|number| first_bytes.find(Sequence(number))),
            [None, None, Some(WallMicros(4))]
        );
    }

    #[test]
    fn a_product_that_is_sent_again_has_its_latest_time() {
        let mut first_bytes = LegFirstBytes::default();
        first_bytes.insert(Sequence(1), WallMicros(10));
        first_bytes.insert(Sequence(1), WallMicros(20));
        assert_eq!(first_bytes.find(Sequence(1)), Some(WallMicros(20)));
    }
}
