//! The reflector: answers requests.
use std::collections::BTreeMap;
use std::net::SocketAddr;

use downburst_model::{Micros, SourceBudget};
use serde::Serialize;
use thiserror::Error;

use crate::estimate::ErrorEstimate;
use crate::key::Key;
use crate::packet::{Answer, Malformed, Request, base_octets};
use crate::time::{Format, WallNanos};
use crate::tlv::{self, Ends};

/// The settings of a reflector.
#[derive(Clone, Debug)]
pub struct ReflectorSettings {
    /// The shared key: only authenticated requests are answered.
    pub key: Option<Key>,
    /// Counts the answers of each session, which shows a sender the direction of its losses. Without it, an answer
    /// repeats the request's sequence.
    pub stateful: bool,
    /// The most sessions that are counted at a time; further ones are refused.
    pub most_sessions: usize,
    /// A session without requests for this time is forgotten; its sequence begins again at 0.
    pub session_expiry: Micros,
    /// The most requests of one source in a second.
    pub requests_per_second: u32,
}

/// The circumstances in which a request arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Its ends.
    pub ends: Ends,
    /// By the monotonic clock.
    pub at: Micros,
    /// By the wall clock; the kernel's stamp where there is one.
    pub wall: WallNanos,
    /// Its TTL or hop limit, if known.
    pub ttl: Option<u8>,
}

/// A request that is not answered, with the reason.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Refusal {
    /// No request of this mode, or not of the shared key.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// An answer would be larger than this request.
    #[error("the request is shorter than an answer")]
    Shorter,
    /// It is an answer of a reflector: two of them would answer each other without end.
    #[error("the packet is an answer of another reflector")]
    IsAnswer,
    /// Its source asks more often than the settings allow.
    #[error("the source sends more requests per second than are allowed")]
    TooFrequent,
    /// There are as many sessions as the settings allow.
    #[error("no further session is counted")]
    NoRoom,
}

/// The numbers of requests so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Answered.
    pub answered: u64,
    /// Too short, or an answer.
    pub malformed: u64,
    /// Not of the shared key.
    pub not_authentic: u64,
    /// Beyond the budget of their source.
    pub too_frequent: u64,
    /// Of sessions beyond the most.
    pub no_room: u64,
}

/// An answer that lacks its moment of sending.
#[derive(Debug)]
pub struct Pending {
    answer: Answer,
    key: Option<Key>,
    octets: Vec<u8>,
}

/// Answers requests. An answer has as many octets as its request.
#[derive(Debug)]
pub struct Reflector {
    settings: ReflectorSettings,
    budget: SourceBudget,
    sessions: BTreeMap<(SocketAddr, SocketAddr, u16), Session>,
    swept: Micros,
    counts: Counts,
}

#[derive(Debug)]
struct Session {
    next: u32,
    seen: Micros,
}

impl Reflector {
    /// A reflector that has answered nothing yet.
    pub fn new(settings: ReflectorSettings) -> Self {
        let budget = SourceBudget::new(settings.requests_per_second, MOST_SOURCES);
        Self { settings, budget, sessions: BTreeMap::new(), swept: Micros(0), counts: Counts::default() }
    }

    /// The numbers of requests so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Takes a request; [`Pending::send_at`] makes its answer.
    pub fn take(&mut self, octets: &[u8], arrival: &Arrival) -> Result<Pending, Refusal> {
        let taken = self.consider(octets, arrival);
        let count = match &taken {
            Ok(_) => &mut self.counts.answered,
            Err(Refusal::Malformed(Malformed::NotAuthentic)) => &mut self.counts.not_authentic,
            Err(Refusal::TooFrequent) => &mut self.counts.too_frequent,
            Err(Refusal::NoRoom) => &mut self.counts.no_room,
            Err(_) => &mut self.counts.malformed,
        };
        *count = count.saturating_add(1);
        taken
    }

