//! A connection and a hub's session in virtual time, for tests, which take the parts of network and disk.
use std::collections::{BTreeMap, VecDeque};

use downburst_model::{
    Class, Digest, Epoch, FeedName, LegId, Machine as _, Micros, Now, Origin, ProductId, ProductInfo,
    ProductKey, Sequence, SiteName, WallMicros,
};
use downburst_session::{
    Entry, HubEvent, HubInput, HubOutput, HubSession, Receipt, RefusalCode, Refused, StoreResult, StreamId,
    Subscription, VERSIONS,
};

use crate::*;

/// A site and its hub.
pub(crate) struct Rig {
    pub(crate) now_us: u64,
    pub(crate) connection: Connection,
    /// The hub's half, while there is a connection.
    pub(crate) hub: Option<HubSession>,
    pub(crate) log: Vec<ProductInfo>,
    pub(crate) epoch: Epoch,
    /// The refusal that the hub sends in place of a welcome.
    pub(crate) refuses: Option<RefusalCode>,
    /// The connection's outputs, except bytes for the hub and requests to store.
    pub(crate) outputs: Vec<Output>,
    /// Requests without an answer of the disk.
    pub(crate) storing: VecDeque<StoreRequest>,
    pub(crate) receipts: Vec<Receipt>,
    pub(crate) kept: Option<Credentials>,
    /// True if the disk answers immediately.
    pub(crate) stores: bool,
}

impl Rig {
    pub(crate) fn new(settings: Settings) -> Self {
        Self::with(settings, enrolled("secret"), Vec::new(), Role::Serve)
    }

    pub(crate) fn with(settings: Settings, credentials: Credentials, owed: Vec<Receipt>, role: Role) -> Self {
        Self {
            now_us: START_US,
            connection: Connection::new(settings, credentials, Recovered::default(), owed, role),
            hub: None,
            log: Vec::new(),
            epoch: Epoch(1),
            refuses: None,
            outputs: Vec::new(),
            storing: VecDeque::new(),
            receipts: Vec::new(),
            kept: None,
            stores: true,
        }
    }

    pub(crate) fn now(&self) -> Now {
        Now { monotonic: Micros(self.now_us), wall: WallMicros(self.now_us as i64) }
    }

    pub(crate) fn tell(&mut self, input: Input) {
        self.connection.handle(self.now(), input);
    }

    /// Advances the time, from deadline to deadline.
    pub(crate) fn wait(&mut self, length: Micros) {
        let end = self.now_us + length.0;
        loop {
            self.settle();
            let hub = self.hub.as_ref().and_then(HubSession::deadline);
            let due = self.connection.deadline().into_iter().chain(hub).min();
            match due.filter(|due| due.0 < end) {
                Some(due) => self.now_us = due.0.max(self.now_us + 1),
                None => break,
            }
        }
        self.now_us = end;
        self.settle();
    }

    /// Establishes the connection, with the feed begun.
    pub(crate) fn connect(&mut self) {
        self.settle();
        assert!(self.take_said().contains(&"dial".to_owned()), "it calls the hub");
        self.answer();
        self.settle();
    }

    /// Makes the hub answer an attempt to connect.
    pub(crate) fn answer(&mut self) {
        let mut hub = HubSession::new("hub".to_owned());
        hub.handle(self.now(), HubInput::Room { stream: StreamId::FIRST, bytes: 100 << 20 });
        self.hub = Some(hub);
        self.tell(Input::Dialled(Ok(Linked { resume_at: Vec::new() })));
    }

    /// Makes an attempt to connect fail.
    pub(crate) fn fail_to_answer(&mut self, ended: Ended) {
        self.tell(Input::Dialled(Err(NoLink { sentence: "nobody there".to_owned(), ended })));
    }

