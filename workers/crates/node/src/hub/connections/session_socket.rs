//! The socket of a session's first connection, moved in both directions by the session's task.
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use downburst_hub::{Outbound, Taken};
use downburst_model::Micros;
use tokio::io::AsyncWriteExt as _;
use tokio_rustls::server::TlsStream;

use crate::hub::connections::counted::Counted;
use crate::hub::connections::{inbound, outbound};

/// The socket, after its TLS handshake.
pub(in crate::hub) struct SessionSocket {
    stream: TlsStream<Counted>,
    /// The directions take turns: a socket that accepts every write must not keep the session from reading.
    reads_first: bool,
}

/// The result of a read or a write.
pub(in crate::hub) enum Moved {
    /// Empty at the end of the stream.
    Read(std::io::Result<Bytes>),
    Sent(std::io::Result<Taken>),
}

impl SessionSocket {
    pub(in crate::hub) fn new(stream: TlsStream<Counted>) -> Self {
        Self { stream, reads_first: false }
    }

    /// Sends queued bytes and, if `reads`, reads available ones; pends forever if there is nothing to do.
    /// Cancelling the wait loses nothing.
    pub(in crate::hub) async fn moved(&mut self, out: &Outbound, reads: bool) -> Moved {
        poll_fn(|cx| self.poll_moved(cx, out, reads)).await
    }

    /// The local port of the connection.
    pub(in crate::hub) fn local_port(&self) -> Option<u16> {
        self.stream.get_ref().0.local_port()
    }

    /// The round trip of the path, as the kernel measured it.
    pub(in crate::hub) fn round_trip(&self) -> Option<Micros> {
        self.stream.get_ref().0.round_trip()
    }

    pub(in crate::hub) fn connection(&self) -> &Counted {
        self.stream.get_ref().0
    }

    /// Ends the TLS stream and the connection.
    pub(in crate::hub) async fn shut_down(&mut self) {
        let _ = self.stream.shutdown().await;
    }

    fn poll_moved(&mut self, cx: &mut Context<'_>, out: &Outbound, reads: bool) -> Poll<Moved> {
        self.reads_first = !self.reads_first;
        let first = if self.reads_first { self.poll_read(cx, reads) } else { self.poll_send(cx, out) };
        if first.is_ready() {
            return first;
        }
        if self.reads_first { self.poll_send(cx, out) } else { self.poll_read(cx, reads) }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, reads: bool) -> Poll<Moved> {
        if reads { inbound::poll_read(cx, &mut self.stream).map(Moved::Read) } else { Poll::Pending }
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, out: &Outbound) -> Poll<Moved> {
        outbound::poll_send(cx, out, Pin::new(&mut self.stream)).map(Moved::Sent)
    }
}
