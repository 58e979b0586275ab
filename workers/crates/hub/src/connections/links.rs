//! The data connections of one session, beside the first one.
use bytes::Bytes;
use downburst_model::Micros;
use downburst_session::StreamId;

use super::outbound::{Outbound, Taken};

/// All data connections of a session; an empty set uses no memory. `S` is the driver's socket.
#[derive(Debug)]
pub struct DataLinks<S> {
    links: Vec<DataLink<S>>,
    /// The index at which the next round begins, so that no connection starves.
    turn: usize,
}

/// One data connection.
#[derive(Debug)]
pub struct DataLink<S> {
    /// Its number.
    pub stream: StreamId,
    /// Its socket.
    pub socket: S,
    /// Its queue.
    pub out: Outbound,
    /// The time from which only queued bytes are sent.
    closing: Option<Micros>,
}

impl<S> DataLinks<S> {
    /// Adds a connection.
    pub fn add(&mut self, stream: StreamId, socket: S) {
        self.links.push(DataLink { stream, socket, out: Outbound::default(), closing: None });
    }

    /// Queues bytes for a connection.
    pub fn push(&mut self, now: Micros, stream: StreamId, bytes: Bytes) {
        if let Some(link) = self.link(stream) {
            link.out.push(now, bytes);
        }
    }

    /// Removes the bytes that the socket took.
    pub fn taken(&mut self, now: Micros, stream: StreamId, taken: &Taken) {
        if let Some(link) = self.link(stream) {
            link.out.taken(now, taken);
        }
    }

    /// Closes a connection once its queue is empty.
    pub fn close(&mut self, now: Micros, stream: StreamId) {
        if let Some(link) = self.link(stream) {
            link.closing.get_or_insert(now);
        }
    }

    /// Drops a connection without sending the rest of its queue.
    pub fn drop_link(&mut self, stream: StreamId) {
        self.links.retain(|link| link.stream != stream);
    }

    /// The selected connections, each with its part of a rate.
    pub fn shares(&self, rate_bps: u64, which: impl Fn(StreamId) -> bool) -> impl Iterator<Item = (&S, u64)> {
        let sockets: Vec<&S> =
            self.links.iter().filter(|link| which(link.stream)).map(|link| &link.socket).collect();
        let share_bps = rate_bps / (sockets.len() as u64).max(1);
        sockets.into_iter().map(move |socket| (socket, share_bps))
    }

    /// A connection that took nothing for `limit`, or has been closing for as long.
    pub fn stuck(&self, now: Micros, limit: Micros) -> Option<StreamId> {
        let stuck = |link: &&DataLink<S>| {
            link.out.is_stuck(now, limit) || link.closing.is_some_and(|since| now.since(since) > limit)
        };
        self.links.iter().find(stuck).map(|link| link.stream)
    }

    /// The time at which [`stuck`](Self::stuck) returns a connection, if nothing moves.
    pub fn stuck_at(&self, limit: Micros) -> Option<Micros> {
        let closing =
            self.links.iter().filter_map(|link| link.closing.map(|since| since.plus(limit).plus(Micros(1))));
        self.links.iter().filter_map(|link| link.out.stuck_at(limit)).chain(closing).min()
    }

    /// The connections, with their queues.
    pub fn all(&self) -> impl Iterator<Item = &DataLink<S>> {
        self.links.iter()
    }

    /// The sockets.
    pub fn sockets(&self) -> impl Iterator<Item = &S> {
        self.links.iter().map(|link| &link.socket)
    }

    /// The first result of `serve` on the connections in turn. A connection whose result says that it is over is
    /// dropped; the next round begins behind the connection that had the result.
    pub fn serve<T>(
        &mut self,
        mut serve: impl FnMut(&mut DataLink<S>) -> Option<T>,
        is_over: impl Fn(&T) -> bool,
    ) -> Option<T> {
        let count = self.links.len();
        for step in 0..count {
            let index = (self.turn + step) % count;
            let Some(result) = self.links.get_mut(index).and_then(&mut serve) else { continue };
            self.turn = index + 1;
            if is_over(&result) {
                self.links.remove(index);
            }
            return Some(result);
        }
        None
    }

    fn link(&mut self, stream: StreamId) -> Option<&mut DataLink<S>> {
        self.links.iter_mut().find(|link| link.stream == stream)
    }
}

impl<S> DataLink<S> {
    /// True if the connection was to be closed, and its queue is empty.
    pub fn is_done(&self) -> bool {
        self.closing.is_some() && self.out.is_empty()
    }
}

impl<S> Default for DataLinks<S> {
    fn default() -> Self {
        Self { links: Vec::new(), turn: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Micros = Micros::from_secs(15);

    /// Connections with these numbers; the socket is the number.
    fn links(numbers: impl IntoIterator<Item = u8>) -> DataLinks<u8> {
        let mut links = DataLinks::default();
        numbers.into_iter().for_each(|number| links.add(StreamId(number.into()), number));
        links
    }

    #[test]
    fn connections_are_served_in_turn_and_those_that_are_over_are_dropped() {
        let mut links = links(1..=3);
        let mut served = |over: u8| links.serve(|link| Some(link.socket), |socket| *socket == over);
        assert_eq!([served(0), served(0), served(0), served(0)], [1, 2, 3, 1].map(Some));
        assert_eq!([served(2), served(0), served(0), served(0)], [2, 1, 3, 1].map(Some));
        assert_eq!(links.serve(|link| (link.socket == 3).then_some(3), |_| true), Some(3));
        assert_eq!(links.serve(|_| None::<u8>, |_| true), None);
        assert_eq!(links.sockets().copied().collect::<Vec<_>>(), [1]);
        assert_eq!(DataLinks::<u8>::default().serve(|_| Some(1), |_| true), None);
    }

    #[test]
    fn a_connection_closes_when_its_queue_is_empty_or_its_time_is_over() {
        let (mut links, at) = (links([1]), Micros::from_secs(100));
        let is_done = |links: &mut DataLinks<u8>| links.serve(|link| Some(link.is_done()), |_| false);
        links.push(at, StreamId(1), Bytes::from_static(b"rest"));
        assert_eq!(is_done(&mut links), Some(false));
        links.close(at, StreamId(1));
        links.close(at.plus(LIMIT), StreamId(1));
        links.close(at, StreamId(7));
        assert_eq!(is_done(&mut links), Some(false), "the rest is not sent");
        assert_eq!(links.stuck_at(LIMIT), Some(at.plus(LIMIT).plus(Micros(1))), "from the first request on");
        links.taken(at.plus(Micros(5)), StreamId(1), &Taken { bytes: 4, flushed: true });
        assert_eq!(is_done(&mut links), Some(true));
        assert_eq!(links.stuck(at.plus(LIMIT), LIMIT), None);
        assert_eq!(links.stuck(at.plus(LIMIT).plus(Micros(1)), LIMIT), Some(StreamId(1)));
        links.drop_link(StreamId(1));
        assert_eq!((links.stuck_at(LIMIT), links.sockets().count()), (None, 0));
    }

    #[test]
    fn the_selected_connections_share_a_rate() {
        let links = links(1..=4);
        let shares = |most: u32| links.shares(900, |stream| stream.0 <= most).collect::<Vec<_>>();
        assert_eq!(shares(3), [(&1, 300), (&2, 300), (&3, 300)]);
        assert_eq!(shares(0), []);
    }
}
