//! Drives the machine of a site's connection to one hub with sockets, threads and files.
use std::sync::Arc;
use std::time::Duration;

use downburst_model::Machine as _;
use downburst_session::{
    CircuitReport, LegJoin, PathProbed, Receipt, RelayLeg, RelayLegFailed, RelayReport, SiteClock, SiteEvent,
};
use downburst_site::{
    Connection, EndsOrder, Input, LegNews, LocalNews, MEMORY_LIMIT_BYTES, Output, Role, Settings, StoreBatch,
    StoreRequest, Stored, log_event,
};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::circuits::Circuits;
use super::destination::Destination;
use super::host_clock::HostClock;
use super::legs::{Found, Legs};
use super::network::{self, Network};
use super::parts::{Local, Parts, SharedCompleteness, Supervisor};
use super::probes::Probes;
use super::relayed::SharedLegs;
use super::spool::Spool;
use super::state::{HubPlace, Keeper, recover};
use super::store::{self, StoreThread};
use crate::circuits::Keeper as EndKeeper;
use crate::clock::Clock;

mod credentials;

use credentials::{Kept, KeptCredentials};

/// The connection to one hub, driven by a task.
pub(crate) struct Site {
    machine: Connection,
    clock: Clock,
    host_clock: HostClock,
    hub: HubPlace,
    network: Network,
    legs: Legs,
    storage: Storage,
    credentials: KeptCredentials,
    circuits: Circuits,
    probes: Probes,
    /// The legs that leave here; `None`: this is no relay.
    relayed: Option<SharedLegs>,
    local: Local,
    supervisor: Supervisor,
    /// The reports of a relay.
    reports: Option<mpsc::UnboundedReceiver<RelayReport>>,
    /// True once the supervisor of the connection is gone.
    is_alone: bool,
}

/// The stores of products and positions.
struct Storage {
    destination: Arc<dyn Destination>,
    completeness: SharedCompleteness,
    spool: Spool,
    thread: StoreThread,
    keeper: Keeper,
}

/// The events that wake a driver.
enum Woken {
    Network(network::Woken),
    Found(Found),
    Stored(Stored),
    Local(LocalNews),
    Circuit(CircuitReport),
    Probe(PathProbed),
    Kept(Kept),
    Report(RelayReport),
    Clock(SiteClock),
    Role,
    Deadline,
}

impl Site {
    /// Resumes from the site's last position with this hub.
    pub(crate) fn open(parts: Parts) -> Result<Self, String> {
        let Parts { hub, identity, turn, clock, only, destination, completeness, local, supervisor, .. } =
            parts;
        let recovered = recover(&hub, only.as_ref(), destination.as_ref(), &completeness)?;
        let place = store::Place { destination: Arc::clone(&destination), clock, via: hub.host() };
        let settings = Settings {
            address: hub.address.clone(),
            software: format!("downburst-node {}", env!("CARGO_PKG_VERSION")),
            versions: parts.versions,
            one_node: parts.one_node,
            only,
            decides: parts.decides,
            has_files: local.files.is_some(),
            memory_limit_bytes: MEMORY_LIMIT_BYTES,
        };
        let role = *supervisor.roles.borrow();
        let storage = Storage {
            destination,
            completeness,
            spool: Spool::new(&hub.spool),
            thread: store::start(place)?,
            keeper: Keeper::start(&hub.state)?,
        };
        Ok(Self {
            circuits: Circuits::start(
                parts.ways.ports,
                parts.ways.peers,
                parts.ways.ends.unwrap_or_else(|| EndKeeper::new(&hub.mark())),
                clock,
            ),
            probes: Probes::new(parts.ways.probes_most_bps, parts.ways.carries, clock),
            network: Network::new(parts.ways.via, clock, &hub.address, identity.credentials.ca_sha256())
                .exchanging(parts.ways.siblings)
                .counting(parts.ways.readings.arrived.clone()),
            legs: Legs::new(parts.ways.reading, parts.ways.readings, parts.ways.amt),
            relayed: parts.ways.relayed,
            machine: Connection::new(settings, identity.credentials.clone(), recovered, parts.owed, role),
            credentials: KeptCredentials::new(identity, turn),
            clock,
            host_clock: HostClock::start(),
            hub,
            storage,
            local,
            supervisor,
            reports: parts.ways.reports,
            is_alone: false,
        })
    }

