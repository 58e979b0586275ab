//! The course of a probe, whatever it measures: news of it, answers of its site, and its end.
use std::sync::Arc;
use std::time::Duration;

use downburst_hub::path_probes::{ClockOf, Outcome, PathProbeLine, ProbeEndedLine};
use downburst_model::Micros;
use downburst_session::{ClockOffset, ProbeSaid};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{News, Place, SiteOrders};
use crate::hub::{Hub, lock};
use crate::lines::Event;

/// A probe that the site has accepted.
pub(super) struct Course {
    place: Place,
    pub(super) line: PathProbeLine,
    pub(super) orders: SiteOrders,
    /// The orders to the relay that takes this node's part.
    pub(super) relay: Option<SiteOrders>,
    pub(super) news: mpsc::UnboundedReceiver<News>,
    /// Once it is to end: the reason, and the time for the figures so far.
    pub(super) stopping: Option<(String, Instant)>,
}

/// A host that answers orders.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Peer {
    Site,
    Relay,
}

impl Course {
    pub(super) fn new(
        place: Place,
        line: PathProbeLine,
        orders: SiteOrders,
        news: mpsc::UnboundedReceiver<News>,
    ) -> Self {
        Self { place, line, orders, relay: None, news, stopping: None }
    }

    pub(super) fn hub(&self) -> &Arc<Hub> {
        &self.place.hub
    }

    /// The next answer of the site.
    pub(super) async fn said(&mut self, give_up: Instant) -> Result<ProbeSaid, Outcome> {
        loop {
            let until = self.stopping.as_ref().map_or(give_up, |(_, until)| give_up.min(*until));
            let news = tokio::time::timeout_at(until, self.news.recv()).await.map_err(|_| self.late())?;
            if let Some(said) = self.take(news)? {
                return Ok(said);
            }
        }
    }

    /// Takes news of the probe; returns what the site said.
    pub(super) fn take(&mut self, news: Option<News>) -> Result<Option<ProbeSaid>, Outcome> {
        let heard = self.hear(news)?;
        Ok(heard.and_then(|(peer, said)| (peer == Peer::Site).then_some(said)))
    }

    /// Takes news of the probe; returns an answer and its peer, or nothing if the probe is to stop.
    pub(super) fn hear(&mut self, news: Option<News>) -> Result<Option<(Peer, ProbeSaid)>, Outcome> {
        match news {
            None | Some(News::Gone) => {
                let or_its_relay = if self.line.relay.is_some() { " or its relay" } else { "" };
                Err(Outcome::Failed(format!("the session with {}{or_its_relay} ended", self.line.site)))
            }
            Some(News::Stop(reason)) => {
                self.stopping.get_or_insert_with(|| (reason, Instant::now() + STOP_PATIENCE));
                Ok(None)
            }
            Some(
                News::Said(ProbeSaid::Refused(sentence)) | News::RelaySaid(ProbeSaid::Refused(sentence)),
            ) => Err(Outcome::Failed(downburst_hub::shown(&sentence))),
            Some(News::Said(said)) => Ok(Some((Peer::Site, said))),
            Some(News::RelaySaid(said)) => Ok(Some((Peer::Relay, said))),
        }
    }

    pub(super) fn stopped(&self) -> Result<(), Outcome> {
        self.stopping.as_ref().map_or(Ok(()), |(reason, _)| Err(Outcome::Stopped(reason.clone())))
    }

    /// The site has not answered in time.
    pub(super) fn late(&self) -> Outcome {
        self.late_peer(Peer::Site)
    }

    /// A peer has not answered in time.
    pub(super) fn late_peer(&self, peer: Peer) -> Outcome {
        let name = match (peer, &self.line.relay) {
            (Peer::Relay, Some(relay)) => relay,
            _ => &self.line.site,
        };
        let sentence = || format!("{name} does not answer an order in the probe");
        self.stopped().err().unwrap_or_else(|| Outcome::Failed(sentence()))
    }

    /// The site's clock minus that of the other end.
    pub(super) fn clock(&self) -> ClockOf {
        let of = |orders: &SiteOrders| lock(&orders.handle.status).clock.compared;
        let site = match &self.relay {
            None => of(&self.orders),
            // Both are known by the clock of this node.
            Some(relay) => of(&self.orders).zip(of(relay)).map(|(site, relay)| ClockOffset {
                offset_us: site.offset_us.saturating_sub(relay.offset_us),
                bound_us: site.bound_us.saturating_add(relay.bound_us),
                round_trip_us: site.round_trip_us.saturating_add(relay.round_trip_us),
            }),
        };
        ClockOf { site, direction: self.line.direction }
    }

    /// Reports the end.
    pub(super) fn end(self, line: ProbeEndedLine) {
        let hub = Arc::clone(self.hub());
        // A probe that begins on this event finds its place free.
        drop(self);
        hub.event(&Event::ProbeEnded(Box::new(line)));
    }
}

pub(super) fn length(time: Micros) -> Duration {
    Duration::from_micros(time.0)
}

/// A probe fails when nothing arrives for so long.
pub(super) const SILENCE: Duration = Duration::from_secs(5);
/// Beyond the time that the packets of a step take.
pub(super) const ANSWER_PATIENCE: Duration = Duration::from_secs(5);
/// The figures so far come within this time, or not at all: a stopped probe ends within a second.
const STOP_PATIENCE: Duration = Duration::from_millis(800);
