//! The throughput of a connection in the time in which its path limits it.
use std::net::IpAddr;

use downburst_model::Micros;
use downburst_session::StreamId;

/// A connection among all of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ConnectionKey {
    /// The number of the session.
    pub(super) session: u64,
    /// The connection in it.
    pub(super) stream: StreamId,
}

/// A look at all connections of a session.
#[derive(Clone, Debug)]
pub struct SessionLook {
    /// The number of the session.
    pub session: u64,
    /// The time of the look.
    pub at: Micros,
    /// The size of the products in the queue.
    pub waiting_bytes: usize,
    /// The rate limit of the site on the wire, by its access and the hour; `None`: no limit.
    pub bound_bps: Option<u64>,
    /// Its connections.
    pub connections: Vec<ConnectionLook>,
}

/// A look at one connection; counts start with the connection.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLook {
    /// The connection.
    pub stream: StreamId,
    /// The address of the site's end.
    pub peer: IpAddr,
    /// The number of bytes that the site's host acknowledged.
    pub acked_bytes: u64,
    /// True if bytes are queued for the socket.
    pub queued: bool,
    /// The time for which the kernel had something to send.
    pub busy_us: u64,
    /// The part of this time in which the send buffer was too small.
    pub buffer_limited_us: u64,
    /// The size of the send buffer at present, as an option would set it.
    pub send_buffer_bytes: u64,
}

/// A time in which a connection was busy, and its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) busy: Micros,
    pub(super) bytes: u64,
}

/// The measurements of one connection.
#[derive(Debug)]
pub(super) struct Meter {
    /// The name of its profile.
    pub(super) profile: Option<String>,
    pub(super) peer: IpAddr,
    last: Option<(Micros, ConnectionLook)>,
    busy_since: Option<Micros>,
    limited: bool,
}

impl Meter {
    pub(super) fn new(profile: Option<String>, peer: IpAddr) -> Self {
        Self { profile, peer, last: None, busy_since: None, limited: false }
    }

    /// The bytes since the last look.
    pub(super) fn grown(&self, look: &ConnectionLook) -> u64 {
        self.last.map_or(0, |(_, last)| look.acked_bytes.saturating_sub(last.acked_bytes))
    }

    /// Takes a look; returns the time since the last one if the connection was busy throughout. `is_free`: nothing but
    /// the path limits the session.
    pub(super) fn look(&mut self, at: Micros, look: &ConnectionLook, is_free: bool) -> Option<Interval> {
        let last = self.last.replace((at, *look));
        let busy = last.filter(|(since, last)| {
            let is_whole = at.since(*since) <= LONGEST_INTERVAL && look.acked_bytes >= last.acked_bytes;
            is_free && last.queued && look.queued && is_whole && at > *since
        });
        let Some((since, last)) = busy else {
            self.busy_since = None;
            return None;
        };
        self.busy_since.get_or_insert(since);
        let limited_us = look.buffer_limited_us.saturating_sub(last.buffer_limited_us);
        self.limited = limited_us > look.busy_us.saturating_sub(last.busy_us) / 2;
        Some(Interval { busy: at.since(since), bytes: look.acked_bytes - last.acked_bytes })
    }

    /// True if the connection has been busy for a while, and was looked at recently.
    pub(super) fn is_busy(&self, now: Micros) -> bool {
        let is_fresh = self.last.is_some_and(|(at, _)| now.since(at) <= LONGEST_INTERVAL);
        is_fresh && self.busy_since.is_some_and(|since| now.since(since) >= BUSY_BEFORE)
    }

    /// The size of its send buffer if that is what limits the connection.
    pub(super) fn limiting_buffer(&self) -> Option<u64> {
        self.last
            .filter(|_| self.limited && self.busy_since.is_some())
            .map(|(_, last)| last.send_buffer_bytes)
    }
}

/// True if the site's own limit explains the rate: the queue empties at that rate whatever TCP does. The tolerance
/// covers headers and a second that was cut a little short.
pub(super) fn fills(bytes: u64, elapsed: Micros, bound_bps: u64) -> bool {
    let rate_bps = bytes.saturating_mul(8_000_000).checked_div(elapsed.0).unwrap_or(0);
    rate_bps >= bound_bps / 100 * 85
}

/// The interval between looks is a second; one that took longer may hide a pause.
const LONGEST_INTERVAL: Micros = Micros::from_secs(3);

/// A moment's queue is no reason for a trial, and other connections of the site become busy with it.
const BUSY_BEFORE: Micros = Micros::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    fn look(acked_bytes: u64, queued: bool) -> ConnectionLook {
        ConnectionLook {
            stream: StreamId::FIRST,
            peer: IpAddr::from([192, 0, 2, 1]),
            acked_bytes,
            queued,
            busy_us: acked_bytes,
            buffer_limited_us: acked_bytes * 2 / 3,
            send_buffer_bytes: 50_000,
        }
    }

    #[test]
    fn only_the_time_counts_in_which_the_path_limits() {
        let mut meter = Meter::new(None, IpAddr::from([192, 0, 2, 1]));
        let second = Micros::from_secs;
        assert_eq!(meter.look(second(1), &look(100, true), true), None, "nothing to compare with");
        let busy = Some(Interval { busy: second(1), bytes: 50 });
        assert_eq!(meter.look(second(2), &look(150, true), true), busy);
        assert!(!meter.is_busy(second(2)) && meter.look(second(3), &look(200, true), true) == busy);
        assert!(meter.is_busy(second(3)) && !meter.is_busy(second(7)), "a look too long ago counts no more");
        assert_eq!(meter.limiting_buffer(), Some(50_000));
        for (at, look, is_free, reason) in [
            (4, look(250, false), true, "its queue is empty"),
            (5, look(300, true), true, "it was empty at the start"),
            (6, look(350, true), false, "another limit"),
            (10, look(400, true), true, "the look came late"),
            (11, look(10, true), true, "another connection has its number"),
        ] {
            assert_eq!(meter.look(second(at), &look, is_free), None, "{reason}");
        }
        assert!(!meter.is_busy(second(11)) && meter.limiting_buffer().is_none());
    }

    #[test]
    fn a_rate_near_the_sites_limit_fills_it() {
        assert!(fills(1_150_000, Micros::from_secs(1), 10_000_000));
        assert!(!fills(1_000_000, Micros::from_secs(1), 10_000_000));
        assert!(!fills(u64::MAX, Micros(0), 10_000_000));
    }
}
