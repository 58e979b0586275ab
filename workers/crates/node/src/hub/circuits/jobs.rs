//! Jobs of circuits.
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use downburst_host::{Burst, Cleared, Half, Owner, Place, Raised, Shape, Way};
use downburst_hub::SessionInput;
use downburst_hub::circuits::{
    Attempt, CircuitStanding, CircuitWord, CircuitsAnswer, EndWay, HeldCircuit, Lease, LeftBehind, OwnEnd,
    ProbeOrder, TrainMeasured, attempt_result, failed_begin, no_endpoint, no_random_bits,
};
use downburst_model::SiteName;
use downburst_session::{CircuitEnd, CircuitFault, HubInput, Ticket};
use serde_json::{Value, json};
use tokio::sync::watch as channel;

use super::door::Door;
use super::pair::Asked;
use super::{Circuit, Own, watch};
use crate::circuits::{Endpoint, Measured, measure};
use crate::hub::queries::answer;
use crate::hub::roster::Command;
use crate::hub::{Hub, lock};
use crate::lines::{Failure, LeaseLine, ProbeLine};

impl Hub {
    /// Applies the whole set: creates missing circuits and removes the surplus, whichever run of the node left it.
    pub(in crate::hub) async fn circuits(self: &Arc<Self>, lines: Vec<LeaseLine>) -> Result<Value, Failure> {
        let leases = lines.into_iter().map(Lease::read).collect::<Result<Vec<_>, _>>()?;
        let _turn = self.circuits.turn.lock().await;
        let told: Vec<u32> = leases.iter().map(Lease::number).collect();
        let surplus: Vec<u32> =
            lock(&self.circuits.held).keys().filter(|held| !told.contains(held)).copied().collect();
        let mut removed = surplus.clone();
        for lease in surplus {
            self.end_circuit(lease).await;
        }
        let mut standings = Vec::new();
        for lease in leases {
            standings.push(self.stand(lease).await);
        }
        self.circuits.is_told.store(true, Ordering::Relaxed);
        for (site, handle) in self.roster.sessions() {
            self.keep_circuits(&site, &handle);
        }
        let held: Vec<u32> = lock(&self.circuits.held).keys().copied().collect();
        let swept = self.circuits.keeper.keep_only(held).await.unwrap_or_default();
        removed.extend(swept.leases);
        removed.sort_unstable();
        removed.dedup();
        answer(&CircuitsAnswer { circuits: standings, removed })
    }

    pub(in crate::hub) async fn circuit_up(self: &Arc<Self>, line: LeaseLine) -> Result<Value, Failure> {
        let lease = Lease::read(line)?;
        let _turn = self.circuits.turn.lock().await;
        answer(&self.stand(lease).await)
    }

    pub(in crate::hub) async fn circuit_down(self: &Arc<Self>, lease: u32) -> Result<Value, Failure> {
        let _turn = self.circuits.turn.lock().await;
        let hub = &self.start.name;
        let hop = self.circuits.find(lease).map_or_else(|| hub.clone(), |circuit| circuit.held.hop(hub));
        let cleared = self.end_circuit(lease).await;
        let left = cleared.left.into_iter().map(|failure| LeftBehind {
            step: failure.step.to_string(),
            hop: hop.clone(),
            sentence: failure.sentence,
            remedy: failure.remedy,
        });
        Ok(json!({"removed": cleared.removed, "left": left.collect::<Vec<_>>()}))
    }

    pub(in crate::hub) async fn circuit_probe(self: &Arc<Self>, line: ProbeLine) -> Result<Value, Failure> {
        let circuit = self.circuits.find(line.lease).ok_or_else(|| line.not_up())?;
        let end = circuit.held.lease.address_of(&line.site).ok_or_else(|| line.not_up())?;
        let train = match line.order(&circuit.held.lease)? {
            ProbeOrder::Reach => None,
            ProbeOrder::Rate(train) => Some(train),
        };
        let Measured { reach, rate } = match &circuit.own {
            Some(own) => measure(&own.endpoint, &self.circuits.keeper, line.lease, end, train).await,
            None => self.measure_pair(&circuit, &line, train).await?,
        };
        let Some((train, (rate, others_bps))) = train.zip(rate) else {
            return answer(&line.reach_answer(reach));
        };
        let measured = TrainMeasured { round_trip_us: reach.round_trip_us, others_bps };
        answer(&line.rate_answer(train, rate, measured))
    }

