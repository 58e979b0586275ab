//! The authentication of a proof: its signature, or in a small group a MAC for each site, which takes a
//! hundredth of the time.
//!
//! | bytes | content of a MAC |
//! |---|---|
//! | 0..2 | the site's slot |
//! | 2..12 | the first 10 bytes of HMAC-SHA256 under the site's secret, over SHA-256 of the data to be signed |
use std::collections::BTreeMap;

use downburst_model::LegId;
use ring::digest::{SHA256, digest};
use ring::hmac::{self, HMAC_SHA256};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};

use crate::{SenderKey, SigningSeed, SiteSecret};

/// The sender's half.
pub(crate) struct ProofSigner {
    pair: Ed25519KeyPair,
    context: Vec<u8>,
    /// The sites that may hear the group, each with the key of its MACs, if it has a secret.
    sites: BTreeMap<u64, Option<Slot>>,
}

/// A receiver's half.
pub(crate) struct ProofVerifier {
    key: UnparsedPublicKey<[u8; 32]>,
    context: Vec<u8>,
    slot: Option<Slot>,
}

/// The reason for refusing a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It is not the sender's.
    Forged,
    /// It has MACs, and none for this site.
    ForOthers,
}

struct Slot {
    number: [u8; SLOT_BYTES],
    key: hmac::Key,
}

impl ProofSigner {
    /// `None` if the library refuses the seed.
    pub(crate) fn new(seed: &SigningSeed, leg: (LegId, u64)) -> Option<Self> {
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed.0).ok()?;
        Some(Self { pair, context: context(leg), sites: BTreeMap::new() })
    }

    pub(crate) fn key(&self) -> Option<SenderKey> {
        self.pair.public_key().as_ref().try_into().ok().map(SenderKey)
    }

    /// Adds a site that may hear the group; without a secret it can verify signatures only.
    pub(crate) fn take(&mut self, site: u64, secret: Option<&SiteSecret>) {
        self.sites.insert(site, secret.map(Slot::new));
    }

    pub(crate) fn forget(&mut self, site: u64) {
        self.sites.remove(&site);
    }

    /// The number of MACs in the next proof; 0: a signature.
    pub(crate) fn macs(&self) -> u8 {
        let all = self.sites.len() <= MOST_MACS && self.sites.values().all(Option::is_some);
        u8::try_from(self.sites.len()).ok().filter(|_| all).unwrap_or(0)
    }

    /// The bytes after the body of a proof with the given number of MACs.
    pub(crate) fn seal(&self, body: &[u8], macs: u8) -> Vec<u8> {
        let said = [self.context.as_slice(), body].concat();
        if macs == 0 {
            return self.pair.sign(&said).as_ref().to_vec();
        }
        let hash = digest(&SHA256, &said);
        self.sites.values().flatten().flat_map(|slot| slot.mac(hash.as_ref())).collect()
    }
}

impl ProofVerifier {
    pub(crate) fn new(key: &SenderKey, secret: Option<&SiteSecret>, leg: (LegId, u64)) -> Self {
        let key = UnparsedPublicKey::new(&ED25519, key.0);
        Self { key, context: context(leg), slot: secret.map(Slot::new) }
    }

    /// Verifies the bytes after the body of a proof.
    pub(crate) fn check(&self, body: &[u8], macs: u8, seal: &[u8]) -> Result<(), Refusal> {
        let said = [self.context.as_slice(), body].concat();
        if macs == 0 {
            return self.key.verify(&said, seal).map_err(|_| Refusal::Forged);
        }
        let slot = self.slot.as_ref().ok_or(Refusal::ForOthers)?;
        let (all, _) = seal.as_chunks::<MAC_BYTES>();
        let mut own = all.iter().filter(|mac| mac.starts_with(&slot.number)).peekable();
        own.peek().ok_or(Refusal::ForOthers)?;
        let expected = slot.mac(digest(&SHA256, &said).as_ref());
        // In constant time: an attacker can't learn how many bytes of a guess were right.
        let is_ours =
            |mac: &[u8; MAC_BYTES]| mac.iter().zip(&expected).fold(0, |all, (a, b)| all | (a ^ b)) == 0;
        if own.any(is_ours) { Ok(()) } else { Err(Refusal::Forged) }
    }
}

impl Slot {
    fn new(secret: &SiteSecret) -> Self {
        Self { number: secret.slot.to_be_bytes(), key: hmac::Key::new(HMAC_SHA256, &secret.secret) }
    }

    fn mac(&self, hash: &[u8]) -> [u8; MAC_BYTES] {
        let tag = hmac::sign(&self.key, hash);
        let mut mac = [0; MAC_BYTES];
        mac.iter_mut().zip(self.number.iter().chain(tag.as_ref())).for_each(|(to, from)| *to = *from);
        mac
    }
}

