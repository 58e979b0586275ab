//! What the job about LDMs carries: whom to ask, whom to serve, whom to tell.
use serde::Deserialize;

/// All of it.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct LdmLine {
    /// Addresses for LDMs that ask or push; none: there is no such port.
    #[serde(default)]
    pub listen: Vec<String>,
    /// More connections at a time are refused.
    #[serde(default = "default_connections")]
    pub connections: usize,
    /// The whole set of sources.
    #[serde(default)]
    pub sources: Vec<LdmSourceLine>,
    /// What may be pushed.
    #[serde(default)]
    pub accept: Vec<LdmAcceptLine>,
    /// Who is told how late products came here; absent: nobody.
    #[serde(default)]
    pub rtstats: Option<RtstatsLine>,
}

/// A collector of rtstats lines.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RtstatsLine {
    /// `HOST[:PORT]`.
    pub collector: String,
    /// How often; up to half as long again.
    #[serde(default = "default_rtstats_seconds")]
    pub every_seconds: u32,
}

/// LDMs that are asked for the same products.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct LdmSourceLine {
    /// What the operator calls it.
    pub source: String,
    /// Feed types, as an expression.
    pub feeds: String,
    /// Identifiers that are wanted.
    pub pattern: String,
    /// `HOST[:PORT]`, the first one as primary.
    pub upstreams: Vec<String>,
    /// Older products are not taken, and no older ones are asked for.
    #[serde(default = "default_max_age_seconds")]
    pub max_age_seconds: u64,
}

/// Hosts that may push.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct LdmAcceptLine {
    /// Feed types, as an expression.
    pub feeds: String,
    /// Identifiers that are taken.
    pub pattern: String,
    /// Matches the name, in lower case, or the address.
    pub host: String,
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
