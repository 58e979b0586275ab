//! The circuits of a hub: its own ends, those of its sites, and the state of each.
mod door;
mod jobs;
mod lease;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use downburst_hub::{SessionInput, Way};
use downburst_model::{FeedName, SiteName, Transport};
use downburst_session::{CircuitFault, HubInput, StreamPath, Ticket};
use tokio::sync::watch as channel;

use crate::circuits::{Endpoint, Keeper, Trouble};
use crate::hub::roster::{Command, Handle};
use crate::hub::{Hub, lock};
use crate::lines::{CircuitTraffic, Event, Failure, LegLine};
use door::Door;
use lease::Lease;

/// All circuits of the hub.
pub(super) struct Circuits {
    pub(super) keeper: Keeper,
    held: std::sync::Mutex<BTreeMap<u32, Arc<Circuit>>>,
    /// The counters of each circuit at the last report.
    told: std::sync::Mutex<BTreeMap<u32, (u64, u64)>>,
    /// One job at a time.
    turn: tokio::sync::Mutex<()>,
}

/// A circuit of which this hub's end is up.
struct Circuit {
    lease: Lease,
    secret: Ticket,
    endpoint: Endpoint,
    /// Kept open while the circuit is held.
    door: Arc<Door>,
    interface: String,
    /// True if the kernel keeps this hub's end to its rate.
    shaped: bool,
    ends: std::sync::Mutex<BTreeMap<SiteName, End>>,
    /// Changes whenever a site reports the state of its end.
    said: channel::Sender<u64>,
}

/// The end of a site.
#[derive(Clone, Debug, Default)]
struct End {
    /// The site's report on its end; `None` before the first one.
    said: Option<Result<(), CircuitFault>>,
    /// True if it answers.
    alive: bool,
}

impl Circuits {
    pub(super) fn new(identity: &str) -> Self {
        Self {
            keeper: Keeper::new(identity),
            held: std::sync::Mutex::default(),
            told: std::sync::Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        }
    }

    /// Bytes of frames over a circuit since its creation, out and in.
    async fn carried(&self, lease: u32) -> (u64, u64) {
        self.keeper.carried().await.get(&lease).copied().unwrap_or_default()
    }

    fn find(&self, lease: u32) -> Option<Arc<Circuit>> {
        lock(&self.held).get(&lease).cloned()
    }

    fn all(&self) -> Vec<Arc<Circuit>> {
        lock(&self.held).values().cloned().collect()
    }
}

impl Hub {
    /// Offers a site that has connected its ends of circuits.
    pub(super) fn offer_circuits(&self, site: &SiteName, handle: &Handle) {
        for circuit in self.circuits.all() {
            circuit.offer(site, handle);
        }
    }

    /// Handles a site's report on its end.
    pub(super) fn circuit_said(&self, site: &SiteName, lease: u32, said: Result<(), CircuitFault>) {
        let Some(circuit) = self.circuits.find(lease) else { return };
        let fault = said.as_ref().err().cloned();
        let known = {
            let mut ends = lock(&circuit.ends);
            let Some(end) = ends.get_mut(site) else { return };
            end.alive = end.alive && fault.is_none();
            end.said.replace(said).is_some()
        };
        circuit.said.send_modify(|count| *count += 1);
        if let Some(fault) = fault.filter(|_| known) {
            let trouble = Trouble { step: fault.step, sentence: fault.sentence, remedy: fault.remedy };
            self.tell_circuit(&circuit, Some(site), "down", Some(trouble));
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
        let circuit = self.circuits.find(lease).filter(|circuit| circuit.carries(site))?;
        let to = std::net::SocketAddr::new(circuit.lease.address.0, self.sites_port());
        let path = StreamPath { to: to.to_string(), from: circuit.lease.address_of(site)?.to_string() };
        let paced = circuit.lease.is_shaped() && !circuit.shaped;
        Some(Way { path, feeds, paced_bps: paced.then(|| circuit.lease.paced_bps()) })
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
        let circuit = self.circuits.find(lease).ok_or_else(|| {
            let sentence = format!(
                "leg {} is to leave by circuit {lease}, which is not up; bring it up first",
                line.leg.0
            );
            Failure::new("not-up", sentence)
        })?;
        line.interface.clone_from(&circuit.interface);
        line.rate_bps = circuit.lease.rate_inside_bps(line.rate_bps);
        Ok(())
    }

    /// The address of a site's end of an established circuit.
    pub(super) fn circuit_address(&self, lease: u32, site: &SiteName) -> Option<String> {
        self.circuits.find(lease)?.lease.address_of(site).map(|address| address.to_string())
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
        let mut told = lock(&self.circuits.told);
        let news = carried.iter().map(|(lease, (out, into))| {
            let (told_out, told_in) = told.get(lease).copied().unwrap_or((0, 0));
            // A recreated circuit counts from its creation.
            let since = |now: u64, told: u64| now.checked_sub(told).unwrap_or(now);
            CircuitTraffic {
                lease: *lease,
                site: self.circuits.find(*lease).and_then(|circuit| circuit.lease.only_site()),
                out_bytes: since(*out, told_out),
                in_bytes: since(*into, told_in),
            }
        });
        let news = news.collect();
        *told = carried;
        news
    }

    fn tell_circuit(
        &self,
        circuit: &Circuit,
        site: Option<&SiteName>,
        state: &'static str,
        trouble: Option<Trouble>,
    ) {
        let hop = site.map_or_else(|| circuit.hop(self), |site| circuit.hop_of(site));
        let (step, sentence, remedy) =
            trouble.map_or((None, None, None), |it| (Some(it.step), Some(it.sentence), Some(it.remedy)));
        let (lease, site) = (circuit.lease.line.lease, site.cloned());
        self.event(&Event::Circuit { lease, site, state, step, hop: Some(hop), sentence, remedy });
        self.look_at_paths();
    }
}

impl Circuit {
    fn offer(&self, site: &SiteName, handle: &Handle) {
        if let Some(offer) = self.lease.offer(site, self.secret.clone()) {
            lock(&self.ends).insert(site.clone(), End::default());
            let _ = handle
                .commands
                .send(Command::Tell(SessionInput::Pass(HubInput::OfferCircuit(Box::new(offer)))));
        }
    }

    /// True if products may be sent to the site over it.
    fn carries(&self, site: &SiteName) -> bool {
        lock(&self.ends).get(site).is_some_and(|end| end.alive && end.said == Some(Ok(())))
    }

    fn hop(&self, hub: &Hub) -> String {
        format!("{} at {}", self.lease.own.end, hub.start.name)
    }

    fn hop_of(&self, site: &SiteName) -> String {
        let end =
            self.lease.others.iter().find(|(name, ..)| name == site).map(|(_, end, _)| end.end.as_str());
        format!("{} at {site}", end.unwrap_or("its port"))
    }

    fn ends(&self) -> impl Iterator<Item = (&SiteName, IpAddr)> {
        self.lease.others.iter().map(|(site, _, (address, _))| (site, *address))
    }
}
