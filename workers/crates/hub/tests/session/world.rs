//! A session, the site at its other end, and a hub that answers the session's requests.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use downburst_hub::{
    CredentialAnswer, FeedStanding, HubFacts, IdentityOutput, KernelOutput, ReadRequest, Reference, Report,
    ResendRead, Session, SessionInput, SessionOutput, SessionSettings, SiteLine, StatusChange, Way,
};
use downburst_model::{
    Class, Digest, Epoch, FeedName, LegId, Machine as _, Micros, Now, Origin, ProductId, ProductInfo,
    ProductKey, Sequence, SiteName, WallMicros,
};
use downburst_session::{
    Duplicates, Entry, FeedPosition, HubInput, LegJoin, Proof, SiteInput, SiteOutput, SiteSession, SiteState,
    StoreResult, StreamId, Stretch, VERSIONS,
};
use downburst_vcmtp::LegKey;
use serde_json::{Value, json};

pub(crate) const EPOCH: Epoch = Epoch(7);

/// The facts that sessions look up.
pub(crate) struct Facts {
    pub(crate) line: Option<SiteLine>,
    /// The highest number that the log assigned.
    pub(crate) highest: u64,
    pub(crate) late_bps: Option<u64>,
    pub(crate) too_slow: BTreeSet<LegId>,
    pub(crate) ways: Vec<Way>,
    pub(crate) learnt: usize,
}

/// A session, a site, and the state of a hub around them.
pub(crate) struct World {
    pub(crate) now: Micros,
    pub(crate) facts: Facts,
    pub(crate) session: Session,
    pub(crate) site: SiteSession,
    pub(crate) log: Vec<Entry>,
    pub(crate) forgotten: Option<(Sequence, Sequence)>,
    /// Faults of the next reads: a sentence, or `None` for a closed feed.
    pub(crate) bad_reads: Vec<Option<String>>,
    /// The feeds are not watched yet.
    pub(crate) waits_for_feeds: bool,
    /// The roster's refusal of the credential.
    pub(crate) refuses: Option<downburst_session::Refused>,
    /// The agent's immediate answer, if there is one.
    pub(crate) answer: Option<CredentialAnswer>,
    pub(crate) resends: Vec<downburst_session::ResendOrder>,
    /// All outputs except bytes, reads and reports, in order, as text.
    pub(crate) asked: Vec<String>,
    pub(crate) reports: Vec<Report>,
    pub(crate) reads: Vec<(Micros, ReadRequest)>,
    pub(crate) stored: Vec<u64>,
    pub(crate) seen: Vec<downburst_session::SiteEvent>,
    pub(crate) closed: bool,
    /// Groups that the site was asked to join and to leave.
    pub(crate) joined: Vec<LegJoin>,
    pub(crate) left: Vec<LegId>,
}

pub(crate) fn feed() -> FeedName {
    FeedName::parse("CONDUIT").unwrap()
}

pub(crate) fn oslo() -> SiteName {
    SiteName::parse("oslo").unwrap()
}

/// A site's line with fields that replace or extend the usual ones.
pub(crate) fn line(with: Value) -> SiteLine {
    let mut line = json!({
        "site": "oslo", "credentials": [], "active": true,
        "subscriptions": [{"feed": "CONDUIT", "pattern": ".*", "not_pattern": null}],
    });
    let fields = line.as_object_mut().unwrap();
    fields.extend(with.as_object().unwrap().clone());
    serde_json::from_value(line).unwrap()
}

pub(crate) fn settings() -> SessionSettings {
    SessionSettings {
        hub: "hub".to_owned(),
        versions: VERSIONS.to_vec(),
        heartbeats: true,
        sender: None,
        data_connections: 4,
        room_bytes: 64 << 10,
    }
}

pub(crate) fn join(leg: u32) -> LegJoin {
    LegJoin {
        leg: LegId(leg),
        feed: feed(),
        epoch: EPOCH,
        leg_epoch: 1,
        group: "239.0.0.1".to_owned(),
        port: 5_000,
        key: LegKey::new(1, [1; 32]),
        key_in_use: None,
        sender_key: None,
        proof_secret: None,
        pass: None,
        interface: String::new(),
        rate_bps: 1_000_000,
        source: None,
        channel: None,
    }
}

