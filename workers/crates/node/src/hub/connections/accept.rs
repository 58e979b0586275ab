//! The port for sites.
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use downburst_hub::AdmissionLimits;
use downburst_session::Opening;
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::server::TlsStream;

use crate::hub::connections::counted::Counted;
use crate::hub::connections::pending_connections::{EVICTED, PendingConnection};
use crate::hub::{Hub, session};
use crate::lines::Start;
use crate::tcp;

/// Accepts connections of sites until the hub stops.
pub(in crate::hub) async fn accept(hub: Arc<Hub>, listener: TcpListener) {
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

/// Has incoming connections use the configured congestion control.
pub(in crate::hub) fn prepare(listener: &TcpListener, start: &Start) -> Result<(), String> {
    start.tcp_congestion.as_ref().map_or(Ok(()), |name| tcp::use_congestion_control(listener, name))
}

async fn greet(hub: Arc<Hub>, stream: TcpStream, mut pending: PendingConnection) {
    tcp::prepare(&stream);
    let handshake = hub.entrance.acceptor.accept(Counted::new(stream, &hub));
    let shaken = tokio::select! {
        shaken = within(&hub, pending.limits, handshake) => shaken,
        () = pending.evicted() => {
            pending.ended(EVICTED);
            return;
        }
    };
    match shaken {
        // In a task of its own, so that the memory of the handshake is freed.
        Ok(Ok(stream)) => {
            pending.limits.shaken(hub.clock.monotonic());
            drop(tokio::spawn(listen(hub, stream, pending)));
        }
        Ok(Err(error)) => drop(pending.ended(&format!("the TLS handshake failed: {error}"))),
        Err(late) => drop(pending.ended(late)),
    }
}

/// The result of an admission step, or the reason why it timed out.
async fn within<F: Future>(hub: &Hub, limits: AdmissionLimits, step: F) -> Result<F::Output, &'static str> {
    let left = Duration::from_micros(limits.late_at().since(hub.clock.monotonic()).0);
    let ended = tokio::time::timeout(left, step).await;
    ended.map_err(|_| limits.late(limits.late_at()).unwrap_or_default())
}

/// Determines the kind of a connection from its first frame, and hands it to its session.
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

/// Reads until the first frame identifies the connection; at the end of the stream, it identifies none.
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

/// A ticket and most hellos are shorter; the session reads the rest of a longer message.
const OPENING_READ_BYTES: usize = 2 << 10;
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);
