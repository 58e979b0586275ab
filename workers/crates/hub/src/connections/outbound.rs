//! The outgoing queue of a site's socket.
use std::collections::VecDeque;

use bytes::{Buf as _, Bytes, BytesMut};
use downburst_model::Micros;

/// Bytes on their way into the TLS stream, and the time of their last progress. Large pieces are not copied but
/// shared with other sites and with the log; the first copy of them is the encrypted one.
#[derive(Debug)]
pub struct Outbound {
    pieces: VecDeque<Bytes>,
    /// Consecutive small pieces, behind the large ones.
    tail: BytesMut,
    waiting: usize,
    flushed: bool,
    moved: Micros,
}

/// The bytes that the socket took.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// Their number.
    pub bytes: usize,
    /// True if TLS holds none of them back.
    pub flushed: bool,
}

impl Outbound {
    /// Queues bytes.
    pub fn push(&mut self, now: Micros, bytes: Bytes) {
        if self.is_empty() {
            self.moved = now;
        }
        self.waiting += bytes.len();
        if bytes.len() < WORTH_SHARING_BYTES {
            self.tail.extend_from_slice(&bytes);
        } else {
            self.close_tail();
            self.pieces.push_back(bytes);
        }
    }

    /// True when the socket has everything.
    pub fn is_empty(&self) -> bool {
        self.waiting == 0 && self.flushed
    }

    /// True while the session machine may be asked for more.
    pub fn has_room(&self) -> bool {
        self.waiting < OUT_LIMIT_BYTES
    }

    /// True if the peer has taken nothing for so long that it counts as dead, however much it sends.
    pub fn is_stuck(&self, now: Micros, limit: Micros) -> bool {
        !self.is_empty() && now.since(self.moved) > limit
    }

    /// The time at which [`is_stuck`](Self::is_stuck) becomes true unless bytes move.
    pub fn stuck_at(&self, limit: Micros) -> Option<Micros> {
        (!self.is_empty()).then(|| self.moved.plus(limit).plus(Micros(1)))
    }

    /// The number of queued bytes.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting
    }

    /// The first queued bytes in order, in as many pieces as a socket takes in one call.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let pieces = self.pieces.iter().take(PIECES_AT_ONCE - 1).map(Bytes::as_ref);
        // If some pieces are left out, the tail would be out of order behind the others.
        let tail = (self.pieces.len() < PIECES_AT_ONCE).then(|| self.tail.as_ref());
        pieces.chain(tail)
    }

    /// Removes the bytes that were taken.
    pub fn taken(&mut self, now: Micros, taken: &Taken) {
        self.moved = now;
        self.advance(taken.bytes);
        self.flushed = taken.flushed;
        if self.is_empty() && self.tail.capacity() > KEPT_BYTES {
            self.tail = BytesMut::new();
        }
    }

    fn close_tail(&mut self) {
        if !self.tail.is_empty() {
            self.pieces.push_back(self.tail.split().freeze());
        }
    }

    fn advance(&mut self, mut count: usize) {
        self.waiting -= count;
        while let Some(first) = self.pieces.front_mut() {
            let taken = count.min(first.len());
            first.advance(taken);
            count -= taken;
            if !first.is_empty() {
                return;
            }
            self.pieces.pop_front();
        }
        self.tail.advance(count);
    }
}

impl Default for Outbound {
    fn default() -> Self {
        Self { pieces: VecDeque::new(), tail: BytesMut::new(), waiting: 0, flushed: true, moved: Micros(0) }
    }
}

/// Copying fewer bytes is cheaper than a piece of their own.
const WORTH_SHARING_BYTES: usize = 4 << 10;

/// More than TLS takes in one call, whatever their size.
const PIECES_AT_ONCE: usize = 32;

/// The amount that TLS takes in one call: the session is asked for more as soon as that is gone, so a larger
/// one would bring nothing, and a warning would be stuck behind it.
pub const OUT_LIMIT_BYTES: usize = 64 << 10;

