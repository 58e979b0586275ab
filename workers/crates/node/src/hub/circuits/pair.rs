//! Circuits between two sites: the near one watches and measures them on the hub's orders.
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use downburst_hub::SessionInput;
use downburst_hub::circuits::{EndChange, PairLook, Train};
use downburst_model::SiteName;
use downburst_session::{CircuitFault, CircuitProbe, CircuitProbed, CircuitTrain, HubInput};
use tokio::sync::oneshot;

use super::Circuit;
use crate::circuits::Measured;
use crate::hub::roster::Command;
use crate::hub::{Hub, lock};
use crate::lines::{Failure, ProbeLine};

/// Orders to measure a circuit, until the site has answered.
#[derive(Debug, Default)]
pub(super) struct Asked {
    next_run: AtomicU32,
    waiting: Mutex<BTreeMap<u32, oneshot::Sender<CircuitProbed>>>,
}

impl Asked {
    fn begin(&self) -> (u32, oneshot::Receiver<CircuitProbed>) {
        let run = self.next_run.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        lock(&self.waiting).insert(run, sender);
        (run, receiver)
    }

    fn give_up(&self, run: u32) {
        lock(&self.waiting).remove(&run);
    }

    /// Passes an answer on; a late one is dropped.
    fn answered(&self, probed: CircuitProbed) {
        if let Some(waiting) = lock(&self.waiting).remove(&probed.run) {
            let _ = waiting.send(probed);
        }
    }
}

impl Hub {
    /// Handles the near site's report on the far end of a circuit.
    pub(in crate::hub) fn circuit_heard(&self, site: &SiteName, lease: u32, said: Result<(), CircuitFault>) {
        if let Some(circuit) = self.circuits.find(lease).filter(|circuit| circuit.is_watched_by(site)) {
            lock(&circuit.pair).heard(said);
            self.look_at_pair(&circuit);
        }
    }

    /// Handles the near site's measurement of a circuit.
    pub(in crate::hub) fn circuit_probed(&self, site: &SiteName, probed: CircuitProbed) {
        if let Some(circuit) = self.circuits.find(probed.lease).filter(|circuit| circuit.is_watched_by(site))
        {
            circuit.asked.answered(probed);
        }
    }

    /// Tells the agent if a circuit between two sites carries packets from now on, or no more.
    pub(super) fn look_at_pair(&self, circuit: &Circuit) {
        let Some((near, far)) = circuit.held.lease.pair() else { return };
        let sites = [near, far].map(|site| (site, self.roster.session(site).is_some()));
        let change = {
            let ends = lock(&circuit.ends);
            lock(&circuit.pair).look(self.clock.monotonic(), PairLook { sites, ends: &ends })
        };
        match change {
            Some((site, EndChange::Up)) => self.tell_circuit(circuit, Some(&site), "up", None),
            Some((site, EndChange::Down(fault))) => {
                self.tell_circuit(circuit, Some(&site), "down", Some(fault));
            }
            None => {}
        }
    }

    /// Has the near site of a circuit measure it.
    pub(super) async fn measure_pair(
        &self,
        circuit: &Circuit,
        line: &ProbeLine,
        train: Option<Train>,
    ) -> Result<Measured, Failure> {
        let (near, _) =
            circuit.held.lease.pair().filter(|(_, far)| **far == line.site).ok_or_else(|| line.not_up())?;
        let away =
            || Failure::new("not-up", format!("{near} is not connected, and it is to probe its circuit"));
        let handle = self.roster.session(near).ok_or_else(away)?;
        let (run, answer) = circuit.asked.begin();
        let probe = CircuitProbe { lease: line.lease, run, train: train.map(ordered) };
        let order = SessionInput::Pass(HubInput::ProbeCircuit(probe));
        let _ = handle.commands.send(Command::Tell(order));
        let probed = tokio::time::timeout(PROBE_PATIENCE, answer).await;
        circuit.asked.give_up(run);
        let mute = || {
            let sentence = format!(
                "{near} does not answer an order to probe its circuit; bring its node to the release of this one"
            );
            Failure::new("not-answered", sentence)
        };
        let probed = probed.ok().and_then(Result::ok).ok_or_else(mute)?;
        Measured::told(probed, train).ok_or_else(|| line.not_up())
    }
}

impl Circuit {
    fn is_watched_by(&self, site: &SiteName) -> bool {
        self.held.lease.pair().is_some_and(|(near, _)| near == site)
    }
}

fn ordered(Train { rate_bps, duration_ms, out, frame_bytes }: Train) -> CircuitTrain {
    let duration_ms = u32::try_from(duration_ms).unwrap_or(u32::MAX).clamp(1, LONGEST_TRAIN_MS);
    CircuitTrain { rate_bps, duration_ms, out, frame_bytes }
}

/// The longest train takes 4 s on a slow host, its report 2 s, and the reach before it 2 s.
const PROBE_PATIENCE: Duration = Duration::from_secs(10);
const LONGEST_TRAIN_MS: u32 = 2_000;
