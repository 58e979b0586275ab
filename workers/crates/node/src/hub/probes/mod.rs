//! Probes of the paths to sites: one at a time for each site, on the agent's orders.
mod between;
mod conduct;
mod course;
mod steps;
mod trials;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use downburst_hub::SessionInput;
use downburst_hub::circuits::Direction;
use downburst_hub::path_probes::PathProbeLine;
use downburst_model::SiteName;
use downburst_probe::{Control, Key};
use downburst_session::{HubInput, PathProbe, PathProbed, ProbeOpen, ProbeOrder, ProbeSaid, ProbeTcp};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::hub::roster::{Command, Handle};
use crate::hub::{Hub, lock};
use crate::lines::{Failure, StopProbeLine};
use crate::probing::{Far, Gathering, Port, Stream, Way, check_control};
use conduct::Conduct;
use course::Course;
use trials::Trials;

/// The probes of a hub's node.
#[derive(Default)]
pub(super) struct Probes {
    last_run: AtomicU32,
    /// By name.
    running: Mutex<BTreeMap<String, Running>>,
}

struct Running {
    run: u32,
    site: SiteName,
    /// The session that it belongs to.
    serial: u64,
    /// The relay that takes this node's part, and its session.
    relay: Option<(SiteName, u64)>,
    news: mpsc::UnboundedSender<News>,
}

/// News of a probe from outside.
#[derive(Debug)]
enum News {
    Said(ProbeSaid),
    /// The relay's answer, where one takes this node's part.
    RelaySaid(ProbeSaid),
    Stop(String),
    /// The session ended.
    Gone,
}

/// The place of a probe among those that run; given back when it is dropped.
struct Place {
    hub: Arc<Hub>,
    probe: String,
    run: u32,
}

/// This node's end of a probe.
enum End {
    Steps(Way),
    Trials(Gathering),
}

impl End {
    fn number(&self) -> std::io::Result<u16> {
        match self {
            Self::Steps(way) => way.number(),
            Self::Trials(gathering) => Ok(gathering.number()),
        }
    }
}

/// The orders to the site of one probe.
struct SiteOrders {
    handle: Handle,
    run: u32,
}

impl Hub {
    /// Begins a probe; answers once the site has accepted.
    pub(super) async fn probe(self: &Arc<Self>, line: PathProbeLine) -> Result<Value, Failure> {
        if let Some(relay) = line.relay.clone() {
            return self.probe_between(relay, line).await;
        }
        let handle = self.roster.session(&line.site).ok_or_else(|| not_up(&line.site))?;
        let (place, mut news) = self.take_place(&line, &handle, None)?;
        let orders = SiteOrders { handle, run: place.run };
        let key = new_key()?;
        let far = Far { at: self.own_ip(), site: orders.handle.peer, key };
        let end = self.open_end(&line, far)?;
        let open = ProbeOpen {
            key,
            port: end.number().map_err(|error| io(&error.to_string()))?,
            out: line.direction == Direction::Out,
            packet_bytes: packet_bytes(&line),
            most_bps: line.most_bps(),
            tcp: line.tcp(),
            other_end: None,
        };
        orders.tell(ProbeOrder::Open(open));
        accepted(&line, &mut news).await?;
        let course = Course::new(place, line, orders, news);
        match end {
            End::Steps(way) => tokio::spawn(Conduct::new(course, way).run()),
            End::Trials(gathering) => tokio::spawn(Trials::new(course, gathering).run()),
        };
        Ok(json!({}))
    }

    /// Opens the port of a probe.
    fn open_end(&self, line: &PathProbeLine, far: Far) -> Result<End, Failure> {
        let (bytes, clock) = (packet_bytes(line), self.clock);
        let end = match line.tcp() {
            None => {
                let port = Port::listen(far.at, far.site, far.key, bytes, clock);
                port.map(|port| End::Steps(Way::Udp(port)))
            }
            Some(ProbeTcp { trials: true, .. }) => Gathering::listen(far).map(End::Trials),
            Some(ProbeTcp { control, .. }) => {
                let own = control.filter(|_| line.direction == Direction::Out);
                own.into_iter().try_for_each(check_available)?;
                Stream::listen(far, own, bytes, clock).map(|stream| End::Steps(Way::Tcp(stream)))
            }
        };
        let by = if line.tcp().is_some() { "TCP" } else { "UDP" };
        end.map_err(|error| io(&format!("{by} for the probe can't be opened: {error}")))
    }

    /// Ends a probe; its `probe-ended` follows. One that is not known has ended.
    pub(super) fn stop_probe(&self, StopProbeLine { probe, reason }: StopProbeLine) -> Value {
        if let Some(running) = lock(&self.sessions.probes.running).get(&probe) {
            let _ = running.news.send(News::Stop(reason));
        }
        json!({})
    }

    /// Handles a site's answer.
    pub(super) fn path_probed(&self, site: &SiteName, PathProbed { run, said }: PathProbed) {
        self.sessions
            .probes
            .tell(|running| running.run == run && running.site == *site, || News::Said(said.clone()));
        let is_relay = |running: &Running| running.relay.as_ref().is_some_and(|(relay, _)| relay == site);
        let probes = &self.sessions.probes;
        probes.tell(|running| running.run == run && is_relay(running), || News::RelaySaid(said.clone()));
    }

