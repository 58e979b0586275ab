//! Trials of greedy TCP flows at a site: it opens the connections, and sends and counts its part.
use std::net::SocketAddr;

use downburst_model::Micros;
use downburst_probe::{Flow, FlowFigures, Key};
use downburst_session::{PathProbed, ProbeSaid, ProbeTrial};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::clock::Clock;
use crate::probing::{Flows, open_flows};

/// The trials of a probe, one after the other; the present one ends when this is dropped.
pub(super) struct Trials {
    end: End,
    /// Begins the prepared trial.
    prepared: Option<(u16, oneshot::Sender<()>)>,
    work: JoinSet<()>,
}

/// The site's end of a probe in trials.
#[derive(Clone)]
pub(super) struct End {
    pub(super) run: u32,
    pub(super) node: SocketAddr,
    pub(super) key: Key,
    pub(super) clock: Clock,
    pub(super) say: mpsc::UnboundedSender<PathProbed>,
}

impl Trials {
    pub(super) fn new(end: End) -> Self {
        Self { end, prepared: None, work: JoinSet::new() }
    }

    /// Prepares a trial; a former one ends.
    pub(super) fn prepare(&mut self, trial: ProbeTrial) {
        self.work.abort_all();
        while self.work.try_join_next().is_some() {}
        let (begin, begins) = oneshot::channel();
        self.prepared = Some((trial.trial, begin));
        self.work.spawn(self.end.clone().run(trial, begins));
    }

    /// Begins the prepared trial, if it has this number.
    pub(super) fn begin(&mut self, trial: u16) {
        if let Some((number, begin)) = self.prepared.take()
            && number == trial
        {
            let _ = begin.send(());
        }
    }
}

impl End {
    async fn run(self, trial: ProbeTrial, begins: oneshot::Receiver<()>) {
        let (node, key, number) = (self.node, self.key, trial.trial);
        let flows = trial.flows.clone();
        let opening = tokio::task::spawn_blocking(move || open_flows(node, &key, number, &flows));
        let opened = opening.await.unwrap_or_else(|_| Err("the node is ending".to_owned()));
        let refusal = opened.as_ref().err().cloned();
        self.answer(ProbeSaid::TrialReady { trial: number, refusal });
        let (Ok(streams), Ok(())) = (opened, begins.await) else { return };
        let sends = trial.flows.iter().map(|flow: &Flow| flow.from_site);
        let duration = Micros::from_millis(trial.duration_ms);
        let flows =
            Flows::begin(streams.into_iter().zip(sends).collect(), trial.rate_bps, duration, self.clock);
        let figures: Vec<FlowFigures> = match flows {
            Ok(mut flows) => flows.ended().await,
            Err(error) => return self.answer(ProbeSaid::Refused(format!("the site can't send: {error}"))),
        };
        self.answer(ProbeSaid::TrialEnded { trial: number, flows: figures });
    }

    fn answer(&self, said: ProbeSaid) {
        let _ = self.say.send(PathProbed { run: self.run, said });
    }
}
