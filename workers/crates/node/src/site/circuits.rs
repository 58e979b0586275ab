//! The ends of circuits at a site, as ordered by its hub. They are removed when the site ends.
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use downburst_host::{Burst, Half, Place, Shape, Way};
use downburst_hub::circuits::Train;
use downburst_model::{Machine as _, Micros};
use downburst_session::{
    CircuitHeard, CircuitOffer, CircuitProbe, CircuitProbed, CircuitReport, CircuitState, CircuitTransit,
    CircuitWay, inner_address,
};
use downburst_site::{CircuitEnds, EndsInput, EndsOrder, EndsOutput, FarEnd, Raising};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::circuits::{Endpoint, Keeper, measure};
use crate::clock::Clock;

/// The ends of one of a hub's nodes at this site.
pub(super) struct Circuits {
    orders: mpsc::UnboundedSender<Order>,
    reports: mpsc::UnboundedReceiver<CircuitReport>,
    work: JoinHandle<()>,
}

/// The addresses of the ends opposite to a site's, as long as it holds its own.
#[derive(Clone, Debug, Default)]
pub(crate) struct CircuitPeers(Arc<watch::Sender<BTreeSet<IpAddr>>>);

/// An order of the hub.
enum Order {
    Ends(EndsOrder),
    Probe(CircuitProbe),
}

/// An end that is up.
struct HeldEnd {
    endpoint: Arc<Endpoint>,
    /// The address opposite to this end.
    peer: Option<IpAddr>,
    /// Of a circuit that this site watches.
    far: Option<FarEnd>,
    /// The last measurement.
    probing: Option<JoinHandle<()>>,
}

/// The task that executes the orders, apart from the session: the kernel may be slow.
struct Work {
    ends: CircuitEnds,
    keeper: Keeper,
    clock: Clock,
    held: BTreeMap<u32, HeldEnd>,
    /// The leases whose halves this task gave to the keeper; other nodes of the hub have others there.
    raised: BTreeSet<u32>,
    peers: CircuitPeers,
    reports: mpsc::UnboundedSender<CircuitReport>,
}

impl Circuits {
    /// `ports` are the interfaces that the hub may use. All nodes of the hub share the keeper; ends that an earlier
    /// process of the site left are removed.
    pub(super) fn start(ports: Vec<String>, peers: CircuitPeers, keeper: Keeper, clock: Clock) -> Self {
        let (orders, taken) = mpsc::unbounded_channel();
        let (sender, reports) = mpsc::unbounded_channel();
        let ends = CircuitEnds::new(ports, clock.monotonic());
        let (held, raised) = (BTreeMap::new(), BTreeSet::new());
        let work = Work { ends, keeper, clock, held, raised, peers, reports: sender };
        Self { orders, reports, work: tokio::spawn(work.run(taken)) }
    }

    pub(super) fn order(&self, order: EndsOrder) {
        let _ = self.orders.send(Order::Ends(order));
    }

    /// Measures a circuit that this site watches.
    pub(super) fn probe(&self, probe: CircuitProbe) {
        let _ = self.orders.send(Order::Probe(probe));
    }

    /// The next report for the hub; cancelling the wait loses nothing.
    pub(super) async fn report(&mut self) -> CircuitReport {
        match self.reports.recv().await {
            Some(report) => report,
            None => std::future::pending().await,
        }
    }

    /// Removes all ends.
    pub(super) async fn close(self) {
        drop(self.orders);
        let _ = tokio::time::timeout(CLOSE_PATIENCE, self.work).await;
    }
}

