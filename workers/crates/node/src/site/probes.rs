//! Probes of the path at a site, as ordered by its hub: one at a time, towards the hub's own node or the site's relay,
//! within the limit that the site's administrator set. A relay takes part as a site does, and is the other end of the
//! sites that it carries.
mod counting;
mod ends;
mod trials;

use std::net::SocketAddr;
use std::sync::Arc;

use downburst_model::Micros;
use downburst_probe::Step;
use downburst_session::{
    PathProbe, PathProbed, ProbeOpen, ProbeOrder, ProbeSaid, ProbeStep, ProbeTcp, ProbeTrial,
};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinSet;

use crate::clock::Clock;
use crate::probing::{MaySayHello, Stream, Way};
use counting::Counting;
pub(super) use ends::Ends;
use trials::{End, Trials};

/// The probes of a connection.
pub(super) struct Probes {
    /// The highest rate that this site takes part in, bits per second; `None`: no limit of its own.
    most_bps: Option<u64>,
    /// The hosts whose sessions this relay carries; `None`: this is no relay.
    carries: Option<MaySayHello>,
    clock: Clock,
    running: Option<Running>,
    say: mpsc::UnboundedSender<PathProbed>,
    said: mpsc::UnboundedReceiver<PathProbed>,
}

struct Running {
    run: u32,
    open: ProbeOpen,
    carrier: Carrier,
    /// Ends the count of the present step.
    sent: Option<oneshot::Sender<u64>>,
    /// Ends the sending of the present step.
    hold: Arc<Notify>,
    work: JoinSet<()>,
    say: mpsc::UnboundedSender<PathProbed>,
}

/// The site's end of a probe.
enum Carrier {
    Steps(Arc<Way>),
    Trials(Trials),
}

impl Probes {
    pub(super) fn new(most_bps: Option<u64>, carries: Option<MaySayHello>, clock: Clock) -> Self {
        let (say, said) = mpsc::unbounded_channel();
        Self { most_bps, carries, clock, running: None, say, said }
    }

    /// The next answer for the hub; cancelling the wait loses nothing.
    pub(super) async fn said(&mut self) -> PathProbed {
        match self.said.recv().await {
            Some(said) => said,
            None => std::future::pending().await,
        }
    }

    /// Takes an order; `ends`: those to which packets of this session's probes may go.
    pub(super) fn order(&mut self, PathProbe { run, order }: PathProbe, ends: &Ends<'_>) {
        match order {
            ProbeOrder::Open(open) => {
                self.running = None;
                let said = match self.open(run, open, ends) {
                    Ok((running, said)) => {
                        self.running = Some(running);
                        said
                    }
                    Err(sentence) => ProbeSaid::Refused(sentence),
                };
                let _ = self.say.send(PathProbed { run, said });
            }
            ProbeOrder::Close => self.running = self.running.take().filter(|running| running.run != run),
            order => {
                if let Some(running) = self.running.as_mut().filter(|running| running.run == run) {
                    running.take(order);
                }
            }
        }
    }

    /// Ends the probe: it does not outlive the session.
    pub(super) fn end(&mut self) {
        self.running = None;
    }

    fn open(&self, run: u32, open: ProbeOpen, ends: &Ends<'_>) -> Result<(Running, ProbeSaid), String> {
        self.check(&open)?;
        let (carrier, said) = self.carrier(run, &open, ends)?;
        let (work, say) = (JoinSet::new(), self.say.clone());
        let mut running =
            Running { run, open, carrier, sent: None, hold: Arc::new(Notify::new()), work, say };
        running.say_when_heard();
        Ok((running, said))
    }

    fn carrier(&self, run: u32, open: &ProbeOpen, ends: &Ends<'_>) -> Result<(Carrier, ProbeSaid), String> {
        let Some(tcp) = open.tcp else {
            let (port, said) = self.port(open, ends)?;
            return Ok((Carrier::Steps(Arc::new(Way::Udp(port))), said));
        };
        let carrier = self.over_tcp(run, open, tcp, ends.far(open)?)?;
        Ok((carrier, ProbeSaid::Ready { step: None, tcp: Some(true) }))
    }

