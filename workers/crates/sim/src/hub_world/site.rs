use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use downburst_hub::{Session, SessionInput, SessionSettings};
use downburst_model::{
    FeedName, LegId, Machine as _, Micros, Now, ProductInfo, ProductKey, Sequence, SiteName, WallMicros,
};
use downburst_session::{SiteEvent, StoreResult, StreamId, StreamPlan, Subscription, Train, VERSIONS};
use downburst_site::{
    Connection, Contents, Credentials, CredentialsAnswer, CredentialsOrder, HeldProducts, Input, Linked,
    MEMORY_LIMIT_BYTES, Output, PlaceId, PlaceOrder, Positions, Recovered, Role, Settings, StoreItem,
    StoreRequest, Stored, StoredItem, StoredPosition, StoredWhat, recover,
};

use super::hub::{Hub, properties_of, stamp_of};
use super::oracle::Oracle;
use super::streams::DataLinks;
use super::{Counts, SiteConfig};
use crate::net::{Dice, SimulatedLink, Stream};

/// A site, its connection, and the hub's session that serves it.
pub(super) struct Site {
    pub(super) name: String,
    pub(super) index: usize,
    /// The number of its session; a new one for each connection.
    pub(super) session: u64,
    pub(super) connection: Connection,
    pub(super) served: Option<Session>,
    pub(super) admitted: bool,
    /// Feeds whose appends do not wake the session.
    pub(super) muted: BTreeSet<FeedName>,
    pub(super) subscriptions: Vec<Subscription>,
    pub(super) plan: BTreeMap<FeedName, LegId>,
    pub(super) down: Stream<Bytes>,
    pub(super) up: Stream<Bytes>,
    pub(super) groups: BTreeMap<LegId, SimulatedLink<Bytes>>,
    pub(super) data: DataLinks,
    /// The data connections that the hub plans for it.
    pub(super) streams: StreamPlan,
    /// True while its call awaits the hub's answer.
    pub(super) calls: bool,
    /// The hub answers no call before this time.
    pub(super) reachable_at: Micros,
    pub(super) oracle: Oracle,
    pub(super) counts: Counts,
    /// The subscriptions that the site has received.
    heard: Vec<Subscription>,
    pub(super) config: SiteConfig,
    pub(super) dice: Dice,
    joins: u64,
    seed: u64,
    storage: Storage,
}

/// The data that a site keeps over its restarts, and the writes in progress.
#[derive(Default)]
struct Storage {
    places: BTreeMap<PlaceId, Vec<u8>>,
    storing: BTreeMap<(Micros, u64), (u64, Vec<Attempt>)>,
    attempts: u64,
    log: BTreeMap<(FeedName, String), ProductKey>,
    /// The products in the order of their storage.
    order: BTreeMap<FeedName, Vec<(ProductKey, WallMicros)>>,
    checkpoints: BTreeMap<FeedName, StoredPosition>,
}

/// A write in progress, with the planned result for each of its products.
enum Attempt {
    Product(ProductInfo, StoreResult),
    Train(Arc<Train>, Vec<StoreResult>),
}

/// The part of its log that a site reads at its start.
struct Held {
    head: Sequence,
    products: Vec<(ProductKey, WallMicros)>,
}

impl HeldProducts for Held {
    fn head(&self) -> Sequence {
        self.head
    }

    fn visit(&self, after: Sequence, visit: &mut dyn FnMut(&ProductKey, WallMicros)) -> Result<(), String> {
        self.products.iter().skip(after.0 as usize).for_each(|(key, stored)| visit(key, *stored));
        Ok(())
    }
}

