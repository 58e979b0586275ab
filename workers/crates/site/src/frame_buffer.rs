//! Incoming bytes of a connection, in whole frames.
use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use downburst_session::whole_frames;

/// Large read buffers of a connection. Frames are handed on as parts of them, without a copy; a buffer is reused once
/// all its parts are released.
#[derive(Debug, Default)]
pub struct FrameBuffer {
    /// Begins with an incomplete frame.
    buffer: BytesMut,
    /// Full buffers, oldest first.
    former: VecDeque<BytesMut>,
}

impl FrameBuffer {
    /// The buffer for the next bytes, with room after the present ones.
    pub fn room(&mut self) -> &mut BytesMut {
        if self.buffer.capacity() - self.buffer.len() < LEAST_BYTES && !self.buffer.try_reclaim(LEAST_BYTES) {
            self.change_buffer();
        }
        &mut self.buffer
    }

    /// Takes the whole frames; the beginning of an incomplete one stays.
    pub fn take_frames(&mut self) -> Bytes {
        let whole = whole_frames(&self.buffer);
        self.buffer.split_to(whole).freeze()
    }

    /// The number of full buffers kept for reuse, which may still have parts in use.
    pub fn former_count(&self) -> usize {
        self.former.len()
    }

    fn change_buffer(&mut self) {
        let free = self.former.iter_mut().position(|former| former.try_reclaim(BUFFER_BYTES));
        let free = free.and_then(|index| self.former.remove(index));
        let mut next = free.unwrap_or_else(|| BytesMut::with_capacity(BUFFER_BYTES));
        next.extend_from_slice(&self.buffer);
        let mut full = std::mem::replace(&mut self.buffer, next);
        full.clear();
        if full.capacity() > 0 && self.former.len() < Self::MOST_FORMER {
            self.former.push_back(full);
        }
    }

    /// The number of buffers on their way to a disk that keeps up.
    pub const MOST_FORMER: usize = 4;
}

/// The size of several trains: the beginning of a frame across the end of a buffer is copied.
const BUFFER_BYTES: usize = 256 << 10;
const LEAST_BYTES: usize = 32 << 10;

#[cfg(test)]
mod tests {
    use bytes::BufMut as _;

    use super::*;

    /// A frame of an unknown kind.
    fn frame(number: usize, length: usize) -> Bytes {
        let mut bytes = BytesMut::new();
        bytes.put_u8(200);
        bytes.put_u32(length as u32);
        bytes.put_bytes(number as u8, length);
        bytes.freeze()
    }

    #[test]
    fn frames_come_whole_and_the_beginning_of_another_waits() {
        let mut buffer = FrameBuffer::default();
        let (first, second) = (frame(1, 10), frame(2, 20));
        buffer.room().extend_from_slice(&first);
        buffer.room().extend_from_slice(&second[..7]);
        assert_eq!(buffer.take_frames(), first);
        assert!(buffer.take_frames().is_empty());
        buffer.room().extend_from_slice(&second[7..]);
        assert_eq!(buffer.take_frames(), second);
    }

    #[test]
    fn buffers_that_nobody_needs_are_used_again_and_few_are_kept() {
        for (kept, most) in [(0, 1), (1_000, FrameBuffer::MOST_FORMER)] {
            let (mut buffer, mut parts) = (FrameBuffer::default(), VecDeque::new());
            for number in 0..200 {
                let sent = frame(number, 60_000);
                for piece in sent.chunks(16 << 10) {
                    let room = buffer.room();
                    assert!(room.capacity() - room.len() >= LEAST_BYTES);
                    room.extend_from_slice(piece);
                    let frames = buffer.take_frames();
                    assert!(frames.is_empty() || frames == sent, "frame {number}");
                    parts.push_back(frames);
                }
                parts.truncate(kept);
            }
            assert!(buffer.former_count() <= most, "{}", buffer.former_count());
        }
    }
}
