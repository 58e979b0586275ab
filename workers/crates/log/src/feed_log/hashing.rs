//! The digests of a product, computed in one pass over its bytes.

use std::io::Read;

use downburst_model::Digest;
use md5::{Digest as _, Md5};

use crate::{DuplicateRule, LogError, NewProduct, segment::record::Body, wmo};

/// The digests of the bytes hashed so far, for a file that is hashed while it is written.
///
/// Pieces are hashed in order; [`hashed_bytes`](Self::hashed_bytes) is the offset of the next one.
#[derive(Clone, Debug, Default)]
pub struct ContentHasher {
    all: blake3::Hasher,
    body: Option<(u8, blake3::Hasher)>,
    compares_body: bool,
    /// The search for a WMO starting line is over.
    begun: bool,
    signature: Option<Md5>,
    hashed_bytes: u64,
}

/// The result of hashing all bytes.
pub(crate) struct Contents {
    pub(crate) size: u64,
    pub(crate) digest: Digest,
    pub(crate) body: Option<Body>,
    /// The MD5, if the feed's rule needs one that the product lacks.
    pub(crate) signature: Option<[u8; 16]>,
}

impl ContentHasher {
    /// For a feed with this rule.
    pub(crate) fn for_rule(rule: DuplicateRule, has_signature: bool) -> Self {
        let needs_signature = rule == DuplicateRule::Signature && !has_signature;
        Self {
            begun: rule == DuplicateRule::None,
            compares_body: rule == DuplicateRule::ContentWithoutWmoStart,
            signature: needs_signature.then(Md5::new),
            ..Self::default()
        }
    }

    /// This hasher if a feed with this rule needs nothing but the digest of all bytes, else one from the start.
    pub(crate) fn continued_for(self, rule: DuplicateRule, has_signature: bool) -> Self {
        let needs_more = matches!(rule, DuplicateRule::ContentWithoutWmoStart | DuplicateRule::Signature);
        if needs_more || self.hashed_bytes == 0 { Self::for_rule(rule, has_signature) } else { self }
    }

    /// The number of bytes hashed so far.
    #[must_use]
    pub fn hashed_bytes(&self) -> u64 {
        self.hashed_bytes
    }

    /// Hashes the next piece. The first one must hold the whole starting line of a bulletin, if it has one.
    pub fn update(&mut self, piece: &[u8]) {
        self.hashed_bytes = self.hashed_bytes.saturating_add(piece.len() as u64);
        self.all.update(piece);
        if let Some(signature) = &mut self.signature {
            signature.update(piece);
        }
        let line_bytes = if self.begun { 0 } else { wmo::starting_line_bytes(piece) };
        self.begun = true;
        if line_bytes > 0 {
            self.body = u8::try_from(line_bytes).ok().map(|bytes| (bytes, blake3::Hasher::new()));
        }
        if let (Some((_, body)), Some(rest)) = (&mut self.body, piece.get(line_bytes..)) {
            body.update(rest);
        }
    }

    /// Hashes everything that a reader returns.
    pub(crate) fn update_from(&mut self, bytes: &mut dyn Read) -> std::io::Result<()> {
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            let filled = fill(bytes, &mut buffer)?;
            if filled.is_empty() {
                return Ok(());
            }
            self.update(filled);
        }
    }

    pub(crate) fn finish(&self) -> Contents {
        let digest = |hasher: &blake3::Hasher| Digest(*hasher.finalize().as_bytes());
        let compared = self.compares_body.then_some(());
        let body = self.body.as_ref().map(|(bytes, hasher)| Body {
            starting_line_bytes: *bytes,
            digest: digest(hasher),
            compared,
        });
        let signature = self.signature.as_ref().map(|signature| signature.clone().finalize().into());
        Contents { size: self.hashed_bytes, digest: digest(&self.all), body, signature }
    }
}

impl Contents {
    pub(crate) fn check(&self, product: &NewProduct) -> Result<(), LogError> {
        check_announced(product, self.size, self.digest)
    }
}

/// Compares size and digest with the announced ones.
pub(crate) fn check_announced(product: &NewProduct, size: u64, digest: Digest) -> Result<(), LogError> {
    let id = || product.id.clone();
    match (product.expected_size, product.expected_digest) {
        (Some(expected), _) if expected != size => {
            Err(LogError::SizeMismatch { id: id(), expected, found: size })
        }
        (_, Some(expected)) if expected != digest => {
            Err(LogError::DigestMismatch { id: id(), expected, found: digest })
        }
        _ => Ok(()),
    }
}

/// Reads until the buffer is full or the source ends.
pub(crate) fn fill<'a>(bytes: &mut dyn Read, buffer: &'a mut [u8]) -> std::io::Result<&'a [u8]> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match bytes.read(rest) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    buffer.get(..filled).ok_or_else(|| std::io::Error::from(std::io::ErrorKind::InvalidInput))
}

pub(crate) const BUFFER_BYTES: usize = 256 << 10;
