//! Claims of LDM peers that are impossible or beyond any limit: logged by peer, at a readable rate.
//!
//! A peer is known by its address alone and may reconnect a thousand times a second, so its account outlives its
//! connections, and the number of accounts is bounded.
use std::collections::BTreeMap;
use std::sync::Mutex;

use downburst_hub::shown;
use downburst_ldm6::Ending;
use downburst_model::{Micros, SiteName};

use super::hub::{Event, Hub};
use super::lock;

/// Accounts by peer.
#[derive(Default)]
pub(super) struct Complaints(Mutex<BTreeMap<String, Account>>);

/// Recent complaints about one peer, and the number of its reports that may still be passed on.
struct Account {
    heard: Micros,
    said: BTreeMap<String, Micros>,
    reports: u64,
    reports_at: Micros,
}

/// The peer that caused a complaint.
pub(super) struct Offender<'a> {
    pub(super) peer: &'a str,
    /// The source, if the peer is one of its upstreams.
    pub(super) source: Option<&'a str>,
    /// The site, if the peer is its LDM.
    pub(super) site: Option<SiteName>,
}

impl Complaints {
    /// Reports to the agent that a connection ended because its peer violated the protocol.
    pub(super) fn ended(&self, hub: &dyn Hub, from: &Offender<'_>, why: &Ending) {
        if why.is_violation() && self.may_say(hub.clock().monotonic(), from.peer, "violation") {
            let (peer, source) = (shown(from.peer), from.source.map(str::to_owned));
            hub.tell(Event::Violation {
                peer,
                source,
                site: from.site.clone(),
                sentence: shown(&why.to_string()),
            });
        }
    }

    /// Reports a fault of a peer, unless the same one was reported within the last minute, or too many others.
    pub(super) fn complain(&self, hub: &dyn Hub, peer: &str, what: &str, sentence: impl FnOnce() -> String) {
        if self.may_say(hub.clock().monotonic(), peer, what) {
            hub.fault(sentence());
        }
    }

    /// True if an rtstats line of this peer may be passed on.
    pub(super) fn may_report(&self, now: Micros, peer: &str) -> bool {
        self.of(now, peer, |account| account.takes_report(now))
    }

    fn may_say(&self, now: Micros, peer: &str, what: &str) -> bool {
        self.of(now, peer, |account| account.says(now, what))
    }

    fn of<T>(&self, now: Micros, peer: &str, use_it: impl FnOnce(&mut Account) -> T) -> T {
        let mut accounts = lock(&self.0);
        if accounts.len() >= MOST_PEERS && !accounts.contains_key(peer) {
            let oldest =
                accounts.iter().min_by_key(|(_, account)| account.heard).map(|(peer, _)| peer.clone());
            oldest.and_then(|oldest| accounts.remove(&oldest));
        }
        let account = accounts.entry(peer.to_owned()).or_insert_with(|| Account::new(now));
        account.heard = now;
        use_it(account)
    }
}

impl Account {
    fn new(now: Micros) -> Self {
        Self { heard: now, said: BTreeMap::new(), reports: REPORTS_AT_ONCE, reports_at: now }
    }

    fn says(&mut self, now: Micros, what: &str) -> bool {
        self.said.retain(|_, at| now.since(*at) < SAID_EACH);
        if self.said.contains_key(what) || self.said.len() >= MOST_SAID {
            return false;
        }
        self.said.insert(what.to_owned(), now);
        true
    }

    fn takes_report(&mut self, now: Micros) -> bool {
        let earned = now.since(self.reports_at).0 / REPORT_EACH.0;
        self.reports = self.reports.saturating_add(earned).min(REPORTS_AT_ONCE);
        self.reports_at = if self.reports == REPORTS_AT_ONCE {
            now
        } else {
            self.reports_at.plus(Micros(earned * REPORT_EACH.0))
        };
        let may = self.reports > 0;
        self.reports = self.reports.saturating_sub(1);
        may
    }
}

/// Accounts kept; the one unused for longest is dropped first.
const MOST_PEERS: usize = 1_024;

/// Different complaints about one peer in a minute.
const MOST_SAID: usize = 16;
const SAID_EACH: Micros = Micros::from_secs(60);

/// Limit of rtstats lines: a burst of as many as the hub keeps, then the rate of a whole IDD.
const REPORTS_AT_ONCE: u64 = 10_000;
const REPORT_EACH: Micros = Micros::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_said_of_a_peer_once_in_a_minute_and_not_too_much_else() {
        let complaints = Complaints::default();
        let at = |seconds: u64| Micros::from_secs(seconds);
        assert!(complaints.may_say(at(1), "a", "violation") && !complaints.may_say(at(60), "a", "violation"));
        assert!(complaints.may_say(at(60), "b", "violation"), "of another peer it is");
        assert!(complaints.may_say(at(61), "a", "violation"));
        let said =
            (0..100).filter(|number| complaints.may_say(at(61), "a", &format!("type {number}"))).count();
        assert_eq!(said, MOST_SAID - 1);
    }

    #[test]
    fn peers_are_forgotten_the_longest_unheard_first() {
        let complaints = Complaints::default();
        for number in 0..=MOST_PEERS as u64 {
            assert!(complaints.may_say(Micros(number), &format!("peer {number}"), "violation"));
        }
        assert_eq!(lock(&complaints.0).len(), MOST_PEERS);
        assert!(!complaints.may_say(Micros(2_000), "peer 1", "violation"));
        assert!(complaints.may_say(Micros(2_000), "peer 0", "violation"), "forgotten");
    }

    #[test]
    fn reports_are_bounded_by_peer_and_come_back_with_time() {
        let complaints = Complaints::default();
        let taken = |at: Micros, peer: &str| (0..20_000).filter(|_| complaints.may_report(at, peer)).count();
        assert_eq!(taken(Micros(7), "a"), REPORTS_AT_ONCE as usize);
        assert_eq!(taken(Micros(7), "a"), 0);
        assert!(complaints.may_report(Micros(7), "b"), "another peer has its own");
        assert_eq!(taken(Micros(7).plus(Micros::from_secs(1)), "a"), 200);
        assert_eq!(taken(Micros::from_secs(3_600), "a"), REPORTS_AT_ONCE as usize);
    }
}
