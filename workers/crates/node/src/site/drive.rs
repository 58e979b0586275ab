//! Drives the site's half of the session.
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf as _, BytesMut};
use downburst_log::{ProductLog as _, Retention};
use downburst_model::{FeedName, LegId, Machine as _, Sequence, WallMicros};
use downburst_session::{
    FeedPosition, LegJoin, RefusalCode, Refused, SiteEvent, SiteInput, SiteOutput, SiteSession, SiteState,
    StoreResult,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, WriteHalf};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_rustls::client::TlsStream;

use super::assembly::Assemblies;
use super::files::{self, Done, Waker};
use super::group::{Datagrams, Group};
use super::link::{Link, dial};
use super::state::{Identity, StoredPosition, load_positions, save_position};
use super::store::{self, Complete, Logs, Stored};
use super::{Ending, Receive};
use crate::clock::Clock;

/// A receiving site at work.
pub(super) struct Site {
    receive: Receive,
    identity: Identity,
    clock: Clock,
    machine: SiteSession,
    assemblies: Assemblies,
    logs: Arc<Logs>,
    complete: crossbeam_channel::Sender<Vec<Complete>>,
    /// Complete products that the thread has not been given yet.
    batch: Vec<Complete>,
    results: mpsc::UnboundedReceiver<Vec<Stored>>,
    store_thread: std::thread::JoinHandle<()>,
    files: Option<Waker>,
    done: mpsc::UnboundedReceiver<Done>,
    files_thread: Option<std::thread::JoinHandle<()>>,
    groups: BTreeMap<LegId, Group>,
    datagram_sender: mpsc::Sender<Datagrams>,
    datagrams: mpsc::Receiver<Datagrams>,
    feeds: BTreeMap<FeedName, Kept>,
    out: BytesMut,
    flushed: bool,
    local_address: String,
    pause: Duration,
    hang_up: bool,
    ending: Option<Ending>,
}

/// What the site's own log holds of a feed, as far as the machine knows it.
#[derive(Default)]
struct Kept {
    log_head: Sequence,
    epoch: Option<downburst_model::Epoch>,
    guarded: bool,
}

enum Woken {
    Dialled(Result<Link, String>),
    Read(std::io::Result<usize>),
    Written(std::io::Result<usize>),
    Flushed(std::io::Result<()>),
    Datagrams(Datagrams),
    Stored(Vec<Stored>),
    Done(Done),
    Retain,
    Deadline,
    Ended,
}

type Dial = Pin<Box<dyn Future<Output = Result<Link, String>> + Send>>;

impl Site {
    /// Opens the site's logs and takes up where it was.
    pub(super) fn open(receive: Receive, identity: Identity, clock: Clock) -> Result<Self, String> {
        let retention = Retention { hours: receive.retention_hours, bytes: receive.retention_bytes };
        let logs = Arc::new(Logs::new(&receive.directory.join("log"), retention));
        let (state, feeds) = recover(&receive, &logs)?;
        let (result_sender, results) = mpsc::unbounded_channel();
        let (complete, store_thread) = store::start(Arc::clone(&logs), clock, result_sender)?;
        let (done_sender, done) = mpsc::unbounded_channel();
        let files =
            receive.files.then(|| files::start(Arc::clone(&logs), &receive.directory, clock, done_sender));
        let (files, files_thread) = files.transpose()?.unzip();
        let (datagram_sender, datagrams) = mpsc::channel(DATAGRAM_BATCHES);
        let software = format!("downburst-node {}", env!("CARGO_PKG_VERSION"));
        Ok(Self {
            assemblies: Assemblies::new(&receive.directory.join("spool")),
            machine: SiteSession::new(software, state),
            receive,
            identity,
            clock,
            logs,
            complete,
            batch: Vec::new(),
            results,
            store_thread,
            files,
            done,
            files_thread,
            groups: BTreeMap::new(),
            datagram_sender,
            datagrams,
            feeds,
            out: BytesMut::new(),
            flushed: true,
            local_address: String::new(),
            pause: FIRST_PAUSE,
            hang_up: false,
            ending: None,
        })
    }

