//! The conduct of one probe in steps.
use std::time::Duration;

use downburst_hub::circuits::Direction;
use downburst_hub::path_probes::Outcome;
use downburst_probe::{Figures, Knee, LONGEST_WAIT, Sent, Step, StepResult};
use downburst_session::{ProbeOrder, ProbeSaid};
use tokio::time::Instant;

use super::News;
use super::course::{ANSWER_PATIENCE, Course, SILENCE, length};
use super::steps::{STEP_REST, Steps, ToCome};
use crate::probing::{Sending, Way};

/// A probe that the site has accepted.
pub(super) struct Conduct {
    steps: Steps,
    way: Way,
    /// The begin of the present step, and the whole seconds since.
    begun: Instant,
    seconds: u64,
}

/// An event in the course of a step.
enum Woken {
    News(Option<News>),
    Second,
    Sent(Sent),
    Late,
}

impl Conduct {
    pub(super) fn new(course: Course, way: Way) -> Self {
        Self { steps: Steps::new(course), way, begun: Instant::now(), seconds: 0 }
    }

    /// Runs the probe, and reports its end.
    pub(super) async fn run(mut self) {
        let measured = self.measure().await;
        self.steps.end(measured, self.way.frame_bytes());
    }

    async fn measure(&mut self) -> Result<Option<Knee>, Outcome> {
        self.wait_for_hello().await?;
        let mut to_come = ToCome::of(&self.steps.course.line, self.way.frame_bytes());
        while let Some(step) = to_come.next_step() {
            self.step(step).await?;
            to_come.took(&self.steps.results);
        }
        Ok(to_come.knee())
    }

    async fn wait_for_hello(&mut self) -> Result<(), Outcome> {
        let give_up = Instant::now() + SILENCE;
        loop {
            tokio::select! {
                () = self.way.hears() => return Ok(()),
                news = self.steps.course.news.recv() => { self.take(news)?; }
                () = tokio::time::sleep_until(give_up) => {
                    let port = self.way.number().unwrap_or(0);
                    let (by, seconds) = (self.way.protocol(), SILENCE.as_secs());
                    return Err(Outcome::Failed(format!(
                        "no packet of the site reached {by} port {port} of this node within {seconds} s; allow {by} to \
                         this node from the site's address"
                    )));
                }
            }
            self.steps.course.stopped()?;
        }
    }

    /// Runs a step, and keeps its result.
    async fn step(&mut self, step: Step) -> Result<(), Outcome> {
        self.steps.begin();
        (self.seconds, self.begun) = (0, Instant::now());
        let (sent, figures) = match self.steps.course.line.direction {
            Direction::Out => self.send(step).await?,
            Direction::In => self.gather(step).await?,
        };
        self.steps.results.push(StepResult { step, sent, figures });
        self.steps.course.stopped()?;
        let rested = Instant::now() + STEP_REST;
        while let Ok(news) = tokio::time::timeout_at(rested, self.steps.course.news.recv()).await {
            self.take(news)?;
            self.steps.course.stopped()?;
        }
        Ok(())
    }

    /// Sends a step to the site, which counts it.
    async fn send(&mut self, step: Step) -> Result<(Sent, Figures), Outcome> {
        self.steps.order(&self.steps.course.orders, step);
        let ready = ProbeSaid::Ready { step: Some(self.steps.number), tcp: None };
        let give_up = Instant::now() + ANSWER_PATIENCE;
        while self.said(give_up).await? != ready {}
        self.steps.course.stopped()?;
        let sending = self.way.send(self.steps.number, step);
        let mut sending =
            sending.map_err(|error| Outcome::Failed(format!("this node can't send: {error}")))?;
        let give_up = Instant::now() + self.longest(step) + ANSWER_PATIENCE;
        let sent = loop {
            match self.wake(Some(&mut sending), give_up).await {
                Woken::Sent(sent) => break sent,
                Woken::News(news) => {
                    self.take(news)?;
                    if self.steps.course.stopping.is_some() {
                        sending.hold();
                    }
                }
                Woken::Second => self.steps.check_silence()?,
                Woken::Late => return Err(self.steps.course.late()),
            }
        };
        self.steps.course.orders.tell(ProbeOrder::Sent { step: self.steps.number, packets: sent.packets });
        let give_up = Instant::now() + ANSWER_PATIENCE;
        loop {
            if let ProbeSaid::Arrived { step, figures } = self.said(give_up).await?
                && step == self.steps.number
            {
                return Ok((sent, figures.of_sent(sent.packets)));
            }
        }
    }

    /// Counts a step that the site sends.
    async fn gather(&mut self, step: Step) -> Result<(Sent, Figures), Outcome> {
        self.way.count(self.steps.number, step);
        self.steps.order(&self.steps.course.orders, step);
        let mut give_up = Instant::now() + self.longest(step) + ANSWER_PATIENCE;
        let sent = loop {
            match self.wake(None, give_up).await {
                Woken::News(Some(News::Said(ProbeSaid::Sent { step, sent })))
                    if step == self.steps.number =>
                {
                    break sent;
                }
                Woken::News(news) => {
                    let was_stopping = self.steps.course.stopping.is_some();
                    self.take(news)?;
                    if let (false, Some((_, until))) = (was_stopping, &self.steps.course.stopping) {
                        give_up = *until;
                        self.steps.course.orders.tell(ProbeOrder::Hold);
                    }
                }
                Woken::Second => {
                    let figures = self.way.counter().second();
                    self.steps.report_second(self.seconds - 1, &figures);
                    self.steps.check_silence()?;
                }
                Woken::Sent(_) => {}
                Woken::Late => return Err(self.steps.course.late()),
            }
        };
        self.way.counter().settle(sent.packets).await;
        let rest = self.way.counter().second();
        if rest.sent > 0 || rest.received > 0 {
            self.steps.report_second(self.seconds, &rest);
        }
        let figures = self.way.counter().finish(sent.packets);
        Ok((sent, figures))
    }

    async fn wake(&mut self, sending: Option<&mut Sending>, give_up: Instant) -> Woken {
        let sent = async {
            match sending {
                Some(sending) => sending.ended().await,
                None => std::future::pending().await,
            }
        };
        let next = self.seconds.saturating_add(1);
        let second = self.begun + SECOND.saturating_mul(u32::try_from(next).unwrap_or(u32::MAX));
        tokio::select! {
            biased;
            news = self.steps.course.news.recv() => Woken::News(news),
            sent = sent => Woken::Sent(sent),
            () = tokio::time::sleep_until(give_up) => Woken::Late,
            () = tokio::time::sleep_until(second) => {
                self.seconds = next;
                Woken::Second
            }
        }
    }

    /// The next answer of the site.
    async fn said(&mut self, give_up: Instant) -> Result<ProbeSaid, Outcome> {
        loop {
            let said = self.steps.course.said(give_up).await?;
            if let Some(said) = self.steps.beside_seconds(said) {
                return Ok(said);
            }
        }
    }

    /// Takes news of the probe; returns the site's answer to an order.
    fn take(&mut self, news: Option<News>) -> Result<Option<ProbeSaid>, Outcome> {
        let said = self.steps.course.take(news)?;
        Ok(said.and_then(|said| self.steps.beside_seconds(said)))
    }

    /// The time that a step takes, with that of records that still wait at its end.
    fn longest(&self, step: Step) -> Duration {
        let waits = match self.way {
            Way::Udp(_) => Duration::ZERO,
            Way::Tcp(_) => Duration::from_micros(LONGEST_WAIT.0),
        };
        length(step.duration) + waits
    }
}

const SECOND: Duration = Duration::from_secs(1);
