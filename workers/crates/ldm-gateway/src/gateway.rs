//! The gateway as the hub drives it.
use std::ops::Deref;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use downburst_clock::Clock;
use downburst_ldm6::FeedType;
use downburst_model::{LdmStamp, ProductInfo};
use serde_json::{Value, json};

use super::complaints::Complaints;
use super::config::LdmLine;
use super::hub::{Failure, Hub};
use super::positions::Positions;
use super::routes::Routes;
use super::server::Server;
use super::sources::Sources;
use super::statistics::Statistics;

/// LDM at a hub. The hub owns it and passes itself where the gateway needs it.
#[derive(Default)]
pub struct Gateway(Arc<State>);

/// What the hub knows of LDM.
#[derive(Default)]
pub(super) struct State {
    routes: RwLock<Arc<Routes>>,
    pub(super) sources: Sources,
    pub(super) server: Server,
    pub(super) positions: Positions,
    pub(super) statistics: Statistics,
    pub(super) complaints: Complaints,
    pub(super) next_spool: AtomicU64,
}

/// A hub with its gateway, as each task of the gateway has them.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) hub: Arc<dyn Hub>,
    pub(super) clock: Clock,
    state: Arc<State>,
}

impl Gateway {
    /// Asks, serves and takes as the line says.
    ///
    /// # Errors
    /// The first thing that can't be done; the rest is done.
    pub async fn reconcile(&self, hub: Arc<dyn Hub>, line: LdmLine) -> Result<Value, Failure> {
        let Self(state) = self;
        state.positions.open(hub.data_dir());
        let context = Context { clock: hub.clock(), hub, state: Arc::clone(state) };
        let asked = state.sources.reconcile(&context, line.sources).await;
        state.server.accept_from(line.accept);
        state.statistics.tell(&context, line.rtstats);
        let open = state.server.listen(&context, line.listen, line.connections).await;
        self.look_at_rights(&*context.hub);
        asked.and(open)?;
        Ok(json!({"addresses": state.server.addresses()}))
    }

    /// The feeds changed, and with them what LDMs bring and get.
    pub fn look_at_feeds(&self, hub: &dyn Hub) {
        let routes = Arc::new(Routes::of(hub.feeds()));
        *self.0.routes.write().unwrap_or_else(PoisonError::into_inner) = routes;
        self.look_at_rights(hub);
    }

    /// The sites changed: LDMs whose rights are others are cut off, and come back with a request.
    pub fn look_at_rights(&self, hub: &dyn Hub) {
        self.0.server.look_at_rights(&self.0.routes(), hub.sites());
    }

    /// Writes down how far LDMs came; to be called every few seconds.
    pub fn keep_positions(&self) {
        self.0.positions.keep();
    }

    /// A product was stored, which an LDM may have brought. Of the types that one claims those of the feed count.
    pub fn stored(&self, ldm: Option<&LdmStamp>, info: &ProductInfo) {
        let feed = self.0.routes().types(&info.key.feed);
        let brought = ldm.map(|stamp| FeedType::from_bits(stamp.feed_type).common(feed));
        self.0.statistics.count(brought.unwrap_or(feed), info);
    }

    /// For the answer to the job `status`.
    pub async fn status(&self) -> Value {
        let Self(state) = self;
        json!({
            "sources": state.sources.status().await, "addresses": state.server.addresses(),
            "peers": state.server.status(),
        })
    }

    /// Ends all connections, and stores what came before.
    pub async fn end(&self) {
        self.0.sources.end_all().await;
        self.0.server.end().await;
        self.0.positions.keep();
    }
}

impl State {
    pub(super) fn routes(&self) -> Arc<Routes> {
        Arc::clone(&self.routes.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Deref for Context {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

/// Locks a mutex; a thread that panicked while it held it leaves whole values behind here, so its poison is ignored.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
