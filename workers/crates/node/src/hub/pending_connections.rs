//! Unauthenticated connections: limits of their number, duration, and memory for their input.
//!
//! Anybody can reach the port, so these connections may not cost the admitted sites anything. Above the limit, each
//! new connection evicts the oldest one of the network that has the most. A site needs a few round trips to be
//! admitted; a flood of silent connections from one network evicts its own.
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use downburst_model::Micros;
use tokio::sync::oneshot;

use super::{Hub, lock};

/// All unauthenticated connections of a hub.
#[derive(Default)]
pub(super) struct PendingConnections(Mutex<Table>);

/// One connection from its acceptance to the admission of its site, which drops this.
pub(super) struct PendingConnection {
    hub: Arc<Hub>,
    pub(super) peer: SocketAddr,
    number: u64,
    accepted: Micros,
    evicted: oneshot::Receiver<()>,
}

impl PendingConnection {
    /// Registers a connection; another may be evicted for it.
    pub(super) fn accepted(hub: &Arc<Hub>, peer: SocketAddr) -> Self {
        let accepted = hub.clock.monotonic();
        let (number, evicted) = lock(&hub.roster.pending_connections.0).add(network(peer.ip()));
        let pending = Self { hub: Arc::clone(hub), peer, number, accepted, evicted };
        pending.report_evictions();
        pending
    }

    /// Counts bytes that are kept for this connection. When all together hold too many, the largest is evicted.
    pub(super) fn took(&self, bytes: usize) {
        lock(&self.hub.roster.pending_connections.0).took(self.number, bytes);
        self.report_evictions();
    }

    /// Waits until this connection is evicted.
    pub(super) async fn evicted(&mut self) {
        // An error means the same: nobody holds the other end any more.
        let _ = (&mut self.evicted).await;
    }

    /// True once the time for the admission is over.
    pub(super) fn is_late(&self) -> bool {
        self.hub.clock.monotonic().since(self.accepted) > ADMISSION_LIMIT
    }

    /// When that is.
    pub(super) fn late_at(&self) -> Micros {
        self.accepted.plus(ADMISSION_LIMIT).plus(Micros(1))
    }

    /// Logs the end of a connection; returns true if the agent should be notified as well. In a flood only
    /// some are logged.
    pub(super) fn ended(&self, sentence: &str) -> bool {
        let (speaks, passed_over) =
            lock(&self.hub.roster.pending_connections.0).log_quota(self.hub.clock.monotonic());
        if passed_over > 0 {
            tracing::info!("{passed_over} more connections ended before a site was admitted");
        }
        if speaks {
            tracing::info!(peer = %self.peer, "a connection ended before a site was admitted: {sentence}");
        }
        speaks
    }

    fn report_evictions(&self) {
        let evicted = lock(&self.hub.roster.pending_connections.0).report_due(self.hub.clock.monotonic());
        if let Some(evicted) = evicted {
            let sentence = format!(
                "{evicted} unauthenticated connections to the sites' port were closed to make room: more than \
                 {PENDING_LIMIT} were open, or they held more than {} MiB; find their origin, and keep strangers \
                 out with a firewall",
                KEPT_LIMIT_BYTES >> 20
            );
            self.hub.fault(sentence, None);
        }
    }
}

impl Drop for PendingConnection {
    fn drop(&mut self) {
        lock(&self.hub.roster.pending_connections.0).remove(self.number);
    }
}

#[derive(Default)]
struct Table {
    last_number: u64,
    present: BTreeMap<u64, Present>,
    kept_bytes: usize,
    /// Evicted since the last report.
    evicted: u64,
    reported: Option<Micros>,
    log_quota: LogQuota,
}

struct Present {
    network: IpAddr,
    kept_bytes: usize,
    evicted: oneshot::Sender<()>,
}

/// How many ends were logged in an interval.
#[derive(Default)]
struct LogQuota {
    since: Micros,
    said: u32,
    passed_over: u64,
}

impl Table {
    fn add(&mut self, network: IpAddr) -> (u64, oneshot::Receiver<()>) {
        if self.present.len() >= PENDING_LIMIT
            && let Some(number) = self.oldest_of_the_largest_network()
        {
            self.evict(number);
        }
        self.last_number += 1;
        let (evicted, receiver) = oneshot::channel();
        self.present.insert(self.last_number, Present { network, kept_bytes: 0, evicted });
        (self.last_number, receiver)
    }

    fn took(&mut self, number: u64, bytes: usize) {
        if let Some(present) = self.present.get_mut(&number) {
            present.kept_bytes = present.kept_bytes.saturating_add(bytes);
            self.kept_bytes = self.kept_bytes.saturating_add(bytes);
        }
        while self.kept_bytes > KEPT_LIMIT_BYTES {
            let greediest = self.present.iter().max_by_key(|(_, present)| present.kept_bytes);
            let Some(number) = greediest.map(|(number, _)| *number) else { return };
            self.evict(number);
        }
    }

    fn evict(&mut self, number: u64) {
        if let Some(present) = self.remove(number) {
            self.evicted += 1;
            // Without a receiver it is ending already.
            let _ = present.evicted.send(());
        }
    }

    fn remove(&mut self, number: u64) -> Option<Present> {
        let present = self.present.remove(&number)?;
        self.kept_bytes = self.kept_bytes.saturating_sub(present.kept_bytes);
        Some(present)
    }

