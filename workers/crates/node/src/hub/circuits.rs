//! The circuits of a hub: its own ends, those of its sites, and the state of each.
mod door;
mod jobs;
mod pair;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use downburst_hub::circuits::{CarriedBytes, CircuitEnds, EndReport, HeldCircuit, PairWatch, not_up};
use downburst_hub::{SessionInput, Way};
use downburst_model::{FeedName, SiteName, Transport};
use downburst_session::{CircuitFault, CircuitSet, HubInput};
use tokio::sync::watch as channel;

use crate::circuits::{Endpoint, Keeper};
use crate::hub::roster::{Command, Handle};
use crate::hub::{Hub, lock};
use crate::lines::{CircuitTraffic, Event, Failure, LegLine};
use door::Door;
use pair::Asked;

/// All circuits of the hub.
pub(super) struct Circuits {
    pub(super) keeper: Keeper,
    held: std::sync::Mutex<BTreeMap<u32, Arc<Circuit>>>,
    /// The counters of each circuit at the last report.
    told: std::sync::Mutex<CarriedBytes>,
    /// True once the agent has named the whole set.
    is_told: AtomicBool,
    /// One job at a time.
    turn: tokio::sync::Mutex<()>,
}

/// A circuit of which this hub's end is up, or which joins two sites, or machines of other networks.
struct Circuit {
    held: HeldCircuit,
    /// This hub's end; `None`: it has none.
    own: Option<Own>,
    /// Taken over by the circuit of the next lease, if this hub's end stays.
    ends: Arc<std::sync::Mutex<CircuitEnds>>,
    /// Of a circuit between two sites: whether it carries packets.
    pair: std::sync::Mutex<PairWatch>,
    /// Of a circuit between two sites: the measurements that its near site has not answered.
    asked: Asked,
    /// Changes whenever a site reports the state of its end.
    said: channel::Sender<u64>,
}

/// This hub's end of a circuit.
struct Own {
    /// The number of its interface.
    index: u32,
    address: IpAddr,
    endpoint: Arc<Endpoint>,
    /// Kept open while the circuit is held.
    door: Arc<Door>,
}

impl Circuits {
    pub(super) fn new(identity: &str) -> Self {
        Self {
            keeper: Keeper::new(identity),
            held: std::sync::Mutex::default(),
            told: std::sync::Mutex::default(),
            is_told: AtomicBool::default(),
            turn: tokio::sync::Mutex::default(),
        }
    }

    fn find(&self, lease: u32) -> Option<Arc<Circuit>> {
        lock(&self.held).get(&lease).cloned()
    }

    /// True if the circuit has not been replaced by that of another lease.
    fn is_current(&self, circuit: &Arc<Circuit>) -> bool {
        self.find(circuit.held.lease.number()).is_some_and(|held| Arc::ptr_eq(&held, circuit))
    }

    fn all(&self) -> Vec<Arc<Circuit>> {
        lock(&self.held).values().cloned().collect()
    }
}

impl Hub {
    /// Offers a site that has connected its ends of circuits, and has it remove others.
    pub(super) fn offer_circuits(&self, site: &SiteName, handle: &Handle) {
        self.keep_circuits(site, handle);
        for circuit in self.circuits.all() {
            circuit.offer(site, handle);
        }
    }

    /// Has a site remove ends that are not this hub's any more. Before the agent has named the whole set, nothing is
    /// known of them.
    fn keep_circuits(&self, site: &SiteName, handle: &Handle) {
        if !self.circuits.is_told.load(Ordering::Relaxed) {
            return;
        }
        // Under the lock, so that no offer of a circuit that follows overtakes the set without it.
        let held = lock(&self.circuits.held);
        let own = held.iter().filter(|(_, circuit)| circuit.held.parties().any(|name| name == site));
        let set = HubInput::KeepCircuits(CircuitSet { leases: own.map(|(lease, _)| *lease).collect() });
        let _ = handle.commands.send(Command::Tell(SessionInput::Pass(set)));
    }

    /// Handles a site's report on its end.
    pub(super) fn circuit_said(&self, site: &SiteName, lease: u32, said: Result<(), CircuitFault>) {
        let Some(circuit) = self.circuits.find(lease) else { return };
        let stands = said.is_ok();
        let report = lock(&circuit.ends).said(site, said);
        if report == EndReport::OfNoEnd {
            return;
        }
        circuit.said.send_modify(|count| *count += 1);
        match report {
            _ if circuit.held.lease.pair().is_some() => self.look_at_pair(&circuit),
            EndReport::Down(fault) => self.tell_circuit(&circuit, Some(site), "down", Some(fault)),
            // Nobody here sees packets of its ends, so the joined hops are all there is to tell.
            _ if stands && circuit.held.lease.passes() => self.tell_circuit(&circuit, Some(site), "up", None),
            _ => {}
        }
    }