    /// Removes a circuit after the end of its time.
    pub(super) async fn drop_circuit(self: &Arc<Self>, lease: u32) {
        let _turn = self.circuits.turn.lock().await;
        self.end_circuit(lease).await;
    }

    /// Removes all circuits: a node that does not run can't end them.
    pub(in crate::hub) async fn end_circuits(self: &Arc<Self>) {
        let held: Vec<u32> = lock(&self.circuits.held).keys().copied().collect();
        for lease in held {
            self.drop_circuit(lease).await;
        }
    }

    /// Creates a circuit, or changes it to match the lease.
    async fn stand(self: &Arc<Self>, lease: Lease) -> CircuitStanding {
        let began = Instant::now();
        let number = lease.number();
        let Attempt { state, ends } = self.attempt(lease).await;
        let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        CircuitStanding { lease: number, state, took_ms, ends }
    }

    async fn attempt(self: &Arc<Self>, lease: Lease) -> Attempt {
        let number = lease.number();
        let known = self.circuits.find(number);
        let circuit = match known.clone().filter(|circuit| circuit.held.lease == lease) {
            Some(circuit) => circuit,
            None => match self.begin_circuit(lease.clone(), known.as_ref()).await {
                Ok(circuit) => circuit,
                Err(fault) => {
                    if known.is_none() {
                        drop(self.end_circuit(number).await);
                    }
                    return failed_begin(&lease, &self.start.name, fault);
                }
            },
        };
        circuit.wait_for_ends(self).await;
        let attempt = attempt_result(&circuit.held, &lock(&circuit.ends));
        if attempt.state == CircuitWord::Failed {
            self.restore(known.filter(|former| former.held.lease != lease), &circuit).await;
        }
        self.look_at_paths();
        attempt
    }

    /// Ends a circuit that failed. The former one is restored; the caller gets the result of the attempt.
    async fn restore(self: &Arc<Self>, former: Option<Arc<Circuit>>, failed: &Arc<Circuit>) {
        let begun = match former {
            Some(former) => self.begin_circuit(former.held.lease.clone(), Some(failed)).await.ok(),
            None => None,
        };
        match begun {
            Some(former) => former.wait_for_ends(self).await,
            None => drop(self.end_circuit(failed.held.lease.number()).await),
        }
    }

    /// Creates this hub's end, if it has one, and offers the sites theirs. Of a known circuit, ends that are the same
    /// under both leases go on undisturbed.
    async fn begin_circuit(
        self: &Arc<Self>,
        lease: Lease,
        known: Option<&Arc<Circuit>>,
    ) -> Result<Arc<Circuit>, CircuitFault> {
        let secret = known.map_or_else(drawn, |known| Ok(known.held.secret.clone()))?;
        let (own, interface, shaped) = match lease.own_end() {
            Some(end) => {
                let (own, Raised { interface, shaped, .. }) = self.raise_own(end, &secret, known).await?;
                (Some(own), interface, shaped)
            }
            None => (None, String::new(), false),
        };
        let former = known.filter(|known| own.as_ref().is_some_and(|own| known.has_end(own)));
        let circuit = Arc::new(Circuit {
            held: HeldCircuit { lease, secret, interface, shaped },
            own,
            pair: std::sync::Mutex::default(),
            asked: Asked::default(),
            ends: former.map(|former| Arc::clone(&former.ends)).unwrap_or_default(),
            said: channel::Sender::new(0),
        });
        self.hold_circuit(&circuit, former, known);
        tokio::spawn(watch::watch(Arc::downgrade(self), Arc::downgrade(&circuit)));
        Ok(circuit)
    }

