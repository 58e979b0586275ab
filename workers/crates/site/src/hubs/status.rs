//! How it stands with a site's hubs, for people.
use serde::{Deserialize, Serialize};

use super::nodes::Wanted;

/// How it stands with a hub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HubStatus {
    /// Its address for sites.
    pub address: String,
    /// Its name, once it said it.
    pub name: Option<String>,
    /// `serves`, `stands by`, `away` or `refused`.
    pub state: String,
    /// For how long.
    pub seconds: Option<u64>,
    /// The site takes, or tries to take, its feeds from this one.
    pub active: bool,
    /// It serves whenever it is well.
    pub preferred: bool,
    /// Why there is no connection.
    pub reason: Option<String>,
    /// Where the hub is several nodes: those that serve the site.
    #[serde(default)]
    pub nodes: Vec<NodeStatus>,
}

/// How it stands with one of several nodes of a hub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// Its address.
    pub address: String,
    /// What it serves of the site's feeds.
    pub feeds: Vec<String>,
    /// Whether there is a connection.
    pub connected: bool,
}

impl NodeStatus {
    pub(super) fn of(wanted: &Wanted, is_connected: bool) -> Self {
        let feeds = wanted.only.iter().flatten();
        Self {
            address: wanted.address.clone(),
            feeds: feeds.map(|feed| feed.as_str().to_owned()).collect(),
            connected: is_connected,
        }
    }
}
