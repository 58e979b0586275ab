//! Datagrams of legs for a relay. They wait here while the relay's connection takes nothing, within a bound.
use std::collections::{BTreeMap, VecDeque};

use downburst_fanout::StreamId;
use downburst_model::LegId;

use super::HubSession;
use crate::frame::datagrams_header;
use crate::{Datagrams, HubEvent, HubInput, Purpose, RelayLegEnd};

/// The waiting trains of datagrams.
#[derive(Debug, Default)]
pub(super) struct Relayed {
    waiting: VecDeque<Datagrams>,
    /// The bytes of each leg among them.
    leg_bytes: BTreeMap<LegId, usize>,
}

impl Relayed {
    /// Adds a train; false if it has no room.
    fn push(&mut self, train: Datagrams, queue_bytes: usize) -> bool {
        let waiting = self.leg_bytes.entry(train.leg).or_default();
        let sum = waiting.saturating_add(train.bytes.len());
        if *waiting > 0 && sum > queue_bytes {
            return false;
        }
        *waiting = sum;
        self.waiting.push_back(train);
        true
    }

    fn pop(&mut self) -> Option<Datagrams> {
        let train = self.waiting.pop_front()?;
        if let Some(waiting) = self.leg_bytes.get_mut(&train.leg) {
            *waiting = waiting.saturating_sub(train.bytes.len());
        }
        Some(train)
    }

    fn forget(&mut self, leg: LegId) {
        self.waiting.retain(|train| train.leg != leg);
        self.leg_bytes.remove(&leg);
    }
}

impl HubSession {
    /// Takes the inputs that only apply to a relay.
    pub(super) fn take_for_relay(&mut self, input: HubInput) {
        match input {
            HubInput::RelayLeg(leg) => self.send(leg),
            HubInput::EndRelayLeg(leg) => {
                self.line.relayed.forget(leg);
                self.send(RelayLegEnd { leg });
            }
            HubInput::Datagrams { train, queue_bytes } => self.relay(train, queue_bytes),
            _ => {}
        }
    }

    fn relay(&mut self, train: Datagrams, queue_bytes: usize) {
        let (leg, datagrams) = (train.leg, train.count() as u64);
        if !self.line.relayed.push(train, queue_bytes) {
            self.event(HubEvent::RelayDropped { leg, datagrams });
        }
    }

    /// Writes the next train; false if there is none, or if a message goes before it.
    pub(super) fn write_relayed(&mut self) -> bool {
        if self.line.outbox.control_bytes() > 0 {
            return false;
        }
        let Some(train) = self.line.relayed.pop() else { return false };
        self.write_on(StreamId::FIRST, datagrams_header(&train), Purpose::Relayed);
        self.write_on(StreamId::FIRST, train.bytes, Purpose::Relayed);
        true
    }
}