/// The buffer that an idle connection may keep.
const KEPT_BYTES: usize = 4 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    const FLUSHED: Taken = Taken { bytes: 0, flushed: true };

    fn taken(bytes: usize) -> Taken {
        Taken { bytes, flushed: false }
    }

    #[test]
    fn only_waiting_bytes_that_do_not_move_are_stuck() {
        let (mut out, limit) = (Outbound::default(), Micros::from_secs(15));
        assert!(!out.is_stuck(Micros::from_secs(100), limit), "nothing waits");
        out.push(Micros::from_secs(100), Bytes::from_static(b"abc"));
        out.push(Micros::from_secs(110), Bytes::from_static(b"abc"));
        assert!(!out.is_stuck(Micros::from_secs(115), limit));
        assert_eq!(out.stuck_at(limit), Some(Micros::from_secs(115).plus(Micros(1))));
        assert!(out.is_stuck(Micros::from_secs(116), limit), "more to send is no progress");
        out.taken(Micros::from_secs(116), &taken(6));
        assert!(!out.is_stuck(Micros::from_secs(131), limit));
        assert!(out.is_stuck(Micros::from_secs(132), limit), "what TLS keeps back waits as well");
        out.taken(Micros::from_secs(132), &FLUSHED);
        assert!(out.is_empty() && !out.is_stuck(Micros::from_secs(500), limit));
        assert_eq!(out.stuck_at(limit), None);
    }

    #[test]
    fn an_idle_connection_holds_no_large_buffer() {
        let mut out = Outbound::default();
        (0..100).for_each(|_| out.push(Micros(1), Bytes::from_static(&[0; 1_000])));
        out.taken(Micros(2), &taken(100_000));
        out.taken(Micros(3), &FLUSHED);
        assert!(out.tail.capacity() <= KEPT_BYTES);
    }

    #[test]
    fn pieces_and_small_ones_go_in_order_however_they_are_taken() {
        let sizes = [3, 5_000, 2, 1, 9_000, 4_096, 7];
        let (mut out, mut expected) = (Outbound::default(), Vec::new());
        for (number, size) in sizes.into_iter().enumerate() {
            expected.extend(vec![number as u8; size]);
            out.push(Micros(0), Bytes::from(vec![number as u8; size]));
        }
        let mut found = Vec::new();
        for step in (1..).map(|step| step * 37) {
            let left: Vec<u8> = out.pieces.iter().flatten().chain(&out.tail).copied().collect();
            assert_eq!(left.len(), out.waiting);
            let step = step.min(left.len());
            if step == 0 {
                break;
            }
            found.extend_from_slice(&left[..step]);
            out.taken(Micros(0), &taken(step));
        }
        assert_eq!(found, expected);
        assert!(out.pieces.is_empty() && out.tail.is_empty());
    }

    #[test]
    fn pieces_for_one_call_are_the_first_ones_and_the_tail_never_overtakes() {
        let mut out = Outbound::default();
        let large = Bytes::from(vec![1; WORTH_SHARING_BYTES]);
        for count in 1..=PIECES_AT_ONCE + 1 {
            out.push(Micros(0), large.clone());
            assert_eq!(out.waiting_bytes(), count * WORTH_SHARING_BYTES);
        }
        out.push(Micros(0), Bytes::from_static(b"tail"));
        assert_eq!(out.pieces().count(), PIECES_AT_ONCE - 1);
        assert!(out.pieces().all(|piece| piece.len() == WORTH_SHARING_BYTES));
        out.taken(Micros(0), &taken(WORTH_SHARING_BYTES * PIECES_AT_ONCE + 1));
        let left: Vec<usize> = out.pieces().map(<[u8]>::len).collect();
        assert_eq!(left, [WORTH_SHARING_BYTES - 1, 4]);
    }

    #[test]
    fn there_is_room_until_one_call_of_tls_is_queued() {
        let mut out = Outbound::default();
        out.push(Micros(0), Bytes::from(vec![0; OUT_LIMIT_BYTES - 1]));
        assert!(out.has_room());
        out.push(Micros(0), Bytes::from_static(b"x"));
        assert!(!out.has_room());
        out.taken(Micros(0), &taken(1));
        assert!(out.has_room());
    }
}
