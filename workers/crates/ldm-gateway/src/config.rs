//! The job about LDMs: upstreams, listeners, hosts that may push, and the collector of statistics.
use serde::Deserialize;

/// The whole configuration.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct LdmLine {
    /// Addresses to listen on for LDMs that request or push; empty: the hub does not listen.
    #[serde(default)]
    pub listen: Vec<String>,
    /// Largest number of simultaneous connections; further ones are refused.
    #[serde(default = "default_connections")]
    pub connections: usize,
    /// The whole set of sources.
    #[serde(default)]
    pub sources: Vec<LdmSourceLine>,
    /// Hosts that may push, and the products they may push.
    #[serde(default)]
    pub accept: Vec<LdmAcceptLine>,
    /// The collector that receives the latencies of products here; absent: none.
    #[serde(default)]
    pub rtstats: Option<RtstatsLine>,
}

/// A collector of rtstats lines.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RtstatsLine {
    /// `HOST[:PORT]`.
    pub collector: String,
    /// Interval between reports; a random extra of up to half of it is added each time.
    #[serde(default = "default_rtstats_seconds")]
    pub every_seconds: u32,
}

/// LDMs that receive requests for the same products.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct LdmSourceLine {
    /// The source's name, chosen by the operator.
    pub source: String,
    /// Feed types, as an expression.
    pub feeds: String,
    /// Pattern of the requested identifiers.
    pub pattern: String,
    /// `HOST[:PORT]`, the first one as primary.
    pub upstreams: Vec<String>,
    /// Older products are neither requested nor accepted.
    #[serde(default = "default_max_age_seconds")]
    pub max_age_seconds: u64,
}

/// Hosts that may push.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct LdmAcceptLine {
    /// Feed types, as an expression.
    pub feeds: String,
    /// Pattern of the accepted identifiers.
    pub pattern: String,
    /// Pattern for the host's name, in lower case, or for its address.
    pub host: String,
}

/// The default of rtstats.
const fn default_rtstats_seconds() -> u32 {
    60
}

/// The default of LDM's own server.
const fn default_connections() -> usize {
    256
}

/// The default of LDM.
const fn default_max_age_seconds() -> u64 {
    3_600
}
