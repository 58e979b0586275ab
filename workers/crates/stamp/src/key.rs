//! Authentication.
use std::fmt;

use ring::hmac;
use thiserror::Error;

/// A key shared by sender and reflector: HMAC-SHA-256 truncated to 128 bits (RFC 8762, section 4.4).
#[derive(Clone)]
pub struct Key(hmac::Key);

/// A key is too short to be a secret.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the key has {0} octets; STAMP needs a shared secret of at least 16")]
pub struct KeyTooShort(pub usize);

impl Key {
    /// A key of at least 16 octets.
    pub fn new(secret: &[u8]) -> Result<Self, KeyTooShort> {
        let key = (secret.len() >= TAG_OCTETS).then(|| hmac::Key::new(hmac::HMAC_SHA256, secret));
        key.map(Self).ok_or(KeyTooShort(secret.len()))
    }

    /// The tag of these octets, one part after the other.
    pub(crate) fn tag(&self, parts: &[&[u8]]) -> [u8; TAG_OCTETS] {
        let mut context = hmac::Context::with_key(&self.0);
        parts.iter().for_each(|part| context.update(part));
        context.sign().as_ref().first_chunk().copied().unwrap_or_default()
    }

    /// Compares without stopping at the first difference: the time says nothing about the tag.
    pub(crate) fn accepts(&self, parts: &[&[u8]], tag: [u8; TAG_OCTETS]) -> bool {
        let differing =
            self.tag(parts).iter().zip(tag).fold(0, |bits, (ours, theirs)| bits | (ours ^ theirs));
        differing == 0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(not shown)")
    }
}

pub(crate) const TAG_OCTETS: usize = 16;
