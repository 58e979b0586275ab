//! The data connections of one session: sockets that its task serves beside the first one.
use std::pin::Pin;
use std::task::{Context, Poll};

use downburst_hub::Taken;
use downburst_session::StreamId;
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio_rustls::server::TlsStream;

use crate::hub::connections::counted::Counted;
use crate::hub::connections::outbound;

/// A connection with a valid ticket, on its way to its session.
pub(in crate::hub) struct Attached {
    pub(in crate::hub) stream: StreamId,
    pub(in crate::hub) socket: Box<TlsStream<Counted>>,
}

/// All data connections of a session.
pub(in crate::hub) type DataLinks = downburst_hub::DataLinks<Box<TlsStream<Counted>>>;

type DataLink = downburst_hub::DataLink<Box<TlsStream<Counted>>>;

/// The event that woke the session's task.
pub(in crate::hub) enum Woken {
    Taken(StreamId, Taken),
    /// The site sent something, which the protocol does not allow on this connection.
    Spoke(StreamId),
    Ended(StreamId, String),
    /// The queue is empty, and the connection was to be closed.
    Closed,
}

/// Moves bytes on all connections; pends forever if there is none. Cancelling the wait loses nothing.
pub(in crate::hub) async fn moved(links: &mut DataLinks) -> Woken {
    std::future::poll_fn(|cx| poll_moved(cx, links)).await
}

/// The connections, as the kernel sees them.
pub(in crate::hub) fn connections(links: &DataLinks) -> impl Iterator<Item = &Counted> {
    links.sockets().map(|socket| socket.get_ref().0)
}

fn poll_moved(cx: &mut Context<'_>, links: &mut DataLinks) -> Poll<Woken> {
    let serve = |link: &mut DataLink| match poll_link(cx, link) {
        Poll::Ready(woken) => Some(woken),
        Poll::Pending => None,
    };
    let woken = links.serve(serve, |woken| matches!(woken, Woken::Closed | Woken::Ended(..)));
    woken.map_or(Poll::Pending, Poll::Ready)
}

fn poll_link(cx: &mut Context<'_>, link: &mut DataLink) -> Poll<Woken> {
    let is_done = link.is_done();
    let (stream, socket) = (link.stream, &mut *link.socket);
    if is_done {
        // The end of the TLS stream is a courtesy: a socket that can't take it now is dropped without it.
        let _ = Pin::new(socket).poll_shutdown(cx);
        return Poll::Ready(Woken::Closed);
    }
    let failed = |error: &std::io::Error| Woken::Ended(stream, crate::tls::broken(error));
    match outbound::poll_send(cx, &link.out, Pin::new(&mut *socket)) {
        Poll::Ready(Ok(taken)) => return Poll::Ready(Woken::Taken(stream, taken)),
        Poll::Ready(Err(error)) => return Poll::Ready(failed(&error)),
        Poll::Pending => {}
    }
    let mut room = [0_u8; 64];
    let mut read = ReadBuf::new(&mut room);
    match Pin::new(socket).poll_read(cx, &mut read) {
        Poll::Ready(Ok(())) if read.filled().is_empty() => {
            Poll::Ready(Woken::Ended(stream, "the site closed it".to_owned()))
        }
        Poll::Ready(Ok(())) => Poll::Ready(Woken::Spoke(stream)),
        Poll::Ready(Err(error)) => Poll::Ready(failed(&error)),
        Poll::Pending => Poll::Pending,
    }
}

impl std::fmt::Debug for Attached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attached").field("stream", &self.stream).finish_non_exhaustive()
    }
}
