//! Messages by which a site changes its credential during a session.
use std::fmt;

use downburst_model::WallMicros;
use minicbor::{Decode, Encode};

/// Hub to site: generate another credential. The one in use is about to expire, or an operator requested the
/// change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct CredentialWanted {
    /// SHA-256 of the secret of the credential to replace, in hex: that of the session, as the hub knows it.
    #[n(0)]
    pub of: String,
}

/// Site to hub: a credential that the site has generated and stored. A repetition gets the same answer, so a
/// lost answer does no harm.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CredentialOffered {
    /// SHA-256 of its secret, in hex.
    #[n(0)]
    pub sha256: String,
}

/// Hub to site: this credential is valid from here on, and the previous one stays valid.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CredentialKept {
    /// As offered.
    #[n(0)]
    pub sha256: String,
    /// Hub's wall clock at its expiry; absent: it is valid until it is revoked.
    #[n(1)]
    pub ends: Option<WallMicros>,
}

/// Site to hub: the secret of a credential that the hub stored. The site shows it from here on, so the previous
/// one is no longer needed.
#[derive(Clone, PartialEq, Eq, Encode, Decode)]
pub struct CredentialShown {
    /// The secret.
    #[n(0)]
    pub secret: String,
}

impl fmt::Debug for CredentialShown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CredentialShown(..)")
    }
}
