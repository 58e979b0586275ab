//! The status of a site's hubs, for display.
use serde::{Deserialize, Serialize};

use super::nodes::Wanted;

/// The status of a hub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HubStatus {
    /// Its address for sites.
    pub address: String,
    /// Its name, once received.
    pub name: Option<String>,
    /// `serves`, `stands by`, `away` or `refused`.
    pub state: String,
    /// The time in this state.
    pub seconds: Option<u64>,
    /// True if the site receives, or tries to receive, its feeds from this hub.
    pub active: bool,
    /// True if it serves whenever it is connected.
    pub preferred: bool,
    /// The reason for the missing connection.
    pub reason: Option<String>,
    /// The nodes that serve the site, if the hub has several.
    #[serde(default)]
    pub nodes: Vec<NodeStatus>,
}

/// The status of one of several nodes of a hub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// Its address.
    pub address: String,
    /// The site's feeds that it serves.
    pub feeds: Vec<String>,
    /// True if there is a connection.
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
