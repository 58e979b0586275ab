//! The relay (RFC 7450, section 5.3).
//!
//! | a gateway sends | the relay |
//! |---|---|
//! | discovery | answers with its address |
//! | request | answers with one query, which has a code for the gateway's address; it notes nothing |
//! | update with that code | notes the report's memberships for the query's time, joins and leaves channels |
//! | teardown with that code | forgets the endpoint |
//! | nothing for the membership time | forgets its memberships |
mod limits;
mod memberships;

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use downburst_model::{Micros, SourceBudget};
use thiserror::Error;

use crate::code::Codes;
use crate::ip::Malformed;
use crate::membership::{Channel, Family, general_query, read_report};
use crate::message::Message;
use memberships::Memberships;

pub use limits::{Network, RelaySettings};

/// Answers gateways, and knows who receives which channel.
#[derive(Debug)]
pub struct Relay {
    settings: RelaySettings,
    codes: Codes,
    budget: SourceBudget,
    memberships: Memberships,
    changes: VecDeque<Change>,
    counts: RelayCounts,
}

/// A channel to join or to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The first gateway wants it.
    Join(Channel),
    /// The last one does not want it any more.
    Leave(Channel),
}

/// A message that is not answered or not carried out, with the reason.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Refusal {
    /// None of a gateway's messages.
    #[error("the message can't be read: {0}")]
    Malformed(#[from] Malformed),
    /// The network of its source sends more than the settings allow.
    #[error("its source sends more messages per second than are allowed")]
    TooFrequent,
    /// Its code is not of this endpoint, or too old.
    #[error("its code was not made for this endpoint")]
    NotAuthentic,
    /// As many tunnels or channels as the settings allow.
    #[error("there is no room for a further tunnel or group")]
    NoRoom,
    /// A group that this relay does not carry.
    #[error("the group is none that this relay carries")]
    NotCarried,
}

/// The numbers of messages so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelayCounts {
    /// Discoveries answered.
    pub advertised: u64,
    /// Requests answered.
    pub queried: u64,
    /// Updates carried out.
    pub updated: u64,
    /// Refused: of another kind, or cut.
    pub malformed: u64,
    /// Refused: beyond the rate of their source.
    pub too_frequent: u64,
    /// Refused: forged, or very late.
    pub not_authentic: u64,
    /// Refused: no room.
    pub no_room: u64,
    /// Refused: of groups that are not carried.
    pub not_carried: u64,
}

impl Relay {
    /// A relay without tunnels. `secret` is random: it makes the codes.
    pub fn new(settings: RelaySettings, secret: &[u8; 32]) -> Self {
        let budget = SourceBudget::new(settings.messages_per_second, MOST_SOURCES);
        let memberships = Memberships::new(&settings);
        let counts = RelayCounts::default();
        Self { settings, codes: Codes::new(secret), budget, memberships, changes: VecDeque::new(), counts }
    }

    /// Takes a message of `gateway`, which arrived at this host's address `here`; returns the answer, if it has one.
    ///
    /// # Errors
    ///
    /// A [`Refusal`], which is not sent.
    pub fn take(
        &mut self,
        now: Micros,
        gateway: SocketAddr,
        here: IpAddr,
        octets: &[u8],
    ) -> Result<Option<Vec<u8>>, Refusal> {
        let taken = self.answer(now, gateway, here, octets);
        if let Err(refusal) = &taken {
            self.counts.refuse(*refusal);
        }
        taken
    }

    /// The next channel to join or to leave.
    pub fn poll_change(&mut self) -> Option<Change> {
        self.changes.pop_front()
    }

    /// Forgets memberships that were not renewed; at most one look in [`LOOK_INTERVAL`].
    pub fn wake(&mut self, now: Micros) {
        self.memberships.expire(now, &mut self.changes);
    }

    /// The gateways that receive packets of this source to this group.
    pub fn receivers(&self, source: IpAddr, group: IpAddr) -> impl Iterator<Item = SocketAddr> {
        self.memberships.receivers(source, group)
    }

    /// The number of tunnels: gateways that receive a group.
    pub fn tunnels(&self) -> usize {
        self.memberships.tunnels()
    }

