//! Drives the site's half of the session with one hub.
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use downburst_model::{FeedName, LegId, Machine as _, ProductId};
use downburst_session::{
    CircuitState, FeedPosition, Missing, Receipt, SiteInput, SiteOutput, SiteSession, StoreResult, StreamId,
};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::asks::Asks;
use super::assembly::Assemblies;
use super::circuits::Circuits;
use super::complete::Completeness;
use super::data::{self, DataLinks};
use super::files::{Done, Told, Waker};
use super::group::{Found, Group, Reading};
use super::identity::Identity;
use super::link::{Link, NoLink, Said, dial};
use super::recovery::{Kept, recover};
use super::role::{News, Parts, Role};
use super::shelf::Shelf;
use super::state::{HubPlace, Keeper, StoredPosition};
use super::store::{self, Brought, Complete, Stored, StoredWhat};
use crate::clock::Clock;
use crate::reconnect::{self, Ended, Reconnect};

mod credentials;
mod events;
mod groups;
mod leaving;
mod waits;

use credentials::Saving;
pub(crate) use credentials::Turn;
use waits::{wait_dial, wait_link};

/// The connection to one hub, made and kept.
pub(crate) struct Site {
    hub: HubPlace,
    identity: Identity,
    /// The feeds that come by it; `None`: all that the hub gives.
    only: Option<BTreeSet<FeedName>>,
    decides: bool,
    clock: Clock,
    machine: SiteSession,
    assemblies: Assemblies,
    shelf: Arc<dyn Shelf>,
    completeness: Arc<Completeness>,
    complete: crossbeam_channel::Sender<Vec<Complete>>,
    /// Complete products that the thread has not been given yet.
    batch: Vec<Complete>,
    /// The memory of each batch that the thread has, oldest first, and of all of them.
    in_store: VecDeque<usize>,
    in_store_bytes: usize,
    results: mpsc::UnboundedReceiver<Vec<Stored>>,
    store_thread: std::thread::JoinHandle<()>,
    keeper: Keeper,
    files: Option<Waker>,
    done: mpsc::UnboundedReceiver<Told>,
    roles: watch::Receiver<Role>,
    role: Role,
    news: mpsc::UnboundedSender<News>,
    groups: BTreeMap<LegId, Group>,
    asks: BTreeMap<LegId, Asks>,
    reading: Reading,
    found_sender: mpsc::Sender<Found>,
    found: mpsc::Receiver<Found>,
    /// What the hub says by UDP: who waits for a repair shall not wait for what the group brings meanwhile.
    answer_sender: mpsc::Sender<Found>,
    answers: mpsc::Receiver<Found>,
    feeds: BTreeMap<FeedName, Kept>,
    /// The feeds whose files are shown in order, and what was told of each.
    ordered: BTreeMap<FeedName, Missing>,
    out: BytesMut,
    flushed: bool,
    local_address: String,
    peer_address: String,
    data: DataLinks,
    circuits: Circuits,
    reconnect: Reconnect,
    said: Said,
    /// When the hub let the site in, while the session lasts.
    welcomed: Option<Instant>,
    /// How the last attempt ended.
    ended: Ended,
    hang_up: bool,
    /// Nothing was heard for the liveness limit.
    silent: bool,
    /// Another connection is of no use until the role changes.
    resting: bool,
    saving: Saving,
}

#[expect(clippy::large_enum_variant, reason = "one at a time, on the stack")]
enum Woken {
    Dialled(Result<Link, NoLink>),
    Read(std::io::Result<Option<Bytes>>),
    Written(std::io::Result<usize>),
    Flushed(std::io::Result<()>),
    Data(data::Woken),
    Found(Found),
    Stored(Vec<Stored>),
    Told(Told),
    Circuit(CircuitState),
    Saved(credentials::Saved),
    Role,
    Deadline,
}

type Dial = Pin<Box<dyn Future<Output = Result<Link, NoLink>> + Send>>;

