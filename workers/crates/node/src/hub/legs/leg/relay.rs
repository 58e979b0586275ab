//! The way of a leg's datagrams through the session of a relay.
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::BytesMut;
use downburst_hub::SessionInput;
use downburst_model::LegId;
use downburst_session::{Datagrams, HubInput, RelayLegOpen};

use crate::hub::lock;
use crate::hub::roster::{Command, Handle};

/// The route of a leg's datagrams to its relay; empty while the relay does not send the leg.
pub(in crate::hub) struct Route {
    link: Mutex<Option<Arc<RelayLink>>>,
    rate_bps: AtomicU64,
}

/// The session of a relay that sends a leg.
pub(in crate::hub) struct RelayLink {
    pub(in crate::hub) session: Handle,
    pub(in crate::hub) open: RelayLegOpen,
}

/// Gathers a leg's datagrams in trains for its relay.
pub(in crate::hub) struct RelayOutlet {
    leg: LegId,
    route: Arc<Route>,
    train: BytesMut,
    segment_bytes: usize,
}

impl Route {
    /// The source of the datagrams in the relay's network.
    pub(in crate::hub) fn source(&self) -> Option<String> {
        lock(&self.link).as_ref().map(|link| link.open.source.clone())
    }

    pub(in crate::hub) fn put(&self, link: Option<RelayLink>) {
        *lock(&self.link) = link.map(Arc::new);
    }

    pub(in crate::hub) fn end(&self, leg: LegId) {
        self.tell(|_| HubInput::EndRelayLeg(leg));
        self.put(None);
    }

    pub(in crate::hub) fn set_rate(&self, rate_bps: u64) {
        self.rate_bps.store(rate_bps, Ordering::Relaxed);
    }

    fn tell(&self, input: impl FnOnce(&RelayLink) -> HubInput) {
        let link = lock(&self.link).clone();
        if let Some(link) = link {
            let input = SessionInput::Pass(input(&link));
            // A session that has ended takes nothing: its datagrams are lost, as on any broken path.
            let _ = link.session.commands.send(Command::Tell(input));
        }
    }

    /// The most bytes that wait for the relay's connection: twice the bytes in flight at the leg's rate.
    fn queue_bytes(&self, link: &RelayLink) -> usize {
        let path = lock(&link.session.status).path.as_ref().and_then(|path| path.least_round_trip_us);
        queue_bytes(self.rate_bps.load(Ordering::Relaxed), path.unwrap_or(UNKNOWN_ROUND_TRIP_US))
    }
}

/// Twice the bytes in flight at a rate and a round trip.
fn queue_bytes(rate_bps: u64, round_trip_us: u64) -> usize {
    let round_trip_us = round_trip_us.clamp(SHORTEST_ROUND_TRIP_US, LONGEST_ROUND_TRIP_US);
    let bytes = u128::from(rate_bps) * u128::from(round_trip_us) * 2 / 8 / 1_000_000;
    usize::try_from(bytes).unwrap_or(usize::MAX).clamp(TRAIN_BYTES, QUEUE_LIMIT_BYTES)
}

impl RelayOutlet {
    pub(in crate::hub) fn new(leg: LegId, rate_bps: u64) -> Self {
        let route = Arc::new(Route { link: Mutex::default(), rate_bps: AtomicU64::new(rate_bps) });
        Self { leg, route, train: BytesMut::new(), segment_bytes: 0 }
    }

    pub(in crate::hub) fn route(&self) -> Arc<Route> {
        Arc::clone(&self.route)
    }

    /// True while the relay sends the leg.
    pub(in crate::hub) fn is_open(&self) -> bool {
        lock(&self.route.link).is_some()
    }

    /// Adds a datagram to the train, without a copy if it follows in memory; sends the train first if the datagram
    /// can't join it.
    pub(in crate::hub) fn push(&mut self, datagram: BytesMut) {
        let room = (TRAIN_DATAGRAMS * self.segment_bytes).min(TRAIN_BYTES);
        let joins = !self.train.is_empty()
            && datagram.len() <= self.segment_bytes
            && self.train.len().is_multiple_of(self.segment_bytes)
            && self.train.len() + datagram.len() <= room;
        if !joins {
            self.flush();
            self.segment_bytes = datagram.len();
        }
        self.train.unsplit(datagram);
    }

    /// Sends the waiting train; while the relay does not send the leg, it goes nowhere, and no site expects it.
    pub(in crate::hub) fn flush(&mut self) {
        if self.train.is_empty() {
            return;
        }
        let bytes = self.train.split().freeze();
        let segment_bytes = u16::try_from(self.segment_bytes).unwrap_or(u16::MAX);
        let train = Datagrams { leg: self.leg, segment_bytes, bytes };
        self.route.tell(|link| HubInput::Datagrams { train, queue_bytes: self.route.queue_bytes(link) });
    }
}

/// The leg is over, and its relay ends it, too.
impl Drop for RelayOutlet {
    fn drop(&mut self) {
        self.route.end(self.leg);
    }
}

/// As many as a socket takes in one call.
const TRAIN_DATAGRAMS: usize = 44;

const TRAIN_BYTES: usize = 65_000;

/// A leg sends bursts of 10 ms of its rate, and a busy hub may be late with them.
const SHORTEST_ROUND_TRIP_US: u64 = 25_000;

const UNKNOWN_ROUND_TRIP_US: u64 = 100_000;
const LONGEST_ROUND_TRIP_US: u64 = 1_000_000;

/// The most that a slow relay may cost a hub's memory, for each leg.
const QUEUE_LIMIT_BYTES: usize = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_the_bytes_in_flight_may_wait_and_at_least_a_train() {
        assert_eq!(queue_bytes(100_000_000, 80_000), 2_000_000);
        assert_eq!(queue_bytes(1_000, 80_000), TRAIN_BYTES);
        assert_eq!(queue_bytes(100_000_000, 0), 625_000, "a burst of a busy hub fits");
        assert_eq!(queue_bytes(u64::MAX, u64::MAX), QUEUE_LIMIT_BYTES);
    }
}