impl Site {
    pub(super) fn new(index: usize, config: SiteConfig, seed: u64) -> Self {
        let mut oracle = Oracle::default();
        oracle.subscribed(&config.subscriptions);
        Self {
            name: format!("site-{index}"),
            index,
            session: index as u64,
            connection: connection(index, config.versions, Recovered::default()),
            served: None,
            admitted: false,
            muted: BTreeSet::new(),
            subscriptions: config.subscriptions.clone(),
            plan: BTreeMap::new(),
            down: Stream::new(config.delay, Some(config.rate_bps)),
            up: Stream::new(config.delay, None),
            groups: BTreeMap::new(),
            data: DataLinks::new(config.data_delays.clone()),
            streams: config.streams.clone(),
            calls: false,
            reachable_at: Micros(0),
            oracle,
            counts: Counts::default(),
            dice: Dice::new(seed, 1_000 + index as u64),
            joins: 0,
            heard: Vec::new(),
            seed,
            storage: Storage::default(),
            config,
        }
    }

    /// The site's clocks at the hub's `now`.
    pub(super) fn clocks(&self, now: Now) -> Now {
        Now { wall: WallMicros(now.wall.0.saturating_add(self.config.clock_us)), ..now }
    }

    pub(super) fn tell_hub(&mut self, now: Now, hub: &Hub, input: SessionInput) {
        if let Some(served) = &mut self.served {
            served.handle(now, input, hub);
        }
    }

    pub(super) fn tell(&mut self, now: Now, input: Input) {
        self.connection.handle(self.clocks(now), input);
    }

    /// Answers the site's call with a new session of the hub.
    pub(super) fn connect(&mut self, now: Now) {
        self.calls = false;
        self.admitted = false;
        self.muted.clear();
        self.served = Some(Session::new(now, session_settings(), None));
        self.session += SESSIONS_APART;
        self.tell(now, Input::Dialled(Ok(Linked { resume_at: Vec::new() })));
    }

    pub(super) fn cut(&mut self, now: Now, again_at: Micros) {
        self.drop_connection(again_at);
        self.tell(now, Input::Closed("the connection was cut".to_owned()));
    }

    pub(super) fn restart(&mut self, again_at: Micros, with_log: bool) {
        if self.heard != self.subscriptions {
            self.oracle.died_unaware();
        }
        self.drop_connection(again_at);
        self.calls = false;
        self.groups.clear();
        self.connection = connection(self.index, self.config.versions, self.storage.restart(with_log));
    }

    /// Delivers bytes of the first stream to the site.
    pub(super) fn deliver(&mut self, now: Now, hub: &Hub, bytes: Bytes) {
        let stream = StreamId::FIRST;
        self.tell_hub(now, hub, SessionInput::Taken { stream, bytes: bytes.len() });
        self.deliver_pieces(now, stream, bytes);
    }

    pub(super) fn deliver_pieces(&mut self, now: Now, stream: StreamId, mut bytes: Bytes) {
        while !bytes.is_empty() {
            let cut = 1 + self.dice.below(bytes.len() as u64) as usize;
            let piece = bytes.split_to(cut);
            self.tell(now, Input::Bytes { stream, bytes: piece });
        }
    }

    /// Executes an output of the connection.
    pub(super) fn take_output(&mut self, now: Now, output: Output) {
        assert_eq!(self.connection.misplaced(), 0, "{} got bytes of what was not begun", self.name);
        match output {
            Output::Dial => self.calls = true,
            Output::HangUp => self.hang_up(now),
            Output::Write { stream: StreamId::FIRST, bytes } => {
                self.up.send(now.monotonic, bytes, 0);
            }
            Output::Write { stream, bytes } => self.send_data_up(now, stream, bytes),
            Output::OpenStream { stream, .. } => self.dial(now, stream),
            Output::CloseStream(stream) => self.close_data(stream),
            Output::JoinGroup(join) => {
                self.joins += 1;
                let dice = Dice::new(self.seed, 10_000 + self.joins * 100 + self.index as u64);
                self.groups.insert(join.leg, SimulatedLink::new(self.config.link, dice));
            }
            Output::Ask { leg, .. } => panic!("leg {leg:?} was offered without a repair channel"),
            // Datagrams arrive sealed here, and the session has the key.
            Output::LegKey(..) => {}
            Output::LeaveGroup(leg) => {
                self.groups.remove(&leg);
            }
            Output::Relay(train) => panic!("{} is no relay and got {train:?}", self.name),
            Output::Place(order) => self.storage.carry_out(order),
            Output::Store(request) => self.take_request(now, request),
            Output::Checkpoint(stored) => {
                self.storage.checkpoints.insert(stored.position.feed.clone(), stored);
            }
            Output::Event(event) => self.take_event(event),
            Output::Credentials(order) => self.keep_credentials(now, &order),
            Output::Farewell | Output::Over(_) => panic!("nobody asked {} to leave", self.name),
            Output::Guard(_) | Output::Reached { .. } | Output::Show(_) | Output::News(_) => {}
        }
    }

