//! Which sites of a large group lack much of nearly every block, while those who lose with many others ask for few.
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(crate) struct Habits {
    scores: BTreeMap<u64, u8>,
}

impl Habits {
    /// True if the site asked for much of more than half of the latest blocks.
    pub(crate) fn always_asks(&self, site: u64) -> bool {
        self.scores.get(&site).is_some_and(|score| *score >= KNOWN)
    }

    /// These sites asked for much of a block.
    pub(crate) fn note(&mut self, loud: impl Iterator<Item = (u64, u64)>) {
        let loud: Vec<u64> = loud.map(|(site, _)| site).collect();
        if loud.is_empty() {
            return;
        }
        for site in loud {
            *self.scores.entry(site).or_default() += 2;
        }
        self.scores.retain(|_, score| {
            *score = (*score - 1).min(LARGEST);
            *score > 0
        });
    }
}

/// After four blocks in a row a site is known.
const KNOWN: u8 = 4;

/// A site that lost nothing of five blocks of which others lost much is as all others.
const LARGEST: u8 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_for_every_block_is_known_after_four_and_who_asks_for_a_third_never() {
        let mut habits = Habits::default();
        for block in 0..100u64 {
            assert_eq!(habits.always_asks(7), block >= 4);
            habits.note([(7, 100), (100 + block % 3, 100)].into_iter());
            assert!(!habits.always_asks(100 + block % 3));
        }
        for block in 0..5 {
            assert!(habits.always_asks(7), "block {block}");
            habits.note([(8 + block, 100)].into_iter());
        }
        assert!(!habits.always_asks(7));
        habits.note(std::iter::empty());
        assert_eq!(habits.scores.len(), 2, "who asks no more is forgotten");
    }
}
