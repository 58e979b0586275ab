//! The choice of a hub's nodes for a site's connections and feeds, from times and news alone, without sockets.
//!
//! A hub of one node serves everything over the connection to its configured address. A hub of several nodes lists
//! the feeds of each: the site then has a connection to each node with feeds for it, and no other while one of them
//! is connected, because each reports changes. While none is, the site tries in turn the configured address and all
//! other nodes of the last list.
use std::collections::{BTreeMap, BTreeSet};

use downburst_model::{FeedName, Micros};
use downburst_session::Nodes;

use crate::role::Role;

/// The nodes of one hub.
#[derive(Debug)]
pub(crate) struct NodeChoice {
    /// The configured address.
    given: String,
    known: Nodes,
    well: BTreeSet<String>,
    /// The time since which none of the nodes is connected.
    unserved: Option<Micros>,
    /// The number of addresses asked without success, and the time of the last change of address.
    asked: usize,
    asked_at: Micros,
}

/// A planned connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// `HOST:PORT`.
    pub address: String,
    /// Its role.
    pub role: Role,
    /// Its feeds; `None`: all.
    pub only: Option<BTreeSet<FeedName>>,
}

impl Wanted {
    /// True if it serves some feeds, as one of several connections.
    pub fn is_part(&self) -> bool {
        self.role == Role::Serve && self.only.is_some()
    }

    /// True if it carries the feed.
    pub fn brings(&self, feed: &FeedName) -> bool {
        self.role == Role::Serve && self.only.as_ref().is_none_or(|only| only.contains(feed))
    }

    /// True if its only purpose is to learn of nodes.
    pub fn asks(&self) -> bool {
        self.role == Role::StandBy && self.only.is_some()
    }

    /// The unique name of the spool place for its incoming products, as one of several connections to `hub`.
    /// `address` is its address, in a form that is valid in a name.
    pub fn spool_name(&self, hub: usize, address: &str) -> String {
        let role = if self.asks() { "asks" } else { "part" };
        format!("hub-{hub}-{role}-{address}")
    }
}

impl NodeChoice {
    /// Starts with the list stored by an earlier run, which is empty for a new site.
    pub(crate) fn new(given: String, known: Nodes, now: Micros) -> Self {
        Self { given, known, well: BTreeSet::new(), unserved: Some(now), asked: 0, asked_at: now }
    }

    /// The hub's last list, to be stored: a site that starts while the hub's own node is away
    /// finds the other nodes in it.
    pub(crate) fn known(&self) -> &Nodes {
        &self.known
    }

    /// The planned connections, for a hub that serves the site or stands by.
    pub(crate) fn wanted(&self, now: Micros, serves: bool) -> Vec<Wanted> {
        if !serves || self.known.items.is_empty() {
            let role = if serves { Role::Serve } else { Role::StandBy };
            return vec![Wanted { address: self.given.clone(), role, only: None }];
        }
        let mut parts: BTreeMap<&str, BTreeSet<FeedName>> = BTreeMap::new();
        for node in self.known.items.iter().filter(|node| !node.feeds.is_empty()) {
            parts.entry(&node.address).or_default().extend(node.feeds.iter().cloned());
        }
        let part = |(address, feeds): (&str, _)| Wanted {
            address: address.to_owned(),
            role: Role::Serve,
            only: Some(feeds),
        };
        let mut wanted: Vec<Wanted> = parts.into_iter().map(part).collect();
        if self.ask_at().is_some_and(|at| at <= now) {
            wanted.push(Wanted { address: self.to_ask(), role: Role::StandBy, only: Some(BTreeSet::new()) });
        }
        wanted
    }

    /// The time at which to ask for the location of the feeds, if no node is connected.
    pub(crate) fn ask_at(&self) -> Option<Micros> {
        self.unserved.filter(|_| !self.known.items.is_empty()).map(|since| since.plus(ASK_AFTER))
    }

    /// Takes a node's list of nodes and feeds; true if it is new.
    pub(crate) fn take(&mut self, now: Micros, nodes: Nodes) -> bool {
        // Version 0: the hub is one node, whatever it was before.
        if nodes.version <= self.known.version && nodes.version > 0 || nodes == self.known {
            return false;
        }
        self.known = nodes;
        self.asked = 0;
        self.well.retain(|address| self.known.items.iter().any(|node| node.address == *address));
        if self.well.is_empty() {
            self.unserved = Some(now);
        }
        true
    }

    /// Notes that a node serves its feeds.
    pub(crate) fn is_well(&mut self, address: &str) {
        self.well.insert(address.to_owned());
        self.unserved = None;
    }

    /// Notes that a node is away; true if no other one is connected.
    pub(crate) fn is_away(&mut self, now: Micros, address: &str) -> bool {
        if self.well.remove(address) && self.well.is_empty() {
            self.unserved = Some(now);
        }
        self.well.is_empty()
    }

    /// Notes that the node asked is away: the next one is asked, after a short time for this one to return.
    pub(crate) fn asked_in_vain(&mut self, now: Micros) {
        if now.since(self.asked_at) >= ASK_EACH {
            self.asked = self.asked.wrapping_add(1);
            self.asked_at = now;
        }
    }

