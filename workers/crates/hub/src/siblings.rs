//! Repair between sites: which sibling gives which products to whom, the rest of those at fault, and the account of
//! the bytes that the hub did not have to send (decision 73).
use std::collections::BTreeMap;

use downburst_model::{Epoch, FeedName, IdFilter, Micros, RangeSet, SiteName};
use downburst_session::{Fingerprint, ReferRequest, ReferralReport, SiblingFault, Ticket};
use serde::Serialize;

use crate::sites::SiteLine;

/// The siblings of a node.
#[derive(Debug, Default)]
pub struct Siblings {
    ports: BTreeMap<SiteName, SiblingAddress>,
    held: BTreeMap<SiteName, BTreeMap<FeedName, (Epoch, RangeSet)>>,
    grants: BTreeMap<(SiteName, u32), Grant>,
    rests: BTreeMap<Rest, Micros>,
    /// The sites that a giving site sent rubbish to, and until when that counts.
    accusers: BTreeMap<SiteName, BTreeMap<SiteName, Micros>>,
    account: BTreeMap<(SiteName, FeedName), Saved>,
}

/// The port of a site for its siblings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiblingAddress {
    /// `HOST:PORT`.
    pub address: String,
    /// The certificate that it shows.
    pub fingerprint: Fingerprint,
}

/// A pause of a giving site: for one of its siblings, or for all.
type Rest = (SiteName, Option<SiteName>);

#[derive(Debug)]
struct Grant {
    ticket: Ticket,
    giver: SiteName,
    feed: FeedName,
    until: Micros,
}

/// Bytes and products that siblings gave to a site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Saved {
    products: u64,
    bytes: u64,
}

/// The account of a site and feed since the last line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SavedLine {
    /// The site that took them.
    pub site: SiteName,
    /// The feed.
    pub feed: FeedName,
    /// Products that siblings gave.
    pub products: u64,
    /// Their bytes, which the hub did not have to send.
    pub bytes: u64,
}

/// A sibling that holds products.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Giver {
    /// Its name.
    pub site: SiteName,
    /// Its port.
    pub at: SiblingAddress,
    /// The certificate of the site that asks.
    pub taker_fingerprint: Fingerprint,
    /// The products that it holds.
    pub holds: RangeSet,
}

/// Tickets to withdraw at a giving site.
pub type Withdrawal = (SiteName, Vec<Ticket>);

impl Siblings {
    /// A site's port is open.
    pub fn opened(&mut self, site: SiteName, at: SiblingAddress) {
        self.ports.insert(site, at);
    }

    /// A site's port is closed, or its session ended: it gives and takes nothing more. Returns the grants that end.
    pub fn closed(&mut self, site: &SiteName) -> Vec<Withdrawal> {
        self.ports.remove(site);
        self.held.remove(site);
        let mut gone = self.withdraw(|giver, taker, _| giver == site || taker == site);
        gone.retain(|(giver, _)| giver != site);
        gone
    }

    /// The sites whose port is open.
    pub fn sites(&self) -> impl Iterator<Item = &SiteName> {
        self.ports.keys()
    }

    /// A site's position in a feed.
    pub fn stands(&mut self, site: &SiteName, feed: &FeedName, position: (Epoch, &RangeSet)) {
        if self.ports.contains_key(site) {
            let held = self.held.entry(site.clone()).or_default();
            held.insert(feed.clone(), (position.0, position.1.clone()));
        }
    }

    /// The sibling that gives the most of these products; of equal ones the one with the fewest open grants.
    pub fn choose(
        &self,
        now: Micros,
        taker: &SiteName,
        request: &ReferRequest,
        may_give: impl Fn(&SiteName) -> bool,
    ) -> Option<Giver> {
        let own = self.ports.get(taker)?;
        let candidates =
            self.ports.iter().filter(|(site, _)| *site != taker && !self.rests(now, site, taker));
        let candidates = candidates.filter(|(site, _)| may_give(site)).filter_map(|(site, at)| {
            let (epoch, held) = self.held.get(site)?.get(&request.feed)?;
            let holds =
                if *epoch == request.epoch { within(&request.sequences, held) } else { RangeSet::new() };
            let busy = self.grants.values().filter(|grant| grant.giver == *site && grant.until > now).count();
            (!holds.is_empty() && busy < MOST_GRANTS).then_some((holds, busy, site, at))
        });
        let best = candidates.max_by_key(|(holds, busy, _, _)| (holds.count(), std::cmp::Reverse(*busy)));
        best.map(|(holds, _, site, at)| Giver {
            site: site.clone(),
            at: at.clone(),
            taker_fingerprint: own.fingerprint,
            holds,
        })
    }

