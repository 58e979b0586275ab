//! One multicast leg of a hub with any number of receivers: datagrams over lossy links, requests and repairs over
//! sessions.
//!
//! The leg is the machine that the product itself runs (`downburst-hub`).
//! [`run`] plays a [`Scenario`] and checks the invariants that hold on any network; [`Report::faults`] lists
//! violations.
use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use downburst_hub::{Leg, LegInput, LegInterface, LegOutput, LegSession, LegSessions, LegSettings, LogRange};
use downburst_model::{
    Class, Digest, Epoch, FeedName, LegId, Machine, Micros, NameError, Now, Origin, ProductId, ProductInfo,
    ProductKey, Sequence, SiteName, WallMicros,
};
use downburst_vcmtp::{
    LegKey, ReceiverInput, ReceiverStats, Request, SenderConfig, SenderStats, SigningSeed,
};

use crate::net::{Dice, LinkConfig, LinkStats, Loss, SimulatedLink};

mod site;

use site::{Site, secret_of};

/// The plan of a run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The seed of all random events.
    pub seed: u64,
    /// The leg's rate in Ethernet-frame bits per second.
    pub rate_bps: u64,
    /// Loss on the shared part of the path: all receivers lack the same packets.
    pub shared: Loss,
    /// The capacity of the shared part of the path, in frame bits per second; `None`: unlimited. With a limit, the
    /// sender's rate follows the losses of the median site.
    pub shared_bps: Option<u64>,
    /// The sender's driver wakes at most this long after each deadline.
    pub slack: Micros,
    /// The products to send, in the order of time. Sequences rise by 1 to 3.
    pub products: Vec<PlannedProduct>,
    /// The receivers.
    pub receivers: Vec<PlannedReceiver>,
}

/// A planned product.
#[derive(Clone, Copy, Debug)]
pub struct PlannedProduct {
    /// The time of its arrival at the hub.
    pub at: Micros,
    /// Its size in bytes.
    pub size: usize,
    /// Its class.
    pub class: Class,
}

/// A receiving site.
#[derive(Clone, Debug)]
pub struct PlannedReceiver {
    /// The path of datagrams to it.
    pub link: LinkConfig,
    /// The one-way delay of its session.
    pub session_delay: Micros,
    /// The bottleneck of repairs over the session.
    pub session_rate_bps: Option<u64>,
    /// The path of its repair channel's datagrams, in each direction; `None`: it has no channel.
    pub channel: Option<LinkConfig>,
    /// The time of its join of the group.
    pub joins: Micros,
    /// Begin and end of a pause of its process; its socket holds [`SOCKET_BYTES`] during the pause.
    pub paused: Option<(Micros, Micros)>,
    /// The time at which it vanishes without notice.
    pub dies: Option<Micros>,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// One report for each planned receiver.
    pub receivers: Vec<ReceiverReport>,
    /// The sender's counters.
    pub sender: SenderStats,
    /// Violated invariants, as sentences; empty if all is well.
    pub faults: Vec<String>,
    /// The number of wake-ups of the sender's driver.
    pub wakes: u64,
    /// Runs of datagrams that no receiver got.
    pub shared_losses: u64,
    /// The number of datagrams in these runs.
    pub shared_lost: u64,
    /// Changes of the leg's rate, with their times, if it follows the losses.
    pub rates: Vec<(Micros, u64)>,
}

/// The result for one receiver.
#[derive(Clone, Debug, Default)]
pub struct ReceiverReport {
    /// The sequence after which its coverage begins.
    pub joined: Option<Sequence>,
    /// The time at which each product was complete and correct.
    pub whole: BTreeMap<Sequence, Micros>,
    /// Products that it knows or should know, and does not have.
    pub lacking: Vec<Sequence>,
    /// True if it reported that the group's rate exceeds its capacity.
    pub too_slow: bool,
    /// Its machine's counters.
    pub stats: ReceiverStats,
    /// Its link's counters.
    pub link: LinkStats,
}

impl Default for PlannedReceiver {
    /// A receiver on a clean link, from the start to the end.
    fn default() -> Self {
        Self {
            link: LinkConfig::default(),
            session_delay: Micros::from_millis(10),
            session_rate_bps: None,
            channel: None,
            joins: Micros(0),
            paused: None,
            dies: None,
        }
    }
}

impl Report {
    /// Bytes of repairs, to the group and over sessions, for each byte of products.
    pub fn repair_share(&self) -> f64 {
        let repairs = self.sender.group_repair_bytes + self.sender.site_repair_bytes;
        repairs as f64 / self.sender.product_bytes.max(1) as f64
    }

    /// UDP payload sent for each byte of products, including repairs to the group.
    pub fn datagram_share(&self) -> f64 {
        self.sender.datagram_bytes as f64 / self.sender.product_bytes.max(1) as f64
    }
}

