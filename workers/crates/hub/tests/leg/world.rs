//! A leg, its log, and receivers behind lossy links.
use std::collections::BTreeMap;

use bytes::Bytes;
use downburst_hub::{
    CurrentKeys, Leg, LegInput, LegInterface, LegOutput, LegSession, LegSessions, LegSettings, LogRange,
    ProofSecrets,
};
use downburst_model::{
    Class, Digest, Epoch, FeedName, LegId, Machine, Micros, Now, Origin, ProductId, ProductInfo, ProductKey,
    Sequence, SiteName, WallMicros,
};
use downburst_vcmtp::{
    LegKey, Receiver, ReceiverConfig, ReceiverInput, ReceiverOutput, SenderConfig, SigningSeed, Urgency,
};

pub(crate) const LEG: LegId = LegId(7);
const LEG_EPOCH: u64 = 0x0123_4567_89ab_cdef;

/// Everything outside the leg. Time advances from deadline to deadline.
pub(crate) struct World {
    pub(crate) now: Micros,
    pub(crate) leg: Leg<u32>,
    pub(crate) log: BTreeMap<Sequence, (ProductInfo, Option<Bytes>)>,
    pub(crate) sites: Vec<Site>,
    /// Ended rights, by site and credential, with the urgency of the exclusion.
    pub(crate) barred: BTreeMap<(SiteName, String), Urgency>,
    /// Outputs of the leg except datagrams, looks and those about single products.
    pub(crate) said: Vec<(Micros, LegOutput<u32>)>,
    pub(crate) reads: Vec<LogRange>,
    pub(crate) log_fails: bool,
    pub(crate) randomness_fails: bool,
    /// The present keys for joining sites.
    pub(crate) keys: CurrentKeys,
    pub(crate) polls: u64,
    pub(crate) longest_datagram: usize,
    proof_secrets: ProofSecrets,
    random: u64,
    draws: u8,
}

/// A site with its receiver.
pub(crate) struct Site {
    pub(crate) name: SiteName,
    pub(crate) view: LegSession,
    pub(crate) receiver: Receiver,
    /// The share of lost datagrams of the group.
    pub(crate) loss: f64,
    /// The repair channel of its requests.
    pub(crate) channel: Option<u32>,
    /// True if it confirms a key.
    pub(crate) confirms: bool,
    pub(crate) connected: bool,
    /// The number of received bytes of each product.
    pub(crate) arrived: BTreeMap<Sequence, u64>,
    pub(crate) announced: BTreeMap<Sequence, (Sequence, u64)>,
    /// The channels of its repairs.
    pub(crate) repairs: Vec<Option<u32>>,
}

pub(crate) fn settings(rate_bps: u64) -> LegSettings {
    let key = LegKey::new(1, [7; 32]);
    let mut sender = SenderConfig::new(LEG, LEG_EPOCH, key, Sequence(0), rate_bps);
    sender.signing_seed = Some(SigningSeed([3; 32]));
    let interface = LegInterface { mtu_bytes: None, is_circuit: false, is_relayed: false };
    LegSettings { sender, loss_quantile: 0.5, interface }
}

impl World {
    /// A world without sites.
    pub(crate) fn new(rate_bps: u64) -> Self {
        Self::with(settings(rate_bps))
    }

    /// A world without sites, of a leg with these settings.
    pub(crate) fn with(settings: LegSettings) -> Self {
        let keys = CurrentKeys::first(settings.sender.key.clone());
        Self {
            now: Micros::from_secs(100),
            leg: Leg::new(Micros::from_secs(100), settings, &BTreeMap::new()),
            log: BTreeMap::new(),
            sites: Vec::new(),
            barred: BTreeMap::new(),
            said: Vec::new(),
            reads: Vec::new(),
            log_fails: false,
            randomness_fails: false,
            keys,
            polls: 0,
            longest_datagram: 0,
            proof_secrets: ProofSecrets::new([5; 32]),
            random: 11,
            draws: 0,
        }
    }

    /// Adds a site; returns its index.
    pub(crate) fn join(&mut self, loss: f64) -> usize {
        let number = self.sites.len() as u64 + 1;
        let name = SiteName::parse(&format!("site-{number}")).unwrap();
        let credential = format!("credential of site-{number}");
        let secret = self.proof_secrets.of(number);
        let (key, in_use) = self.keys.for_join();
        let mut config = ReceiverConfig::new(LEG, LEG_EPOCH, in_use.clone().unwrap_or(key.clone()), number);
        config.sender_key = self.leg.sender_key();
        config.proof_secret = Some(secret.clone());
        let mut receiver = Receiver::new(config);
        if in_use.is_some() {
            receiver.handle(self.clock(), ReceiverInput::Key(key));
        }
        self.tell(LegInput::KeysTold { site: name.clone(), credential: credential.clone() });
        self.tell(LegInput::Reader { session: number, secret: Some(secret) });
        self.tell(LegInput::Listener);
        self.sites.push(Site {
            name,
            view: LegSession {
                session: number,
                credential,
                offered: true,
                hears: true,
                path_mtu_bytes: None,
            },
            receiver,
            loss,
            channel: None,
            confirms: true,
            connected: true,
            arrived: BTreeMap::new(),
            announced: BTreeMap::new(),
            repairs: Vec::new(),
        });
        self.sites.len() - 1
    }

