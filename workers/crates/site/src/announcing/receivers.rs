//! The receivers of a leg that a relay sends by unicast.
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use downburst_model::{LegId, Micros};
use downburst_session::UnicastFanOut;
use ring::hmac;

use super::message::{ANNOUNCEMENT_BYTES, Codec, Cookie, Kind, Message};

/// The addresses to which a relay sends a leg, with the last announcement of each.
pub struct Receivers {
    codec: Codec,
    leg: LegId,
    /// The relay's own key for cookies.
    secret: hmac::Key,
    most: usize,
    heard: BTreeMap<SocketAddr, Micros>,
}

impl Receivers {
    /// Nobody yet. `secret` is random, and known to this process alone.
    pub fn new(leg: LegId, fan_out: &UnicastFanOut, secret: &[u8; 32]) -> Self {
        let (codec, secret) = (Codec::new(leg, &fan_out.pass), hmac::Key::new(hmac::HMAC_SHA256, secret));
        let mut receivers = Self { codec, leg, secret, most: 0, heard: BTreeMap::new() };
        receivers.bound(fan_out.sites);
        receivers
    }

    /// Bounds the number of receivers by the number of sites in the leg. Those beyond it are dropped, the ones heard
    /// longest ago first.
    pub fn bound(&mut self, sites: u64) {
        self.most = usize::try_from(sites).unwrap_or(MOST_RECEIVERS).min(MOST_RECEIVERS);
        while self.heard.len() > self.most {
            self.drop_oldest(Micros(u64::MAX));
        }
    }

    /// Takes a datagram that came from an address; returns the answer to it, which is as long.
    pub fn handle(
        &mut self,
        now: Micros,
        from: SocketAddr,
        datagram: &[u8],
    ) -> Option<[u8; ANNOUNCEMENT_BYTES]> {
        let Message { kind, cookie } = self.codec.read(datagram)?;
        let is_own = self.is_cookie_of(now, from, &cookie);
        let answer = match kind {
            Kind::Announce if !is_own => Kind::Challenge,
            Kind::Announce if self.take(now, from) => Kind::Taken,
            Kind::Leave if is_own => {
                self.heard.remove(&from);
                return None;
            }
            Kind::Announce | Kind::Leave | Kind::Challenge | Kind::Taken => return None,
        };
        Some(self.codec.write(Message { kind: answer, cookie: self.cookie(window(now), from) }))
    }

    /// The addresses to send to.
    pub fn at(&mut self, now: Micros) -> impl Iterator<Item = SocketAddr> + '_ {
        self.heard.retain(|_, heard| now.since(*heard) < EXPIRY);
        self.heard.keys().copied()
    }

    /// Adds a receiver, or keeps it. A full leg takes a new one in place of one that missed an announcement: a site
    /// that began anew has another port.
    fn take(&mut self, now: Micros, from: SocketAddr) -> bool {
        if !self.heard.contains_key(&from) && self.heard.len() >= self.most {
            self.drop_oldest(Micros(now.0.saturating_sub(MISSED.0)));
        }
        let has_room = self.heard.contains_key(&from) || self.heard.len() < self.most;
        if has_room {
            self.heard.insert(from, now);
        }
        has_room
    }

    /// Drops the receiver that was heard longest ago, if that was before `before`.
    fn drop_oldest(&mut self, before: Micros) {
        let oldest = self.heard.iter().min_by_key(|(_, heard)| **heard);
        if let Some(address) = oldest.filter(|(_, heard)| **heard < before).map(|(address, _)| *address) {
            self.heard.remove(&address);
        }
    }

    fn is_cookie_of(&self, now: Micros, from: SocketAddr, cookie: &Cookie) -> bool {
        let present = window(now);
        [present, present.wrapping_sub(1)]
            .into_iter()
            .any(|window| hmac::verify(&self.secret, &self.bound_to(window, from), cookie).is_ok())
    }

    fn cookie(&self, window: u64, of: SocketAddr) -> Cookie {
        let mut cookie = Cookie::default();
        cookie.copy_from_slice(hmac::sign(&self.secret, &self.bound_to(window, of)).as_ref());
        cookie
    }

    /// The values for which a cookie is valid.
    fn bound_to(&self, window: u64, of: SocketAddr) -> Vec<u8> {
        let address = match of.ip() {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        };
        let leg = self.leg.0.to_be_bytes();
        [&window.to_be_bytes()[..], &leg, &address.octets(), &of.port().to_be_bytes()].concat()
    }
}

/// Cookies change with it, and hold for one more: an address may be another host's later.
fn window(now: Micros) -> u64 {
    now.0 / WINDOW.0
}

/// The most that a hub can have a relay send to.
const MOST_RECEIVERS: usize = 1_024;

const WINDOW: Micros = Micros::from_secs(60);

/// Three repetitions and a little more.
pub(super) const EXPIRY: Micros = Micros::from_secs(16);

/// An announcement is late after it.
const MISSED: Micros = Micros(7_500_000);
