//! The course of one probe.
use std::time::Duration;

use downburst_hub::circuits::Direction;
use downburst_hub::path_probes::{ClockOf, Conclusion, Outcome, PathProbeKind, PathProbeLine, second_line};
use downburst_probe::{Figures, Knee, Sent, Step, StepResult, Sweep};
use downburst_session::{ProbeOrder, ProbeSaid, ProbeStep};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{News, Place, SiteOrders};
use crate::hub::lock;
use crate::lines::Event;
use crate::probing::{Port, Sending};

/// A probe that the site has accepted.
pub(super) struct Conduct {
    place: Place,
    line: PathProbeLine,
    orders: SiteOrders,
    port: Port,
    news: mpsc::UnboundedReceiver<News>,
    results: Vec<StepResult>,
    /// The number of the present step.
    step: u16,
    /// The begin of the present step, and the whole seconds since.
    begun: Instant,
    seconds: u64,
    /// The last moment at which something arrived.
    last_life: Instant,
    /// Once it is to end: the reason, and the time for the figures so far.
    stopping: Option<(String, Instant)>,
}

/// An event in the course of a step.
enum Woken {
    News(Option<News>),
    Second,
    Sent(Sent),
    Late,
}

impl Conduct {
    pub(super) fn new(
        place: Place,
        line: PathProbeLine,
        orders: SiteOrders,
        port: Port,
        news: mpsc::UnboundedReceiver<News>,
    ) -> Self {
        let now = Instant::now();
        Self {
            place,
            line,
            orders,
            port,
            news,
            results: Vec::new(),
            step: 0,
            begun: now,
            seconds: 0,
            last_life: now,
            stopping: None,
        }
    }

    /// Runs the probe, and reports its end.
    pub(super) async fn run(mut self) {
        let (outcome, knee) = match self.measure().await {
            Ok(knee) => (Outcome::Done, knee),
            Err(outcome) => (outcome, None),
        };
        let conclusion = Conclusion {
            line: &self.line,
            outcome,
            results: &self.results,
            knee,
            frame_bytes: self.port.frame_bytes(),
            clock: self.clock(),
        };
        let line = conclusion.line();
        let hub = std::sync::Arc::clone(&self.place.hub);
        // A probe that begins on this event finds its place free.
        drop(self);
        hub.event(&Event::ProbeEnded(Box::new(line)));
    }

