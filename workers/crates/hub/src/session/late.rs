//! A session's part in sharing the capacity that is left for late products.
use downburst_model::{Lane, Now, Transport};
use downburst_session::{ClockOffset, HubInput, Outcome};

use super::{HubFacts, NotedReceipt, Report, Session};

/// The limit passed to the protocol, and the bytes reported to the hub.
#[derive(Default)]
pub(super) struct Late {
    /// The rate limit that was passed to the protocol.
    bound_bps: Option<u64>,
    /// The bytes of late products that were reported to the hub.
    bytes: u64,
}

impl Session {
    /// Reports sent bytes, and applies the rate limit that protects the other sites. True if the protocol got a new
    /// limit.
    pub(super) fn share_late(&mut self, now: Now, hub: &dyn HubFacts) -> bool {
        let sent = self.hub.late_bytes();
        if self.identity.site.is_some() && sent > self.late.bytes {
            let bytes = sent - self.late.bytes;
            self.late.bytes = sent;
            self.report(Report::LateSent(bytes));
        }
        let bound = hub.late_bps();
        let changed = bound != std::mem::replace(&mut self.late.bound_bps, bound);
        if changed {
            self.tell(now, HubInput::PaceLate(bound));
        }
        changed
    }
}

/// The latencies of live products to a site over unicast, in microseconds.
pub fn live_waits(clock: ClockOffset, items: &[NotedReceipt]) -> impl Iterator<Item = i64> {
    let is_live = |noted: &&NotedReceipt| {
        let receipt = &noted.receipt;
        let stored = receipt.outcome == Outcome::Stored;
        stored && receipt.lane == Lane::Live && receipt.transport == Transport::Unicast
    };
    items.iter().filter(is_live).map(move |noted| noted.receipt.took_us(clock))
}