    /// Completes the writes that are due.
    pub(super) fn store(&mut self, now: Now) {
        let is_due = |at: &Micros| *at <= now.monotonic;
        while let Some(first) = self.storage.storing.first_entry().filter(|it| is_due(&it.key().0)) {
            let (id, attempts) = first.remove();
            let items = attempts.into_iter().map(|attempt| self.end_attempt(now, attempt)).collect();
            self.tell(now, Input::Stored(Stored { id, items }));
        }
    }

    fn end_attempt(&mut self, now: Now, attempt: Attempt) -> StoredItem {
        let (what, log_sequence) = match attempt {
            Attempt::Product(info, result) => {
                let result = self.append(&info, result);
                let sequence = self.storage.head(&info.key.feed).filter(|_| result == StoreResult::Stored);
                (StoredWhat::Product(info, result), sequence)
            }
            Attempt::Train(train, results) => {
                let infos: Vec<ProductInfo> = train.cars.iter().map(|car| train.info(car)).collect();
                let results = infos.iter().zip(results).map(|(info, result)| self.append(info, result));
                let results: Vec<StoreResult> = results.collect();
                let sequence =
                    self.storage.head(&train.feed).filter(|_| results.contains(&StoreResult::Stored));
                (StoredWhat::Train(train, results), sequence)
            }
        };
        StoredItem { what, at: self.clocks(now).wall, log_sequence }
    }

    pub(super) fn deadline(&self) -> Option<Micros> {
        let groups = self.groups.values().filter_map(SimulatedLink::deadline);
        let storing = self.storage.storing.first_key_value().map(|((at, _), _)| *at);
        let machines = [self.connection.deadline(), self.served.as_ref().and_then(Session::deadline)];
        let answered = self.calls.then_some(self.reachable_at);
        let streams = [self.down.deadline(), self.up.deadline(), storing, answered];
        let data = self.data.deadline();
        machines.into_iter().chain(streams).flatten().chain(groups).chain(data).min()
    }

    pub(super) fn verdict(&self) -> Vec<String> {
        let stored: BTreeSet<&(FeedName, String)> = self.storage.log.keys().collect();
        self.oracle.verdict(&stored).into_iter().map(|wrong| format!("{}: {wrong}", self.name)).collect()
    }

    fn drop_connection(&mut self, again_at: Micros) {
        self.served = None;
        self.admitted = false;
        self.down.cut();
        self.up.cut();
        self.data.clear();
        self.reachable_at = again_at;
    }

    /// Closes the connection at the site; the hub is called again after a while.
    fn hang_up(&mut self, now: Now) {
        if self.served.is_some() {
            self.drop_connection(now.monotonic.plus(Micros::from_millis(500)));
        }
        self.calls = false;
        self.tell(now, Input::HungUp { random: 0.0 });
    }

