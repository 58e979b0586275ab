//! The sender: which packets are due.
use downburst_model::Micros;
use minicbor::{Decode, Encode};

use crate::{Control, Step, rate_bps};

/// The packets of one step, evenly spaced.
#[derive(Clone, Debug)]
pub struct Schedule {
    step: Step,
    begin: Micros,
    frame_bytes: u64,
    /// The time that the schedule gave up, since the sender was too late to catch up without a burst.
    given_up: Micros,
    /// The lateness that is caught up.
    patience: Micros,
    /// True: packets wait while the connection is behind; only lateness after a sleep is the sender's own.
    queues: bool,
    slept: bool,
    next: u64,
    first_at: Option<Micros>,
    last_at: Micros,
    lag: Micros,
}

/// The next thing for a sender to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Send the packet with this number.
    Send(u64),
    /// Nothing before this time.
    At(Micros),
    /// The step is over.
    Over,
}

/// The packets that a sender sent in a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Sent {
    /// The packets.
    #[n(0)]
    pub packets: u64,
    /// From the first to the last.
    #[n(1)]
    pub elapsed_us: u64,
    /// The greatest lateness of a packet behind the schedule.
    #[n(2)]
    pub lag_us: u64,
    /// Of a connection.
    #[n(3)]
    pub tcp: Option<SentByTcp>,
}

/// The sender's kernel about a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SentByTcp {
    /// The congestion control that it used; absent: not known.
    #[n(0)]
    pub control: Option<Control>,
    /// The segments that it repeated; absent: not known.
    #[n(1)]
    pub retransmits: Option<u64>,
}

impl Schedule {
    /// A step that begins now.
    pub fn begin(now: Micros, step: Step, frame_bytes: u64) -> Self {
        Self::with(now, step, frame_bytes, LONGEST_LAG, false)
    }

    /// A step of records over a connection that begins now. Those that are due wait while the connection is behind; of
    /// more than [`LONGEST_WAIT`], the schedule gives the rest up, which counts as the sender's lag.
    pub fn queued(now: Micros, step: Step, frame_bytes: u64) -> Self {
        Self::with(now, step, frame_bytes, LONGEST_WAIT, true)
    }

    fn with(now: Micros, step: Step, frame_bytes: u64, patience: Micros, queues: bool) -> Self {
        Self {
            step,
            begin: now,
            frame_bytes: frame_bytes.max(1),
            given_up: Micros(0),
            patience,
            queues,
            slept: true,
            next: 0,
            first_at: None,
            last_at: now,
            lag: Micros(0),
        }
    }

    /// The next thing to do. A packet that is due counts as sent, unless [`Schedule::not_sent`] takes it back.
    pub fn look(&mut self, now: Micros) -> Due {
        let due = self.due();
        if due >= self.end() || now >= self.end().plus(self.patience) {
            return Due::Over;
        }
        if due > now {
            self.slept = true;
            return Due::At(due);
        }
        let late = now.since(due);
        // Packets sent in one burst would measure a queue, not the path: those are given up, and the rate falls short.
        self.given_up = self.given_up.plus(late.since(self.patience));
        let own = if !self.queues || self.slept { late } else { self.given_up };
        self.lag = self.lag.max(own);
        self.slept = false;
        self.first_at.get_or_insert(now);
        self.last_at = now;
        self.next = self.next.saturating_add(1);
        Due::Send(self.next.saturating_sub(1))
    }

    /// The time at which the last packet was due.
    pub fn last_due(&self) -> Micros {
        self.due_of(self.next.saturating_sub(1))
    }

    /// Takes back the last packet: the host did not accept it.
    pub fn not_sent(&mut self) {
        self.next = self.next.saturating_sub(1);
    }

    /// The packets sent so far.
    pub fn sent(&self) -> Sent {
        let first = self.first_at.unwrap_or(self.last_at);
        Sent { packets: self.next, elapsed_us: self.last_at.since(first).0, lag_us: self.lag.0, tcp: None }
    }

    fn due(&self) -> Micros {
        self.due_of(self.next)
    }

    fn due_of(&self, number: u64) -> Micros {
        let bits = u128::from(number).saturating_mul(u128::from(self.frame_bytes) * 8);
        let offset_us = bits.saturating_mul(1_000_000) / u128::from(self.step.rate_bps.max(1));
        self.begin.plus(self.given_up).plus(Micros(u64::try_from(offset_us).unwrap_or(u64::MAX)))
    }

    fn end(&self) -> Micros {
        self.begin.plus(self.step.duration)
    }
}

impl Sent {
    /// The rate of the frames sent, bits per second; 0 with fewer than two packets.
    pub fn bps(&self, frame_bytes: u64) -> u64 {
        rate_bps(self.packets, self.elapsed_us, frame_bytes)
    }
}

