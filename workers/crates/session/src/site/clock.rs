use std::collections::VecDeque;

use downburst_model::{Micros, Now, WallMicros};

use crate::{ClockOffset, ClockReply, ClockRequest};

/// Compares the site's clock with the hub's: four exchanges in a row, then one every five seconds, which also
/// keeps the connection alive. Of the last eight exchanges, the one with the shortest round trip is used.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    samples: VecDeque<Sample>,
    sent: Option<WallMicros>,
    rapid_left: u8,
    next_at: Option<Micros>,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    offset_us: i64,
    round_trip_us: u64,
}

impl Clock {
    /// Starts the comparison on a newly accepted connection.
    pub(crate) fn start(&mut self, now: Now) {
        *self = Self { rapid_left: RAPID_EXCHANGES, next_at: Some(now.monotonic), ..Self::default() };
    }

    /// Stops at the end of the connection.
    pub(crate) fn stop(&mut self) {
        (self.sent, self.next_at) = (None, None);
    }

    /// The request that is due.
    pub(crate) fn due(&mut self, now: Now) -> Option<ClockRequest> {
        self.next_at.filter(|at| *at <= now.monotonic)?;
        self.rapid_left = self.rapid_left.saturating_sub(1);
        self.next_at = Some(now.monotonic.plus(EXCHANGE_INTERVAL));
        self.sent = Some(now.wall);
        Some(ClockRequest { sent: now.wall })
    }

    /// Takes an answer. An answer to another request, or one with impossible stamps, is ignored.
    pub(crate) fn reply(&mut self, now: Now, reply: &ClockReply) -> Option<ClockOffset> {
        self.sent.take_if(|sent| *sent == reply.request_sent)?;
        if self.rapid_left > 0 {
            self.next_at = Some(now.monotonic);
        }
        let outward = reply.request_sent.0.checked_sub(reply.received.0)?;
        let back = now.wall.0.checked_sub(reply.sent.0)?;
        let round_trip_us = u64::try_from(back.checked_sub(outward)?).ok()?;
        let offset_us = outward.checked_add(back)? / 2;
        self.samples.push_back(Sample { offset_us, round_trip_us });
        if self.samples.len() > SAMPLES {
            self.samples.pop_front();
        }
        self.offset()
    }

    /// The best of the recent samples.
    pub(crate) fn offset(&self) -> Option<ClockOffset> {
        let best = self.samples.iter().min_by_key(|sample| sample.round_trip_us)?;
        let (offset_us, round_trip_us) = (best.offset_us, best.round_trip_us);
        Some(ClockOffset { offset_us, bound_us: round_trip_us.div_ceil(2), round_trip_us })
    }

    pub(crate) fn deadline(&self) -> Option<Micros> {
        self.next_at
    }
}

const RAPID_EXCHANGES: u8 = 4;
const EXCHANGE_INTERVAL: Micros = Micros::from_secs(5);
const SAMPLES: usize = 8;
