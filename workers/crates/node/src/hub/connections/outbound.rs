//! Sending the outgoing queue of a site's socket.
use std::io::IoSlice;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use downburst_hub::{Outbound, Taken};
use tokio::io::AsyncWrite;

pub(in crate::hub) use downburst_hub::OUT_LIMIT_BYTES;

/// Writes the queued bytes and flushes after the last of them; pending if there are none.
pub(in crate::hub) fn poll_send(
    cx: &mut Context<'_>,
    out: &Outbound,
    mut writer: Pin<&mut impl AsyncWrite>,
) -> Poll<std::io::Result<Taken>> {
    if out.is_empty() {
        return Poll::Pending;
    }
    let bytes = match out.waiting_bytes() {
        0 => 0,
        _ => {
            let slices: Vec<IoSlice<'_>> = out.pieces().map(IoSlice::new).collect();
            ready!(writer.as_mut().poll_write_vectored(cx, &slices))?
        }
    };
    let flush = if bytes == out.waiting_bytes() { writer.poll_flush(cx)? } else { Poll::Pending };
    match (bytes, flush) {
        (0, Poll::Pending) => Poll::Pending,
        (bytes, flush) => Poll::Ready(Ok(Taken { bytes, flushed: flush.is_ready() })),
    }
}
