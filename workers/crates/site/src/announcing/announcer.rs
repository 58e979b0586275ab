//! A site's announcements to the relay that sends it a leg by unicast.
use downburst_model::{LegId, Micros};
use downburst_session::FanOutPass;

use super::message::{ANNOUNCEMENT_BYTES, Codec, Cookie, Kind, Message};

/// Announces a site from its socket for one leg, for as long as the site wants the leg.
pub struct Announcer {
    codec: Codec,
    cookie: Cookie,
    /// The next announcement.
    due: Micros,
    sent: Option<Micros>,
    /// The pause before an announcement without an answer is repeated.
    patience: Micros,
    is_taken: bool,
}

impl Announcer {
    /// The first announcement is due immediately.
    pub fn new(now: Micros, leg: LegId, pass: &FanOutPass) -> Self {
        let (codec, cookie) = (Codec::new(leg, pass), Cookie::default());
        Self { codec, cookie, due: now, sent: None, patience: FIRST_PATIENCE, is_taken: false }
    }

    /// Takes a datagram from the relay's address; false if it is none of the relay's answers, but the leg's.
    pub fn handle(&mut self, now: Micros, datagram: &[u8]) -> bool {
        let Some(Message { kind, cookie }) = self.codec.read(datagram) else { return false };
        match kind {
            Kind::Challenge => self.challenged(now, cookie),
            Kind::Taken => {
                self.is_taken = true;
                self.cookie = cookie;
                self.patience = FIRST_PATIENCE;
                self.due = now.plus(REPEAT);
            }
            Kind::Announce | Kind::Leave => {}
        }
        true
    }

    /// The announcement that is due.
    pub fn poll(&mut self, now: Micros) -> Option<[u8; ANNOUNCEMENT_BYTES]> {
        if now < self.due {
            return None;
        }
        self.sent = Some(now);
        self.due = now.plus(self.patience);
        self.patience = Micros(self.patience.0.saturating_mul(2)).min(LONGEST_PATIENCE);
        Some(self.codec.write(Message { kind: Kind::Announce, cookie: self.cookie }))
    }

    /// The time of the next announcement.
    pub fn deadline(&self) -> Micros {
        self.due
    }

    /// True once the relay sends the leg here.
    pub fn is_taken(&self) -> bool {
        self.is_taken
    }

    /// The message that ends the reception.
    pub fn leave(&self) -> [u8; ANNOUNCEMENT_BYTES] {
        self.codec.write(Message { kind: Kind::Leave, cookie: self.cookie })
    }

    /// The same challenge again is an old one. Others are answered, but no more often than a relay has to ask.
    fn challenged(&mut self, now: Micros, cookie: Cookie) {
        if cookie != self.cookie {
            self.cookie = cookie;
            self.due = self.sent.map_or(now, |sent| sent.plus(LEAST_PAUSE)).max(now);
        }
    }
}

/// The pause between two announcements that are answered: firewalls and NAT forget a flow of UDP after 30 s or more.
pub(super) const REPEAT: Micros = Micros::from_secs(5);

const FIRST_PATIENCE: Micros = Micros(250_000);
const LONGEST_PATIENCE: Micros = Micros::from_secs(1);
const LEAST_PAUSE: Micros = Micros(20_000);