    /// Adds several sites.
    pub(crate) fn join_all(&mut self, count: usize, loss: f64) {
        for _ in 0..count {
            self.join(loss);
        }
    }

    /// Stores several products.
    pub(crate) fn publish_all(&mut self, count: usize, size: usize) {
        for _ in 0..count {
            self.publish(size);
        }
    }

    /// Stores the next product.
    pub(crate) fn publish(&mut self, size: usize) -> Sequence {
        let sequence = Sequence(self.log.last_key_value().map_or(0, |(last, _)| last.0) + 1);
        self.log.insert(sequence, (info(sequence, size), Some(content(sequence, size))));
        sequence
    }

    pub(crate) fn tell(&mut self, input: LegInput<u32>) {
        self.leg.handle(self.clock(), input);
    }

    pub(crate) fn run_for(&mut self, time: Micros) {
        let end = self.now.plus(time);
        loop {
            let head = self.log.last_key_value().map_or(Sequence(0), |(last, _)| *last);
            self.tell(LegInput::Head(head));
            while self.work() {}
            let sites = self.sites.iter().filter_map(|site| site.receiver.deadline());
            let next = sites.chain(self.leg.deadline()).min().unwrap_or(end).max(self.now);
            if next >= end {
                self.now = end;
                return;
            }
            self.now = next.max(self.now.plus(Micros(1)));
        }
    }

    /// The products that the site lacks, of those whose bytes are in the log.
    pub(crate) fn lacks(&self, site: usize) -> Vec<Sequence> {
        let whole = |sequence: &Sequence, size: u64| {
            let site = &self.sites[site];
            site.announced.contains_key(sequence) && site.arrived.get(sequence).copied().unwrap_or(0) == size
        };
        let kept = self.log.iter().filter(|(_, (_, bytes))| bytes.is_some());
        kept.filter(|(sequence, (info, _))| !whole(sequence, info.size)).map(|(it, _)| *it).collect()
    }

    pub(crate) fn rates(&self) -> Vec<u64> {
        let rate = |(_, output): &(Micros, LegOutput<u32>)| match output {
            LegOutput::Rate(rate_bps) => Some(*rate_bps),
            _ => None,
        };
        self.said.iter().filter_map(rate).collect()
    }

    /// The leg's outputs about keys, abbreviated.
    pub(crate) fn key_story(&self) -> Vec<String> {
        let line = |(_, output): &(Micros, LegOutput<u32>)| match output {
            LegOutput::Keys(CurrentKeys { in_use, next: Some(next) }) => {
                Some(format!("{} then {}", in_use.id, next.id))
            }
            LegOutput::Keys(keys) => Some(format!("{} in use", keys.in_use.id)),
            LegOutput::TellKey { site, key, .. } => Some(format!("{} for {site}", key.id)),
            LegOutput::Barred { site, urgency } => Some(format!("{site} barred {urgency:?}")),
            LegOutput::Draw => Some("draw".to_owned()),
            _ => None,
        };
        self.said.iter().filter_map(line).collect()
    }

    fn clock(&self) -> Now {
        Now { monotonic: self.now, wall: WallMicros(self.now.0 as i64) }
    }

    fn work(&mut self) -> bool {
        let now = self.clock();
        let mut busy = false;
        while let Some(output) = self.leg.poll(now) {
            busy = true;
            self.polls += 1;
            self.carry(output);
        }
        for place in 0..self.sites.len() {
            while let Some(output) = self.sites[place].receiver.poll(now) {
                busy = true;
                self.hear(place, output);
            }
        }
        busy
    }

