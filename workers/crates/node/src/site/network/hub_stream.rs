//! One stream to a hub: TLS over TCP, read in whole frames.
use std::io;
use std::task::{Context, Poll};

use bytes::Bytes;
use downburst_session::RelayChain;
use downburst_site::{Ended, NoLink, way_in_words};
use rustls::pki_types::ServerName;
use tokio::io::BufReader;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::super::legs::Arrived;
use super::inbound::Inbound;
use super::sockets::{HANDSHAKE_PATIENCE, connect_from, within};
use super::via;
use crate::tls;

/// TLS over a socket that is read in large pieces: TLS itself reads 4 KiB at a time, each with a system call.
type Tls = TlsStream<BufReader<TcpStream>>;

/// An established stream.
pub(super) struct HubStream {
    pub(super) tls: Box<Tls>,
    inbound: Inbound,
    /// The site's address towards the hub; names the interface for multicast if nothing else does.
    pub(super) local_address: String,
    /// The hub's node: a name may resolve to several, and data connections have to reach the same one. Behind relays,
    /// the name by which they know it.
    pub(super) peer_address: String,
    /// The relays between this site and the hub.
    pub(super) way: RelayChain,
}

impl HubStream {
    /// Counts what is read from here on.
    pub(super) fn count(&mut self, arrived: &Arrived) {
        self.inbound.arrived = arrived.clone();
    }

    /// Reads the available bytes, in whole frames; `None` at the end of the stream.
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
        self.inbound.poll_read(cx, &mut self.tls)
    }
}

/// Connects to `hub` by the first of these ways that leads there.
pub(super) async fn dial(ways: Vec<RelayChain>, hub: String, ca_sha256: String) -> Result<HubStream, NoLink> {
    let alone = ways.len() == 1;
    let mut failed = NoLink::answered(String::new());
    for way in ways {
        let (words, is_direct) = (way_in_words(&way), way.is_empty());
        match dial_by(way, hub.clone(), ca_sha256.clone()).await {
            Ok(stream) => return Ok(stream),
            Err(no_link) if alone && is_direct => return Err(no_link),
            Err(NoLink { sentence, ended }) => {
                if !alone {
                    tracing::warn!(hub, "{words}: {sentence}; the next way is tried");
                }
                let before = if failed.sentence.is_empty() { "" } else { "; " };
                failed =
                    NoLink { sentence: format!("{}{before}{words}: {sentence}", failed.sentence), ended };
            }
        }
    }
    Err(failed)
}

/// Connects by one way, and checks that the certificate belongs to the authority with this fingerprint.
pub(super) async fn dial_by(way: RelayChain, hub: String, ca_sha256: String) -> Result<HubStream, NoLink> {
    let connected = via::connect_by(&way, &hub).await;
    let stream = connected.map_err(|(error, ended)| NoLink::unreached(&hub, &error, ended))?;
    shake(stream, way, hub, ca_sha256).await
}

/// Connects from an address of this host, which selects the path, to the hub's address at the other end of it.
pub(super) async fn dial_from(from: String, to: String, ca_sha256: String) -> Result<HubStream, NoLink> {
    let stream =
        connect_from(&from, &to).await.map_err(|error| NoLink::unreached(&to, &error, Ended::Answered))?;
    shake(stream, RelayChain::new(), to, ca_sha256).await
}

async fn shake(
    stream: TcpStream,
    way: RelayChain,
    hub: String,
    ca_sha256: String,
) -> Result<HubStream, NoLink> {
    let local_address = stream.local_addr().map(|address| address.ip().to_string()).unwrap_or_default();
    let peer_address = match &way[..] {
        [] => stream.peer_addr().map(|address| address.to_string()).unwrap_or_default(),
        _ => hub.clone(),
    };
    let config = tls::site_config(&ca_sha256).map_err(|error| NoLink::answered(error.to_string()))?;
    let name = ServerName::try_from(tls::HUB_NAME).map_err(|error| NoLink::answered(error.to_string()))?;
    let stream = BufReader::with_capacity(SOCKET_READ_BYTES, stream);
    let shaken = within(HANDSHAKE_PATIENCE, TlsConnector::from(config).connect(name, stream)).await;
    let stream = shaken.map_err(|error| NoLink::unshaken(&hub, &error))?;
    Ok(HubStream { tls: Box::new(stream), inbound: Inbound::default(), local_address, peer_address, way })
}

const SOCKET_READ_BYTES: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_way_that_leads_nowhere_is_passed_over_and_the_failure_names_all() {
        let away = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().to_string();
        let hangs_up = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let hub = hangs_up.local_addr().unwrap().to_string();
        tokio::spawn(async move { while hangs_up.accept().await.is_ok() {} });
        let ways = vec![vec![away.clone()], RelayChain::new()];
        let no_link = dial(ways, hub, "00".repeat(32)).await.err().unwrap();
        let words = ["by the relay ", &away, "can't be reached", "; directly: ", "ended the handshake"];
        assert!(words.iter().all(|word| no_link.sentence.contains(word)), "{}", no_link.sentence);
        assert_eq!(no_link.ended, Ended::Answered);
    }

    #[tokio::test]
    async fn a_host_that_hangs_up_is_not_called_a_stranger() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move { while listener.accept().await.is_ok() {} });
        let no_link = dial_by(RelayChain::new(), address, "00".repeat(32)).await.err().unwrap();
        assert!(no_link.sentence.contains("ended the handshake"), "{}", no_link.sentence);
        assert_eq!(no_link.ended, Ended::Answered);
    }
}
