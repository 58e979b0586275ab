use std::collections::BTreeMap;

use minicbor::{Decode, Encode, decode, encode};

/// A set of numbers kept as disjoint closed ranges: frontiers, missing packets, received bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet {
    /// Each range's start mapped to its end, both in the set. Ranges neither touch nor overlap.
    ranges: BTreeMap<u64, u64>,
}

impl RangeSet {
    /// The empty set.
    pub const fn new() -> Self {
        Self { ranges: BTreeMap::new() }
    }

    /// Adds `first..=last`; returns the number of new elements. A range with `first > last` is empty.
    pub fn insert(&mut self, first: u64, last: u64) -> u64 {
        if first > last {
            return 0;
        }
        if let Some(grown) = self.grow(first, last) {
            return grown;
        }
        let (mut start, mut end, mut known) = (first, last, 0);
        while let Some((&from, &to)) = self.ranges.range(..=end.saturating_add(1)).next_back() {
            if to.saturating_add(1) < start {
                break;
            }
            self.ranges.remove(&from);
            known += overlap((from, to), (first, last));
            start = start.min(from);
            end = end.max(to);
        }
        self.ranges.insert(start, end);
        (last - first).saturating_add(1).saturating_sub(known)
    }

    /// The usual case: the range before `first` reaches it, and the next range is not touched.
    fn grow(&mut self, first: u64, last: u64) -> Option<u64> {
        let next = first.checked_add(1)?..=last.saturating_add(1);
        if self.ranges.range(next).next().is_some() {
            return None;
        }
        let (_, end) = self.ranges.range_mut(..=first).next_back()?;
        if end.saturating_add(1) < first {
            return None;
        }
        let grown = last.saturating_sub(*end);
        *end = last.max(*end);
        Some(grown)
    }

    /// Removes `first..=last`.
    pub fn remove(&mut self, first: u64, last: u64) {
        if first > last {
            return;
        }
        while let Some((&from, &to)) = self.ranges.range(..=last).next_back() {
            if to < first {
                break;
            }
            self.ranges.remove(&from);
            if to > last {
                self.ranges.insert(last + 1, to);
            }
            if from < first {
                self.ranges.insert(from, first - 1);
                break;
            }
        }
    }

    /// True if `number` is in the set.
    pub fn contains(&self, number: u64) -> bool {
        self.ranges.range(..=number).next_back().is_some_and(|(_, &end)| end >= number)
    }

    /// True if all of `first..=last` is in the set; an empty range always is.
    pub fn contains_range(&self, first: u64, last: u64) -> bool {
        first > last || self.ranges.range(..=first).next_back().is_some_and(|(_, &end)| end >= last)
    }

    /// The end of the range that holds `number`, if it is in the set.
    pub fn end_of_range_at(&self, number: u64) -> Option<u64> {
        self.ranges.range(..=number).next_back().map(|(_, &end)| end).filter(|end| *end >= number)
    }

    /// The missing ranges between `first` and `last`, in order.
    pub fn gaps(&self, first: u64, last: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut next = first;
        let mut inside = self
            .ranges
            .range(self.ranges.range(..=first).next_back().map_or(first, |(&from, _)| from)..)
            .take_while(move |(from, _)| **from <= last);
        let mut done = first > last;
        std::iter::from_fn(move || {
            while !done {
                match inside.next() {
                    Some((&from, &to)) => {
                        let gap = (from > next).then(|| (next, from - 1));
                        match to.checked_add(1) {
                            Some(after) => next = next.max(after),
                            None => done = true,
                        }
                        if gap.is_some() {
                            return gap;
                        }
                    }
                    None => {
                        done = true;
                        return (next <= last).then_some((next, last));
                    }
                }
            }
            None
        })
    }

