use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use downburst_model::{FeedName, LegId, Machine, Micros, Now, ProductInfo, ProductKey, SiteName, WallMicros};
use downburst_session::{
    FeedPosition, HubInput, HubSession, Proof, SiteEvent, SiteInput, SiteOutput, SiteSession, SiteState,
    StoreResult, StreamId, StreamPlan, Subscription, Train,
};

use super::hub::stamp_of;
use super::oracle::Oracle;
use super::streams::DataLinks;
use super::{Counts, SiteConfig};
use crate::net::{Dice, SimulatedLink, Stream};

/// A site, its connection, and the hub's session that serves it.
pub(super) struct Site {
    pub(super) name: String,
    pub(super) index: usize,
    pub(super) session: SiteSession,
    pub(super) served: Option<HubSession>,
    pub(super) admitted: bool,
    pub(super) subscriptions: Vec<Subscription>,
    pub(super) plan: BTreeMap<FeedName, LegId>,
    pub(super) offer_again: BTreeMap<LegId, Micros>,
    pub(super) down: Stream<Bytes>,
    pub(super) up: Stream<Bytes>,
    pub(super) groups: BTreeMap<LegId, SimulatedLink<Bytes>>,
    pub(super) data: DataLinks,
    /// The data connections that the hub plans for it.
    pub(super) streams: StreamPlan,
    pub(super) connect_at: Option<Micros>,
    pub(super) oracle: Oracle,
    pub(super) counts: Counts,
    /// The subscriptions as the site knows them.
    heard: Vec<Subscription>,
    pub(super) config: SiteConfig,
    pub(super) dice: Dice,
    joins: u64,
    seed: u64,
    spool: BTreeMap<ProductKey, Vec<u8>>,
    storing: BTreeMap<(Micros, u64), Attempt>,
    attempts: u64,
    log: BTreeMap<(FeedName, String), ProductKey>,
    checkpoints: BTreeMap<FeedName, FeedPosition>,
}

/// What is being stored, and how each product of it is going to end.
enum Attempt {
    Product(ProductInfo, StoreResult),
    Train(Arc<Train>, Vec<StoreResult>),
}

impl Site {
    pub(super) fn new(index: usize, config: SiteConfig, seed: u64) -> Self {
        let mut oracle = Oracle::default();
        oracle.subscribed(&config.subscriptions);
        Self {
            name: format!("site-{index}"),
            index,
            session: SiteSession::new("sim".to_owned(), SiteState::default()).speaking(config.versions),
            served: None,
            admitted: false,
            subscriptions: config.subscriptions.clone(),
            plan: BTreeMap::new(),
            offer_again: BTreeMap::new(),
            down: Stream::new(config.delay, Some(config.rate_bps)),
            up: Stream::new(config.delay, None),
            groups: BTreeMap::new(),
            data: DataLinks::new(config.data_delays.clone()),
            streams: config.streams.clone(),
            connect_at: Some(Micros(0)),
            oracle,
            counts: Counts::default(),
            dice: Dice::new(seed, 1_000 + index as u64),
            joins: 0,
            heard: Vec::new(),
            seed,
            spool: BTreeMap::new(),
            storing: BTreeMap::new(),
            attempts: 0,
            log: BTreeMap::new(),
            checkpoints: BTreeMap::new(),
            config,
        }
    }

    /// The site's clocks at the hub's `now`.
    pub(super) fn clocks(&self, now: Now) -> Now {
        Now { wall: WallMicros(now.wall.0.saturating_add(self.config.clock_us)), ..now }
    }

    pub(super) fn tell_hub(&mut self, now: Now, input: HubInput) {
        if let Some(hub) = &mut self.served {
            hub.handle(now, input);
        }
    }

    pub(super) fn connect(&mut self, now: Now) {
        self.connect_at = None;
        self.admitted = false;
        let mut hub = HubSession::new("hub".to_owned());
        hub.handle(now, HubInput::Room { stream: StreamId::FIRST, bytes: ROOM_BYTES });
        self.served = Some(hub);
        let name = SiteName::parse(&self.name).expect("a legal name");
        let proof = Proof::Credential { site: name, secret: "secret".to_owned() };
        self.session.handle(self.clocks(now), SiteInput::Connected(proof));
    }

    pub(super) fn cut(&mut self, now: Now, again_at: Micros) {
        self.drop_connection(again_at);
        self.session.handle(self.clocks(now), SiteInput::Disconnected);
    }