    /// The circuits to a site that plans assign to some of its feeds, and that answer. The feed of a silent
    /// circuit takes the routed path.
    pub(super) fn circuit_ways_to(&self, site: &SiteName) -> Vec<Way> {
        let mut feeds: BTreeMap<u32, BTreeSet<FeedName>> = BTreeMap::new();
        for (feed, lease) in lock(&self.legs.plans).circuits_of(site) {
            feeds.entry(lease).or_default().insert(feed);
        }
        let ways = feeds.into_iter().filter_map(|(lease, feeds)| self.way(site, lease, feeds));
        ways.collect()
    }

    fn way(&self, site: &SiteName, lease: u32, feeds: BTreeSet<FeedName>) -> Option<Way> {
        let circuit = self.circuits.find(lease).filter(|circuit| lock(&circuit.ends).carries(site))?;
        circuit.held.way(site, self.sites_port(), feeds)
    }

    /// The port at which sites reach the hub, at its addresses inside circuits as well.
    fn sites_port(&self) -> u16 {
        self.entrance.places.first().map_or(0, std::net::SocketAddr::port)
    }

    /// Gives a multicast leg that names a circuit the circuit's interface and rate.
    pub(super) fn put_on_circuit(&self, line: &mut LegLine) -> Result<(), Failure> {
        let Some(lease) = line.circuit.filter(|_| line.transport == Transport::Multicast) else {
            return Ok(());
        };
        let circuit = self.circuits.find(lease).filter(|circuit| circuit.own.is_some());
        let circuit = circuit.ok_or_else(|| not_up(line.leg, lease))?;
        circuit.held.put(line);
        Ok(())
    }

    /// The address of a site's end of an established circuit.
    pub(super) fn circuit_address(&self, lease: u32, site: &SiteName) -> Option<String> {
        self.circuits.find(lease)?.held.lease.address_of(site).map(|address| address.to_string())
    }

    /// Has all sessions check their paths again.
    pub(super) fn look_at_paths(&self) {
        self.roster.tell_all(|| Command::Tell(SessionInput::LookAtPath));
    }

    /// The traffic of each circuit since the last call.
    pub(super) async fn circuit_traffic(&self) -> Vec<CircuitTraffic> {
        if lock(&self.circuits.held).is_empty() {
            return Vec::new();
        }
        let carried = self.circuits.keeper.carried().await;
        let only_site = |lease| self.circuits.find(lease).and_then(|circuit| circuit.held.lease.only_site());
        lock(&self.circuits.told).since_last(carried, only_site)
    }

    fn tell_circuit(
        &self,
        circuit: &Circuit,
        site: Option<&SiteName>,
        state: &'static str,
        fault: Option<CircuitFault>,
    ) {
        let held = &circuit.held;
        let hop = site.map_or_else(|| held.hop(&self.start.name), |site| held.hop_of(site));
        let (step, sentence, remedy) =
            fault.map_or((None, None, None), |it| (Some(it.step), Some(it.sentence), Some(it.remedy)));
        let (lease, site) = (held.lease.number(), site.cloned());
        self.event(&Event::Circuit { lease, site, state, step, hop: Some(hop), sentence, remedy });
        self.look_at_paths();
    }
}

impl Circuit {
    /// A site is offered its end, or will be once it connects.
    fn forget_reports(&self, site: &SiteName) {
        lock(&self.ends).offered(site);
        if self.held.lease.pair().is_some_and(|(near, _)| near == site) {
            lock(&self.pair).offered();
        }
    }

    fn offer(&self, site: &SiteName, handle: &Handle) {
        if let Some(offer) = self.held.offer(site) {
            self.forget_reports(site);
            let _ = handle
                .commands
                .send(Command::Tell(SessionInput::Pass(HubInput::OfferCircuit(Box::new(offer)))));
        }
    }
}

/// The abilities of this host.
pub(super) async fn describe_host() -> serde_json::Value {
    tokio::task::spawn_blocking(crate::circuits::describe_host).await.unwrap_or_default()
}
