use std::collections::VecDeque;

use bytes::BytesMut;

/// Reusable memory: buffers are cut side by side from large allocations (slabs), and a slab is reused when all of
/// its buffers are dropped, on any thread.
///
/// A separate allocation for each datagram costs more than the work on the datagram: it is made on one thread and
/// freed on another, and its pages are acquired and released repeatedly. At most `most` slabs are kept, which also
/// limits the memory that a few long-lived buffers can pin; buffers without room in them are allocated separately.
#[derive(Debug)]
pub struct Slabs {
    slab_bytes: usize,
    most: usize,
    /// The uncut part of each slab. The slab in use is in front, followed by the one that was filled first.
    slabs: VecDeque<BytesMut>,
}

impl Slabs {
    /// Allocates no memory until it is needed.
    pub const fn new(slab_bytes: usize, most: usize) -> Self {
        Self { slab_bytes, most, slabs: VecDeque::new() }
    }

    /// An empty buffer with room for this number of bytes.
    pub fn take(&mut self, bytes: usize) -> BytesMut {
        let is_full = self.slabs.front().is_none_or(|slab| slab.capacity() < bytes);
        if is_full && bytes <= self.slab_bytes {
            self.turn();
        }
        match self.slabs.front_mut().filter(|slab| slab.capacity() >= bytes) {
            Some(slab) => {
                let rest = slab.split_off(bytes);
                std::mem::replace(slab, rest)
            }
            None => BytesMut::with_capacity(bytes),
        }
    }

    /// Puts an unused or a new slab in front.
    fn turn(&mut self) {
        if !self.slabs.is_empty() {
            self.slabs.rotate_left(1);
        }
        let free = self.slabs.front_mut().is_some_and(|slab| slab.try_reclaim(self.slab_bytes));
        if !free && self.slabs.len() < self.most {
            self.slabs.push_front(BytesMut::with_capacity(self.slab_bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(slabs: &mut Slabs, bytes: usize, fill: u8) -> BytesMut {
        let mut buffer = slabs.take(bytes);
        assert!(buffer.is_empty() && buffer.capacity() >= bytes);
        buffer.resize(bytes, fill);
        buffer
    }

    #[test]
    fn buffers_lie_side_by_side_and_none_writes_into_another() {
        let mut slabs = Slabs::new(1_000, 2);
        let mut first = filled(&mut slabs, 400, 1);
        let second = filled(&mut slabs, 600, 2);
        assert_eq!(first.as_ptr() as usize + 400, second.as_ptr() as usize);
        first.extend_from_slice(&[3; 100]);
        assert!(second.iter().all(|byte| *byte == 2), "what outgrows its buffer moves");
    }

    #[test]
    fn a_slab_is_cut_again_when_its_last_buffer_is_dropped_and_not_before() {
        let mut slabs = Slabs::new(1_000, 2);
        let (first, second) = (filled(&mut slabs, 600, 1), filled(&mut slabs, 400, 2).freeze());
        let (at, part) = (first.as_ptr(), second.slice(7..9));
        let other = filled(&mut slabs, 1_000, 3);
        drop((first, second));
        assert_ne!(filled(&mut slabs, 600, 4).as_ptr(), at, "a part of a buffer holds the slab");
        assert_eq!(part[..], [2; 2]);
        drop((part, other));
        let again: Vec<_> = (0..2).map(|fill| filled(&mut slabs, 1_000, fill)).collect();
        assert!(again.iter().any(|buffer| buffer.as_ptr() == at));
    }

    #[test]
    fn what_is_kept_is_bounded_and_what_finds_no_room_is_allocated() {
        let mut slabs = Slabs::new(1_000, 3);
        let buffers: Vec<_> = (0..50u8).map(|fill| filled(&mut slabs, 900, fill)).collect();
        assert_eq!(slabs.slabs.len(), 3);
        assert!(buffers.iter().zip(0..).all(|(buffer, fill)| buffer.iter().all(|byte| *byte == fill)));
        assert_eq!(filled(&mut slabs, 5_000, 0).len(), 5_000);
        drop(buffers);
        (0..50).for_each(|fill| drop(filled(&mut slabs, 900, fill)));
        assert_eq!(slabs.slabs.len(), 3);
    }
}
