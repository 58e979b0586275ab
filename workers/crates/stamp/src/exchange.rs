//! One request with its answer.
use downburst_model::Micros;

use crate::packet::Answer;
use crate::time::WallNanos;

/// One request and its answer; times by the clock that took them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    pub(crate) sent: WallNanos,
    pub(crate) answered: WallNanos,
    pub(crate) sent_error: Option<u64>,
    pub(crate) answer: Answer,
    /// The time of the exchange by the monotonic clock.
    pub(crate) elapsed: Micros,
}

impl Exchange {
    pub(crate) fn sequences(&self) -> (u32, u32) {
        (self.answer.request_sequence, self.answer.sequence)
    }

    pub(crate) fn forward(&self) -> i64 {
        self.answer.received_at().since(self.sent)
    }

    pub(crate) fn backward(&self) -> i64 {
        self.answered.since(self.answer.sent_at())
    }

    pub(crate) fn residence(&self) -> i64 {
        self.answer.sent_at().since(self.answer.received_at())
    }

    pub(crate) fn round_trip(&self) -> i64 {
        self.answered.since(self.sent).saturating_sub(self.residence())
    }

    /// The wall clock was not set in between, and the reflector's stamps fit into the exchange, but for the resolution
    /// of its stamps.
    pub(crate) fn is_sound(&self) -> bool {
        let wall = self.answered.since(self.sent);
        let elapsed = i64::try_from(self.elapsed.0.saturating_mul(1_000)).unwrap_or(i64::MAX);
        let was_set = wall.abs_diff(elapsed) > MOST_DRIFT_NANOS;
        !was_set && self.residence() >= 0 && self.round_trip() >= 0
    }
}

/// The kernel's stamp is earlier than the moment at which a busy process reads the monotonic clock.
const MOST_DRIFT_NANOS: u64 = 500_000_000;
