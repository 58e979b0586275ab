//! One thread per multicast leg, which reads its group.
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc as std_mpsc};
use std::time::{Duration, Instant};

use downburst_model::{LegId, Micros};
use downburst_session::{LegJoin, Reception};
use downburst_site::{GroupRead, GroupReading, LegNews, reception};
use downburst_vcmtp::{LegKey, Opener, long_train_time};
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
    keys: std_mpsc::Sender<LegKey>,
}

/// A thread's reception of a group.
struct Listener {
    leg: LegId,
    receiver: GroupReceiver,
    reading: GroupReading,
    opener: Opener,
    keys: std_mpsc::Receiver<LegKey>,
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
        let (key_sender, keys) = std_mpsc::channel();
        let listener = Listener {
            leg: join.leg,
            receiver,
            reading: GroupReading::new(Micros(0), join.rate_bps, long_train_time(join.rate_bps)),
            opener: opener(join),
            keys,
            stop: Arc::clone(&stop),
        };
        std::thread::Builder::new()
            .name(format!("leg-{}", join.leg.0))
            .spawn(move || listener.run(reading.priority, &sender))
            .map_err(|error| sentence(&error))?;
        Ok((Self { stop, keys: key_sender }, reception))
    }

    /// Has the group's datagrams opened with this key, too.
    pub(super) fn use_key(&self, key: LegKey) {
        // The thread ends by itself if the group can't be read.
        let _ = self.keys.send(key);
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

/// As the session's receiver: the key in use, if it is not the next one, comes first.
fn opener(join: &LegJoin) -> Opener {
    let first = join.key_in_use.as_ref().unwrap_or(&join.key);
    let mut opener = Opener::new(join.leg, join.leg_epoch, first);
    opener.insert(&join.key);
    opener
}

impl Listener {
    fn run(mut self, priority: Option<u8>, sender: &mpsc::Sender<Found>) {
        let mut urgent = Urgent::begin(priority);
        let started = Instant::now();
        while !self.stop.load(Ordering::Relaxed) {
            let (waited, lengths) = match self.receive(started) {
                Ok(received) => received,
                Err(error) => {
                    tracing::warn!(leg = self.leg.0, %error, "the group can't be read; the leg falls silent");
                    return;
                }
            };
            urgent.waited(waited);
            let news = match self.reading.read(lengths.iter().copied(), micros(started.elapsed())) {
                GroupRead::Datagrams => LegNews::Datagrams(self.opener.finish()),
                GroupRead::Deaf => LegNews::Deaf(self.receiver.watch().reason()),
                GroupRead::Nothing => continue,
            };
            // During this wait the socket's buffer takes the burst; datagrams that overflow it are repaired.
            if sender.blocking_send(Found { leg: self.leg, news }).is_err() {
                return;
            }
        }
    }

    /// Waits for datagrams and opens them; returns the length of the wait alone, since work is no pause, and their
    /// lengths.
    fn receive(&mut self, started: Instant) -> std::io::Result<(Duration, Vec<usize>)> {
        let began = Instant::now();
        sleep(self.reading.pause());
        let is_readable = self.receiver.wait(PATIENCE_MS)?;
        if is_readable {
            sleep(self.reading.gather(micros(began.elapsed())));
        }
        let (waited, mut lengths) = (began.elapsed(), Vec::new());
        if is_readable {
            let Self { receiver, opener, keys, .. } = self;
            keys.try_iter().for_each(|key| opener.insert(&key));
            let now = micros(started.elapsed());
            receiver.receive(|datagram| {
                lengths.push(datagram.len());
                opener.take(now, datagram);
            })?;
        }
        Ok((waited, lengths))
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