    /// A grant was sent to its giving site.
    pub fn granted(
        &mut self,
        now: Micros,
        taker: &SiteName,
        request: &ReferRequest,
        giver: SiteName,
        ticket: Ticket,
    ) {
        self.grants.retain(|_, grant| grant.until > now);
        let until = now.plus(GRANT_KNOWN);
        let grant = Grant { ticket, giver, feed: request.feed.clone(), until };
        self.grants.insert((taker.clone(), request.number), grant);
    }

    /// A referral of a site is over. Returns a sentence for the operator about a sibling that sends rubbish, and its
    /// name.
    pub fn ended(
        &mut self,
        now: Micros,
        taker: &SiteName,
        report: &ReferralReport,
    ) -> Option<(SiteName, String)> {
        let grant = self.grants.remove(&(taker.clone(), report.number))?;
        if report.products > 0 {
            let saved = self.account.entry((taker.clone(), report.feed.clone())).or_default();
            saved.products = saved.products.saturating_add(report.products);
            saved.bytes = saved.bytes.saturating_add(report.bytes);
        }
        let fault = report.fault?;
        self.rests.retain(|_, until| *until > now);
        let giver = grant.giver;
        self.rests.insert((giver.clone(), Some(taker.clone())), now.plus(rest(fault)));
        (fault == SiblingFault::Rubbish).then(|| self.accuse(now, giver, taker, &report.feed))
    }

    /// Ends the grants of a giving and a taking site and a feed for which `ends` holds.
    pub fn withdraw(&mut self, ends: impl Fn(&SiteName, &SiteName, &FeedName) -> bool) -> Vec<Withdrawal> {
        let mut gone: BTreeMap<SiteName, Vec<Ticket>> = BTreeMap::new();
        self.grants.retain(|(taker, _), grant| {
            let stays = !ends(&grant.giver, taker, &grant.feed);
            if !stays {
                gone.entry(grant.giver.clone()).or_default().push(grant.ticket.clone());
            }
            stays
        });
        gone.into_iter().collect()
    }

    /// The account since the last call.
    pub fn take_account(&mut self) -> Vec<SavedLine> {
        let lines = std::mem::take(&mut self.account).into_iter();
        let lines =
            lines.map(|((site, feed), Saved { products, bytes })| SavedLine { site, feed, products, bytes });
        lines.collect()
    }

    fn rests(&self, now: Micros, giver: &SiteName, taker: &SiteName) -> bool {
        let rests = |taker| self.rests.get(&(giver.clone(), taker)).is_some_and(|until| *until > now);
        rests(None) || rests(Some(taker.clone()))
    }

    /// A single site may accuse another one falsely: its word counts for itself. The word of two counts for all.
    fn accuse(
        &mut self,
        now: Micros,
        giver: SiteName,
        taker: &SiteName,
        feed: &FeedName,
    ) -> (SiteName, String) {
        let accusers = self.accusers.entry(giver.clone()).or_default();
        accusers.retain(|_, until| *until > now);
        accusers.insert(taker.clone(), now.plus(RUBBISH_REST));
        let minutes = RUBBISH_REST.0 / 60_000_000;
        let who = if accusers.len() > 1 {
            self.accusers.remove(&giver);
            self.rests.insert((giver.clone(), None), now.plus(RUBBISH_REST));
            "no site is".to_owned()
        } else {
            format!("{taker} is not")
        };
        let sentence = format!(
            "site {giver} sent bytes of feed {feed} to its sibling {taker} that do not match the hub's digest; {who} \
             referred to it for {minutes} minutes; check its disk and its program"
        );
        (giver, sentence)
    }
}

/// True if the giving site's subscriptions bring it all of the feed that the taking site's bring: otherwise its settled
/// numbers include products that it does not hold.
pub fn may_give(giver: &SiteLine, taker: &SiteLine, feed: &FeedName) -> bool {
    let of = |line: &SiteLine| {
        let items = line.subscriptions.iter().filter(|item| item.feed == *feed);
        items
            .map(|item| (item.pattern.clone(), item.not_pattern.clone(), item.within.clone()))
            .collect::<Vec<Wish>>()
    };
    let (gives, takes) = (of(giver), of(taker));
    let has_all =
        |(pattern, not, within): &Wish| ALL.contains(&pattern.as_str()) && not.is_none() && within.is_none();
    exchange(giver, feed) && exchange(taker, feed) && (gives.iter().any(has_all) || gives == takes)
}

