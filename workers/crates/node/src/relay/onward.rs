//! The segments of a tunnel as TCP connections.
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpSocket, TcpStream, lookup_host};

use super::Relay;
use crate::tcp;

/// Checks that the congestion control towards hubs can be used; the error has the remedy.
pub(super) fn check(relay: &Relay) -> Result<(), String> {
    let Some(name) = &relay.congestion_onward else { return Ok(()) };
    let socket = TcpSocket::new_v4().map_err(|error| format!("no socket can be opened: {error}"))?;
    tcp::use_congestion_control(&socket, name)
}

/// Connects to `target`, `HOST:PORT`, at the first of its addresses that answers.
pub(super) async fn connect(target: &str, congestion: Option<&str>) -> io::Result<TcpStream> {
    let late = || io::Error::new(io::ErrorKind::TimedOut, format!("no answer in {} s", PATIENCE.as_secs()));
    let found = tokio::time::timeout(PATIENCE, lookup_host(target)).await.map_err(|_| late())??;
    let mut last = io::Error::new(io::ErrorKind::NotFound, "its name has no address");
    for address in found.take(MOST_ADDRESSES) {
        match tokio::time::timeout(PATIENCE, connect_to(address, congestion)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = error,
            Err(_) => last = late(),
        }
    }
    Err(last)
}

async fn connect_to(address: SocketAddr, congestion: Option<&str>) -> io::Result<TcpStream> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    if let Some(name) = congestion {
        tcp::use_congestion_control(&socket, name).map_err(io::Error::other)?;
    }
    let stream = socket.connect(address).await?;
    prepare(&stream);
    Ok(stream)
}

/// Prepares a segment. Site and hub decide that a session is dead; a relay only notices a peer that is gone for good.
pub(super) fn prepare(stream: &TcpStream) {
    tcp::prepare(stream);
    let socket = SockRef::from(stream);
    let alive = TcpKeepalive::new().with_time(GONE / 4).with_interval(GONE / 4).with_retries(3);
    // Options that the kernel does not support are skipped.
    let _ = socket.set_tcp_user_timeout(Some(GONE));
    let _ = socket.set_tcp_keepalive(&alive);
}

/// As long as a site waits for its relay.
const PATIENCE: Duration = Duration::from_secs(5);
const MOST_ADDRESSES: usize = 4;
const GONE: Duration = Duration::from_secs(60);