    /// The ranges, in order, both ends included.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.ranges.iter().map(|(&from, &to)| (from, to))
    }

    /// The largest number.
    pub fn last(&self) -> Option<u64> {
        self.ranges.last_key_value().map(|(_, &end)| end)
    }

    /// The smallest number.
    pub fn first(&self) -> Option<u64> {
        self.ranges.first_key_value().map(|(&start, _)| start)
    }

    /// The number of ranges in the set.
    pub fn range_count(&self) -> usize {
        self.ranges.len()
    }

    /// The number of elements in the set.
    pub fn count(&self) -> u64 {
        self.ranges.iter().fold(0, |sum, (from, to)| sum.saturating_add((to - from).saturating_add(1)))
    }

    /// True if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Empties the set.
    pub fn clear(&mut self) {
        self.ranges.clear();
    }
}

impl FromIterator<(u64, u64)> for RangeSet {
    fn from_iter<T: IntoIterator<Item = (u64, u64)>>(ranges: T) -> Self {
        let mut set = Self::new();
        for (first, last) in ranges {
            set.insert(first, last);
        }
        set
    }
}

impl<C> Encode<C> for RangeSet {
    fn encode<W: encode::Write>(
        &self,
        e: &mut minicbor::Encoder<W>,
        _: &mut C,
    ) -> Result<(), encode::Error<W::Error>> {
        e.array(self.ranges.len() as u64 * 2)?;
        for (from, to) in self.iter() {
            e.u64(from)?.u64(to)?;
        }
        Ok(())
    }
}

impl<'b, C> Decode<'b, C> for RangeSet {
    fn decode(d: &mut minicbor::Decoder<'b>, _: &mut C) -> Result<Self, decode::Error> {
        let count = d.array()?.ok_or_else(|| decode::Error::message("ranges have a known length"))?;
        if count % 2 != 0 || count > 2 * MAX_DECODED_RANGES {
            return Err(decode::Error::message("ranges come in pairs, at most 65536 of them"));
        }
        (0..count / 2).map(|_| Ok((d.u64()?, d.u64()?))).collect()
    }
}

fn overlap(a: (u64, u64), b: (u64, u64)) -> u64 {
    let (start, end) = (a.0.max(b.0), a.1.min(b.1));
    if start > end { 0 } else { (end - start).saturating_add(1) }
}

/// Limits the memory that a peer can make this process allocate.
const MAX_DECODED_RANGES: u64 = 65_536;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn touching_ranges_merge() {
        let mut set = RangeSet::new();
        assert_eq!(set.insert(1, 3), 3);
        assert_eq!(set.insert(5, 6), 2);
        assert_eq!(set.insert(4, 4), 1);
        assert_eq!(set.iter().collect::<Vec<_>>(), [(1, 6)]);
        assert_eq!(set.insert(2, 8), 2);
    }

    #[test]
    fn the_whole_number_line_is_no_special_case() {
        let mut set = RangeSet::new();
        assert_eq!(set.insert(0, u64::MAX), u64::MAX);
        assert_eq!(set.gaps(0, u64::MAX).count(), 0);
        set.remove(5, u64::MAX);
        assert_eq!(set.gaps(0, 9).collect::<Vec<_>>(), [(5, 9)]);
    }

    proptest! {
        #[test]
        fn behaves_like_a_set_of_numbers(ops in prop::collection::vec((any::<bool>(), 0u64..60, 0u64..12), 0..40)) {
            let (mut set, mut model) = (RangeSet::new(), BTreeSet::new());
            for (add, first, length) in ops {
                let last = first + length;
                if add {
                    let before = model.len();
                    model.extend(first..=last);
                    prop_assert_eq!(set.insert(first, last), (model.len() - before) as u64);
                } else {
                    model.retain(|n| *n < first || *n > last);
                    set.remove(first, last);
                }
            }
            prop_assert_eq!(set.count(), model.len() as u64);
            for n in 0..80 {
                prop_assert_eq!(set.contains(n), model.contains(&n));
            }
            let missing: Vec<u64> = set.gaps(3, 70).flat_map(|(a, b)| a..=b).collect();
            let expected: Vec<u64> = (3..=70).filter(|n| !model.contains(n)).collect();
            prop_assert_eq!(missing, expected);
            let bytes = minicbor::to_vec(&set).unwrap();
            prop_assert_eq!(minicbor::decode::<RangeSet>(&bytes).unwrap(), set);
        }
    }
}