    fn take_request(&mut self, now: Now, request: StoreRequest) {
        let attempts = request.items.into_iter().map(|item| match item {
            StoreItem::Product { info, contents, .. } => self.take_product(info, contents),
            StoreItem::Train { train, .. } => self.take_train(train),
        });
        let attempts = attempts.collect();
        let at = now.monotonic.plus(Micros(self.dice.below(20_000)));
        self.storage.attempt(at, request.id, attempts);
    }

    fn take_product(&mut self, info: ProductInfo, contents: Contents) -> Attempt {
        let bytes = match &contents {
            Contents::Place(place) => Bytes::from(
                self.storage.places.remove(place).expect("a place is made before it is stored from"),
            ),
            Contents::Pieces(pieces) => pieces.whole(),
        };
        assert_eq!(blake3::hash(&bytes).as_bytes(), &info.digest.0, "the bytes of {:?} differ", info.key);
        let result = self.fate();
        Attempt::Product(info, result)
    }

    fn take_train(&mut self, train: Arc<Train>) -> Attempt {
        self.counts.trains += 1;
        for car in &train.cars {
            assert_eq!(blake3::hash(&car.bytes).as_bytes(), &car.digest.0, "the bytes of {car:?} differ");
        }
        let results = train.cars.iter().map(|_| self.fate()).collect();
        Attempt::Train(train, results)
    }

    fn keep_credentials(&mut self, now: Now, order: &CredentialsOrder) {
        let answer = match order {
            CredentialsOrder::Keep(_) => CredentialsAnswer::Kept(Ok(())),
            CredentialsOrder::Read => CredentialsAnswer::Read(None),
            CredentialsOrder::TakeTurn => CredentialsAnswer::Turn { kept: None, entropy: [7; 32] },
            CredentialsOrder::EndTurn => return,
        };
        self.tell(now, Input::Credentials(answer));
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

    fn append(&mut self, info: &ProductInfo, result: StoreResult) -> StoreResult {
        assert_eq!(info.ldm, stamp_of(&info.digest.0), "{:?} comes with what LDM said of it", info.key);
        assert_eq!(
            info.properties,
            properties_of(&info.digest.0, info.size),
            "{:?} comes with its properties",
            info.key
        );
        if result != StoreResult::Stored {
            return result;
        }
        let identity = (info.key.feed.clone(), info.id.as_str().to_owned());
        if self.storage.log.contains_key(&identity) {
            self.counts.held += 1;
            return StoreResult::Held;
        }
        self.counts.stored += 1;
        self.storage.append(identity, info);
        StoreResult::Stored
    }

    fn take_event(&mut self, event: SiteEvent) {
        match event {
            SiteEvent::Violation(sentence) => panic!("{} says: {sentence}", self.name),
            SiteEvent::Dead => panic!("{} takes the hub for dead", self.name),
            SiteEvent::RelayLeg(leg) => panic!("{} is no relay and got {leg:?}", self.name),
            SiteEvent::Lost { key, .. } => {
                self.counts.lost += 1;
                self.oracle.lost(&key);
            }
            SiteEvent::Subscriptions(items) => self.heard = items,
            SiteEvent::LegJoined { .. } => self.counts.joined += 1,
            SiteEvent::LegLeft { .. } => self.counts.left += 1,
            SiteEvent::StreamAttached(_) => self.counts.streams += 1,
            SiteEvent::SiblingGrant(_) | SiteEvent::SiblingWithdrawn(_) | SiteEvent::Fetch(_) => {
                panic!("{} reports no siblings, and the hub names one", self.name)
            }
            SiteEvent::StreamEnded { .. }
            | SiteEvent::RepairChannel { .. }
            | SiteEvent::Welcome { .. }
            | SiteEvent::CircuitOffered(_)
            | SiteEvent::CircuitEnded(_)
            | SiteEvent::CircuitProbe(_)
            | SiteEvent::PathProbe(_)
            | SiteEvent::CircuitSet(_)
            | SiteEvent::RelayLegEnded(_)
            | SiteEvent::CredentialWanted(_)
            | SiteEvent::CredentialKept(_)
            | SiteEvent::Duplicates { .. }
            | SiteEvent::Handling(_)
            | SiteEvent::Nodes(_)
            | SiteEvent::Ways(_)
            | SiteEvent::Refused(_)
            | SiteEvent::SiblingTerms(_)
            | SiteEvent::Clock(_) => {}
        }
    }
}

impl Storage {
    fn carry_out(&mut self, order: PlaceOrder) {
        match order {
            PlaceOrder::Begin(place, info) => {
                let room = vec![0; info.size as usize];
                assert!(self.places.insert(place, room).is_none(), "{:?} is begun twice", info.key);
            }
            PlaceOrder::Write { place, offset, bytes } => {
                let room = self.places.get_mut(&place).expect("a product is begun before its bytes");
                let start = offset as usize;
                room.get_mut(start..start + bytes.len())
                    .expect("a block lies inside its product")
                    .copy_from_slice(&bytes);
            }
            PlaceOrder::Drop(place) => {
                assert!(self.places.remove(&place).is_some(), "{place:?} is abandoned and was not begun");
            }
        }
    }

