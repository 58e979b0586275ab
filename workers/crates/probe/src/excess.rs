//! The cost of one loss: the delay above the least one, until it has returned.
use downburst_model::Micros;
use minicbor::{Decode, Encode};

/// The delay after a loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Excess {
    /// The arrival of the packet after the gap, since the first arrival.
    #[n(0)]
    pub at_us: u64,
    /// The packets lost, with those lost before the delay had returned.
    #[n(1)]
    pub lost: u64,
    /// The greatest delay above the least one until then.
    #[n(2)]
    pub excess_us: u64,
    /// The time until the delay was less than 1 ms above the least one; absent: it has not returned.
    #[n(3)]
    pub recovery_us: Option<u64>,
    /// Of records over TCP: the highest rate of arrivals after the largest excess, bits per second of frames.
    #[n(4)]
    pub peak_bps: Option<u64>,
    /// Of records over TCP: the frames that waited in the sender once those behind the lost segment were released.
    #[n(5)]
    pub backlog_bytes: Option<u64>,
    /// Of records over TCP: the recovery time by the formula; absent: the peak does not exceed the rate.
    #[n(6)]
    pub predicted_us: Option<u64>,
}

/// The excess after each of the first losses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Excesses {
    /// With the numbers that the gaps lie between.
    ended: Vec<(Excess, (u64, u64))>,
    /// The one whose delay has not returned.
    open: Option<(Excess, (u64, u64))>,
}

impl Excesses {
    /// Takes the packet after a gap of `skipped` numbers.
    pub(crate) fn gap(&mut self, at: Micros, number: u64, skipped: u64) {
        if let Some((open, (_, to))) = &mut self.open {
            open.lost = open.lost.saturating_add(skipped);
            *to = number;
        } else if self.ended.len() < MOST_EXCESSES {
            let excess = Excess { at_us: at.0, lost: skipped, ..Excess::default() };
            self.open = Some((excess, (number.saturating_sub(skipped), number)));
        }
    }

    /// Takes the delay of a packet above the least one.
    pub(crate) fn delayed(&mut self, at: Micros, excess_us: u64) {
        let Some((open, _)) = &mut self.open else { return };
        open.excess_us = open.excess_us.max(excess_us);
        if excess_us < RETURNED_US {
            open.recovery_us = Some(at.since(Micros(open.at_us)).0);
            self.ended.extend(self.open.take());
        }
    }

    /// Takes a number that came late: it was not lost.
    pub(crate) fn late(&mut self, number: u64) {
        let all = self.ended.iter_mut().chain(&mut self.open);
        let found = all.into_iter().find(|(_, (from, to))| (*from..*to).contains(&number));
        if let Some((excess, _)) = found {
            excess.lost = excess.lost.saturating_sub(1);
        }
    }

    pub(crate) fn all(&self) -> Vec<Excess> {
        let all = self.ended.iter().chain(&self.open).map(|(excess, _)| *excess);
        all.filter(|excess| excess.lost > 0).collect()
    }
}

/// The most losses whose excess is kept.
pub const MOST_EXCESSES: usize = 100;
const RETURNED_US: u64 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excess_ends_when_the_delay_has_returned() {
        let mut excesses = Excesses::default();
        excesses.delayed(Micros(5), 70_000);
        excesses.gap(Micros(10), 4, 2);
        for (at, excess_us) in [(10, 40_000), (500, 44_000), (900, 1_000)] {
            excesses.delayed(Micros(at), excess_us);
        }
        let open = Excess { at_us: 10, lost: 2, excess_us: 44_000, ..Excess::default() };
        assert_eq!(excesses.all(), [open]);
        excesses.gap(Micros(950), 9, 1);
        excesses.delayed(Micros(1_010), 999);
        assert_eq!(excesses.all(), [Excess { lost: 3, recovery_us: Some(1_000), ..open }]);
    }

    #[test]
    fn a_late_packet_was_no_loss() {
        let mut excesses = Excesses::default();
        excesses.gap(Micros(10), 4, 1);
        excesses.delayed(Micros(10), 0);
        excesses.gap(Micros(20), 9, 2);
        [3, 7, 4, 99].into_iter().for_each(|number| excesses.late(number));
        assert_eq!(excesses.all(), [Excess { at_us: 20, lost: 1, ..Excess::default() }]);
    }

    #[test]
    fn only_the_first_losses_are_kept() {
        let mut excesses = Excesses::default();
        for number in 0..500 {
            excesses.gap(Micros(number), number * 2, 1);
            excesses.delayed(Micros(number), 0);
        }
        assert_eq!(excesses.all().len(), MOST_EXCESSES);
    }
}
