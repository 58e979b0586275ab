//! Bytes from one segment to the other, both ways.
use std::io;
use std::net::Shutdown;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use socket2::SockRef;
use tokio::net::TcpStream;

use super::account::{REPORT_INTERVAL, Tunnel};

/// Carries bytes until both sides have ended, one of them broke, or the second did not end in time. `early` came from
/// the site before the tunnel stood.
pub(super) async fn carry(tunnel: &Tunnel, early: &[u8]) -> io::Result<()> {
    let carrying = async {
        let to_hub = pump(&tunnel.site, &tunnel.hub, early, &tunnel.to_hub_bytes);
        let to_site = pump(&tunnel.hub, &tunnel.site, &[], &tunnel.to_site_bytes);
        tokio::pin!(to_hub, to_site);
        tokio::select! {
            ended = &mut to_hub => { ended?; soon(to_site).await }
            ended = &mut to_site => { ended?; soon(to_hub).await }
        }
    };
    tokio::pin!(carrying);
    loop {
        tokio::select! {
            ended = &mut carrying => return ended,
            () = tokio::time::sleep(REPORT_INTERVAL) => tunnel.log_on(),
        }
    }
}

/// A side that has ended waits for the other for so long: a peer that never closes its half holds no tunnel.
async fn soon(rest: impl Future<Output = io::Result<()>>) -> io::Result<()> {
    tokio::time::timeout(LAST_WORDS, rest).await.unwrap_or(Ok(()))
}

/// Carries one direction, and passes its end on.
async fn pump(from: &TcpStream, to: &TcpStream, early: &[u8], moved: &AtomicU64) -> io::Result<()> {
    write(to, early, moved).await?;
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = read(from, &mut piece).await?;
        if read == 0 {
            return end(to);
        }
        write(to, piece.get(..read).unwrap_or_default(), moved).await?;
    }
}

/// Passes an end on; a side that has gone already needs none.
fn end(to: &TcpStream) -> io::Result<()> {
    match SockRef::from(to).shutdown(Shutdown::Write) {
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
        ended => ended,
    }
}

async fn read(from: &TcpStream, piece: &mut [u8]) -> io::Result<usize> {
    loop {
        from.readable().await?;
        match from.try_read(piece) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            read => return read,
        }
    }
}

async fn write(to: &TcpStream, mut bytes: &[u8], moved: &AtomicU64) -> io::Result<()> {
    while !bytes.is_empty() {
        to.writable().await?;
        match to.try_write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            written => {
                let written = written?;
                bytes = bytes.get(written..).unwrap_or_default();
                moved.fetch_add(written as u64, Ordering::Relaxed);
            }
        }
    }
    Ok(())
}

/// What a relay holds of each direction beside the kernel's buffers: a few TLS records.
const PIECE_BYTES: usize = 64 << 10;
const LAST_WORDS: Duration = Duration::from_secs(30);
