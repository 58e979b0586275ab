//! A connection with a site, and the kernel's measurements of it.
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use downburst_hub::{ConnectionLook, Knobs, PathFacts};
use downburst_model::Micros;
use downburst_session::StreamId;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::hub::{Hub, lock};
use crate::tcp;

/// A TCP stream whose written bytes enter the egress account, TLS included.
pub(in crate::hub) struct Counted {
    stream: TcpStream,
    hub: Arc<Hub>,
    /// Present once something was set.
    options: Mutex<Option<Box<tcp::Options>>>,
}

impl Counted {
    pub(in crate::hub) fn new(stream: TcpStream, hub: &Arc<Hub>) -> Self {
        Self { stream, hub: Arc::clone(hub), options: Mutex::default() }
    }

    /// The local port of the connection.
    pub(in crate::hub) fn local_port(&self) -> Option<u16> {
        self.stream.local_addr().ok().map(|address| address.port())
    }

    /// The addresses of both ends, the hub's first.
    pub(in crate::hub) fn ends(&self) -> Option<(SocketAddr, SocketAddr)> {
        Some((self.stream.local_addr().ok()?, self.stream.peer_addr().ok()?))
    }

    /// Limits its sending rate to a part of its circuit's.
    pub(in crate::hub) fn pace(&self, rate_bps: u64) {
        lock(&self.options).get_or_insert_default().pace_circuit(&self.stream, rate_bps);
    }

    /// Sets the options of its TCP profile; the error names those that the kernel refused.
    pub(in crate::hub) fn apply(&self, knobs: &Knobs) -> Result<(), String> {
        let mut options = lock(&self.options);
        if options.is_none() && knobs.is_empty() {
            return Ok(());
        }
        options.get_or_insert_default().apply(&self.stream, knobs)
    }

    /// Its progress, for its TCP profile.
    pub(in crate::hub) fn progress(&self, stream: StreamId, queued: bool) -> Option<ConnectionLook> {
        tcp::progress(&self.stream, stream, queued)
    }

    /// The round trip of the path, as the kernel measured it.
    pub(in crate::hub) fn round_trip(&self) -> Option<Micros> {
        tcp::least_round_trip(&self.stream)
    }

    pub(in crate::hub) fn path_facts(&self) -> Option<PathFacts> {
        tcp::path_facts(&self.stream)
    }

    pub(in crate::hub) fn measure_anew(&self) {
        tcp::measure_anew(&self.stream);
    }

    pub(in crate::hub) fn waits_to_resend(&self) -> bool {
        tcp::waits_to_resend(&self.stream)
    }

    pub(in crate::hub) fn try_again_each_second(&self, each_second: bool) {
        tcp::try_again_each_second(&self.stream, each_second);
    }
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        if let Poll::Ready(Ok(bytes)) = written {
            self.hub.counters.wire(bytes);
        }
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        if let Poll::Ready(Ok(bytes)) = written {
            self.hub.counters.wire(bytes);
        }
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
