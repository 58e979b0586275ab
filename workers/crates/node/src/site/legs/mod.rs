//! Groups and repair channels of legs: joined as the machine orders; their datagrams go to the machine.
mod arrived;
mod group;
mod priority;
mod repair_channel;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use downburst_model::{FeedName, LegId};
use downburst_session::{FeedHandling, LegJoin};
use downburst_site::{HostReadings, LegNews};
use downburst_vcmtp::LegKey;
use tokio::sync::mpsc;

pub(crate) use arrived::Arrived;
pub(super) use group::Found;
use group::Group;
pub use group::Reading;
use repair_channel::RepairChannel;

/// How this host reads groups, by feed, and how much comes to it: shared by all connections of a site.
#[derive(Clone, Default)]
pub(crate) struct SharedReadings {
    readings: Arc<Mutex<HostReadings>>,
    pub(crate) arrived: Arrived,
}

impl SharedReadings {
    /// The readings, by feed.
    pub(crate) fn lock(&self) -> MutexGuard<'_, HostReadings> {
        self.readings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All legs of a connection.
pub(super) struct Legs {
    shared: Shared,
    amt: Option<String>,
    /// The feeds with a deadline.
    deadlines: BTreeSet<FeedName>,
    groups: BTreeMap<LegId, Group>,
    channels: BTreeMap<LegId, RepairChannel>,
    pub(super) found: mpsc::Receiver<Found>,
    /// The hub's answers over UDP: repairs must not queue behind datagrams of the group.
    answer_sender: mpsc::Sender<Found>,
    pub(super) answers: mpsc::Receiver<Found>,
}

/// Shared by the groups of a connection.
#[derive(Clone)]
struct Shared {
    reading: Reading,
    readings: SharedReadings,
    found: mpsc::Sender<Found>,
}

impl Legs {
    pub(super) fn new(reading: Reading, readings: SharedReadings, amt: Option<String>) -> Self {
        let (found_sender, found) = mpsc::channel(DATAGRAM_BATCHES);
        let (answer_sender, answers) = mpsc::channel(DATAGRAM_BATCHES);
        let (groups, channels) = (BTreeMap::new(), BTreeMap::new());
        let deadlines = BTreeSet::new();
        let shared = Shared { reading, readings, found: found_sender };
        Self { shared, amt, deadlines, groups, channels, found, answer_sender, answers }
    }

    pub(super) fn ask(&self, leg: LegId, datagram: &[u8]) {
        if let Some(channel) = self.channels.get(&leg) {
            channel.send(datagram);
        }
    }

    pub(super) fn use_key(&self, leg: LegId, key: LegKey) {
        if let Some(group) = self.groups.get(&leg) {
            group.use_key(key);
        }
    }

    /// Takes the handling of all feeds: legs that are joined from now on are read by it.
    pub(super) fn handle(&mut self, items: &[FeedHandling]) {
        let bound = items.iter().filter(|item| item.deadline_us.is_some());
        self.deadlines = bound.map(|item| item.feed.clone()).collect();
    }

    pub(super) fn leave(&mut self, leg: LegId) {
        self.groups.remove(&leg);
        self.channels.remove(&leg);
    }

    pub(super) fn clear(&mut self) {
        self.groups.clear();
        self.channels.clear();
    }

    pub(super) fn join(&mut self, join: &LegJoin, local_address: &str, peer_address: &str) -> LegNews {
        let has_deadline = self.deadlines.contains(&join.feed);
        let usual = self.amt.as_deref().unwrap_or(local_address);
        match Group::join(join, usual, has_deadline, &self.shared) {
            Ok((group, reception)) => {
                self.groups.insert(join.leg, group);
                let arrived = self.shared.readings.arrived.clone();
                let channel = RepairChannel::open(join, peer_address, arrived, self.answer_sender.clone());
                self.channels.extend(channel.map(|channel| (join.leg, channel)));
                LegNews::Joined(reception)
            }
            Err(reason) => {
                tracing::warn!("{reason}");
                LegNews::NotJoined(reason)
            }
        }
    }
}

/// Batches of datagrams between the groups' threads and the session's task; behind them is the socket's buffer.
const DATAGRAM_BATCHES: usize = 64;