    fn over_tcp(
        &self,
        run: u32,
        open: &ProbeOpen,
        tcp: ProbeTcp,
        node: SocketAddr,
    ) -> Result<Carrier, String> {
        let (key, clock) = (open.key, self.clock);
        if tcp.trials {
            let say = self.say.clone();
            return Ok(Carrier::Trials(Trials::new(End { run, node, key, clock, say })));
        }
        let own = tcp.control.filter(|_| !open.out);
        let stream = Stream::towards(node, key, own, open.packet_bytes, clock);
        let stream = stream.map_err(|sentence| format!("{sentence} at the site"))?;
        Ok(Carrier::Steps(Arc::new(Way::Tcp(stream))))
    }

    fn check(&self, open: &ProbeOpen) -> Result<(), String> {
        match self.most_bps {
            Some(0) => Err("the site takes part in no probes (--probes-max-mbps 0)".to_owned()),
            Some(most) if open.most_bps > most => Err(format!(
                "the site takes part in probes of at most {most} b/s (--probes-max-mbps), not of {}",
                open.most_bps
            )),
            _ => Ok(()),
        }
    }
}

impl Running {
    fn take(&mut self, order: ProbeOrder) {
        while self.work.try_join_next().is_some() {}
        match order {
            ProbeOrder::Step(step) if step.rate_bps > self.open.most_bps => {
                self.answer(ProbeSaid::Refused(
                    "a step exceeds the rate that the probe was opened for".to_owned(),
                ));
            }
            ProbeOrder::Step(step) => self.begin(step),
            ProbeOrder::Sent { packets, .. } => {
                if let Some(sent) = self.sent.take() {
                    let _ = sent.send(packets);
                }
            }
            ProbeOrder::Hold => self.hold.notify_one(),
            ProbeOrder::Trial(trial) => self.prepare(trial),
            ProbeOrder::Begin { trial } => {
                if let Carrier::Trials(trials) = &mut self.carrier {
                    trials.begin(trial);
                }
            }
            ProbeOrder::Open(_) | ProbeOrder::Close => {}
        }
    }

    fn prepare(&mut self, trial: ProbeTrial) {
        if trial.rate_bps > self.open.most_bps {
            let sentence = "a trial exceeds the rate that the probe was opened for";
            return self.answer(ProbeSaid::Refused(sentence.to_owned()));
        }
        if let Carrier::Trials(trials) = &mut self.carrier {
            trials.prepare(trial);
        }
    }

    fn begin(&mut self, ProbeStep { step: number, rate_bps, duration_ms }: ProbeStep) {
        let Carrier::Steps(way) = &self.carrier else { return };
        let way = Arc::clone(way);
        self.work.abort_all();
        let step = Step { rate_bps, duration: Micros::from_millis(duration_ms) };
        if self.counts() {
            way.count(number, step);
            self.answer(ProbeSaid::Ready { step: Some(number), tcp: None });
            let (sent, all_sent) = oneshot::channel();
            self.sent = Some(sent);
            let (run, say) = (self.run, self.say.clone());
            let counting = Counting { way, run, step: number, say };
            self.work.spawn(counting.until(all_sent));
        } else {
            self.send(&way, number, step);
        }
    }

    fn send(&mut self, way: &Way, number: u16, step: Step) {
        self.hold = Arc::new(Notify::new());
        let mut sending = match way.send(number, step) {
            Ok(sending) => sending,
            Err(error) => return self.answer(ProbeSaid::Refused(format!("the site can't send: {error}"))),
        };
        let (hold, run, say) = (Arc::clone(&self.hold), self.run, self.say.clone());
        self.work.spawn(async move {
            let sent = tokio::select! {
                sent = sending.ended() => sent,
                () = hold.notified() => {
                    sending.hold();
                    sending.ended().await
                }
            };
            let _ = say.send(PathProbed { run, said: ProbeSaid::Sent { step: number, sent } });
        });
    }

