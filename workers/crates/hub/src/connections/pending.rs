//! Unauthenticated connections: limits on their number, duration, and memory for their input.
//!
//! Any host can reach the port, so these connections may not cost the admitted sites anything. Above the limit,
//! each new connection evicts the oldest one of the network that has the most. A site needs a few round trips to be
//! admitted; a flood of silent connections from one network evicts its own.
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

use downburst_model::Micros;

/// All unauthenticated connections of a hub, each with a `T` that is returned on eviction.
#[derive(Debug)]
pub struct PendingConnections<T> {
    last_number: u64,
    present: BTreeMap<u64, Present<T>>,
    kept_bytes: usize,
    /// The number evicted since the last report.
    evicted: u64,
    reported: Option<Micros>,
    log_quota: LogQuota,
}

#[derive(Debug)]
struct Present<T> {
    network: IpAddr,
    kept_bytes: usize,
    evicts: T,
}

/// The number of ends of connections that were logged in an interval.
#[derive(Debug, Default)]
struct LogQuota {
    since: Micros,
    said: u32,
    passed_over: u64,
}

impl<T> PendingConnections<T> {
    /// Registers a connection from an address; returns its number, and the connection that is evicted for it.
    pub fn add(&mut self, address: IpAddr, evicts: T) -> (u64, Option<T>) {
        let is_full = self.present.len() >= PENDING_LIMIT;
        let number = is_full.then(|| self.oldest_of_the_largest_network()).flatten();
        let evicted = number.and_then(|number| self.evict(number));
        self.last_number += 1;
        self.present.insert(self.last_number, Present { network: network(address), kept_bytes: 0, evicts });
        (self.last_number, evicted)
    }

    /// Counts bytes that are buffered for a connection. If all together hold too many, evicts the largest.
    pub fn took(&mut self, number: u64, bytes: usize) -> Vec<T> {
        if let Some(present) = self.present.get_mut(&number) {
            present.kept_bytes = present.kept_bytes.saturating_add(bytes);
            self.kept_bytes = self.kept_bytes.saturating_add(bytes);
        }
        let mut evicted = Vec::new();
        while self.kept_bytes > KEPT_LIMIT_BYTES {
            let greediest = self.present.iter().max_by_key(|(_, present)| present.kept_bytes);
            let Some(number) = greediest.map(|(number, _)| *number) else { break };
            evicted.extend(self.evict(number));
        }
        evicted
    }

    /// Removes a connection that ended or whose site was admitted.
    pub fn remove(&mut self, number: u64) -> Option<T> {
        let present = self.present.remove(&number)?;
        self.kept_bytes = self.kept_bytes.saturating_sub(present.kept_bytes);
        Some(present.evicts)
    }

    fn evict(&mut self, number: u64) -> Option<T> {
        let evicted = self.remove(number);
        self.evicted += u64::from(evicted.is_some());
        evicted
    }

    fn oldest_of_the_largest_network(&self) -> Option<u64> {
        let mut networks: BTreeMap<IpAddr, (usize, u64)> = BTreeMap::new();
        for (number, present) in &self.present {
            networks.entry(present.network).or_insert((0, *number)).0 += 1;
        }
        let largest = networks.values().max_by_key(|(count, oldest)| (*count, u64::MAX - oldest))?;
        Some(largest.1)
    }

    /// A sentence for the operator about evictions, if due: the first immediately, others at most once a minute.
    pub fn report(&mut self, now: Micros) -> Option<String> {
        let evicted = self.report_due(now)?;
        Some(format!(
            "{evicted} unauthenticated connections to the sites' port were closed to make room: more than \
             {PENDING_LIMIT} were open, or they held more than {} MiB; find their origin, and keep strangers \
             out with a firewall",
            KEPT_LIMIT_BYTES >> 20
        ))
    }

    fn report_due(&mut self, now: Micros) -> Option<u64> {
        let due = self.reported.is_none_or(|last| now.since(last) >= REPORT_PAUSE);
        if self.evicted == 0 || !due {
            return None;
        }
        self.reported = Some(now);
        Some(std::mem::take(&mut self.evicted))
    }

