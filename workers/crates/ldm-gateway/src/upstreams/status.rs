//! The status of an upstream.
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::intake::Counts;
use crate::lock;

/// The state of one upstream LDM.
#[derive(Default)]
pub(super) struct UpstreamStatus {
    pub(super) counts: Arc<Counts>,
    standing: Mutex<Standing>,
}

#[derive(Default)]
struct Standing {
    connected: bool,
    mode: &'static str,
    reason: Option<String>,
}

impl UpstreamStatus {
    pub(super) fn is_connected(&self, mode: &'static str) {
        *lock(&self.standing) = Standing { connected: true, mode, reason: None };
    }

    /// Notes a loss or refusal; true if the upstream was connected or the reason has changed.
    pub(super) fn is_away(&self, reason: &str) -> bool {
        let mut standing = lock(&self.standing);
        let was_connected = std::mem::replace(&mut standing.connected, false);
        let before = standing.reason.replace(reason.to_owned());
        was_connected || before.as_deref() != Some(reason)
    }

    pub(super) fn status(&self, upstream: &str) -> Value {
        let standing = lock(&self.standing);
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Counts { stored, bytes, duplicates, passed_over, dropped } = &*self.counts;
        json!({
            "upstream": upstream, "connected": standing.connected, "mode": standing.mode, "reason": standing.reason,
            "stored": count(stored), "bytes": count(bytes), "duplicates": count(duplicates),
            "passed_over": count(passed_over), "dropped": count(dropped),
        })
    }
}
