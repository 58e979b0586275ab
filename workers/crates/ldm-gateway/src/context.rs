//! The hub, and the state shared by all tasks of the gateway.
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use downburst_clock::Clock;

use super::complaints::Complaints;
use super::hub::Hub;
use super::routes::Routes;

/// The state shared by all tasks.
#[derive(Default)]
pub(super) struct Shared {
    routes: RwLock<Arc<Routes>>,
    pub(super) complaints: Complaints,
    next_spool: AtomicU64,
}

/// Each task's handle on the shared state, with the hub.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) hub: Arc<dyn Hub>,
    pub(super) clock: Clock,
    shared: Arc<Shared>,
}

impl Shared {
    pub(super) fn routes(&self) -> Arc<Routes> {
        Arc::clone(&self.routes.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn route(&self, routes: Routes) {
        *self.routes.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(routes);
    }

    /// A number for a new spool file, used by no other.
    pub(super) fn next_spool(&self) -> u64 {
        self.next_spool.fetch_add(1, Ordering::Relaxed)
    }
}

impl Context {
    pub(super) fn new(hub: Arc<dyn Hub>, shared: &Arc<Shared>) -> Self {
        Self { clock: hub.clock(), hub, shared: Arc::clone(shared) }
    }
}

impl Deref for Context {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}
