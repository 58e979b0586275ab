//! Watches an established circuit: whether its ends answer, and when its time is over.
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::Circuit;
use crate::circuits::Trouble;
use crate::hub::{Hub, lock};

/// Pings the ends of a circuit until the hub drops it.
pub(super) async fn watch(hub: Weak<Hub>, circuit: Weak<Circuit>) {
    let mut tick = tokio::time::interval(PING_INTERVAL);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let (Some(hub), Some(circuit)) = (hub.upgrade(), circuit.upgrade()) else { return };
        look(&hub, &circuit);
        let lease = circuit.lease.line.lease;
        if circuit.lease.line.until_us.is_some_and(|until| until <= hub.clock.wall()) {
            hub.tell_circuit(&circuit, None, "removed", None);
            drop(circuit);
            hub.drop_circuit(lease).await;
            return;
        }
    }
}

fn look(hub: &Hub, circuit: &Arc<Circuit>) {
    for (site, address) in circuit.ends() {
        let heard = circuit.endpoint.heard(address);
        let alive = heard.is_some_and(|heard| heard.elapsed() < SILENCE);
        let (stands, changed) = {
            let mut ends = lock(&circuit.ends);
            let end = ends.entry(site.clone()).or_default();
            let stands = end.said == Some(Ok(()));
            let changed = stands && end.alive != alive;
            end.alive = stands && alive;
            (stands, changed)
        };
        if changed {
            let trouble = (!alive).then(|| silent(circuit, heard));
            hub.tell_circuit(circuit, Some(site), if alive { "up" } else { "down" }, trouble);
        }
        // A ping before the end is up would start an address resolution that is repeated only after a second.
        if stands {
            circuit.endpoint.ping(address);
        }
    }
}

fn silent(circuit: &Circuit, heard: Option<Instant>) -> Trouble {
    let since =
        heard.map_or_else(String::new, |heard| format!(" for {:.1} s", heard.elapsed().as_secs_f64()));
    Trouble {
        step: "route".to_owned(),
        sentence: format!("nothing came back through {}{since}", circuit.interface),
        remedy: "check that the ports of both ends are up and that the network between them carries UDP port 4789; \
            until then feeds take the routed path"
            .to_owned(),
    }
}

const PING_INTERVAL: Duration = Duration::from_millis(200);

/// Five answers in a row are missing.
const SILENCE: Duration = Duration::from_secs(1);