    pub(super) fn restart(&mut self, again_at: Micros, with_log: bool) {
        if self.heard != self.subscriptions {
            self.oracle.died_unaware();
        }
        self.drop_connection(again_at);
        self.spool.clear();
        self.storing.clear();
        self.groups.clear();
        let mut feeds = self.checkpoints.clone();
        for key in self.log.values().filter(|_| with_log) {
            let position = feeds.get_mut(&key.feed).filter(|position| position.epoch == key.epoch);
            if let Some(position) = position {
                position.settled.insert(key.sequence.0, key.sequence.0);
            }
        }
        let session = SiteSession::new("sim".to_owned(), SiteState { feeds });
        self.session = session.speaking(self.config.versions);
    }

    /// Carries bytes of the first stream to the site.
    pub(super) fn deliver(&mut self, now: Now, bytes: Bytes) {
        let stream = StreamId::FIRST;
        self.tell_hub(now, HubInput::Room { stream, bytes: bytes.len() });
        self.deliver_pieces(now, stream, bytes);
    }

    pub(super) fn deliver_pieces(&mut self, now: Now, stream: StreamId, mut bytes: Bytes) {
        while !bytes.is_empty() {
            let cut = 1 + self.dice.below(bytes.len() as u64) as usize;
            let piece = bytes.split_to(cut);
            self.session.handle(self.clocks(now), SiteInput::Bytes { stream, bytes: piece });
        }
    }

    /// Does what the session asks. Answers bytes for the hub.
    pub(super) fn take_output(&mut self, now: Now, output: SiteOutput) {
        match output {
            SiteOutput::Write { stream: StreamId::FIRST, bytes } => {
                self.up.send(now.monotonic, bytes, 0);
            }
            SiteOutput::Write { stream, bytes } => self.send_data_up(now, stream, bytes),
            SiteOutput::OpenStream(stream) => self.dial(now, stream),
            SiteOutput::CloseStream(stream) => self.close_data(stream),
            SiteOutput::JoinGroup(join) => {
                self.joins += 1;
                let dice = Dice::new(self.seed, 10_000 + self.joins * 100 + self.index as u64);
                self.groups.insert(join.leg, SimulatedLink::new(self.config.link, dice));
            }
            SiteOutput::Ask { leg, .. } => panic!("leg {leg:?} was offered without a repair channel"),
            SiteOutput::LeaveGroup(leg) => {
                self.groups.remove(&leg);
            }
            SiteOutput::Begin(info) => self.begin(&info),
            SiteOutput::Block { key, offset, bytes } => self.write(&key, offset, &bytes),
            SiteOutput::Complete { info, .. } => self.complete(now, info),
            SiteOutput::Train { train, .. } => self.take_train(now, train),
            SiteOutput::Abandon(key) => {
                assert!(self.spool.remove(&key).is_some(), "{key:?} is abandoned and was not begun");
            }
            SiteOutput::Checkpoint(position) => {
                self.checkpoints.insert(position.feed.clone(), position);
            }
            SiteOutput::Event(event) => self.take_event(event),
            SiteOutput::Close => self.cut(now, now.monotonic.plus(Micros::from_millis(500))),
        }
    }

    /// Ends the attempts to store that are due.
    pub(super) fn store(&mut self, now: Now) {
        while let Some(first) = self.storing.first_entry().filter(|first| first.key().0 <= now.monotonic) {
            let attempt = first.remove();
            let at = self.clocks(now).wall;
            let input = match attempt {
                Attempt::Product(info, result) => {
                    let (key, result) = (info.key.clone(), self.append(&info, result));
                    SiteInput::Settled { key, result, at }
                }
                Attempt::Train(train, results) => {
                    let infos: Vec<ProductInfo> = train.cars.iter().map(|car| train.info(car)).collect();
                    let results = infos.iter().zip(results).map(|(info, result)| self.append(info, result));
                    SiteInput::TrainSettled { results: results.collect(), train, at }
                }
            };
            self.session.handle(self.clocks(now), input);
        }
    }

    pub(super) fn deadline(&self) -> Option<Micros> {
        let groups = self.groups.values().filter_map(SimulatedLink::deadline);
        let storing = self.storing.first_key_value().map(|((at, _), _)| *at);
        let machines = [self.session.deadline(), self.served.as_ref().and_then(Machine::deadline)];
        let streams = [self.down.deadline(), self.up.deadline(), storing, self.connect_at];
        let again = self.offer_again.values().copied().min();
        let data = self.data.deadline();
        machines.into_iter().chain(streams).flatten().chain(groups).chain(again).chain(data).min()
    }

    pub(super) fn verdict(&self) -> Vec<String> {
        let stored: BTreeSet<&(FeedName, String)> = self.log.keys().collect();
        self.oracle.verdict(&stored).into_iter().map(|wrong| format!("{}: {wrong}", self.name)).collect()
    }

