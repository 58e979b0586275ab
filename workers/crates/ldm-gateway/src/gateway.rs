//! The gateway's interface for the hub.
use std::sync::Arc;

use downburst_ldm6::FeedType;
use downburst_model::{LdmStamp, ProductInfo};
use serde_json::{Value, json};

use super::config::LdmLine;
use super::context::{Context, Shared};
use super::hub::{Failure, Hub};
use super::routes::Routes;
use super::server::{Listeners, Peers};
use super::statistics::Statistics;
use super::upstreams::Sources;

/// LDM at a hub. The hub owns the gateway and passes itself to the calls that need it.
#[derive(Default)]
pub struct Gateway {
    shared: Arc<Shared>,
    sources: Sources,
    listeners: Listeners,
    peers: Arc<Peers>,
    statistics: Arc<Statistics>,
}

impl Gateway {
    /// Applies the configuration: sources, listeners, hosts that may push, statistics.
    ///
    /// # Errors
    /// The failure of one part; the other parts are applied nevertheless.
    pub async fn reconcile(&self, hub: Arc<dyn Hub>, line: LdmLine) -> Result<Value, Failure> {
        self.peers.positions.open(hub.data_dir());
        let context = Context::new(hub, &self.shared);
        let asked = self.sources.reconcile(&context, line.sources).await;
        self.peers.accept_from(line.accept);
        self.statistics.tell(&context.hub, line.rtstats);
        self.peers.allow(line.connections);
        let open = self.listeners.listen(&context, &self.peers, line.listen).await;
        self.look_at_rights(&*context.hub);
        asked.and(open)?;
        Ok(json!({"addresses": self.listeners.addresses()}))
    }

    /// Updates routes and rights after a change of feeds.
    pub fn look_at_feeds(&self, hub: &dyn Hub) {
        self.shared.route(Routes::of(hub.feeds()));
        self.look_at_rights(hub);
    }

    /// Updates rights after a change of sites. LDMs with changed rights are disconnected, so that they request again.
    pub fn look_at_rights(&self, hub: &dyn Hub) {
        self.peers.look_at_rights(&self.shared.routes(), hub.sites());
    }

    /// Stores the positions of LDMs; to be called every few seconds.
    pub fn keep_positions(&self) {
        self.peers.positions.keep();
    }

    /// Counts a stored product, from an LDM or another source. Of the types an LDM claims, only the feed's count.
    pub fn stored(&self, ldm: Option<&LdmStamp>, info: &ProductInfo) {
        let feed = self.shared.routes().types(&info.key.feed);
        let brought = ldm.map(|stamp| FeedType::from_bits(stamp.feed_type).common(feed));
        self.statistics.count(brought.unwrap_or(feed), info);
    }

    /// The gateway's part of the answer to the job `status`.
    pub async fn status(&self) -> Value {
        let (sources, addresses) = (self.sources.status().await, self.listeners.addresses());
        json!({"sources": sources, "addresses": addresses, "peers": self.peers.status()})
    }

    /// Ends all connections; stores the products received so far, and the positions.
    pub async fn end(&self) {
        self.sources.end_all().await;
        self.listeners.end().await;
        self.peers.end().await;
        self.peers.positions.keep();
    }
}
