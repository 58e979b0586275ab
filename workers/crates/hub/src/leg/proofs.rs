//! Secrets for the proofs that a leg sends to its sites.
use downburst_vcmtp::SiteSecret;

/// One secret for each session, the same for the leg's whole life. A second offer of the same leg reaches no
/// further than its session: a new secret would be known to the sender alone, and the site would reject all later
/// proofs.
pub struct ProofSecrets {
    key: [u8; 32],
}

impl ProofSecrets {
    /// Derives the secrets from a random key, new for each life of a leg.
    pub fn new(key: [u8; 32]) -> Self {
        Self { key }
    }

    /// The secret of a session. Sessions are numbered one by one, so that concurrent sessions have different slots.
    pub fn of(&self, session: u64) -> SiteSecret {
        let number = session.to_be_bytes();
        let [.., high, low] = number;
        let secret = *blake3::keyed_hash(&self.key, &number).as_bytes();
        SiteSecret { slot: u16::from_be_bytes([high, low]), secret }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_is_told_again_is_told_the_same_and_no_other_one_is() {
        let (leg, another_leg) = (ProofSecrets::new([1; 32]), ProofSecrets::new([2; 32]));
        let told = leg.of(7);
        assert!(leg.of(7) == told);
        assert_ne!(leg.of(8).slot, told.slot);
        for other in [leg.of(8), leg.of(7 + (1 << 16)), another_leg.of(7)] {
            assert_ne!(other.secret, told.secret);
        }
    }
}