    /// True if the gateway receives a group.
    pub fn has_tunnel(&self, gateway: SocketAddr) -> bool {
        self.memberships.has_tunnel(gateway)
    }

    /// The number of channels that are joined.
    pub fn channels(&self) -> usize {
        self.memberships.channels()
    }

    /// The numbers of messages so far.
    pub fn counts(&self) -> RelayCounts {
        self.counts
    }

    fn answer(
        &mut self,
        now: Micros,
        gateway: SocketAddr,
        here: IpAddr,
        octets: &[u8],
    ) -> Result<Option<Vec<u8>>, Refusal> {
        if !self.budget.take(gateway.ip(), now) {
            return Err(Refusal::TooFrequent);
        }
        match Message::read(octets)? {
            Message::Discovery { nonce } => {
                self.counts.advertised += 1;
                let relay = self.settings.address_for(here);
                Ok(Some(Message::Advertisement { nonce, relay }.write()))
            }
            Message::Request { nonce, family } => Ok(Some(self.query(now, gateway, nonce, family))),
            Message::Update { code, nonce, report } => {
                self.check(now, gateway, nonce, code)?;
                self.update(now, gateway, report).map(|()| None)
            }
            Message::Teardown { code, nonce, gateway } => {
                self.check(now, gateway, nonce, code)?;
                self.memberships.forget(gateway, &mut self.changes);
                Ok(None)
            }
            // A relay's own messages.
            Message::Advertisement { .. } | Message::Query { .. } | Message::Data(_) => {
                Err(Refusal::Malformed(Malformed::OtherKind))
            }
        }
    }

    /// One query, of at most [`LONGEST_QUERY`] octets.
    fn query(&mut self, now: Micros, gateway: SocketAddr, nonce: u32, family: Family) -> Vec<u8> {
        self.counts.queried += 1;
        Message::Query {
            is_full: !self.memberships.has_room_for(gateway),
            code: self.codes.code(now, gateway, nonce),
            nonce,
            query: &general_query(family, self.settings.times()),
            gateway: Some(gateway),
        }
        .write()
    }

    fn check(&self, now: Micros, gateway: SocketAddr, nonce: u32, code: [u8; 6]) -> Result<(), Refusal> {
        self.codes.accepts(now, gateway, nonce, code).then_some(()).ok_or(Refusal::NotAuthentic)
    }

    /// The records of a report are carried out one by one; the first that is refused is the answer.
    fn update(&mut self, now: Micros, gateway: SocketAddr, report: &[u8]) -> Result<(), Refusal> {
        let records = read_report(report)?;
        let until = now.plus(self.settings.times().membership());
        let mut outcome = Ok(());
        for record in records {
            let done = if self.settings.carries(record.group) {
                self.memberships.take(gateway, until, &record, &mut self.changes)
            } else {
                Err(Refusal::NotCarried)
            };
            outcome = outcome.and(done);
        }
        if outcome.is_ok() {
            self.counts.updated += 1;
        }
        outcome
    }
}

impl RelayCounts {
    fn refuse(&mut self, refusal: Refusal) {
        let count = match refusal {
            Refusal::Malformed(_) => &mut self.malformed,
            Refusal::TooFrequent => &mut self.too_frequent,
            Refusal::NotAuthentic => &mut self.not_authentic,
            Refusal::NoRoom => &mut self.no_room,
            Refusal::NotCarried => &mut self.not_carried,
        };
        *count += 1;
    }

    /// All refused messages.
    pub fn refused(&self) -> u64 {
        let Self { malformed, too_frequent, not_authentic, no_room, not_carried, .. } = self;
        malformed + too_frequent + not_authentic + no_room + not_carried
    }
}

/// Between two looks for memberships that have expired.
pub const LOOK_INTERVAL: Micros = Micros::from_millis(200);

/// The octets of the longest query: its header, IPv6 with options, MLDv2 and the gateway's endpoint.
pub const LONGEST_QUERY: usize = 12 + 76 + 18;

const MOST_SOURCES: usize = 4_096;

#[cfg(test)]
mod tests;
