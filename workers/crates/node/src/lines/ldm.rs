//! What the job about LDMs carries.
use serde::Deserialize;

/// See [`Action::Ldm`](super::Action::Ldm).
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct LdmLine {
    /// Addresses for LDMs that ask or push; none: there is no such port.
    #[serde(default)]
    pub(crate) listen: Vec<String>,
    /// More connections at a time are refused.
    #[serde(default = "default_connections")]
    pub(crate) connections: usize,
    /// The whole set of sources.
    #[serde(default)]
    pub(crate) sources: Vec<LdmSourceLine>,
    /// What may be pushed.
    #[serde(default)]
    pub(crate) accept: Vec<LdmAcceptLine>,
    /// Who is told how late products came here; absent: nobody.
    #[serde(default)]
    pub(crate) rtstats: Option<RtstatsLine>,
}

/// A collector of rtstats lines.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct RtstatsLine {
    /// `HOST[:PORT]`.
    pub(crate) collector: String,
    /// How often; up to half as long again.
    #[serde(default = "default_rtstats_seconds")]
    pub(crate) every_seconds: u32,
}

/// LDMs that are asked for the same products.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct LdmSourceLine {
    /// What the operator calls it.
    pub(crate) source: String,
    /// Feed types, as an expression.
    pub(crate) feeds: String,
    /// Identifiers that are wanted.
    pub(crate) pattern: String,
    /// `HOST[:PORT]`, the first one as primary.
    pub(crate) upstreams: Vec<String>,
    /// Older products are not taken, and no older ones are asked for.
    #[serde(default = "default_max_age_seconds")]
    pub(crate) max_age_seconds: u64,
}

/// Hosts that may push.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct LdmAcceptLine {
    /// Feed types, as an expression.
    pub(crate) feeds: String,
    /// Identifiers that are taken.
    pub(crate) pattern: String,
    /// Matches the name, in lower case, or the address.
    pub(crate) host: String,
}

/// As rtstats.
const fn default_rtstats_seconds() -> u32 {
    60
}

/// As LDM's own server.
const fn default_connections() -> usize {
    256
}

/// As LDM.
const fn default_max_age_seconds() -> u64 {
    3_600
}
