//! Reading from a site.
use std::cell::RefCell;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, ReadBuf};

/// Reads the available bytes; empty at the end of the stream. Waits without a buffer of its own: a thousand
/// idle sites hold none.
pub(in crate::hub) fn poll_read(
    cx: &mut Context<'_>,
    reader: &mut (impl AsyncRead + Unpin),
) -> Poll<std::io::Result<Bytes>> {
    SCRATCH.with_borrow_mut(|scratch| {
        let mut buffer = ReadBuf::new(scratch);
        ready!(Pin::new(reader).poll_read(cx, &mut buffer))?;
        Poll::Ready(Ok(Bytes::copy_from_slice(buffer.filled())))
    })
}

thread_local! {
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; SCRATCH_BYTES].into_boxed_slice());
}

/// Several full TLS records: a site's receipts of a busy second are read in a few calls.
const SCRATCH_BYTES: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[tokio::test]
    async fn bytes_come_as_they_were_sent_and_the_end_is_empty() {
        let (mut near, mut far) = tokio::io::duplex(1 << 20);
        let sent: Vec<u8> = (0..200_000_u32).map(|number| (number % 251) as u8).collect();
        far.write_all(&sent).await.unwrap();
        drop(far);
        let mut got = Vec::new();
        loop {
            let bytes = std::future::poll_fn(|cx| poll_read(cx, &mut near)).await.unwrap();
            if bytes.is_empty() {
                break;
            }
            assert!(bytes.len() <= SCRATCH_BYTES);
            got.extend_from_slice(&bytes);
        }
        assert_eq!(got, sent);
    }
}
