//! Probes between a relay and a site whose session it carries: this node orders both of them, and carries no packet.
use std::sync::Arc;
use std::time::Duration;

use downburst_hub::circuits::Direction;
use downburst_hub::path_probes::{ClockOf, Conclusion, Outcome, PathProbeKind, PathProbeLine, second_line};
use downburst_model::SiteName;
use downburst_probe::{Figures, Knee, Sent, Step, StepResult, Sweep, frame_bytes};
use downburst_session::{ClockOffset, OtherEnd, ProbeOpen, ProbeOrder, ProbeSaid, ProbeStep};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::conduct::STEP_REST;
use super::course::{ANSWER_PATIENCE, SILENCE, STOP_PATIENCE, length};
use super::{ACCEPT_PATIENCE, News, Place, SiteOrders, new_key, not_up, verdict};
use crate::hub::{Hub, lock};
use crate::lines::{Event, Failure};

/// A probe that both ends have accepted.
struct Between {
    place: Place,
    line: PathProbeLine,
    site: SiteOrders,
    relay: SiteOrders,
    news: mpsc::UnboundedReceiver<News>,
    frame_bytes: u64,
    results: Vec<StepResult>,
    /// The number of the present step.
    step: u16,
    /// The last moment at which something arrived.
    last_life: Instant,
    /// Once it is to end: the reason, and the time for the figures so far.
    stopping: Option<(String, Instant)>,
}

/// An end of the probe.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Site,
    Relay,
}

impl Hub {
    /// Begins a probe between a relay and a site; answers once both have accepted.
    pub(super) async fn probe_between(
        self: &Arc<Self>,
        name: SiteName,
        line: PathProbeLine,
    ) -> Result<Value, Failure> {
        let site = self.roster.session(&line.site).ok_or_else(|| not_up(&line.site))?;
        let relay = self.roster.session(&name).ok_or_else(|| not_up(&name))?;
        let (place, mut news) = self.take_place(&line, &site, Some((name.clone(), relay.serial)))?;
        let (site, relay) = [site, relay].map(|handle| SiteOrders { handle, run: place.run }).into();
        let mut open = ProbeOpen {
            key: new_key()?,
            port: 0,
            out: line.direction == Direction::Out,
            packet_bytes: u16::try_from(line.packet_bytes).unwrap_or(u16::MAX),
            most_bps: line.most_bps(),
            tcp: None,
            other_end: Some(OtherEnd::Site),
        };
        relay.tell(ProbeOrder::Open(open.clone()));
        open.port = listening(&name, &mut news).await?;
        open.other_end = Some(OtherEnd::Relay);
        site.tell(ProbeOrder::Open(open.clone()));
        let early = accepts(&line.site, &mut news).await?;
        let port = open.port;
        let now = Instant::now();
        let between = Between {
            place,
            frame_bytes: frame_bytes(line.packet_bytes, false),
            line,
            site,
            relay,
            news,
            results: Vec::new(),
            step: 0,
            last_life: now,
            stopping: None,
        };
        tokio::spawn(between.run(port, early));
        Ok(json!({}))
    }
}

impl Between {
    async fn run(mut self, port: u16, early: Option<ProbeSaid>) {
        let (outcome, knee) = match self.measure(port, early).await {
            Ok(knee) => (Outcome::Done, knee),
            Err(outcome) => (outcome, None),
        };
        let conclusion = Conclusion {
            line: &self.line,
            outcome,
            results: &self.results,
            trials: &[],
            knee,
            frame_bytes: self.frame_bytes,
            clock: self.clock(),
        };
        let line = conclusion.line();
        let hub = Arc::clone(&self.place.hub);
        // A probe that begins on this event finds its place free.
        drop(self);
        hub.event(&Event::ProbeEnded(Box::new(line)));
    }

    async fn measure(&mut self, port: u16, early: Option<ProbeSaid>) -> Result<Option<Knee>, Outcome> {
        self.wait_for_hello(port, early).await?;
        let asked = self.line.asked();
        if self.line.kind != PathProbeKind::Knee {
            for step in asked {
                self.step(step).await?;
            }
            return Ok(None);
        }
        let mut sweep = Sweep::new(asked, self.frame_bytes);
        while let Some(step) = sweep.next_step() {
            self.step(step).await?;
            self.results.last().into_iter().for_each(|result| sweep.took(result));
        }
        Ok(Some(sweep.knee()))
    }