impl Site {
    /// Takes up where the site was with this hub.
    pub(crate) fn open(parts: Parts) -> Result<Self, String> {
        let Parts {
            hub,
            identity,
            turn,
            clock,
            versions,
            one_node,
            only,
            decides,
            reading,
            ports,
            shelf,
            completeness,
            owed,
            files,
            done,
            roles,
            news,
        } = parts;
        let (state, feeds) = recover(&hub, only.as_ref(), shelf.as_ref(), &completeness)?;
        let (result_sender, results) = mpsc::unbounded_channel();
        let place = store::Place { shelf: Arc::clone(&shelf), clock, via: hub.host() };
        let (complete, store_thread) = store::start(place, result_sender)?;
        let (found_sender, found) = mpsc::channel(DATAGRAM_BATCHES);
        let (answer_sender, answers) = mpsc::channel(DATAGRAM_BATCHES);
        let software = format!("downburst-node {}", env!("CARGO_PKG_VERSION"));
        let role = *roles.borrow();
        let keeper = Keeper::start(&hub.state)?;
        Ok(Self {
            keeper,
            circuits: Circuits::start(ports, &format!("site {}", hub.state.display()), clock),
            assemblies: Assemblies::new(&hub.spool),
            machine: SiteSession::new(software, state)
                .speaking(&versions)
                .from_one_node(one_node)
                .only(only.clone())
                .owing(owed),
            only,
            decides,
            hub,
            identity,
            clock,
            shelf,
            completeness,
            complete,
            batch: Vec::new(),
            in_store: VecDeque::new(),
            in_store_bytes: 0,
            results,
            store_thread,
            files,
            done,
            roles,
            role,
            news,
            groups: BTreeMap::new(),
            asks: BTreeMap::new(),
            reading,
            found_sender,
            found,
            answer_sender,
            answers,
            feeds,
            ordered: BTreeMap::new(),
            out: BytesMut::new(),
            flushed: true,
            local_address: String::new(),
            peer_address: String::new(),
            data: DataLinks::default(),
            reconnect: Reconnect::default(),
            said: Said::default(),
            welcomed: None,
            ended: Ended::Answered,
            hang_up: false,
            silent: false,
            resting: false,
            saving: Saving::by_turns(turn),
        })
    }

    /// Works until its role ends; the receipts that are left to say.
    pub(crate) async fn run(mut self) -> Vec<Receipt> {
        let mut link: Option<Link> = None;
        let mut dialling: Option<Dial> = Some(self.dial(Duration::ZERO));
        loop {
            self.perform();
            match self.role {
                Role::Leave => return self.leave(link).await,
                Role::End => {
                    leaving::hang_up(link).await;
                    return self.close().await;
                }
                Role::Serve | Role::StandBy => {}
            }
            if std::mem::take(&mut self.hang_up) {
                self.disconnected();
                leaving::hang_up(link.take()).await;
                let pause = self.pause();
                dialling = (!self.resting).then(|| self.dial(pause));
                continue;
            }
            let reads = self.in_store_bytes < IN_STORE_BYTES;
            let deadline = self.deadline();
            let saves = self.saving.is_busy();
            let woken = tokio::select! {
                // One thing after the other: what is shown next is what is being kept.
                result = wait_dial(&mut dialling), if !saves => Woken::Dialled(result),
                saved = self.saving.done(), if saves => Woken::Saved(saved),
                woken = wait_link(&mut link, reads, &self.out, self.flushed) => woken,
                woken = self.data.moved(), if reads => Woken::Data(woken),
                Some(answer) = self.answers.recv() => Woken::Found(answer),
                Some(found) = self.found.recv() => Woken::Found(found),
                Some(stored) = self.results.recv() => Woken::Stored(stored),
                state = self.circuits.state() => Woken::Circuit(state),
                Some(told) = self.done.recv() => Woken::Told(told),
                _ = self.roles.changed() => Woken::Role,
                () = tokio::time::sleep_until(deadline) => Woken::Deadline,
            };
            match woken {
                Woken::Dialled(result) => {
                    dialling = None;
                    link = self.dialled(result);
                }
                woken => self.take(woken),
            }
        }
    }

    fn take(&mut self, woken: Woken) {
        match woken {
            Woken::Dialled(_) | Woken::Deadline => {}
            Woken::Read(Ok(None)) => {
                tracing::info!("the hub closed the connection");
                self.hang_up = true;
            }
            Woken::Read(Ok(Some(bytes))) => self.tell(SiteInput::Bytes { stream: StreamId::FIRST, bytes }),
            Woken::Written(Ok(written)) => {
                self.out.advance(written);
                self.flushed = false;
            }
            Woken::Flushed(Ok(())) => self.flushed = true,
            Woken::Read(Err(error)) | Woken::Written(Err(error)) | Woken::Flushed(Err(error)) => {
                tracing::info!(%error, "the connection to the hub failed");
                self.hang_up = true;
            }
            Woken::Data(woken) => self.data_moved(woken),
            Woken::Found(found) => self.found(found),
            Woken::Stored(batch) => self.stored_batch(batch),
            Woken::Told(Told::Acts { feed, failed }) => self.tell(SiteInput::Acts { feed, failed }),
            Woken::Told(Told::Done(Done { key, at, heartbeat: true, .. })) => {
                self.tell(SiteInput::HeartbeatOut { key, at });
            }
            Woken::Told(Told::Done(Done { key, at, late, .. })) => {
                if late {
                    self.tell(SiteInput::Late(key.feed.clone()));
                }
                self.tell(SiteInput::ActionDone { key, at });
            }
            Woken::Circuit(state) => self.tell(SiteInput::Circuit(state)),
            Woken::Saved(saved) => self.saved(saved),
            Woken::Role => self.take_role(),
        }
    }

