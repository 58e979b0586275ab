use std::collections::{BTreeMap, VecDeque};

use bytes::{Buf as _, Bytes};
use downburst_model::{Micros, RangeSet};

use super::RepairChannel;
use super::round_trip::RoundTrip;
use super::seal::End;
use crate::Request;

/// The site's half of a repair channel: sends requests, notices unanswered ones, and reports when datagrams
/// don't get through.
///
/// | state | event | next |
/// |---|---|---|
/// | shut | a request | it goes by the session |
/// | shut | a probe is due | a request without packets, at intervals doubling from [`FIRST_PROBE`] to [`LAST_PROBE`] |
/// | shut | an answer | open |
/// | open | a request | sent; awaited for the measured round trip, twice as long for each that was in vain |
/// | open | an answer | the request got through; it is not doubled any more |
/// | open | no answer in time | what is still missing of it is asked for again |
/// | open | [`UNANSWERED`] without answer, none for [`SILENCE`] | shut; all requests go by the session |
///
/// It begins shut, with a probe that is due immediately: a firewall costs no time.
pub(crate) struct SiteChannel {
    end: End,
    open: bool,
    /// Datagrams did not get through in all the time a path needs.
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

/// A request on its way.
struct Awaited {
    packets: RangeSet,
    sent: Micros,
    due: Micros,
}

/// What came from the hub.
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

    /// Sends a request; returns it if it has to go by the session.
    pub(crate) fn ask(&mut self, now: Micros, request: Request) -> Option<Request> {
        if !self.open || self.awaited.len() >= AWAITED {
            return Some(Request { unanswered: !self.open && self.unanswered >= UNANSWERED, ..request });
        }
        for piece in request.pieces(RANGES) {
            self.send(now, &piece);
        }
        None
    }

    /// True while requests go by datagrams.
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// How long after a request its repair may take: the hub waits for others to ask, and hosts are busy.
    pub(crate) fn retry_wait(&self) -> Option<Micros> {
        self.open.then(|| self.round_trip.patience().plus(REPAIR_SLACK))
    }

    /// Reads a datagram of the hub; `None` if it is not the hub's, came before, or means nothing.
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

    /// Does what is due; returns what was asked for in vain.
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

    /// What leaves next.
    pub(crate) fn next_datagram(&mut self) -> Option<Bytes> {
        self.out.pop_front()
    }

    fn send(&mut self, now: Micros, request: &Request) {
        // Stamps are the requests' names as well: those of one moment differ by a microsecond.
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

    /// SplitMix64: sites that lost the same packet shall not ask again at the same moment; nothing secret hangs on it.
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

/// Each takes at most ten bytes in CBOR while a leg sent less than 2^32 packets: with them a request is
/// shorter than the data.
const RANGES: usize = 64;

/// Requests on their way at once: 1 ms apart they fill the longest path.
const AWAITED: usize = 1_024;

/// Chance leaves so many without an answer once in a million times where a tenth is lost, way and back together.
const UNANSWERED: u32 = 6;

/// A busy host, whose answers wait behind the group's datagrams, or a route that changes may take so long.
const SILENCE: Micros = Micros::from_secs(2);

const FIRST_PROBE: Micros = Micros::from_millis(100);
const LAST_PROBE: Micros = Micros::from_secs(60);
const PROBE_AFTER_SILENCE: Micros = Micros::from_secs(1);
const MOST_DOUBLINGS: u32 = 6;

/// The hub's hold for a second asker, and the time that a pacing hub and two busy hosts add to a round trip.
const REPAIR_SLACK: Micros = Micros::from_millis(15);
