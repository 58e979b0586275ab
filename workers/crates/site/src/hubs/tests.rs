use std::collections::BTreeSet;

use downburst_model::{ProductKey, Sequence, WallMicros};
use downburst_session::{NodeFeeds, Outcome};

use super::*;

/// The machine, and its connections.
struct Site {
    hubs: Hubs,
    now: Micros,
    connections: BTreeMap<ConnectionId, (Wanted, bool, usize)>,
    said: Vec<String>,
    listeners: Listeners,
}

impl Site {
    fn new(addresses: &[&str]) -> Self {
        let given = |address: &&str| GivenHub { address: (*address).to_owned(), nodes: Nodes::default() };
        let hubs = Hubs::new(addresses.iter().map(given).collect(), Micros::from_secs(30), Micros(0));
        let (connections, listeners) = (BTreeMap::new(), Listeners::default());
        let mut site = Self { hubs, now: Micros(0), connections, said: Vec::new(), listeners };
        site.settle();
        site
    }

    fn now(&self) -> Now {
        Now { monotonic: self.now, wall: WallMicros(0) }
    }

    fn tell(&mut self, input: HubsInput) {
        self.hubs.handle(self.now(), input);
        self.settle();
    }

    fn settle(&mut self) {
        while let Some(output) = self.hubs.poll(self.now()) {
            match output {
                HubsOutput::Begin { connection, wanted, decides, owed } => {
                    self.said.push(format!("begin {}", described(&wanted)));
                    assert!(self.connections.insert(connection, (wanted, decides, owed.len())).is_none());
                }
                HubsOutput::ChangeRole(id, role) => {
                    let (wanted, ..) = self.connections.get_mut(&id).expect("it was begun");
                    self.said.push(format!("{} is to {role:?}", wanted.address));
                    wanted.role = role;
                }
                HubsOutput::KeepNodes { hub, nodes } => {
                    self.said.push(format!("keep {} nodes of {hub}", nodes.items.len()));
                }
                HubsOutput::Listen(listeners) => self.listeners = listeners,
                HubsOutput::End(ending) => self.said.push(format!("end: {ending:?}")),
            }
        }
    }

    fn wait(&mut self, length: Micros) {
        let end = self.now.plus(length);
        while let Some(due) = self.hubs.deadline().filter(|due| *due <= end) {
            self.now = due.max(self.now.plus(Micros(1)));
            self.settle();
        }
        self.now = end;
        self.settle();
    }

    fn said(&mut self) -> Vec<String> {
        std::mem::take(&mut self.said)
    }

    /// The latest connection to this address that has not ended.
    fn to(&self, address: &str) -> ConnectionId {
        let mut found = self.connections.iter().filter(|(_, (wanted, ..))| wanted.address == address);
        *found.next_back().expect("there is a connection").0
    }

    fn well(&mut self, address: &str) {
        let id = self.to(address);
        let role = self.connections[&id].0.role;
        self.tell(HubsInput::News(id, News::Well { hub: format!("hub {address}"), role }));
    }

    fn away(&mut self, address: &str, silent: bool) {
        let id = self.to(address);
        self.tell(HubsInput::News(id, News::Away { sentence: "it is away".to_owned(), silent }));
    }

    fn nodes(&mut self, from: &str, version: u64, items: &[(&str, &[&str])]) {
        let item = |(address, feeds): &(&str, &[&str])| NodeFeeds {
            address: (*address).to_owned(),
            feeds: feeds.iter().map(|name| feed(name)).collect(),
        };
        let nodes = Nodes { version, items: items.iter().map(item).collect() };
        let id = self.to(from);
        self.tell(HubsInput::News(id, News::Nodes(nodes)));
    }

    fn over(&mut self, address: &str, unsaid: Vec<Receipt>) {
        let id = self.to(address);
        self.connections.remove(&id);
        self.tell(HubsInput::Over(id, unsaid));
    }
}

fn described(wanted: &Wanted) -> String {
    let feeds: Option<Vec<&str>> =
        wanted.only.as_ref().map(|only| only.iter().map(downburst_model::FeedName::as_str).collect());
    let feeds = feeds.map_or_else(|| "all".to_owned(), |feeds| feeds.join(","));
    format!("{} {:?} {feeds}", wanted.address, wanted.role)
}

fn feed(name: &str) -> FeedName {
    FeedName::parse(name).unwrap()
}

