//! One stream to a hub: TLS over TCP, read in whole frames.
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use downburst_site::{Ended, NoLink};
use rustls::pki_types::ServerName;
use tokio::io::BufReader;
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::inbound::Inbound;
use crate::{tcp, tls};

/// TLS over a socket that is read in large pieces: TLS itself reads 4 KiB at a time, each with a system call.
type Tls = TlsStream<BufReader<TcpStream>>;

/// An established stream.
pub(super) struct HubStream {
    pub(super) tls: Box<Tls>,
    inbound: Inbound,
    /// The site's address towards the hub; names the interface for multicast if nothing else does.
    pub(super) local_address: String,
    /// The hub's node: a name may resolve to several, and data connections have to reach the same one.
    pub(super) peer_address: String,
}

impl HubStream {
    /// Reads the available bytes, in whole frames; `None` at the end of the stream.
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
        self.inbound.poll_read(cx, &mut self.tls)
    }
}

/// Connects to `hub` and checks that its certificate belongs to the authority with this fingerprint.
pub(super) async fn dial(hub: String, ca_sha256: String) -> Result<HubStream, NoLink> {
    let stream = connect(&hub).await.map_err(|(error, ended)| NoLink::unreached(&hub, &error, ended))?;
    shake(stream, hub, ca_sha256).await
}

/// Connects from an address of this host, which selects the path, to the hub's address at the other end of it.
pub(super) async fn dial_from(from: String, to: String, ca_sha256: String) -> Result<HubStream, NoLink> {
    let stream =
        connect_from(&from, &to).await.map_err(|error| NoLink::unreached(&to, &error, Ended::Answered))?;
    shake(stream, to, ca_sha256).await
}

async fn shake(stream: TcpStream, hub: String, ca_sha256: String) -> Result<HubStream, NoLink> {
    let local_address = stream.local_addr().map(|address| address.ip().to_string()).unwrap_or_default();
    let peer_address = stream.peer_addr().map(|address| address.to_string()).unwrap_or_default();
    let config = tls::site_config(&ca_sha256).map_err(|error| NoLink::answered(error.to_string()))?;
    let name = ServerName::try_from(tls::HUB_NAME).map_err(|error| NoLink::answered(error.to_string()))?;
    let stream = BufReader::with_capacity(SOCKET_READ_BYTES, stream);
    let shaken = within(HANDSHAKE_PATIENCE, TlsConnector::from(config).connect(name, stream)).await;
    let stream = shaken.map_err(|error| NoLink::unshaken(&hub, &error))?;
    Ok(HubStream { tls: Box::new(stream), inbound: Inbound::default(), local_address, peer_address })
}

/// Connects to a hub, with the socket options of its connections; the error tells whether anything answered.
pub async fn connect(hub: &str) -> Result<TcpStream, (io::Error, Ended)> {
    let stream = within(CONNECT_PATIENCE, TcpStream::connect(hub)).await.map_err(|error| {
        let ended = Ended::of_attempt(&error);
        (error, ended)
    })?;
    tcp::prepare(&stream);
    Ok(stream)
}

async fn connect_from(from: &str, to: &str) -> io::Result<TcpStream> {
    let unreadable = |_| io::Error::from(io::ErrorKind::InvalidInput);
    let (from, to): (IpAddr, SocketAddr) =
        (from.parse().map_err(unreadable)?, to.parse().map_err(unreadable)?);
    let socket = if to.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.bind(SocketAddr::new(from, 0))?;
    let stream = within(CONNECT_PATIENCE, socket.connect(to)).await?;
    tcp::prepare(&stream);
    Ok(stream)
}

async fn within<T>(patience: Duration, attempt: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    match tokio::time::timeout(patience, attempt).await {
        Ok(result) => result,
        Err(_) => {
            let sentence = format!("no answer in {:.1} s", patience.as_secs_f64());
            Err(io::Error::new(io::ErrorKind::TimedOut, sentence))
        }
    }
}

/// The kernel repeats its first packet after 1 s, then after 3, 7 and more: an attempt that is given up
/// before the second gap and restarted finds a healed path a second after it healed. Paths over two
/// satellites answer in time.
const CONNECT_PATIENCE: Duration = Duration::from_millis(2_500);

const SOCKET_READ_BYTES: usize = 64 << 10;
const HANDSHAKE_PATIENCE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_is_known_whether_anything_answered() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        assert!(connect(&address).await.is_ok());
        drop(listener);
        assert_eq!(connect(&address).await.unwrap_err().1, Ended::Answered);
        // An address for documentation: either no host answers, or the host has no route to it.
        assert_eq!(connect("[2001:db8::1]:9").await.unwrap_err().1, Ended::Unanswered);
    }

    #[tokio::test]
    async fn a_host_that_hangs_up_is_not_called_a_stranger() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move { while listener.accept().await.is_ok() {} });
        let no_link = dial(address, "00".repeat(32)).await.err().unwrap();
        assert!(no_link.sentence.contains("ended the handshake"), "{}", no_link.sentence);
        assert_eq!(no_link.ended, Ended::Answered);
    }
}
