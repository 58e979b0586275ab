//! Messages by which a site changes its credential while its session goes on.
use std::fmt;

use downburst_model::WallMicros;
use minicbor::{Decode, Encode};

/// Hub to site: make yourself another credential. The one in use ends, or somebody asked for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct CredentialWanted {
    /// SHA-256 of the secret of the one that it shall take the place of, in hex: the session's as the hub knows it.
    #[n(0)]
    pub of: String,
}

/// Site to hub: a credential that the site made, and keeps. A repetition gets the same answer, so a lost
/// answer does no harm.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CredentialOffered {
    /// SHA-256 of its secret, in hex.
    #[n(0)]
    pub sha256: String,
}

/// Hub to site: this credential is good from here on, and so is the one before it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CredentialKept {
    /// As offered.
    #[n(0)]
    pub sha256: String,
    /// Hub's wall clock when its time is over; absent: it lasts until it is revoked.
    #[n(1)]
    pub ends: Option<WallMicros>,
}

/// Site to hub: the secret of a credential that was kept. The site shows it from here on, so the one before
/// it is needed no more.
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
