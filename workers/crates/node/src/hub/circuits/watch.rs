//! Watches an established circuit: whether its ends answer, and when its time is over.
use std::sync::{Arc, Weak};
use std::time::Duration;

use downburst_hub::circuits::{EndChange, EndLook};
use downburst_model::Micros;

use super::Circuit;
use crate::hub::{Hub, lock};

/// Pings the ends of a circuit until the hub drops it, or holds that of another lease in its place.
pub(super) async fn watch(hub: Weak<Hub>, circuit: Weak<Circuit>) {
    let mut tick = tokio::time::interval(PING_INTERVAL);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let (Some(hub), Some(circuit)) = (hub.upgrade(), circuit.upgrade()) else { return };
        if !hub.circuits.is_current(&circuit) {
            return;
        }
        look(&hub, &circuit);
        if circuit.held.lease.is_over(hub.clock.wall()) {
            let lease = circuit.held.lease.number();
            hub.tell_circuit(&circuit, None, "removed", None);
            drop(circuit);
            hub.drop_circuit(lease).await;
            return;
        }
    }
}

fn look(hub: &Hub, circuit: &Arc<Circuit>) {
    let Some(own) = &circuit.own else { return hub.look_at_pair(circuit) };
    for (site, address) in circuit.held.sites() {
        let heard = own.endpoint.heard(address).map(|heard| heard.elapsed());
        let heard = heard.map(|since| Micros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX)));
        let EndLook { change, ping } = lock(&circuit.ends).look(site, heard, &circuit.held.interface);
        match change {
            Some(EndChange::Up) => hub.tell_circuit(circuit, Some(site), "up", None),
            Some(EndChange::Down(fault)) => hub.tell_circuit(circuit, Some(site), "down", Some(fault)),
            None => {}
        }
        if ping {
            own.endpoint.ping(address);
        }
    }
}

const PING_INTERVAL: Duration = Duration::from_millis(200);