    /// Works until its role ends; returns the receipts that were not sent.
    pub(crate) async fn run(mut self) -> Vec<Receipt> {
        loop {
            if let Some(unsaid) = self.perform().await {
                self.close().await;
                return unsaid;
            }
            if self.machine.is_up() {
                self.network.try_better_way();
            }
            let reads = self.machine.takes_bytes();
            let deadline = self.deadline();
            let woken = tokio::select! {
                woken = self.network.moved(reads) => Woken::Network(woken),
                kept = self.credentials.kept() => Woken::Kept(kept),
                Some(answer) = self.legs.answers.recv() => Woken::Found(answer),
                Some(found) = self.legs.found.recv() => Woken::Found(found),
                Some(stored) = self.storage.thread.results.recv() => Woken::Stored(stored),
                report = self.circuits.report() => Woken::Circuit(report),
                said = self.probes.said() => Woken::Probe(said),
                Some(news) = self.local.done.recv() => Woken::Local(news),
                report = next_report(&mut self.reports) => Woken::Report(report),
                clock = self.host_clock.next() => Woken::Clock(clock),
                _ = self.supervisor.roles.changed(), if !self.is_alone => Woken::Role,
                () = tokio::time::sleep_until(deadline) => Woken::Deadline,
            };
            self.take(woken);
        }
    }

    fn take(&mut self, woken: Woken) {
        match woken {
            Woken::Deadline => {}
            Woken::Network(woken) => self.network_moved(woken),
            Woken::Found(found) => self.found(found),
            Woken::Stored(stored) => {
                let has_grown = stored.items.iter().any(|item| item.log_sequence.is_some());
                if let Some(files) = self.local.files.as_ref().filter(|_| has_grown) {
                    files.wake();
                }
                self.tell(Input::Stored(stored));
            }
            Woken::Local(news) => self.tell(Input::Local(news)),
            Woken::Circuit(report) => self.tell(Input::Circuit(report)),
            Woken::Probe(said) => self.tell(Input::PathProbed(Box::new(said))),
            Woken::Kept(kept) => self.credentials_kept(kept),
            Woken::Clock(clock) => self.tell(Input::Clock(clock)),
            Woken::Report(report) => self.tell(Input::RelayReport(report)),
            Woken::Role => self.take_role(),
        }
    }

    fn network_moved(&mut self, woken: network::Woken) {
        match woken {
            network::Woken::Dialled(Ok(())) => {
                let resume_at = self.storage.completeness.resume(self.machine.feeds());
                self.tell(Input::Dialled(Ok(downburst_site::Linked { resume_at })));
            }
            network::Woken::Dialled(Err(no_link)) => self.tell(Input::Dialled(Err(no_link))),
            network::Woken::Written => {}
            network::Woken::SaidFarewell => self.hung_up(),
            network::Woken::Tried(true) => self.tell(Input::Move),
            network::Woken::Tried(false) => {}
            network::Woken::Moved(input) => self.tell(input),
        }
    }

    /// The loss of the supervisor ends the connection, too.
    fn take_role(&mut self) {
        self.is_alone = self.supervisor.roles.has_changed().is_err();
        let role = if self.is_alone { Role::End } else { *self.supervisor.roles.borrow_and_update() };
        // The end of the present session then says nothing of its way.
        self.network.leaves();
        self.tell(Input::Role(role));
    }

    fn join(&mut self, join: &LegJoin) {
        let news = self.legs.join(join, &self.network.local_address, &self.network.peer_address);
        self.tell(Input::Leg(join.leg, news));
    }

    /// The hub's answers go first: they arrived while the batch waited.
    fn found(&mut self, found: Found) {
        while let Ok(Found { leg, news: LegNews::Datagrams(batch) }) = self.legs.answers.try_recv() {
            self.tell(Input::Leg(leg, LegNews::Datagrams(batch)));
        }
        self.tell(Input::Leg(found.leg, found.news));
    }

    fn open_relayed(&mut self, leg: &RelayLeg) {
        let no_relay = || RelayLegFailed { leg: leg.leg, sentence: NO_RELAY.to_owned() };
        let opened = self.relayed.as_ref().ok_or_else(no_relay).and_then(|legs| legs.open(leg));
        self.tell(Input::RelayLeg(opened));
    }

    /// Legs are limited to one connection, and so are probes.
    fn clear_legs(&mut self) {
        self.probes.end();
        self.network.siblings.clear();
        self.legs.clear();
        self.relayed.iter().for_each(SharedLegs::clear);
    }

    fn tell(&mut self, input: Input) {
        self.machine.handle(self.clock.now(), input);
    }

    fn exchange(&mut self, event: SiteEvent) {
        if let Some(input) = self.network.siblings.take(event) {
            self.tell(Input::Sibling(input));
        }
    }

    fn hung_up(&mut self) {
        self.tell(Input::HungUp { random: random() });
    }

