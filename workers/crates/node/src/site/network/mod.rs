//! The streams to the hub: the first connection, its start and end, and the data connections beside it.
mod data;
mod hub_stream;
mod inbound;
mod routes;
mod sockets;
mod via;

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use downburst_model::Micros;
use downburst_session::{RelayChain, StreamId, StreamPath};
use downburst_site::{Input, NextWrite, NoLink, WriteBuffer};
use tokio::io::{AsyncWrite as _, AsyncWriteExt as _};

use data::DataStreams;
use hub_stream::HubStream;
use routes::{Dial, Routes};
pub use sockets::connect;
pub use via::Via;

use super::legs::Arrived;
use super::probes::Ends;
use super::siblings::{Exchange, SharedSiblings};
use crate::clock::Clock;

/// All streams of a connection to a hub.
pub(super) struct Network {
    routes: Routes,
    address: String,
    ca_sha256: String,
    dialling: Option<Dial>,
    first: Option<HubStream>,
    /// True once the first connection has failed or was closed; it is then no longer read.
    is_broken: bool,
    out: WriteBuffer,
    farewell: Option<Farewell>,
    /// The site's address towards the hub; names the interface for multicast if nothing else does.
    pub(super) local_address: String,
    /// The hub's node at the other end of the first connection.
    pub(super) peer_address: String,
    /// The relays of the first connection.
    way: RelayChain,
    data: DataStreams,
    /// Fetches from siblings, and what they may fetch here.
    pub(super) siblings: Exchange,
    /// Alternates between the data connections and the first one, so that neither starves.
    data_first: bool,
}

/// An event on the streams.
pub(super) enum Woken {
    Dialled(Result<(), NoLink>),
    Written,
    SaidFarewell,
    /// Another way was tried: true if the session is to move to it.
    Tried(bool),
    /// An input for the machine.
    Moved(Input),
}