    /// Works until asked to end or refused for good.
    pub(super) async fn run(mut self) -> Ending {
        let mut link: Option<Link> = None;
        let mut dialling: Option<Dial> = Some(self.dial(Duration::ZERO));
        let mut ended = std::pin::pin!(crate::signals::ended());
        let mut retain = tokio::time::interval(RETAIN_INTERVAL);
        let mut inbound = BytesMut::with_capacity(IN_BYTES);
        loop {
            self.perform();
            if let Some(ending) = self.ending.take() {
                self.close();
                return ending;
            }
            if std::mem::take(&mut self.hang_up) {
                self.disconnected();
                link = None;
                dialling = Some(self.dial(self.pause));
                continue;
            }
            inbound.reserve(IN_BYTES);
            let deadline = self.deadline();
            let woken = tokio::select! {
                result = wait_dial(&mut dialling) => Woken::Dialled(result),
                woken = wait_link(&mut link, &mut inbound, &self.out, self.flushed) => woken,
                Some(datagrams) = self.datagrams.recv() => Woken::Datagrams(datagrams),
                Some(stored) = self.results.recv() => Woken::Stored(stored),
                Some(done) = self.done.recv() => Woken::Done(done),
                _ = retain.tick() => Woken::Retain,
                () = tokio::time::sleep_until(deadline) => Woken::Deadline,
                () = &mut ended => Woken::Ended,
            };
            match woken {
                Woken::Dialled(result) => {
                    dialling = None;
                    link = self.dialled(result);
                }
                woken => self.take(woken, &mut inbound),
            }
        }
    }

    fn take(&mut self, woken: Woken, inbound: &mut BytesMut) {
        match woken {
            Woken::Dialled(_) | Woken::Deadline => {}
            Woken::Read(Ok(0)) => {
                tracing::info!("the hub closed the connection");
                self.hang_up = true;
            }
            Woken::Read(Ok(_)) => {
                let bytes = inbound.split().freeze();
                self.tell(SiteInput::Bytes(bytes));
            }
            Woken::Written(Ok(written)) => {
                self.out.advance(written);
                self.flushed = false;
            }
            Woken::Flushed(Ok(())) => self.flushed = true,
            Woken::Read(Err(error)) | Woken::Written(Err(error)) | Woken::Flushed(Err(error)) => {
                tracing::info!(%error, "the connection to the hub failed");
                self.hang_up = true;
            }
            Woken::Datagrams(Datagrams { leg, batch }) => {
                for bytes in batch {
                    self.tell(SiteInput::Datagram { leg, bytes });
                }
            }
            Woken::Stored(batch) => batch.into_iter().for_each(|stored| self.stored(stored)),
            Woken::Done(Done { key, at }) => self.tell(SiteInput::ActionDone { key, at }),
            Woken::Retain => self.retain(),
            Woken::Ended => self.ending = Some(Ending::Stopped),
        }
    }

    fn tell(&mut self, input: SiteInput) {
        self.machine.handle(self.clock.now(), input);
    }