impl Work {
    async fn run(mut self, mut orders: mpsc::UnboundedReceiver<Order>) {
        let mut ping = tokio::time::interval(PING_INTERVAL);
        ping.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            while let Some(output) = self.ends.poll(self.clock.now()) {
                if output == EndsOutput::Over {
                    return;
                }
                if let Some(answer) = self.carry_out(output).await {
                    self.ends.handle(self.clock.now(), answer);
                }
            }
            let due = self.ends.deadline().map(|due| due.since(self.clock.monotonic()).0);
            let watches = self.held.values().any(|held| held.far.is_some());
            let input = tokio::select! {
                order = orders.recv() => match order {
                    Some(Order::Ends(order)) => EndsInput::Order(order),
                    Some(Order::Probe(probe)) => {
                        self.probe(probe);
                        continue;
                    }
                    None => EndsInput::Close,
                },
                _ = ping.tick(), if watches => {
                    self.look();
                    continue;
                }
                () = tokio::time::sleep(Duration::from_micros(due.unwrap_or_default())), if due.is_some() => continue,
            };
            self.ends.handle(self.clock.now(), input);
        }
    }

    async fn carry_out(&mut self, output: EndsOutput) -> Option<EndsInput> {
        match output {
            EndsOutput::Sweep => self.sweep().await,
            EndsOutput::Raise(offer) => return Some(EndsInput::Raised(self.raise(&offer).await)),
            EndsOutput::Clear(lease) => self.clear(lease).await,
            EndsOutput::State(state) => {
                self.tell(state);
                return None;
            }
            EndsOutput::Over => return None,
        }
        Some(EndsInput::Cleared)
    }

    async fn raise(&mut self, offer: &CircuitOffer) -> Raising {
        if let Some(transit) = &offer.transit {
            return self.join(offer, transit).await;
        }
        let Some((half, address)) = self.half(offer) else { return Raising::Unreadable };
        let lease = offer.lease;
        // The former socket occupies the address.
        self.forget(lease);
        self.raised.insert(lease);
        let raised = match self.keeper.raise(half).await {
            Ok(raised) => raised,
            Err(trouble) => return Raising::Failed(trouble.into()),
        };
        match Endpoint::open(lease, offer.secret.0, address, &raised.interface) {
            Ok(endpoint) => {
                tracing::info!(lease, interface = raised.interface, "an end of a circuit is up");
                let peer: Option<IpAddr> = offer.peer_address.parse().ok();
                // The other end may know the hardware address of a former interface: a packet from here corrects it.
                peer.into_iter().for_each(|peer| endpoint.ping(peer));
                let watched = peer.filter(|_| offer.watches == Some(true));
                let far = watched.map(|address| FarEnd::new(address, raised.interface));
                self.held.insert(lease, HeldEnd { endpoint: Arc::new(endpoint), peer, far, probing: None });
                self.tell_peers();
                Raising::Up
            }
            Err(error) => Raising::Unheard { address, error: error.to_string() },
        }
    }

    /// Joins two hops. One without the other carries nothing, so both are removed if one fails.
    async fn join(&mut self, offer: &CircuitOffer, transit: &CircuitTransit) -> Raising {
        self.forget(offer.lease);
        for (side, place) in [(&transit.near, Place::Near), (&transit.far, Place::Far)] {
            let half = way(&side.way).map(|way| self.half_at(offer, way, place, side.rate_bps));
            let Some(half) = half.filter(|half| half.way != Way::Declared) else {
                self.clear(offer.lease).await;
                return Raising::Unreadable;
            };
            if let Err(trouble) = self.keeper.raise(half).await {
                self.clear(offer.lease).await;
                return Raising::Failed(trouble.into());
            }
        }
        tracing::info!(lease = offer.lease, "two hops of a circuit are joined");
        Raising::Up
    }

    /// This site's end with its address.
    fn half(&self, offer: &CircuitOffer) -> Option<(Half, IpAddr)> {
        let (address, prefix) = inner_address(&offer.address)?;
        let half = self.half_at(offer, way(&offer.way)?, Place::End(address, prefix), offer.rate_bps);
        Some((half, address))
    }

    fn half_at(&self, offer: &CircuitOffer, way: Way, place: Place, rate_bps: u64) -> Half {
        let shape = (rate_bps > 0).then(|| Shape {
            rate_bps,
            soft: offer.soft,
            burst: offer.burst_bytes.map_or(Burst::Auto, Burst::Bytes),
            port_rate_bps: offer.port_rate_bps,
        });
        let (owner, lease, port) = (self.keeper.owner(), offer.lease, offer.port.clone());
        Half { owner, lease, port, way, place, shape }
    }

    /// Tells the hub the state of an end. The hub has forgotten earlier reports on the other one.
    fn tell(&mut self, state: CircuitState) {
        let far = self.held.get_mut(&state.lease).and_then(|held| held.far.as_mut());
        far.into_iter().for_each(FarEnd::forget);
        let _ = self.reports.send(CircuitReport::State(state));
    }

    /// Asks the other ends of watched circuits whether they answer.
    fn look(&mut self) {
        for (lease, held) in &mut self.held {
            let Some(far) = &mut held.far else { continue };
            let heard = held.endpoint.heard(far.address()).map(|heard| heard.elapsed());
            let heard = heard.map(|since| Micros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX)));
            if let Some(said) = far.look(heard) {
                let heard = CircuitHeard { lease: *lease, fault: said.err() };
                let _ = self.reports.send(CircuitReport::Heard(heard));
            }
            held.endpoint.ping(far.address());
        }
    }

    /// Measures a circuit in a task of its own, one measurement at a time: further orders are not answered.
    fn probe(&mut self, CircuitProbe { lease, run, train }: CircuitProbe) {
        let reports = self.reports.clone();
        let watched = |held: &'_ HeldEnd| held.far.as_ref().map(FarEnd::address);
        let end = self.held.get(&lease).and_then(watched);
        let Some((held, end)) = self.held.get_mut(&lease).zip(end) else {
            let probed = CircuitProbed { lease, run, reach: None, rate: None };
            let _ = reports.send(CircuitReport::Probed(Box::new(probed)));
            return;
        };
        if held.probing.as_ref().is_some_and(|probing| !probing.is_finished()) {
            return;
        }
        let train = train.map(|train| Train {
            rate_bps: train.rate_bps,
            duration_ms: train.duration_ms.into(),
            out: train.out,
            frame_bytes: train.frame_bytes,
        });
        let (endpoint, keeper) = (Arc::clone(&held.endpoint), self.keeper.clone());
        held.probing = Some(tokio::spawn(async move {
            let measured = measure(&endpoint, &keeper, lease, end, train).await;
            let _ = reports.send(CircuitReport::Probed(Box::new(measured.said(lease, run))));
        }));
    }

    fn forget(&mut self, lease: u32) {
        self.held.remove(&lease);
        self.tell_peers();
    }

    fn tell_peers(&self) {
        self.peers.set(self.held.values().filter_map(|held| held.peer).collect());
    }

    async fn clear(&mut self, lease: u32) {
        self.forget(lease);
        self.raised.remove(&lease);
        match self.keeper.clear(lease).await {
            Ok(cleared) => cleared.left.iter().for_each(|failure| tracing::warn!(lease, "{failure}")),
            Err(trouble) => tracing::warn!(lease, "{}", trouble.sentence),
        }
        tracing::info!(lease, "an end of a circuit is gone");
    }

    async fn sweep(&mut self) {
        self.held.clear();
        self.tell_peers();
        if let Ok(cleared) = self.keeper.give_up(std::mem::take(&mut self.raised)).await {
            cleared.removed.iter().for_each(|what| tracing::info!("removed {what}"));
        }
    }
}

