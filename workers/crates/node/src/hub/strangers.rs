//! Unauthenticated connections: their maximum number and duration, and the memory for their input.
//!
//! Any stranger can reach the port, so nothing here may cost the admitted sites: above a limit one stranger
//! goes for each that comes, the oldest of the network that has the most. A site needs a few round trips to
//! be admitted; a crowd of silent connections pushes out its own.
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use downburst_model::Micros;
use tokio::sync::oneshot;

use super::{Hub, lock};

/// All strangers of a hub.
#[derive(Default)]
pub(super) struct Strangers(Mutex<Crowd>);

/// One connection, from the moment it is accepted until its site is let in; dropped, it is a stranger no more.
pub(super) struct Stranger {
    hub: Arc<Hub>,
    pub(super) peer: SocketAddr,
    number: u64,
    accepted: Micros,
    put_out: oneshot::Receiver<()>,
}

impl Stranger {
    /// Takes in a connection; another may be put out for it.
    pub(super) fn accepted(hub: &Arc<Hub>, peer: SocketAddr) -> Self {
        let accepted = hub.clock.monotonic();
        let (number, put_out) = lock(&hub.roster.strangers.0).add(network(peer.ip()));
        let stranger = Self { hub: Arc::clone(hub), peer, number, accepted, put_out };
        stranger.complain();
        stranger
    }

    /// Counts bytes that are kept for this connection; somebody is put out when all strangers together send too much.
    pub(super) fn took(&self, bytes: usize) {
        lock(&self.hub.roster.strangers.0).took(self.number, bytes);
        self.complain();
    }

    /// Waits until this connection has to make room.
    pub(super) async fn put_out(&mut self) {
        // An error means the same: nobody holds the other end any more.
        let _ = (&mut self.put_out).await;
    }

    /// True when the connection had its time.
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
        let (speaks, passed_over) = lock(&self.hub.roster.strangers.0).word(self.hub.clock.monotonic());
        if passed_over > 0 {
            tracing::info!("{passed_over} more connections ended before a site was admitted");
        }
        if speaks {
            tracing::info!(peer = %self.peer, "a connection ended before a site was admitted: {sentence}");
        }
        speaks
    }

    fn complain(&self) {
        let put_out = lock(&self.hub.roster.strangers.0).complaint(self.hub.clock.monotonic());
        if let Some(put_out) = put_out {
            let sentence = format!(
                "{put_out} unauthenticated connections to the sites' port were closed to make room: more than \
                 {STRANGERS_LIMIT} were open, or they held more than {} MiB; find their origin, and keep strangers \
                 out with a firewall",
                KEPT_LIMIT_BYTES >> 20
            );
            self.hub.fault(sentence, None);
        }
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        lock(&self.hub.roster.strangers.0).remove(self.number);
    }
}

#[derive(Default)]
struct Crowd {
    last_number: u64,
    present: BTreeMap<u64, Present>,
    kept_bytes: usize,
    /// Put out since the last complaint.
    put_out: u64,
    complained: Option<Micros>,
    words: Words,
}

struct Present {
    network: IpAddr,
    kept_bytes: usize,
    put_out: oneshot::Sender<()>,
}

/// How much was said in a stretch of time.
#[derive(Default)]
struct Words {
    since: Micros,
    said: u32,
    passed_over: u64,
}

