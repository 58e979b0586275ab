use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use thiserror::Error;

/// A string of the protocol, at most `LIMIT` bytes. Senders use any encoding, so it is kept as bytes and
/// forwarded unchanged.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text<const LIMIT: usize>(Bytes);

/// A text longer than the protocol allows.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("a text of {bytes} bytes where LDM allows {limit}; shorten it")]
pub struct TextError {
    /// Length of the text.
    pub bytes: usize,
    /// Longest allowed length.
    pub limit: usize,
}

impl<const LIMIT: usize> Text<LIMIT> {
    /// Creates a text; refuses one that is too long.
    pub fn new(bytes: impl Into<Bytes>) -> Result<Self, TextError> {
        let bytes = bytes.into();
        if bytes.len() > LIMIT {
            return Err(TextError { bytes: bytes.len(), limit: LIMIT });
        }
        Ok(Self(bytes))
    }

    /// The bytes as on the wire.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The characters, with U+FFFD in place of invalid UTF-8.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }

    /// The first `LIMIT` bytes.
    pub(crate) fn cut(bytes: Vec<u8>) -> Self {
        let mut bytes = bytes;
        bytes.truncate(LIMIT);
        Self(bytes.into())
    }
}

impl<const LIMIT: usize> fmt::Display for Text<LIMIT> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl<const LIMIT: usize> fmt::Debug for Text<LIMIT> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text(), f)
    }
}