/// Plays a scenario to its end.
pub fn run(scenario: Scenario) -> Result<Report, NameError> {
    World::new(scenario)?.run()
}

/// The size of the socket buffer of a paused receiver.
pub const SOCKET_BYTES: u64 = 4 << 20;

struct World {
    now: Micros,
    leg: Leg<()>,
    uplink: SimulatedLink<()>,
    uplink_lost: bool,
    /// The leg's view of the sites, which are present all the time.
    sessions: BTreeMap<SiteName, LegSession>,
    wake: Option<(Micros, Micros)>,
    slack: Micros,
    dice: Dice,
    coming: VecDeque<(Micros, ProductInfo, Bytes)>,
    products: BTreeMap<Sequence, (Sequence, ProductInfo, Bytes)>,
    sites: Vec<Site>,
    frames: Vec<(Micros, u64)>,
    rate_bps: u64,
    depth_bytes: u64,
    report: Report,
}

impl World {
    fn new(scenario: Scenario) -> Result<Self, NameError> {
        let Scenario { seed, rate_bps, shared, shared_bps, slack, products, receivers } = scenario;
        let key = LegKey::new(1, [7; 32]);
        let mut config = SenderConfig::new(LEG, LEG_EPOCH, key.clone(), Sequence(0), rate_bps);
        config.signing_seed = Some(SigningSeed([3; 32]));
        let mut dice = Dice::new(seed, 0);
        let products = make_products(&products, &mut dice)?;
        let mut previous = Sequence(0);
        let catalogue = products.iter().map(|(_, info, bytes)| {
            let before = std::mem::replace(&mut previous, info.key.sequence);
            (info.key.sequence, (before, info.clone(), bytes.clone()))
        });
        let catalogue = catalogue.collect();
        let depth_bytes = config.burst_bytes;
        let interface = LegInterface { mtu_bytes: None, is_circuit: false, is_relayed: false };
        let settings = LegSettings { sender: config, loss_quantile: 0.5, interface };
        let mut leg = Leg::new(Micros(0), settings, &BTreeMap::new());
        let has_macs = seed % 2 == 1;
        let keys = (&key, leg.sender_key(), has_macs);
        let sites: Vec<Site> =
            (1..).zip(receivers).map(|(number, plan)| Site::new(number, plan, seed, keys)).collect();
        for site in sites.iter().map(|site| site.number) {
            let secret = has_macs.then(|| secret_of(site));
            leg.handle(clock(Micros(0)), LegInput::Reader { session: site, secret });
        }
        let sessions = sites.iter().map(|site| session_of(site.number)).collect::<Result<_, _>>()?;
        Ok(Self {
            now: Micros(0),
            depth_bytes,
            leg,
            sessions,
            uplink: SimulatedLink::new(
                LinkConfig {
                    delay: Micros(0),
                    loss: shared,
                    rate_bps: shared_bps,
                    buffer_bytes: SWITCH_BYTES,
                    ..LinkConfig::default()
                },
                Dice::new(seed, UPLINK),
            ),
            uplink_lost: false,
            wake: None,
            slack,
            dice,
            coming: products.into(),
            products: catalogue,
            sites,
            frames: Vec::new(),
            rate_bps,
            report: Report {
                receivers: vec![],
                sender: SenderStats::default(),
                faults: vec![],
                wakes: 0,
                shared_losses: 0,
                shared_lost: 0,
                rates: vec![],
            },
        })
    }

    fn run(mut self) -> Result<Report, NameError> {
        self.poll_leg();
        let mut end = None;
        loop {
            if end.is_none() && self.is_over() {
                end = Some(self.now.plus(REST));
                self.sites.iter_mut().for_each(Site::mend);
                self.uplink.change(LinkConfig::default());
            }
            let Some(next) = self.next_event().filter(|next| end.is_none_or(|end| *next <= end)) else {
                break;
            };
            if next > RUN_LIMIT {
                self.report.faults.push(format!("nothing was settled after {} s", RUN_LIMIT.0 / 1_000_000));
                break;
            }
            self.now = self.now.max(next);
            self.step();
        }
        self.fall_silent();
        self.check_pacing();
        self.report.sender = self.leg.stats();
        for site in self.sites {
            let (report, faults) = site.finish(&self.products);
            self.report.receivers.push(report);
            self.report.faults.extend(faults);
        }
        Ok(self.report)
    }

    fn next_event(&mut self) -> Option<Micros> {
        let due = self.leg.deadline();
        if self.wake.map(|(due, _)| due) != due {
            self.wake = due.map(|due| (due, due.plus(Micros(self.dice.below(self.slack.0 + 1)))));
        }
        let product = self.coming.front().map(|(at, ..)| *at);
        let sites = self.sites.iter().filter_map(|site| site.next_event(self.now));
        sites.chain(product).chain(self.wake.map(|(_, wake)| wake)).min()
    }

