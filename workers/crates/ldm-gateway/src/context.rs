//! The hub, and what all tasks of the gateway know beside it.
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use downburst_clock::Clock;

use super::complaints::Complaints;
use super::hub::Hub;
use super::routes::Routes;

/// What all tasks know.
#[derive(Default)]
pub(super) struct Shared {
    routes: RwLock<Arc<Routes>>,
    pub(super) complaints: Complaints,
    next_spool: AtomicU64,
}

/// The same with the hub, as each task has it.
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

    /// A number that no other spool file has.
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
