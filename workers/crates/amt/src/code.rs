//! Response codes ("Response MAC") that need no memory, and nonces.
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use downburst_model::Micros;
use ring::hmac;

/// The proof that a host receives at its address: 48 bits (RFC 7450, section 5.1.4.6).
pub type Code = [u8; 6];

/// Makes and checks a relay's codes. Their key changes every five minutes; a code counts for one to two such times.
pub struct Codes(hmac::Key);

/// The numbers of a gateway's requests, which a host that does not see them can't guess.
pub struct Nonces {
    key: hmac::Key,
    drawn: u64,
}

impl Codes {
    /// Codes under a random secret.
    pub fn new(secret: &[u8; 32]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// The code for a gateway's endpoint and nonce.
    pub fn code(&self, now: Micros, gateway: SocketAddr, nonce: u32) -> Code {
        self.of(now.0 / ROTATION.0, gateway, nonce)
    }

    /// True if the code was made for this endpoint and nonce not long ago.
    pub fn accepts(&self, now: Micros, gateway: SocketAddr, nonce: u32, code: Code) -> bool {
        let period = now.0 / ROTATION.0;
        let periods = [Some(period), period.checked_sub(1)];
        periods.into_iter().flatten().fold(false, |found, period| {
            let ours = self.of(period, gateway, nonce);
            // Compares without stopping at the first difference: the time says nothing about the code.
            let differing = ours.iter().zip(code).fold(0, |bits, (ours, theirs)| bits | (ours ^ theirs));
            found | (differing == 0)
        })
    }

    fn of(&self, period: u64, gateway: SocketAddr, nonce: u32) -> Code {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(&period.to_be_bytes());
        match gateway.ip().to_canonical() {
            IpAddr::V4(v4) => context.update(&v4.to_ipv6_mapped().octets()),
            IpAddr::V6(v6) => context.update(&v6.octets()),
        }
        context.update(&gateway.port().to_be_bytes());
        context.update(&nonce.to_be_bytes());
        context.sign().as_ref().first_chunk().copied().unwrap_or_default()
    }
}

impl Nonces {
    /// Nonces from a random seed.
    pub fn new(seed: &[u8; 32]) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, seed), drawn: 0 }
    }

    /// The next one.
    pub fn draw(&mut self) -> u32 {
        self.drawn = self.drawn.wrapping_add(1);
        let tag = hmac::sign(&self.key, &self.drawn.to_be_bytes());
        tag.as_ref().first_chunk().copied().map_or(0, u32::from_be_bytes)
    }
}

impl fmt::Debug for Codes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Codes(not shown)")
    }
}

impl fmt::Debug for Nonces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Nonces(not shown)")
    }
}

/// Longer than a query interval: a gateway that asks in time never presents a code of a forgotten key.
pub(crate) const ROTATION: Micros = Micros::from_secs(300);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_code_counts_for_its_endpoint_and_nonce_alone() {
        let (codes, now) = (Codes::new(&[7; 32]), Micros::from_secs(1));
        let code = codes.code(now, at("192.0.2.1:5000"), 9);
        assert!(codes.accepts(now, at("192.0.2.1:5000"), 9, code));
        assert!(
            codes.accepts(now, at("[::ffff:192.0.2.1]:5000"), 9, code),
            "the same host, over a dual socket"
        );
        for (gateway, nonce) in [("192.0.2.1:5001", 9), ("192.0.2.2:5000", 9), ("192.0.2.1:5000", 8)] {
            assert!(!codes.accepts(now, at(gateway), nonce, code), "{gateway} {nonce}");
        }
        assert!(!Codes::new(&[8; 32]).accepts(now, at("192.0.2.1:5000"), 9, code));
    }

    #[test]
    fn a_code_ends_with_the_key_after_its_own() {
        let (codes, gateway) = (Codes::new(&[7; 32]), at("[2001:db8::1]:2268"));
        let code = codes.code(Micros(ROTATION.0 - 1), gateway, 1);
        assert!(codes.accepts(Micros(2 * ROTATION.0 - 1), gateway, 1, code));
        assert!(!codes.accepts(Micros(2 * ROTATION.0), gateway, 1, code));
    }

    #[test]
    fn nonces_differ() {
        let mut nonces = Nonces::new(&[1; 32]);
        let drawn: std::collections::BTreeSet<u32> = (0..100).map(|_| nonces.draw()).collect();
        assert_eq!(drawn.len(), 100);
    }
}
