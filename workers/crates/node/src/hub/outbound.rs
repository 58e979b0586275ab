//! What waits for a site's socket.
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf as _, BytesMut};
use downburst_model::Micros;
use tokio::io::{AsyncWrite, WriteHalf};
use tokio_rustls::server::TlsStream;

use super::accept::Counted;

/// Bytes on their way into the TLS stream, and when they last moved.
pub(super) struct Outbound {
    bytes: BytesMut,
    flushed: bool,
    moved: Micros,
}

/// What the socket took.
pub(super) enum Taken {
    Bytes(usize),
    All,
}

impl Outbound {
    pub(super) fn new() -> Self {
        Self { bytes: BytesMut::new(), flushed: true, moved: Micros(0) }
    }

    pub(super) fn push(&mut self, now: Micros, bytes: &[u8]) {
        if self.is_empty() {
            self.moved = now;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// True when the socket has everything.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.flushed
    }

    /// True while the machine may be asked for more.
    pub(super) fn has_room(&self) -> bool {
        self.bytes.len() < OUT_LIMIT_BYTES
    }

    /// True when the peer took nothing for so long that it is as good as dead, however much it says itself.
    pub(super) fn is_stuck(&self, now: Micros, limit: Micros) -> bool {
        !self.is_empty() && now.since(self.moved) > limit
    }

    /// When [`is_stuck`](Self::is_stuck) becomes true unless bytes move.
    pub(super) fn stuck_at(&self, limit: Micros) -> Option<Micros> {
        (!self.is_empty()).then(|| self.moved.plus(limit).plus(Micros(1)))
    }

    /// Writes what there is; waits for ever when there is nothing. Nothing is lost when the wait is given up.
    pub(super) async fn send(&self, writer: &mut WriteHalf<TlsStream<Counted>>) -> std::io::Result<Taken> {
        poll_fn(|cx| self.poll_send(cx, Pin::new(writer))).await
    }

    /// The same, as one look.
    pub(super) fn poll_send(
        &self,
        cx: &mut Context<'_>,
        writer: Pin<&mut impl AsyncWrite>,
    ) -> Poll<std::io::Result<Taken>> {
        match (self.bytes.is_empty(), self.flushed) {
            (false, _) => writer.poll_write(cx, &self.bytes).map_ok(Taken::Bytes),
            (true, false) => writer.poll_flush(cx).map_ok(|()| Taken::All),
            (true, true) => Poll::Pending,
        }
    }

    /// Forgets what was taken.
    pub(super) fn taken(&mut self, now: Micros, taken: &Taken) {
        self.moved = now;
        match taken {
            Taken::Bytes(count) => {
                self.bytes.advance(*count);
                self.flushed = false;
            }
            Taken::All => {
                self.flushed = true;
                if self.bytes.is_empty() && self.bytes.capacity() > KEPT_BYTES {
                    self.bytes = BytesMut::new();
                }
            }
        }
    }
}

/// Enough for a fast path, little enough that a warning is not stuck behind it.
pub(super) const OUT_LIMIT_BYTES: usize = 256 << 10;

/// What an idle connection may hold on to.
const KEPT_BYTES: usize = 4 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_waiting_bytes_that_do_not_move_are_stuck() {
        let (mut out, limit) = (Outbound::new(), Micros::from_secs(15));
        assert!(!out.is_stuck(Micros::from_secs(100), limit), "nothing waits");
        out.push(Micros::from_secs(100), b"abc");
        out.push(Micros::from_secs(110), b"abc");
        assert!(!out.is_stuck(Micros::from_secs(115), limit));
        assert_eq!(out.stuck_at(limit), Some(Micros::from_secs(115).plus(Micros(1))));
        assert!(out.is_stuck(Micros::from_secs(116), limit), "more to send is no progress");
        out.taken(Micros::from_secs(116), &Taken::Bytes(6));
        assert!(!out.is_stuck(Micros::from_secs(131), limit));
        assert!(out.is_stuck(Micros::from_secs(132), limit), "what TLS keeps back waits as well");
        out.taken(Micros::from_secs(132), &Taken::All);
        assert!(out.is_empty() && !out.is_stuck(Micros::from_secs(500), limit));
        assert_eq!(out.stuck_at(limit), None);
    }

    #[test]
    fn an_idle_connection_holds_no_large_buffer() {
        let mut out = Outbound::new();
        out.push(Micros(1), &[0; 100_000]);
        out.taken(Micros(2), &Taken::Bytes(100_000));
        out.taken(Micros(3), &Taken::All);
        assert!(out.bytes.capacity() <= KEPT_BYTES);
    }
}
