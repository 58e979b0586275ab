//! The wait of a receiver for a packet that may only have been overtaken, before it requests it. Most paths
//! do not reorder, and there the wait is the largest part of a lost message's delay; so it adapts to the
//! outcome of earlier waits.
//!
//! | a missing packet | next |
//! |---|---|
//! | was requested and came, [`CERTAIN`] of them | half the wait, [`SHORTEST`] at least |
//! | came before its request | offsets [`WEIGHT`] of those: it was overtaken, or another site had requested it |
//! | was requested, came, and came again | the longest wait: it had been under way |
use std::collections::VecDeque;

use downburst_model::Micros;

#[derive(Debug)]
pub(crate) struct Reordering {
    longest: Micros,
    wait: Micros,
    /// The evidence of losses since the last change of the wait.
    lost: u32,
    /// The latest packets that were requested and came.
    repaired: VecDeque<u64>,
}

impl Reordering {
    pub(crate) fn new(longest: Micros) -> Self {
        Self { longest, wait: longest, lost: 0, repaired: VecDeque::new() }
    }

    pub(crate) fn wait(&self) -> Micros {
        self.wait
    }

    /// Records that a requested packet came.
    pub(crate) fn repaired(&mut self, packet: u64) {
        self.repaired.push_back(packet);
        if self.repaired.len() > REMEMBERED {
            self.repaired.pop_front();
        }
        self.lost += 1;
        if self.lost >= CERTAIN {
            self.lost = 0;
            self.wait = Micros(self.wait.0 / 2).max(SHORTEST).min(self.wait);
        }
    }

    /// Records that a missing packet came before its request.
    pub(crate) fn came(&mut self) {
        self.lost = self.lost.saturating_sub(WEIGHT);
    }

    /// Records that a packet came again.
    pub(crate) fn repeated(&mut self, packet: u64) {
        if self.repaired.contains(&packet) {
            (self.wait, self.lost) = (self.longest, 0);
        }
    }
}

/// So many losses without an overtaken packet are no coincidence.
const CERTAIN: u32 = 32;

/// Among seven sites that lose 1 %, another site has already requested one loss in sixteen: that must not
/// outweigh the others.
const WEIGHT: u32 = 4;

/// The span of reordering by a busy host and a queue in a switch.
const SHORTEST: Micros = Micros(2_500);

/// The number that can come again within the longest round trip, at a loss rate that a leg tolerates.
const REMEMBERED: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Micros = Micros::from_millis(10);

    fn after_losses(count: u64) -> Reordering {
        let mut reordering = Reordering::new(LONGEST);
        (0..count).for_each(|packet| reordering.repaired(packet));
        reordering
    }

    #[test]
    fn where_nothing_is_overtaken_the_wait_falls_to_the_shortest() {
        assert_eq!(after_losses(31).wait(), LONGEST);
        assert_eq!(after_losses(32).wait(), Micros::from_millis(5));
        assert_eq!(after_losses(1_000).wait(), SHORTEST);
    }

    #[test]
    fn a_packet_that_comes_again_after_its_repair_had_only_been_overtaken() {
        let mut reordering = after_losses(64);
        reordering.repeated(1_000);
        assert_eq!(reordering.wait(), SHORTEST, "a repair for somebody else");
        reordering.repeated(60);
        assert_eq!(reordering.wait(), LONGEST);
    }

    #[test]
    fn what_comes_by_itself_keeps_the_wait_long_and_a_little_of_it_does_not() {
        let after = |each: u64| {
            let mut reordering = Reordering::new(LONGEST);
            for packet in 0..2_000 {
                if packet % each == 0 {
                    reordering.came();
                } else {
                    reordering.repaired(packet);
                }
            }
            reordering.wait()
        };
        assert_eq!(after(4), LONGEST);
        assert_eq!(after(16), SHORTEST);
    }

    #[test]
    fn a_wait_that_is_set_shorter_stays_so() {
        let mut reordering = Reordering::new(Micros(1_000));
        (0..100).for_each(|packet| reordering.repaired(packet));
        assert_eq!(reordering.wait(), Micros(1_000));
    }
}
