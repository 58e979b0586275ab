//! The products by upstream key, found by prints of the keys.

use std::collections::BTreeMap;

/// A map from prints to sequences that costs nothing if both rise together, as at a site that receives a whole
/// feed.
///
/// Prints of one upstream epoch are consecutive like its sequences, so that delivery in order extends the current
/// run: one comparison. A gap in either begins another run of some 50 bytes, at worst one per product.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    /// All runs but the current one, by their first print.
    runs: BTreeMap<u64, Run>,
    /// The run that grew last, with its first print.
    at_hand: Option<(u64, Run)>,
    /// No run in the map begins between the end of the current run and this print.
    free_to: u64,
}

/// Consecutive prints of consecutive sequences.
#[derive(Clone, Copy, Debug)]
struct Run {
    sequence: u64,
    length: u64,
}

impl Sources {
    /// Remembers a product, replacing any with the same print.
    pub(crate) fn insert(&mut self, print: u64, sequence: u64) {
        if let Some((first, run)) = &mut self.at_hand
            && run.follows(*first, print, sequence)
            && print < self.free_to
        {
            run.length += 1;
            return;
        }
        self.put_down();
        if let Some(of) = self.find(print) {
            self.take_out(print, of);
        }
        let before = self.runs.range(..print).next_back().map(|(first, run)| (*first, *run));
        self.at_hand = Some(match before {
            Some((first, run)) if run.follows(first, print, sequence) => {
                self.runs.remove(&first);
                (first, Run { length: run.length + 1, ..run })
            }
            _ => (print, Run { sequence, length: 1 }),
        });
        let next = print.checked_add(1).and_then(|next| self.runs.range(next..).next());
        self.free_to = next.map_or(u64::MAX, |(first, _)| *first);
    }

    /// The product with a print.
    pub(crate) fn find(&self, print: u64) -> Option<u64> {
        if let Some((first, run)) = &self.at_hand
            && print >= *first
            && print < self.free_to
        {
            return run.at(*first, print);
        }
        let (first, run) = self.runs.range(..=print).next_back()?;
        run.at(*first, print)
    }

    /// Forgets a product, unless a later one replaced it.
    pub(crate) fn remove(&mut self, print: u64, sequence: u64) {
        self.put_down();
        if self.find(print) == Some(sequence) {
            self.take_out(print, sequence);
        }
    }

    fn put_down(&mut self) {
        if let Some((first, run)) = self.at_hand.take() {
            self.runs.insert(first, run);
        }
    }

    /// Splits the run that holds the print.
    fn take_out(&mut self, print: u64, sequence: u64) {
        let Some((&first, &run)) = self.runs.range(..=print).next_back() else { return };
        self.runs.remove(&first);
        let before = print - first;
        if before > 0 {
            self.runs.insert(first, Run { length: before, ..run });
        }
        if run.length > before + 1 {
            let rest = Run { sequence: sequence + 1, length: run.length - before - 1 };
            self.runs.insert(print + 1, rest);
        }
    }
}

impl Run {
    /// True if the print and the sequence are the next ones of the run that begins at `first`.
    fn follows(&self, first: u64, print: u64, sequence: u64) -> bool {
        first.checked_add(self.length) == Some(print) && self.sequence + self.length == sequence
    }

    fn at(&self, first: u64, print: u64) -> Option<u64> {
        let distance = print.checked_sub(first)?;
        (distance < self.length).then(|| self.sequence + distance)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_delivery_in_order_is_one_run() {
        let mut sources = Sources::default();
        (0..1_000).for_each(|n| sources.insert(7_000 + n, 1 + n));
        assert!(sources.runs.is_empty());
        assert_eq!(
            (sources.find(6_999), sources.find(7_000), sources.find(7_999)),
            (None, Some(1), Some(1_000))
        );
        assert_eq!(sources.find(8_000), None);
    }

    #[test]
    fn the_greatest_print_is_a_print_like_others() {
        let mut sources = Sources::default();
        sources.insert(u64::MAX - 1, 1);
        sources.insert(u64::MAX, 2);
        sources.insert(1, 3);
        assert_eq!(
            (sources.find(u64::MAX), sources.find(u64::MAX - 1), sources.find(2)),
            (Some(2), Some(1), None)
        );
        sources.remove(u64::MAX, 2);
        assert_eq!((sources.find(u64::MAX), sources.find(1)), (None, Some(3)));
    }

    proptest! {
        /// A failing run prints its operations; proptest keeps its seed beside this file and replays it.
        #[test]
        fn behaves_like_a_map(operations in prop::collection::vec((0..5_u8, 0..40_u64), 1..200)) {
            let (mut sources, mut map) = (Sources::default(), BTreeMap::new());
            let (mut rising, mut sequence) = (20, 0);
            for (kind, print) in operations {
                sequence += 1;
                match kind {
                    0 => {
                        let of = map.remove(&print).unwrap_or(sequence);
                        sources.remove(print, of);
                    }
                    1 => {
                        sources.insert(print, sequence);
                        map.insert(print, sequence);
                    }
                    2 => sources.remove(print, sequence),
                    _ => {
                        rising = (rising + 1) % 40;
                        sources.insert(rising, sequence);
                        map.insert(rising, sequence);
                    }
                }
                for print in 0..41 {
                    prop_assert_eq!(sources.find(print), map.get(&print).copied(), "print {}", print);
                }
            }
        }
    }
}
