//! The port for siblings: gives what the hub granted, within the ceiling.
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use downburst_log::ProductLog as _;
use downburst_model::{Content, ProductKey, Sequence};
use downburst_session::{Fingerprint, Ticket};
use downburst_sibling::{
    Answer, REQUEST_BYTES, Refusal, Transfer, TransferId, end, lacks, product, refused, ticket_of,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;

use super::Shared;
use super::keys::fingerprint;
use crate::tcp;

/// Accepts siblings as long as the site runs. Whoever comes in excess waits, and times out.
pub(super) async fn listen(shared: Arc<Shared>, listener: TcpListener) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let shared = Arc::clone(&shared);
                tokio::spawn(async move {
                    serve(&shared, stream).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!("a sibling's connection could not be accepted: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Serves one connection. A peer without a grant costs a handshake and a few seconds.
async fn serve(shared: &Shared, stream: TcpStream) {
    tcp::prepare(&stream);
    let shaken = timeout(HANDSHAKE_LIMIT, shared.keys.acceptor().accept(stream)).await;
    let Ok(Ok(mut stream)) = shaken else { return };
    let Some((ticket, shown)) = greet(&mut stream).await else { return };
    let given = match redeem(shared, &ticket, &shown).await {
        Answer::Give(transfer) => give(shared, &mut stream, transfer).await,
        Answer::Wait => Err(Refusal::Ticket),
        Answer::Refused(refusal) => Err(refusal),
    };
    let last = given.map_or_else(refused, |()| end());
    let _ = timeout(WRITE_LIMIT, say(&mut stream, &last)).await;
}

/// The ticket of the sibling, and the certificate that it shows.
async fn greet(stream: &mut TlsStream<TcpStream>) -> Option<(Ticket, Fingerprint)> {
    let mut request = [0_u8; REQUEST_BYTES];
    timeout(REQUEST_LIMIT, stream.read_exact(&mut request)).await.ok()?.ok()?;
    let shown = stream.get_ref().1.peer_certificates()?.first()?;
    Some((ticket_of(&request)?, fingerprint(shown)))
}

/// Redeems the ticket. The sibling may come before the grant, which takes another path.
async fn redeem(shared: &Shared, ticket: &Ticket, shown: &Fingerprint) -> Answer {
    let mut changed = shared.changed.subscribe();
    let known = async {
        loop {
            changed.borrow_and_update();
            match shared.desk().redeem(shared.clock.monotonic(), ticket, shown) {
                Answer::Wait => {}
                answer => return answer,
            }
            if changed.changed().await.is_err() {
                return Answer::Wait;
            }
        }
    };
    timeout(GRANT_LIMIT, known).await.unwrap_or(Answer::Wait)
}

/// Gives the products of a transfer, until it is withdrawn.
async fn give(shared: &Shared, stream: &mut TlsStream<TcpStream>, transfer: Transfer) -> Result<(), Refusal> {
    let (id, sibling) = (transfer.id, transfer.sibling.clone());
    let given = tokio::select! {
        given = give_all(shared, stream, &transfer) => given,
        () = withdrawn(shared, id) => Err(Refusal::Withdrawn),
    };
    let spent = {
        let mut desk = shared.desk();
        desk.over(id);
        desk.spent()
    };
    shared.budget.keep(spent, true);
    let (feed, numbers) = (transfer.feed.as_str(), transfer.sequences.count());
    match given {
        Ok(()) => {
            tracing::debug!(feed, sibling = sibling.as_str(), numbers, "products were given to a sibling")
        }
        Err(refusal) => {
            tracing::info!(feed, sibling = sibling.as_str(), ?refusal, "a transfer to a sibling ended")
        }
    }
    given
}

async fn give_all(
    shared: &Shared,
    stream: &mut TlsStream<TcpStream>,
    transfer: &Transfer,
) -> Result<(), Refusal> {
    for number in transfer.sequences.iter().flat_map(|(first, last)| first..=last) {
        let sequence = Sequence(number);
        let key = ProductKey { feed: transfer.feed.clone(), epoch: transfer.epoch, sequence };
        let Some(content) = content(shared, key).await else {
            write(stream, &lacks(number)).await?;
            continue;
        };
        let size = content.len();
        let now = shared.clock.now();
        shared.desk().may_begin(now, transfer.id, size as u64)?;
        write(stream, &product(number, size as u64)).await?;
        let mut from = 0;
        while from < size {
            let to = size.min(from.saturating_add(CHUNK_BYTES));
            // Damaged bytes can't be taken back: the connection ends before them.
            let bytes = content.slice(from..to).ok_or(Refusal::Withdrawn)?;
            let bytes = if shared.spoils && from == 0 { spoilt(&bytes) } else { bytes };
            pace(shared, transfer.id, bytes.len()).await?;
            write(stream, &bytes).await?;
            from = to;
        }
    }
    Ok(())
}

/// The product that the hub knows by this key, if this site's log still has its bytes.
async fn content(shared: &Shared, key: ProductKey) -> Option<Content> {
    let logs = Arc::clone(&shared.logs);
    let found = tokio::task::spawn_blocking(move || {
        let log = logs.of(&key.feed).ok()?;
        let sequence = log.find_source(&key).ok()??;
        log.entry(sequence).ok()??.bytes
    });
    found.await.ok().flatten()
}

/// Waits until the ceiling has room for these bytes.
async fn pace(shared: &Shared, id: TransferId, bytes: usize) -> Result<(), Refusal> {
    let now = shared.clock.now();
    let may = shared.desk().may_send(now, id, bytes as u64)?;
    let wait = may.since(now.monotonic).0;
    if wait > 0 {
        tokio::time::sleep(Duration::from_micros(wait)).await;
    }
    let spent = shared.desk().spent();
    shared.budget.keep(spent, false);
    Ok(())
}

async fn withdrawn(shared: &Shared, id: TransferId) {
    let mut changed = shared.changed.subscribe();
    while shared.desk().runs(id) {
        if changed.changed().await.is_err() {
            return;
        }
    }
}

async fn write(stream: &mut TlsStream<TcpStream>, bytes: &[u8]) -> Result<(), Refusal> {
    let written = timeout(WRITE_LIMIT, stream.write_all(bytes)).await;
    // A sibling that takes nothing is as good as gone.
    written.ok().and_then(Result::ok).ok_or(Refusal::Withdrawn)
}

async fn say(stream: &mut TlsStream<TcpStream>, last: &[u8]) -> io::Result<()> {
    stream.write_all(last).await?;
    stream.flush().await?;
    stream.shutdown().await
}

fn spoilt(bytes: &[u8]) -> Bytes {
    let mut bytes = BytesMut::from(bytes);
    if let Some(first) = bytes.first_mut() {
        *first ^= 1;
    }
    bytes.freeze()
}

/// The most connections at the same time; grants allow fewer transfers.
const CONNECTIONS: usize = 64;
const CHUNK_BYTES: usize = 16 << 10;
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(5);
const REQUEST_LIMIT: Duration = Duration::from_secs(3);
const GRANT_LIMIT: Duration = Duration::from_secs(3);
const WRITE_LIMIT: Duration = Duration::from_secs(10);
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);
