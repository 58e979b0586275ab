//! The gateway as the hub drives it.
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

/// LDM at a hub. The hub owns it and passes itself where the gateway needs it.
#[derive(Default)]
pub struct Gateway {
    shared: Arc<Shared>,
    sources: Sources,
    listeners: Listeners,
    peers: Arc<Peers>,
    statistics: Arc<Statistics>,
}

impl Gateway {
    /// Asks, serves and takes as the line says.
    ///
    /// # Errors
    /// The first thing that can't be done; the rest is done.
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

    /// The feeds changed, and with them what LDMs bring and get.
    pub fn look_at_feeds(&self, hub: &dyn Hub) {
        self.shared.route(Routes::of(hub.feeds()));
        self.look_at_rights(hub);
    }

    /// The sites changed: LDMs whose rights are others are cut off, and come back with a request.
    pub fn look_at_rights(&self, hub: &dyn Hub) {
        self.peers.look_at_rights(&self.shared.routes(), hub.sites());
    }

    /// Writes down how far LDMs came; to be called every few seconds.
    pub fn keep_positions(&self) {
        self.peers.positions.keep();
    }

    /// A product was stored, which an LDM may have brought. Of the types that one claims those of the feed count.
    pub fn stored(&self, ldm: Option<&LdmStamp>, info: &ProductInfo) {
        let feed = self.shared.routes().types(&info.key.feed);
        let brought = ldm.map(|stamp| FeedType::from_bits(stamp.feed_type).common(feed));
        self.statistics.count(brought.unwrap_or(feed), info);
    }

    /// For the answer to the job `status`.
    pub async fn status(&self) -> Value {
        let (sources, addresses) = (self.sources.status().await, self.listeners.addresses());
        json!({"sources": sources, "addresses": addresses, "peers": self.peers.status()})
    }

    /// Ends all connections, and stores what came before.
    pub async fn end(&self) {
        self.sources.end_all().await;
        self.listeners.end().await;
        self.peers.end().await;
        self.peers.positions.keep();
    }
}