fn entry(sequence: u64) -> Entry {
    let info = ProductInfo {
        key: ProductKey { feed: feed(), epoch: EPOCH, sequence: Sequence(sequence) },
        id: ProductId::parse(&format!("product {sequence}")).unwrap(),
        origin: Origin::parse("hub").unwrap(),
        created: WallMicros(1),
        stored: WallMicros(sequence as i64),
        size: 20_000,
        digest: Digest([0; 32]),
        class: Class::Grid,
        hops: None,
        ldm: None,
        properties: None,
    };
    Entry { info, bytes: Some(vec![sequence as u8; 20_000].into()) }
}

impl HubFacts for Facts {
    fn line(&self, _: &SiteName) -> Option<SiteLine> {
        self.line.clone()
    }

    fn may_take(&self, _: &SiteName, feed: &FeedName) -> bool {
        self.line.as_ref().is_some_and(|line| line.may_take(feed))
    }

    fn is_open(&self, name: &FeedName) -> bool {
        *name == feed()
    }

    fn highest(&self, name: &FeedName, epoch: Epoch) -> Option<Sequence> {
        (*name == feed() && epoch == EPOCH).then_some(Sequence(self.highest))
    }

    fn find_time(&self, _: &FeedName, _: WallMicros) -> Sequence {
        Sequence(0)
    }

    fn feed_of(&self, leg: LegId) -> Option<FeedName> {
        (leg.0 < 100).then(feed)
    }

    fn is_too_slow(&self, _: Micros, _: &SiteName, leg: LegId) -> bool {
        self.too_slow.contains(&leg)
    }

    fn first_byte(&self, _: LegId, _: Sequence) -> Option<WallMicros> {
        None
    }

    fn reference(&self) -> Reference {
        Reference::new(false)
    }

    fn late_bps(&self) -> Option<u64> {
        self.late_bps
    }

    fn ways_to(&self, _: &SiteName) -> Vec<Way> {
        self.ways.clone()
    }

    fn learnt(&self, _: &SiteName) -> usize {
        self.learnt
    }

    fn site_at(&self, peer: std::net::SocketAddr) -> Option<SiteName> {
        (peer == "10.0.0.9:4000".parse().unwrap()).then(oslo)
    }

    fn hears(&self, port: u16) -> bool {
        port == PORT
    }
}

impl World {
    /// A site that has settled the first `settled` of a log of `products`, and connects.
    pub(crate) fn connected(products: u64, settled: u64) -> Self {
        let mut world = Self::new(settings(), products, settled);
        world.greet(Proof::Credential { site: oslo(), secret: "s".to_owned() });
        world
    }

    pub(crate) fn new(settings: SessionSettings, products: u64, settled: u64) -> Self {
        let position = FeedPosition {
            feed: feed(),
            epoch: EPOCH,
            settled: [(0, settled)].into_iter().collect(),
            newest_stored: WallMicros(0),
        };
        let state = SiteState { feeds: [(feed(), position)].into() };
        let (now, settings) = (Now { monotonic: Micros(0), wall: WallMicros(0) }, Arc::new(settings));
        Self {
            now: Micros(0),
            facts: Facts {
                line: Some(line(json!({}))),
                highest: products,
                late_bps: None,
                too_slow: BTreeSet::new(),
                ways: vec![],
                learnt: 0,
            },
            session: Session::new(now, settings, Some(PORT)).of_peer("10.0.0.9".parse().unwrap()),
            site: SiteSession::new("test".to_owned(), state),
            log: (1..=products).map(entry).collect(),
            forgotten: None,
            bad_reads: vec![],
            waits_for_feeds: false,
            refuses: None,
            answer: None,
            resends: vec![],
            asked: vec![],
            reports: vec![],
            reads: vec![],
            stored: vec![],
            seen: vec![],
            closed: false,
            joined: vec![],
            left: vec![],
        }
    }

    pub(crate) fn greet(&mut self, proof: Proof) {
        let now = self.clocks();
        self.site.handle(now, SiteInput::Connected(proof));
        self.run();
    }

    pub(crate) fn clocks(&self) -> Now {
        Now { monotonic: self.now, wall: WallMicros(1_000_000_000 + self.now.0 as i64) }
    }

