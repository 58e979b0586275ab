//! The secrets of a leg, from the system's random number generator.
use downburst_vcmtp::{Cipher, LegKey, SigningSeed};

/// The first key of a leg. Every start of a sender draws one.
pub(in crate::hub) fn first_key() -> Result<LegKey, String> {
    let secret = draw().map_err(|error| format!("no random key: {error}"))?;
    Ok(LegKey { id: 1, secret, cipher: cipher() })
}

/// The sender's signing key. It stays in the process; sites get the public half in their sessions.
pub(in crate::hub) fn signing_seed() -> Result<SigningSeed, String> {
    draw().map(SigningSeed).map_err(|error| format!("no random signing key: {error}"))
}

pub(in crate::hub) fn draw() -> Result<[u8; 32], getrandom::Error> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret)?;
    Ok(secret)
}

/// AES on processors with AES instructions; elsewhere ChaCha20, which is faster than AES in software.
fn cipher() -> Cipher {
    if has_aes() { Cipher::Aes256Gcm } else { Cipher::ChaCha20Poly1305 }
}

#[cfg(target_arch = "x86_64")]
fn has_aes() -> bool {
    std::arch::is_x86_feature_detected!("aes") && std::arch::is_x86_feature_detected!("pclmulqdq")
}

#[cfg(target_arch = "aarch64")]
fn has_aes() -> bool {
    std::arch::is_aarch64_feature_detected!("aes") && std::arch::is_aarch64_feature_detected!("pmull")
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn has_aes() -> bool {
    false
}