    /// Does what the machine asks for until it asks for nothing.
    fn perform(&mut self) {
        while let Some(output) = self.machine.poll(self.clock.now()) {
            match output {
                SiteOutput::Write(bytes) => self.out.extend_from_slice(&bytes),
                SiteOutput::JoinGroup(join) => self.join(&join),
                SiteOutput::LeaveGroup(leg) => drop(self.groups.remove(&leg)),
                SiteOutput::Begin(info) => self.assemblies.begin(&info),
                SiteOutput::Block { key, offset, bytes } => self.assemblies.block(&key, offset, &bytes),
                SiteOutput::Complete { info, last_byte } => {
                    if let Some(assembly) = self.assemblies.take(&info.key) {
                        self.batch.push(Complete { info, last_byte, assembly });
                    }
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
        if !self.batch.is_empty() {
            // The thread lives as long as the site.
            let _ = self.complete.send(std::mem::take(&mut self.batch));
        }
    }

    fn join(&mut self, join: &LegJoin) {
        match Group::join(join, &self.local_address, self.datagram_sender.clone()) {
            Ok(group) => drop(self.groups.insert(join.leg, group)),
            Err(reason) => {
                tracing::warn!("{reason}");
                self.tell(SiteInput::JoinFailed { leg: join.leg, reason });
            }
        }
    }

    fn stored(&mut self, stored: Stored) {
        let Stored { info, result, at, log_sequence } = stored;
        if let Some(sequence) = log_sequence {
            self.feeds.entry(info.key.feed.clone()).or_default().log_head = sequence;
            if let Some(files) = &self.files {
                files.wake();
            }
        }
        if let StoreResult::Failed(sentence) = &result {
            tracing::error!(
                feed = info.key.feed.as_str(),
                id = info.id.as_str(),
                "a product can't be stored: {sentence}"
            );
        }
        self.tell(SiteInput::Settled { key: info.key, result, at });
    }

    fn checkpoint(&mut self, position: FeedPosition) {
        let kept = self.feeds.entry(position.feed.clone()).or_default();
        if kept.epoch.is_some_and(|known| known != position.epoch) && !kept.guarded {
            kept.guarded = true;
            tracing::warn!(
                feed = position.feed.as_str(),
                "the hub's log began anew; what the site holds already is dropped by id and content"
            );
            self.logs.guard(&position.feed);
        }
        kept.epoch = Some(position.epoch);
        let stored = StoredPosition { position, log_head: kept.log_head, guarded: kept.guarded };
        if let Err(sentence) = save_position(&self.receive.directory, &stored) {
            tracing::error!("{sentence}");
        }
    }

    fn event(&mut self, event: SiteEvent) {
        match event {
            SiteEvent::Welcome { site, hub } => {
                tracing::info!(site = site.as_str(), hub, "connected");
                self.pause = FIRST_PAUSE;
                if let Err(sentence) = self.identity.accepted(&site) {
                    self.ending = Some(Ending::BadUse(sentence));
                }
            }
            SiteEvent::Refused(refused) => self.refused(refused),
            SiteEvent::Subscriptions(items) => {
                for item in items {
                    tracing::info!(
                        feed = item.feed.as_str(),
                        pattern = item.pattern,
                        not = item.not_pattern,
                        "subscribed"
                    );
                }
            }
            SiteEvent::Clock(clock) => {
                tracing::debug!(offset_us = clock.offset_us, bound_us = clock.bound_us, "clock compared");
            }
            SiteEvent::LegJoined { leg, feed } => {
                tracing::info!(leg = leg.0, feed = feed.as_str(), "a multicast leg is heard")
            }
            SiteEvent::LegLeft { leg, reason } => {
                tracing::info!(leg = leg.0, reason, "a multicast leg ended")
            }
            SiteEvent::Lost { key, reason } => {
                tracing::error!(
                    feed = key.feed.as_str(),
                    sequence = key.sequence.0,
                    reason,
                    "a product is lost here"
                );
            }
            SiteEvent::Violation(sentence) => tracing::error!("the hub broke the protocol: {sentence}"),
            SiteEvent::Dead => tracing::warn!("nothing was heard from the hub; connecting anew"),
        }
    }

    fn refused(&mut self, refused: Refused) {
        match refused.code {
            RefusalCode::Version | RefusalCode::Token | RefusalCode::Credential | RefusalCode::Expired => {
                self.ending = Some(Ending::Refused(refused.sentence));
            }
            RefusalCode::Busy | RefusalCode::Protocol | RefusalCode::Unavailable => {
                tracing::warn!("the hub refused: {}", refused.sentence);
                self.hang_up = true;
            }
        }
    }

    fn dialled(&mut self, result: Result<Link, String>) -> Option<Link> {
        match result {
            Ok(link) => {
                self.local_address.clone_from(&link.local_address);
                let proof = self.identity.proof();
                self.tell(SiteInput::Connected(proof));
                Some(link)
            }
            Err(sentence) => {
                tracing::warn!("{sentence}");
                self.hang_up = true;
                None
            }
        }
    }

    fn disconnected(&mut self) {
        self.tell(SiteInput::Disconnected);
        self.perform();
        self.hang_up = false;
        self.groups.clear();
        self.out.clear();
        self.flushed = true;
    }

    /// Dials after `pause`; the next pause is longer, with jitter so that a thousand sites do not knock together.
    fn dial(&mut self, pause: Duration) -> Dial {
        let jitter = getrandom::u32().map_or(0.5, |random| f64::from(random) / f64::from(u32::MAX));
        self.pause = (self.pause * 2).min(LONGEST_PAUSE).mul_f64(0.75 + 0.5 * jitter);
        Box::pin(dial(self.receive.hub.clone(), self.identity.ca_sha256.clone(), pause))
    }

    fn deadline(&self) -> Instant {
        let due =
            self.machine.deadline().map(|due| Duration::from_micros(due.since(self.clock.monotonic()).0));
        Instant::now() + due.unwrap_or(LONGEST_PAUSE)
    }

    fn retain(&self) {
        for (feed, log) in self.logs.all() {
            if let Err(error) = log.retain(self.clock.wall()) {
                tracing::error!(feed = feed.as_str(), "{error}");
            }
        }
    }

    fn close(mut self) {
        self.tell(SiteInput::Disconnected);
        self.perform();
        drop(self.complete);
        // What is on its way to the log gets there; its receipt follows the next hello.
        let _ = self.store_thread.join();
        drop(self.files);
        if let Some(thread) = self.files_thread {
            let _ = thread.join();
        }
        for (feed, log) in self.logs.all() {
            if let Err(error) = log.close() {
                tracing::error!(feed = feed.as_str(), "{error}");
            }
        }
    }
}

async fn wait_dial(dialling: &mut Option<Dial>) -> Result<Link, String> {
    match dialling {
        Some(dial) => dial.await,
        None => std::future::pending().await,
    }
}

async fn wait_link(link: &mut Option<Link>, inbound: &mut BytesMut, out: &BytesMut, flushed: bool) -> Woken {
    let Some(link) = link else { return std::future::pending().await };
    tokio::select! {
        read = link.reader.read_buf(inbound) => Woken::Read(read),
        woken = send(&mut link.writer, out, flushed) => woken,
    }
}

async fn send(writer: &mut WriteHalf<TlsStream<TcpStream>>, out: &BytesMut, flushed: bool) -> Woken {
    match (out.is_empty(), flushed) {
        (false, _) => Woken::Written(writer.write(out).await),
        (true, false) => Woken::Flushed(writer.flush().await),
        (true, true) => std::future::pending().await,
    }
}

/// Reads the checkpoints and adds what the logs stored after them.
fn recover(receive: &Receive, logs: &Logs) -> Result<(SiteState, BTreeMap<FeedName, Kept>), String> {
    let (mut state, mut feeds) = (SiteState::default(), BTreeMap::new());
    for (feed, stored) in load_positions(&receive.directory) {
        let log = logs.of(&feed).map_err(|error| error.to_string())?;
        if stored.guarded {
            logs.guard(&feed);
        }
        let mut position = stored.position;
        let mut cursor = stored.log_head;
        while cursor < log.head() {
            let batch = log
                .read(cursor, log.head(), usize::MAX, RECOVERY_ENTRIES)
                .map_err(|error| error.to_string())?;
            for source in batch.entries.into_iter().filter_map(|entry| entry.source) {
                if source.key.epoch == position.epoch {
                    position.settled.insert(source.key.sequence.0, source.key.sequence.0);
                    position.newest_stored = WallMicros(position.newest_stored.0.max(source.hub_stored.0));
                }
            }
            cursor = batch.read_to;
        }
        let kept = Kept { log_head: log.head(), epoch: Some(position.epoch), guarded: stored.guarded };
        feeds.insert(feed.clone(), kept);
        state.feeds.insert(feed, position);
    }
    Ok((state, feeds))
}

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
const RETAIN_INTERVAL: Duration = Duration::from_secs(10);
const IN_BYTES: usize = 64 << 10;
const RECOVERY_ENTRIES: usize = 4_096;

/// Batches of datagrams between the groups' threads and the session's task; behind them stands the socket's buffer.
const DATAGRAM_BATCHES: usize = 64;
