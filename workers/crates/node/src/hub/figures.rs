//! What the agent is told in figures: traffic, latencies, and what sites lack.
pub(super) mod backlog;
pub(super) mod batches;
pub(super) mod traffic;

use std::sync::Mutex;

use downburst_hub::{Batches, Reference};

use super::receipts::Receipts;
use backlog::Backlogs;

/// What is known of sites' deliveries.
pub(super) struct Figures {
    pub(super) reference: Mutex<Reference>,
    pub(super) backlogs: Backlogs,
    pub(super) batches: Mutex<Batches>,
    pub(super) receipts: Receipts,
}

impl Figures {
    /// Of a node that sends for another one or not; `prefix` names its batches.
    pub(super) fn new(sends_for_another: bool, prefix: u64, receipts: Receipts) -> Self {
        Self {
            reference: Mutex::new(Reference::new(sends_for_another)),
            backlogs: Backlogs::default(),
            batches: Mutex::new(Batches::new(prefix)),
            receipts,
        }
    }
}
