use downburst_model::bounds::OFFSET_MAX_US;
use downburst_model::{Micros, Now, WallMicros};
use downburst_offset::{Estimate, Estimator, Exchange, Taken};

use crate::{ClockOffset, ClockReply, ClockRequest, Receipt};

/// Compares the site's clock with the hub's: four exchanges in a row, then after a quarter of a second, after twice as
/// long each time, and at last every five seconds, which also keeps the connection alive. After a step of a clock it
/// begins again.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    estimator: Estimator,
    sent: Option<WallMicros>,
    rapid_left: u8,
    pause: Micros,
    next_at: Option<Micros>,
    /// Both clocks at the last look, which show a step of the wall clock.
    seen: Option<Now>,
}

impl Clock {
    /// Starts the comparison on a newly accepted connection.
    pub(crate) fn start(&mut self, now: Now) {
        *self = Self { seen: Some(now), ..Self::default() };
        self.hurry(now);
    }

    /// Stops at the end of the connection.
    pub(crate) fn stop(&mut self) {
        (self.sent, self.next_at) = (None, None);
    }

    /// The request that is due.
    pub(crate) fn due(&mut self, now: Now) -> Option<ClockRequest> {
        self.next_at.filter(|at| *at <= now.monotonic)?;
        self.look(now);
        let rapid = self.rapid_left > 0;
        self.rapid_left = self.rapid_left.saturating_sub(1);
        if !rapid {
            self.pause = Micros(self.pause.0.saturating_mul(2)).min(EXCHANGE_INTERVAL);
        }
        // A rapid exchange is followed by its reply: the pause only counts if that fails to come.
        self.next_at = Some(now.monotonic.plus(if rapid { EXCHANGE_INTERVAL } else { self.pause }));
        self.sent = Some(now.wall);
        Some(ClockRequest { sent: now.wall })
    }

    /// Takes an answer. An answer to another request, or one with impossible stamps, is ignored.
    pub(crate) fn reply(&mut self, now: Now, reply: &ClockReply) -> Option<Estimate> {
        self.look(now);
        self.sent.take_if(|sent| *sent == reply.request_sent)?;
        self.plan_after_reply(now);
        let taken = self.estimator.take(Exchange {
            sent: reply.request_sent.0,
            received: reply.received.0,
            replied: reply.sent.0,
            returned: now.wall.0,
        });
        match taken {
            Taken::Kept => {}
            Taken::Stepped => self.hurry(now),
            Taken::Refused => return None,
        }
        self.estimator.at(now.wall.0)
    }

    /// The offset of the stamps in a batch of receipts, or of `now` if it has none. The bound holds for the oldest and
    /// the newest of them.
    pub(crate) fn offset_of(&self, receipts: &[Receipt], now: Now) -> Option<ClockOffset> {
        let stamps = || receipts.iter().map(|receipt| receipt.site_stored.0);
        let newest = self.estimator.at(stamps().max().unwrap_or(now.wall.0))?;
        let oldest = self.estimator.at(stamps().min().unwrap_or(now.wall.0))?;
        let apart_us = newest.offset_us.abs_diff(oldest.offset_us);
        let bound_us = newest.bound_us.max(oldest.bound_us.saturating_add(apart_us));
        let round_trip_us = newest.round_trip_us;
        Some(ClockOffset {
            offset_us: newest.offset_us,
            bound_us: bound_us.min(OFFSET_MAX_US),
            round_trip_us,
        })
    }

    /// The shortest of the recent round trips.
    pub(crate) fn round_trip(&self) -> Option<Micros> {
        self.estimator.round_trip_us().map(Micros)
    }

    pub(crate) fn deadline(&self) -> Option<Micros> {
        self.next_at
    }

    /// Four exchanges in a row from now.
    fn hurry(&mut self, now: Now) {
        (self.rapid_left, self.pause, self.next_at) = (RAPID_EXCHANGES, FIRST_PAUSE, Some(now.monotonic));
    }

    fn plan_after_reply(&mut self, now: Now) {
        if self.rapid_left > 0 {
            self.next_at = Some(now.monotonic);
        } else if self.pause == FIRST_PAUSE {
            self.next_at = Some(now.monotonic.plus(FIRST_PAUSE));
        }
    }

    /// A wall clock that left the course of the monotonic one was stepped: what was compared before is void, and so is
    /// the exchange under way. The kernel corrects both clocks' rates together.
    fn look(&mut self, now: Now) {
        let Some(seen) = self.seen.replace(now) else { return };
        let passed_us = now.monotonic.since(seen.monotonic).0;
        let moved_us = i128::from(now.wall.0) - i128::from(seen.wall.0);
        if (moved_us - i128::from(passed_us)).unsigned_abs() > u128::from(STEP.0 + passed_us / STEP_PART) {
            self.estimator.forget();
            self.sent = None;
            self.hurry(now);
        }
    }
}

const RAPID_EXCHANGES: u8 = 4;
const FIRST_PAUSE: Micros = Micros::from_millis(250);
const EXCHANGE_INTERVAL: Micros = Micros::from_secs(5);

/// The clocks are read one after the other, and a thread may wait between them: this much, and a thousandth of the
/// time that passed, is no step.
const STEP: Micros = Micros::from_millis(2);
const STEP_PART: u64 = 1_000;
