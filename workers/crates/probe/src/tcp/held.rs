//! The cost of a loss over TCP: the receiver sees no gap, but records that were held back.
use downburst_model::Micros;

use crate::{Excess, MOST_EXCESSES};

/// The runs of records that came late.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    rate_bps: u64,
    frame_bytes: u64,
    /// A run begins above this delay over the least one.
    threshold_us: u64,
    /// The connection's slow start: a run before is none of a loss.
    grown_at: Micros,
    window: Micros,
    ended: Vec<Excess>,
    open: Option<Run>,
    runs: u64,
}

/// Records whose delay has not returned.
#[derive(Clone, Copy, Debug)]
struct Run {
    excess: Excess,
    largest_at: Micros,
    /// The delay over the least one once the receiver's kernel has released what it held behind the lost segment.
    left_us: u64,
    peak_bps: Option<u64>,
    window_from: Micros,
    window_bytes: u64,
}

impl Held {
    /// Of a constant rate over a path with this round trip.
    pub(crate) fn new(rate_bps: u64, frame_bytes: u64, round_trip: Micros) -> Self {
        let frame_us = u128::from(frame_bytes) * 8_000_000 / u128::from(rate_bps.max(1));
        let frames = Micros(u64::try_from(frame_us).unwrap_or(u64::MAX).saturating_mul(WINDOW_FRAMES));
        Self {
            rate_bps,
            frame_bytes,
            threshold_us: (round_trip.0 / 2).max(LEAST_THRESHOLD_US),
            grown_at: Micros(round_trip.0.saturating_mul(GROWTH_ROUND_TRIPS)).max(LEAST_GROWTH),
            window: frames.max(LEAST_WINDOW),
            ended: Vec::new(),
            open: None,
            runs: 0,
        }
    }

    /// Takes an arrival at this time since the first one, whose delay is above the least one by `excess_us`.
    pub(crate) fn took(&mut self, at: Micros, excess_us: u64) {
        let Some(mut run) = self.open.or_else(|| self.begun(at, excess_us)) else { return };
        let has_returned = excess_us < RETURNED_US;
        if excess_us > run.excess.excess_us {
            run.excess.excess_us = excess_us;
            (run.largest_at, run.peak_bps) = (at, None);
        }
        if at.since(run.largest_at) <= RELEASE {
            run.left_us = excess_us;
            (run.window_from, run.window_bytes) = (at, 0);
        } else {
            run.window_bytes = run.window_bytes.saturating_add(self.frame_bytes);
            let length = at.since(run.window_from);
            if has_returned || length >= self.window {
                let rate_bps = crate::rate_bps(2, length.0, run.window_bytes);
                run.peak_bps = run.peak_bps.max(Some(rate_bps));
                (run.window_from, run.window_bytes) = (at, 0);
            }
        }
        self.open = Some(run);
        if has_returned {
            let recovery_us = Some(at.since(Micros(run.excess.at_us)).0);
            self.open = None;
            if self.ended.len() < MOST_EXCESSES {
                self.ended.push(Excess { recovery_us, ..self.described(run) });
            }
        }
    }

    /// The runs, also those beyond the ones that are kept.
    pub(crate) fn runs(&self) -> u64 {
        self.runs
    }

    /// The runs that are kept.
    pub(crate) fn all(&self) -> Vec<Excess> {
        let open = self.open.map(|run| self.described(run));
        self.ended.iter().copied().chain(open).take(MOST_EXCESSES).collect()
    }

    /// A run begins when its first record should have arrived.
    fn begun(&mut self, at: Micros, excess_us: u64) -> Option<Run> {
        if excess_us <= self.threshold_us || at < self.grown_at {
            return None;
        }
        self.runs = self.runs.saturating_add(1);
        let at_us = at.since(Micros(excess_us)).0;
        let excess = Excess { at_us, ..Excess::default() };
        let (largest_at, window_from) = (at, at);
        Some(Run { excess, largest_at, left_us: excess_us, peak_bps: None, window_from, window_bytes: 0 })
    }

    fn described(&self, run: Run) -> Excess {
        let waiting = |us: u64| {
            let bits = u128::from(us) * u128::from(self.rate_bps);
            u64::try_from(bits / 8_000_000).unwrap_or(u64::MAX)
        };
        let repair_us = run.largest_at.since(Micros(run.excess.at_us)).0;
        let too_late_bytes = waiting(run.left_us.saturating_sub(RETURNED_US));
        let peak_bps = run.peak_bps.unwrap_or(0);
        let predicted_us = predicted_recovery_us(repair_us, too_late_bytes, peak_bps, self.rate_bps);
        let backlog_bytes = Some(waiting(run.left_us));
        Excess { peak_bps: run.peak_bps, backlog_bytes, predicted_us, ..run.excess }
    }
}

