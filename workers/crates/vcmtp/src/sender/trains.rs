//! The choice of the next train: a long one costs sites fewer wake-ups, and a short one keeps nobody waiting.
//!
//! | waiting | the train for which a dry pacer waits |
//! |---|---|
//! | a warning, an observation, a small product, or a packet of one to repair | a short one |
//! | a proof of such a packet, a head, a notice; symbols alone | a short one |
//! | large products without urgency, their symbols and proofs | a long one, or the rest of the product in front |
//!
//! So a product ends no later than by short trains.
use std::collections::BTreeMap;

use downburst_model::{Class, Sequence};

use super::queue::{Filled, Queue, SMALL_PRODUCT_BYTES};
use super::repairs::ForGroup;
use crate::packet::payload::Frame;

/// The train for which a dry pacer waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Train {
    Short,
    /// For this number of bytes of a product at most.
    Long {
        left_bytes: u64,
    },
}

#[derive(Debug, Default)]
pub(crate) struct Trains {
    /// The sizes of the large products without urgency that wait or are being sent.
    large: BTreeMap<Sequence, u64>,
    front: Option<Front>,
    /// A packet that sites wait for was sent after the last proof.
    hurries_proof: bool,
}

/// The large product that the last packet with data ends in.
#[derive(Clone, Copy, Debug)]
struct Front {
    /// The class of the packet.
    class: Class,
    left_bytes: u64,
}

impl Trains {
    /// Notes a product that waits from now on.
    pub(crate) fn product(&mut self, sequence: Sequence, class: Class, bytes: u64) {
        if class > Class::Observation && bytes >= SMALL_PRODUCT_BYTES as u64 {
            self.large.insert(sequence, bytes);
        }
    }

    /// Notes a packet with data.
    pub(crate) fn sent(&mut self, filled: &Filled) {
        self.hurries_proof |= filled.hurried;
        self.front = if filled.hurried { None } else { self.front_after(filled) };
        filled.last.iter().for_each(|sequence| {
            self.large.remove(sequence);
        });
    }

    /// Notes products that are not sent any more.
    pub(crate) fn dropped(&mut self, sequences: &[Sequence]) {
        for sequence in sequences {
            self.large.remove(sequence);
            self.front = None;
        }
    }

    /// Notes a proof of all packets sent so far.
    pub(crate) fn proven(&mut self) {
        self.hurries_proof = false;
    }

    /// True if sites wait for the next proof.
    pub(crate) fn hurries_proof(&self) -> bool {
        self.hurries_proof
    }

    /// The next train of data and repairs.
    pub(crate) fn next(&self, queue: &Queue, repair: Option<ForGroup>) -> Train {
        let is_patient = |front: &Front| {
            queue.urgency().is_some_and(|class| class > Class::Observation && class >= front.class)
        };
        match self.front.filter(is_patient) {
            Some(front) if !matches!(repair, Some(ForGroup::Packet(..))) => {
                Train::Long { left_bytes: front.left_bytes }
            }
            _ => Train::Short,
        }
    }

    fn front_after(&self, filled: &Filled) -> Option<Front> {
        let Some(Frame::Block { sequence, offset, bytes }) = filled.payload.frames.last() else {
            return None;
        };
        let end = offset.saturating_add(bytes.len() as u64);
        let left_bytes = self.large.get(sequence)?.checked_sub(end).filter(|left| *left > 0)?;
        Some(Front { class: filled.class, left_bytes })
    }
}
