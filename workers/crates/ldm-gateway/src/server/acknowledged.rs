//! The kernel's record of a connection's acknowledged bytes.
use std::ops::Range;

use nix::{getsockopt_impl, sockopt_impl};
use tokio::net::TcpStream;

/// The number of bytes that the peer's kernel has acknowledged; `None`: not available from this kernel.
pub(super) fn acknowledged_bytes(stream: &TcpStream) -> Option<u64> {
    let info = nix::sys::socket::getsockopt(stream, Info).ok()?;
    // The SYN counts as one.
    Some(u64::from_ne_bytes(*info.get(ACKNOWLEDGED)?.first_chunk()?).saturating_sub(1))
}

sockopt_impl!(
    /// The kernel's record of a connection, up to the acknowledged bytes (Linux 4.1 and later).
    Info,
    GetOnly,
    libc::IPPROTO_TCP,
    libc::TCP_INFO,
    [u8; ACKNOWLEDGED.end]
);

/// The place of `tcpi_bytes_acked` in the kernel's `struct tcp_info`.
const ACKNOWLEDGED: Range<usize> = 120..128;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn what_the_peer_has_read_is_acknowledged() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut accepted, _) = listener.accept().await.unwrap();
        assert_eq!(acknowledged_bytes(&stream), Some(0));
        stream.write_all(&[7; 1_000]).await.unwrap();
        accepted.read_exact(&mut [0; 1_000]).await.unwrap();
        let acknowledged = async {
            while acknowledged_bytes(&stream) != Some(1_000) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        // A system may delay an acknowledgement.
        tokio::time::timeout(Duration::from_secs(10), acknowledged).await.unwrap();
    }
}