    /// Another role begins with a connection of its own. A supervisor that is gone ends it too.
    fn take_role(&mut self) {
        let role =
            if self.roles.has_changed().is_err() { Role::End } else { *self.roles.borrow_and_update() };
        if role != self.role {
            self.role = role;
            self.resting = false;
            self.reconnect = Reconnect::default();
            self.hang_up = true;
        }
    }

    fn data_moved(&mut self, woken: data::Woken) {
        self.tell(match woken {
            data::Woken::Opened(stream) => SiteInput::StreamOpened(stream),
            data::Woken::Read(stream, bytes) => SiteInput::Bytes { stream, bytes },
            data::Woken::Ended(stream, reason) => SiteInput::StreamClosed { stream, reason },
        });
    }

    fn tell(&mut self, input: SiteInput) {
        self.machine.handle(self.clock.now(), input);
    }

    /// Does what the machine asks for until it asks for nothing.
    fn perform(&mut self) {
        let mut now = self.clock.now();
        while let Some(output) = self.machine.poll(now) {
            // A batch of datagrams gives a block for each: one look at the clocks is enough for those that
            // follow each other.
            if !matches!(output, SiteOutput::Block { .. }) {
                now = self.clock.now();
            }
            match output {
                SiteOutput::Write { stream: StreamId::FIRST, bytes } => self.out.extend_from_slice(&bytes),
                SiteOutput::Write { stream, bytes } => self.data.push(stream, &bytes),
                SiteOutput::OpenStream(stream) => {
                    let path = self.machine.stream_path(stream).cloned();
                    self.data.open(stream, path, self.peer_address.clone(), self.identity.ca_sha256.clone());
                }
                SiteOutput::CloseStream(stream) => self.data.close(stream),
                SiteOutput::JoinGroup(join) => self.join(&join),
                SiteOutput::Ask { leg, bytes } => {
                    if let Some(asks) = self.asks.get(&leg) {
                        asks.send(&bytes);
                    }
                }
                SiteOutput::LeaveGroup(leg) => {
                    self.groups.remove(&leg);
                    self.asks.remove(&leg);
                }
                SiteOutput::Begin(info) => self.assemblies.begin(&info),
                SiteOutput::Block { key, offset, bytes } => self.assemblies.block(&key, offset, bytes),
                SiteOutput::Complete { info, last_byte, lane, resend } => {
                    if let Some(assembly) = self.assemblies.take(&info.key) {
                        let brought = Brought { last_byte, lane, resend };
                        let assembly = Box::new(assembly);
                        self.batch.push(Complete::Product { info, brought, assembly });
                    }
                }
                SiteOutput::Train { train, last_byte } => {
                    self.batch.push(Complete::Train { train, last_byte });
                }
                SiteOutput::Abandon(key) => {
                    if let Some(mut assembly) = self.assemblies.take(&key) {
                        assembly.discard();
                    }
                }
                SiteOutput::Checkpoint(position) => self.checkpoint(position),
                SiteOutput::Event(event) => self.event(event),
                SiteOutput::Close => self.hang_up = true,
            }
        }
        self.tell_missing();
        if !self.batch.is_empty() {
            let batch = std::mem::take(&mut self.batch);
            let bytes = batch.iter().map(Complete::memory_bytes).sum::<usize>();
            self.in_store.push_back(bytes);
            self.in_store_bytes += bytes;
            // The thread lives as long as the site.
            let _ = self.complete.send(batch);
        }
    }

    fn stored_batch(&mut self, batch: Vec<Stored>) {
        self.in_store_bytes -= self.in_store.pop_front().unwrap_or_default();
        batch.into_iter().for_each(|stored| self.stored(stored));
    }

