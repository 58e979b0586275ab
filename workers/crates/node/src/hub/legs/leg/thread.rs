//! One thread per multicast leg: reads the feed's log for the machine, and sends the machine's packets to the group.
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use crossbeam_channel::{Receiver, RecvTimeoutError};
use downburst_hub::{LegInput, LegOutput, LegSessions, LogRange, SessionInput};
use downburst_log::ProductLog as _;
use downburst_model::{LegId, Machine as _, Micros, Sequence, SiteName};
use downburst_session::{HubInput, NextKey};
use downburst_vcmtp::{LegKey, SenderStats};

use super::outlet::LegOutlet;
use super::{Shared, keys};
use crate::hub::feeds::Feed;
use crate::hub::feeds::wake_ups::LogListener;
use crate::hub::legs::channels::Channel;
use crate::hub::roster::{self, Repair};
use crate::hub::{Hub, lock};

type Machine = downburst_hub::Leg<Arc<Channel>>;

/// An input for the machine; `None` ends the leg.
pub(in crate::hub) type Command = Option<LegInput<Arc<Channel>>>;

pub(in crate::hub) struct Thread {
    machine: Machine,
    hub: Weak<Hub>,
    feed: Arc<Feed>,
    leg: LegId,
    leg_epoch: u64,
    listener: LogListener,
    outlet: LegOutlet,
    shared: Arc<Shared>,
    told: SenderStats,
}

impl Thread {
    pub(in crate::hub) fn new(
        hub: &Arc<Hub>,
        feed: &Arc<Feed>,
        (leg, leg_epoch): (LegId, u64),
        machine: Machine,
        (listener, outlet): (LogListener, LegOutlet),
        shared: Arc<Shared>,
    ) -> Self {
        let (hub, feed) = (Arc::downgrade(hub), Arc::clone(feed));
        Self { machine, hub, feed, leg, leg_epoch, listener, outlet, shared, told: SenderStats::default() }
    }

