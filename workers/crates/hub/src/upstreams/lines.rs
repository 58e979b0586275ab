//! The agent's lines about upstreams.
use downburst_model::FeedName;
use serde::Deserialize;

/// A hub of which this hub is a site.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct UpstreamLine {
    /// The operator's name for it.
    pub upstream: String,
    /// Its address for sites.
    pub address: String,
    /// The enrolment token from its operator.
    pub token: String,
    /// The feeds to take; empty: all that exist here.
    #[serde(default)]
    pub feeds: Vec<FeedName>,
}