    /// The address to ask: the configured one, then the other nodes, whether they serve the site or not.
    fn to_ask(&self) -> String {
        let others = self.known.items.iter().map(|node| node.address.as_str());
        let others = others.filter(|address| *address != self.given);
        let candidates: Vec<&str> = std::iter::once(self.given.as_str()).chain(others).collect();
        let at = self.asked.checked_rem(candidates.len()).unwrap_or(0);
        candidates.get(at).map_or_else(|| self.given.clone(), |address| (*address).to_owned())
    }
}

/// A restarted node is back by then.
const ASK_AFTER: Micros = Micros::from_secs(1);

/// The time for each address before the next one.
const ASK_EACH: Micros = Micros::from_secs(1);

#[cfg(test)]
mod tests {
    use downburst_session::NodeFeeds;

    use super::*;

    fn at(millis: u64) -> Micros {
        Micros::from_millis(millis)
    }

    fn feeds(names: &[&str]) -> BTreeSet<FeedName> {
        names.iter().map(|name| FeedName::parse(name).unwrap()).collect()
    }

    fn nodes(version: u64, items: &[(&str, &[&str])]) -> Nodes {
        let item = |(address, names): &(&str, &[&str])| NodeFeeds {
            address: (*address).to_owned(),
            feeds: feeds(names).into_iter().collect(),
        };
        Nodes { version, items: items.iter().map(item).collect() }
    }

    fn shown(choice: &NodeChoice, now: Micros) -> Vec<String> {
        let of = |wanted: Wanted| {
            let only = wanted
                .only
                .as_ref()
                .map(|only| only.iter().map(|feed| feed.as_str().to_owned()).collect::<Vec<_>>().join(","));
            format!("{} {:?} {}", wanted.address, wanted.role, only.unwrap_or_else(|| "all".to_owned()))
        };
        choice.wanted(now, true).into_iter().map(of).collect()
    }

    fn choice() -> NodeChoice {
        NodeChoice::new("hub:1".to_owned(), Nodes::default(), at(0))
    }

    #[test]
    fn a_hub_of_one_node_serves_all_and_one_that_stands_by_nothing() {
        let mut choice = choice();
        assert_eq!(shown(&choice, at(9_000)), ["hub:1 Serve all"]);
        choice.take(at(0), nodes(1, &[("a:1", &["A"])]));
        let stands_by = choice.wanted(at(0), false);
        assert_eq!(stands_by, [Wanted { address: "hub:1".to_owned(), role: Role::StandBy, only: None }]);
    }

    #[test]
    fn what_is_on_its_way_by_connections_of_a_node_lies_apart() {
        let wanted = |role| Wanted { address: "a:1".to_owned(), role, only: Some(BTreeSet::new()) };
        let names = [Role::Serve, Role::StandBy].map(|role| wanted(role).spool_name(2, "a%3A1"));
        assert_eq!(names, ["hub-2-part-a%3A1", "hub-2-asks-a%3A1"]);
    }

    #[test]
    fn each_node_has_a_connection_for_its_feeds_and_older_word_changes_nothing() {
        let mut choice = choice();
        assert!(choice.take(at(0), nodes(5, &[("a:1", &["A", "B"]), ("b:1", &["C"])])));
        assert_eq!(shown(&choice, at(0)), ["a:1 Serve A,B", "b:1 Serve C"]);
        assert!(!choice.take(at(0), nodes(4, &[("b:1", &["A", "B", "C"])])));
        assert!(choice.take(at(0), nodes(6, &[("b:1", &["A", "B", "C"])])));
        assert_eq!(shown(&choice, at(0)), ["b:1 Serve A,B,C"]);
        assert!(choice.take(at(0), Nodes::default()), "that hub is one node now");
        assert_eq!(shown(&choice, at(0)), ["hub:1 Serve all"]);
    }

    #[test]
    fn while_no_node_is_well_the_others_are_asked_in_turn() {
        let mut choice = choice();
        choice.take(at(0), nodes(5, &[("a:1", &["A"]), ("b:1", &["B"])]));
        choice.is_well("a:1");
        assert!(!choice.is_away(at(100), "b:1"));
        assert_eq!(shown(&choice, at(9_000)).len(), 2, "the one that is well says what changes");
        assert!(choice.is_away(at(9_000), "a:1"));
        assert_eq!((shown(&choice, at(9_999)).len(), choice.ask_at()), (2, Some(at(10_000))));
        let mut asked = Vec::new();
        for millis in (10_000..15_000).step_by(500) {
            asked.extend(shown(&choice, at(millis)).pop());
            choice.asked_in_vain(at(millis));
        }
        asked.dedup();
        assert_eq!(asked[..3], ["hub:1 StandBy ", "a:1 StandBy ", "b:1 StandBy "]);
        choice.is_well("b:1");
        assert_eq!(shown(&choice, at(20_000)), ["a:1 Serve A", "b:1 Serve B"]);
    }

    #[test]
    fn what_was_told_is_what_the_next_run_begins_with() {
        let mut choice = choice();
        choice.take(at(0), nodes(5, &[("a:1", &["A"])]));
        let again = NodeChoice::new("hub:1".to_owned(), choice.known().clone(), at(0));
        assert_eq!(shown(&again, at(0)), ["a:1 Serve A"]);
    }
}