    fn attempt(&mut self, at: Micros, request: u64, attempts: Vec<Attempt>) {
        for key in attempts.iter().flat_map(Attempt::keys) {
            let mut known = self.storing.values().flat_map(|(_, known)| known);
            assert!(!known.any(|known| known.keys().contains(&key)), "{key:?} is complete twice");
        }
        self.attempts += 1;
        self.storing.insert((at, self.attempts), (request, attempts));
    }

    fn append(&mut self, identity: (FeedName, String), info: &ProductInfo) {
        self.order.entry(info.key.feed.clone()).or_default().push((info.key.clone(), info.stored));
        self.log.insert(identity, info.key.clone());
    }

    fn head(&self, feed: &FeedName) -> Option<Sequence> {
        self.order.get(feed).map(|order| Sequence(order.len() as u64))
    }

    /// The state of a site that starts again; without its log, it has only the checkpoints.
    fn restart(&mut self, with_log: bool) -> Recovered {
        self.places.clear();
        self.storing.clear();
        let positions = Positions { whole: self.checkpoints.clone(), ..Positions::default() };
        let open = |feed: &FeedName| {
            let products = self.order.get(feed).filter(|_| with_log).cloned().unwrap_or_default();
            Ok(Some(Held { head: self.head(feed).unwrap_or_default(), products }))
        };
        recover(positions, Vec::new(), None, open).expect("its log can be read")
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

/// Every other site receives all products at places, as it does large ones; the others receive them in memory.
fn connection(index: usize, versions: &[u16], recovered: Recovered) -> Connection {
    let name = SiteName::parse(&format!("site-{index}")).expect("a legal name");
    let credentials = Credentials::enrolled(name, String::new(), "secret".to_owned());
    let settings = Settings {
        address: "hub".to_owned(),
        software: "sim".to_owned(),
        versions: versions.to_vec(),
        one_node: false,
        only: None,
        decides: true,
        has_files: false,
        memory_limit_bytes: if index.is_multiple_of(2) { 0 } else { MEMORY_LIMIT_BYTES },
    };
    Connection::new(settings, credentials, recovered, Vec::new(), Role::Serve)
}

/// The settings of all sessions of the hub.
fn session_settings() -> Arc<SessionSettings> {
    Arc::new(SessionSettings {
        hub: "hub".to_owned(),
        versions: VERSIONS.to_vec(),
        heartbeats: false,
        sender: None,
        data_connections: 0,
        room_bytes: ROOM_BYTES,
    })
}

/// The size of a connection's socket buffer, filled before its receiver reads.
const ROOM_BYTES: usize = 128 << 10;

/// The step of a site's session number at each connection; the number begins at the site's index.
const SESSIONS_APART: u64 = 1_000;
