use downburst_model::RangeSet;

/// Set arithmetic that the session needs in addition to that of [`RangeSet`].
pub(crate) trait Spans {
    /// The ranges within `first..=last`, in order.
    fn within(&self, first: u64, last: u64) -> Vec<(u64, u64)>;
    /// Adds all of `other`.
    fn add(&mut self, other: &RangeSet);
    /// Removes all of `other`.
    fn subtract(&mut self, other: &RangeSet);
    /// The end of the range that begins at 0; 0 if there is none.
    fn frontier(&self) -> u64;
}

impl Spans for RangeSet {
    fn within(&self, first: u64, last: u64) -> Vec<(u64, u64)> {
        let mut parts = Vec::new();
        let mut next = first;
        for (from, to) in self.gaps(first, last) {
            if from > next {
                parts.push((next, from - 1));
            }
            match to.checked_add(1) {
                Some(after) => next = after,
                None => return parts,
            }
        }
        if next <= last {
            parts.push((next, last));
        }
        parts
    }

    fn add(&mut self, other: &RangeSet) {
        for (first, last) in other.iter() {
            self.insert(first, last);
        }
    }

    fn subtract(&mut self, other: &RangeSet) {
        for (first, last) in other.iter() {
            self.remove(first, last);
        }
    }

    fn frontier(&self) -> u64 {
        self.end_of_range_at(0).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn within_is_the_intersection(
            ranges in prop::collection::vec((0u64..60, 0u64..6), 0..12),
            first in 0u64..70,
            length in 0u64..70,
        ) {
            let set: RangeSet = ranges.iter().map(|(from, more)| (*from, from + more)).collect();
            let found: Vec<u64> = set.within(first, first + length).into_iter().flat_map(|(a, b)| a..=b).collect();
            let expected: Vec<u64> = (first..=first + length).filter(|number| set.contains(*number)).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn the_end_of_the_number_line_is_no_special_case() {
        let set: RangeSet = [(3, u64::MAX)].into_iter().collect();
        assert_eq!(set.within(0, u64::MAX), [(3, u64::MAX)]);
        assert_eq!(RangeSet::new().within(0, u64::MAX), []);
    }
}