/// True if the site exchanges products of the feed with its siblings.
fn exchange(line: &SiteLine, feed: &FeedName) -> bool {
    line.active && line.rights.siblings.is_some() && line.may_take(feed)
}

fn within(wanted: &RangeSet, held: &RangeSet) -> RangeSet {
    let numbers = wanted.iter().flat_map(|(first, last)| first..=last);
    numbers.filter(|number| held.contains(*number)).map(|number| (number, number)).collect()
}

fn rest(fault: SiblingFault) -> Micros {
    match fault {
        SiblingFault::Unreachable => Micros::from_secs(60),
        SiblingFault::Refused | SiblingFault::Slow => Micros::from_secs(30),
        SiblingFault::Lacking => Micros::from_secs(10),
        SiblingFault::Rubbish => RUBBISH_REST,
    }
}

/// A subscription: pattern, not pattern, and the limits of the site's rights.
type Wish = (String, Option<String>, Option<Vec<IdFilter>>);

/// Patterns of the whole feed.
const ALL: [&str; 3] = [".*", "", "."];

/// The most open grants of a giving site.
const MOST_GRANTS: usize = 16;

/// A grant and its transfer are over by then.
const GRANT_KNOWN: Micros = Micros::from_secs(120);

const RUBBISH_REST: Micros = Micros::from_secs(600);

#[cfg(test)]
mod tests {
    use super::*;

    fn site(name: &str) -> SiteName {
        SiteName::parse(name).unwrap()
    }

    fn feed() -> FeedName {
        FeedName::parse("NGRID").unwrap()
    }

    fn at(address: &str) -> SiblingAddress {
        SiblingAddress { address: address.to_owned(), fingerprint: Fingerprint([1; 32]) }
    }

    fn request(number: u32, numbers: (u64, u64)) -> ReferRequest {
        ReferRequest { number, feed: feed(), epoch: Epoch(7), sequences: [numbers].into_iter().collect() }
    }

    fn report(number: u32, fault: Option<SiblingFault>) -> ReferralReport {
        ReferralReport { number, feed: feed(), products: 3, bytes: 900, fault }
    }

    /// Oslo and Paris hold some numbers, Rome and Bern nothing.
    fn siblings() -> Siblings {
        let mut siblings = Siblings::default();
        for name in ["oslo", "paris", "rome", "bern"] {
            siblings.opened(site(name), at(name));
        }
        siblings.stands(&site("oslo"), &feed(), (Epoch(7), &[(0, 20)].into_iter().collect()));
        siblings.stands(&site("paris"), &feed(), (Epoch(7), &[(0, 10)].into_iter().collect()));
        siblings
    }

    fn chosen(siblings: &Siblings, now: u64, taker: &str, numbers: (u64, u64)) -> Option<String> {
        let giver = siblings.choose(Micros::from_secs(now), &site(taker), &request(1, numbers), |_| true);
        giver.map(|giver| giver.site.as_str().to_owned())
    }

    #[test]
    fn the_sibling_with_the_most_of_the_products_and_the_least_work_is_chosen() {
        let mut siblings = siblings();
        assert_eq!(chosen(&siblings, 0, "rome", (5, 15)).as_deref(), Some("oslo"));
        assert_eq!(chosen(&siblings, 0, "oslo", (5, 15)).as_deref(), Some("paris"), "not itself");
        assert_eq!(chosen(&siblings, 0, "rome", (30, 40)), None);
        siblings.granted(Micros(0), &site("rome"), &request(1, (1, 2)), site("oslo"), Ticket([1; 16]));
        siblings.granted(Micros(0), &site("rome"), &request(2, (1, 2)), site("paris"), Ticket([2; 16]));
        siblings.granted(Micros(0), &site("rome"), &request(3, (1, 2)), site("paris"), Ticket([3; 16]));
        assert_eq!(chosen(&siblings, 0, "rome", (5, 9)).as_deref(), Some("oslo"), "it has one grant");
        let none = siblings.choose(Micros(0), &site("rome"), &request(4, (5, 9)), |_| false);
        assert_eq!(none, None, "none of them may");
        let old = ReferRequest { epoch: Epoch(8), ..request(4, (5, 9)) };
        assert_eq!(siblings.choose(Micros(0), &site("rome"), &old, |_| true), None);
    }

