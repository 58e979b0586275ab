//! The data connections of the site's session: opened at the hub's request, read beside the first connection.
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use downburst_session::{RelayChain, StreamId, StreamPath};
use downburst_site::{Input, NextWrite, NoLink, WriteBuffer};
use tokio::io::AsyncWrite as _;

use super::super::legs::Arrived;
use super::hub_stream::{HubStream, dial_by, dial_from};

/// All data connections; an empty set uses no memory.
#[derive(Default)]
pub(super) struct DataStreams {
    dials: Vec<(StreamId, Dial)>,
    streams: Vec<DataStream>,
    /// The index at which the next poll begins, so that no connection starves.
    turn: usize,
    /// Takes the bytes of all streams.
    pub(super) arrived: Arrived,
}

struct DataStream {
    id: StreamId,
    stream: HubStream,
    /// The ticket: a site sends nothing else here.
    out: WriteBuffer,
}

type Dial = Pin<Box<dyn Future<Output = Result<HubStream, NoLink>> + Send>>;

impl DataStreams {
    /// Opens a connection to the hub's node on a path of its own, or to `address`, the peer of the first connection, by
    /// the same relays.
    pub(super) fn open(
        &mut self,
        stream: StreamId,
        path: Option<StreamPath>,
        (way, address): (RelayChain, String),
        ca_sha256: String,
    ) {
        let dialling: Dial = match path {
            Some(path) => Box::pin(dial_from(path.from, path.to, ca_sha256)),
            None => Box::pin(dial_by(way, address, ca_sha256)),
        };
        self.dials.push((stream, dialling));
    }

    pub(super) fn push(&mut self, stream: StreamId, bytes: &[u8]) {
        if let Some(data) = self.streams.iter_mut().find(|data| data.id == stream) {
            data.out.push(bytes);
        }
    }

    pub(super) fn close(&mut self, stream: StreamId) {
        self.dials.retain(|(dialled, _)| *dialled != stream);
        self.streams.retain(|data| data.id != stream);
    }

    /// Closes all data connections when the first connection ends.
    pub(super) fn clear(&mut self) {
        *self = Self { arrived: std::mem::take(&mut self.arrived), ..Self::default() };
    }

    /// Moves bytes on all connections; returns the input for the machine. Never ready if there are none.
    pub(super) fn poll_moved(&mut self, cx: &mut Context<'_>) -> Poll<Input> {
        if let Poll::Ready(woken) = self.poll_dials(cx) {
            return Poll::Ready(woken);
        }
        let count = self.streams.len();
        for step in 0..count {
            let index = (self.turn + step) % count;
            let Some(data) = self.streams.get_mut(index) else { continue };
            if let Poll::Ready(result) = data.poll_moved(cx) {
                self.turn = index + 1;
                let stream = data.id;
                return Poll::Ready(match result {
                    Ok(bytes) => Input::Bytes { stream, bytes },
                    Err(reason) => {
                        self.close(stream);
                        Input::StreamClosed { stream, reason }
                    }
                });
            }
        }
        Poll::Pending
    }

    fn poll_dials(&mut self, cx: &mut Context<'_>) -> Poll<Input> {
        for index in 0..self.dials.len() {
            let Some((stream, dial)) = self.dials.get_mut(index) else { continue };
            if let Poll::Ready(dialled) = dial.as_mut().poll(cx) {
                let id = *stream;
                drop(self.dials.swap_remove(index));
                return Poll::Ready(match dialled {
                    Ok(mut stream) => {
                        stream.count(&self.arrived);
                        self.streams.push(DataStream { id, stream, out: WriteBuffer::default() });
                        Input::StreamOpened(id)
                    }
                    Err(no_link) => Input::StreamClosed { stream: id, reason: no_link.sentence },
                });
            }
        }
        Poll::Pending
    }
}

impl DataStream {
    /// Ready when bytes were read, or when the connection has ended, with the reason.
    fn poll_moved(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, String>> {
        if let Err(error) = self.write(cx) {
            return Poll::Ready(Err(crate::tls::broken(&error)));
        }
        self.stream.poll_read(cx).map(|read| match read {
            Ok(Some(bytes)) => Ok(bytes),
            Ok(None) => Err("the hub closed it".to_owned()),
            Err(error) => Err(crate::tls::broken(&error)),
        })
    }

    fn write(&mut self, cx: &mut Context<'_>) -> std::io::Result<()> {
        let mut writer = Pin::new(&mut self.stream.tls);
        loop {
            match self.out.next() {
                NextWrite::Write(bytes) => match writer.as_mut().poll_write(cx, bytes) {
                    Poll::Ready(written) => self.out.written(written?),
                    Poll::Pending => return Ok(()),
                },
                NextWrite::Flush => match writer.as_mut().poll_flush(cx) {
                    Poll::Ready(flushed) => {
                        self.out.flushed();
                        return flushed;
                    }
                    Poll::Pending => return Ok(()),
                },
                NextWrite::Nothing => return Ok(()),
            }
        }
    }
}
