//! The ways of a connection at work: the one taken, and the one that is opened ahead of a move.
use std::pin::Pin;
use std::task::{Context, Poll};

use downburst_model::Micros;
use downburst_session::RelayChain;
use downburst_site::{NoLink, Ways, way_in_words};

use super::hub_stream::{HubStream, dial, dial_by};
use crate::clock::Clock;

/// The ways of a connection, and the streams that are being opened by them.
pub(super) struct Routes {
    clock: Clock,
    ways: Ways,
    /// The ways of the present attempt, in order.
    tried: Vec<RelayChain>,
    trial: Option<Dial>,
    /// Open, while the session by the former way comes to its end.
    ready: Option<HubStream>,
}

pub(super) type Dial = Pin<Box<dyn Future<Output = Result<HubStream, NoLink>> + Send>>;

impl Routes {
    pub(super) fn new(ways: Ways, clock: Clock) -> Self {
        Self { clock, ways, tried: Vec::new(), trial: None, ready: None }
    }

    /// The next connection: the one that is open already, or an attempt by each way in turn.
    pub(super) fn dial(&mut self, hub: &str, ca_sha256: &str) -> Dial {
        self.ended();
        if let Some(ready) = self.ready.take() {
            self.tried = vec![ready.way.clone()];
            return Box::pin(std::future::ready(Ok(ready)));
        }
        self.tried = self.ways.order(self.clock.monotonic());
        Box::pin(dial(self.tried.clone(), hub.to_owned(), ca_sha256.to_owned()))
    }

    pub(super) fn connected(&mut self, way: &RelayChain) {
        self.ways.connected(self.clock.monotonic(), &self.tried, way);
    }

    /// Takes the hub's set; it applies from the next trial on.
    pub(super) fn told(&mut self, chains: &[String]) {
        log(self.ways.told(chains));
    }

    /// The subscriptions arrived, before which the hub tells its set.
    pub(super) fn subscribed(&mut self) {
        log(self.ways.subscribed());
    }

    /// The connection ends for another reason than its way.
    pub(super) fn leaves(&mut self) {
        self.ways.leaves();
    }

    /// The connection ended.
    pub(super) fn ended(&mut self) {
        self.trial = None;
        self.ways.ended(self.clock.monotonic());
    }

    /// Ends everything that is open.
    pub(super) fn clear(&mut self) {
        self.ended();
        self.ready = None;
    }

    /// Begins to open a better way, if one is due.
    pub(super) fn try_better(&mut self, hub: &str, ca_sha256: &str) {
        if let Some(way) = self.ways.try_better(self.clock.monotonic()) {
            self.trial = Some(Box::pin(dial_by(way, hub.to_owned(), ca_sha256.to_owned())));
        }
    }

    /// The time of the next trial.
    pub(super) fn deadline(&self) -> Option<Micros> {
        self.ways.deadline(self.clock.monotonic())
    }

    /// Ready when a trial ends: true if the connection is to move.
    pub(super) fn poll_trial(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        let Some(trial) = &mut self.trial else { return Poll::Pending };
        trial.as_mut().poll(cx).map(|tried| {
            self.trial = None;
            self.take(tried)
        })
    }

    fn take(&mut self, tried: Result<HubStream, NoLink>) -> bool {
        let now = self.clock.monotonic();
        match tried {
            Ok(stream) => {
                let moves = self.ways.opened(now);
                if moves {
                    tracing::info!("the session moves: it goes on {}", way_in_words(&stream.way));
                    self.ready = Some(stream);
                }
                moves
            }
            Err(NoLink { sentence, .. }) => {
                tracing::warn!("the way that the hub wants leads nowhere, and the session stays: {sentence}");
                self.ways.not_opened(now);
                false
            }
        }
    }
}

fn log(sentence: Option<String>) {
    if let Some(sentence) = sentence {
        tracing::info!("{sentence}");
    }
}