/// The time from a loss until records are on time again, by the study's formula (tcpdelay): backlog / (peak - rate).
/// TCP first needs `repair_us` to find and repair the loss and to regain the rate; then the delay is greatest. The
/// records that arrived behind the lost segment are released with it, so `backlog_bytes` are those that then still
/// wait in the sender. `None`: there are such, and the peak does not exceed the rate, so they stay.
pub fn predicted_recovery_us(
    repair_us: u64,
    backlog_bytes: u64,
    peak_bps: u64,
    rate_bps: u64,
) -> Option<u64> {
    if backlog_bytes == 0 {
        return Some(repair_us);
    }
    let headroom_bps = peak_bps.checked_sub(rate_bps).filter(|headroom| *headroom > 0)?;
    let catch_up_us = u128::from(backlog_bytes) * 8_000_000 / u128::from(headroom_bps);
    Some(repair_us.saturating_add(u64::try_from(catch_up_us).unwrap_or(u64::MAX)))
}

const LEAST_THRESHOLD_US: u64 = 5_000;
const RETURNED_US: u64 = 1_000;
/// The records that the receiver's kernel releases come within this time of the first.
const RELEASE: Micros = Micros::from_millis(1);
/// Peaks are rates over windows of at least this time and of so many frames, so that a frame more or less does not
/// matter.
const LEAST_WINDOW: Micros = Micros::from_millis(10);
const WINDOW_FRAMES: u64 = 20;
const LEAST_GROWTH: Micros = Micros::from_secs(1);
const GROWTH_ROUND_TRIPS: u64 = 20;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RATE_BPS: u64 = 8_000_000;

    /// Records of 1,000 bytes each millisecond.
    fn held() -> Held {
        Held::new(RATE_BPS, 1_000, Micros::from_millis(40))
    }

    /// Arrivals of records that were held for 40 ms and then leave at this rate; returns the runs.
    fn stalled(peak_bps: u64) -> Vec<Excess> {
        let mut held = held();
        let spacing_us = 8_000_000_000 / peak_bps;
        for number in 0..2_000_u64 {
            let due = number * 1_000;
            let released = 1_240_000 + number.saturating_sub(1_200) * spacing_us;
            let at = if number < 1_200 { due } else { due.max(released) };
            held.took(Micros(at), at - due);
        }
        held.all()
    }

    #[test]
    fn a_stall_is_caught_up_in_the_time_of_the_formula() {
        let [excess] = stalled(10_000_000)[..] else { panic!("one run") };
        assert_eq!((excess.at_us, excess.excess_us, excess.lost), (1_200_000, 40_000, 0));
        assert_eq!((excess.peak_bps, excess.backlog_bytes), (Some(10_000_000), Some(39_800)));
        let (recovery_us, predicted_us) = (excess.recovery_us.unwrap(), excess.predicted_us.unwrap());
        assert!(recovery_us.abs_diff(197_000) < 2_000, "{recovery_us}");
        assert!(predicted_us.abs_diff(recovery_us) < recovery_us / 50, "{predicted_us}, {recovery_us}");
    }

    #[test]
    fn records_that_waited_at_the_receiver_alone_cost_no_more_than_the_repair() {
        let mut held = held();
        held.took(Micros(1_100_000), 0);
        (0..40).for_each(|number| held.took(Micros(1_240_000), 40_000 - number * 1_000));
        held.took(Micros(1_240_100), 100);
        let [excess] = held.all()[..] else { panic!("one run") };
        assert_eq!((excess.recovery_us, excess.predicted_us), (Some(40_100), Some(40_000)));
        assert_eq!((excess.peak_bps, excess.backlog_bytes), (None, Some(100)));
    }

    #[test]
    fn a_peak_below_the_rate_predicts_nothing() {
        let [excess] = stalled(7_000_000)[..] else { panic!("one run") };
        assert_eq!((excess.recovery_us, excess.predicted_us), (None, None));
        assert_eq!(predicted_recovery_us(5, 1_000, 8, 8), None);
        assert_eq!(predicted_recovery_us(5, 1_000, 16_000_000, 8_000_000), Some(1_005));
        assert_eq!(predicted_recovery_us(u64::MAX, u64::MAX, 1, 0), Some(u64::MAX));
        assert_eq!(predicted_recovery_us(5, 0, 0, 8), Some(5));
    }

    #[test]
    fn slow_start_and_small_excesses_are_no_losses() {
        let mut held = held();
        held.took(Micros::from_millis(500), 300_000);
        held.took(Micros::from_millis(2_000), 20_000);
        assert_eq!((held.runs(), held.all()), (0, Vec::new()));
        held.took(Micros::from_millis(3_000), 20_001);
        assert_eq!(held.runs(), 1);
    }

    #[test]
    fn only_the_first_runs_are_kept_and_all_are_counted() {
        let mut held = held();
        for number in 0..300 {
            held.took(Micros::from_millis(2_000 + number * 100), 50_000);
            held.took(Micros::from_millis(2_050 + number * 100), 0);
        }
        held.took(Micros::from_secs(900), 50_000);
        assert_eq!((held.runs(), held.all().len()), (301, MOST_EXCESSES));
    }

    proptest! {
        #[test]
        fn absurd_numbers_do_no_harm(
            rate_bps: u64, frame_bytes: u64, round_trip: u64, arrivals: Vec<(u64, u64)>,
        ) {
            let mut held = Held::new(rate_bps, frame_bytes, Micros(round_trip));
            arrivals.into_iter().for_each(|(at, excess_us)| held.took(Micros(at), excess_us));
            prop_assert!(held.all().len() <= MOST_EXCESSES);
        }
    }
}