    async fn measure(&mut self) -> Result<Option<Knee>, Outcome> {
        self.wait_for_hello().await?;
        let asked = self.line.asked();
        if self.line.kind != PathProbeKind::Knee {
            for step in asked {
                self.step(step).await?;
            }
            return Ok(None);
        }
        let mut sweep = Sweep::new(asked, self.port.frame_bytes());
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
                () = self.port.hears() => return Ok(()),
                news = self.news.recv() => { self.take(news)?; }
                () = tokio::time::sleep_until(give_up) => {
                    let port = self.port.number().unwrap_or(0);
                    let seconds = SILENCE.as_secs();
                    return Err(Outcome::Failed(format!(
                        "no packet of the site reached UDP port {port} of this node within {seconds} s; allow UDP to \
                         this node from the site's address"
                    )));
                }
            }
            self.stopped()?;
        }
    }

    /// Runs a step, and keeps its result.
    async fn step(&mut self, step: Step) -> Result<(), Outcome> {
        self.step = u16::try_from(self.results.len()).unwrap_or(u16::MAX);
        (self.seconds, self.begun, self.last_life) = (0, Instant::now(), Instant::now());
        let (sent, figures) = match self.line.direction {
            Direction::Out => self.send(step).await?,
            Direction::In => self.gather(step).await?,
        };
        self.results.push(StepResult { step, sent, figures });
        self.stopped()?;
        // The queues of the path are empty before the next step.
        let rested = Instant::now() + STEP_REST;
        while let Ok(news) = tokio::time::timeout_at(rested, self.news.recv()).await {
            self.take(news)?;
            self.stopped()?;
        }
        Ok(())
    }

    /// Sends a step to the site, which counts it.
    async fn send(&mut self, step: Step) -> Result<(Sent, Figures), Outcome> {
        self.order_step(step);
        let ready = ProbeSaid::Ready { step: Some(self.step) };
        let give_up = Instant::now() + ANSWER_PATIENCE;
        while self.said(give_up).await? != ready {}
        self.stopped()?;
        let sending = self.port.send(self.step, step);
        let mut sending =
            sending.map_err(|error| Outcome::Failed(format!("this node can't send: {error}")))?;
        let give_up = Instant::now() + length(step) + ANSWER_PATIENCE;
        let sent = loop {
            match self.wake(Some(&mut sending), give_up).await {
                Woken::Sent(sent) => break sent,
                Woken::News(news) => {
                    self.take(news)?;
                    if self.stopping.is_some() {
                        sending.hold();
                    }
                }
                Woken::Second => self.check_silence()?,
                Woken::Late => return Err(self.late()),
            }
        };
        self.orders.tell(ProbeOrder::Sent { step: self.step, packets: sent.packets });
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
        self.port.count(self.step, step);
        self.order_step(step);
        let mut give_up = Instant::now() + length(step) + ANSWER_PATIENCE;
        let sent = loop {
            match self.wake(None, give_up).await {
                Woken::News(Some(News::Said(ProbeSaid::Sent { step, sent }))) if step == self.step => {
                    break sent;
                }
                Woken::News(news) => {
                    let was_stopping = self.stopping.is_some();
                    self.take(news)?;
                    if let (false, Some((_, until))) = (was_stopping, &self.stopping) {
                        give_up = *until;
                        self.orders.tell(ProbeOrder::Hold);
                    }
                }
                Woken::Second => {
                    let figures = self.port.second();
                    self.tell_second(self.seconds - 1, &figures);
                    self.check_silence()?;
                }
                Woken::Sent(_) => {}
                Woken::Late => return Err(self.late()),
            }
        };
        self.port.settle(sent.packets).await;
        let rest = self.port.second();
        if rest.sent > 0 || rest.received > 0 {
            self.tell_second(self.seconds, &rest);
        }
        let figures = self.port.finish(sent.packets);
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
            news = self.news.recv() => Woken::News(news),
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
            let until = self.stopping.as_ref().map_or(give_up, |(_, until)| give_up.min(*until));
            let news = tokio::time::timeout_at(until, self.news.recv()).await.map_err(|_| self.late())?;
            if let Some(said) = self.take(news)? {
                return Ok(said);
            }
        }
    }

    /// Takes news of the probe; returns the site's answer to an order.
    fn take(&mut self, news: Option<News>) -> Result<Option<ProbeSaid>, Outcome> {
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
            Some(News::Said(ProbeSaid::Second { step, second, figures })) => {
                if step == self.step {
                    self.tell_second(second, &figures);
                }
                Ok(None)
            }
            Some(News::Said(said)) => Ok(Some(said)),
            // This node's own part is no relay's.
            Some(News::RelaySaid(_)) => Ok(None),
        }
    }

    fn order_step(&self, step: Step) {
        let duration_ms = step.duration.0 / 1_000;
        let order = ProbeStep { step: self.step, rate_bps: step.rate_bps, duration_ms };
        self.orders.tell(ProbeOrder::Step(order));
    }

    fn tell_second(&mut self, second: u64, figures: &Figures) {
        if figures.received > 0 {
            self.last_life = Instant::now();
        }
        if self.line.seconds {
            let line = second_line(&self.line.probe, second, figures, self.clock());
            self.place.hub.event(&Event::ProbeSecond(line));
        }
    }

    fn check_silence(&self) -> Result<(), Outcome> {
        if self.last_life.elapsed() < SILENCE {
            return Ok(());
        }
        let seconds = SILENCE.as_secs();
        Err(Outcome::Failed(format!("no packet of the probe arrived for {seconds} s; the path carries none")))
    }

    fn stopped(&self) -> Result<(), Outcome> {
        self.stopping.as_ref().map_or(Ok(()), |(reason, _)| Err(Outcome::Stopped(reason.clone())))
    }

    /// The site has not answered in time.
    fn late(&self) -> Outcome {
        let sentence = || format!("{} does not answer an order in the probe", self.line.site);
        self.stopped().err().unwrap_or_else(|| Outcome::Failed(sentence()))
    }

    fn clock(&self) -> ClockOf {
        let site = lock(&self.orders.handle.status).clock;
        ClockOf { site, direction: self.line.direction }
    }
}

fn length(step: Step) -> Duration {
    Duration::from_micros(step.duration.0)
}

/// A probe fails when nothing arrives for so long.
pub(super) const SILENCE: Duration = Duration::from_secs(5);
/// Beyond the time that the packets of a step take.
pub(super) const ANSWER_PATIENCE: Duration = Duration::from_secs(5);
/// The figures so far come within this time, or not at all: a stopped probe ends within a second.
pub(super) const STOP_PATIENCE: Duration = Duration::from_millis(800);
pub(super) const STEP_REST: Duration = Duration::from_millis(100);
const SECOND: Duration = Duration::from_secs(1);
