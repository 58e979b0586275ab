//! The data connections of one session: sockets that its task serves beside the first one.
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use downburst_model::Micros;
use downburst_session::StreamId;
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio_rustls::server::TlsStream;

use crate::hub::connections::counted::Counted;
use crate::hub::connections::outbound::{Outbound, Taken};
use downburst_hub::PathFacts;

/// A connection with a valid ticket, on its way to its session.
pub(in crate::hub) struct Attached {
    pub(in crate::hub) stream: StreamId,
    pub(in crate::hub) socket: Box<TlsStream<Counted>>,
}

/// All data connections of a session; an empty set uses no memory.
#[derive(Default)]
pub(in crate::hub) struct DataLinks {
    links: Vec<DataLink>,
    /// The index at which the next poll begins, so that no connection starves.
    turn: usize,
}

struct DataLink {
    stream: StreamId,
    socket: Box<TlsStream<Counted>>,
    out: Outbound,
    /// The time from which only queued bytes are sent.
    closing: Option<Micros>,
}

/// The event that woke the session's task.
pub(in crate::hub) enum Woken {
    Taken(StreamId, Taken),
    /// The site sent something, which the protocol does not allow on this connection.
    Spoke(StreamId),
    Ended(StreamId, String),
    /// The queue is empty, and the connection was to be closed.
    Closed,
}

impl DataLinks {
    pub(in crate::hub) fn add(&mut self, attached: Attached) {
        let Attached { stream, socket } = attached;
        self.links.push(DataLink { stream, socket, out: Outbound::new(), closing: None });
    }

    pub(in crate::hub) fn push(&mut self, now: Micros, stream: StreamId, bytes: Bytes) {
        if let Some(link) = self.link(stream) {
            link.out.push(now, bytes);
        }
    }

    /// Limits the sending rate of each selected connection to its part of a rate.
    pub(in crate::hub) fn pace(&self, rate_bps: u64, which: impl Fn(StreamId) -> bool) {
        let links: Vec<&DataLink> = self.links.iter().filter(|link| which(link.stream)).collect();
        for link in &links {
            link.socket.get_ref().0.pace(rate_bps / links.len() as u64);
        }
    }

    /// Notes the bytes that the socket took.
    pub(in crate::hub) fn taken(&mut self, now: Micros, stream: StreamId, taken: &Taken) {
        if let Some(link) = self.link(stream) {
            link.out.taken(now, taken);
        }
    }

    /// Closes a connection once its queue is empty.
    pub(in crate::hub) fn close(&mut self, now: Micros, stream: StreamId) {
        if let Some(link) = self.link(stream) {
            link.closing.get_or_insert(now);
        }
    }

    /// Drops a connection without sending the rest of its queue.
    pub(in crate::hub) fn drop_link(&mut self, stream: StreamId) {
        self.links.retain(|link| link.stream != stream);
    }

    /// A connection that took nothing for `limit`, or has been closing for as long.
    pub(in crate::hub) fn stuck(&self, now: Micros, limit: Micros) -> Option<StreamId> {
        let stuck = |link: &&DataLink| {
            link.out.is_stuck(now, limit) || link.closing.is_some_and(|since| now.since(since) > limit)
        };
        self.links.iter().find(stuck).map(|link| link.stream)
    }

    /// The time at which [`stuck`](Self::stuck) returns a connection, if nothing moves.
    pub(in crate::hub) fn stuck_at(&self, limit: Micros) -> Option<Micros> {
        let closing =
            self.links.iter().filter_map(|link| link.closing.map(|since| since.plus(limit).plus(Micros(1))));
        self.links.iter().filter_map(|link| link.out.stuck_at(limit)).chain(closing).min()
    }

    /// The kernel's measurements of each.
    pub(in crate::hub) fn path_facts(&self) -> impl Iterator<Item = PathFacts> {
        self.links.iter().filter_map(|link| link.socket.get_ref().0.path_facts())
    }

    pub(in crate::hub) fn connections(&self) -> impl Iterator<Item = &Counted> {
        self.links.iter().map(|link| link.socket.get_ref().0)
    }

    /// Moves bytes on all connections; pends forever if there is none. Cancelling the wait loses nothing.
    pub(in crate::hub) async fn moved(&mut self) -> Woken {
        std::future::poll_fn(|cx| self.poll_moved(cx)).await
    }

    fn poll_moved(&mut self, cx: &mut Context<'_>) -> Poll<Woken> {
        let count = self.links.len();
        for step in 0..count {
            let index = (self.turn + step) % count;
            let Some(link) = self.links.get_mut(index) else { continue };
            if let Poll::Ready(woken) = link.poll_moved(cx) {
                self.turn = index + 1;
                if matches!(woken, Woken::Closed | Woken::Ended(..)) {
                    self.links.remove(index);
                }
                return Poll::Ready(woken);
            }
        }
        Poll::Pending
    }

    fn link(&mut self, stream: StreamId) -> Option<&mut DataLink> {
        self.links.iter_mut().find(|link| link.stream == stream)
    }
}

impl DataLink {
    fn poll_moved(&mut self, cx: &mut Context<'_>) -> Poll<Woken> {
        if self.closing.is_some() && self.out.is_empty() {
            // The end of the TLS stream is a courtesy: a socket that can't take it now is dropped without it.
            let _ = Pin::new(&mut *self.socket).poll_shutdown(cx);
            return Poll::Ready(Woken::Closed);
        }
        match self.out.poll_send(cx, Pin::new(&mut *self.socket)) {
            Poll::Ready(Ok(taken)) => return Poll::Ready(Woken::Taken(self.stream, taken)),
            Poll::Ready(Err(error)) => return Poll::Ready(self.failed(&error)),
            Poll::Pending => {}
        }
        let mut room = [0_u8; 64];
        let mut read = ReadBuf::new(&mut room);
        match Pin::new(&mut *self.socket).poll_read(cx, &mut read) {
            Poll::Ready(Ok(())) if read.filled().is_empty() => {
                Poll::Ready(Woken::Ended(self.stream, "the site closed it".to_owned()))
            }
            Poll::Ready(Ok(())) => Poll::Ready(Woken::Spoke(self.stream)),
            Poll::Ready(Err(error)) => Poll::Ready(self.failed(&error)),
            Poll::Pending => Poll::Pending,
        }
    }

    fn failed(&self, error: &std::io::Error) -> Woken {
        Woken::Ended(self.stream, crate::tls::broken(error))
    }
}

impl std::fmt::Debug for Attached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attached").field("stream", &self.stream).finish_non_exhaustive()
    }
}
