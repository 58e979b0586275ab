//! Packets of legs that one site lacks.
use downburst_model::{LegId, RangeSet};

use super::HubSession;
use crate::Purpose;
use crate::frame::repair_frame;

impl HubSession {
    /// The packets can't be repaired by the leg any more.
    pub(super) fn tell_gone(&mut self, leg: LegId, leg_epoch: u64, packets: RangeSet) {
        self.send(crate::PacketsGone { leg, leg_epoch, packets });
    }

    pub(super) fn repair(&mut self, leg: LegId, leg_epoch: u64, packet: u64, payload: &[u8]) {
        // A repair is dropped if the queue is full: the site repeats the request if it still lacks the packet.
        if self.is_active() && self.line.outbox.control_bytes() < REPAIR_QUEUE_BYTES {
            self.line
                .outbox
                .push_control(repair_frame(leg, leg_epoch, packet, payload), Purpose::Repair { leg });
        }
    }
}

/// The maximum of control bytes in the outbox with which a repair is still queued.
const REPAIR_QUEUE_BYTES: usize = 4 << 20;