    pub(crate) fn tell(&mut self, input: SessionInput) {
        self.session.handle(self.clocks(), input, &self.facts);
        self.run();
    }

    /// Stores another product, and wakes the session.
    pub(crate) fn publish(&mut self) {
        self.facts.highest += 1;
        self.log.push(entry(self.facts.highest));
        self.tell(SessionInput::Woken);
    }

    pub(crate) fn run_for(&mut self, time: Micros) {
        let end = self.now.plus(time);
        loop {
            let due = [self.session.deadline(), self.site.deadline()].into_iter().flatten().min();
            self.now = due.unwrap_or(end).max(self.now.plus(Micros(1))).min(end);
            self.run();
            if self.now >= end {
                return;
            }
        }
    }

    /// The sentences of faults so far.
    pub(crate) fn faults(&self) -> Vec<&str> {
        let fault = |report: &'_ Report| matches!(report, Report::Fault { .. });
        self.reports.iter().filter(|it| fault(it)).map(sentence_of).collect()
    }

    /// The changes of status so far, as text.
    pub(crate) fn changes(&self) -> Vec<String> {
        let change = |report: &Report| match report {
            Report::Status(change) => Some(format!("{change:?}")),
            _ => None,
        };
        self.reports.iter().filter_map(change).collect()
    }

    pub(crate) fn has_asked(&self, word: &str) -> bool {
        self.asked.iter().any(|asked| asked.starts_with(word))
    }

    /// The counted receipts, by sequence, each true if the time of the first byte is known.
    pub(crate) fn receipts(&self) -> BTreeMap<u64, bool> {
        let items = self.reports.iter().filter_map(|report| match report {
            Report::Receipts { items, .. } => Some(items),
            _ => None,
        });
        items.flatten().map(|it| (it.receipt.key.sequence.0, it.first_byte.is_some())).collect()
    }

    pub(crate) fn standing(&self) -> FeedStanding {
        FeedStanding {
            feed: feed(),
            epoch: EPOCH,
            head: Sequence(self.facts.highest),
            unicast_leg: LegId(1),
            rule: Duplicates::default(),
            deadline_us: None,
        }
    }

    /// Runs the session and the site until neither has any output.
    pub(crate) fn run(&mut self) {
        for _ in 0..10_000 {
            let now = self.clocks();
            let (session, site) = (self.session.poll(now, &self.facts), self.site.poll(now));
            if session.is_none() && site.is_none() {
                return;
            }
            session.into_iter().for_each(|output| self.take(output));
            site.into_iter().for_each(|output| self.take_site(output));
        }
        panic!("they talk for ever");
    }

    fn answer_session(&mut self, input: SessionInput) {
        self.session.handle(self.clocks(), input, &self.facts);
    }

    fn take(&mut self, output: SessionOutput) {
        match output {
            SessionOutput::Write { stream, bytes, .. } => {
                let (now, length) = (self.clocks(), bytes.len());
                self.site.handle(now, SiteInput::Bytes { stream, bytes });
                self.answer_session(SessionInput::Taken { stream, bytes: length });
            }
            SessionOutput::Report(report) => self.reports.push(report),
            SessionOutput::Read(request) => self.read(request),
            SessionOutput::ReadResend { resend, feed, after, to, .. } => {
                self.read_resend(resend, feed, after, to);
            }
            SessionOutput::Watch(_) if self.waits_for_feeds => {}
            SessionOutput::Watch(_) => self.answer_session(SessionInput::Watched(vec![self.standing()])),
            SessionOutput::Look => self.answer_session(SessionInput::Grown(vec![self.standing()])),
            SessionOutput::Believe(_) => self.answer_session(SessionInput::Believed(Ok(BTreeMap::new()))),
            SessionOutput::FindResends(_) => {
                let orders = self.resends.clone();
                self.answer_session(SessionInput::Pass(HubInput::Resends(orders)));
            }
            SessionOutput::Identity(output) => self.identify(output),
            SessionOutput::Kernel(output) => self.ask_kernel(output),
            SessionOutput::Close => self.closed = true,
            output => self.asked.push(format!("{output:?}")),
        }
    }