fn receipt(name: &str, sequence: u64) -> Receipt {
    let epoch = downburst_model::Epoch(1);
    let key = ProductKey { feed: feed(name), epoch, sequence: Sequence(sequence) };
    Receipt::undescribed(key, Outcome::Stored, WallMicros(1))
}

fn two() -> Site {
    let mut site = Site::new(&["a:1", "b:1"]);
    site.well("a:1");
    site.well("b:1");
    site.said();
    site
}

#[test]
fn the_first_hub_serves_and_the_others_stand_by() {
    let mut site = Site::new(&["a:1", "b:1"]);
    assert_eq!(site.said(), ["begin a:1 Serve all", "begin b:1 StandBy all"]);
    assert_eq!(site.listeners.all, Some(site.to("a:1")));
}

#[test]
fn a_lost_hub_is_replaced_after_two_seconds_and_a_silent_one_at_once() {
    for (silent, patience) in [(false, Micros::from_secs(2)), (true, Micros(0))] {
        let mut site = two();
        site.away("a:1", silent);
        site.wait(Micros(patience.0.saturating_sub(1)));
        assert_eq!(site.said().is_empty(), !silent);
        let mut site = two();
        site.away("a:1", silent);
        site.wait(patience);
        assert_eq!(site.said(), ["a:1 is to StandBy", "b:1 is to Serve"]);
        assert_eq!(site.listeners.all, Some(site.to("b:1")));
    }
}

#[test]
fn the_preferred_hub_serves_again_after_it_was_well_for_long_enough() {
    let mut site = two();
    site.away("a:1", true);
    site.well("b:1");
    site.well("a:1");
    site.said();
    site.wait(Micros::from_secs(29));
    assert_eq!(site.said(), Vec::<String>::new());
    site.wait(Micros::from_secs(1));
    assert_eq!(site.said(), ["a:1 is to Serve", "b:1 is to StandBy"]);
}

#[test]
fn news_of_the_role_before_count_for_nothing() {
    let mut site = two();
    let id = site.to("b:1");
    site.away("a:1", true);
    site.tell(HubsInput::News(id, News::Well { hub: "b".to_owned(), role: Role::StandBy }));
    assert_eq!(site.hubs.status(site.now)[1].state, "away");
}

#[test]
fn a_person_prefers_a_hub_by_address_or_name() {
    let table = [("b:1", None), ("hub b:1", None), ("c:1", Some("its hubs are a:1 b:1"))];
    for (wanted, error) in table {
        let mut site = two();
        let done = site.hubs.prefer(site.now, wanted);
        assert_eq!(done.is_err(), error.is_some());
        if let (Err(sentence), Some(error)) = (done, error) {
            assert!(sentence.contains(error), "{sentence}");
            continue;
        }
        site.settle();
        assert_eq!(site.said(), ["a:1 is to StandBy", "b:1 is to Serve"]);
        let status = site.hubs.status(site.now);
        assert_eq!((status[1].active, status[1].preferred, status[0].preferred), (true, true, false));
    }
    let mut site = two();
    for address in ["a:1", "b:1"] {
        let id = site.to(address);
        let role = site.connections[&id].0.role;
        site.tell(HubsInput::News(id, News::Well { hub: "same".to_owned(), role }));
    }
    assert!(site.hubs.prefer(site.now, "same").unwrap_err().contains("several hubs"));
}

#[test]
fn a_site_that_all_hubs_refuse_ends_once_its_connections_have() {
    let mut site = two();
    for address in ["a:1", "b:1"] {
        let id = site.to(address);
        site.tell(HubsInput::News(id, News::Refused("no".to_owned())));
    }
    assert!(!site.said().iter().any(|said| said.starts_with("end")));
    site.over("a:1", Vec::new());
    site.over("b:1", Vec::new());
    assert_eq!(site.said(), ["end: Refused(\"no\")"]);
}

