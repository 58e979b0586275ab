//! The gateway (RFC 7450, section 5.2) for one channel.
//!
//! | state | sends | goes on |
//! |---|---|---|
//! | discovering | a discovery, again after 0.25 s and 0.5 s | with an advertisement: requesting |
//! | requesting | a request in the same way | with a query: joined; after three without one: the next relay |
//! | joined | an update for each query; a request at each interval, or earlier if nothing is heard | the same |
use std::net::SocketAddr;
use std::ops::Range;

use downburst_model::Micros;

use crate::code::{Code, Nonces};
use crate::ip::Packet;
use crate::membership::{Channel, Family, QueryTimes, Record, read_query, report};
use crate::message::Message;

/// The settings of a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewaySettings {
    /// The addresses for discoveries, best first: of relays, or anycast.
    pub relays: Vec<SocketAddr>,
    /// The channel to receive.
    pub channel: Channel,
    /// The UDP port of its datagrams.
    pub port: u16,
}

/// Has a relay send one channel to this host.
#[derive(Debug)]
pub struct Gateway {
    settings: GatewaySettings,
    nonces: Nonces,
    /// The place of the relay in the settings.
    turn: usize,
    /// Where requests go.
    relay: SocketAddr,
    state: State,
    /// The nonce of the last discovery or request, while it has no answer.
    open: Option<u32>,
    attempts: u32,
    due: Micros,
    /// Updates for the last query that are still to be sent: (times, the next one).
    updates: (u8, Micros),
    teardown: Option<Vec<u8>>,
    heard: Option<Micros>,
    times: QueryTimes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Discovering,
    Requesting,
    Joined(Ticket),
}

/// The relay's proof that this host receives at its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ticket {
    code: Code,
    nonce: u32,
    endpoint: Option<SocketAddr>,
}

/// A message to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The address: datagrams of others are none of the relay's.
    pub to: SocketAddr,
    /// The message.
    pub octets: Vec<u8>,
}

/// The meaning of a datagram from the relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A datagram of the channel, at this place.
    Datagram(Range<usize>),
    /// An answer of the relay.
    Answer,
    /// Neither.
    Other,
}

/// The progress of a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// No relay has answered yet.
    Unanswered,
    /// A relay answers, and has the membership; nothing of the channel is heard from it.
    Joined,
    /// The channel's datagrams arrive.
    Heard,
}

impl Gateway {
    /// A gateway whose first discovery is due immediately; `None` without a relay. `seed` is random.
    pub fn new(now: Micros, settings: GatewaySettings, seed: &[u8; 32]) -> Option<Self> {
        let relay = *settings.relays.first()?;
        Some(Self {
            settings,
            nonces: Nonces::new(seed),
            turn: 0,
            relay,
            state: State::Discovering,
            open: None,
            attempts: 0,
            due: now,
            updates: (0, now),
            teardown: None,
            heard: None,
            times: QueryTimes { interval_s: 10, robustness: 2 },
        })
    }

    /// Takes a datagram from the address of the last [`Outgoing`].
    pub fn handle(&mut self, now: Micros, octets: &[u8]) -> Heard {
        match Message::read(octets) {
            Ok(Message::Data(packet)) => self.data(now, packet, octets.len()),
            Ok(Message::Advertisement { nonce, relay }) => {
                self.advertised(now, nonce, SocketAddr::new(relay, self.relay.port()))
            }
            Ok(Message::Query { is_full, code, nonce, query, gateway }) => {
                let ticket = Ticket { code, nonce, endpoint: gateway };
                read_query(query).map_or(Heard::Other, |times| self.queried(now, is_full, ticket, times))
            }
            _ => Heard::Other,
        }
    }

    /// The next message that is due.
    pub fn poll(&mut self, now: Micros) -> Option<Outgoing> {
        if let Some(octets) = self.teardown.take() {
            return Some(Outgoing { to: self.relay, octets });
        }
        if let (State::Joined(ticket), (times @ 1.., at)) = (self.state, self.updates)
            && at <= now
        {
            self.updates = (times - 1, now.plus(UPDATE_AGAIN));
            return Some(self.update(ticket, &self.settings.channel.wanted()));
        }
        if now < self.due {
            return None;
        }
        self.turn_if_silent();
        Some(self.ask(now))
    }

    /// The time of the next message.
    pub fn deadline(&self) -> Micros {
        let joined = matches!(self.state, State::Joined(_));
        let update = Some(self.updates.1).filter(|_| joined && self.updates.0 > 0);
        update.map_or(self.due, |update| update.min(self.due))
    }

    /// The message that ends the reception, if a relay has the membership.
    pub fn leave(&self) -> Option<Outgoing> {
        let State::Joined(ticket) = self.state else { return None };
        Some(self.update(ticket, &self.settings.channel.left()))
    }

    /// The progress.
    pub fn standing(&self) -> Standing {
        match self.state {
            State::Joined(_) if self.heard.is_some() => Standing::Heard,
            State::Joined(_) => Standing::Joined,
            _ => Standing::Unanswered,
        }
    }

    /// The relay in turn.
    pub fn relay(&self) -> SocketAddr {
        self.relay
    }