    fn oldest_of_the_largest_network(&self) -> Option<u64> {
        let mut networks: BTreeMap<IpAddr, (usize, u64)> = BTreeMap::new();
        for (number, present) in &self.present {
            networks.entry(present.network).or_insert((0, *number)).0 += 1;
        }
        let largest = networks.values().max_by_key(|(count, oldest)| (*count, u64::MAX - oldest))?;
        Some(largest.1)
    }

    /// How many were evicted, if a report is due: the first without delay, others at most each [`REPORT_PAUSE`].
    fn report_due(&mut self, now: Micros) -> Option<u64> {
        let due = self.reported.is_none_or(|last| now.since(last) >= REPORT_PAUSE);
        if self.evicted == 0 || !due {
            return None;
        }
        self.reported = Some(now);
        Some(std::mem::take(&mut self.evicted))
    }

    /// Whether one more end may be logged, and how many were left out before.
    fn log_quota(&mut self, now: Micros) -> (bool, u64) {
        let mut passed_over = 0;
        if now.since(self.log_quota.since) >= LOG_INTERVAL {
            passed_over = self.log_quota.passed_over;
            self.log_quota = LogQuota { since: now, ..LogQuota::default() };
        }
        self.log_quota.said = self.log_quota.said.saturating_add(1);
        let speaks = self.log_quota.said <= LOGGED_ENDS;
        self.log_quota.passed_over += u64::from(!speaks);
        (speaks, passed_over)
    }
}

/// What one party is likely to have to itself: an IPv4 address, or 64 bits of an IPv6 address.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

/// Several times what a thousand sites need that come back together after a restart of the hub.
const PENDING_LIMIT: usize = 512;

/// The longest hello is 1 MiB, and hellos of that length are rare.
const KEPT_LIMIT_BYTES: usize = 64 << 20;

/// From the accepted connection to the credential that was found good, the agent's answer to a token included.
const ADMISSION_LIMIT: Micros = Micros::from_secs(15);

const REPORT_PAUSE: Micros = Micros::from_secs(60);
const LOG_INTERVAL: Micros = Micros::from_secs(10);
const LOGGED_ENDS: u32 = 50;

#[cfg(test)]
mod tests {
    use super::*;

    fn table(networks: &[(u8, usize)]) -> (Table, Vec<oneshot::Receiver<()>>) {
        let mut table = Table::default();
        let addresses = networks.iter().flat_map(|(last, count)| std::iter::repeat_n(*last, *count));
        let receivers = addresses.map(|last| table.add(IpAddr::from([10, 0, 0, last])).1).collect();
        (table, receivers)
    }

    fn is_evicted(receiver: &mut oneshot::Receiver<()>) -> bool {
        receiver.try_recv().is_ok()
    }

    #[test]
    fn the_oldest_of_the_largest_network_makes_room() {
        let (mut table, mut receivers) = table(&[(1, 10), (2, PENDING_LIMIT - 10)]);
        assert!(!receivers.iter_mut().any(is_evicted));
        table.add(IpAddr::from([10, 0, 0, 3]));
        assert_eq!(table.present.len(), PENDING_LIMIT);
        let out: Vec<usize> = (0..receivers.len()).filter(|at| is_evicted(&mut receivers[*at])).collect();
        assert_eq!(out, [10], "the first of the second network");
    }

    #[test]
    fn who_sends_the_most_makes_room_and_room_comes_back() {
        let (mut table, mut receivers) = table(&[(1, 3)]);
        table.took(1, KEPT_LIMIT_BYTES / 4);
        table.took(2, KEPT_LIMIT_BYTES / 2);
        table.took(3, KEPT_LIMIT_BYTES / 4);
        assert!(!receivers.iter_mut().any(is_evicted), "the limit itself is allowed");
        table.took(1, 1);
        assert_eq!(receivers.iter_mut().map(is_evicted).collect::<Vec<_>>(), [false, true, false]);
        table.remove(1);
        table.remove(3);
        assert_eq!((table.kept_bytes, table.present.len()), (0, 0));
    }

    #[test]
    fn a_flood_is_said_once_a_minute_and_counted() {
        let (mut table, _receivers) = table(&[(1, PENDING_LIMIT + 2)]);
        assert_eq!(table.report_due(Micros::from_secs(1)), Some(2));
        table.add(IpAddr::from([10, 0, 0, 1]));
        assert_eq!(table.report_due(Micros::from_secs(60)), None);
        assert_eq!(table.report_due(Micros::from_secs(61)), Some(1));
        assert_eq!(table.report_due(Micros::from_secs(200)), None, "nobody was put out since");
    }

    #[test]
    fn few_ends_are_logged_and_the_rest_is_counted() {
        let mut table = Table::default();
        let spoken = (0..LOGGED_ENDS + 7).filter(|_| table.log_quota(Micros::from_secs(20)).0).count();
        assert_eq!(spoken, LOGGED_ENDS as usize);
        assert_eq!(table.log_quota(Micros::from_secs(30)), (true, 7));
        assert_eq!(table.log_quota(Micros::from_secs(40)), (true, 0));
    }

    #[test]
    fn one_party_is_one_network() {
        let parse = |text: &str| network(text.parse().unwrap());
        assert_eq!(parse("2001:db8::1"), parse("2001:db8:0:0:ffff::2"));
        assert_ne!(parse("2001:db8::1"), parse("2001:db8:0:1::1"));
        assert_eq!(parse("::ffff:192.0.2.1"), parse("192.0.2.1"));
        assert_ne!(parse("192.0.2.2"), parse("192.0.2.1"));
    }
}