impl CircuitPeers {
    /// True if the address is opposite to an end of this site.
    pub(crate) fn has(&self, address: IpAddr) -> bool {
        self.0.borrow().contains(&address)
    }

    pub(crate) fn set(&self, addresses: BTreeSet<IpAddr>) {
        self.0.send_replace(addresses);
    }

    /// Waits until the end opposite to this address is gone.
    pub(crate) async fn is_gone(&self, address: IpAddr) {
        // The sender is alive as long as this value.
        let _ = self.0.subscribe().wait_for(|held| !held.contains(&address)).await;
    }
}

impl Drop for HeldEnd {
    fn drop(&mut self) {
        if let Some(probing) = &self.probing {
            probing.abort();
        }
    }
}

/// The encapsulation for the host; `None`: an address can't be read.
fn way(way: &CircuitWay) -> Option<Way> {
    Some(match way {
        CircuitWay::Tunnel { vni, local, others, group } => Way::Tunnel {
            vni: *vni,
            local: local.parse().ok()?,
            others: others.iter().map(|other| other.parse().ok()).collect::<Option<Vec<IpAddr>>>()?,
            group: group.as_ref().map(|group| group.parse()).transpose().ok()?,
        },
        CircuitWay::Tag(tag) => Way::Tag(*tag),
        CircuitWay::Declared => Way::Declared,
    })
}

/// As a hub asks the ends of its circuits.
const PING_INTERVAL: Duration = Duration::from_millis(200);
const CLOSE_PATIENCE: Duration = Duration::from_secs(2);
