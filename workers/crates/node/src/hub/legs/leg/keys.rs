//! The secrets of a leg, from the system's source of randomness.
use downburst_vcmtp::{Cipher, LegKey, SigningSeed};

/// The key a leg begins with. Every start of a sender draws one.
pub(in crate::hub) fn first_key() -> Result<LegKey, String> {
    let secret = draw().map_err(|error| format!("no random key: {error}"))?;
    Ok(LegKey { id: 1, secret, cipher: cipher() })
}

/// What the sender signs with. It stays in the process; sites get the public half in their sessions.
pub(in crate::hub) fn signing_seed() -> Result<SigningSeed, String> {
    draw().map(SigningSeed).map_err(|error| format!("no random signing key: {error}"))
}

pub(in crate::hub) fn draw() -> Result<[u8; 32], getrandom::Error> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret)?;
    Ok(secret)
}

/// AES where the processor helps with it; elsewhere ChaCha20, which is faster than AES without help.
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