#[test]
fn whatever_ends_a_site_it_waits_for_its_connections_and_begins_no_other() {
    let unkept = |site: &Site| HubsInput::News(site.to("a:1"), News::Unkept("disk full".to_owned()));
    let table =
        [(HubsInput::Stop, "end: Stopped"), (HubsInput::Failed("no".to_owned()), "end: BadUse(\"no\")")];
    for (input, expected) in table {
        let mut site = two();
        site.tell(input);
        assert_eq!(site.said(), ["a:1 is to End", "b:1 is to End"]);
        site.over("b:1", Vec::new());
        site.wait(Micros::from_secs(60));
        assert_eq!((site.said(), site.hubs.deadline()), (vec![], None));
        site.over("a:1", Vec::new());
        assert_eq!(site.said(), [expected]);
        site.tell(HubsInput::Stop);
        assert_eq!(site.said(), Vec::<String>::new());
    }
    let mut site = two();
    let input = unkept(&site);
    site.tell(input);
    site.tell(HubsInput::Stop);
    site.over("a:1", Vec::new());
    site.over("b:1", Vec::new());
    assert_eq!(site.said().pop().unwrap(), "end: BadUse(\"disk full\")", "the first reason counts");
}

#[test]
fn feeds_move_between_nodes_once_the_connection_before_has_settled_them() {
    let mut site = Site::new(&["a:1"]);
    site.well("a:1");
    site.said();
    site.nodes("a:1", 1, &[("a:1", &["A"]), ("b:1", &["B"])]);
    assert_eq!(site.said(), ["keep 2 nodes of 0", "a:1 is to Leave"]);
    site.over("a:1", vec![receipt("A", 1), receipt("B", 2), receipt("B", 3)]);
    assert_eq!(site.said(), ["begin a:1 Serve A", "begin b:1 Serve B"]);
    let owed = |site: &Site, address| site.connections[&site.to(address)].2;
    assert_eq!((owed(&site, "a:1"), owed(&site, "b:1")), (1, 2), "each says what it brings");
    let listeners = site.listeners.clone();
    assert_eq!(listeners.by_feed[&feed("B")], site.to("b:1"));
    assert_eq!((listeners.by_feed.len(), listeners.all), (2, None));
    site.nodes("b:1", 2, &[("a:1", &["A"]), ("b:1", &[]), ("c:1", &["B"])]);
    assert_eq!(site.said(), ["keep 3 nodes of 0", "b:1 is to Leave"], "the other one goes on");
    site.over("b:1", Vec::new());
    assert_eq!(site.said(), ["begin c:1 Serve B"]);
}

#[test]
fn news_of_one_that_leaves_are_passed_over() {
    let mut site = Site::new(&["a:1"]);
    site.well("a:1");
    site.nodes("a:1", 1, &[("b:1", &["B"])]);
    site.said();
    let leaving = site.to("a:1");
    site.tell(HubsInput::News(leaving, News::Refused("no".to_owned())));
    site.tell(HubsInput::News(leaving, News::Away { sentence: String::new(), silent: true }));
    assert_eq!(site.said(), Vec::<String>::new());
}

#[test]
fn while_no_node_is_well_others_are_asked_and_the_hub_is_away_only_then() {
    let mut site = Site::new(&["a:1"]);
    site.well("a:1");
    site.nodes("a:1", 1, &[("a:1", &["A"]), ("b:1", &["B"])]);
    site.over("a:1", Vec::new());
    site.well("a:1");
    site.well("b:1");
    site.said();
    site.away("a:1", false);
    assert_eq!(site.hubs.status(site.now)[0].state, "serves", "the other node is well");
    site.away("b:1", false);
    assert_eq!(site.hubs.status(site.now)[0].state, "away");
    site.wait(Micros::from_secs(1));
    assert_eq!(site.said(), ["begin a:1 StandBy "]);
    let asks = site.to("a:1");
    assert!(site.connections[&asks].1, "it is the hub's own node");
    site.tell(HubsInput::News(asks, News::Away { sentence: "not there".to_owned(), silent: false }));
    site.wait(Micros::from_secs(2));
    site.tell(HubsInput::News(asks, News::Away { sentence: "not there".to_owned(), silent: false }));
    assert_eq!(site.said(), ["a:1 is to Leave"], "the next one is asked once this one has ended");
    let nodes = &site.hubs.status(site.now)[0].nodes;
    assert_eq!(nodes.iter().map(|node| node.connected).collect::<BTreeSet<_>>(), [false].into());
}

#[test]
fn what_connections_left_to_say_is_bounded() {
    let mut site = Site::new(&["a:1"]);
    site.well("a:1");
    site.nodes("a:1", 1, &[("b:1", &["B"])]);
    site.over("a:1", (0..20_000).map(|number| receipt("B", number)).collect());
    assert_eq!(site.connections[&site.to("b:1")].2, 16_384);
}
