//! Reading from a connection, in whole frames.
use std::io;
use std::pin::pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use downburst_site::FrameBuffer;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::super::legs::Arrived;

/// Reads a connection into large buffers.
#[derive(Default)]
pub(super) struct Inbound {
    frames: FrameBuffer,
    /// The count of the host's bytes; counts for nobody until it is set.
    pub(super) arrived: Arrived,
}

impl Inbound {
    /// Reads the available bytes, up to [`AT_ONCE_BYTES`], and returns the whole frames. A read that completes no
    /// frame returns no bytes, but is a sign of life. `None` at the end of the stream.
    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut (impl AsyncRead + Unpin),
    ) -> Poll<io::Result<Option<Bytes>>> {
        let mut count = 0;
        while count < AT_ONCE_BYTES {
            match pin!(stream.read_buf(self.frames.room())).poll(cx) {
                Poll::Ready(Ok(0)) if count == 0 => return Poll::Ready(Ok(None)),
                // Bytes before the end or the error are taken first; the next read returns the end or error again.
                Poll::Ready(Ok(0) | Err(_)) if count > 0 => break,
                Poll::Ready(read) => count += read?,
                Poll::Pending if count == 0 => return Poll::Pending,
                Poll::Pending => break,
            }
        }
        self.arrived.stream(count);
        Poll::Ready(Ok(Some(self.frames.take_frames())))
    }
}

/// Two slices or trains: bytes that arrived while the site was busy are read in one turn.
const AT_ONCE_BYTES: usize = 128 << 10;

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::future::poll_fn;

    use bytes::{BufMut as _, BytesMut};
    use downburst_session::whole_frames;
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    /// Frames of an unknown kind, with bodies of these lengths.
    fn frames(lengths: impl IntoIterator<Item = usize>) -> Bytes {
        let mut bytes = BytesMut::new();
        for (number, length) in lengths.into_iter().enumerate() {
            bytes.put_u8(200);
            bytes.put_u32(length as u32);
            bytes.put_bytes(number as u8, length);
        }
        bytes.freeze()
    }

    /// The bytes received in pieces of one length; `keep` is the number of returned parts that are still held.
    async fn received(sent: &Bytes, piece_bytes: usize, keep: usize) -> (Vec<u8>, Inbound) {
        let (mut near, mut far) = tokio::io::duplex(piece_bytes);
        let sent = sent.clone();
        let sending = tokio::spawn(async move { far.write_all(&sent).await });
        let (mut inbound, mut got, mut kept) = (Inbound::default(), Vec::new(), VecDeque::new());
        while let Some(bytes) = poll_fn(|cx| inbound.poll_read(cx, &mut near)).await.unwrap() {
            assert_eq!(whole_frames(&bytes), bytes.len(), "whole frames only");
            got.extend_from_slice(&bytes);
            kept.push_back(bytes);
            kept.truncate(keep);
        }
        sending.await.unwrap().unwrap();
        (got, inbound)
    }

    #[tokio::test]
    async fn frames_come_whole_and_in_order_however_they_arrive() {
        let sent = frames([0, 5, 70_000, 1, 65_536, 300, 0, 40_000].into_iter().cycle().take(80));
        for (piece_bytes, keep) in [(7, 0), (4_096, 0), (65_536, 3), (1 << 20, 1_000)] {
            let (got, inbound) = received(&sent, piece_bytes, keep).await;
            assert!(got == sent, "pieces of {piece_bytes}");
            assert!(inbound.frames.former_count() <= FrameBuffer::MOST_FORMER);
        }
    }

    #[tokio::test]
    async fn buffers_that_nobody_needs_are_used_again() {
        let sent = frames(std::iter::repeat_n(60_000, 100));
        let (_, inbound) = received(&sent, 1 << 20, 0).await;
        assert!(inbound.frames.former_count() <= 1, "{}", inbound.frames.former_count());
    }

    #[tokio::test]
    async fn what_came_before_the_end_is_taken_and_a_part_of_a_frame_is_not() {
        let sent = frames([10, 20]);
        let (got, _) = received(&sent.slice(..sent.len() - 1), 1 << 20, 0).await;
        assert_eq!(got, frames([10]));
    }
}
