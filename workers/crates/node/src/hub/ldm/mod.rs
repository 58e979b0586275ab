//! LDM both ways: LDMs that are asked for products, and those that ask this hub or push to it.
//!
//! [`Ldm`] is the hub's state of both. A task drives each request to an upstream ([`request`]), and one each
//! connection that an LDM made ([`serve`]); both hold a machine of crate ldm6 and hand products to the feeds'
//! writers ([`intake`]).
mod border;
mod door;
mod intake;
mod names;
mod place;
mod places;
mod readers;
mod request;
mod routes;
mod rules;
mod serve;
mod sources;
mod statistics;
mod words;

use std::sync::{Arc, PoisonError, RwLock};

use downburst_ldm6::FeedType;
use downburst_model::{LdmStamp, ProductInfo};
use serde_json::{Value, json};

use super::Hub;
use crate::lines::{Failure, LdmLine};
use border::Border;
use door::Door;
use places::Places;
use routes::Routes;
use sources::Sources;
use statistics::Statistics;

/// What the hub knows of LDM.
#[derive(Default)]
pub(super) struct Ldm {
    routes: RwLock<Arc<Routes>>,
    sources: Sources,
    door: Door,
    places: Places,
    statistics: Statistics,
    border: Border,
}

impl Ldm {
    /// Asks, serves and takes as the line says; fails with the first thing that can't be done, and does the rest.
    pub(super) async fn reconcile(&self, hub: &Arc<Hub>, line: LdmLine) -> Result<Value, Failure> {
        self.places.open(&hub.start.data_dir);
        let asked = self.sources.reconcile(hub, line.sources).await;
        self.door.accept_from(line.accept);
        self.statistics.tell(hub, line.rtstats);
        let open = self.door.listen(hub, line.listen, line.connections).await;
        self.look_at_rights(hub);
        asked.and(open)?;
        Ok(json!({"addresses": self.door.addresses()}))
    }

    /// The feeds changed, and with them what LDMs bring and get.
    pub(super) fn look_at_feeds(&self, hub: &Arc<Hub>) {
        *self.routes.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(Routes::of(&hub.feeds));
        self.look_at_rights(hub);
    }

    /// The sites changed: LDMs whose rights are others are cut off, and come back with a request.
    pub(super) fn look_at_rights(&self, hub: &Hub) {
        self.door.look_at_rights(hub);
    }

    /// Writes down how far LDMs came; to be called every few seconds.
    pub(super) fn keep_places(&self) {
        self.places.keep();
    }

    /// A product was stored, which an LDM may have brought. Of the types that one claims those of the feed count.
    pub(super) fn stored(&self, ldm: Option<&LdmStamp>, info: &ProductInfo) {
        let feed = self.routes().types(&info.key.feed);
        let brought = ldm.map(|stamp| FeedType::from_bits(stamp.feed_type).common(feed));
        self.statistics.count(brought.unwrap_or(feed), info);
    }

    pub(super) async fn status(&self) -> Value {
        json!({"sources": self.sources.status().await, "addresses": self.door.addresses(), "peers": self.door.status()})
    }

    pub(super) async fn end(&self) {
        self.sources.end_all().await;
        self.door.end().await;
        self.places.keep();
    }

    fn routes(&self) -> Arc<Routes> {
        Arc::clone(&self.routes.read().unwrap_or_else(PoisonError::into_inner))
    }
}