    fn carry(&mut self, output: LegOutput<u32>) {
        let now = self.clock();
        match output {
            LegOutput::Datagram(datagram) => self.send(&datagram.freeze()),
            LegOutput::Read(range) => self.read(range),
            LegOutput::Repair { session, channel, packet, payload } => {
                let site = self.sites.iter_mut().find(|site| site.view.session == session).unwrap();
                site.repairs.push(channel);
                site.receiver.handle(now, ReceiverInput::Repair { packet, payload });
            }
            LegOutput::Gone { session, packets } => {
                let site = self.sites.iter_mut().find(|site| site.view.session == session).unwrap();
                site.receiver.handle(now, ReceiverInput::Gone(packets));
            }
            LegOutput::Look => self.look(),
            LegOutput::FirstByte(_) | LegOutput::Sent(_) => {}
            other => {
                match &other {
                    LegOutput::Draw => self.draw(),
                    LegOutput::Keys(keys) => self.keys = keys.clone(),
                    LegOutput::TellKey { session, key, .. } => self.tell_key(*session, key),
                    _ => {}
                }
                self.said.push((self.now, other));
            }
        }
    }

    fn send(&mut self, datagram: &Bytes) {
        let now = self.clock();
        self.longest_datagram = self.longest_datagram.max(datagram.len());
        for place in 0..self.sites.len() {
            if self.chance() >= self.sites[place].loss {
                self.sites[place].receiver.handle(now, ReceiverInput::Datagram(datagram[..].into()));
            }
        }
    }

    fn read(&mut self, range: LogRange) {
        self.reads.push(range);
        if self.log_fails {
            return self.tell(LegInput::ReadFailed);
        }
        let wanted: Vec<_> = self
            .log
            .range(Sequence(range.after.0 + 1)..=range.to)
            .take(range.limit_products)
            .map(|(_, entry)| entry.clone())
            .collect();
        let read_to = wanted.last().map_or(range.to, |(info, _)| info.key.sequence);
        for (info, bytes) in wanted {
            if let Some(bytes) = bytes {
                self.tell(LegInput::Product { info, bytes: bytes.into() });
            }
        }
        self.tell(LegInput::ReadTo(read_to));
    }

    fn look(&mut self) {
        let connected = self.sites.iter().filter(|site| site.connected);
        let open = connected.map(|site| (site.name.clone(), site.view.clone())).collect();
        let barred = |site: &SiteName, it: &str| self.barred.get(&(site.clone(), it.to_owned())).copied();
        let now = self.clock();
        self.leg.look(now, &LegSessions { open: &open, barred: &barred });
    }

    fn draw(&mut self) {
        self.draws += 1;
        let secret = (!self.randomness_fails).then_some([100 + self.draws; 32]);
        self.tell(LegInput::Drawn(secret));
    }

    fn tell_key(&mut self, session: u64, key: &LegKey) {
        let now = self.clock();
        let site = self.sites.iter_mut().find(|site| site.view.session == session).unwrap();
        site.receiver.handle(now, ReceiverInput::Key(key.clone()));
        if site.confirms {
            let site = site.name.clone();
            self.tell(LegInput::KeyTaken { site, key_id: key.id });
        }
    }

    fn hear(&mut self, place: usize, output: ReceiverOutput) {
        let now = self.clock();
        let site = &mut self.sites[place];
        match output {
            ReceiverOutput::Announce { previous, info } => {
                site.announced.insert(info.key.sequence, (previous, info.size));
            }
            ReceiverOutput::Block { sequence, offset, bytes } => {
                let size = site.announced[&sequence].1 as usize;
                let at = offset as usize;
                assert_eq!(bytes, content(sequence, size).slice(at..at + bytes.len()));
                *site.arrived.entry(sequence).or_default() += bytes.len() as u64;
            }
            ReceiverOutput::Nak(request) => {
                let (session, channel) = (site.view.session, site.channel);
                self.leg.handle(now, LegInput::Nak { session, request, channel });
            }
            ReceiverOutput::Forged => panic!("nobody forges"),
            ReceiverOutput::Joined { .. }
            | ReceiverOutput::Head { .. }
            | ReceiverOutput::Ask(_)
            | ReceiverOutput::Channel { .. }
            | ReceiverOutput::TooSlow
            | ReceiverOutput::GaveUp(_)
            | ReceiverOutput::Silent => {}
        }
    }

    fn chance(&mut self) -> f64 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn content(sequence: Sequence, size: usize) -> Bytes {
    (0..size).map(|at| (at as u64).wrapping_mul(31).wrapping_add(sequence.0 * 7) as u8).collect()
}

fn info(sequence: Sequence, size: usize) -> ProductInfo {
    ProductInfo {
        key: ProductKey { feed: FeedName::parse("NGRID").unwrap(), epoch: Epoch(9), sequence },
        id: ProductId::parse(&format!("SDUS54 KOUN 161540 /pN0RTLX {}", sequence.0)).unwrap(),
        origin: Origin::parse("idd.example.edu").unwrap(),
        created: WallMicros(1_000),
        stored: WallMicros(2_000),
        size: size as u64,
        digest: Digest([sequence.0 as u8; 32]),
        class: Class::Grid,
        hops: None,
        ldm: None,
        properties: None,
    }
}
