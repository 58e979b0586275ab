//! Sites of a large group that lack much of nearly every block. Most sites lose little or share their losses with many
//! others, so a few that always request much must not decide how many symbols the whole group gets.
use std::collections::BTreeMap;

/// A score per site that requested much lately.
#[derive(Debug, Default)]
pub(crate) struct FrequentRequesters {
    scores: BTreeMap<u64, u8>,
}

impl FrequentRequesters {
    /// True if the site requested much of more than half of the latest blocks.
    pub(crate) fn is_frequent(&self, site: u64) -> bool {
        self.scores.get(&site).is_some_and(|score| *score >= KNOWN)
    }

    /// Notes the sites that requested much of one block.
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

/// A site counts as frequent after four blocks in a row.
const KNOWN: u8 = 4;

/// A site counts as usual again after five blocks of which it lost nothing and others lost much.
const LARGEST: u8 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_for_every_block_is_known_after_four_and_who_asks_for_a_third_never() {
        let mut frequent_requesters = FrequentRequesters::default();
        for block in 0..100u64 {
            assert_eq!(frequent_requesters.is_frequent(7), block >= 4);
            frequent_requesters.note([(7, 100), (100 + block % 3, 100)].into_iter());
            assert!(!frequent_requesters.is_frequent(100 + block % 3));
        }
        for block in 0..5 {
            assert!(frequent_requesters.is_frequent(7), "block {block}");
            frequent_requesters.note([(8 + block, 100)].into_iter());
        }
        assert!(!frequent_requesters.is_frequent(7));
        frequent_requesters.note(std::iter::empty());
        assert_eq!(frequent_requesters.scores.len(), 2, "who asks no more is forgotten");
    }
}