    /// True if one more end of a connection may be logged, and the number of those left out before: in a flood only
    /// some are logged.
    pub fn log_quota(&mut self, now: Micros) -> (bool, u64) {
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

impl<T> Default for PendingConnections<T> {
    fn default() -> Self {
        let (present, log_quota) = (BTreeMap::new(), LogQuota::default());
        Self { last_number: 0, present, kept_bytes: 0, evicted: 0, reported: None, log_quota }
    }
}

/// The time limits of a connection until its site is admitted.
///
/// | step      | begins                | ends                      | limit |
/// |-----------|-----------------------|---------------------------|-------|
/// | handshake | accepted              | [`shaken`](Self::shaken)  | 10 s  |
/// | opening   | the end of the former | [`opened`](Self::opened)  | 15 s  |
/// | admission | accepted              | the site is admitted      | 15 s  |
///
/// Only the limit of the present step applies.
#[derive(Clone, Copy, Debug)]
pub struct AdmissionLimits {
    accepted: Micros,
    step: Step,
    late_after: Micros,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Handshake,
    Opening,
    Admission,
}

impl AdmissionLimits {
    /// The limits of a connection that was just accepted.
    pub fn new(accepted: Micros) -> Self {
        Self { accepted, step: Step::Handshake, late_after: accepted.plus(HANDSHAKE_LIMIT) }
    }

    /// The TLS handshake is complete; the first frame has to identify the connection's kind.
    pub fn shaken(&mut self, now: Micros) {
        (self.step, self.late_after) = (Step::Opening, now.plus(OPENING_LIMIT));
    }

    /// The connection begins a session; the site has to prove its identity, and the agent to confirm a token.
    pub fn opened(&mut self) {
        (self.step, self.late_after) = (Step::Admission, self.accepted.plus(ADMISSION_LIMIT));
    }

    /// The time at which [`late`](Self::late) has a result.
    pub fn late_at(&self) -> Micros {
        self.late_after.plus(Micros(1))
    }

    /// The reason to close the connection; `None` while there is time.
    pub fn late(&self, now: Micros) -> Option<&'static str> {
        (now > self.late_after).then_some(match self.step {
            Step::Handshake => "the TLS handshake took too long",
            Step::Opening => "it sent nothing",
            Step::Admission => "the site did not prove its identity in time",
        })
    }
}

/// The address range that one party is likely to have to itself: an IPv4 address, or 64 bits of an IPv6 address.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

/// Several times the need of a thousand sites that return together after a restart of the hub.
const PENDING_LIMIT: usize = 512;

/// The longest hello is 1 MiB, and hellos of that length are rare.
const KEPT_LIMIT_BYTES: usize = 64 << 20;

const HANDSHAKE_LIMIT: Micros = Micros::from_secs(10);

/// The same as the limit for an unauthenticated connection to prove its identity.
const OPENING_LIMIT: Micros = Micros::from_secs(15);

/// From the accepted connection to the verified credential, including the agent's answer to a token.
const ADMISSION_LIMIT: Micros = Micros::from_secs(15);

const REPORT_PAUSE: Micros = Micros::from_secs(60);
const LOG_INTERVAL: Micros = Micros::from_secs(10);
const LOGGED_ENDS: u32 = 50;

#[cfg(test)]
mod tests {
    use super::*;

    type Table = PendingConnections<usize>;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    /// A table of connections from these addresses, numbered from 1; and those that were evicted meanwhile.
    fn table(networks: &[(u8, usize)]) -> (Table, Vec<usize>) {
        let mut table = Table::default();
        let addresses = networks.iter().flat_map(|(last, count)| std::iter::repeat_n(*last, *count));
        let evicted = addresses.zip(1..).filter_map(|(last, at)| table.add(address(last), at).1).collect();
        (table, evicted)
    }

    #[test]
    fn the_oldest_of_the_largest_network_makes_room() {
        let (mut table, evicted) = table(&[(1, 10), (2, PENDING_LIMIT - 10)]);
        assert!(evicted.is_empty());
        let (_, evicted) = table.add(address(3), 0);
        assert_eq!(table.present.len(), PENDING_LIMIT);
        assert_eq!(evicted, Some(11), "the first of the second network");
    }

    #[test]
    fn who_sends_the_most_makes_room_and_room_comes_back() {
        let (mut table, _) = table(&[(1, 3)]);
        let first = [(1, KEPT_LIMIT_BYTES / 4), (2, KEPT_LIMIT_BYTES / 2), (3, KEPT_LIMIT_BYTES / 4)];
        let evicted = first.map(|(number, bytes)| table.took(number, bytes));
        assert!(evicted.iter().all(Vec::is_empty), "the limit itself is allowed");
        assert_eq!(table.took(1, 1), [2]);
        table.remove(1);
        table.remove(3);
        assert_eq!((table.kept_bytes, table.present.len()), (0, 0));
    }

    #[test]
    fn a_site_is_admitted_through_a_flood_of_silent_connections_from_one_network() {
        let (mut table, _) = table(&[(1, PENDING_LIMIT)]);
        let (site, evicted) = table.add(address(2), 0);
        assert_eq!(evicted, Some(1));
        for at in 0..10 * PENDING_LIMIT {
            let (_, evicted) = table.add(address(1), PENDING_LIMIT + 1 + at);
            assert!(evicted.is_some_and(|it| it != 0), "the flood evicts its own");
        }
        assert_eq!(table.remove(site), Some(0));
        assert_eq!(table.remove(site), None, "it counts no more");
    }

    #[test]
    fn each_step_of_an_admission_has_a_limit_of_its_own() {
        let second = Micros::from_secs;
        let mut limits = AdmissionLimits::new(second(100));
        assert_eq!((limits.late(second(110)), limits.late_at()), (None, second(110).plus(Micros(1))));
        assert_eq!(limits.late(limits.late_at()), Some("the TLS handshake took too long"));
        limits.shaken(second(109));
        assert_eq!(limits.late(second(124)), None);
        assert_eq!(limits.late(second(125)), Some("it sent nothing"));
        limits.opened();
        assert_eq!(limits.late(second(115)), None, "from the accepted connection on");
        assert_eq!(limits.late(limits.late_at()), Some("the site did not prove its identity in time"));
    }

    #[test]
    fn a_flood_is_said_once_a_minute_and_counted() {
        let (mut table, evicted) = table(&[(1, PENDING_LIMIT + 2)]);
        assert_eq!(evicted, [1, 2]);
        assert_eq!(table.report_due(Micros::from_secs(1)), Some(2));
        table.add(address(1), 0);
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
