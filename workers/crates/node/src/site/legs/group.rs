//! One thread per multicast leg, which reads its group.
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use downburst_model::{LegId, Micros};
use downburst_session::{LegJoin, Reception};
use downburst_site::{GroupRead, GroupReading, LegNews, reception};
use downburst_vcmtp::long_train_time;
use tokio::sync::mpsc;

use super::priority::Urgent;
use crate::udp::{GroupReceiver, Membership, needed_buffer_bytes};

/// The way in which this site's host reads groups.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// Whether the kernel, if it can, may pass several datagrams as one (UDP GRO).
    pub offload: bool,
    /// The real-time priority (`SCHED_RR`, 1 to 99) of the threads that read groups; `None`: the default priority.
    pub priority: Option<u8>,
}

/// Receives a group until it is dropped.
pub(super) struct Group {
    stop: Arc<AtomicBool>,
}

/// The findings of a leg's thread.
pub(in crate::site) struct Found {
    pub(in crate::site) leg: LegId,
    pub(in crate::site) news: LegNews,
}

impl Group {
    /// Joins the leg's group on its interface, or on the one with address `fallback`; findings go to `sender`.
    pub(super) fn join(
        join: &LegJoin,
        fallback: &str,
        reading: Reading,
        sender: mpsc::Sender<Found>,
    ) -> Result<(Self, Reception), String> {
        let sentence = |error: &dyn std::fmt::Display| {
            format!("the multicast group {} port {} can't be joined: {error}", join.group, join.port)
        };
        let membership = membership(join, fallback, reading).map_err(|error| sentence(&error))?;
        let receiver = GroupReceiver::join(&membership).map_err(|error| sentence(&error))?;
        let buffer_bytes = receiver.receive_buffer_bytes() as u64;
        let needed_bytes = needed_buffer_bytes(join.rate_bps);
        let reception = reception(join, buffer_bytes, needed_bytes, receiver.path().to_owned());
        tracing::info!(
            leg = join.leg.0,
            group = join.group,
            source = join.source,
            interface = membership.interface,
            receive_buffer_bytes = reception.buffer_bytes,
            path = reception.path,
            "listening to a group"
        );
        if let Some(advice) = &reception.advice {
            tracing::warn!(leg = join.leg.0, "{advice}");
        }
        let stop = Arc::new(AtomicBool::new(false));
        let (leg, stopped) = (join.leg, Arc::clone(&stop));
        let group_reading = GroupReading::new(Micros(0), join.rate_bps, long_train_time(join.rate_bps));
        std::thread::Builder::new()
            .name(format!("leg-{}", leg.0))
            .spawn(move || listen(leg, (receiver, group_reading), &stopped, reading.priority, &sender))
            .map_err(|error| sentence(&error))?;
        Ok((Self { stop }, reception))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Default for Reading {
    fn default() -> Self {
        Self { offload: true, priority: None }
    }
}

fn membership(
    join: &LegJoin,
    fallback: &str,
    reading: Reading,
) -> Result<Membership, std::net::AddrParseError> {
    let interface = if join.interface.is_empty() { fallback } else { &join.interface };
    Ok(Membership {
        group: SocketAddr::new(join.group.parse()?, join.port),
        source: join.source.as_deref().map(str::parse).transpose()?,
        interface: interface.to_owned(),
        offload: reading.offload,
    })
}

fn listen(
    leg: LegId,
    (mut receiver, mut reading): (GroupReceiver, GroupReading),
    stop: &AtomicBool,
    priority: Option<u8>,
    sender: &mpsc::Sender<Found>,
) {
    let mut urgent = Urgent::begin(priority);
    let started = Instant::now();
    let now = || micros(started.elapsed());
    while !stop.load(Ordering::Relaxed) {
        let mut batch = Vec::new();
        let began = Instant::now();
        sleep(reading.pause());
        let received = receiver.wait(PATIENCE_MS).and_then(|is_readable| {
            if is_readable {
                sleep(reading.gather(micros(began.elapsed())));
                receiver.receive(|datagram| batch.push(datagram))?;
            }
            Ok(())
        });
        if let Err(error) = received {
            tracing::warn!(leg = leg.0, %error, "the group can't be read; the leg falls silent");
            return;
        }
        urgent.waited(began.elapsed());
        let news = match reading.read(batch.iter().map(BytesMut::len), now()) {
            GroupRead::Datagrams => LegNews::Datagrams(batch),
            GroupRead::Deaf => LegNews::Deaf(receiver.watch().reason()),
            GroupRead::Nothing => continue,
        };
        // During this wait the socket's buffer takes the burst; datagrams that overflow it are repaired.
        if sender.blocking_send(Found { leg, news }).is_err() {
            return;
        }
    }
}

fn sleep(pause: Option<Micros>) {
    if let Some(pause) = pause {
        std::thread::sleep(Duration::from_micros(pause.0));
    }
}

fn micros(length: Duration) -> Micros {
    Micros(u64::try_from(length.as_micros()).unwrap_or(u64::MAX))
}

const PATIENCE_MS: u16 = 200;
