//! The conduct of one probe in steps.
use std::time::Duration;

use downburst_hub::circuits::Direction;
use downburst_hub::path_probes::{Conclusion, Outcome, PathProbeKind, second_line};
use downburst_probe::{Figures, Knee, LONGEST_WAIT, Sent, Step, StepResult, Sweep};
use downburst_session::{ProbeOrder, ProbeSaid, ProbeStep};
use tokio::time::Instant;

use super::News;
use super::course::{ANSWER_PATIENCE, Course, SILENCE, length};
use crate::lines::Event;
use crate::probing::{Sending, Way};

/// A probe that the site has accepted.
pub(super) struct Conduct {
    course: Course,
    way: Way,
    results: Vec<StepResult>,
    /// The number of the present step.
    step: u16,
    /// The begin of the present step, and the whole seconds since.
    begun: Instant,
    seconds: u64,
    /// The last moment at which something arrived.
    last_life: Instant,
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
        let now = Instant::now();
        Self { course, way, results: Vec::new(), step: 0, begun: now, seconds: 0, last_life: now }
    }

    /// Runs the probe, and reports its end.
    pub(super) async fn run(mut self) {
        let (outcome, knee) = match self.measure().await {
            Ok(knee) => (Outcome::Done, knee),
            Err(outcome) => (outcome, None),
        };
        let conclusion = Conclusion {
            line: &self.course.line,
            outcome,
            results: &self.results,
            trials: &[],
            knee,
            frame_bytes: self.way.frame_bytes(),
            clock: self.course.clock(),
        };
        let line = conclusion.line();
        self.course.end(line);
    }

    async fn measure(&mut self) -> Result<Option<Knee>, Outcome> {
        self.wait_for_hello().await?;
        let asked = self.course.line.asked();
        if self.course.line.kind != PathProbeKind::Knee {
            for step in asked {
                self.step(step).await?;
            }
            return Ok(None);
        }
        let mut sweep = Sweep::new(asked, self.way.frame_bytes());
        while let Some(step) = sweep.next_step() {
            self.step(step).await?;
            self.results.last().into_iter().for_each(|result| sweep.took(result));
        }
        Ok(Some(sweep.knee()))
    }

    async fn wait_for_hello(&mut self) -> Result<(), Outcome> {
        let give_up = Instant::now() + SILENCE;
        loop {
            tokio::select! {
                () = self.way.hears() => return Ok(()),
                news = self.course.news.recv() => { self.take(news)?; }
                () = tokio::time::sleep_until(give_up) => {
                    let port = self.way.number().unwrap_or(0);
                    let (by, seconds) = (self.way.protocol(), SILENCE.as_secs());
                    return Err(Outcome::Failed(format!(
                        "no packet of the site reached {by} port {port} of this node within {seconds} s; allow {by} to \
                         this node from the site's address"
                    )));
                }
            }
            self.course.stopped()?;
        }
    }

    /// Runs a step, and keeps its result.
    async fn step(&mut self, step: Step) -> Result<(), Outcome> {
        self.step = u16::try_from(self.results.len()).unwrap_or(u16::MAX);
        (self.seconds, self.begun, self.last_life) = (0, Instant::now(), Instant::now());
        let (sent, figures) = match self.course.line.direction {
            Direction::Out => self.send(step).await?,
            Direction::In => self.gather(step).await?,
        };
        self.results.push(StepResult { step, sent, figures });
        self.course.stopped()?;
        // The queues of the path are empty before the next step.
        let rested = Instant::now() + STEP_REST;
        while let Ok(news) = tokio::time::timeout_at(rested, self.course.news.recv()).await {
            self.take(news)?;
            self.course.stopped()?;
        }
        Ok(())
    }

    /// Sends a step to the site, which counts it.
    async fn send(&mut self, step: Step) -> Result<(Sent, Figures), Outcome> {
        self.order_step(step);
        let ready = ProbeSaid::Ready { step: Some(self.step), tcp: None };
        let give_up = Instant::now() + ANSWER_PATIENCE;
        while self.said(give_up).await? != ready {}
        self.course.stopped()?;
        let sending = self.way.send(self.step, step);
        let mut sending =
            sending.map_err(|error| Outcome::Failed(format!("this node can't send: {error}")))?;
        let give_up = Instant::now() + self.longest(step) + ANSWER_PATIENCE;
        let sent = loop {
            match self.wake(Some(&mut sending), give_up).await {
                Woken::Sent(sent) => break sent,
                Woken::News(news) => {
                    self.take(news)?;
                    if self.course.stopping.is_some() {
                        sending.hold();
                    }
                }
                Woken::Second => self.check_silence()?,
                Woken::Late => return Err(self.course.late()),
            }
        };
        self.course.orders.tell(ProbeOrder::Sent { step: self.step, packets: sent.packets });
        let give_up = Instant::now() + ANSWER_PATIENCE;
        loop {
            if let ProbeSaid::Arrived { step, figures } = self.said(give_up).await?
                && step == self.step
            {
                return Ok((sent, figures.of_sent(sent.packets)));
            }
        }
    }

    /// Counts a step that the site sends.
    async fn gather(&mut self, step: Step) -> Result<(Sent, Figures), Outcome> {
        self.way.count(self.step, step);
        self.order_step(step);
        let mut give_up = Instant::now() + self.longest(step) + ANSWER_PATIENCE;
        let sent = loop {
            match self.wake(None, give_up).await {
                Woken::News(Some(News::Said(ProbeSaid::Sent { step, sent }))) if step == self.step => {
                    break sent;
                }
                Woken::News(news) => {
                    let was_stopping = self.course.stopping.is_some();
                    self.take(news)?;
                    if let (false, Some((_, until))) = (was_stopping, &self.course.stopping) {
                        give_up = *until;
                        self.course.orders.tell(ProbeOrder::Hold);
                    }
                }
                Woken::Second => {
                    let figures = self.way.counter().second();
                    self.tell_second(self.seconds - 1, &figures);
                    self.check_silence()?;
                }
                Woken::Sent(_) => {}
                Woken::Late => return Err(self.course.late()),
            }
        };
        self.way.counter().settle(sent.packets).await;
        let rest = self.way.counter().second();
        if rest.sent > 0 || rest.received > 0 {
            self.tell_second(self.seconds, &rest);
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
            news = self.course.news.recv() => Woken::News(news),
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
            let said = self.course.said(give_up).await?;
            if let Some(said) = self.beside_seconds(said) {
                return Ok(said);
            }
        }
    }

    /// Takes news of the probe; returns the site's answer to an order.
    fn take(&mut self, news: Option<News>) -> Result<Option<ProbeSaid>, Outcome> {
        let said = self.course.take(news)?;
        Ok(said.and_then(|said| self.beside_seconds(said)))
    }

    /// Reports a second that the site counted; returns any other answer.
    fn beside_seconds(&mut self, said: ProbeSaid) -> Option<ProbeSaid> {
        let ProbeSaid::Second { step, second, figures } = said else { return Some(said) };
        if step == self.step {
            self.tell_second(second, &figures);
        }
        None
    }

    fn order_step(&self, step: Step) {
        let duration_ms = step.duration.0 / 1_000;
        let order = ProbeStep { step: self.step, rate_bps: step.rate_bps, duration_ms };
        self.course.orders.tell(ProbeOrder::Step(order));
    }

    fn tell_second(&mut self, second: u64, figures: &Figures) {
        if figures.received > 0 {
            self.last_life = Instant::now();
        }
        if self.course.line.seconds {
            let line = second_line(&self.course.line.probe, second, figures, self.course.clock());
            self.course.hub().event(&Event::ProbeSecond(line));
        }
    }

    fn check_silence(&self) -> Result<(), Outcome> {
        if self.last_life.elapsed() < SILENCE {
            return Ok(());
        }
        let seconds = SILENCE.as_secs();
        Err(Outcome::Failed(format!("no packet of the probe arrived for {seconds} s; the path carries none")))
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

pub(super) const STEP_REST: Duration = Duration::from_millis(100);
const SECOND: Duration = Duration::from_secs(1);
