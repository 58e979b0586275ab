//! Wake-up delay of the machine, as observed by a thread that only sleeps.

use std::io::Read as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::Outcome;

/// Sleeps until stdin ends, and prints the worst oversleep and the 99th percentile, in microseconds.
pub(crate) fn run() -> Outcome {
    let ended = AtomicBool::new(false);
    let mut late_us = std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| oversleeps(&ended));
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        ended.store(true, Ordering::Relaxed);
        sleeper.join().unwrap_or_default()
    });
    let figures = json!({
        "sleeps": late_us.len(), "p99_us": percentile(&mut late_us, 99), "worst_us": percentile(&mut late_us, 100),
    });
    println!("{figures}");
    Ok(())
}

/// The smallest figure that `percent` of all do not exceed; 0 if there are none.
pub(crate) fn percentile(figures: &mut [u64], percent: usize) -> u64 {
    figures.sort_unstable();
    let rank = (figures.len() * percent).div_ceil(100);
    figures.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

fn oversleeps(ended: &AtomicBool) -> Vec<u64> {
    let mut late_us = Vec::new();
    while !ended.load(Ordering::Relaxed) {
        let began = Instant::now();
        std::thread::sleep(PAUSE);
        late_us.push(u64::try_from(began.elapsed().saturating_sub(PAUSE).as_micros()).unwrap_or(u64::MAX));
    }
    late_us
}

const PAUSE: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_figures() {
        let mut figures: Vec<u64> = (1..=200).rev().collect();
        assert_eq!(percentile(&mut figures, 50), 100);
        assert_eq!(percentile(&mut figures, 99), 198);
        assert_eq!(percentile(&mut figures, 100), 200);
        assert_eq!(percentile(&mut [7], 1), 7);
        assert_eq!(percentile(&mut [], 99), 0);
    }
}
