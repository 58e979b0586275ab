use bytes::{Buf as _, Bytes};
use downburst_model::Micros;

use super::RepairChannel;
use super::seal::End;
use super::site::{HEARD, REPAIR, REQUEST};
use crate::Request;

/// The hub's half of a repair channel. It has no timers: the site repeats its requests.
pub struct HubChannel {
    end: End,
    /// The site's latest stamp.
    stamp: u64,
    requests: Requests,
}

/// An authentic request.
#[derive(Debug, PartialEq, Eq)]
pub struct Heard {
    /// The missing packets or the losses of the site; `None` for a mere probe.
    pub request: Option<Request>,
    /// To be sent to the source of the request.
    pub answer: Bytes,
    /// True if no later request has arrived: its source is the site's current address.
    pub newest: bool,
}

/// The limit on the site's requests.
#[derive(Debug)]
struct Requests {
    left: u64,
    counted: Micros,
}

impl HubChannel {
    /// The hub's end of a channel given to a site.
    pub fn new(channel: &RepairChannel) -> Self {
        let requests = Requests { left: REQUESTS_AT_ONCE, counted: Micros(0) };
        Self { end: End::of_hub(channel), stamp: 0, requests }
    }

    /// Reads a datagram. `None` if it is not the site's, repeated, malformed, overtaken by much later requests,
    /// or over the limit.
    pub fn hear(&mut self, now: Micros, datagram: Bytes) -> Option<Heard> {
        let opened = self.end.open(datagram)?;
        let mut body = opened.body;
        if opened.kind != REQUEST || !self.requests.take(now) {
            return None;
        }
        let stamp = body.try_get_u64().ok()?;
        // The requested packets have since arrived, or were requested again.
        if stamp.saturating_add(OVERTAKEN.0) < self.stamp {
            return None;
        }
        self.stamp = self.stamp.max(stamp);
        let request = Request::decode(&body)?;
        let answer = self.end.seal(HEARD, stamp, &[])?;
        let request = Some(request).filter(|request| !request.packets.is_empty() || request.losses.is_some());
        Some(Heard { request, answer, newest: opened.newest })
    }

    /// Seals a repair for this site alone.
    pub fn repair(&mut self, packet: u64, payload: &[u8]) -> Option<Bytes> {
        self.end.seal(REPAIR, packet, payload)
    }
}

impl Requests {
    fn take(&mut self, now: Micros) -> bool {
        let earned = now.since(self.counted).0 / REQUEST_PERIOD.0;
        if earned > 0 {
            self.left = self.left.saturating_add(earned).min(REQUESTS_AT_ONCE);
            self.counted = now;
        }
        let taken = self.left > 0;
        self.left = self.left.saturating_sub(1);
        taken
    }
}

/// Equal to the hold-off of a repair: no path reorders by more.
const OVERTAKEN: Micros = crate::sender::repairs::HOLD_OFF;

/// A receiver collects losses for a millisecond; the pieces of a long request arrive together.
const REQUEST_PERIOD: Micros = Micros(500);
const REQUESTS_AT_ONCE: u64 = 400;