    fn consider(&mut self, octets: &[u8], arrival: &Arrival) -> Result<Pending, Refusal> {
        if !self.budget.take(arrival.ends.source.ip(), arrival.at) {
            return Err(Refusal::TooFrequent);
        }
        let key = self.settings.key.clone();
        let least = if key.is_some() { base_octets(key.as_ref()) } else { TWAMP_LIGHT_OCTETS };
        if octets.len() < least {
            return Err(Refusal::Shorter);
        }
        let request = Request::read(octets, key.as_ref())?;
        if is_answer(octets, key.as_ref(), arrival.wall) {
            return Err(Refusal::IsAnswer);
        }
        let sequence = self.sequence(&request, arrival)?;
        let mut octets = octets.to_vec();
        if let Some(extension) = octets.get_mut(base_octets(key.as_ref())..) {
            tlv::reflect(extension, &arrival.ends, request.sequence, key.as_ref());
            if let Some(key) = &key {
                tlv::retag(extension, sequence, key);
            }
        }
        Ok(Pending { answer: answer(&request, sequence, arrival), key, octets })
    }

    /// The sequence of the answer.
    fn sequence(&mut self, request: &Request, arrival: &Arrival) -> Result<u32, Refusal> {
        if !self.settings.stateful {
            return Ok(request.sequence);
        }
        self.sweep(arrival.at);
        let name = (arrival.ends.source, arrival.ends.destination, request.session);
        let has_room = self.sessions.len() < self.settings.most_sessions;
        if !has_room && !self.sessions.contains_key(&name) {
            return Err(Refusal::NoRoom);
        }
        let session = self.sessions.entry(name).or_insert(Session { next: 0, seen: arrival.at });
        if arrival.at.0.saturating_sub(session.seen.0) > self.settings.session_expiry.0 {
            session.next = 0;
        }
        let sequence = session.next;
        session.next = sequence.wrapping_add(1);
        session.seen = arrival.at;
        Ok(sequence)
    }

    /// At most one sweep per second: a full table costs a flood's victim no more.
    fn sweep(&mut self, at: Micros) {
        if at.0.saturating_sub(self.swept.0) >= SWEEP_INTERVAL.0 {
            self.swept = at;
            let expiry = self.settings.session_expiry.0;
            self.sessions.retain(|_, session| at.0.saturating_sub(session.seen.0) <= expiry);
        }
    }
}

impl Pending {
    /// The answer that leaves at this moment of the wall clock, with the clock's error.
    pub fn send_at(mut self, wall: WallNanos, estimate: ErrorEstimate) -> Vec<u8> {
        // Both stamps of an answer have the format that its estimate names.
        self.answer.received = estimate.format.encode(Format::Ntp.decode(self.answer.received));
        self.answer.stamp = estimate.format.encode(wall);
        self.answer.estimate = estimate;
        for (place, octet) in self.octets.iter_mut().zip(self.answer.write(self.key.as_ref())) {
            *place = octet;
        }
        self.octets
    }
}

fn answer(request: &Request, sequence: u32, arrival: &Arrival) -> Answer {
    Answer {
        sequence,
        stamp: 0,
        estimate: ErrorEstimate::unknown(Format::Ntp),
        session: request.session,
        received: Format::Ntp.encode(arrival.wall),
        request_sequence: request.sequence,
        request_stamp: request.stamp,
        request_estimate: request.estimate,
        ttl: arrival.ttl,
    }
}

/// Whether a reflector wrote this: where a request has zeros or padding, an answer has the present time.
fn is_answer(octets: &[u8], key: Option<&Key>, now: WallNanos) -> bool {
    let Ok(answer) = Answer::read(octets, key) else { return false };
    answer.received != 0 && answer.received_at().since(now).unsigned_abs() < A_DAY_NANOS
}

/// TWAMP Light's requests are padded to the size of its answers (RFC 5357, section 4.2.1).
const TWAMP_LIGHT_OCTETS: usize = 41;

const MOST_SOURCES: usize = 4_096;
const SWEEP_INTERVAL: Micros = Micros(1_000_000);
const A_DAY_NANOS: u64 = 86_400_000_000_000;