    /// Holds a circuit in the place of the known one, and tells the sites whose ends change.
    fn hold_circuit(
        &self,
        circuit: &Arc<Circuit>,
        former: Option<&Arc<Circuit>>,
        known: Option<&Arc<Circuit>>,
    ) {
        let lease = circuit.held.lease.number();
        lock(&self.circuits.held).insert(lease, Arc::clone(circuit));
        for site in circuit.held.parties() {
            let is_kept = former.is_some_and(|former| circuit.held.keeps(site, &former.held));
            // An end that failed gets another attempt.
            if is_kept && !matches!(lock(&circuit.ends).report(site), Some(Err(_))) {
                continue;
            }
            match self.roster.session(site) {
                Some(handle) => circuit.offer(site, &handle),
                None => circuit.forget_reports(site),
            }
        }
        let left = known.map(|known| circuit.held.left_by(&known.held)).unwrap_or_default();
        if !left.is_empty() {
            left.iter().for_each(|site| lock(&circuit.ends).left(site));
            // Products leave the circuit before its end is gone.
            self.look_at_paths();
            left.iter().for_each(|site| self.tell_end(site, lease));
        }
    }

    /// Creates this hub's end, or changes the one of the known circuit.
    async fn raise_own(
        self: &Arc<Self>,
        end: OwnEnd,
        secret: &Ticket,
        known: Option<&Arc<Circuit>>,
    ) -> Result<(Own, Raised), CircuitFault> {
        let (number, address) = (end.lease, end.address.0);
        let raised = self.circuits.keeper.raise(half(end, self.circuits.keeper.owner())).await?;
        let (index, interface) = (raised.index, &raised.interface);
        let known = known.and_then(|known| known.own.as_ref());
        let endpoint = match known.filter(|own| (own.index, own.address) == (index, address)) {
            Some(own) => Arc::clone(&own.endpoint),
            None => Endpoint::open(number, secret.0, address, interface)
                .map(Arc::new)
                .map_err(|error| no_endpoint(address, interface, &error))?,
        };
        let door = Door::open(self, address, known.map(|own| Arc::clone(&own.door))).await?;
        Ok((Own { index, address, endpoint, door }, raised))
    }

    async fn end_circuit(self: &Arc<Self>, lease: u32) -> Cleared {
        let circuit = lock(&self.circuits.held).remove(&lease);
        if let Some(circuit) = &circuit {
            self.look_at_paths();
            circuit.held.parties().for_each(|site| self.tell_end(site, lease));
        }
        self.circuits.keeper.clear(lease).await.unwrap_or_default()
    }

    /// Has a site remove its end of a circuit.
    fn tell_end(&self, site: &SiteName, lease: u32) {
        if let Some(handle) = self.roster.session(site) {
            let end = SessionInput::Pass(HubInput::EndCircuit(CircuitEnd { lease }));
            let _ = handle.commands.send(Command::Tell(end));
        }
    }
}

impl Circuit {
    /// True if this is the hub's end of the circuit, unchanged.
    fn has_end(&self, own: &Own) -> bool {
        self.own.as_ref().is_some_and(|former| Arc::ptr_eq(&former.endpoint, &own.endpoint))
    }

    /// Waits, for a limited time, until each connected site has reported the state of its end.
    async fn wait_for_ends(&self, hub: &Hub) {
        let mut said = self.said.subscribe();
        let open = || lock(&self.ends).are_awaited(|site| hub.roster.session(site).is_some());
        let all = async { while open() && said.changed().await.is_ok() {} };
        let _ = tokio::time::timeout(SITE_PATIENCE, all).await;
    }
}

/// The hub's end in terms of the host.
fn half(end: OwnEnd, owner: Owner) -> Half {
    let OwnEnd { lease, port, way, address, shape } = end;
    let way = match way {
        EndWay::Tunnel { vni, local, others, group } => Way::Tunnel { vni, local, others, group },
        EndWay::Tag(tag) => Way::Tag(tag),
        EndWay::Declared => Way::Declared,
    };
    let shape = shape.map(|shape| Shape {
        rate_bps: shape.rate_bps,
        soft: shape.soft,
        burst: shape.burst_bytes.map_or(Burst::Auto, Burst::Bytes),
        port_rate_bps: shape.port_rate_bps,
    });
    let place = Place::End(address.0, address.1);
    Half { owner, lease, port, way, place, shape }
}

fn drawn() -> Result<Ticket, CircuitFault> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).map_err(|error| no_random_bits(&error))?;
    Ok(Ticket(bits))
}

/// A site answers within a round trip plus the kernel's work; one that does not support circuits never does.
const SITE_PATIENCE: Duration = Duration::from_secs(3);
