//! The port for sites.
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::BytesMut;
use downburst_hub::{AdmissionLimits, PathFacts};
use downburst_model::Micros;
use downburst_session::Opening;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::server::TlsStream;

use super::pending_connections::PendingConnection;
use super::{Hub, session};
use crate::lines::Start;
use crate::tcp;

/// Takes connections of sites until the hub stops.
pub(super) async fn accept(hub: Arc<Hub>, listener: TcpListener) {
    let mut stopping = hub.stopping.subscribe();
    hub.roster.wait_until_told().await;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopping.wait_for(|stop| *stop) => return,
        };
        match accepted {
            Ok((stream, peer)) => {
                let pending = PendingConnection::accepted(&hub, peer);
                tokio::spawn(greet(Arc::clone(&hub), stream, pending));
            }
            Err(error) => {
                hub.fault(
                    format!("a connection could not be accepted: {error}; raise the limit of open files"),
                    None,
                );
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Has connections that come in use the congestion control that was asked for.
pub(super) fn prepare(listener: &TcpListener, start: &Start) -> Result<(), String> {
    start.tcp_congestion.as_ref().map_or(Ok(()), |name| tcp::use_congestion_control(listener, name))
}

async fn greet(hub: Arc<Hub>, stream: TcpStream, mut pending: PendingConnection) {
    tcp::prepare(&stream);
    let handshake = hub.acceptor.accept(Counted { stream, hub: Arc::clone(&hub) });
    let shaken = tokio::select! {
        shaken = within(&hub, pending.limits, handshake) => shaken,
        () = pending.evicted() => {
            pending.ended(EVICTED);
            return;
        }
    };
    match shaken {
        // A task of its own: what the handshake needed is given back.
        Ok(Ok(stream)) => {
            pending.limits.shaken(hub.clock.monotonic());
            drop(tokio::spawn(listen(hub, stream, pending)));
        }
        Ok(Err(error)) => drop(pending.ended(&format!("the TLS handshake failed: {error}"))),
        Err(late) => drop(pending.ended(late)),
    }
}

/// What comes of a step of an admission, or why it took too long.
async fn within<F: Future>(hub: &Hub, limits: AdmissionLimits, step: F) -> Result<F::Output, &'static str> {
    let left = Duration::from_micros(limits.late_at().since(hub.clock.monotonic()).0);
    let ended = tokio::time::timeout(left, step).await;
    ended.map_err(|_| limits.late(limits.late_at()).unwrap_or_default())
}

/// Hears from a connection what it is, and gives it to those who serve it.
async fn listen(hub: Arc<Hub>, mut stream: TlsStream<Counted>, mut pending: PendingConnection) {
    let mut heard = BytesMut::new();
    let opening = tokio::select! {
        opening = within(&hub, pending.limits, hear(&mut stream, &mut heard)) => opening,
        () = pending.evicted() => {
            pending.ended(EVICTED);
            return;
        }
    };
    match opening {
        Ok(Ok(Opening::Session)) => {
            pending.limits.opened();
            session::serve(hub, stream, pending, heard.freeze()).await;
        }
        Ok(Ok(Opening::Data(ticket))) => {
            if let Err(sentence) = hub.roster.attach(hub.clock.monotonic(), &ticket, Box::new(stream)) {
                pending.ended(sentence);
            }
        }
        Ok(Ok(_)) => drop(pending.ended("it did not begin as a site does")),
        Ok(Err(error)) => drop(pending.ended(&crate::tls::broken(&error))),
        Err(late) => drop(pending.ended(late)),
    }
}

/// Reads until the first frame tells what the connection is; the end of the stream tells that it is nothing.
async fn hear(stream: &mut TlsStream<Counted>, heard: &mut BytesMut) -> io::Result<Opening> {
    loop {
        match Opening::of(heard) {
            Opening::Unknown => {}
            opening => return Ok(opening),
        }
        heard.reserve(OPENING_READ_BYTES);
        if stream.read_buf(heard).await? == 0 {
            return Ok(Opening::Malformed);
        }
    }
}

/// A TCP stream whose written bytes enter the egress account, TLS included.
pub(super) struct Counted {
    stream: TcpStream,
    hub: Arc<Hub>,
}

impl Counted {
    /// The port that was come to.
    pub(super) fn local_port(&self) -> Option<u16> {
        self.stream.local_addr().ok().map(|address| address.port())
    }

    /// Has it send no faster than this.
    pub(super) fn pace(&self, rate_bps: u64) {
        tcp::pace(&self.stream, rate_bps);
    }

    /// The round trip of the path, as the kernel measured it.
    pub(super) fn round_trip(&self) -> Option<Micros> {
        tcp::least_round_trip(&self.stream)
    }

    pub(super) fn path_facts(&self) -> Option<PathFacts> {
        tcp::path_facts(&self.stream)
    }

    pub(super) fn measure_anew(&self) {
        tcp::measure_anew(&self.stream);
    }

    pub(super) fn waits_to_resend(&self) -> bool {
        tcp::waits_to_resend(&self.stream)
    }

    pub(super) fn try_again_each_second(&self, each_second: bool) {
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

/// Why an unauthenticated connection had to go.
pub(super) const EVICTED: &str = "it made room for others";

/// A ticket and most hellos are shorter; who sends more is read on by its session.
const OPENING_READ_BYTES: usize = 2 << 10;
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);