    fn step(&mut self) {
        let mut poll = self.wake.is_some_and(|(_, wake)| wake <= self.now);
        self.report.wakes += u64::from(poll);
        while self.coming.front().is_some_and(|(at, ..)| *at <= self.now) {
            let Some((_, info, _)) = self.coming.pop_front() else { break };
            self.leg.handle(clock(self.now), LegInput::Head(info.key.sequence));
            poll = true;
        }
        let mut asked = Vec::new();
        for site in &mut self.sites {
            site.step(self.now, &self.products);
            while let Some(request) = site.up.receive(self.now) {
                asked.push((site.number, request, None));
            }
            while let Some(request) = site.heard_by_hub(self.now) {
                asked.push((site.number, request, Some(())));
            }
        }
        poll |= !asked.is_empty();
        asked.into_iter().for_each(|(site, request, channel)| self.ask(site, request, channel));
        if poll {
            self.poll_leg();
        }
    }

    fn ask(&mut self, session: u64, request: Request, channel: Option<()>) {
        self.leg.handle(clock(self.now), LegInput::Nak { session, request, channel });
    }

    fn poll_leg(&mut self) {
        while let Some(output) = self.leg.poll(clock(self.now)) {
            self.carry(output);
        }
        if self.leg.deadline().is_some_and(|due| due <= self.now) {
            self.report.faults.push(format!("the leg's deadline stays at {:?}", self.now));
        }
    }

    fn carry(&mut self, output: LegOutput<()>) {
        match output {
            LegOutput::Datagram(bytes) => self.send(&bytes.freeze()),
            LegOutput::Read(range) => self.read(range),
            LegOutput::Repair { session, channel, packet, payload } => {
                self.repair(session, channel, packet, payload);
            }
            LegOutput::Gone { session, packets } => {
                self.reply(session, ReceiverInput::Gone(packets), SESSION_OVERHEAD_BYTES);
            }
            LegOutput::Look => {
                let sessions = LegSessions { open: &self.sessions, barred: &|_, _| None };
                self.leg.look(clock(self.now), &sessions);
            }
            LegOutput::Rate(rate_bps) => self.report.rates.push((self.now, rate_bps)),
            // No site is served by unicast in this world.
            LegOutput::TakeOff(_) | LegOutput::Trial(_) | LegOutput::FirstByte(_) | LegOutput::Sent(_) => {}
            LegOutput::Draw
            | LegOutput::Keys(_)
            | LegOutput::TellKey { .. }
            | LegOutput::Barred { .. }
            | LegOutput::DatagramBytes(_) => {
                self.report.faults.push("the key or the datagrams change, and no site did".to_owned());
            }
        }
    }

    fn send(&mut self, bytes: &Bytes) {
        let frame_bytes = bytes.len() as u64 + 46;
        self.frames.push((self.now, frame_bytes));
        if self.is_lost_to_all(frame_bytes) {
            return;
        }
        for site in self.sites.iter_mut().filter(|site| site.listens(self.now)) {
            site.link.send(self.now, bytes.clone(), frame_bytes);
        }
    }

    /// Reads the log: the catalogue up to the head that was announced to the leg.
    fn read(&mut self, range: LogRange) {
        let LogRange { after, to, limit_products, .. } = range;
        let wanted = self.products.range(after..=to).filter(|(sequence, _)| **sequence > after);
        let mut read_to = to;
        for (place, (sequence, (_, info, bytes))) in wanted.enumerate() {
            if place == limit_products {
                break;
            }
            let (info, bytes) = (info.clone(), bytes.clone());
            self.leg.handle(clock(self.now), LegInput::Product { info, bytes: bytes.into() });
            read_to = *sequence;
        }
        self.leg.handle(clock(self.now), LegInput::ReadTo(read_to));
    }

    fn repair(&mut self, number: u64, channel: Option<()>, packet: u64, payload: Bytes) {
        let place = usize::try_from(number - 1).unwrap_or(usize::MAX);
        match self.sites.get_mut(place).filter(|_| channel.is_some()) {
            Some(site) => site.repair_by_channel(self.now, packet, &payload),
            None => {
                let bytes = payload.len() as u64 + SESSION_OVERHEAD_BYTES;
                self.reply(number, ReceiverInput::Repair { packet, payload }, bytes);
            }
        }
    }

    fn is_lost_to_all(&mut self, frame_bytes: u64) -> bool {
        let gone = |stats: LinkStats| stats.lost + stats.dropped;
        let before = gone(self.uplink.stats());
        self.uplink.send(self.now, (), frame_bytes);
        while self.uplink.receive(Micros(u64::MAX)).is_some() {}
        let lost = gone(self.uplink.stats()) > before;
        self.report.shared_losses += u64::from(lost && !self.uplink_lost);
        self.report.shared_lost += u64::from(lost);
        self.uplink_lost = lost;
        lost
    }