impl Crowd {
    fn add(&mut self, network: IpAddr) -> (u64, oneshot::Receiver<()>) {
        if self.present.len() >= STRANGERS_LIMIT
            && let Some(number) = self.oldest_of_the_largest_network()
        {
            self.put_out(number);
        }
        self.last_number += 1;
        let (put_out, receiver) = oneshot::channel();
        self.present.insert(self.last_number, Present { network, kept_bytes: 0, put_out });
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
            self.put_out(number);
        }
    }

    fn put_out(&mut self, number: u64) {
        if let Some(present) = self.remove(number) {
            self.put_out += 1;
            // Without a receiver it is ending already.
            let _ = present.put_out.send(());
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

    /// How many were put out, when that is to be said: at once, then at most each [`COMPLAINT_PAUSE`].
    fn complaint(&mut self, now: Micros) -> Option<u64> {
        let due = self.complained.is_none_or(|last| now.since(last) >= COMPLAINT_PAUSE);
        if self.put_out == 0 || !due {
            return None;
        }
        self.complained = Some(now);
        Some(std::mem::take(&mut self.put_out))
    }

    /// Whether one more end may be spoken of, and how many were passed over before.
    fn word(&mut self, now: Micros) -> (bool, u64) {
        let mut passed_over = 0;
        if now.since(self.words.since) >= WORDS_STRETCH {
            passed_over = self.words.passed_over;
            self.words = Words { since: now, ..Words::default() };
        }
        self.words.said = self.words.said.saturating_add(1);
        let speaks = self.words.said <= WORDS_LIMIT;
        self.words.passed_over += u64::from(!speaks);
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
const STRANGERS_LIMIT: usize = 512;

/// The longest hello is 1 MiB, and hellos of that length are rare.
const KEPT_LIMIT_BYTES: usize = 64 << 20;

/// From the accepted connection to the credential that was found good, the agent's answer to a token included.
const ADMISSION_LIMIT: Micros = Micros::from_secs(15);

const COMPLAINT_PAUSE: Micros = Micros::from_secs(60);
const WORDS_STRETCH: Micros = Micros::from_secs(10);
const WORDS_LIMIT: u32 = 50;

#[cfg(test)]
mod tests {
    use super::*;

    fn crowd(networks: &[(u8, usize)]) -> (Crowd, Vec<oneshot::Receiver<()>>) {
        let mut crowd = Crowd::default();
        let addresses = networks.iter().flat_map(|(last, count)| std::iter::repeat_n(*last, *count));
        let receivers = addresses.map(|last| crowd.add(IpAddr::from([10, 0, 0, last])).1).collect();
        (crowd, receivers)
    }

    fn is_put_out(receiver: &mut oneshot::Receiver<()>) -> bool {
        receiver.try_recv().is_ok()
    }

    #[test]
    fn the_oldest_of_the_largest_network_makes_room() {
        let (mut crowd, mut receivers) = crowd(&[(1, 10), (2, STRANGERS_LIMIT - 10)]);
        assert!(!receivers.iter_mut().any(is_put_out));
        crowd.add(IpAddr::from([10, 0, 0, 3]));
        assert_eq!(crowd.present.len(), STRANGERS_LIMIT);
        let out: Vec<usize> = (0..receivers.len()).filter(|at| is_put_out(&mut receivers[*at])).collect();
        assert_eq!(out, [10], "the first of the second network");
    }

    #[test]
    fn who_sends_the_most_makes_room_and_room_comes_back() {
        let (mut crowd, mut receivers) = crowd(&[(1, 3)]);
        crowd.took(1, KEPT_LIMIT_BYTES / 4);
        crowd.took(2, KEPT_LIMIT_BYTES / 2);
        crowd.took(3, KEPT_LIMIT_BYTES / 4);
        assert!(!receivers.iter_mut().any(is_put_out), "the limit itself is allowed");
        crowd.took(1, 1);
        assert_eq!(receivers.iter_mut().map(is_put_out).collect::<Vec<_>>(), [false, true, false]);
        crowd.remove(1);
        crowd.remove(3);
        assert_eq!((crowd.kept_bytes, crowd.present.len()), (0, 0));
    }

    #[test]
    fn a_flood_is_said_once_a_minute_and_counted() {
        let (mut crowd, _receivers) = crowd(&[(1, STRANGERS_LIMIT + 2)]);
        assert_eq!(crowd.complaint(Micros::from_secs(1)), Some(2));
        crowd.add(IpAddr::from([10, 0, 0, 1]));
        assert_eq!(crowd.complaint(Micros::from_secs(60)), None);
        assert_eq!(crowd.complaint(Micros::from_secs(61)), Some(1));
        assert_eq!(crowd.complaint(Micros::from_secs(200)), None, "nobody was put out since");
    }

    #[test]
    fn words_are_few_and_the_rest_is_counted() {
        let mut crowd = Crowd::default();
        let spoken = (0..WORDS_LIMIT + 7).filter(|_| crowd.word(Micros::from_secs(20)).0).count();
        assert_eq!(spoken, WORDS_LIMIT as usize);
        assert_eq!(crowd.word(Micros::from_secs(30)), (true, 7));
        assert_eq!(crowd.word(Micros::from_secs(40)), (true, 0));
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
