//! Jobs of circuits.
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use downburst_host::{Cleared, Raised};
use downburst_hub::SessionInput;
use downburst_model::SiteName;
use downburst_session::{CircuitEnd, CircuitFault, HubInput, Ticket};
use serde_json::{Value, json};
use tokio::sync::watch as channel;

use super::door::Door;
use super::lease::Lease;
use super::{Circuit, End, watch};
use crate::circuits::{Endpoint, LONGEST_TRAIN, RateOrder, RateProbe, Trouble};
use crate::hub::roster::Command;
use crate::hub::{Hub, lock};
use crate::lines::{Direction, EndStanding, Failure, LeaseLine, ProbeKind, ProbeLine, Standing};

impl Hub {
    /// Applies the whole set: creates missing circuits and removes the surplus, whichever run of the node left it.
    pub(in crate::hub) async fn circuits(self: &Arc<Self>, lines: Vec<LeaseLine>) -> Result<Value, Failure> {
        let leases = lines.into_iter().map(Lease::read).collect::<Result<Vec<_>, _>>()?;
        let _turn = self.circuits.turn.lock().await;
        let told: Vec<u32> = leases.iter().map(|lease| lease.line.lease).collect();
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
        let held: Vec<u32> = lock(&self.circuits.held).keys().copied().collect();
        let swept = self.circuits.keeper.keep_only(held).await.unwrap_or_default();
        removed.extend(swept.leases);
        removed.sort_unstable();
        removed.dedup();
        Ok(json!({"circuits": standings, "removed": removed}))
    }

    pub(in crate::hub) async fn circuit_up(self: &Arc<Self>, line: LeaseLine) -> Result<Value, Failure> {
        let lease = Lease::read(line)?;
        let _turn = self.circuits.turn.lock().await;
        let standing = self.stand(lease).await;
        serde_json::to_value(standing).map_err(|error| Failure::new("io", error.to_string()))
    }

    pub(in crate::hub) async fn circuit_down(self: &Arc<Self>, lease: u32) -> Result<Value, Failure> {
        let _turn = self.circuits.turn.lock().await;
        let hop =
            self.circuits.find(lease).map_or_else(|| self.start.name.clone(), |circuit| circuit.hop(self));
        let cleared = self.end_circuit(lease).await;
        let left: Vec<Value> = cleared
            .left
            .iter()
            .map(|failure| {
                json!({
                    "step": failure.step.to_string(),
                    "hop": hop,
                    "sentence": failure.sentence,
                    "remedy": failure.remedy,
                })
            })
            .collect();
        Ok(json!({"removed": cleared.removed, "left": left}))
    }

