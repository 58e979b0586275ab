//! The course of a probe, whatever it measures: news of it, answers of its site, and its end.
use std::sync::Arc;
use std::time::Duration;

use downburst_hub::path_probes::{ClockOf, Outcome, PathProbeLine, ProbeEndedLine};
use downburst_model::Micros;
use downburst_session::ProbeSaid;
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
    pub(super) news: mpsc::UnboundedReceiver<News>,
    /// Once it is to end: the reason, and the time for the figures so far.
    pub(super) stopping: Option<(String, Instant)>,
}

impl Course {
    pub(super) fn new(
        place: Place,
        line: PathProbeLine,
        orders: SiteOrders,
        news: mpsc::UnboundedReceiver<News>,
    ) -> Self {
        Self { place, line, orders, news, stopping: None }
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
        match news {
            None | Some(News::Gone) => {
                Err(Outcome::Failed(format!("the session with {} ended", self.line.site)))
            }
            Some(News::Stop(reason)) => {
                self.stopping.get_or_insert_with(|| (reason, Instant::now() + STOP_PATIENCE));
                Ok(None)
            }
            Some(News::Said(ProbeSaid::Refused(sentence))) => {
                Err(Outcome::Failed(downburst_hub::shown(&sentence)))
            }
            Some(News::Said(said)) => Ok(Some(said)),
            // This node's own part is no relay's.
            Some(News::RelaySaid(_)) => Ok(None),
        }
    }

    pub(super) fn stopped(&self) -> Result<(), Outcome> {
        self.stopping.as_ref().map_or(Ok(()), |(reason, _)| Err(Outcome::Stopped(reason.clone())))
    }

    /// The site has not answered in time.
    pub(super) fn late(&self) -> Outcome {
        let sentence = || format!("{} does not answer an order in the probe", self.line.site);
        self.stopped().err().unwrap_or_else(|| Outcome::Failed(sentence()))
    }

    pub(super) fn clock(&self) -> ClockOf {
        let site = lock(&self.orders.handle.status).clock.compared;
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
pub(super) const STOP_PATIENCE: Duration = Duration::from_millis(800);