    fn answer(&self, said: ProbeSaid) {
        let _ = self.say.send(PathProbed { run: self.run, said });
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::time::Duration;

    use downburst_probe::{Control, Flow, Key};

    use super::*;
    use crate::probing::{Far, Flows, Gathering, Port};

    const KEY: Key = Key([5; 32]);
    const HOME: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const STEP: ProbeStep = ProbeStep { step: 2, rate_bps: 2_000_000, duration_ms: 200 };

    /// A node's port, and a site that was ordered to open a socket to it.
    fn opened(most_bps: Option<u64>, out: bool) -> (Port, Probes) {
        let clock = Clock::start(0);
        let node = Port::listen(HOME, HOME, KEY, 200, clock).unwrap();
        let mut site = Probes::new(most_bps, None, clock);
        let port = node.number().unwrap();
        order(&mut site, opening(port, out, None));
        (node, site)
    }

    fn opening(port: u16, out: bool, tcp: Option<ProbeTcp>) -> ProbeOrder {
        let most_bps = if tcp.is_some_and(|tcp| tcp.trials) { 9_000_000 } else { 2_000_000 };
        ProbeOrder::Open(ProbeOpen { key: KEY, port, out, packet_bytes: 200, most_bps, tcp, other_end: None })
    }

    fn order(site: &mut Probes, order: ProbeOrder) {
        site.order(PathProbe { run: 7, order }, &Ends::Node("127.0.0.1:1"));
    }

    async fn refusal(site: &mut Probes) -> String {
        match site.said().await.said {
            ProbeSaid::Refused(sentence) => sentence,
            said => panic!("{said:?}"),
        }
    }

    #[tokio::test]
    async fn a_site_counts_what_the_node_sends() {
        let (node, mut site) = opened(None, true);
        assert_eq!(site.said().await.said, ProbeSaid::Ready { step: None, tcp: None });
        node.hears().await;
        order(&mut site, ProbeOrder::Step(STEP));
        assert_eq!(site.said().await.said, ProbeSaid::Ready { step: Some(2), tcp: None });
        let step = Step { rate_bps: STEP.rate_bps, duration: Micros::from_millis(STEP.duration_ms) };
        let sent = node.send(2, step).unwrap().ended().await;
        order(&mut site, ProbeOrder::Sent { step: 2, packets: sent.packets });
        loop {
            if let ProbeSaid::Arrived { step: 2, figures } = site.said().await.said {
                assert_eq!((figures.sent, figures.received), (sent.packets, sent.packets));
                return;
            }
        }
    }

    #[tokio::test]
    async fn a_site_sends_a_step_until_the_node_has_it_hold() {
        let (node, mut site) = opened(Some(2_000_000), false);
        assert_eq!(site.said().await.said, ProbeSaid::Ready { step: None, tcp: None });
        node.hears().await;
        let long = ProbeStep { duration_ms: 600_000, ..STEP };
        node.count(2, Step { rate_bps: long.rate_bps, duration: Micros::from_millis(long.duration_ms) });
        order(&mut site, ProbeOrder::Step(long));
        while node.counter().arrived().0 == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        order(&mut site, ProbeOrder::Hold);
        let ProbeSaid::Sent { step: 2, sent } = site.said().await.said else { panic!("it sent") };
        node.counter().settle(sent.packets).await;
        assert_eq!(node.counter().finish(sent.packets).lost, 0);
    }

    #[tokio::test]
    async fn a_site_takes_part_within_its_own_limit_and_never_exceeds_the_order() {
        assert!(refusal(&mut opened(Some(0), true).1).await.contains("no probes"));
        assert!(refusal(&mut opened(Some(1_999_999), true).1).await.contains("at most 1999999 b/s"));
        let (_node, mut site) = opened(None, false);
        site.said().await;
        order(&mut site, ProbeOrder::Step(ProbeStep { rate_bps: 2_000_001, ..STEP }));
        assert!(refusal(&mut site).await.contains("exceeds"));
    }

    #[tokio::test]
    async fn a_closed_probe_answers_no_order() {
        let (_node, mut site) = opened(None, true);
        site.said().await;
        order(&mut site, ProbeOrder::Close);
        order(&mut site, ProbeOrder::Step(STEP));
        assert!(site.running.is_none() && site.said.try_recv().is_err());
    }

    /// A node's port for a probe over TCP, and a site that was ordered to connect to it.
    fn opened_tcp(control: &str, out: bool) -> (Stream, Probes) {
        let (clock, control) = (Clock::start(0), Control::parse(control));
        let node = Stream::listen(Far { at: HOME, site: HOME, key: KEY }, None, 200, clock).unwrap();
        let mut site = Probes::new(None, None, clock);
        let tcp = Some(ProbeTcp { trials: false, control });
        order(&mut site, opening(node.number(), out, tcp));
        (node, site)
    }

    #[tokio::test]
    async fn a_site_counts_and_sends_records_over_its_own_connection() {
        for out in [true, false] {
            let (node, mut site) = opened_tcp("reno", out);
            assert_eq!(site.said().await.said, ProbeSaid::Ready { step: None, tcp: Some(true) });
            node.hears().await;
            let step = Step { rate_bps: STEP.rate_bps, duration: Micros::from_millis(STEP.duration_ms) };
            node.count(2, step);
            order(&mut site, ProbeOrder::Step(STEP));
            let sent = if out {
                site.said().await;
                let sent = node.send(2, step).unwrap().ended().await;
                order(&mut site, ProbeOrder::Sent { step: 2, packets: sent.packets });
                sent
            } else {
                let ProbeSaid::Sent { sent, .. } = site.said().await.said else { panic!("it sent") };
                assert_eq!(sent.tcp.unwrap().control, Control::parse("reno"));
                node.counter().settle(sent.packets).await;
                assert_eq!(node.counter().finish(sent.packets).lost, 0);
                continue;
            };
            loop {
                if let ProbeSaid::Arrived { figures, .. } = site.said().await.said {
                    assert_eq!((figures.received, figures.lost), (sent.packets, 0));
                    break;
                }
            }
        }
    }

    #[tokio::test]
    async fn a_congestion_control_that_the_site_lacks_is_refused() {
        let sentence = refusal(&mut opened_tcp("nonesuch", false).1).await;
        assert!(sentence.contains("nonesuch is not available at the site"), "{sentence}");
    }

    #[tokio::test]
    async fn a_trial_begins_once_both_ends_are_ready_and_stays_within_the_order() {
        let clock = Clock::start(0);
        let node = Gathering::listen(Far { at: HOME, site: HOME, key: KEY }).unwrap();
        let mut site = Probes::new(None, None, clock);
        let tcp = Some(ProbeTcp { trials: true, control: None });
        order(&mut site, opening(node.number(), true, tcp));
        site.said().await;
        let flow = |from_site| Flow { control: Control::parse("reno").unwrap(), from_site };
        let flows = vec![flow(false), flow(true)];
        let trial = ProbeTrial { trial: 1, rate_bps: 9_000_000, duration_ms: 500, flows };
        node.expect(1, 2);
        order(&mut site, ProbeOrder::Trial(trial.clone()));
        assert_eq!(site.said().await.said, ProbeSaid::TrialReady { trial: 1, refusal: None });
        let streams = node.all().await.into_iter().zip([true, false]).collect();
        order(&mut site, ProbeOrder::Begin { trial: 1 });
        let mut here = Flows::begin(streams, trial.rate_bps, Micros::from_millis(500), clock).unwrap();
        let ProbeSaid::TrialEnded { trial: 1, flows } = site.said().await.said else { panic!("it ended") };
        assert!(flows[0].received_bytes > 0 && here.ended().await[1].received_bytes > 0);
        let unknown = Flow { control: Control::parse("nonesuch").unwrap(), from_site: true };
        order(&mut site, ProbeOrder::Trial(ProbeTrial { trial: 2, flows: vec![unknown], ..trial.clone() }));
        let ProbeSaid::TrialReady { trial: 2, refusal: Some(why) } = site.said().await.said else { panic!() };
        assert!(why.contains("nonesuch is not available"), "{why}");
        order(&mut site, ProbeOrder::Trial(ProbeTrial { rate_bps: 9_000_001, ..trial }));
        assert!(refusal(&mut site).await.contains("exceeds"));
    }
}