type Farewell = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Network {
    /// The host to which packets of probes may go.
    pub(super) fn probe_ends(&self) -> Ends<'_> {
        if self.way.is_empty() {
            return Ends::Node(&self.peer_address);
        }
        let stream = self.first.as_ref().map(|first| first.tls.get_ref().0.get_ref());
        let relay = stream.and_then(|stream| stream.peer_addr().ok());
        Ends::Relay(relay.map(|relay| relay.ip().to_canonical()))
    }

    pub(super) fn new(via: Via, clock: Clock, address: &str, ca_sha256: &str) -> Self {
        Self {
            routes: Routes::new(via.ways(), clock),
            address: address.to_owned(),
            ca_sha256: ca_sha256.to_owned(),
            dialling: None,
            first: None,
            is_broken: false,
            out: WriteBuffer::default(),
            farewell: None,
            local_address: String::new(),
            peer_address: String::new(),
            way: RelayChain::new(),
            data: DataStreams::default(),
            siblings: Exchange::new(None),
            data_first: false,
        }
    }

    /// The same, of a site that exchanges products with siblings, if it has a port for them.
    pub(super) fn exchanging(self, siblings: Option<SharedSiblings>) -> Self {
        Self { siblings: Exchange::new(siblings), ..self }
    }

    /// The same, with everything that is read added to this count.
    pub(super) fn counting(mut self, arrived: Arrived) -> Self {
        self.data.arrived = arrived;
        self
    }

    /// Changes the fingerprint: another credential may be of another authority.
    pub(super) fn trust(&mut self, ca_sha256: &str) {
        ca_sha256.clone_into(&mut self.ca_sha256);
    }

    pub(super) fn dial(&mut self) {
        // Nothing of the last connection may get into the next one.
        (self.first, self.farewell) = (None, None);
        self.data.clear();
        self.out.clear();
        self.dialling = Some(self.routes.dial(&self.address, &self.ca_sha256));
    }

    /// The chains of relays that the hub wants the site to take.
    pub(super) fn told_ways(&mut self, chains: &[String]) {
        self.routes.told(chains);
    }

    /// The subscriptions arrived.
    pub(super) fn subscribed(&mut self) {
        self.routes.subscribed();
    }

    /// The connection is about to end, and its way is not the reason.
    pub(super) fn leaves(&mut self) {
        self.routes.leaves();
    }

    /// Begins to open a better way, if one is due.
    pub(super) fn try_better_way(&mut self) {
        self.routes.try_better(&self.address, &self.ca_sha256);
    }

    /// The time of the next look for a better way.
    pub(super) fn deadline(&self) -> Option<Micros> {
        self.routes.deadline()
    }

    pub(super) fn close(&mut self, stream: StreamId) {
        self.data.close(stream);
    }

    pub(super) fn push(&mut self, stream: StreamId, bytes: &[u8]) {
        match stream {
            StreamId::FIRST => self.out.push(bytes),
            stream => self.data.push(stream, bytes),
        }
    }

    pub(super) fn open(&mut self, stream: StreamId, path: Option<StreamPath>) {
        let node = (self.way.clone(), self.peer_address.clone());
        self.data.open(stream, path, node, self.ca_sha256.clone());
    }

    /// Ends all connections properly, so that the hub sees a regular end: otherwise they would look cut.
    pub(super) async fn hang_up(&mut self) {
        (self.dialling, self.farewell) = (None, None);
        self.routes.clear();
        self.data.clear();
        self.out.clear();
        if let Some(mut first) = self.first.take() {
            // A connection that is broken already can't carry the end.
            let _ = tokio::time::timeout(HANG_UP_PATIENCE, first.tls.shutdown()).await;
        }
    }

    /// Sends the last messages and waits until the node has received them: it then ends the connection, too.
    pub(super) fn say_farewell(&mut self) {
        self.data.clear();
        let words = self.out.take();
        let first = self.first.take();
        self.farewell = Some(Box::pin(async move {
            if let Some(first) = first {
                // Messages that were not received are sent on another connection.
                let _ = farewell(first, &words).await;
            }
        }));
    }

    /// Waits for an event; pends forever if there is nothing to do. Cancelling the wait loses nothing.
    pub(super) async fn moved(&mut self, reads: bool) -> Woken {
        poll_fn(|cx| self.poll_moved(cx, reads)).await
    }

    fn poll_moved(&mut self, cx: &mut Context<'_>, reads: bool) -> Poll<Woken> {
        if let Some(Poll::Ready(dialled)) = self.dialling.as_mut().map(|dial| dial.as_mut().poll(cx)) {
            self.dialling = None;
            return Poll::Ready(Woken::Dialled(dialled.map(|first| self.take_first(first))));
        }
        if let Some(Poll::Ready(())) = self.farewell.as_mut().map(|farewell| farewell.as_mut().poll(cx)) {
            self.farewell = None;
            return Poll::Ready(Woken::SaidFarewell);
        }
        if let Poll::Ready(moves) = self.routes.poll_trial(cx) {
            return Poll::Ready(Woken::Tried(moves));
        }
        match self.poll_send(cx) {
            Poll::Pending if reads => self.poll_read_any(cx),
            sent => sent,
        }
    }

    fn poll_read_any(&mut self, cx: &mut Context<'_>) -> Poll<Woken> {
        self.data_first = !self.data_first;
        for data in [self.data_first, !self.data_first] {
            let read = if data { self.data.poll_moved(cx).map(Woken::Moved) } else { self.poll_read(cx) };
            if read.is_ready() {
                return read;
            }
        }
        self.siblings.poll(cx).map(Woken::Moved)
    }

    fn take_first(&mut self, mut first: HubStream) {
        first.count(&self.data.arrived);
        self.routes.connected(&first.way);
        self.local_address.clone_from(&first.local_address);
        self.peer_address.clone_from(&first.peer_address);
        self.way.clone_from(&first.way);
        (self.first, self.is_broken) = (Some(first), false);
    }

    /// Sends go first: a site sends little, so the hub's products are not delayed.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<Woken> {
        let Some(first) = self.first.as_mut().filter(|_| !self.is_broken) else { return Poll::Pending };
        let stream = Pin::new(&mut first.tls);
        let moved = match self.out.next() {
            NextWrite::Write(bytes) => {
                stream.poll_write(cx, bytes).map_ok(|written| self.out.written(written))
            }
            NextWrite::Flush => stream.poll_flush(cx).map_ok(|()| self.out.flushed()),
            NextWrite::Nothing => return Poll::Pending,
        };
        moved.map(|moved| moved.map_or_else(|error| self.fail(&error), |()| Woken::Written))
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Woken> {
        let Some(first) = self.first.as_mut().filter(|_| !self.is_broken) else { return Poll::Pending };
        first.poll_read(cx).map(|read| match read {
            Ok(Some(bytes)) => Woken::Moved(Input::Bytes { stream: StreamId::FIRST, bytes }),
            Ok(None) => {
                self.is_broken = true;
                closed("the hub closed the connection".to_owned())
            }
            Err(error) => self.fail(&error),
        })
    }

    fn fail(&mut self, error: &std::io::Error) -> Woken {
        self.is_broken = true;
        closed(format!("the connection to the hub failed: {error}"))
    }
}

fn closed(reason: String) -> Woken {
    Woken::Moved(Input::Closed(reason))
}

async fn farewell(mut first: HubStream, words: &[u8]) -> std::io::Result<()> {
    first.tls.write_all(words).await?;
    first.tls.shutdown().await?;
    tokio::io::copy(&mut first.tls, &mut tokio::io::sink()).await?;
    Ok(())
}

/// The end is one record, which the socket's buffer accepts unless the hub has read nothing for long.
const HANG_UP_PATIENCE: Duration = Duration::from_millis(200);