/// The lateness that a sender catches up: the buffer of a switch takes such a burst.
const LONGEST_LAG: Micros = Micros::from_millis(5);
/// The time for which records of a connection wait at most.
pub const LONGEST_WAIT: Micros = Micros::from_secs(10);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STEP: Step = Step { rate_bps: 8_000_000, duration: Micros::from_millis(100) };

    /// Runs a schedule that wakes late by what `late` says, and returns the times of the packets.
    fn run(mut schedule: Schedule, mut late: impl FnMut() -> u64) -> (Schedule, Vec<u64>) {
        let (mut now, mut sent) = (Micros(50), Vec::new());
        loop {
            match schedule.look(now) {
                Due::Send(number) => {
                    assert_eq!(number, sent.len() as u64);
                    sent.push(now.0);
                }
                Due::At(due) => now = due.plus(Micros(late())),
                Due::Over => return (schedule, sent),
            }
        }
    }

    fn begun() -> Schedule {
        Schedule::begin(Micros(50), STEP, 1_000)
    }

    #[test]
    fn packets_leave_evenly_spaced_at_the_rate_of_their_frames() {
        let (schedule, times) = run(begun(), || 0);
        assert_eq!(times, (0..100).map(|number| 50 + number * 1_000).collect::<Vec<u64>>());
        assert_eq!(schedule.sent(), Sent { packets: 100, elapsed_us: 99_000, lag_us: 0, tcp: None });
        assert_eq!(schedule.sent().bps(1_000), 8_000_000);
    }

    #[test]
    fn a_short_delay_is_caught_up_and_a_long_one_is_given_up() {
        let mut delays = [0, 0, 4_000].into_iter();
        let (schedule, times) = run(begun(), || delays.next().unwrap_or(0));
        assert_eq!((times.len(), schedule.sent().lag_us), (100, 4_000));
        let mut delays = [0, 0, 50_000].into_iter();
        let (schedule, times) = run(begun(), || delays.next().unwrap_or(0));
        assert_eq!((times.len(), schedule.sent().lag_us), (55, 50_000));
        assert!(schedule.sent().bps(1_000) < 4_600_000);
    }

    #[test]
    fn a_packet_that_the_host_refuses_is_due_again() {
        let mut schedule = begun();
        assert_eq!(schedule.look(Micros(50)), Due::Send(0));
        schedule.not_sent();
        assert_eq!((schedule.look(Micros(60)), schedule.sent().packets), (Due::Send(0), 1));
    }

    #[test]
    fn records_wait_for_a_connection_that_is_behind_and_only_a_long_wait_is_the_senders_lag() {
        let mut schedule = Schedule::queued(Micros(50), STEP, 1_000);
        assert_eq!((schedule.look(Micros(50)), schedule.last_due()), (Due::Send(0), Micros(50)));
        for number in 1..100 {
            assert_eq!(schedule.look(Micros(500_000)), Due::Send(number));
            assert_eq!(schedule.last_due(), Micros(50 + number * 1_000));
        }
        assert_eq!((schedule.look(Micros(500_000)), schedule.sent().lag_us), (Due::Over, 0));
        let mut schedule =
            Schedule::queued(Micros(0), Step { duration: Micros::from_secs(60), ..STEP }, 1_000);
        schedule.look(Micros(0));
        assert_eq!(schedule.look(Micros(2_000)), Due::Send(1));
        assert_eq!(schedule.look(LONGEST_WAIT.plus(Micros(52_000))), Due::Send(2));
        assert_eq!(schedule.sent().lag_us, 50_000);
        assert_eq!(schedule.last_due(), Micros(52_000));
    }

    #[test]
    fn a_sender_that_sleeps_past_the_end_sends_no_more() {
        let mut schedule = begun();
        assert_eq!(schedule.look(Micros::from_secs(9)), Due::Over);
        assert_eq!((schedule.sent(), schedule.sent().bps(1_000)), (Sent::default(), 0));
    }

    proptest! {
        #[test]
        fn no_rate_sends_more_than_asked_nor_bursts(
            rate_bps in 1_u64..10_000_000_000, millis in 1_u64..50, frame_bytes in 64_u64..1_600,
            late in prop::collection::vec(0_u64..20_000, 1..40),
        ) {
            let step = Step { rate_bps, duration: Micros::from_millis(millis) };
            let mut late = late.into_iter().cycle();
            let (schedule, times) =
                run(Schedule::begin(Micros(50), step, frame_bytes), || late.next().unwrap_or(0));
            prop_assert!(times.len() as u64 <= step.packets(frame_bytes) + 1);
            prop_assert!(times.last().is_none_or(|last| *last < 50 + millis * 1_000 + LONGEST_LAG.0));
            prop_assert_eq!(schedule.sent().packets, times.len() as u64);
        }

        #[test]
        fn absurd_numbers_do_no_harm(rate_bps: u64, duration: u64, frame_bytes: u64, now: u64) {
            let step = Step { rate_bps, duration: Micros(duration) };
            let mut schedule = Schedule::begin(Micros(now), step, frame_bytes);
            for later in [0, 1, u64::MAX] {
                schedule.look(Micros(now.saturating_add(later)));
            }
            schedule.sent().bps(frame_bytes);
        }
    }
}
