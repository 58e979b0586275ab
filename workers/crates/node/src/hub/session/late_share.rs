//! The rate limit of late products, which all sessions read without waiting for each other.
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use downburst_model::Micros;

use crate::hub::lock;

/// The bound of one hub, shared by its sessions.
pub(in crate::hub) struct LateShare {
    share: Mutex<downburst_hub::LateShare>,
    /// For each session that has late products, in bits per second.
    session_bps: AtomicU64,
}

impl LateShare {
    pub(in crate::hub) fn new() -> Self {
        Self { share: Mutex::default(), session_bps: AtomicU64::new(UNBOUNDED) }
    }

    /// The rate at which a session may send late products, in bits per second; `None` if it is unbounded.
    pub(in crate::hub) fn session_bps(&self) -> Option<u64> {
        Some(self.session_bps.load(Ordering::Relaxed)).filter(|bound| *bound != UNBOUNDED)
    }

    /// Counts bytes of late products that a session has sent.
    pub(in crate::hub) fn sent(&self, now: Micros, session: u64, bytes: u64) {
        let mut share = lock(&self.share);
        let changed = share.sent(now, session, bytes);
        self.publish(changed, &share);
    }

    /// Notes the latencies, in microseconds, of live products at the site of a session.
    pub(in crate::hub) fn arrived(&self, now: Micros, session: u64, took_us: impl Iterator<Item = i64>) {
        let mut took_us = took_us.peekable();
        if took_us.peek().is_some() {
            let mut share = lock(&self.share);
            let changed = share.arrived(now, session, took_us);
            self.publish(changed, &share);
        }
    }

    pub(in crate::hub) fn forget(&self, session: u64) {
        lock(&self.share).forget(session);
    }

    fn publish(&self, changed: bool, share: &downburst_hub::LateShare) {
        if changed {
            self.session_bps.store(share.session_bps().unwrap_or(UNBOUNDED), Ordering::Relaxed);
        }
    }
}

const UNBOUNDED: u64 = u64::MAX;
