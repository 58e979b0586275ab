//! Connections of sites: the limits of those that are not admitted yet, and the outgoing side of those of a session.
//!
//! [`Outgoing`] has the queues of a session's connections, their liveness, and the end of the session.
mod links;
mod outbound;
mod pending;

use bytes::Bytes;
use downburst_model::Micros;
use downburst_session::{LIVENESS_LIMIT, StreamId};

pub use links::{DataLink, DataLinks};
pub use outbound::{OUT_LIMIT_BYTES, Outbound, Taken};
pub use pending::{AdmissionLimits, PendingConnections};

/// The queues of all connections of a session. `S` is the socket of a data connection.
#[derive(Debug)]
pub struct Outgoing<S> {
    /// The queue of the first connection.
    pub first: Outbound,
    /// The data connections.
    pub links: DataLinks<S>,
    /// The time from which only queued bytes are sent.
    closing: Option<Micros>,
}

impl<S> Outgoing<S> {
    /// Queues bytes for a connection; those for a data connection that has ended are dropped.
    pub fn push(&mut self, now: Micros, stream: StreamId, bytes: Bytes) {
        match stream {
            StreamId::FIRST => self.first.push(now, bytes),
            stream => self.links.push(now, stream, bytes),
        }
    }

    /// Removes the bytes that a connection's socket took.
    pub fn taken(&mut self, now: Micros, stream: StreamId, taken: &Taken) {
        match stream {
            StreamId::FIRST => self.first.taken(now, taken),
            stream => self.links.taken(now, stream, taken),
        }
    }

    /// Closes the session once the first connection's queue is empty.
    pub fn close(&mut self, now: Micros) {
        self.closing = Some(now);
    }

    /// True once the session closes.
    pub fn is_closing(&self) -> bool {
        self.closing.is_some()
    }

    /// True if the session closes, and everything is sent or the peer's time is over.
    pub fn is_over(&self, now: Micros) -> bool {
        self.closing.is_some_and(|since| self.first.is_empty() || now.since(since) >= CLOSE_PATIENCE)
    }

    /// True if the site takes nothing from the first connection: the session has to end.
    pub fn is_stuck(&self, now: Micros) -> bool {
        self.first.is_stuck(now, LIVENESS_LIMIT)
    }

    /// Drops a data connection that took nothing for too long; returns it if there was one.
    pub fn drop_stuck_link(&mut self, now: Micros) -> Option<StreamId> {
        let stream = self.links.stuck(now, LIVENESS_LIMIT)?;
        self.links.drop_link(stream);
        Some(stream)
    }

    /// The time at which [`is_over`](Self::is_over), [`is_stuck`](Self::is_stuck) or
    /// [`drop_stuck_link`](Self::drop_stuck_link) has a result although nothing moves.
    pub fn deadline(&self) -> Option<Micros> {
        let closed = self.closing.map(|since| since.plus(CLOSE_PATIENCE));
        let due = [self.first.stuck_at(LIVENESS_LIMIT), self.links.stuck_at(LIVENESS_LIMIT), closed];
        due.into_iter().flatten().min()
    }
}

impl<S> Default for Outgoing<S> {
    fn default() -> Self {
        Self { first: Outbound::default(), links: DataLinks::default(), closing: None }
    }
}

/// A peer that does not read its last messages loses them: a revoked site is always gone within a second.
const CLOSE_PATIENCE: Micros = Micros::from_millis(400);

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: StreamId = StreamId(2);

    fn at(second: u64) -> Micros {
        Micros::from_secs(second)
    }

    fn all_of(bytes: usize) -> Taken {
        Taken { bytes, flushed: true }
    }

    #[test]
    fn a_closing_session_sends_the_rest_of_its_queue_and_waits_for_no_deaf_peer() {
        let mut outgoing = Outgoing::<()>::default();
        assert!(!outgoing.is_over(at(9)) && !outgoing.is_closing());
        outgoing.push(at(10), StreamId::FIRST, Bytes::from_static(b"refused"));
        outgoing.close(at(10));
        assert!(outgoing.is_closing() && !outgoing.is_over(at(10)));
        assert_eq!(outgoing.deadline(), Some(at(10).plus(CLOSE_PATIENCE)));
        assert!(outgoing.is_over(at(10).plus(CLOSE_PATIENCE)), "the peer reads nothing");
        outgoing.taken(at(10), StreamId::FIRST, &all_of(7));
        assert!(outgoing.is_over(at(10)), "everything is sent");
    }

    #[test]
    fn the_end_of_a_session_does_not_wait_for_its_data_connections() {
        let mut outgoing = Outgoing::default();
        outgoing.links.add(SECOND, ());
        outgoing.push(at(1), SECOND, Bytes::from_static(b"product"));
        outgoing.close(at(1));
        assert!(outgoing.is_over(at(1)));
    }

    #[test]
    fn a_deaf_site_loses_its_session_and_a_stuck_link_alone_is_dropped() {
        let mut outgoing = Outgoing::default();
        outgoing.links.add(SECOND, ());
        assert_eq!((outgoing.deadline(), outgoing.drop_stuck_link(at(900))), (None, None));
        outgoing.push(at(100), SECOND, Bytes::from_static(b"product"));
        let due = at(100).plus(LIVENESS_LIMIT).plus(Micros(1));
        assert_eq!(outgoing.deadline(), Some(due));
        assert_eq!(outgoing.drop_stuck_link(at(100).plus(LIVENESS_LIMIT)), None);
        assert!(!outgoing.is_stuck(due));
        assert_eq!(outgoing.drop_stuck_link(due), Some(SECOND));
        assert_eq!((outgoing.drop_stuck_link(due), outgoing.deadline()), (None, None), "it is gone");
        outgoing.push(due, StreamId::FIRST, Bytes::from_static(b"control"));
        assert!(outgoing.is_stuck(due.plus(LIVENESS_LIMIT).plus(Micros(1))));
    }

    #[test]
    fn each_connection_has_a_queue_of_its_own() {
        let mut outgoing = Outgoing::default();
        outgoing.links.add(SECOND, ());
        outgoing.push(at(1), StreamId::FIRST, Bytes::from_static(b"one"));
        outgoing.push(at(1), SECOND, Bytes::from_static(b"three"));
        outgoing.push(at(1), StreamId(9), Bytes::from_static(b"ended"));
        assert_eq!(outgoing.first.waiting_bytes(), 3);
        outgoing.taken(at(1), StreamId::FIRST, &all_of(3));
        outgoing.taken(at(1), StreamId(9), &all_of(5));
        assert!(outgoing.first.is_empty());
        assert_eq!(outgoing.links.stuck(at(900), LIVENESS_LIMIT), Some(SECOND), "its bytes wait");
        outgoing.taken(at(1), SECOND, &all_of(5));
        assert_eq!(outgoing.links.stuck(at(900), LIVENESS_LIMIT), None);
    }
}
