//! The conduct of a probe in trials of greedy TCP flows.
use std::net::TcpStream;
use std::time::Duration;

use downburst_hub::circuits::Direction;
use downburst_hub::path_probes::{Conclusion, Outcome, TrialEndedLine, TrialLine};
use downburst_model::Micros;
use downburst_probe::{Flow, FlowFigures, Trial};
use downburst_session::{ProbeOrder, ProbeSaid, ProbeTrial};
use tokio::time::Instant;

use super::course::{ANSWER_PATIENCE, Course, SILENCE, length};
use crate::probing::{Flows, Gathering};
use crate::tcp::use_control;

/// A probe in trials that the site has accepted.
pub(super) struct Trials {
    course: Course,
    gathering: Gathering,
    ended: Vec<TrialEndedLine>,
}

/// The end of a trial, if not of the probe.
type Ended = Result<Trial, String>;

impl Trials {
    pub(super) fn new(course: Course, gathering: Gathering) -> Self {
        Self { course, gathering, ended: Vec::new() }
    }

    /// Runs the probe, and reports its end.
    pub(super) async fn run(mut self) {
        let outcome = self.measure().await.err().unwrap_or(Outcome::Done);
        let conclusion = Conclusion {
            line: &self.course.line,
            outcome,
            results: &[],
            trials: &self.ended,
            knee: None,
            frame_bytes: 0,
            clock: self.course.clock(),
        };
        let line = conclusion.line();
        self.course.end(line);
    }

    async fn measure(&mut self) -> Result<(), Outcome> {
        for (number, line) in (0..).zip(self.course.line.trials.clone()) {
            let ended = match self.trial(number, &line).await? {
                Ok(trial) => line.ran(&trial),
                Err(reason) => line.refused(reason),
            };
            self.ended.push(ended);
            self.rest().await?;
        }
        Ok(())
    }

    async fn trial(&mut self, number: u16, line: &TrialLine) -> Result<Ended, Outcome> {
        let flows = self.flows(line);
        self.gathering.expect(number, flows.len());
        let (rate_bps, duration_ms) = (self.course.line.rate_bps, line.duration_ms);
        let trial = ProbeTrial { trial: number, rate_bps, duration_ms, flows: flows.clone() };
        self.course.orders.tell(ProbeOrder::Trial(trial));
        if let Some(refusal) = self.ready(number).await? {
            let site = &self.course.line.site;
            return Ok(Err(format!("{} at {site}", downburst_hub::shown(&refusal))));
        }
        let streams = self.gathered().await?;
        if let Err(reason) = controlled(&streams, &flows) {
            return Ok(Err(reason));
        }
        let streams = streams.into_iter().zip(&flows).map(|(stream, flow)| (stream, !flow.from_site));
        let duration = Micros::from_millis(duration_ms);
        self.course.orders.tell(ProbeOrder::Begin { trial: number });
        let clock = self.course.hub().clock;
        let here = Flows::begin(streams.collect(), rate_bps, duration, clock)
            .map_err(|error| Outcome::Failed(format!("this node can't begin a trial: {error}")))?;
        let (here, there) = self.both(number, here, duration).await?;
        Ok(Ok(self.merged(line, &flows, &here, &there)))
    }

    /// The flows as the site sees them.
    fn flows(&self, line: &TrialLine) -> Vec<Flow> {
        let is_in = self.course.line.direction == Direction::In;
        line.controls().map(|(control, reverse)| Flow { control, from_site: reverse != is_in }).collect()
    }

    /// Waits until the site has opened the connections; the reason, if it has not.
    async fn ready(&mut self, number: u16) -> Result<Option<String>, Outcome> {
        let give_up = Instant::now() + ANSWER_PATIENCE;
        loop {
            let said = self.course.said(give_up).await?;
            self.course.stopped()?;
            if let ProbeSaid::TrialReady { trial, refusal } = said
                && trial == number
            {
                return Ok(refusal);
            }
        }
    }

    /// The connections of the trial, in the order of its flows.
    async fn gathered(&mut self) -> Result<Vec<TcpStream>, Outcome> {
        let give_up = Instant::now() + SILENCE;
        loop {
            tokio::select! {
                streams = self.gathering.all() => return Ok(streams),
                news = self.course.news.recv() => { self.course.take(news)?; }
                () = tokio::time::sleep_until(give_up) => {
                    let (port, seconds) = (self.gathering.number(), SILENCE.as_secs());
                    return Err(Outcome::Failed(format!(
                        "not all connections of the site reached TCP port {port} of this node within {seconds} s; \
                         allow TCP to this node from the site's address"
                    )));
                }
            }
            self.course.stopped()?;
        }
    }

    /// Waits for the figures of both ends.
    async fn both(
        &mut self,
        number: u16,
        mut here: Flows,
        duration: Micros,
    ) -> Result<(Vec<FlowFigures>, Vec<FlowFigures>), Outcome> {
        let give_up = Instant::now() + length(duration) + ANSWER_PATIENCE;
        let there = loop {
            let said = self.course.said(give_up).await;
            // Greedy flows are harmful after a stop, and a trial cut short compares nothing.
            self.course.stopped()?;
            if let ProbeSaid::TrialEnded { trial, flows } = said?
                && trial == number
            {
                break flows;
            }
        };
        Ok((here.ended().await, there))
    }

    fn merged(&self, line: &TrialLine, flows: &[Flow], here: &[FlowFigures], there: &[FlowFigures]) -> Trial {
        let ends = here.iter().zip(there).zip(flows).zip(line.controls());
        let merged = ends.map(|(((here, there), flow), (_, reverse))| {
            let (sender, receiver) = if flow.from_site { (there, here) } else { (here, there) };
            (FlowFigures::merged(*sender, *receiver), reverse)
        });
        Trial { flows: merged.collect() }
    }

    /// The queues of the path are empty before the next trial.
    async fn rest(&mut self) -> Result<(), Outcome> {
        let rested = Instant::now() + TRIAL_REST;
        while let Ok(news) = tokio::time::timeout_at(rested, self.course.news.recv()).await {
            self.course.take(news)?;
            self.course.stopped()?;
        }
        Ok(())
    }
}

/// Sets the congestion controls of the flows that this node sends.
fn controlled(streams: &[TcpStream], flows: &[Flow]) -> Result<(), String> {
    let mut sent = streams.iter().zip(flows).filter(|(_, flow)| !flow.from_site);
    let set = |(stream, flow): (&TcpStream, &Flow)| use_control(stream, flow.control);
    sent.try_for_each(set).map_err(|sentence| format!("{sentence} at this node"))
}

const TRIAL_REST: Duration = Duration::from_millis(500);