    pub(in crate::hub) fn run(mut self, commands: &Receiver<Command>, wakes: &Receiver<()>) {
        while let Some(hub) = self.hub.upgrade() {
            // Before the head is read: a later append wakes the thread again.
            self.listener.take();
            let deadline = self.feed.deadline_us().map(Micros);
            self.machine.handle(hub.clock.now(), LegInput::Deadline(deadline));
            self.machine.handle(hub.clock.now(), LegInput::Head(self.feed.log.head()));
            self.carry_out(&hub);
            self.publish(&hub);
            let patience = self.patience(&hub);
            drop(hub);
            let command = crossbeam_channel::select! {
                recv(commands) -> command => command.map_err(|_| RecvTimeoutError::Disconnected),
                recv(wakes) -> _ => Err(RecvTimeoutError::Timeout),
                default(patience) => Err(RecvTimeoutError::Timeout),
            };
            match command {
                Ok(Some(input)) => {
                    let Some(hub) = self.hub.upgrade() else { return };
                    self.machine.handle(hub.clock.now(), input);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Ok(None) | Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn carry_out(&mut self, hub: &Hub) {
        let now = hub.clock.now();
        while let Some(output) = self.machine.poll(now) {
            match output {
                LegOutput::Datagram(datagram) => {
                    let sent = self.outlet.push(datagram);
                    self.note(hub, sent);
                }
                LegOutput::Read(range) => self.read_log(hub, range),
                LegOutput::FirstByte(sequence) => lock(&self.shared.first_bytes).insert(sequence, now.wall),
                LegOutput::Sent(sequence) => self.sent(hub, sequence),
                LegOutput::Repair { session, channel, packet, payload } => {
                    self.repair(hub, session, channel, (packet, payload));
                }
                LegOutput::Gone { session, packets } => {
                    let (leg, leg_epoch) = (self.leg, self.leg_epoch);
                    hub.roster.repair(session, Repair::Gone { leg, leg_epoch, packets });
                }
                LegOutput::Look => self.look(hub),
                LegOutput::Draw => {
                    let secret =
                        keys::draw().inspect_err(|error| tracing::warn!("no random key: {error}")).ok();
                    self.machine.handle(now, LegInput::Drawn(secret));
                }
                LegOutput::Keys(keys) => {
                    if keys.next.is_none() {
                        tracing::info!(leg = self.leg.0, key = keys.in_use.id, "the leg takes its next key");
                    }
                    *lock(&self.shared.keys) = keys;
                }
                LegOutput::TellKey { site, session, key } => self.tell_key(hub, &site, session, key),
                LegOutput::Barred { .. } | LegOutput::DatagramBytes(_) | LegOutput::Rate(_) => {
                    self.log_change(&output)
                }
                LegOutput::TakeOff(straggler) => hub.take_off(self.leg, &straggler),
            }
        }
        let flushed = self.outlet.flush();
        self.note(hub, flushed);
    }

    fn log_change(&self, output: &LegOutput<Arc<Channel>>) {
        let leg = self.leg.0;
        match output {
            LegOutput::Barred { site, urgency } => {
                tracing::info!(leg, %site, ?urgency, "a site may not read the leg any more");
            }
            LegOutput::DatagramBytes(bytes) => {
                tracing::info!(leg, bytes, "the leg's datagrams are as long as the ways to its sites carry");
            }
            LegOutput::Rate(rate_bps) => {
                tracing::info!(leg, rate_bps, "the leg's rate follows the losses of its sites");
            }
            _ => {}
        }
    }

    fn read_log(&mut self, hub: &Hub, range: LogRange) {
        let LogRange { after, to, limit_bytes, limit_products } = range;
        let read = self.feed.log.read(after, to, limit_bytes, limit_products);
        let now = hub.clock.now();
        match read {
            Ok(batch) => {
                for entry in batch.entries {
                    if let Some(bytes) = entry.bytes {
                        self.machine.handle(now, LegInput::Product { info: entry.info, bytes });
                    }
                }
                self.machine.handle(now, LegInput::ReadTo(batch.read_to));
            }
            Err(error) => {
                let sentence = format!("leg {} can't read the log: {error}", self.leg.0);
                hub.fault(sentence, Some(&self.feed.name()));
                self.machine.handle(now, LegInput::ReadFailed);
            }
        }
    }

    fn repair(
        &self,
        hub: &Hub,
        session: u64,
        channel: Option<Arc<Channel>>,
        (packet, payload): (u64, Bytes),
    ) {
        match channel {
            Some(channel) => {
                hub.counters.channel_bytes(&self.feed.name(), self.leg, payload.len());
                hub.legs.channels.repair(channel, packet, payload);
            }
            None => {
                let repair = Repair::Packet { leg: self.leg, leg_epoch: self.leg_epoch, packet, payload };
                hub.roster.repair(session, repair);
            }
        }
    }

    fn look(&mut self, hub: &Hub) {
        let open = hub.roster.sessions_on(self.leg);
        let (now, feed) = (hub.clock.now(), self.feed.name());
        let barred = |site: &SiteName, credential: &str| hub.roster.barred(site, credential, &feed, now.wall);
        self.machine.look(now, &LegSessions { open: &open, barred: &barred });
    }

    fn tell_key(&self, hub: &Hub, site: &SiteName, session: u64, key: LegKey) {
        let next = NextKey { leg: self.leg, leg_epoch: self.leg_epoch, key };
        if let Some(handle) = hub.roster.session(site).filter(|handle| handle.serial == session) {
            let _ = handle.commands.send(roster::Command::Tell(SessionInput::Pass(HubInput::NextKey(next))));
        }
    }

    /// A failed send is a loss like any other: sites request the packet. Reported once until sending works again.
    fn note(&mut self, hub: &Hub, result: std::io::Result<()>) {
        if let Some(error) = self.outlet.is_news(result) {
            let sentence =
                format!("leg {} can't send to its group: {error}; check the route to it", self.leg.0);
            hub.fault(sentence, Some(&self.feed.name()));
        }
    }

    fn sent(&self, hub: &Hub, sequence: Sequence) {
        let entry = self.feed.log.entry(sequence).ok().flatten();
        if entry.as_ref().is_some_and(|entry| entry.info.id.is_heartbeat()) {
            return;
        }
        let size = entry.map_or(0, |entry| entry.info.size);
        hub.counters.sent(&self.feed.name(), self.leg, 1, size);
    }

    /// Publishes the leg's progress for the rest of the hub.
    fn publish(&mut self, hub: &Hub) {
        let stats = self.machine.stats();
        self.shared.backlog_bytes.store(stats.backlog_bytes, Ordering::Relaxed);
        if stats.datagram_bytes != self.told.datagram_bytes && self.outlet.is_open() {
            hub.counters.datagrams(&self.feed.name(), self.leg, &self.told, &stats);
        }
        self.told = stats;
    }

    fn patience(&self, hub: &Hub) -> Duration {
        let now = hub.clock.monotonic();
        self.machine.deadline().map_or(IDLE, |due| Duration::from_micros(due.since(now).0)).min(IDLE)
    }
}

const IDLE: Duration = Duration::from_secs(1);
