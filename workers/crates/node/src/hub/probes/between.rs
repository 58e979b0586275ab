//! Probes between a relay and a site whose session it carries: this node orders both of them, and carries no packet.
use std::sync::Arc;
use std::time::Duration;

use downburst_hub::circuits::Direction;
use downburst_hub::path_probes::{Outcome, PathProbeLine};
use downburst_model::SiteName;
use downburst_probe::{Figures, Knee, Sent, Step, StepResult, frame_bytes};
use downburst_session::{OtherEnd, ProbeOpen, ProbeOrder, ProbeSaid};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::course::{ANSWER_PATIENCE, Course, Peer, SILENCE, length};
use super::steps::{STEP_REST, Steps, ToCome};
use super::{ACCEPT_PATIENCE, News, SiteOrders, new_key, not_up, packet_bytes, verdict};
use crate::hub::Hub;
use crate::lines::Failure;

/// A probe that both ends have accepted.
struct Between {
    steps: Steps,
    frame_bytes: u64,
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
            packet_bytes: packet_bytes(&line),
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
        let frame_bytes = frame_bytes(line.packet_bytes, false);
        let mut course = Course::new(place, line, site, news);
        course.relay = Some(relay);
        tokio::spawn(Between { steps: Steps::new(course), frame_bytes }.run(port, early));
        Ok(json!({}))
    }
}

impl Between {
    async fn run(mut self, port: u16, early: Option<ProbeSaid>) {
        let measured = self.measure(port, early).await;
        self.steps.end(measured, self.frame_bytes);
    }

    async fn measure(&mut self, port: u16, early: Option<ProbeSaid>) -> Result<Option<Knee>, Outcome> {
        self.wait_for_hello(port, early).await?;
        let mut to_come = ToCome::of(&self.steps.course.line, self.frame_bytes);
        while let Some(step) = to_come.next_step() {
            self.step(step).await?;
            to_come.took(&self.steps.results);
        }
        Ok(to_come.knee())
    }

    async fn wait_for_hello(&mut self, port: u16, early: Option<ProbeSaid>) -> Result<(), Outcome> {
        let give_up = Instant::now() + SILENCE;
        let mut heard = early;
        loop {
            if let Some(ProbeSaid::Heard { ipv6 }) = heard {
                self.frame_bytes = frame_bytes(self.steps.course.line.packet_bytes, ipv6);
                return self.steps.course.stopped();
            }
            heard = self.said(Peer::Relay, give_up).await?;
            self.steps.course.stopped()?;
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
        self.steps.begin();
        let (sender, counter) = match self.steps.course.line.direction {
            Direction::Out => (Peer::Relay, Peer::Site),
            Direction::In => (Peer::Site, Peer::Relay),
        };
        self.order_step(counter, step);
        let give_up = Instant::now() + ANSWER_PATIENCE;
        let ready = ProbeSaid::Ready { step: Some(self.steps.number), tcp: None };
        while self.answer(counter, give_up).await? != ready {}
        self.steps.course.stopped()?;
        self.order_step(sender, step);
        let sent = self.sent(sender, step).await?;
        self.order(counter, ProbeOrder::Sent { step: self.steps.number, packets: sent.packets });
        let figures = self.arrived(counter).await?.of_sent(sent.packets);
        self.steps.results.push(StepResult { step, sent, figures });
        self.steps.course.stopped()?;
        let rested = Instant::now() + STEP_REST;
        while self.said(Peer::Site, rested).await?.is_some() {}
        self.steps.course.stopped()
    }

    /// Waits until the sender has sent the step.
    async fn sent(&mut self, sender: Peer, step: Step) -> Result<Sent, Outcome> {
        let give_up = Instant::now() + length(step.duration) + ANSWER_PATIENCE;
        let mut holds = false;
        loop {
            if self.steps.course.stopping.is_some() && !holds {
                self.order(sender, ProbeOrder::Hold);
                holds = true;
            }
            match self.said(sender, give_up.min(Instant::now() + LOOK_INTERVAL)).await? {
                Some(ProbeSaid::Sent { step, sent }) if step == self.steps.number => return Ok(sent),
                None if Instant::now() >= give_up => return Err(self.steps.course.late_peer(sender)),
                _ => self.steps.check_silence()?,
            }
        }
    }

    async fn arrived(&mut self, counter: Peer) -> Result<Figures, Outcome> {
        let give_up = Instant::now() + ANSWER_PATIENCE;
        loop {
            if let ProbeSaid::Arrived { step, figures } = self.answer(counter, give_up).await?
                && step == self.steps.number
            {
                return Ok(figures);
            }
        }
    }

    /// The next answer of this end in time, or the end of the probe.
    async fn answer(&mut self, peer: Peer, give_up: Instant) -> Result<ProbeSaid, Outcome> {
        loop {
            if let Some(said) = self.said(peer, give_up).await? {
                return Ok(said);
            }
            // A probe that is to stop waits for its figures a little longer.
            if Instant::now() >= give_up {
                return Err(self.steps.course.late_peer(peer));
            }
        }
    }

    /// The next answer of this end; `None`: it did not come in time, or the probe is to stop.
    async fn said(&mut self, peer: Peer, give_up: Instant) -> Result<Option<ProbeSaid>, Outcome> {
        loop {
            let until = self.steps.course.stopping.as_ref().map_or(give_up, |(_, until)| give_up.min(*until));
            let Ok(news) = tokio::time::timeout_at(until, self.steps.course.news.recv()).await else {
                // Its figures did not come in time.
                return if until < give_up { self.steps.course.stopped().map(|()| None) } else { Ok(None) };
            };
            let Some((from, said)) = self.steps.course.hear(news)? else { return Ok(None) };
            match self.steps.beside_seconds(said) {
                Some(said) if from == peer => return Ok(Some(said)),
                _ => {}
            }
        }
    }

    fn order(&self, peer: Peer, order: ProbeOrder) {
        if let Some(orders) = self.orders(peer) {
            orders.tell(order);
        }
    }

    fn order_step(&self, peer: Peer, step: Step) {
        if let Some(orders) = self.orders(peer) {
            self.steps.order(orders, step);
        }
    }

    fn orders(&self, peer: Peer) -> Option<&SiteOrders> {
        match peer {
            Peer::Site => Some(&self.steps.course.orders),
            Peer::Relay => self.steps.course.relay.as_ref(),
        }
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