    /// Carries out the machine's outputs until there are none; returns the unsent receipts at the connection's end.
    async fn perform(&mut self) -> Option<Vec<Receipt>> {
        while let Some(output) = self.machine.poll(self.clock.now()) {
            match output {
                Output::Dial => self.network.dial(),
                Output::HangUp => {
                    self.clear_legs();
                    self.network.hang_up().await;
                    self.hung_up();
                }
                Output::Farewell => {
                    self.clear_legs();
                    self.network.say_farewell();
                }
                Output::Over(unsaid) => return Some(unsaid),
                Output::Write { stream, bytes } => self.network.push(stream, &bytes),
                Output::OpenStream { stream, path } => self.network.open(stream, path),
                Output::CloseStream(stream) => self.network.close(stream),
                Output::JoinGroup(join) => self.join(&join),
                Output::LegKey(leg, key) => self.legs.use_key(leg, key),
                Output::LeaveGroup(leg) => self.legs.leave(leg),
                Output::Ask { leg, bytes } => self.legs.ask(leg, &bytes),
                Output::Relay(train) => self.relayed.iter().for_each(|legs| legs.send(&train)),
                Output::Place(order) => self.storage.spool.carry_out(order),
                Output::Store(request) => self.storage.store(request),
                Output::Checkpoint(stored) => self.storage.keep(stored),
                Output::Guard(feed) => self.storage.destination.guard(&feed),
                Output::Reached { feed, epoch, to } => self.storage.completeness.reached(&feed, epoch, to),
                Output::Show(order) => {
                    if let Some(files) = &self.local.files {
                        files.order(order);
                    }
                }
                Output::Credentials(order) => self.carry_out(order),
                // At the very end there is no receiver any more.
                Output::News(news) => drop(self.supervisor.news.send(news)),
                Output::Event(event) => self.event(event),
            }
        }
        None
    }

    /// Waits until the queued products are in the log; their positions follow with the next hello.
    async fn close(mut self) {
        self.credentials.finish().await;
        self.circuits.close().await;
        self.storage.thread.close();
    }

    fn deadline(&self) -> Instant {
        let now = self.clock.monotonic();
        let due = self.machine.deadline().into_iter().chain(self.network.deadline()).min();
        let due = due.map(|due| Duration::from_micros(due.since(now).0));
        Instant::now() + due.unwrap_or(LONGEST_SLEEP)
    }

    fn event(&mut self, event: SiteEvent) {
        match event {
            SiteEvent::Duplicates { feed, rule } => self.storage.destination.duplicates(&feed, rule),
            SiteEvent::CircuitOffered(offer) => self.circuits.order(EndsOrder::Make(offer)),
            SiteEvent::RelayLeg(leg) => self.open_relayed(&leg),
            SiteEvent::RelayLegEnded(leg) => self.relayed.iter().for_each(|legs| legs.end(leg)),
            SiteEvent::Ways(chains) => self.network.told_ways(&chains),
            SiteEvent::CircuitEnded(end) => self.circuits.order(EndsOrder::End(end.lease)),
            SiteEvent::CircuitSet(leases) => {
                self.circuits.order(EndsOrder::KeepOnly(leases.into_iter().collect()));
            }
            SiteEvent::CircuitProbe(probe) => self.circuits.probe(probe),
            event @ (SiteEvent::SiblingTerms(_)
            | SiteEvent::SiblingGrant(_)
            | SiteEvent::SiblingWithdrawn(_)
            | SiteEvent::Fetch(_)) => self.exchange(event),
            SiteEvent::PathProbe(probe) => self.probes.order(probe, &self.network.probe_ends()),
            event => {
                match &event {
                    SiteEvent::Welcome { hub, .. } => {
                        self.storage.destination.hub_is(hub);
                        self.host_clock.refresh();
                    }
                    SiteEvent::Subscriptions(_) => self.network.subscribed(),
                    SiteEvent::Handling(items) => self.legs.handle(items),
                    SiteEvent::Refused(_) => self.network.leaves(),
                    _ => {}
                }
                log_event(event, &self.hub.address);
            }
        }
    }
}

impl Storage {
    fn store(&mut self, request: StoreRequest) {
        let spool = &mut self.spool;
        self.thread.store(StoreBatch::new(request, |place| spool.take(place)));
    }

    fn keep(&mut self, stored: downburst_site::StoredPosition) {
        let log = self.destination.log(&stored.position.feed).ok().flatten();
        self.keeper.keep(stored, log);
    }
}

/// Pends forever where there are none.
async fn next_report(reports: &mut Option<mpsc::UnboundedReceiver<RelayReport>>) -> RelayReport {
    let next = match reports {
        Some(reports) => reports.recv().await,
        None => None,
    };
    match next {
        Some(report) => report,
        None => std::future::pending().await,
    }
}

/// A random number in 0..1.
fn random() -> f64 {
    getrandom::u32().map_or(0.5, |random| f64::from(random) / f64::from(u32::MAX))
}

const NO_RELAY: &str =
    "this is a receiving site; start downburst-node relay with the credential of the relay";

const LONGEST_SLEEP: Duration = Duration::from_secs(3_600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_numbers_differ() {
        let drawn: std::collections::BTreeSet<u64> = (0..100).map(|_| (random() * 1e9) as u64).collect();
        assert!(drawn.len() > 90, "the random numbers differ");
    }
}
