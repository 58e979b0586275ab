//! TCP connections of a site, each attempt within its time.
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use downburst_site::Ended;
use tokio::net::{TcpSocket, TcpStream};

use crate::tcp;

/// Connects to a hub, with the socket options of its connections; the error tells whether anything answered.
pub async fn connect(hub: &str) -> Result<TcpStream, (io::Error, Ended)> {
    let stream = within(CONNECT_PATIENCE, TcpStream::connect(hub)).await.map_err(|error| {
        let ended = Ended::of_attempt(&error);
        (error, ended)
    })?;
    tcp::prepare(&stream);
    Ok(stream)
}

/// Connects from an address of this host, which selects the path.
pub(super) async fn connect_from(from: &str, to: &str) -> io::Result<TcpStream> {
    let unreadable = |_| io::Error::from(io::ErrorKind::InvalidInput);
    let (from, to): (IpAddr, SocketAddr) =
        (from.parse().map_err(unreadable)?, to.parse().map_err(unreadable)?);
    let socket = if to.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.bind(SocketAddr::new(from, 0))?;
    let stream = within(CONNECT_PATIENCE, socket.connect(to)).await?;
    tcp::prepare(&stream);
    Ok(stream)
}

/// The result of an attempt, or the error that it took too long.
pub(super) async fn within<T>(
    patience: Duration,
    attempt: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
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

/// For the handshake of TLS, and for the answer of a relay.
pub(super) const HANDSHAKE_PATIENCE: Duration = Duration::from_secs(10);

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
}
