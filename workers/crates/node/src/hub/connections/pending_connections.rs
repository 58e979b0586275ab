//! Unauthenticated connections, each with the notice of its eviction.
use std::net::SocketAddr;
use std::sync::Arc;

use downburst_hub::AdmissionLimits;
use tokio::sync::oneshot;

use crate::hub::{Hub, lock};

/// The notice to an evicted connection.
type Evicts = oneshot::Sender<()>;

/// All unauthenticated connections of a hub.
pub(in crate::hub) type PendingConnections = downburst_hub::PendingConnections<Evicts>;

/// One connection from its acceptance to the admission of its site, which drops this.
pub(in crate::hub) struct PendingConnection {
    hub: Arc<Hub>,
    pub(in crate::hub) peer: SocketAddr,
    pub(in crate::hub) limits: AdmissionLimits,
    number: u64,
    evicted: oneshot::Receiver<()>,
}

impl PendingConnection {
    /// Registers a connection; another may be evicted for it.
    pub(in crate::hub) fn accepted(hub: &Arc<Hub>, peer: SocketAddr) -> Self {
        let limits = AdmissionLimits::new(hub.clock.monotonic());
        let (sender, evicted) = oneshot::channel();
        let (number, other) = lock(&hub.roster.pending_connections).add(peer.ip(), sender);
        let pending = Self { hub: Arc::clone(hub), peer, limits, number, evicted };
        pending.evict(other);
        pending
    }

    /// Counts buffered bytes of this connection. When all connections together hold too many, the largest is evicted.
    pub(in crate::hub) fn took(&self, bytes: usize) {
        let others = lock(&self.hub.roster.pending_connections).took(self.number, bytes);
        self.evict(others);
    }

    /// Waits until this connection is evicted.
    pub(in crate::hub) async fn evicted(&mut self) {
        // An error means the same: the sender was dropped.
        let _ = (&mut self.evicted).await;
    }

    /// Logs the end of a connection; returns true if the agent should be notified as well. In a flood only
    /// some are logged.
    pub(in crate::hub) fn ended(&self, sentence: &str) -> bool {
        let (speaks, passed_over) =
            lock(&self.hub.roster.pending_connections).log_quota(self.hub.clock.monotonic());
        if passed_over > 0 {
            tracing::info!("{passed_over} more connections ended before a site was admitted");
        }
        if speaks {
            tracing::info!(peer = %self.peer, "a connection ended before a site was admitted: {sentence}");
        }
        speaks
    }

    fn evict(&self, others: impl IntoIterator<Item = Evicts>) {
        for other in others {
            // Without a receiver, the connection is ending already.
            let _ = other.send(());
        }
        let report = lock(&self.hub.roster.pending_connections).report(self.hub.clock.monotonic());
        if let Some(sentence) = report {
            self.hub.fault(sentence, None);
        }
    }
}

impl Drop for PendingConnection {
    fn drop(&mut self) {
        lock(&self.hub.roster.pending_connections).remove(self.number);
    }
}

/// The reason logged for an evicted connection.
pub(in crate::hub) const EVICTED: &str = "it made room for others";
