//! A session's part in sharing what is left for late products.
use downburst_model::{Lane, Now, Transport};
use downburst_session::{ClockOffset, HubInput, Outcome};

use super::{HubFacts, NotedReceipt, Report, Session};

/// What was told of late products, both ways.
#[derive(Default)]
pub(super) struct Late {
    /// How fast they may go, as the protocol was told.
    bound_bps: Option<u64>,
    /// How many bytes of them the hub was told of.
    bytes: u64,
}

impl Session {
    /// What is late goes as fast as the other sites don't feel it. True if the protocol was told something.
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

/// How long live products took to a site by unicast, in microseconds.
pub fn live_waits(clock: ClockOffset, items: &[NotedReceipt]) -> impl Iterator<Item = i64> {
    let is_live = |noted: &&NotedReceipt| {
        let receipt = &noted.receipt;
        let stored = receipt.outcome == Outcome::Stored;
        stored && receipt.lane == Lane::Live && receipt.transport == Transport::Unicast
    };
    items.iter().filter(is_live).map(move |noted| noted.receipt.took_us(clock))
}