    fn drop_connection(&mut self, again_at: Micros) {
        self.served = None;
        self.admitted = false;
        self.offer_again.clear();
        self.down.cut();
        self.up.cut();
        self.data.clear();
        self.connect_at = Some(again_at);
    }

    fn begin(&mut self, info: &ProductInfo) {
        let room = vec![0; info.size as usize];
        assert!(self.spool.insert(info.key.clone(), room).is_none(), "{:?} is begun twice", info.key);
    }

    fn write(&mut self, key: &ProductKey, offset: u64, bytes: &[u8]) {
        let spool = self.spool.get_mut(key).expect("a product is begun before its bytes");
        let start = offset as usize;
        spool
            .get_mut(start..start + bytes.len())
            .expect("a block lies inside its product")
            .copy_from_slice(bytes);
    }

    fn complete(&mut self, now: Now, info: ProductInfo) {
        let bytes = self.spool.remove(&info.key).expect("a product is begun before it is complete");
        assert_eq!(blake3::hash(&bytes).as_bytes(), &info.digest.0, "the bytes of {:?} differ", info.key);
        let result = self.fate();
        self.attempt(now, Attempt::Product(info, result));
    }

    fn take_train(&mut self, now: Now, train: Arc<Train>) {
        self.counts.trains += 1;
        for car in &train.cars {
            assert_eq!(blake3::hash(&car.bytes).as_bytes(), &car.digest.0, "the bytes of {car:?} differ");
        }
        let results = train.cars.iter().map(|_| self.fate()).collect();
        self.attempt(now, Attempt::Train(train, results));
    }

    fn fate(&mut self) -> StoreResult {
        if self.dice.chance(self.config.bad_digest) {
            StoreResult::DigestMismatch
        } else if self.dice.chance(self.config.store_failure) {
            StoreResult::Failed("the disk is full".to_owned())
        } else {
            StoreResult::Stored
        }
    }

    fn attempt(&mut self, now: Now, attempt: Attempt) {
        let at = now.monotonic.plus(Micros(self.dice.below(20_000)));
        for key in attempt.keys() {
            let doubled = self.storing.values().any(|known| known.keys().contains(&key));
            assert!(!doubled, "{key:?} is complete twice");
        }
        self.attempts += 1;
        self.storing.insert((at, self.attempts), attempt);
    }

    fn append(&mut self, info: &ProductInfo, result: StoreResult) -> StoreResult {
        assert_eq!(info.ldm, stamp_of(&info.digest.0), "{:?} comes with what LDM said of it", info.key);
        if result != StoreResult::Stored {
            return result;
        }
        let identity = (info.key.feed.clone(), info.id.as_str().to_owned());
        if self.log.contains_key(&identity) {
            self.counts.held += 1;
            return StoreResult::Held;
        }
        self.counts.stored += 1;
        self.log.insert(identity, info.key.clone());
        StoreResult::Stored
    }

    fn take_event(&mut self, event: SiteEvent) {
        match event {
            SiteEvent::Violation(sentence) => panic!("{} says: {sentence}", self.name),
            SiteEvent::Dead => panic!("{} takes the hub for dead", self.name),
            SiteEvent::Lost { key, .. } => {
                self.counts.lost += 1;
                self.oracle.lost(&key);
            }
            SiteEvent::Subscriptions(items) => self.heard = items,
            SiteEvent::LegJoined { .. } => self.counts.joined += 1,
            SiteEvent::LegLeft { .. } => self.counts.left += 1,
            SiteEvent::StreamAttached(_) => self.counts.streams += 1,
            SiteEvent::StreamEnded { .. }
            | SiteEvent::RepairChannel { .. }
            | SiteEvent::Welcome { .. }
            | SiteEvent::CircuitOffered(_)
            | SiteEvent::CircuitEnded(_)
            | SiteEvent::CredentialWanted(_)
            | SiteEvent::CredentialKept(_)
            | SiteEvent::Duplicates { .. }
            | SiteEvent::Handling(_)
            | SiteEvent::Nodes(_)
            | SiteEvent::Refused(_)
            | SiteEvent::Clock(_) => {}
        }
    }
}

impl Attempt {
    fn keys(&self) -> Vec<ProductKey> {
        match self {
            Self::Product(info, _) => vec![info.key.clone()],
            Self::Train(train, _) => train.cars.iter().map(|car| train.key(car)).collect(),
        }
    }
}

/// What a connection takes before its receiver reads: a socket's buffer.
const ROOM_BYTES: usize = 128 << 10;
