//! One thread per multicast leg, which reads its group.
mod account;
mod way;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc as std_mpsc};
use std::time::{Duration, Instant};

use downburst_model::{LegId, Micros};
use downburst_session::{LegJoin, ReceiveBuffer, Reception};
use downburst_site::{GroupRead, GroupReading, LegNews, Spinning, reception};
use downburst_vcmtp::{Datagram, LegKey, Opener, long_train_time};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::Shared;
use super::priority::Urgent;
use crate::udp::{GroupReceiver, RECEIVE_BUFFER_BYTES, needed_buffer_bytes, receive_limit_bytes};
use account::Account;
use way::{Way, interface_of};

/// The way in which this site's host reads groups.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// Whether the kernel, if it can, may pass several datagrams as one (UDP GRO).
    pub offload: bool,
    /// The real-time priority (`SCHED_RR`, 1 to 99) of the threads that read groups; `None`: the default priority.
    pub priority: Option<u8>,
    /// The receive buffer to request for each group, in bytes; `None`: as large as any leg needs.
    pub buffer_bytes: Option<usize>,
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
    way: Way,
    reading: GroupReading,
    /// Of a feed with a deadline: the thread gathers nothing, and polls before it blocks.
    spinning: Option<Spinning>,
    opener: Opener,
    keys: std_mpsc::Receiver<LegKey>,
    stop: Arc<AtomicBool>,
    account: Account,
    /// Datagrams that the session's thread had no time for.
    kept: Vec<Datagram>,
    kept_reads: usize,
    is_urgent: bool,
}

/// The findings of a leg's thread.
pub(in crate::site) struct Found {
    pub(in crate::site) leg: LegId,
    pub(in crate::site) news: LegNews,
}

impl Group {
    /// Joins the leg's group on its interface, or on the one with address `fallback`; findings go to the sender of
    /// `shared`. `has_deadline`: the feed has one, so that each datagram is read as soon as it comes.
    pub(super) fn join(
        join: &LegJoin,
        fallback: &str,
        has_deadline: bool,
        shared: &Shared,
    ) -> Result<(Self, Reception), String> {
        let Shared { reading, readings, found } = shared.clone();
        let sentence = |error: &dyn std::fmt::Display| {
            let LegJoin { group, port, .. } = join;
            match &join.pass {
                Some(_) => format!("the leg of the relay at {group} port {port} can't be received: {error}"),
                None => format!("the multicast group {group} port {port} can't be joined: {error}"),
            }
        };
        let (receiver, way) = way::open(join, fallback, reading).map_err(|error| sentence(&error))?;
        let buffer = ReceiveBuffer {
            asked_bytes: reading.asked_bytes() as u64,
            granted_bytes: receiver.receive_buffer_bytes() as u64,
            needed_bytes: needed_buffer_bytes(join.rate_bps),
            limit_bytes: receive_limit_bytes(),
        };
        let reception = reception(join, &buffer, receiver.path().to_owned());
        log_reception(join, interface_of(join, fallback), &way, &reception);
        let stop = Arc::new(AtomicBool::new(false));
        let (key_sender, keys) = std_mpsc::channel();
        let listener = Listener {
            leg: join.leg,
            receiver,
            way,
            reading: GroupReading::new(Micros(0), join.rate_bps, long_train_time(join.rate_bps)),
            spinning: has_deadline.then(Spinning::default),
            opener: opener(join),
            keys,
            stop: Arc::clone(&stop),
            account: Account::open(join, buffer, reading.priority, &readings),
            kept: Vec::new(),
            kept_reads: 0,
            is_urgent: reading.priority.is_some(),
        };
        std::thread::Builder::new()
            .name(format!("leg-{}", join.leg.0))
            .spawn(move || listener.run(reading.priority, &found))
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
        Self { offload: true, priority: None, buffer_bytes: None }
    }
}

impl Reading {
    fn asked_bytes(self) -> usize {
        self.buffer_bytes.unwrap_or(RECEIVE_BUFFER_BYTES)
    }
}