    async fn wait_for_hello(&mut self, port: u16, early: Option<ProbeSaid>) -> Result<(), Outcome> {
        let give_up = Instant::now() + SILENCE;
        let mut heard = early;
        loop {
            if let Some(ProbeSaid::Heard { ipv6 }) = heard {
                self.frame_bytes = frame_bytes(self.line.packet_bytes, ipv6);
                return self.stopped();
            }
            heard = self.said(End::Relay, give_up).await?;
            self.stopped()?;
            if heard.is_none() {
                let seconds = SILENCE.as_secs();
                return Err(Outcome::Failed(format!(
                    "no packet of the site reached UDP port {port} of the relay within {seconds} s; allow UDP to the \
                     relay from the site's address"
                )));
            }
        }
    }

    /// Runs a step, and keeps its result.
    async fn step(&mut self, step: Step) -> Result<(), Outcome> {
        self.step = u16::try_from(self.results.len()).unwrap_or(u16::MAX);
        self.last_life = Instant::now();
        let (sender, counter) = match self.line.direction {
            Direction::Out => (End::Relay, End::Site),
            Direction::In => (End::Site, End::Relay),
        };
        self.order_step(counter, step);
        let give_up = Instant::now() + ANSWER_PATIENCE;
        let ready = ProbeSaid::Ready { step: Some(self.step), tcp: None };
        while self.answer(counter, give_up).await? != ready {}
        self.stopped()?;
        self.order_step(sender, step);
        let sent = self.sent(sender, step).await?;
        self.orders(counter).tell(ProbeOrder::Sent { step: self.step, packets: sent.packets });
        let figures = self.arrived(counter).await?.of_sent(sent.packets);
        self.results.push(StepResult { step, sent, figures });
        self.stopped()?;
        // The queues of the path are empty before the next step.
        let rested = Instant::now() + STEP_REST;
        while self.said(End::Site, rested).await?.is_some() {}
        self.stopped()
    }

    /// Waits until the sender has sent the step.
    async fn sent(&mut self, sender: End, step: Step) -> Result<Sent, Outcome> {
        let give_up = Instant::now() + length(step.duration) + ANSWER_PATIENCE;
        let mut holds = false;
        loop {
            if self.stopping.is_some() && !holds {
                self.orders(sender).tell(ProbeOrder::Hold);
                holds = true;
            }
            match self.said(sender, give_up.min(Instant::now() + LOOK_INTERVAL)).await? {
                Some(ProbeSaid::Sent { step, sent }) if step == self.step => return Ok(sent),
                None if Instant::now() >= give_up => return Err(self.late(sender)),
                _ => self.check_silence()?,
            }
        }
    }

    async fn arrived(&mut self, counter: End) -> Result<Figures, Outcome> {
        let give_up = Instant::now() + ANSWER_PATIENCE;
        loop {
            if let ProbeSaid::Arrived { step, figures } = self.answer(counter, give_up).await?
                && step == self.step
            {
                return Ok(figures);
            }
        }
    }

    /// The next answer of this end in time, or the end of the probe.
    async fn answer(&mut self, end: End, give_up: Instant) -> Result<ProbeSaid, Outcome> {
        loop {
            if let Some(said) = self.said(end, give_up).await? {
                return Ok(said);
            }
            // A probe that is to stop waits for its figures a little longer.
            if Instant::now() >= give_up {
                return Err(self.late(end));
            }
        }
    }

