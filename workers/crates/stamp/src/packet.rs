//! The packets of sender and reflector (RFC 8762, sections 4.2 and 4.3; the session's identifier of RFC 8972).
use thiserror::Error;

use crate::estimate::ErrorEstimate;
use crate::key::{Key, TAG_OCTETS};
use crate::octets::{put, take};
use crate::time::WallNanos;

/// A request of a session-sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Counts from 0.
    pub sequence: u32,
    /// The moment of sending, in the format that the estimate names.
    pub stamp: u64,
    /// The error of the sender's clock.
    pub estimate: ErrorEstimate,
    /// The session's identifier; 0: none.
    pub session: u16,
}

/// The answer of a session-reflector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The reflector's own count, or a copy of the request's.
    pub sequence: u32,
    /// The moment of answering.
    pub stamp: u64,
    /// The error of the reflector's clock.
    pub estimate: ErrorEstimate,
    /// The session's identifier.
    pub session: u16,
    /// The moment at which the request arrived, in the reflector's format.
    pub received: u64,
    /// The request's sequence.
    pub request_sequence: u32,
    /// The request's stamp.
    pub request_stamp: u64,
    /// The request's error estimate.
    pub request_estimate: ErrorEstimate,
    /// The TTL or hop limit with which the request arrived; `None`: the answer ends before it, or says 0.
    pub ttl: Option<u8>,
}

/// A packet is none of this protocol.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Malformed {
    /// It ends before its fields.
    #[error("the packet has fewer octets than its mode needs")]
    TooShort,
    /// Its tag is not of the shared key.
    #[error("the packet's authentication code is not of the shared key")]
    NotAuthentic,
}

impl Request {
    /// Reads a request; octets behind it are an [extension](crate::tlv).
    pub fn read(octets: &[u8], key: Option<&Key>) -> Result<Self, Malformed> {
        let layout = Layout::of(key);
        authenticate(octets, key)?;
        Ok(Self {
            sequence: number(octets, 0)?,
            stamp: stamp(octets, layout.stamp)?,
            estimate: estimate(octets, layout.estimate)?,
            session: take(octets, layout.session).map_or(0, u16::from_be_bytes),
        })
    }

    /// The packet, without an extension.
    pub fn write(&self, key: Option<&Key>) -> Vec<u8> {
        let layout = Layout::of(key);
        let mut octets = vec![0; layout.octets];
        put(&mut octets, 0, self.sequence.to_be_bytes());
        put(&mut octets, layout.stamp, self.stamp.to_be_bytes());
        put(&mut octets, layout.estimate, self.estimate.bits().to_be_bytes());
        put(&mut octets, layout.session, self.session.to_be_bytes());
        seal(&mut octets, key);
        octets
    }
}

impl Answer {
    /// Reads an answer. The open mode takes those of TWAMP Light too, of 41 octets, or 38 without a TTL (RFC 5357,
    /// section 4.2.1).
    pub fn read(octets: &[u8], key: Option<&Key>) -> Result<Self, Malformed> {
        let layout = Layout::of(key);
        authenticate(octets, key)?;
        let ttl = take(octets, layout.ttl).map(u8::from_be_bytes);
        Ok(Self {
            sequence: number(octets, 0)?,
            stamp: stamp(octets, layout.stamp)?,
            estimate: estimate(octets, layout.estimate)?,
            session: take(octets, layout.session).map_or(0, u16::from_be_bytes),
            received: stamp(octets, layout.received)?,
            request_sequence: number(octets, layout.request_sequence)?,
            request_stamp: stamp(octets, layout.request_stamp)?,
            request_estimate: estimate(octets, layout.request_estimate)?,
            ttl: ttl.filter(|ttl| *ttl != 0),
        })
    }

