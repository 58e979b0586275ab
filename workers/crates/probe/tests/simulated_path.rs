//! Sweeps over a simulated path: a link of a known rate behind a queue of a known size, and a share of losses.
#![allow(clippy::unwrap_used)]
use downburst_model::{Micros, Now, WallMicros};
use downburst_probe::{
    Due, Figures, Knee, Packet, PacketKind, Receiver, Schedule, Sent, Step, StepResult, Sweep,
};
use proptest::prelude::*;

/// A link with a queue before it.
struct Path {
    rate_bps: u64,
    queue_bytes: u64,
    delay: Micros,
    /// Every packet with a number that this divides is lost; 0: none.
    loses_each: u64,
    /// The time at which the link has sent all that it holds, nanoseconds.
    free_at_ns: u64,
}

impl Path {
    fn of(rate_bps: u64, queue_bytes: u64) -> Self {
        Self { rate_bps, queue_bytes, delay: Micros::from_millis(20), loses_each: 0, free_at_ns: 0 }
    }

    /// The arrival of a frame that enters now; `None`: it is lost.
    fn carry(&mut self, now: Micros, number: u64) -> Option<Micros> {
        let now_ns = now.0 * 1_000;
        let queued_ns = self.free_at_ns.saturating_sub(now_ns);
        let queued_bytes = u128::from(queued_ns) * u128::from(self.rate_bps) / 8_000_000_000;
        let is_lost = self.loses_each > 0 && number % self.loses_each == self.loses_each - 1;
        if queued_bytes + u128::from(FRAME_BYTES) > u128::from(self.queue_bytes) || is_lost {
            return None;
        }
        self.free_at_ns = self.free_at_ns.max(now_ns) + FRAME_BYTES * 8_000_000_000 / self.rate_bps;
        Some(Micros(self.free_at_ns / 1_000).plus(self.delay))
    }

    fn run(&mut self, step: Step, begin: Micros) -> (Sent, Figures) {
        let mut schedule = Schedule::begin(begin, step, FRAME_BYTES);
        let mut receiver = Receiver::new(FRAME_BYTES, step.packets(FRAME_BYTES) + 2);
        let mut now = begin;
        loop {
            match schedule.look(now) {
                Due::Send(number) => {
                    let sent = WallMicros(now.0 as i64);
                    let packet = Packet { kind: PacketKind::Load, step: 0, number, sent };
                    if let Some(at) = self.carry(now, number) {
                        receiver.took(Now { monotonic: at, wall: WallMicros(at.0 as i64) }, &packet);
                    }
                }
                Due::At(due) => now = due,
                Due::Over => return (schedule.sent(), receiver.finish(schedule.sent().packets)),
            }
        }
    }

    fn sweep(&mut self, megabits: &[u64]) -> (Vec<StepResult>, Knee) {
        let step = |rate: &u64| Step { rate_bps: rate * 1_000_000, duration: Micros::from_millis(500) };
        let mut sweep = Sweep::new(megabits.iter().map(step).collect(), FRAME_BYTES);
        let (mut results, mut begin) = (Vec::new(), Micros(0));
        while let Some(step) = sweep.next_step() {
            let (sent, figures) = self.run(step, begin);
            results.push(StepResult { step, sent, figures });
            sweep.took(results.last().unwrap());
            begin = begin.plus(step.duration).plus(Micros::from_secs(2));
        }
        (results, sweep.knee())
    }
}

#[test]
fn the_knee_of_a_link_is_its_rate_and_steps_below_lose_nothing() {
    let (results, knee) = Path::of(40_000_000, 50_000).sweep(&[5, 10, 20, 40, 80]);
    let bps = knee.bps.unwrap();
    assert!((38_000_000..=42_000_000).contains(&bps), "{bps}");
    assert_eq!(knee.reason, None);
    let below = results.iter().filter(|result| result.step.rate_bps < 38_000_000);
    assert!(below.clone().count() >= 3 && below.clone().all(|result| result.figures.lost == 0));
    let first = results.first().unwrap().figures.delay.unwrap();
    assert!((20_000..20_500).contains(&first.min) && first.max < 21_000, "{first:?}");
}

#[test]
fn losses_that_are_not_of_the_rate_leave_the_knee_unknown() {
    let mut path = Path::of(40_000_000, 50_000);
    path.loses_each = 100;
    let (_, knee) = path.sweep(&[10, 20]);
    assert_eq!(knee.bps, None);
    assert!(knee.reason.unwrap().contains("the lowest, lost"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_link_within_the_sweep_is_found(rate_kbps in 6_000_u64..75_000, queue_bytes in 12_000_u64..200_000) {
        let rate_bps = rate_kbps * 1_000;
        let (results, knee) = Path::of(rate_bps, queue_bytes).sweep(&[5, 10, 20, 40, 80]);
        let bps = knee.bps.unwrap();
        prop_assert!(bps * 100 >= rate_bps * 95 && bps * 100 <= rate_bps * 105, "{bps} of {rate_bps}");
        for result in results {
            let figures = &result.figures;
            prop_assert_eq!(figures.sent, figures.received + figures.lost);
            prop_assert!(figures.bps(FRAME_BYTES) <= rate_bps + rate_bps / 100);
        }
    }
}

const FRAME_BYTES: u64 = 1_246;
