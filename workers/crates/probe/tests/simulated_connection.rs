//! A constant rate over a simulated connection: TCP loses one segment, repairs it after a round trip, and then sends at
//! the path's rate.
#![allow(clippy::unwrap_used)]
use downburst_model::{Micros, Now, WallMicros};
use downburst_probe::{Due, Excess, Figures, Packet, PacketKind, Receiver, Schedule, Step};
use proptest::prelude::*;

/// A connection over a path of this rate, which delivers nothing from a loss until its repair.
struct Connection {
    path_bps: u64,
    stalls: (Micros, Micros),
    /// The time at which the path has sent all that it holds.
    free_at: Micros,
}

impl Connection {
    /// The time at which the connection has taken a record that is written now, and the time of its arrival.
    fn carry(&mut self, now: Micros) -> (Micros, Micros) {
        let frame = Micros(FRAME_BYTES * 8_000_000 / self.path_bps);
        let (from, to) = self.stalls;
        let begin = self.free_at.max(now);
        let begin = if begin >= from && begin < to { to } else { begin };
        self.free_at = begin.plus(frame);
        (begin, self.free_at.plus(DELAY))
    }

    fn run(&mut self, rate_bps: u64) -> Figures {
        let step = Step { rate_bps, duration: Micros::from_secs(6) };
        let mut schedule = Schedule::queued(Micros(0), step, FRAME_BYTES);
        let mut receiver = Receiver::new(FRAME_BYTES, u64::MAX).over_tcp(rate_bps, Micros(2 * DELAY.0));
        let mut now = Micros(0);
        loop {
            match schedule.look(now) {
                Due::Send(number) => {
                    let sent = WallMicros(schedule.last_due().0 as i64);
                    let packet = Packet { kind: PacketKind::Load, step: 0, number, sent };
                    let (taken, at) = self.carry(now);
                    receiver.took(Now { monotonic: at, wall: WallMicros(at.0 as i64) }, &packet);
                    now = taken;
                }
                Due::At(due) => now = due,
                Due::Over => return receiver.finish(schedule.sent().packets),
            }
        }
    }
}

/// The excess after a stall of this length, of a rate in percent of the path's.
fn after_a_stall(percent: u64, stall: Micros) -> Vec<Excess> {
    let from = Micros::from_secs(3);
    let mut connection =
        Connection { path_bps: PATH_BPS, stalls: (from, from.plus(stall)), free_at: Micros(0) };
    let figures = connection.run(PATH_BPS * percent / 100);
    assert_eq!((figures.lost, figures.reordered, figures.losses), (0, 0, figures.excess.len() as u64));
    figures.excess
}

#[test]
fn four_fifths_of_the_path_recover_in_the_time_of_the_formula() {
    let [excess] = after_a_stall(80, Micros::from_millis(40))[..] else { panic!("one run") };
    assert!(excess.excess_us >= 39_000 && excess.backlog_bytes.unwrap() > 70_000, "{excess:?}");
    assert!(excess.peak_bps.unwrap().abs_diff(PATH_BPS) < PATH_BPS / 50, "{excess:?}");
    let (recovery_us, predicted_us) = (excess.recovery_us.unwrap(), excess.predicted_us.unwrap());
    assert!(recovery_us.abs_diff(predicted_us) < recovery_us / 10, "{excess:?}");
}

#[test]
fn hardly_less_than_the_path_does_not_return() {
    let [excess] = after_a_stall(99, Micros::from_millis(40))[..] else { panic!("one run") };
    assert_eq!(excess.recovery_us, None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn any_stall_and_rate_with_headroom_follow_the_formula(percent in 30_u64..90, stall_ms in 25_u64..150) {
        let all = after_a_stall(percent, Micros::from_millis(stall_ms));
        let [excess] = all[..] else { panic!("{all:?}") };
        let (recovery_us, predicted_us) = (excess.recovery_us.unwrap(), excess.predicted_us.unwrap());
        prop_assert!(recovery_us.abs_diff(predicted_us) < recovery_us * 3 / 10, "{excess:?}");
    }
}

const PATH_BPS: u64 = 20_000_000;
const FRAME_BYTES: u64 = 1_518;
const DELAY: Micros = Micros::from_millis(20);
