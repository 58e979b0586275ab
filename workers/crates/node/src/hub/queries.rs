//! Queries about products, their lists and whereabouts, and about the connections of sites.
pub(super) mod browsing;
pub(super) mod deliveries;
pub(super) mod exporting;
pub(super) mod tracer;

use serde::Serialize;
use serde_json::Value;

use crate::lines::Failure;

/// The answer to a job, as a line carries it.
pub(super) fn answer(fields: &impl Serialize) -> Result<Value, Failure> {
    serde_json::to_value(fields).map_err(|error| Failure::new("io", error.to_string()))
}

/// Reads disks in a thread of its own.
async fn in_a_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    let failed = |_| Failure::new("io", "the search was interrupted; ask again and look at the hub's log");
    tokio::task::spawn_blocking(work).await.map_err(failed)
}
