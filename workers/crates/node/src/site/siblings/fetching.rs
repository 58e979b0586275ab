//! Fetches products from a sibling.
use std::time::Duration;

use bytes::BytesMut;
use downburst_session::{Fetch, SiblingFault, SiblingInput};
use downburst_sibling::{Piece, Rubbish, Taken, Taking, request};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::keys::NAME;
use crate::tcp;

/// Fetches the products, passes them on in pieces, and reports the end.
pub(super) async fn fetch(
    fetch: Fetch,
    connector: Result<TlsConnector, String>,
    say: mpsc::Sender<SiblingInput>,
) {
    let fetched = timeout(FETCH_LIMIT, fetch_by(&fetch, connector, &say)).await;
    let fault = fetched.unwrap_or(Err(SiblingFault::Slow)).err();
    if let Some(fault) = fault {
        let (sibling, address) = (fetch.sibling.as_str(), fetch.address.as_str());
        tracing::info!(sibling, address, ?fault, "a sibling did not give all; the hub sends the rest");
    }
    // Without a session nothing is reported: the next one begins from the site's positions.
    let _ = say.send(SiblingInput::Ended { number: fetch.number, fault }).await;
}

async fn fetch_by(
    fetch: &Fetch,
    connector: Result<TlsConnector, String>,
    say: &mpsc::Sender<SiblingInput>,
) -> Result<(), SiblingFault> {
    let mut stream = connect(fetch, connector).await.ok_or(SiblingFault::Unreachable)?;
    let mut taking = Taking::new(&fetch.products);
    let (mut buffer, mut lacks) = (BytesMut::new(), false);
    loop {
        buffer.clear();
        buffer.reserve(READ_BYTES);
        let read = timeout(IDLE_LIMIT, stream.read_buf(&mut buffer)).await;
        match read.map_err(|_| SiblingFault::Slow)? {
            Ok(0) | Err(_) => return Err(SiblingFault::Unreachable),
            Ok(_) => taking.push(&buffer),
        }
        while let Some(taken) = next(&mut taking, fetch.number, say).await? {
            match taken {
                Taken::Piece(Piece { sequence, offset, bytes }) => {
                    let number = fetch.number;
                    let piece = SiblingInput::Piece { number, sequence, offset, bytes };
                    say.send(piece).await.map_err(|_| SiblingFault::Unreachable)?;
                }
                Taken::Lacks(_) => lacks = true,
                Taken::Refused(_) => return Err(SiblingFault::Refused),
                Taken::End if lacks || taking.left() > 0 => return Err(SiblingFault::Lacking),
                Taken::End => return Ok(()),
            }
        }
    }
}

async fn next(
    taking: &mut Taking,
    number: u32,
    say: &mpsc::Sender<SiblingInput>,
) -> Result<Option<Taken>, SiblingFault> {
    match taking.take() {
        Ok(taken) => Ok(taken),
        Err(Rubbish(spoilt)) => {
            if let Some(sequence) = spoilt {
                let _ = say.send(SiblingInput::Spoilt { number, sequence }).await;
            }
            Err(SiblingFault::Rubbish)
        }
    }
}

async fn connect(fetch: &Fetch, connector: Result<TlsConnector, String>) -> Option<TlsStream<TcpStream>> {
    let connector = connector.ok()?;
    let socket = timeout(CONNECT_LIMIT, TcpStream::connect(&fetch.address)).await.ok()?.ok()?;
    tcp::prepare(&socket);
    let name = ServerName::try_from(NAME).ok()?;
    let mut stream = timeout(HANDSHAKE_LIMIT, connector.connect(name, socket)).await.ok()?.ok()?;
    stream.write_all(&request(&fetch.ticket)).await.ok()?;
    stream.flush().await.ok()?;
    Some(stream)
}

/// A sibling that is slower than this for all products together is no help.
const FETCH_LIMIT: Duration = Duration::from_secs(60);
const CONNECT_LIMIT: Duration = Duration::from_millis(2_500);
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(3);
const IDLE_LIMIT: Duration = Duration::from_secs(5);
const READ_BYTES: usize = 16 << 10;