    /// Stores products of this size at the hub, which notifies the site.
    pub(crate) fn publish(&mut self, count: usize, size: usize) {
        for _ in 0..count {
            let number = self.log.len() as u64 + 1;
            self.log.push(info(self.epoch, number, &format!("p{number}"), size));
        }
        let head = self.head();
        let now = self.now();
        if let Some(hub) = &mut self.hub {
            hub.handle(now, head);
        }
        self.settle();
    }

    /// Breaks the network.
    pub(crate) fn cut(&mut self) {
        self.hub = None;
        self.tell(Input::Closed("cut".to_owned()));
        self.settle();
    }

    /// Runs both sides until they are idle.
    pub(crate) fn settle(&mut self) {
        loop {
            let mut busy = false;
            while let Some(output) = self.connection.poll(self.now()) {
                self.take(output);
                busy = true;
            }
            busy |= self.serve();
            if !busy {
                return;
            }
        }
    }

    /// Makes the disk answer the oldest request.
    pub(crate) fn store_next(&mut self) {
        if let Some(request) = self.storing.pop_front() {
            let at = self.now().wall;
            let items = request.items.into_iter().map(|item| stored(item, at)).collect();
            self.tell(Input::Stored(Stored { id: request.id, items }));
        }
    }

    /// Takes the connection's outputs since the last call, as words.
    pub(crate) fn take_said(&mut self) -> Vec<String> {
        std::mem::take(&mut self.outputs).iter().filter_map(word).collect()
    }

    fn take(&mut self, output: Output) {
        match output {
            Output::Write { stream: StreamId::FIRST, ref bytes } => {
                let (now, bytes) = (self.now(), bytes.clone());
                if let Some(hub) = &mut self.hub {
                    hub.handle(now, HubInput::Bytes { stream: StreamId::FIRST, bytes });
                }
                return;
            }
            Output::Store(request) => {
                self.storing.push_back(request);
                if self.stores {
                    self.store_next();
                }
                return;
            }
            Output::Credentials(CredentialsOrder::Read) => {
                self.tell(Input::Credentials(CredentialsAnswer::Read(self.kept.clone())));
            }
            // The session before has ended, however it did.
            Output::Dial => self.hub = None,
            Output::HangUp => {
                self.hub = None;
                self.tell(Input::HungUp { random: 1.0 });
            }
            _ => {}
        }
        self.outputs.push(output);
    }

    fn serve(&mut self) -> bool {
        let (now, mut busy) = (self.now(), false);
        let Some(mut hub) = self.hub.take() else { return false };
        let mut is_over = false;
        while let Some(output) = hub.poll(now) {
            busy = true;
            match output {
                HubOutput::Write { bytes, .. } => {
                    self.tell(Input::Bytes { stream: StreamId::FIRST, bytes });
                }
                HubOutput::Authenticate(_) => self.authenticate(&mut hub),
                HubOutput::Read { after, to, .. } => hub.handle(now, self.read(after, to)),
                HubOutput::FindTime { .. } => {
                    hub.handle(now, HubInput::FoundTime { feed: feed(), after: Sequence(0) });
                }
                HubOutput::Event(HubEvent::Receipts { items, .. }) => self.receipts.extend(items),
                HubOutput::Event(HubEvent::Violation(sentence)) => panic!("{sentence}"),
                HubOutput::Close => is_over = true,
                _ => {}
            }
        }
        if is_over {
            self.tell(Input::Closed("the hub closed".to_owned()));
        } else {
            self.hub.get_or_insert(hub);
        }
        busy
    }

    fn authenticate(&mut self, hub: &mut HubSession) {
        let now = self.now();
        if let Some(code) = self.refuses {
            return hub.handle(now, HubInput::Refuse(Refused { code, sentence: "no".to_owned() }));
        }
        let wish = Subscription { feed: feed(), pattern: ".*".to_owned(), not_pattern: None, within: None };
        hub.handle(now, HubInput::Admit { site: site(), subscriptions: vec![wish] });
        hub.handle(now, self.head());
    }