    fn read(&mut self, request: ReadRequest) {
        self.reads.push((self.now, request.clone()));
        if let Some(fault) = self.bad_reads.pop() {
            return self.answer_session(SessionInput::ReadFailed(request, fault));
        }
        let (after, read_to) = (request.after, Sequence(self.facts.highest));
        let entries = self.log.iter().filter(|entry| entry.info.key.sequence > after).cloned();
        let stretch = Stretch::new((feed(), EPOCH), (after, read_to), entries, request.filter);
        let forgotten = self.forgotten.filter(|(_, to)| *to > after);
        let forgotten = forgotten.map(|(from, to)| (from.max(Sequence(after.0 + 1)), to));
        self.answer_session(SessionInput::Read(Arc::new(stretch.forgetting(forgotten))));
    }

    fn read_resend(&mut self, resend: u64, feed: FeedName, after: Sequence, to: Sequence) {
        let read = match self.bad_reads.pop() {
            Some(fault) => Err(fault),
            None => {
                let asked = |entry: &&Entry| (after.0 + 1..=to.0).contains(&entry.info.key.sequence.0);
                Ok((self.log.iter().filter(asked).cloned().collect(), to))
            }
        };
        self.answer_session(SessionInput::ResendRead(ResendRead { resend, feed, after, read }));
    }

    fn identify(&mut self, output: IdentityOutput) {
        let word = match output {
            IdentityOutput::Check { .. } => {
                let input = match self.refuses.take() {
                    Some(refused) => SessionInput::Refuse(refused),
                    None => {
                        let line = Box::new(self.facts.line.clone().unwrap());
                        SessionInput::Known { line, credential_sha256: "first".to_owned() }
                    }
                };
                self.answer_session(input);
                "check".to_owned()
            }
            IdentityOutput::Enrol { .. } => {
                let answer = self.answer.take();
                self.answer_session(SessionInput::Answered(answer));
                "enrol".to_owned()
            }
            IdentityOutput::Register { stand_by, .. } => {
                self.answer_session(SessionInput::Registered);
                format!("register, stands by: {stand_by}")
            }
            IdentityOutput::Offer { offered_sha256 } => {
                let answer = self.answer.take();
                self.answer_session(SessionInput::Answered(answer));
                format!("offer {offered_sha256}")
            }
            IdentityOutput::Take { secret } => {
                self.answer_session(SessionInput::CredentialTaken(format!("of {secret}")));
                format!("take {secret}")
            }
            IdentityOutput::Tell { credential_sha256 } => format!("tell {credential_sha256}"),
            IdentityOutput::NotKept(sentence) => format!("not kept: {sentence:?}"),
        };
        self.asked.push(word);
    }

    fn ask_kernel(&mut self, output: KernelOutput) {
        self.asked.push(format!("{output:?}"));
        match output {
            KernelOutput::MeasurePath => self.answer_session(SessionInput::Path(None)),
            KernelOutput::MeasureRoundTrip => {
                self.answer_session(SessionInput::RoundTrip(Some(Micros::from_millis(20))));
            }
            KernelOutput::LookAtFlood => {
                self.answer_session(SessionInput::Flooded { resent_segments: 3, waits: false });
            }
            _ => {}
        }
    }

    fn take_site(&mut self, output: SiteOutput) {
        let now = self.clocks();
        match output {
            SiteOutput::Write { stream: StreamId::FIRST, bytes } => {
                self.answer_session(SessionInput::Bytes(bytes));
            }
            SiteOutput::Complete { info, .. } => {
                let key = info.key;
                self.stored.push(key.sequence.0);
                let settled = SiteInput::Settled { key, result: StoreResult::Stored, at: now.wall };
                self.site.handle(now, settled);
            }
            SiteOutput::Event(event) => self.seen.push(event),
            SiteOutput::JoinGroup(join) => self.joined.push(join),
            SiteOutput::LeaveGroup(leg) => self.left.push(leg),
            _ => {}
        }
    }
}

pub(crate) fn sentence_of(report: &Report) -> &str {
    match report {
        Report::Fault { sentence, .. } | Report::Violation { sentence, .. } => sentence,
        _ => "",
    }
}

/// True for a change of status that concerns data connections.
pub(crate) fn is_plan(report: &Report) -> bool {
    matches!(report, Report::Status(StatusChange::Planned(..)))
}

pub(crate) const PORT: u16 = 388;