/// The number of bytes after the body of a proof.
pub(crate) fn seal_bytes(macs: u8) -> usize {
    if macs == 0 { SIGNATURE_BYTES } else { usize::from(macs) * MAC_BYTES }
}

/// Binds a signature to the leg, its life and this use of the key.
fn context((leg, leg_epoch): (LegId, u64)) -> Vec<u8> {
    [CONTEXT, leg.0.to_be_bytes().as_slice(), &leg_epoch.to_be_bytes()].concat()
}

const CONTEXT: &[u8] = b"downburst vcmtp proof 1";

const SIGNATURE_BYTES: usize = 64;

const SLOT_BYTES: usize = 2;

/// The slot and ten bytes of HMAC, as in SRTP: an attacker must send each guess.
const MAC_BYTES: usize = 12;

/// With more sites a signature saves more bytes than its time costs: 8 MACs are 96 bytes.
const MOST_MACS: usize = 8;

/// The maximum number of bytes after a body.
pub(crate) const MOST_SEAL_BYTES: usize = MOST_MACS * MAC_BYTES;

#[cfg(test)]
mod tests {
    use super::*;

    const LEG: (LegId, u64) = (LegId(7), 99);
    const SEED: SigningSeed = SigningSeed([5; 32]);

    fn secret(slot: u16) -> SiteSecret {
        SiteSecret { slot, secret: [slot as u8; 32] }
    }

    fn verifier(own: Option<u16>) -> ProofVerifier {
        let key = ProofSigner::new(&SEED, LEG).unwrap().key().unwrap();
        ProofVerifier::new(&key, own.map(secret).as_ref(), LEG)
    }

    fn group(sites: u16) -> ProofSigner {
        let mut voucher = ProofSigner::new(&SEED, LEG).unwrap();
        (1..=sites).for_each(|site| voucher.take(u64::from(site), Some(&secret(site))));
        voucher
    }

    #[test]
    fn each_site_of_a_small_group_finds_its_own_mac_and_no_other_site_does() {
        let voucher = group(8);
        let seal = voucher.seal(b"said", voucher.macs());
        assert_eq!((voucher.macs(), seal.len()), (8, seal_bytes(8)));
        (1..=8).for_each(|site| assert_eq!(verifier(Some(site)).check(b"said", 8, &seal), Ok(())));
        assert_eq!(verifier(Some(9)).check(b"said", 8, &seal), Err(Refusal::ForOthers));
        assert_eq!(verifier(None).check(b"said", 8, &seal), Err(Refusal::ForOthers));
        assert_eq!(verifier(Some(3)).check(b"sad", 8, &seal), Err(Refusal::Forged));
        let other_life = ProofVerifier::new(&voucher.key().unwrap(), Some(&secret(3)), (LEG.0, 98));
        assert_eq!(other_life.check(b"said", 8, &seal), Err(Refusal::Forged));
    }

    #[test]
    fn any_flipped_bit_of_ones_own_mac_is_noticed() {
        let seal = group(1).seal(b"said", 1);
        for bit in 0..seal.len() * 8 {
            let mut forged = seal.clone();
            forged[bit / 8] ^= 1 << (bit % 8);
            assert!(verifier(Some(1)).check(b"said", 1, &forged).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_member_can_make_no_mac_for_another() {
        // It knows its own secret, and uses it with the other's slot.
        let mut insider = ProofSigner::new(&SigningSeed([6; 32]), LEG).unwrap();
        insider.take(1, Some(&SiteSecret { slot: 2, ..secret(1) }));
        let seal = insider.seal(b"said", 1);
        assert_eq!(verifier(Some(2)).check(b"said", 1, &seal), Err(Refusal::Forged));
        assert_eq!(verifier(Some(2)).check(b"said", 0, &insider.seal(b"said", 0)), Err(Refusal::Forged));
    }

    #[test]
    fn a_group_that_is_large_or_has_a_site_without_a_secret_gets_signatures() {
        let mut voucher = group(9);
        assert_eq!(voucher.macs(), 0);
        let seal = voucher.seal(b"said", 0);
        assert_eq!(verifier(Some(9)).check(b"said", 0, &seal), Ok(()));
        assert_eq!(verifier(None).check(b"said", 0, &seal), Ok(()));
        assert_eq!(verifier(None).check(b"sad", 0, &seal), Err(Refusal::Forged));
        voucher.forget(9);
        assert_eq!(voucher.macs(), 8);
        voucher.take(8, None);
        assert_eq!(voucher.macs(), 0);
        assert_eq!(ProofSigner::new(&SEED, LEG).unwrap().macs(), 0, "nobody is there");
    }
}
