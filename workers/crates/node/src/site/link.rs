//! The connection to the hub.
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::io::{ReadHalf, WriteHalf, split};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::tls;

/// A connection that stands.
pub(super) struct Link {
    pub(super) reader: ReadHalf<TlsStream<TcpStream>>,
    pub(super) writer: WriteHalf<TlsStream<TcpStream>>,
    /// The site's address towards the hub; names the interface for multicast if nothing else does.
    pub(super) local_address: String,
}

/// Waits `pause`, then connects to `hub` and checks that it belongs to the authority with this fingerprint.
pub(super) async fn dial(hub: String, ca_sha256: String, pause: Duration) -> Result<Link, String> {
    tokio::time::sleep(pause).await;
    let stream = within(TcpStream::connect(&hub))
        .await
        .map_err(|error| format!("the hub at {hub} can't be reached: {error}"))?;
    let _ = stream.set_nodelay(true);
    let local_address = stream.local_addr().map(|address| address.ip().to_string()).unwrap_or_default();
    let config = tls::site_config(&ca_sha256).map_err(|error| error.to_string())?;
    let name = ServerName::try_from(tls::HUB_NAME).map_err(|error| error.to_string())?;
    let stream = within(TlsConnector::from(config).connect(name, stream)).await.map_err(|error| {
        format!("the host at {hub} is not the hub of this site's token: {error}; check the address, or ask for a new token if the hub was set up anew")
    })?;
    let (reader, writer) = split(stream);
    Ok(Link { reader, writer, local_address })
}

async fn within<T>(attempt: impl Future<Output = std::io::Result<T>>) -> std::io::Result<T> {
    match tokio::time::timeout(PATIENCE, attempt).await {
        Ok(result) => result,
        Err(_) => Err(std::io::Error::new(std::io::ErrorKind::TimedOut, "no answer in 10 s")),
    }
}

const PATIENCE: Duration = Duration::from_secs(10);
