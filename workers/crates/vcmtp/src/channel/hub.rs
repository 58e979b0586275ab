use bytes::{Buf as _, Bytes};
use downburst_model::Micros;

use super::RepairChannel;
use super::seal::End;
use super::site::{HEARD, REPAIR, REQUEST};
use crate::Request;

/// The hub's half of a repair channel. It has no timers and waits for nothing: the site asks again.
pub struct HubChannel {
    end: End,
    /// The latest stamp of the site's.
    stamp: u64,
    requests: Requests,
}

/// What an authentic request was.
#[derive(Debug, PartialEq, Eq)]
pub struct Heard {
    /// What the site lacks, or lost; `None` if it only wants to know whether datagrams get through.
    pub request: Option<Request>,
    /// Send this back to where the request came from.
    pub answer: Bytes,
    /// No later one was heard: where it came from is where the site is now.
    pub newest: bool,
}

/// How many requests the site may make.
#[derive(Debug)]
struct Requests {
    left: u64,
    counted: Micros,
}

impl HubChannel {
    /// The hub's end of what a site was given.
    pub fn new(channel: &RepairChannel) -> Self {
        let requests = Requests { left: REQUESTS_AT_ONCE, counted: Micros(0) };
        Self { end: End::of_hub(channel), stamp: 0, requests }
    }

    /// Reads a datagram. `None` if it is not the site's, a repetition, malformed, overtaken by requests that
    /// were made much later, or one too many.
    pub fn hear(&mut self, now: Micros, datagram: Bytes) -> Option<Heard> {
        let opened = self.end.open(datagram)?;
        let mut body = opened.body;
        if opened.kind != REQUEST || !self.requests.take(now) {
            return None;
        }
        let stamp = body.try_get_u64().ok()?;
        // What it asks for came since, or was asked for again.
        if stamp.saturating_add(OVERTAKEN.0) < self.stamp {
            return None;
        }
        self.stamp = self.stamp.max(stamp);
        let request = Request::decode(&body)?;
        let answer = self.end.seal(HEARD, stamp, &[])?;
        let request = Some(request).filter(|request| !request.packets.is_empty() || request.losses.is_some());
        Some(Heard { request, answer, newest: opened.newest })
    }

    /// Seals a packet that this site alone gets.
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

/// As the hold-off of a repair: a path does not reorder by more.
const OVERTAKEN: Micros = crate::sender::repairs::HOLD_OFF;

/// A receiver gathers what it lacks for a millisecond; pieces of long requests come together.
const REQUEST_PERIOD: Micros = Micros(500);
const REQUESTS_AT_ONCE: u64 = 400;
