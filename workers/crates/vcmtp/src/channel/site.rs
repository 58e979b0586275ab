use std::collections::{BTreeMap, VecDeque};

use bytes::{Buf as _, Bytes};
use downburst_model::{Micros, RangeSet};

use super::RepairChannel;
use super::round_trip::RoundTrip;
use super::seal::End;
use crate::Request;

/// The site's half of a repair channel: sends requests, detects unanswered ones, and reports that datagrams
/// don't get through.
///
/// | state | event | next |
/// |---|---|---|
/// | shut | a request | sent over the session |
/// | shut | a probe is due | a request without packets, at doubling intervals, [`FIRST_PROBE`] to [`LAST_PROBE`] |
/// | shut | an answer | open |
/// | open | a request | sent; awaited for the measured round trip, twice as long after each unanswered one |
/// | open | an answer | the request got through; the wait is no longer doubled |
/// | open | no answer in time | its packets that are still missing are requested again |
/// | open | [`UNANSWERED`] requests without answer, none for [`SILENCE`] | shut; all requests use the session |
///
/// It begins shut, with a probe due immediately, so that a firewall costs no time.
pub(crate) struct SiteChannel {
    end: End,
    open: bool,
    /// Requests without an answer in the time that the path needs.
    unanswered: u32,
    answered_at: Micros,
    round_trip: RoundTrip,
    awaited: BTreeMap<u64, Awaited>,
    doublings: u32,
    doubled_at: Micros,
    probe_at: Micros,
    probe_wait: Micros,
    dice: u64,
    out: VecDeque<Bytes>,
}

/// A request without an answer yet.
struct Awaited {
    packets: RangeSet,
    sent: Micros,
    due: Micros,
}

/// A datagram from the hub.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A request got through.
    Heard,
    Repair {
        packet: u64,
        payload: Bytes,
    },
}

impl SiteChannel {
    pub(crate) fn new(channel: &RepairChannel) -> Self {
        Self {
            end: End::of_site(channel),
            open: false,
            unanswered: 0,
            answered_at: Micros(0),
            round_trip: RoundTrip::default(),
            awaited: BTreeMap::new(),
            doublings: 0,
            doubled_at: Micros(0),
            probe_at: Micros(0),
            probe_wait: FIRST_PROBE,
            dice: u64::from(channel.id),
            out: VecDeque::new(),
        }
    }

    /// Sends a request; returns it if it must be sent over the session.
    pub(crate) fn ask(&mut self, now: Micros, request: Request) -> Option<Request> {
        if !self.open || self.awaited.len() >= AWAITED {
            return Some(Request { unanswered: !self.open && self.unanswered >= UNANSWERED, ..request });
        }
        for piece in request.pieces(RANGES) {
            self.send(now, &piece);
        }
        None
    }

    /// True while requests are sent as datagrams.
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// The time that a repair may take after its request: the hub waits for other requests, and hosts are busy.
    pub(crate) fn retry_wait(&self) -> Option<Micros> {
        self.open.then(|| self.round_trip.patience().plus(REPAIR_SLACK))
    }

    /// Reads a datagram of the hub; `None` if it is not the hub's, repeated, or of unknown meaning.
    pub(crate) fn take(&mut self, now: Micros, datagram: Bytes) -> Option<Answer> {
        let opened = self.end.open(datagram)?;
        let mut body = opened.body;
        let number = body.try_get_u64().ok()?;
        let answer = match opened.kind {
            HEARD => {
                self.awaited.remove(&number);
                self.round_trip.sample(now.since(Micros(number)));
                Answer::Heard
            }
            REPAIR => Answer::Repair { packet: number, payload: body },
            _ => return None,
        };
        (self.open, self.unanswered, self.doublings, self.answered_at) = (true, 0, 0, now);
        Some(answer)
    }

