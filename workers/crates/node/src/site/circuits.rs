//! The ends of circuits at a site, as ordered by its hub. They are removed when the site ends.
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use downburst_host::{Burst, Half, Shape, Way};
use downburst_model::Machine as _;
use downburst_session::{CircuitOffer, CircuitState, CircuitWay, inner_address};
use downburst_site::{CircuitEnds, EndsInput, EndsOrder, EndsOutput, Raising};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::circuits::{Endpoint, Keeper};
use crate::clock::Clock;

/// The ends of one hub at this site.
pub(super) struct Circuits {
    orders: mpsc::UnboundedSender<EndsOrder>,
    states: mpsc::UnboundedReceiver<CircuitState>,
    work: JoinHandle<()>,
}

/// The task that executes the orders, apart from the session: the kernel may be slow.
struct Work {
    ends: CircuitEnds,
    keeper: Keeper,
    clock: Clock,
    endpoints: BTreeMap<u32, Endpoint>,
    states: mpsc::UnboundedSender<CircuitState>,
}

impl Circuits {
    /// `ports` are the interfaces that the hub may use. `identity` distinguishes this site from others on its host;
    /// ends left by an earlier process of the site are removed.
    pub(super) fn start(ports: Vec<String>, identity: &str, clock: Clock) -> Self {
        let (orders, taken) = mpsc::unbounded_channel();
        let (sender, states) = mpsc::unbounded_channel();
        let ends = CircuitEnds::new(ports, clock.monotonic());
        let (keeper, endpoints) = (Keeper::new(identity), BTreeMap::new());
        let work = Work { ends, keeper, clock, endpoints, states: sender };
        Self { orders, states, work: tokio::spawn(work.run(taken)) }
    }

    pub(super) fn order(&self, order: EndsOrder) {
        let _ = self.orders.send(order);
    }

    /// The state of an end, after an order; cancelling the wait loses nothing.
    pub(super) async fn state(&mut self) -> CircuitState {
        match self.states.recv().await {
            Some(state) => state,
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
    async fn run(mut self, mut orders: mpsc::UnboundedReceiver<EndsOrder>) {
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
            let input = tokio::select! {
                order = orders.recv() => order.map_or(EndsInput::Close, EndsInput::Order),
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
                let _ = self.states.send(state);
                return None;
            }
            EndsOutput::Over => return None,
        }
        Some(EndsInput::Cleared)
    }

    async fn raise(&mut self, offer: &CircuitOffer) -> Raising {
        let Some(half) = self.half(offer) else { return Raising::Unreadable };
        let (address, lease) = (half.address.0, offer.lease);
        // The former socket occupies the address.
        self.endpoints.remove(&lease);
        let raised = match self.keeper.raise(half).await {
            Ok(raised) => raised,
            Err(trouble) => return Raising::Failed(trouble.into()),
        };
        match Endpoint::open(lease, offer.secret.0, address, &raised.interface) {
            Ok(endpoint) => {
                tracing::info!(lease, interface = raised.interface, "an end of a circuit is up");
                self.endpoints.insert(lease, endpoint);
                Raising::Up
            }
            Err(error) => Raising::Unheard { address, error: error.to_string() },
        }
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
        let (owner, address) = (self.keeper.owner(), inner_address(&offer.address)?);
        Some(Half { owner, lease: offer.lease, port: offer.port.clone(), way, address, shape })
    }

    async fn clear(&mut self, lease: u32) {
        self.endpoints.remove(&lease);
        match self.keeper.clear(lease).await {
            Ok(cleared) => cleared.left.iter().for_each(|failure| tracing::warn!(lease, "{failure}")),
            Err(trouble) => tracing::warn!(lease, "{}", trouble.sentence),
        }
        tracing::info!(lease, "an end of a circuit is gone");
    }

    async fn sweep(&mut self) {
        self.endpoints.clear();
        if let Ok(cleared) = self.keeper.keep_only(Vec::new()).await {
            cleared.removed.iter().for_each(|what| tracing::info!("removed {what}"));
        }
    }
}

const CLOSE_PATIENCE: Duration = Duration::from_secs(2);