    #[test]
    fn a_site_without_a_port_neither_takes_nor_gives() {
        let mut siblings = siblings();
        siblings.granted(Micros(0), &site("rome"), &request(1, (1, 2)), site("oslo"), Ticket([1; 16]));
        siblings.granted(Micros(0), &site("oslo"), &request(1, (1, 2)), site("paris"), Ticket([2; 16]));
        assert_eq!(siblings.closed(&site("oslo")), [(site("paris"), vec![Ticket([2; 16])])]);
        assert_eq!(chosen(&siblings, 0, "oslo", (5, 9)), None);
        assert_eq!(chosen(&siblings, 0, "rome", (15, 16)), None);
        siblings.stands(&site("oslo"), &feed(), (Epoch(7), &RangeSet::new()));
        assert!(!siblings.held.contains_key(&site("oslo")), "nothing is kept of a site without a port");
    }

    #[test]
    fn the_word_of_one_site_counts_for_itself_and_that_of_two_for_all() {
        let mut siblings = siblings();
        let mut accused = |taker: &str, number| {
            siblings.granted(
                Micros(0),
                &site(taker),
                &request(number, (1, 2)),
                site("oslo"),
                Ticket([9; 16]),
            );
            let report = report(number, Some(SiblingFault::Rubbish));
            let (named, sentence) = siblings.ended(Micros(0), &site(taker), &report).unwrap();
            assert!(
                named == site("oslo") && sentence.contains("site oslo sent bytes of feed NGRID"),
                "{sentence}"
            );
            ["rome", "bern"].map(|taker| chosen(&siblings, 1, taker, (15, 16)))
        };
        assert_eq!(accused("rome", 1), [None, Some("oslo".to_owned())]);
        assert_eq!(accused("rome", 2), [None, Some("oslo".to_owned())], "it repeats itself");
        assert_eq!(accused("bern", 1), [None, None]);
        assert_eq!(chosen(&siblings, 601, "rome", (15, 16)).as_deref(), Some("oslo"));
    }

    #[test]
    fn saved_bytes_are_told_once_and_of_real_referrals_only() {
        let mut siblings = siblings();
        assert_eq!(siblings.ended(Micros(0), &site("rome"), &report(5, None)), None);
        assert!(siblings.take_account().is_empty(), "it was never referred");
        for number in [1, 2] {
            siblings.granted(
                Micros(0),
                &site("rome"),
                &request(number, (1, 2)),
                site("oslo"),
                Ticket([1; 16]),
            );
            assert_eq!(siblings.ended(Micros(0), &site("rome"), &report(number, None)), None);
        }
        let line = SavedLine { site: site("rome"), feed: feed(), products: 6, bytes: 1_800 };
        assert_eq!(siblings.take_account(), [line]);
        assert!(siblings.take_account().is_empty());
    }

    #[test]
    fn grants_of_what_is_no_longer_allowed_are_withdrawn() {
        let mut siblings = siblings();
        siblings.granted(Micros(0), &site("rome"), &request(1, (1, 2)), site("oslo"), Ticket([1; 16]));
        siblings.granted(Micros(0), &site("bern"), &request(1, (1, 2)), site("oslo"), Ticket([2; 16]));
        let gone = siblings.withdraw(|_, taker, _| *taker == site("rome"));
        assert_eq!(gone, [(site("oslo"), vec![Ticket([1; 16])])]);
        assert!(siblings.withdraw(|_, taker, _| *taker == site("rome")).is_empty());
    }

    fn line(siblings: bool, subscriptions: serde_json::Value) -> SiteLine {
        let terms = serde_json::json!({"upload_bytes_per_second": 1, "upload_bytes_per_day": 2});
        let mut line = serde_json::json!({
            "site": "oslo", "active": true, "credentials": [], "subscriptions": subscriptions,
        });
        if siblings {
            line["siblings"] = terms;
        }
        serde_json::from_value(line).unwrap()
    }

    #[test]
    fn a_site_gives_what_it_has_whole_or_by_an_equal_pattern() {
        let of =
            |pattern: &str| serde_json::json!([{"feed": "NGRID", "pattern": pattern, "not_pattern": null}]);
        let may = |gives: SiteLine, takes: SiteLine| may_give(&gives, &takes, &feed());
        assert!(may(line(true, of(".*")), line(true, of("^A"))));
        assert!(may(line(true, of("^A")), line(true, of("^A"))));
        assert!(!may(line(true, of("^A")), line(true, of("^B"))));
        assert!(!may(line(true, of("^A")), line(true, of(".*"))));
        assert!(!may(line(false, of(".*")), line(true, of(".*"))), "both sites switch it on");
        assert!(!may(line(true, of(".*")), line(false, of(".*"))));
    }
}