    /// The next answer of this end; `None`: it did not come in time, or the probe is to stop.
    async fn said(&mut self, end: End, give_up: Instant) -> Result<Option<ProbeSaid>, Outcome> {
        loop {
            let until = self.stopping.as_ref().map_or(give_up, |(_, until)| give_up.min(*until));
            let Ok(news) = tokio::time::timeout_at(until, self.news.recv()).await else {
                // Its figures did not come in time.
                return if until < give_up { self.stopped().map(|()| None) } else { Ok(None) };
            };
            let (from, said) = match news {
                None | Some(News::Gone) => {
                    let sentence = format!("the session with {} or its relay ended", self.line.site);
                    return Err(Outcome::Failed(sentence));
                }
                Some(News::Stop(reason)) => {
                    self.stopping.get_or_insert_with(|| (reason, Instant::now() + STOP_PATIENCE));
                    return Ok(None);
                }
                Some(News::Said(said)) => (End::Site, said),
                Some(News::RelaySaid(said)) => (End::Relay, said),
            };
            match said {
                ProbeSaid::Refused(sentence) => {
                    return Err(Outcome::Failed(downburst_hub::shown(&sentence)));
                }
                ProbeSaid::Second { step, second, figures } if step == self.step => {
                    self.tell_second(second, &figures);
                }
                // Of a step that is over.
                ProbeSaid::Second { .. } => {}
                said if from == end => return Ok(Some(said)),
                _ => {}
            }
        }
    }

    fn orders(&self, end: End) -> &SiteOrders {
        match end {
            End::Site => &self.site,
            End::Relay => &self.relay,
        }
    }

    fn order_step(&self, end: End, step: Step) {
        let duration_ms = step.duration.0 / 1_000;
        let order = ProbeStep { step: self.step, rate_bps: step.rate_bps, duration_ms };
        self.orders(end).tell(ProbeOrder::Step(order));
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

    /// An end has not answered in time.
    fn late(&self, end: End) -> Outcome {
        let name = match (end, &self.line.relay) {
            (End::Relay, Some(relay)) => relay,
            _ => &self.line.site,
        };
        let sentence = || format!("{name} does not answer an order in the probe");
        self.stopped().err().unwrap_or_else(|| Outcome::Failed(sentence()))
    }

    /// The site's clock minus the relay's, by the clock of this node.
    fn clock(&self) -> ClockOf {
        let [site, relay] =
            [&self.site, &self.relay].map(|orders| lock(&orders.handle.status).clock.compared);
        let site = site.zip(relay).map(|(site, relay)| ClockOffset {
            offset_us: site.offset_us.saturating_sub(relay.offset_us),
            bound_us: site.bound_us.saturating_add(relay.bound_us),
            round_trip_us: site.round_trip_us.saturating_add(relay.round_trip_us),
        });
        ClockOf { site, direction: self.line.direction }
    }
}

/// The port that the relay opens.
async fn listening(relay: &SiteName, news: &mut mpsc::UnboundedReceiver<News>) -> Result<u16, Failure> {
    match tokio::time::timeout(ACCEPT_PATIENCE, news.recv()).await {
        Ok(Some(News::RelaySaid(ProbeSaid::Listening { port }))) => Ok(port),
        Ok(Some(News::RelaySaid(ProbeSaid::Refused(sentence)))) => {
            Err(Failure::new("refused", format!("{relay}: {}", downburst_hub::shown(&sentence))))
        }
        Ok(Some(News::Stop(reason))) => Err(Failure::new("refused", reason)),
        Ok(Some(News::Gone) | None) => Err(not_up(relay)),
        Ok(Some(_)) | Err(_) => Err(Failure::new(
            "not-answered",
            format!(
                "{relay} does not probe the paths to its sites; bring its node to the release of this one"
            ),
        )),
    }
}

/// Waits until the site accepts; returns the hello that the relay may have heard before the answer came.
async fn accepts(
    site: &SiteName,
    news: &mut mpsc::UnboundedReceiver<News>,
) -> Result<Option<ProbeSaid>, Failure> {
    let give_up = Instant::now() + ACCEPT_PATIENCE;
    let mut early = None;
    loop {
        match tokio::time::timeout_at(give_up, news.recv()).await.ok() {
            Some(Some(News::RelaySaid(heard @ ProbeSaid::Heard { .. }))) => early = Some(heard),
            answer => return verdict(site, answer).map(|()| early),
        }
    }
}

const LOOK_INTERVAL: Duration = Duration::from_millis(200);