    fn head(&self) -> HubInput {
        let head = self.log.last().map_or(Sequence(0), |info| info.key.sequence);
        HubInput::Feed { feed: feed(), epoch: self.epoch, head, unicast_leg: LegId(1) }
    }

    fn read(&self, after: Sequence, to: Sequence) -> HubInput {
        let within = |info: &&ProductInfo| after < info.key.sequence && info.key.sequence <= to;
        let entry = |info: &ProductInfo| Entry {
            info: info.clone(),
            bytes: Some(vec![7; info.size as usize].into()),
        };
        let entries = self.log.iter().filter(within).map(entry).collect();
        HubInput::Entries { feed: feed(), after, entries, read_to: to }
    }
}

fn stored(item: StoreItem, at: WallMicros) -> StoredItem {
    let what = match item {
        StoreItem::Product { info, .. } => StoredWhat::Product(info, StoreResult::Stored),
        StoreItem::Train { train, .. } => {
            let results = train.cars.iter().map(|_| StoreResult::Stored).collect();
            StoredWhat::Train(train, results)
        }
    };
    StoredItem { what, at, log_sequence: Some(Sequence(1)) }
}

fn word(output: &Output) -> Option<String> {
    Some(match output {
        Output::Dial => "dial".to_owned(),
        Output::HangUp => "hang up".to_owned(),
        Output::Farewell => "farewell".to_owned(),
        Output::Over(unsaid) => format!("over, {} unsaid", unsaid.len()),
        Output::News(News::Well { role, .. }) => format!("well as {role:?}"),
        Output::News(News::Away { silent: true, .. }) => "away, silent".to_owned(),
        Output::News(News::Away { .. }) => "away".to_owned(),
        Output::News(News::Refused(_)) => "refused".to_owned(),
        Output::News(News::Unkept(sentence)) => format!("unkept: {sentence}"),
        Output::News(News::Nodes(_)) => "nodes".to_owned(),
        Output::Guard(_) => "guard".to_owned(),
        Output::Credentials(order) => match order {
            CredentialsOrder::Keep(_) => "keep credentials".to_owned(),
            CredentialsOrder::Read => "read credentials".to_owned(),
            CredentialsOrder::TakeTurn => "take the turn".to_owned(),
            CredentialsOrder::EndTurn => return None,
        },
        Output::Show(order) => format!("show {order:?}"),
        _ => return None,
    })
}

pub(crate) fn settings() -> Settings {
    Settings {
        address: "hub:1".to_owned(),
        software: "test".to_owned(),
        versions: VERSIONS.to_vec(),
        one_node: false,
        only: None,
        decides: true,
        has_files: true,
        memory_limit_bytes: MEMORY_LIMIT_BYTES,
    }
}

pub(crate) fn enrolled(secret: &str) -> Credentials {
    Credentials::enrolled(site(), "ab".repeat(32), secret.to_owned())
}

pub(crate) fn feed() -> FeedName {
    FeedName::parse("F").unwrap()
}

pub(crate) fn site() -> SiteName {
    SiteName::parse("oslo").unwrap()
}

pub(crate) fn info(epoch: Epoch, sequence: u64, id: &str, size: usize) -> ProductInfo {
    ProductInfo {
        key: ProductKey { feed: feed(), epoch, sequence: Sequence(sequence) },
        id: ProductId::parse(id).unwrap(),
        origin: Origin::parse("host").unwrap(),
        created: WallMicros(0),
        stored: WallMicros(START_US as i64 + sequence as i64),
        size: size as u64,
        digest: Digest([0; 32]),
        class: Class::Grid,
        hops: None,
        ldm: None,
        properties: None,
    }
}

/// The number of times that each text occurs.
pub(crate) fn counted(said: &[String]) -> BTreeMap<&str, usize> {
    said.iter().fold(BTreeMap::new(), |mut counts, said| {
        *counts.entry(said.as_str()).or_default() += 1;
        counts
    })
}

pub(crate) const START_US: u64 = 1_700_000_000_000_000;
