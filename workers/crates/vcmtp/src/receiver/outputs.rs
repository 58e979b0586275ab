//! A receiver's outputs that were not polled yet.
use std::collections::VecDeque;

use bytes::Bytes;
use downburst_model::Sequence;

use crate::ReceiverOutput;
use crate::packet::slice::Slice;

/// A queue that joins blocks: bytes that follow each other in their product and in memory leave as one block.
#[derive(Debug, Default)]
pub(crate) struct Outputs {
    queue: VecDeque<ReceiverOutput>,
    /// The last output, while it can still grow.
    block: Option<Block>,
}

#[derive(Debug)]
struct Block {
    sequence: Sequence,
    offset: u64,
    bytes: Slice,
}

impl Outputs {
    pub(crate) fn push_back(&mut self, output: ReceiverOutput) {
        self.end_block();
        self.queue.push_back(output);
    }

    pub(crate) fn extend(&mut self, outputs: impl IntoIterator<Item = ReceiverOutput>) {
        self.end_block();
        self.queue.extend(outputs);
    }

    pub(crate) fn push_block(&mut self, sequence: Sequence, offset: u64, bytes: Slice) {
        let follows = self.block.as_mut().is_some_and(|block| block.take(sequence, offset, &bytes));
        if !follows {
            self.end_block();
            self.block = Some(Block { sequence, offset, bytes });
        }
    }

    pub(crate) fn pop_front(&mut self) -> Option<ReceiverOutput> {
        if self.queue.is_empty() {
            self.end_block();
        }
        self.queue.pop_front()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.block.is_none()
    }

    fn end_block(&mut self) {
        let block = self.block.take();
        self.queue.extend(block.map(|Block { sequence, offset, bytes }| ReceiverOutput::Block {
            sequence,
            offset,
            bytes: Bytes::from(bytes),
        }));
    }
}

impl Block {
    fn take(&mut self, sequence: Sequence, offset: u64, bytes: &Slice) -> bool {
        let end = self.offset.saturating_add(self.bytes.len() as u64);
        sequence == self.sequence && offset == end && self.bytes.extend(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRODUCT: Sequence = Sequence(4);

    fn lengths(outputs: &mut Outputs) -> Vec<(u64, usize)> {
        let next = || match outputs.pop_front()? {
            ReceiverOutput::Block { offset, bytes, .. } => Some((offset, bytes.len())),
            _ => Some((0, 0)),
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn blocks_that_follow_in_product_and_memory_leave_as_one() {
        let memory = Bytes::from(vec![1; 100]);
        let part = |from: usize, to: usize| Slice::new(memory.clone(), from, to);
        let mut outputs = Outputs::default();
        outputs.push_block(PRODUCT, 1_000, part(0, 40));
        outputs.push_block(PRODUCT, 1_040, part(40, 60));
        outputs.push_block(PRODUCT, 1_090, part(60, 70));
        outputs.push_block(Sequence(5), 1_100, part(70, 80));
        outputs.push_back(ReceiverOutput::Silent);
        outputs.push_block(Sequence(5), 1_110, part(80, 90));
        assert_eq!(lengths(&mut outputs), [(1_000, 60), (1_090, 10), (1_100, 10), (0, 0), (1_110, 10)]);
        assert!(outputs.is_empty());
    }
}
