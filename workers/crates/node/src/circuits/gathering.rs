//! Statistics of an arriving train.
use std::time::Instant;

use super::packet::{Arrivals, Car};

/// Statistics while the train arrives.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    pub(super) run: u32,
    burst: u32,
    first: Option<Instant>,
    last: Option<Instant>,
    by_bin: Vec<u32>,
    by_sent_bin: Vec<u32>,
    /// Of each packet, arrival less departure; the offset between the clocks is the same in all of them.
    delays_us: Vec<i64>,
    next_index: u32,
    longest_loss: u32,
}

impl Gathering {
    pub(super) fn of(run: u32) -> Self {
        Self { run, ..Self::default() }
    }

    pub(super) fn burst(&mut self) {
        self.burst = self.burst.saturating_add(1);
    }

    pub(super) fn car(&mut self, car: Car, at: Instant) {
        if self.delays_us.len() >= MOST_PACKETS {
            return;
        }
        let first = *self.first.get_or_insert(at);
        let since_us = at.saturating_duration_since(first).as_micros() as u64;
        self.last = Some(at);
        count(&mut self.by_bin, (since_us / BIN_US) as usize);
        count(&mut self.by_sent_bin, usize::from(car.bin));
        self.delays_us.push(since_us.cast_signed().saturating_sub_unsigned(car.sent_us));
        self.longest_loss = self.longest_loss.max(car.index.saturating_sub(self.next_index));
        self.next_index = self.next_index.max(car.index.saturating_add(1));
    }

    /// Computes the statistics; the last packets of a train of `sent` packets may be missing.
    pub(super) fn sum(&self, sent: Option<u32>) -> Arrivals {
        let mut delays = self.delays_us.clone();
        delays.sort_unstable();
        let least = delays.first().copied().unwrap_or(0);
        let rise = |share: f64| {
            let index = ((delays.len() as f64 * share) as usize).min(delays.len().saturating_sub(1));
            delays.get(index).map_or(0, |delay| delay.abs_diff(least))
        };
        let lasted = self.first.zip(self.last).map(|(first, last)| last.saturating_duration_since(first));
        let tail = sent.map_or(0, |sent| sent.saturating_sub(self.next_index));
        Arrivals {
            burst: self.burst,
            packets: delays.len() as u32,
            lasted_us: lasted.unwrap_or_default().as_micros() as u64,
            by_bin: self.by_bin.clone(),
            by_sent_bin: self.by_sent_bin.clone(),
            delay_rise_us: (rise(0.5), rise(0.95), rise(1.0)),
            longest_loss: self.longest_loss.max(tail),
        }
    }
}

fn count(bins: &mut Vec<u32>, bin: usize) {
    if bin < MOST_BINS {
        if bins.len() <= bin {
            bins.resize(bin + 1, 0);
        }
        if let Some(count) = bins.get_mut(bin) {
            *count = count.saturating_add(1);
        }
    }
}

/// Long enough to average the bursts of a shaper, short enough to see a policer's bucket run out.
pub(super) const BIN_US: u64 = 50_000;

/// Twice the longest train: a report stays below one datagram.
const MOST_BINS: usize = 80;

/// Two seconds at 10 Gb/s; packets beyond that are ignored.
const MOST_PACKETS: usize = 2_000_000;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A train of 100 packets, one per 2 ms. `arrives` selects those that arrive; `delay_us` is the delay of each.
    fn gathered(arrives: impl Fn(u32) -> bool, delay_us: impl Fn(u32) -> u64) -> Arrivals {
        let (mut gathering, begin) = (Gathering::of(1), Instant::now());
        for index in (0..100).filter(|index| arrives(*index)) {
            let sent_us = u64::from(index) * 2_000;
            let at = begin + Duration::from_micros(sent_us + delay_us(index));
            gathering.car(Car { run: 1, index, bin: (sent_us / BIN_US) as u16, sent_us }, at);
        }
        gathering.sum(Some(100))
    }

    #[test]
    fn a_clean_train_has_no_loss_and_no_rise() {
        let sum = gathered(|_| true, |_| 30_000);
        assert_eq!((sum.packets, sum.longest_loss, sum.lasted_us), (100, 0, 198_000));
        assert_eq!((sum.by_bin, sum.by_sent_bin), (vec![25; 4], vec![25; 4]));
        assert_eq!(sum.delay_rise_us, (0, 0, 0));
    }

    #[test]
    fn a_queue_that_fills_shows_as_rise() {
        let sum = gathered(|_| true, |index| u64::from(index) * 100);
        assert_eq!(sum.delay_rise_us, (5_000, 9_500, 9_900));
    }

    #[test]
    fn runs_of_loss_are_found_at_either_end_and_inside() {
        assert_eq!(gathered(|index| !(10..17).contains(&index), |_| 0).longest_loss, 7);
        assert_eq!(gathered(|index| index >= 5, |_| 0).longest_loss, 5);
        assert_eq!(gathered(|index| index < 91, |_| 0).longest_loss, 9);
        assert_eq!(gathered(|_| false, |_| 0).longest_loss, 100);
    }
}
