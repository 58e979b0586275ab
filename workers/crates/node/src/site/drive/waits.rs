//! What the connection's task waits for at its socket.
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::BytesMut;
use tokio::io::AsyncWrite as _;

use super::{Dial, Woken};
use crate::site::link::{Link, NoLink};

pub(super) async fn wait_dial(dialling: &mut Option<Dial>) -> Result<Link, NoLink> {
    match dialling {
        Some(dial) => dial.await,
        None => std::future::pending().await,
    }
}

pub(super) async fn wait_link(link: &mut Option<Link>, reads: bool, out: &BytesMut, flushed: bool) -> Woken {
    let Some(link) = link else { return std::future::pending().await };
    poll_fn(|cx| match poll_send(cx, link, out, flushed) {
        Poll::Pending if reads => link.poll_read(cx).map(Woken::Read),
        sent => sent,
    })
    .await
}

/// A site says little: the hub's products don't wait for it.
fn poll_send(cx: &mut Context<'_>, link: &mut Link, out: &BytesMut, flushed: bool) -> Poll<Woken> {
    let stream = Pin::new(&mut link.stream);
    match (out.is_empty(), flushed) {
        (false, _) => stream.poll_write(cx, out).map(Woken::Written),
        (true, false) => stream.poll_flush(cx).map(Woken::Flushed),
        (true, true) => Poll::Pending,
    }
}
