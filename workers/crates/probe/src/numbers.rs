//! The numbers of the packets that arrived, in bounded memory.

/// Knows each of the last 65,536 numbers.
#[derive(Clone, Debug)]
pub(crate) struct Numbers {
    /// The number after the highest one.
    next: u64,
    /// The first number that is still known one by one.
    known_from: u64,
    seen: Vec<u64>,
    /// Runs of numbers that left without an arrival; true while one lasts.
    runs: u64,
    in_run: bool,
}

/// The arrival of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Above all before; the number of those skipped.
    Next {
        /// The numbers between it and the highest before.
        skipped: u64,
    },
    /// Below one that came before it: reordered (RFC 4737, section 3).
    Late,
    /// It was there already.
    Copy,
    /// So late that nothing is known of it.
    TooLate,
}

impl Default for Numbers {
    fn default() -> Self {
        let seen = vec![0; (WINDOW / 64) as usize];
        Self { next: 0, known_from: 0, seen, runs: 0, in_run: false }
    }
}

impl Numbers {
    pub(crate) fn took(&mut self, number: u64) -> Arrival {
        if number >= self.next {
            let skipped = number - self.next;
            self.advance(number.saturating_add(1));
            self.mark(number);
            return Arrival::Next { skipped };
        }
        if number < self.known_from {
            return Arrival::TooLate;
        }
        if self.has(number) {
            return Arrival::Copy;
        }
        self.mark(number);
        Arrival::Late
    }

    /// The number after the highest one.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// The runs of lost numbers among those below `sent`.
    pub(crate) fn runs_of_lost(mut self, sent: u64) -> u64 {
        self.forget_to(self.next);
        if sent > self.next {
            self.lose();
        }
        self.runs
    }

    fn advance(&mut self, next: u64) {
        let known_from = next.saturating_sub(WINDOW);
        self.forget_to(known_from.min(self.next));
        if known_from > self.next {
            self.lose();
            self.seen.fill(0);
        } else {
            (self.next..next).for_each(|number| self.clear(number));
        }
        self.known_from = self.known_from.max(known_from);
        self.next = next;
    }

    /// Counts runs among the numbers that are not to be known any more.
    fn forget_to(&mut self, to: u64) {
        for number in self.known_from..to {
            if self.has(number) {
                self.in_run = false;
            } else {
                self.lose();
            }
        }
        self.known_from = self.known_from.max(to);
    }

    fn lose(&mut self) {
        self.runs += u64::from(!self.in_run);
        self.in_run = true;
    }

    fn has(&self, number: u64) -> bool {
        let (word, bit) = place(number);
        self.seen.get(word).is_some_and(|bits| bits & bit != 0)
    }

    fn mark(&mut self, number: u64) {
        let (word, bit) = place(number);
        self.seen.get_mut(word).into_iter().for_each(|bits| *bits |= bit);
    }

    fn clear(&mut self, number: u64) {
        let (word, bit) = place(number);
        self.seen.get_mut(word).into_iter().for_each(|bits| *bits &= !bit);
    }
}

fn place(number: u64) -> (usize, u64) {
    let number = number % WINDOW;
    ((number / 64) as usize, 1 << (number % 64))
}

const WINDOW: u64 = 1 << 16;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn after(numbers: impl IntoIterator<Item = u64>) -> (Numbers, Vec<Arrival>) {
        let mut known = Numbers::default();
        let arrivals = numbers.into_iter().map(|number| known.took(number)).collect();
        (known, arrivals)
    }

    #[test]
    fn gaps_late_numbers_and_copies_are_told_apart() {
        let (known, arrivals) = after([0, 1, 4, 3, 4, 3, 7]);
        let next = |skipped| Arrival::Next { skipped };
        use Arrival::{Copy, Late};
        assert_eq!(arrivals, [next(0), next(0), next(2), Late, Copy, Copy, next(2)]);
        assert_eq!((known.next(), known.clone().runs_of_lost(8), known.runs_of_lost(9)), (8, 2, 3));
    }

    #[test]
    fn a_number_beyond_the_window_is_too_late() {
        let (mut known, _) = after([0, WINDOW + 5]);
        assert_eq!((known.took(5), known.took(6)), (Arrival::TooLate, Arrival::Late));
        assert_eq!(known.runs_of_lost(WINDOW + 6), 2);
        let (mut known, _) = after([3, u64::MAX]);
        assert_eq!((known.took(u64::MAX - 1), known.took(3)), (Arrival::Late, Arrival::TooLate));
    }

    #[test]
    fn nothing_at_all_is_one_run() {
        assert_eq!((Numbers::default().runs_of_lost(9), Numbers::default().runs_of_lost(0)), (1, 0));
    }

    proptest! {
        #[test]
        fn runs_and_kinds_are_those_of_a_set(
            jumps in prop::collection::vec(prop_oneof![9 => 0_u64..4, 1 => 0_u64..140_000], 1..200),
            backs in prop::collection::vec(0_u64..6, 200),
        ) {
            let (mut known, mut all, mut highest) = (Numbers::default(), BTreeSet::new(), 0);
            for (jump, back) in jumps.iter().zip(&backs) {
                highest += jump;
                let number = highest.saturating_sub(*back);
                let expected = match all.last() {
                    Some(last) if number <= *last && all.contains(&number) => Arrival::Copy,
                    Some(last) if number < *last => Arrival::Late,
                    Some(last) => Arrival::Next { skipped: number - last - 1 },
                    None => Arrival::Next { skipped: number },
                };
                prop_assert_eq!(known.took(number), expected);
                all.insert(number);
            }
            let gaps = all.iter().zip(all.iter().skip(1)).filter(|(left, right)| *left + 1 < **right).count();
            let head = usize::from(!all.contains(&0));
            prop_assert_eq!(known.runs_of_lost(0), (gaps + head) as u64);
        }
    }
}
