//! Groups and repair channels of legs: joined as the machine asks, and what they bring told to it.
use std::collections::BTreeMap;

use downburst_model::LegId;
use downburst_session::LegJoin;
use downburst_site::{Input, LegNews};
use tokio::sync::mpsc;

use super::Site;
use crate::site::asks::Asks;
use crate::site::group::{Found, Group, Reading};

/// All of them.
pub(super) struct Legs {
    reading: Reading,
    groups: BTreeMap<LegId, Group>,
    asks: BTreeMap<LegId, Asks>,
    found_sender: mpsc::Sender<Found>,
    pub(super) found: mpsc::Receiver<Found>,
    /// What the hub says by UDP: who waits for a repair shall not wait for what the group brings meanwhile.
    answer_sender: mpsc::Sender<Found>,
    pub(super) answers: mpsc::Receiver<Found>,
}

impl Legs {
    pub(super) fn new(reading: Reading) -> Self {
        let (found_sender, found) = mpsc::channel(DATAGRAM_BATCHES);
        let (answer_sender, answers) = mpsc::channel(DATAGRAM_BATCHES);
        let (groups, asks) = (BTreeMap::new(), BTreeMap::new());
        Self { reading, groups, asks, found_sender, found, answer_sender, answers }
    }

    pub(super) fn ask(&self, leg: LegId, datagram: &[u8]) {
        if let Some(asks) = self.asks.get(&leg) {
            asks.send(datagram);
        }
    }

    pub(super) fn leave(&mut self, leg: LegId) {
        self.groups.remove(&leg);
        self.asks.remove(&leg);
    }

    pub(super) fn clear(&mut self) {
        self.groups.clear();
        self.asks.clear();
    }

    fn join(&mut self, join: &LegJoin, local_address: &str, peer_address: &str) -> LegNews {
        match Group::join(join, local_address, self.reading, self.found_sender.clone()) {
            Ok((group, reception)) => {
                self.groups.insert(join.leg, group);
                let asks = Asks::open(join, peer_address, self.answer_sender.clone());
                self.asks.extend(asks.map(|asks| (join.leg, asks)));
                LegNews::Joined(reception)
            }
            Err(reason) => {
                tracing::warn!("{reason}");
                LegNews::NotJoined(reason)
            }
        }
    }
}

impl Site {
    pub(super) fn join(&mut self, join: &LegJoin) {
        let news = self.legs.join(join, &self.network.local_address, &self.network.peer_address);
        self.tell(Input::Leg(join.leg, news));
    }

    /// The hub's answers go first: they came while the batch waited.
    pub(super) fn found(&mut self, found: Found) {
        while let Ok(Found { leg, news: LegNews::Datagrams(batch) }) = self.legs.answers.try_recv() {
            self.tell(Input::Leg(leg, LegNews::Datagrams(batch)));
        }
        self.tell(Input::Leg(found.leg, found.news));
    }
}

/// Batches of datagrams between the groups' threads and the session's task; behind them stands the socket's buffer.
const DATAGRAM_BATCHES: usize = 64;