    /// Ends the probes of a session that ended.
    pub(super) fn probes_gone(&self, serial: u64) {
        let is_of_it = |running: &Running| {
            running.serial == serial || running.relay.as_ref().is_some_and(|(_, relay)| *relay == serial)
        };
        self.sessions.probes.tell(is_of_it, || News::Gone);
    }

    fn take_place(
        self: &Arc<Self>,
        line: &PathProbeLine,
        handle: &Handle,
        relay: Option<(SiteName, u64)>,
    ) -> Result<(Place, mpsc::UnboundedReceiver<News>), Failure> {
        let mut running = lock(&self.sessions.probes.running);
        if running.contains_key(&line.probe) {
            return Err(Failure::new("busy", format!("a probe {} runs already", line.probe)));
        }
        let ends = [Some(&line.site), relay.as_ref().map(|(relay, _)| relay)];
        for end in ends.into_iter().flatten() {
            if let Some((other, _)) = running.iter().find(|(_, other)| other.takes(end)) {
                let sentence = format!("the probe {other} of {end} runs; stop it, or wait for its end");
                return Err(Failure::new("busy", sentence));
            }
        }
        let run = self.sessions.probes.last_run.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let (sender, news) = mpsc::unbounded_channel();
        let (site, serial) = (line.site.clone(), handle.serial);
        running.insert(line.probe.clone(), Running { run, site, serial, relay, news: sender });
        Ok((Place { hub: Arc::clone(self), probe: line.probe.clone(), run }, news))
    }

    /// The address at which sites reach this node.
    fn own_ip(&self) -> IpAddr {
        self.entrance.places.first().map_or(Ipv6Addr::UNSPECIFIED.into(), std::net::SocketAddr::ip)
    }
}

impl Running {
    /// True if this site or relay is an end of it.
    fn takes(&self, end: &SiteName) -> bool {
        self.site == *end || self.relay.as_ref().is_some_and(|(relay, _)| relay == end)
    }
}

impl Probes {
    fn tell(&self, is_meant: impl Fn(&Running) -> bool, news: impl Fn() -> News) {
        for running in lock(&self.running).values().filter(|running| is_meant(running)) {
            let _ = running.news.send(news());
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut running = lock(&self.hub.sessions.probes.running);
        if running.get(&self.probe).is_some_and(|running| running.run == self.run) {
            running.remove(&self.probe);
        }
    }
}

impl SiteOrders {
    fn tell(&self, order: ProbeOrder) {
        let probe = HubInput::ProbePath(PathProbe { run: self.run, order });
        let _ = self.handle.commands.send(Command::Tell(SessionInput::Pass(probe)));
    }
}

impl Drop for SiteOrders {
    fn drop(&mut self) {
        self.tell(ProbeOrder::Close);
    }
}

async fn accepted(line: &PathProbeLine, news: &mut mpsc::UnboundedReceiver<News>) -> Result<(), Failure> {
    let site = &line.site;
    let answer = tokio::time::timeout(ACCEPT_PATIENCE, news.recv()).await.ok();
    if let Some(Some(News::Said(ProbeSaid::Ready { tcp, .. }))) = &answer
        && line.tcp().is_some()
        && *tcp != Some(true)
    {
        let remedy = "bring its node to the release of this one";
        return Err(Failure::new("not-answered", format!("{site} knows no probes over TCP; {remedy}")));
    }
    verdict(site, answer)
}

/// The site's answer; `None`: it did not come in time.
fn verdict(site: &SiteName, answer: Option<Option<News>>) -> Result<(), Failure> {
    match answer {
        Some(Some(News::Said(ProbeSaid::Ready { .. }))) => Ok(()),
        Some(Some(News::Said(ProbeSaid::Refused(sentence)))) => {
            Err(Failure::new("refused", downburst_hub::shown(&sentence)))
        }
        Some(Some(News::Stop(reason))) => Err(Failure::new("refused", reason)),
        Some(Some(News::Gone) | None) => Err(not_up(site)),
        Some(Some(News::Said(_) | News::RelaySaid(_))) | None => Err(Failure::new(
            "not-answered",
            format!(
                "{site} does not answer an order to probe its path; bring its node to the release of this one"
            ),
        )),
    }
}

fn new_key() -> Result<Key, Failure> {
    let mut key = [0; 32];
    let filled = getrandom::fill(&mut key);
    filled.map(|()| Key(key)).map_err(|error| io(&format!("the system gives no random numbers: {error}")))
}

fn not_up(site: &SiteName) -> Failure {
    Failure::new("not-up", format!("{site} is not connected to this node, so there is no path to probe"))
}

fn io(sentence: &str) -> Failure {
    Failure::new("io", sentence)
}

const ACCEPT_PATIENCE: Duration = Duration::from_secs(5);

fn packet_bytes(line: &PathProbeLine) -> u16 {
    u16::try_from(line.packet_bytes).unwrap_or(u16::MAX)
}

/// Checks that this node can send by a congestion control.
fn check_available(control: Control) -> Result<(), Failure> {
    check_control(control).map_err(|sentence| {
        let has = crate::tcp::congestion_controls().0.join(", ");
        Failure::new("refused", format!("{sentence} at this node; its kernel has {has}"))
    })
}
