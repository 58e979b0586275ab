//! The datagrams between a site and a relay that sends a leg by unicast. All have the same length.
//!
//! | bytes | content |
//! |---|---|
//! | 0..7 | [`MARK`], which no datagram of a leg begins with |
//! | 7 | kind |
//! | 8..12 | leg id, big-endian |
//! | 12..44 | cookie; zero in a first announcement |
//! | 44..76 | HMAC-SHA256 under the leg's pass over all before |
use downburst_model::LegId;
use downburst_session::FanOutPass;
use ring::hmac;

/// A relay's sign for an address: it comes back only from there.
pub(super) type Cookie = [u8; 32];

/// A message of a site or a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) kind: Kind,
    pub(super) cookie: Cookie,
}

/// The kinds of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// Site to relay: send me the leg.
    Announce = 1,
    /// Site to relay: send me nothing any more.
    Leave = 2,
    /// Relay to site: announce yourself with this cookie.
    Challenge = 3,
    /// Relay to site: the leg is sent to you; the next announcement has this cookie.
    Taken = 4,
}

/// Writes and reads the messages of one leg.
pub(super) struct Codec {
    leg: LegId,
    pass: hmac::Key,
}

impl Codec {
    pub(super) fn new(leg: LegId, pass: &FanOutPass) -> Self {
        Self { leg, pass: hmac::Key::new(hmac::HMAC_SHA256, &pass.0) }
    }

    pub(super) fn write(&self, message: Message) -> [u8; ANNOUNCEMENT_BYTES] {
        let mut bytes = [0; ANNOUNCEMENT_BYTES];
        let (said, tag) = bytes.split_at_mut(PROVED_BYTES);
        let (kind, leg) = ([message.kind as u8], self.leg.0.to_be_bytes());
        let parts = MARK.iter().chain(&kind).chain(&leg).chain(&message.cookie);
        said.iter_mut().zip(parts).for_each(|(place, byte)| *place = *byte);
        tag.copy_from_slice(hmac::sign(&self.pass, said).as_ref());
        bytes
    }

    /// The message, if a member of the leg made it.
    pub(super) fn read(&self, bytes: &[u8]) -> Option<Message> {
        let bytes: &[u8; ANNOUNCEMENT_BYTES] = bytes.try_into().ok()?;
        let (said, tag) = bytes.split_at(PROVED_BYTES);
        let (mark, rest) = said.split_first_chunk::<{ MARK.len() }>()?;
        let (kind, rest) = rest.split_first()?;
        let (leg, cookie) = rest.split_first_chunk::<4>()?;
        if *mark != MARK || u32::from_be_bytes(*leg) != self.leg.0 {
            return None;
        }
        hmac::verify(&self.pass, said, tag).ok()?;
        Some(Message { kind: Kind::of(*kind)?, cookie: cookie.try_into().ok()? })
    }
}

impl Kind {
    fn of(number: u8) -> Option<Self> {
        [Self::Announce, Self::Leave, Self::Challenge, Self::Taken].into_iter().find(|it| *it as u8 == number)
    }
}

/// The length of every message.
pub const ANNOUNCEMENT_BYTES: usize = 76;

const PROVED_BYTES: usize = 44;
const MARK: [u8; 7] = *b"DBfan\x00\x01";