fn log_reception(join: &LegJoin, interface: &str, way: &Way, reception: &Reception) {
    tracing::info!(
        leg = join.leg.0,
        group = join.group,
        source = join.source,
        interface,
        way = way.name(),
        receive_buffer_bytes = reception.buffer_bytes,
        path = reception.path,
        "listening to a group"
    );
    if let Some(advice) = &reception.advice {
        tracing::warn!(leg = join.leg.0, "{advice}");
    }
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
            let now = micros(started.elapsed());
            self.announce(now);
            let is_due = self.account.is_due(now);
            let (waited, lengths) = match self.receive(started, is_due) {
                Ok(received) => received,
                Err(error) => {
                    tracing::warn!(leg = self.leg.0, %error, "the group can't be read; the leg falls silent");
                    return;
                }
            };
            urgent.waited(waited);
            let now = micros(started.elapsed());
            let account = is_due.then(|| self.account.news(now, urgent.standing())).flatten();
            let heard = match self.reading.read(lengths.iter().copied(), now) {
                GroupRead::Datagrams => {
                    let batch = self.opener.finish();
                    self.account.arrived(now, &batch, &lengths);
                    Some(LegNews::Datagrams(batch))
                }
                GroupRead::Deaf => Some(LegNews::Deaf(self.reason())),
                GroupRead::Nothing => (!self.kept.is_empty()).then(|| LegNews::Datagrams(Vec::new())),
            };
            let mut news = heard.into_iter().chain(account.map(LegNews::Read));
            if !news.all(|news| self.hand_over(news, sender)) {
                return;
            }
        }
    }

    /// Hands news to the session's thread; false if it is gone. An urgent reader keeps datagrams for which that thread
    /// has no time, up to [`KEPT_READS`], and reads on.
    fn hand_over(&mut self, news: LegNews, sender: &mpsc::Sender<Found>) -> bool {
        let news = match news {
            LegNews::Datagrams(batch) => {
                self.kept.extend(batch);
                LegNews::Datagrams(std::mem::take(&mut self.kept))
            }
            news => news,
        };
        let found = match sender.try_send(Found { leg: self.leg, news }) {
            Ok(()) => {
                self.kept_reads = 0;
                return true;
            }
            Err(TrySendError::Closed(_)) => return false,
            Err(TrySendError::Full(found)) => found,
        };
        match found.news {
            LegNews::Datagrams(batch) if self.is_urgent && self.kept_reads < KEPT_READS => {
                self.kept = batch;
                self.kept_reads += 1;
                true
            }
            // During this wait the socket's buffer takes the burst; datagrams that overflow it are repaired.
            news => sender.blocking_send(Found { leg: self.leg, news }).is_ok(),
        }
    }

    /// Sends the messages to a relay that are due. One to which no route leads is silent.
    fn announce(&mut self, now: Micros) {
        while let Some((to, message)) = self.way.poll(now) {
            match to.map_or(Ok(false), |relay| self.receiver.turn_to(relay)) {
                Ok(true) => self.account.reopened(),
                Ok(false) => {}
                Err(_) => continue,
            }
            self.receiver.tell_relay(&message);
        }
    }

    /// One sentence on why nothing is received.
    fn reason(&self) -> String {
        self.way.reason().or_else(|| self.receiver.reason()).unwrap_or_default()
    }

    /// The longest wait: messages to a relay are due in the meantime.
    fn patience_ms(&self, now: Micros) -> u16 {
        let due = self.way.deadline().map(|deadline| deadline.since(now).0.div_ceil(1_000));
        let most = if self.kept.is_empty() { PATIENCE_MS } else { KEPT_PATIENCE_MS };
        due.and_then(|due_ms| u16::try_from(due_ms).ok()).map_or(most, |due_ms| due_ms.min(most))
    }

    /// Waits for datagrams, and for those that follow the first one unless the feed has a deadline; true if there are
    /// any.
    fn wait(&mut self, began: Instant, started: Instant) -> io::Result<bool> {
        let patience_ms = self.patience_ms(micros(started.elapsed()));
        if let Some(spinning) = &self.spinning {
            return Ok(polled(&self.receiver, spinning.poll_ns())? || self.receiver.wait(patience_ms)?);
        }
        sleep(self.reading.pause());
        let is_readable = self.receiver.wait(patience_ms)?;
        if is_readable {
            sleep(self.reading.gather(micros(began.elapsed())));
        }
        Ok(is_readable)
    }

    /// Waits for datagrams and opens them; returns the length of the wait alone, since work is no pause, and their
    /// lengths. `counts`: reads the counter of dropped ones, too.
    fn receive(&mut self, started: Instant, counts: bool) -> io::Result<(Duration, Vec<usize>)> {
        let began = Instant::now();
        let is_readable = self.wait(began, started)?;
        let (waited, mut lengths) = (began.elapsed(), Vec::new());
        if is_readable {
            let Self { receiver, opener, keys, way, account, .. } = self;
            keys.try_iter().for_each(|key| opener.insert(&key));
            let now = micros(started.elapsed());
            let mut take = |datagram: &mut [u8]| {
                if let Some(datagram) = way.datagram(now, datagram) {
                    lengths.push(datagram.len());
                    opener.take(now, datagram);
                }
            };
            if counts {
                account.counted(receiver.receive_counted(&mut take)?);
            }
            receiver.receive(take)?;
        } else if counts {
            self.account.counted(self.receiver.drops());
        }
        if let Some(spinning) = &mut self.spinning {
            spinning.read(lengths.len(), nanos(started.elapsed()));
        }
        Ok((waited, lengths))
    }
}

/// A relay does not have to wait for the reception to expire.
impl Drop for Listener {
    fn drop(&mut self) {
        self.way.leave().into_iter().for_each(|message| self.receiver.tell_relay(&message));
    }
}

/// Polls for so long; true as soon as there are datagrams.
fn polled(receiver: &GroupReceiver, length_ns: Option<u64>) -> io::Result<bool> {
    let Some(length_ns) = length_ns else { return Ok(false) };
    let (began, length) = (Instant::now(), Duration::from_nanos(length_ns));
    while began.elapsed() < length {
        if receiver.wait(0)? {
            return Ok(true);
        }
        std::hint::spin_loop();
    }
    Ok(false)
}

fn sleep(pause: Option<Micros>) {
    if let Some(pause) = pause {
        std::thread::sleep(Duration::from_micros(pause.0));
    }
}

fn micros(length: Duration) -> Micros {
    Micros(u64::try_from(length.as_micros()).unwrap_or(u64::MAX))
}

fn nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

const PATIENCE_MS: u16 = 200;
/// While datagrams are kept.
const KEPT_PATIENCE_MS: u16 = 2;
/// The most reads whose datagrams are kept. A read takes about a train: 16 MB at most, as in the socket's buffer.
const KEPT_READS: usize = 256;

#[cfg(test)]
mod spacing;