    /// The leg's own sealing proves the content, so the inner checksum is not computed here.
    fn data(&mut self, now: Micros, octets: &[u8], length: usize) -> Heard {
        let Ok(packet) = Packet::read(octets) else { return Heard::Other };
        let Ok(udp) = packet.udp(octets) else { return Heard::Other };
        let Channel { group, source } = self.settings.channel;
        let is_ours = packet.destination == group
            && source.is_none_or(|source| source == packet.source)
            && udp.destination == self.settings.port;
        if !is_ours || !matches!(self.state, State::Joined(_)) {
            return Heard::Other;
        }
        self.heard = Some(now);
        let header = length - octets.len();
        Heard::Datagram(header + udp.body.start..header + udp.body.end)
    }

    fn advertised(&mut self, now: Micros, nonce: u32, relay: SocketAddr) -> Heard {
        if self.state != State::Discovering || self.open != Some(nonce) || !is_a_hosts(relay) {
            return Heard::Other;
        }
        self.relay = relay;
        self.state = State::Requesting;
        (self.open, self.attempts, self.due) = (None, 0, now);
        Heard::Answer
    }

    fn queried(&mut self, now: Micros, is_full: bool, ticket: Ticket, times: QueryTimes) -> Heard {
        if self.state == State::Discovering || self.open != Some(ticket.nonce) {
            return Heard::Other;
        }
        let before = self.state;
        if is_full && before == State::Requesting {
            self.next_relay(now.plus(FULL_PAUSE));
            return Heard::Answer;
        }
        if let State::Joined(old) = before {
            self.teardown = old.teardown_for(ticket.endpoint);
        }
        self.state = State::Joined(ticket);
        self.times = times;
        // An update has no answer, so it goes out twice, as reports of hosts do (RFC 3376, section 5.1).
        self.updates = (times.robustness.clamp(1, 3), now);
        (self.open, self.attempts, self.due) = (None, 0, now.plus(self.until_request(now)));
        Heard::Answer
    }

    /// The relay's interval; less while nothing is heard, because the update may be lost or the relay be new.
    fn until_request(&self, now: Micros) -> Micros {
        let interval = Micros::from_secs(u64::from(self.times.interval_s.clamp(1, 3_600)));
        let is_heard = self.heard.is_some_and(|heard| now.since(heard) < SILENCE);
        if is_heard { interval } else { interval.min(SILENCE) }
    }

    fn turn_if_silent(&mut self) {
        let most = if matches!(self.state, State::Joined(_)) { MOST_RENEWALS } else { MOST_ATTEMPTS };
        if self.attempts >= most {
            self.next_relay(self.due);
        }
    }

    fn next_relay(&mut self, due: Micros) {
        let relays = &self.settings.relays;
        self.turn = (self.turn + 1) % relays.len().max(1);
        self.relay = relays.get(self.turn).copied().unwrap_or(self.relay);
        self.state = State::Discovering;
        (self.open, self.attempts, self.due, self.heard) = (None, 0, due, None);
    }

    /// A discovery or a request, which is repeated with growing pauses.
    fn ask(&mut self, now: Micros) -> Outgoing {
        let nonce = self.nonces.draw();
        let pause = FIRST_PAUSE.0 << self.attempts.min(2);
        self.attempts += 1;
        self.open = Some(nonce);
        self.due = now.plus(Micros(pause));
        let family = Family::of(self.settings.channel.group);
        let message = match self.state {
            State::Discovering => Message::Discovery { nonce },
            State::Requesting | State::Joined(_) => Message::Request { nonce, family },
        };
        Outgoing { to: self.relay, octets: message.write() }
    }

    fn update(&self, ticket: Ticket, record: &Record) -> Outgoing {
        let report = report(Family::of(record.group), std::slice::from_ref(record));
        let message = Message::Update { code: ticket.code, nonce: ticket.nonce, report: &report };
        Outgoing { to: self.relay, octets: message.write() }
    }
}

impl Ticket {
    /// The end of the tunnel of an earlier endpoint: a translator of addresses has given this host another one.
    fn teardown_for(self, endpoint: Option<SocketAddr>) -> Option<Vec<u8>> {
        let old = self.endpoint.filter(|old| endpoint.is_some_and(|new| new != *old))?;
        Some(Message::Teardown { code: self.code, nonce: self.nonce, gateway: old }.write())
    }
}

pub(crate) fn is_a_hosts(relay: SocketAddr) -> bool {
    let ip = relay.ip();
    let is_broadcast = matches!(ip, std::net::IpAddr::V4(v4) if v4.is_broadcast());
    !(ip.is_multicast() || ip.is_unspecified() || is_broadcast || relay.port() == 0)
}

/// RFC 7450 leaves the pauses to the implementation (section 5.2.3.4.2). These find the third relay within the five
/// seconds in which a site has to hear a leg.
const FIRST_PAUSE: Micros = Micros::from_millis(250);
const MOST_ATTEMPTS: u32 = 3;

/// A relay that has answered is left after eight seconds.
const MOST_RENEWALS: u32 = 9;
const UPDATE_AGAIN: Micros = Micros::from_millis(250);

/// A leg of a hub is never silent for so long: idle ones send the log's head.
const SILENCE: Micros = Micros::from_secs(2);

/// Before the next relay after one that takes no further tunnel: a single full relay is not asked without end.
const FULL_PAUSE: Micros = Micros::from_secs(5);

#[cfg(test)]
mod tests;