    fn reply(&mut self, site: u64, input: ReceiverInput, bytes: u64) {
        let place = usize::try_from(site - 1).unwrap_or(usize::MAX);
        if let Some(site) = self.sites.get_mut(place).filter(|site| site.lives(self.now)) {
            site.down.send(self.now, input, bytes);
        }
    }

    fn is_over(&self) -> bool {
        let sent = self.coming.is_empty() && self.leg.backlog_bytes() == 0;
        sent && self
            .sites
            .iter()
            .all(|site| !site.lives(self.now) || site.is_settled(self.now, &self.products))
    }

    /// Stops the sender: the remaining sites must fall silent and then have no timers left.
    fn fall_silent(&mut self) {
        let end = self.now.plus(Micros::from_secs(10));
        loop {
            let next = self.sites.iter().filter_map(|site| site.next_event(self.now)).min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            for site in &mut self.sites {
                site.step(self.now, &self.products);
                site.cut();
            }
        }
        for site in self.sites.iter().filter(|site| site.lives(self.now)) {
            if let Some(due) = site.receiver.deadline() {
                self.report.faults.push(format!("site {} still has a timer at {due:?}", site.number));
            }
        }
    }

    /// Checks that the frames sent in any interval never exceed the rate plus 1 % and one burst.
    fn check_pacing(&mut self) {
        let allowed = |time: Micros| i128::from(self.rate_bps) * i128::from(time.0) * 101 / 800_000_000;
        let (mut total, mut lowest, mut worst) = (0i128, i128::MAX, i128::MIN);
        for (time, bytes) in &self.frames {
            lowest = lowest.min(total - allowed(*time));
            total += i128::from(*bytes);
            worst = worst.max(total - allowed(*time) - lowest);
        }
        if worst > i128::from(self.depth_bytes) + 1 {
            self.report.faults.push(format!("{worst} bytes left at once, {} may", self.depth_bytes));
        }
    }
}

/// Products with different bytes: each is a different slice of one random pool.
fn make_products(
    plan: &[PlannedProduct],
    dice: &mut Dice,
) -> Result<Vec<(Micros, ProductInfo, Bytes)>, NameError> {
    let largest = plan.iter().map(|product| product.size).max().unwrap_or(0);
    let pool: Bytes = (0..largest + plan.len()).map(|_| dice.below(256).to_le_bytes()[0]).collect();
    let (feed, origin) = (FeedName::parse("NGRID")?, Origin::parse("idd.example.edu")?);
    let mut sequence = 0;
    let made = plan.iter().enumerate().map(|(place, product)| {
        sequence += 1 + dice.below(3);
        let bytes = pool.slice(place..place + product.size);
        let info = ProductInfo {
            key: ProductKey { feed: feed.clone(), epoch: Epoch(5), sequence: Sequence(sequence) },
            id: ProductId::parse(&format!("SDUS54 KOUN 161540 /pN0RTLX {place}"))?,
            origin: origin.clone(),
            created: wall(product.at),
            stored: wall(product.at),
            size: bytes.len() as u64,
            digest: Digest(*blake3::hash(&bytes).as_bytes()),
            class: product.class,
            hops: None,
            ldm: None,
            properties: None,
        };
        Ok((product.at, info, bytes))
    });
    made.collect()
}

/// The view of a site that hears the leg, with nothing known of its path.
fn session_of(session: u64) -> Result<(SiteName, LegSession), NameError> {
    let credential = String::new();
    let view = LegSession { session, credential, offered: true, hears: true, path_mtu_bytes: None };
    Ok((SiteName::parse(&format!("site-{session}"))?, view))
}

fn clock(now: Micros) -> Now {
    Now { monotonic: now, wall: wall(now) }
}

fn wall(now: Micros) -> WallMicros {
    WallMicros(i64::try_from(now.0).unwrap_or(i64::MAX))
}

/// The port buffer of a small switch.
const SWITCH_BYTES: u64 = 128 << 10;

/// The name of the dice for shared loss.
const UPLINK: u64 = u64::MAX - 7;

const LEG: LegId = LegId(3);

const LEG_EPOCH: u64 = 0x5eed;

/// The overhead of a session's frame: its share of TLS, TCP and IP.
const SESSION_OVERHEAD_BYTES: u64 = 90;

/// The time for packets without product data, which may still be missing after every product has arrived; on clean
/// links.
const REST: Micros = Micros::from_secs(30);

/// No scenario needs more virtual time.
const RUN_LIMIT: Micros = Micros::from_secs(600);
