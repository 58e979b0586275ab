/// The received counters: the latest [`WIDTH`] are exact, and all earlier ones count as received.
#[derive(Debug, Default)]
pub(super) struct ReplayWindow {
    highest: u64,
    seen: [u64; WORDS],
}

impl ReplayWindow {
    /// True if the counter has not been received; counters begin at 1.
    pub(super) fn is_new(&self, counter: u64) -> bool {
        let old = counter.saturating_add(WIDTH) <= self.highest;
        counter > 0 && !old && (counter > self.highest || self.word(counter) & bit(counter) == 0)
    }

    /// Records a new counter of a datagram that opened; true if it is the highest.
    pub(super) fn note(&mut self, counter: u64) -> bool {
        let newest = counter > self.highest;
        if newest {
            // The words in between are of counters not received yet.
            let (from, to) = (self.highest / 64, counter / 64);
            (from..to)
                .take(WORDS)
                .for_each(|passed| self.set(passed.saturating_add(1).saturating_mul(64), 0));
            if to - from > WORDS as u64 {
                self.seen = [0; WORDS];
            }
            self.highest = counter;
        }
        self.set(counter, self.word(counter) | bit(counter));
        newest
    }

    fn word(&self, counter: u64) -> u64 {
        self.seen.get(place(counter)).copied().unwrap_or_default()
    }

    fn set(&mut self, counter: u64, word: u64) {
        if let Some(kept) = self.seen.get_mut(place(counter)) {
            *kept = word;
        }
    }
}

fn place(counter: u64) -> usize {
    usize::try_from(counter / 64).unwrap_or(usize::MAX) % WORDS
}

fn bit(counter: u64) -> u64 {
    1 << (counter % 64)
}

/// One word more than the window, because it begins and ends within words.
const WORDS: usize = 17;

/// 12 ms of repairs at 1 Gbit/s: more than a path reorders.
const WIDTH: u64 = 1_024;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_takes_what_a_set_would_take(steps in prop::collection::vec((0u64..3_000, any::<bool>()), 1..400)) {
            let (mut window, mut taken, mut highest) = (ReplayWindow::default(), BTreeSet::new(), 0u64);
            for (step, back) in steps {
                let counter = if back { highest.saturating_sub(step) } else { highest + step % 700 };
                let new = counter > 0 && counter + WIDTH > highest && !taken.contains(&counter);
                prop_assert_eq!(window.is_new(counter), new, "{} after {}", counter, highest);
                if new {
                    prop_assert_eq!(window.note(counter), counter > highest);
                    taken.insert(counter);
                    highest = highest.max(counter);
                }
            }
        }
    }
}
