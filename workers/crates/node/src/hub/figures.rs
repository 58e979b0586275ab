//! Figures for the agent: traffic, latencies, and backlogs of sites; samples of their connections.
pub(super) mod backlog;
pub(super) mod batches;
pub(super) mod silences;
pub(super) mod traffic;

use std::sync::Mutex;

use downburst_hub::{Batches, Reference};

use super::receipts::Receipts;
use super::tracer::Tracer;
use crate::clock::Clock;
use crate::counters::Counters;
use crate::lines::Start;
use backlog::Backlogs;
use silences::Silences;

/// Statistics of the deliveries to sites.
pub(super) struct Figures {
    pub(super) reference: Mutex<Reference>,
    pub(super) backlogs: Backlogs,
    pub(super) batches: Mutex<Batches>,
    pub(super) silences: Silences,
    pub(super) receipts: Receipts,
    pub(super) tracer: Tracer,
    _counters: Option<Counters>,
}

impl Figures {
    /// Creates the figures of a hub's own node or of a sender; `prefix` starts the names of its batches.
    pub(super) fn new(start: &Start, prefix: u64, receipts: Receipts, tracer: Tracer, clock: Clock) -> Self {
        Self {
            reference: Mutex::new(Reference::new(start.sender.is_some())),
            backlogs: Backlogs::default(),
            batches: Mutex::new(Batches::new(prefix)),
            silences: Silences::default(),
            receipts,
            tracer,
            _counters: recorded_counters(start, clock),
        }
    }
}

/// Records the counters of this host, if the agent wants them. Those of a sender have its address: its host is not
/// the hub's.
fn recorded_counters(start: &Start, clock: Clock) -> Option<Counters> {
    let host = start.sender.as_ref().map_or("hub", |sender| &sender.address).to_owned();
    let name = move || Some(host.clone());
    start.records.host_counters.then(|| Counters::start(&start.data_dir, Box::new(name), clock))
}