    /// The packet, without an extension.
    pub fn write(&self, key: Option<&Key>) -> Vec<u8> {
        let layout = Layout::of(key);
        let mut octets = vec![0; layout.octets];
        put(&mut octets, 0, self.sequence.to_be_bytes());
        put(&mut octets, layout.stamp, self.stamp.to_be_bytes());
        put(&mut octets, layout.estimate, self.estimate.bits().to_be_bytes());
        put(&mut octets, layout.session, self.session.to_be_bytes());
        put(&mut octets, layout.received, self.received.to_be_bytes());
        put(&mut octets, layout.request_sequence, self.request_sequence.to_be_bytes());
        put(&mut octets, layout.request_stamp, self.request_stamp.to_be_bytes());
        put(&mut octets, layout.request_estimate, self.request_estimate.bits().to_be_bytes());
        put(&mut octets, layout.ttl, [self.ttl.unwrap_or(0)]);
        seal(&mut octets, key);
        octets
    }

    /// The moment at which the request arrived, by the reflector's clock.
    pub fn received_at(&self) -> WallNanos {
        self.estimate.format.decode(self.received)
    }

    /// The moment at which the answer left, by the reflector's clock.
    pub fn sent_at(&self) -> WallNanos {
        self.estimate.format.decode(self.stamp)
    }
}

/// Octets of a packet of this mode, without an extension.
pub(crate) fn base_octets(key: Option<&Key>) -> usize {
    Layout::of(key).octets
}

/// Octets of a packet of the open mode.
pub const OPEN_OCTETS: usize = OPEN.octets;

/// Octets of a packet of the authenticated mode.
pub const SEALED_OCTETS: usize = SEALED.octets;

/// Places of fields. The sequence is at 0, the tag at the end.
struct Layout {
    octets: usize,
    stamp: usize,
    estimate: usize,
    session: usize,
    received: usize,
    request_sequence: usize,
    request_stamp: usize,
    request_estimate: usize,
    ttl: usize,
}

impl Layout {
    fn of(key: Option<&Key>) -> &'static Self {
        if key.is_some() { &SEALED } else { &OPEN }
    }
}

fn number(octets: &[u8], at: usize) -> Result<u32, Malformed> {
    take(octets, at).map(u32::from_be_bytes).ok_or(Malformed::TooShort)
}

fn stamp(octets: &[u8], at: usize) -> Result<u64, Malformed> {
    take(octets, at).map(u64::from_be_bytes).ok_or(Malformed::TooShort)
}

fn estimate(octets: &[u8], at: usize) -> Result<ErrorEstimate, Malformed> {
    let bits = take(octets, at).map(u16::from_be_bytes).ok_or(Malformed::TooShort)?;
    Ok(ErrorEstimate::from_bits(bits))
}

fn authenticate(octets: &[u8], key: Option<&Key>) -> Result<(), Malformed> {
    let Some(key) = key else { return Ok(()) };
    let (covered, rest) = octets.split_at_checked(COVERED_OCTETS).ok_or(Malformed::TooShort)?;
    let tag = take(rest, 0).ok_or(Malformed::TooShort)?;
    if key.accepts(&[covered], tag) { Ok(()) } else { Err(Malformed::NotAuthentic) }
}

/// Writes the tag of a packet of the authenticated mode.
fn seal(octets: &mut [u8], key: Option<&Key>) {
    if let Some((covered, rest)) = octets.split_at_mut_checked(COVERED_OCTETS)
        && let Some(key) = key
    {
        put(rest, 0, key.tag(&[covered]));
    }
}

const OPEN: Layout = Layout {
    octets: 44,
    stamp: 4,
    estimate: 12,
    session: 14,
    received: 16,
    request_sequence: 24,
    request_stamp: 28,
    request_estimate: 36,
    ttl: 40,
};

const SEALED: Layout = Layout {
    octets: COVERED_OCTETS + TAG_OCTETS,
    stamp: 16,
    estimate: 24,
    session: 26,
    received: 32,
    request_sequence: 48,
    request_stamp: 64,
    request_estimate: 72,
    ttl: 80,
};

const COVERED_OCTETS: usize = 96;