    /// Performs the actions that are due; returns the packets of unanswered requests.
    pub(crate) fn advance(&mut self, now: Micros) -> RangeSet {
        if !self.open && self.probe_at <= now {
            self.probe(now);
        }
        let late: Vec<u64> =
            self.awaited.iter().filter(|(_, request)| request.due <= now).map(|(stamp, _)| *stamp).collect();
        let mut vain = RangeSet::new();
        for request in late.iter().filter_map(|stamp| self.awaited.remove(stamp)) {
            self.unanswered = self.unanswered.saturating_add(1);
            if request.sent >= self.doubled_at {
                (self.doublings, self.doubled_at) = (self.doublings + 1, now);
            }
            add(&mut vain, &request.packets);
        }
        if self.open && self.unanswered >= UNANSWERED && now.since(self.answered_at) >= SILENCE {
            self.shut(now, &mut vain);
        }
        vain
    }

    pub(crate) fn deadline(&self) -> Option<Micros> {
        let probe = (!self.open).then_some(self.probe_at);
        self.awaited.values().map(|request| request.due).chain(probe).min()
    }

    /// The next datagram to send.
    pub(crate) fn next_datagram(&mut self) -> Option<Bytes> {
        self.out.pop_front()
    }

    fn send(&mut self, now: Micros, request: &Request) {
        // Stamps also identify requests: those of the same moment differ by a microsecond.
        let stamp =
            self.awaited.last_key_value().map_or(now.0, |(last, _)| now.0.max(last.saturating_add(1)));
        let Some(datagram) = self.end.seal(REQUEST, stamp, &request.encode()) else { return };
        self.out.push_back(datagram);
        let patience = self.round_trip.patience().0.saturating_mul(1 << self.doublings.min(MOST_DOUBLINGS));
        let due = now.plus(Micros(patience.saturating_add(self.random(patience / 4))));
        self.awaited.insert(stamp, Awaited { packets: request.packets.clone(), sent: now, due });
    }

    fn probe(&mut self, now: Micros) {
        self.send(now, &Request::default());
        let jitter = self.random(self.probe_wait.0 / 4);
        self.probe_at = now.plus(self.probe_wait).plus(Micros(jitter));
        self.probe_wait = Micros(self.probe_wait.0.saturating_mul(2)).min(LAST_PROBE);
    }

    fn shut(&mut self, now: Micros, vain: &mut RangeSet) {
        self.open = false;
        std::mem::take(&mut self.awaited).values().for_each(|request| add(vain, &request.packets));
        (self.doublings, self.probe_wait) = (0, FIRST_PROBE);
        self.probe_at = now.plus(PROBE_AFTER_SILENCE);
    }

    /// SplitMix64: sites that lost the same packet must not repeat requests at the same moment. Not for secrets.
    fn random(&mut self, below: u64) -> u64 {
        self.dice = self.dice.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.dice ^ self.dice >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31).checked_rem(below).unwrap_or(0)
    }
}

fn add(to: &mut RangeSet, packets: &RangeSet) {
    packets.iter().for_each(|(first, last)| {
        to.insert(first, last);
    });
}

pub(super) const REQUEST: u8 = 1;
pub(super) const HEARD: u8 = 2;
pub(super) const REPAIR: u8 = 3;

/// Each range takes at most ten bytes in CBOR for fewer than 2^32 packets of a leg, so a request is shorter
/// than the data.
const RANGES: usize = 64;

/// The maximum number of requests under way: 1 ms apart they fill the longest path.
const AWAITED: usize = 1_024;

/// With a loss of a tenth, both directions together, so many go unanswered by chance once in a million times.
const UNANSWERED: u32 = 6;

/// A busy host, with answers queued behind the group's datagrams, or a change of route may take so long.
const SILENCE: Micros = Micros::from_secs(2);

const FIRST_PROBE: Micros = Micros::from_millis(100);
const LAST_PROBE: Micros = Micros::from_secs(60);
const PROBE_AFTER_SILENCE: Micros = Micros::from_secs(1);
const MOST_DOUBLINGS: u32 = 6;

/// The hub's hold for a second request, and the time that pacing and two busy hosts add to a round trip.
const REPAIR_SLACK: Micros = Micros::from_millis(15);