    pub(in crate::hub) async fn circuit_probe(self: &Arc<Self>, line: ProbeLine) -> Result<Value, Failure> {
        let ProbeLine { lease, site, kind, rate_bps, duration_ms, direction } = line;
        let not_up =
            || Failure::new("not-up", format!("lease {lease} is not up at {site}; bring it up first"));
        let circuit = self.circuits.find(lease).ok_or_else(not_up)?;
        let end = circuit.lease.address_of(&site).ok_or_else(not_up)?;
        if kind == ProbeKind::Reach {
            let mut probe = json!(circuit.endpoint.reach(end).await);
            put(&mut probe, &[("kind", json!("reach")), ("site", json!(site))]);
            return Ok(json!({"probe": probe}));
        }
        if rate_bps == 0 || duration_ms == 0 {
            return Err(Failure::new("bad-request", "a probe of a rate needs rate_bps and duration_ms"));
        }
        let out = direction != Some(Direction::In);
        let duration = Duration::from_millis(duration_ms).min(LONGEST_TRAIN);
        let order = RateOrder { rate_bps, duration, out, frame_bytes: circuit.lease.probe_frame_bytes() };
        let reach = circuit.endpoint.reach(end).await;
        let (began, before) = (Instant::now(), self.circuits.carried(lease).await);
        let rate = circuit.endpoint.rate(end, order).await;
        let rate = rate.unwrap_or_else(|| RateProbe::unanswered(order));
        let (took, after) = (began.elapsed(), self.circuits.carried(lease).await);
        let carried = if out { after.0.saturating_sub(before.0) } else { after.1.saturating_sub(before.1) };
        let mut probe = json!(rate);
        let way = if out { Direction::Out } else { Direction::In };
        put(
            &mut probe,
            &[
                ("kind", json!("rate")),
                ("site", json!(site)),
                ("direction", json!(way)),
                ("round_trip_us", json!(reach.round_trip_us)),
                ("others_bps", json!(rate.others_bps(carried, took, out))),
            ],
        );
        Ok(json!({"probe": probe}))
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
    async fn stand(self: &Arc<Self>, lease: Lease) -> Standing {
        let began = Instant::now();
        let took_ms = |began: Instant| u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let number = lease.line.lease;
        let known = self.circuits.find(number);
        let circuit = match known.clone().filter(|circuit| circuit.lease == lease) {
            Some(circuit) => circuit,
            None => match self.begin_circuit(lease.clone(), known.as_ref()).await {
                Ok(circuit) => circuit,
                Err(trouble) => {
                    if known.is_none() {
                        drop(self.end_circuit(number).await);
                    }
                    let hop = format!("{} at {}", lease.own.end, self.start.name);
                    let own = failed(lease.own.end.clone(), None, hop, trouble);
                    let others =
                        lease.others.iter().map(|(site, end, _)| stood(end.end.clone(), Some(site), "away"));
                    let ends = std::iter::once(own).chain(others).collect();
                    return Standing { lease: number, state: "failed", took_ms: took_ms(began), ends };
                }
            },
        };
        circuit.wait_for_ends(self).await;
        let ends = self.ends_of(&circuit);
        let state = match () {
            () if ends.iter().any(|end| end.state == "failed") => "failed",
            () if ends.iter().any(|end| end.state == "away") => "partial",
            () => "up",
        };
        if state == "failed" {
            match known.filter(|former| former.lease != lease) {
                // The former circuit is restored; the caller gets the result of the attempt.
                Some(former) => match self.begin_circuit(former.lease.clone(), Some(&circuit)).await {
                    Ok(former) => former.wait_for_ends(self).await,
                    Err(_) => drop(self.end_circuit(number).await),
                },
                None => drop(self.end_circuit(number).await),
            }
        }
        self.look_at_paths();
        Standing { lease: number, state, took_ms: took_ms(began), ends }
    }

    /// Creates this hub's end and offers the sites theirs.
    async fn begin_circuit(
        self: &Arc<Self>,
        lease: Lease,
        known: Option<&Arc<Circuit>>,
    ) -> Result<Arc<Circuit>, Trouble> {
        let half = lease.half(self.circuits.keeper.owner());
        let Raised { interface, shaped, .. } = self.circuits.keeper.raise(half).await?;
        let number = lease.line.lease;
        let secret = known.map_or_else(drawn, |known| Ok(known.secret.clone()))?;
        let endpoint =
            Endpoint::open(number, secret.0, lease.address.0, &interface).map_err(|error| Trouble {
                step: "address".to_owned(),
                sentence: format!("the node can't listen for probes at {}: {error}", lease.address.0),
                remedy: format!("free UDP port 7372 at {} on {interface}", lease.address.0),
            })?;
        let door = Door::open(self, lease.address.0, known.map(|known| Arc::clone(&known.door))).await?;
        let circuit = Arc::new(Circuit {
            lease,
            secret,
            endpoint,
            door,
            interface,
            shaped,
            ends: std::sync::Mutex::default(),
            said: channel::Sender::new(0),
        });
        lock(&self.circuits.held).insert(number, Arc::clone(&circuit));
        for (site, _) in circuit.ends() {
            match self.roster.session(site) {
                Some(handle) => circuit.offer(site, &handle),
                None => drop(lock(&circuit.ends).insert(site.clone(), End::default())),
            }
        }
        tokio::spawn(watch::watch(Arc::downgrade(self), Arc::downgrade(&circuit)));
        Ok(circuit)
    }

    async fn end_circuit(self: &Arc<Self>, lease: u32) -> Cleared {
        let circuit = lock(&self.circuits.held).remove(&lease);
        if let Some(circuit) = &circuit {
            self.look_at_paths();
            for (site, _) in circuit.ends() {
                if let Some(handle) = self.roster.session(site) {
                    let _ = handle
                        .commands
                        .send(Command::Tell(SessionInput::Pass(HubInput::EndCircuit(CircuitEnd { lease }))));
                }
            }
        }
        self.circuits.keeper.clear(lease).await.unwrap_or_default()
    }

    fn ends_of(&self, circuit: &Circuit) -> Vec<EndStanding> {
        let said: BTreeMap<SiteName, End> = lock(&circuit.ends).clone();
        let others = circuit.lease.others.iter().map(|(site, end, _)| {
            match said.get(site).and_then(|end| end.said.clone()) {
                Some(Ok(())) => stood(end.end.clone(), Some(site), "up"),
                Some(Err(CircuitFault { step, sentence, remedy })) => {
                    let trouble = Trouble { step, sentence, remedy };
                    failed(end.end.clone(), Some(site), circuit.hop_of(site), trouble)
                }
                None => stood(end.end.clone(), Some(site), "away"),
            }
        });
        std::iter::once(stood(circuit.lease.own.end.clone(), None, "up")).chain(others).collect()
    }
}

impl Circuit {
    /// Waits, for a limited time, until each connected site has reported the state of its end.
    async fn wait_for_ends(&self, hub: &Hub) {
        let mut said = self.said.subscribe();
        let open = || {
            let ends = lock(&self.ends);
            ends.iter().any(|(site, end)| end.said.is_none() && hub.roster.session(site).is_some())
        };
        let all = async { while open() && said.changed().await.is_ok() {} };
        let _ = tokio::time::timeout(SITE_PATIENCE, all).await;
    }
}

fn drawn() -> Result<Ticket, Trouble> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).map_err(|error| Trouble {
        step: "kernel".to_owned(),
        sentence: format!("the host gives no random bits: {error}"),
        remedy: "check the host's /dev/urandom".to_owned(),
    })?;
    Ok(Ticket(bits))
}

fn stood(end: String, site: Option<&SiteName>, state: &'static str) -> EndStanding {
    EndStanding { end, site: site.cloned(), state, step: None, hop: None, sentence: None, remedy: None }
}

fn failed(end: String, site: Option<&SiteName>, hop: String, trouble: Trouble) -> EndStanding {
    let Trouble { step, sentence, remedy } = trouble;
    let (step, hop) = (Some(step), Some(hop));
    EndStanding { step, hop, sentence: Some(sentence), remedy: Some(remedy), ..stood(end, site, "failed") }
}

fn put(value: &mut Value, fields: &[(&str, Value)]) {
    if let Some(object) = value.as_object_mut() {
        object.extend(fields.iter().map(|(name, field)| ((*name).to_owned(), field.clone())));
    }
}

/// A site answers within a round trip plus the kernel's work; one that does not support circuits never does.
const SITE_PATIENCE: Duration = Duration::from_secs(3);
