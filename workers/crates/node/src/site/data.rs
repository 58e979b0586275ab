//! The data connections of the site's session: opened when the hub asks, read beside the first.
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf as _, Bytes, BytesMut};
use downburst_session::{StreamId, StreamPath};
use downburst_site::NoLink;
use tokio::io::AsyncWrite as _;

use super::link::{Link, dial, dial_from};

/// All of them; without any, nothing is kept.
#[derive(Default)]
pub(super) struct DataLinks {
    dials: Vec<(StreamId, Dial)>,
    links: Vec<DataLink>,
    /// Where the next look begins, so that none waits for the others.
    turn: usize,
}

struct DataLink {
    stream: StreamId,
    link: Link,
    /// A ticket: all that a site says here.
    out: BytesMut,
    flushed: bool,
}

/// What happened on a data connection.
pub(super) enum Woken {
    Opened(StreamId),
    Read(StreamId, Bytes),
    Ended(StreamId, String),
}

type Dial = Pin<Box<dyn Future<Output = Result<Link, NoLink>> + Send>>;

impl DataLinks {
    /// Opens a connection to the hub's node by a path of its own, or to `address`, where the first one leads.
    pub(super) fn open(
        &mut self,
        stream: StreamId,
        path: Option<StreamPath>,
        address: String,
        ca_sha256: String,
    ) {
        let dialling: Dial = match path {
            Some(path) => Box::pin(dial_from(path.from, path.to, ca_sha256)),
            None => Box::pin(dial(address, ca_sha256)),
        };
        self.dials.push((stream, dialling));
    }

    pub(super) fn push(&mut self, stream: StreamId, bytes: &[u8]) {
        if let Some(link) = self.links.iter_mut().find(|link| link.stream == stream) {
            link.out.extend_from_slice(bytes);
        }
    }

    pub(super) fn close(&mut self, stream: StreamId) {
        self.dials.retain(|(dialled, _)| *dialled != stream);
        self.links.retain(|link| link.stream != stream);
    }

    /// The first connection ended, and all others end with it.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Moves bytes on all connections; never ready where there is none.
    pub(super) fn poll_moved(&mut self, cx: &mut Context<'_>) -> Poll<Woken> {
        if let Poll::Ready(woken) = self.poll_dials(cx) {
            return Poll::Ready(woken);
        }
        let count = self.links.len();
        for step in 0..count {
            let index = (self.turn + step) % count;
            let Some(link) = self.links.get_mut(index) else { continue };
            if let Poll::Ready(result) = link.poll_moved(cx) {
                self.turn = index + 1;
                let stream = link.stream;
                return Poll::Ready(match result {
                    Ok(bytes) => Woken::Read(stream, bytes),
                    Err(reason) => {
                        self.close(stream);
                        Woken::Ended(stream, reason)
                    }
                });
            }
        }
        Poll::Pending
    }

    fn poll_dials(&mut self, cx: &mut Context<'_>) -> Poll<Woken> {
        for index in 0..self.dials.len() {
            let Some((stream, dial)) = self.dials.get_mut(index) else { continue };
            if let Poll::Ready(dialled) = dial.as_mut().poll(cx) {
                let stream = *stream;
                drop(self.dials.swap_remove(index));
                return Poll::Ready(match dialled {
                    Ok(link) => {
                        self.links.push(DataLink { stream, link, out: BytesMut::new(), flushed: true });
                        Woken::Opened(stream)
                    }
                    Err(no_link) => Woken::Ended(stream, no_link.sentence),
                });
            }
        }
        Poll::Pending
    }
}

impl DataLink {
    /// Ready when bytes were read, or when it is over and why.
    fn poll_moved(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, String>> {
        if let Err(error) = self.write(cx) {
            return Poll::Ready(Err(crate::tls::broken(&error)));
        }
        self.link.poll_read(cx).map(|read| match read {
            Ok(Some(bytes)) => Ok(bytes),
            Ok(None) => Err("the hub closed it".to_owned()),
            Err(error) => Err(crate::tls::broken(&error)),
        })
    }

    fn write(&mut self, cx: &mut Context<'_>) -> std::io::Result<()> {
        let mut writer = Pin::new(&mut self.link.stream);
        while !self.out.is_empty() {
            let Poll::Ready(written) = writer.as_mut().poll_write(cx, &self.out) else {
                return Ok(());
            };
            self.out.advance(written?);
            self.flushed = false;
        }
        if !self.flushed
            && let Poll::Ready(flushed) = writer.poll_flush(cx)
        {
            self.flushed = true;
            return flushed;
        }
        Ok(())
    }
}
