//! One thread per multicast leg that reads its group.
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use downburst_model::LegId;
use downburst_session::LegJoin;
use tokio::sync::mpsc;

use crate::udp::GroupReceiver;

/// Listens to a group until it is dropped.
pub(super) struct Group {
    stop: Arc<AtomicBool>,
}

/// Datagrams of one leg, as many as came together.
pub(super) struct Datagrams {
    pub(super) leg: LegId,
    pub(super) batch: Vec<Bytes>,
}

impl Group {
    /// Joins the leg's group on its interface, or on the one with address `fallback`; datagrams go to `sender`.
    pub(super) fn join(
        join: &LegJoin,
        fallback: &str,
        sender: mpsc::Sender<Datagrams>,
    ) -> Result<Self, String> {
        let sentence = |error: &dyn std::fmt::Display| {
            format!("the multicast group {} port {} can't be joined: {error}", join.group, join.port)
        };
        let address = join.group.parse().map_err(|error| sentence(&error))?;
        let interface = if join.interface.is_empty() { fallback } else { &join.interface };
        let receiver = GroupReceiver::join(SocketAddr::new(address, join.port), interface)
            .map_err(|error| sentence(&error))?;
        tracing::info!(
            leg = join.leg.0,
            group = join.group,
            interface,
            receive_buffer_bytes = receiver.receive_buffer_bytes(),
            "listening to a group"
        );
        let stop = Arc::new(AtomicBool::new(false));
        let (leg, stopped) = (join.leg, Arc::clone(&stop));
        std::thread::Builder::new()
            .name(format!("leg-{}", leg.0))
            .spawn(move || listen(leg, receiver, &stopped, &sender))
            .map_err(|error| sentence(&error))?;
        Ok(Self { stop })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn listen(leg: LegId, mut receiver: GroupReceiver, stop: &AtomicBool, sender: &mpsc::Sender<Datagrams>) {
    while !stop.load(Ordering::Relaxed) {
        let mut batch = Vec::new();
        if let Err(error) = receiver.receive(PATIENCE_MS, |datagram| batch.push(datagram)) {
            tracing::warn!(leg = leg.0, %error, "the group can't be read; the leg falls silent");
            return;
        }
        // Waiting here lets the socket's buffer take the burst; what overflows it is repaired.
        if !batch.is_empty() && sender.blocking_send(Datagrams { leg, batch }).is_err() {
            return;
        }
    }
}

const PATIENCE_MS: u16 = 200;
