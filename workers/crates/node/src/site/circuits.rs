//! The ends of circuits at a site, as its hub tells it. What is made here goes when the site ends.
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use downburst_host::{Burst, Half, Shape, Way};
use downburst_model::WallMicros;
use downburst_session::{CircuitFault, CircuitOffer, CircuitState, CircuitWay};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::circuits::{Endpoint, Keeper, Trouble, parsed};
use crate::clock::Clock;

/// The ends that one hub has at this site.
pub(super) struct Circuits {
    orders: mpsc::UnboundedSender<Order>,
    states: mpsc::UnboundedReceiver<CircuitState>,
    work: JoinHandle<()>,
}

enum Order {
    Make(Box<CircuitOffer>),
    End(u32),
}

/// What does the work, beside the session: the kernel may take its time.
struct Work {
    /// The interfaces that the hub may use; none: the site takes part in no circuits.
    ports: Vec<String>,
    keeper: Keeper,
    clock: Clock,
    held: BTreeMap<u32, End>,
    states: mpsc::UnboundedSender<CircuitState>,
}

struct End {
    offer: CircuitOffer,
    _endpoint: Endpoint,
}

impl Circuits {
    /// `identity` tells this site from others on its host; what an earlier process of it left is taken away.
    pub(super) fn start(ports: Vec<String>, identity: &str, clock: Clock) -> Self {
        let (orders, taken) = mpsc::unbounded_channel();
        let (sender, states) = mpsc::unbounded_channel();
        let keeper = Keeper::new(identity);
        let work = Work { ports, keeper, clock, held: BTreeMap::new(), states: sender };
        Self { orders, states, work: tokio::spawn(work.run(taken)) }
    }

    pub(super) fn make(&self, offer: Box<CircuitOffer>) {
        let _ = self.orders.send(Order::Make(offer));
    }

    pub(super) fn end(&self, lease: u32) {
        let _ = self.orders.send(Order::End(lease));
    }

    /// How an end stands, when that was asked; nothing is lost when the wait is given up.
    pub(super) async fn state(&mut self) -> CircuitState {
        match self.states.recv().await {
            Some(state) => state,
            None => std::future::pending().await,
        }
    }

    /// Takes all ends away.
    pub(super) async fn close(self) {
        drop(self.orders);
        let _ = tokio::time::timeout(CLOSE_PATIENCE, self.work).await;
    }
}

impl Work {
    async fn run(mut self, mut orders: mpsc::UnboundedReceiver<Order>) {
        if !self.ports.is_empty() {
            self.sweep().await;
        }
        loop {
            tokio::select! {
                order = orders.recv() => match order {
                    Some(Order::Make(offer)) => {
                        let lease = offer.lease;
                        let fault = self.make(*offer).await.err();
                        let fault = fault
                            .map(|Trouble { step, sentence, remedy }| CircuitFault { step, sentence, remedy });
                        let _ = self.states.send(CircuitState { lease, fault });
                    }
                    Some(Order::End(lease)) => self.end(lease).await,
                    None => break,
                },
                () = tokio::time::sleep(LOOK_INTERVAL), if !self.held.is_empty() => self.end_what_is_over().await,
            }
        }
        self.held.clear();
        if !self.ports.is_empty() {
            self.sweep().await;
        }
    }

    async fn make(&mut self, offer: CircuitOffer) -> Result<(), Trouble> {
        if self.held.get(&offer.lease).is_some_and(|end| end.offer == offer) {
            return Ok(());
        }
        self.permit(&offer.port)?;
        let half = self.half(&offer).ok_or_else(|| Trouble {
            step: "site".to_owned(),
            sentence: format!("the hub's offer of circuit {} can't be read", offer.lease),
            remedy: "bring the nodes of hub and site to one release".to_owned(),
        })?;
        let (address, lease) = (half.address.0, offer.lease);
        // The former socket holds the address.
        self.held.remove(&lease);
        let raised = self.keeper.raise(half).await?;
        let endpoint =
            Endpoint::open(lease, offer.secret.0, address, &raised.interface).map_err(|error| Trouble {
                step: "address".to_owned(),
                sentence: format!("the site can't listen for probes at {address}: {error}"),
                remedy: format!("free UDP port 7372 at {address}"),
            })?;
        tracing::info!(lease, interface = raised.interface, "an end of a circuit is up");
        self.held.insert(lease, End { offer, _endpoint: endpoint });
        Ok(())
    }

    /// The site's administrator says which interfaces the hub may use.
    fn permit(&self, port: &str) -> Result<(), Trouble> {
        if self.ports.iter().any(|permitted| permitted == port) {
            return Ok(());
        }
        let sentence = match self.ports.as_slice() {
            [] => "the site takes part in no circuits".to_owned(),
            ports => format!("the site lets circuits use {}, not {port}", ports.join(", ")),
        };
        let remedy = format!("start its receiver with --circuits {port}");
        Err(Trouble { step: "site".to_owned(), sentence, remedy })
    }

    fn half(&self, offer: &CircuitOffer) -> Option<Half> {
        let way = match &offer.way {
            CircuitWay::Tunnel { vni, local, others, group } => Way::Tunnel {
                vni: *vni,
                local: local.parse().ok()?,
                others: others.iter().map(|other| other.parse().ok()).collect::<Option<Vec<IpAddr>>>()?,
                group: group.as_ref().map(|group| group.parse()).transpose().ok()?,
            },
            CircuitWay::Tag(tag) => Way::Tag(*tag),
            CircuitWay::Declared => Way::Declared,
        };
        let shape = (offer.rate_bps > 0).then(|| Shape {
            rate_bps: offer.rate_bps,
            soft: offer.soft,
            burst: offer.burst_bytes.map_or(Burst::Auto, Burst::Bytes),
            port_rate_bps: offer.port_rate_bps,
        });
        let (owner, address) = (self.keeper.owner(), parsed(&offer.address)?);
        Some(Half { owner, lease: offer.lease, port: offer.port.clone(), way, address, shape })
    }

    async fn end(&mut self, lease: u32) {
        if self.held.remove(&lease).is_some() {
            match self.keeper.clear(lease).await {
                Ok(cleared) => cleared.left.iter().for_each(|failure| tracing::warn!(lease, "{failure}")),
                Err(trouble) => tracing::warn!(lease, "{}", trouble.sentence),
            }
            tracing::info!(lease, "an end of a circuit is gone");
        }
    }

    /// The hub says so as well, unless it is away.
    async fn end_what_is_over(&mut self) {
        let now = self.clock.wall();
        let over = |until: WallMicros| until.0.saturating_add(CLOCKS_DIFFER_US) <= now.0;
        let leases: Vec<u32> = self
            .held
            .iter()
            .filter(|(_, end)| end.offer.until.is_some_and(over))
            .map(|(lease, _)| *lease)
            .collect();
        for lease in leases {
            self.end(lease).await;
        }
    }

    async fn sweep(&self) {
        if let Ok(cleared) = self.keeper.keep_only(Vec::new()).await {
            cleared.removed.iter().for_each(|what| tracing::info!("removed {what}"));
        }
    }
}

const LOOK_INTERVAL: Duration = Duration::from_secs(1);
const CLOSE_PATIENCE: Duration = Duration::from_secs(2);

/// The hub's clock gives the time of the end; the site's may be wrong by so much without cutting a circuit early.
const CLOCKS_DIFFER_US: i64 = 5_000_000;
