//! A session's part in sharing what is left for late products, and in files that stand late.
use downburst_model::{Lane, Transport};
use downburst_session::{ClockOffset, HubInput, Outcome, Receipt};

use super::{Member, Session};
use crate::hub::lock;
use crate::hub::receipts::Row;

/// What was told of late products, both ways.
#[derive(Default)]
pub(super) struct Late {
    /// How fast they may go, as the machine was told.
    bound_bps: Option<u64>,
    /// How many bytes of them the hub was told of.
    bytes: u64,
}

impl Session {
    /// What is late goes as fast as the other sites don't feel it.
    pub(super) fn share_late(&mut self) {
        let bound = self.hub.late_share.session_bps();
        if bound != std::mem::replace(&mut self.late.bound_bps, bound) {
            self.tell(HubInput::PaceLate(bound));
        }
        let sent = self.machine.late_bytes();
        if let Some(member) = self.member.as_ref().filter(|_| sent > self.late.bytes) {
            let bytes = sent - self.late.bytes;
            self.late.bytes = sent;
            self.hub.late_share.sent(self.hub.clock.monotonic(), member.handle.serial, bytes);
        }
    }

    /// Keeps the stamps of files that stood only after the receipts of their products had left the site.
    pub(super) fn filed(&mut self, mut items: Vec<Receipt>) {
        if !self.believes_receipts(&items) {
            return;
        }
        items.retain(|it| self.given(&it.key.feed, it.key.epoch).is_some());
        let Some(member) = &self.member else { return };
        lock(&self.hub.batches).filed(&member.site, &items, self.hub.clock.wall());
        self.hub.receipts.record(&member.site, None, items.into_iter().map(Row::of_late_file).collect());
    }

    /// Tells how long live products took to the site.
    pub(super) fn note_waits(&self, member: &Member, clock: Option<ClockOffset>, items: &[Receipt]) {
        let Some(clock) = clock else { return };
        let is_live = |receipt: &&Receipt| {
            let stored = receipt.outcome == Outcome::Stored;
            stored && receipt.lane == Lane::Live && receipt.transport == Transport::Unicast
        };
        let took_us = items.iter().filter(is_live).map(|receipt| receipt.took_us(clock));
        self.hub.late_share.arrived(self.hub.clock.monotonic(), member.handle.serial, took_us);
    }
}