    fn stored(&mut self, stored: Stored) {
        let Stored { what, at, log_sequence } = stored;
        if let Some(sequence) = log_sequence {
            self.feeds.entry(what.feed().clone()).or_default().log_head = sequence;
            if let Some(files) = &self.files {
                files.wake();
            }
        }
        match what {
            StoredWhat::Product(info, result) => {
                complain(&info.key.feed, &info.id, &result);
                // Without files the log is the end of the way; so it is at a hub, which passes heartbeats over.
                let is_out = self.files.is_none()
                    && info.id.is_heartbeat()
                    && matches!(result, StoreResult::Stored | StoreResult::Held);
                let key = info.key.clone();
                self.tell(SiteInput::Settled { key: info.key, result, at });
                if is_out {
                    self.tell(SiteInput::HeartbeatOut { key, at });
                }
            }
            StoredWhat::Train(train, results) => {
                train
                    .cars
                    .iter()
                    .zip(&results)
                    .for_each(|(car, result)| complain(&train.feed, &car.id, result));
                self.tell(SiteInput::TrainSettled { train, results, at });
            }
        }
    }

    fn checkpoint(&mut self, position: FeedPosition) {
        let kept = self.feeds.entry(position.feed.clone()).or_default();
        if kept.epoch.is_some_and(|known| known != position.epoch) && !kept.guarded {
            kept.guarded = true;
            tracing::warn!(
                feed = position.feed.as_str(),
                "the hub's log was started anew; products that the site holds already are dropped by id and \
                 content"
            );
            self.shelf.guard(&position.feed);
        }
        kept.epoch = Some(position.epoch);
        kept.complete = self.machine.complete_to(&position.feed).or(kept.complete);
        let Kept { log_head, complete, guarded, .. } = *kept;
        if let Some(to) = complete {
            self.completeness.reached(&position.feed, position.epoch, to);
        }
        let stored = StoredPosition { position, log_head, guarded, complete };
        let log = self.shelf.log(&stored.position.feed).ok().flatten();
        self.keeper.keep(stored, log);
    }

    fn dialled(&mut self, result: Result<Link, NoLink>) -> Option<Link> {
        match result {
            Ok(link) => {
                self.said.over();
                self.local_address.clone_from(&link.local_address);
                self.peer_address.clone_from(&link.peer_address);
                self.tell(SiteInput::StandBy(self.role == Role::StandBy));
                if self.role == Role::Serve {
                    let own = |feed: &FeedName| {
                        self.feeds.get(feed).and_then(|kept| Some((kept.epoch?, kept.complete)))
                    };
                    let positions = self.completeness.resume(own);
                    self.tell(SiteInput::ResumeAt(positions));
                }
                let proof = self.identity.proof();
                self.tell(SiteInput::Connected(proof));
                Some(link)
            }
            Err(NoLink { sentence, ended }) => {
                if self.said.is_news(&sentence) {
                    tracing::warn!("{sentence}");
                }
                self.tell_news(News::Away { sentence, silent: false });
                (self.hang_up, self.ended) = (true, ended);
                None
            }
        }
    }

    fn disconnected(&mut self) {
        self.tell(SiteInput::Disconnected);
        self.perform();
        let silent = std::mem::take(&mut self.silent);
        self.tell_news(News::Away {
            sentence: format!("there is no connection to the hub at {}", self.hub.address),
            silent,
        });
        self.hang_up = false;
        self.saving.end_turn();
        self.groups.clear();
        self.asks.clear();
        self.data.clear();
        self.out.clear();
        self.flushed = true;
    }

    fn pause(&mut self) -> Duration {
        let ended = self.welcomed.take().map_or(self.ended, |since| Ended::Session(since.elapsed()));
        self.ended = Ended::Answered;
        self.reconnect.pause(ended, reconnect::random())
    }

    fn dial(&self, pause: Duration) -> Dial {
        Box::pin(dial(self.hub.address.clone(), self.identity.ca_sha256.clone(), pause))
    }

    fn deadline(&self) -> Instant {
        let due =
            self.machine.deadline().map(|due| Duration::from_micros(due.since(self.clock.monotonic()).0));
        Instant::now() + due.unwrap_or(LONGEST_SLEEP)
    }
}

fn complain(feed: &FeedName, id: &ProductId, result: &StoreResult) {
    if let StoreResult::Failed(sentence) = result {
        tracing::error!(feed = feed.as_str(), id = id.as_str(), "a product can't be stored: {sentence}");
    }
}

const LONGEST_SLEEP: Duration = Duration::from_secs(3_600);
/// Nothing is read while so much waits for the disk.
const IN_STORE_BYTES: usize = 64 << 20;

/// Batches of datagrams between the groups' threads and the session's task; behind them stands the socket's buffer.
const DATAGRAM_BATCHES: usize = 64;
