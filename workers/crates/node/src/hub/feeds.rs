//! The feeds' logs: one directory and one writer thread each.
pub(super) mod feed_writer;
pub(super) mod fetching;
mod heartbeats;
mod read_cache;
pub(super) mod reading;
mod rechecks;
pub(super) mod sequence_checks;
pub(super) mod wake_ups;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use crossbeam_channel::{Sender, unbounded};
use downburst_hub::Rechecks;
use downburst_hub::feeds::{DescribedIngest, ReadCache};
use downburst_log::{
    DuplicateRule, Durability, FeedLog, LogError, LogOptions, Opened, ProductLog, Recovery, Retention,
    SharedLog, SharedLogs, Wanted,
};
use downburst_model::{Class, Epoch, FeedName, LegId, Sequence};
use downburst_session::Duplicates;
use serde_json::{Value, json};

use crate::hub::ByFeed;
use crate::hub::Hub;
use crate::hub::lock;
use crate::lines::{DuplicateWord, DurabilityWord, Event, Failure, FeedLine, IngestLine, Reply};
use feed_writer::{Done, Spooled, Write};
use wake_ups::WakeUps;

/// A feed that is open.
pub(super) struct Feed {
    pub(super) line: RwLock<FeedLine>,
    /// The log that is read: the feed's own, or the local copy of a shared one.
    pub(super) log: Arc<FeedLog>,
    /// The shared log.
    pub(super) shared: Option<Arc<dyn SharedLog>>,
    /// True for a feed of the hub's own products, which no counter includes.
    pub(super) is_own: bool,
    /// The readers of the log.
    pub(super) wake_ups: Arc<WakeUps>,
    /// The leg under which unicast deliveries are counted.
    unicast_leg: AtomicU32,
    writer: Mutex<Option<Sender<Write>>>,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
    read_cache: Mutex<ReadCache>,
    /// Held while fetching what the copy no longer holds, one session at a time.
    pub(super) fetching: Arc<tokio::sync::Mutex<()>>,
}

/// All open feeds.
#[derive(Default)]
pub(super) struct Feeds {
    open: RwLock<ByFeed<Arc<Feed>>>,
    /// The memory of the read caches of all feeds.
    stretch_bytes: Arc<AtomicUsize>,
    /// The store that assigns the sequences, if this node does not.
    pub(super) shared: Option<Arc<dyn SharedLogs>>,
    rechecks: Mutex<Rechecks>,
}

impl Feeds {
    pub(super) fn of(shared: Option<Arc<dyn SharedLogs>>) -> Self {
        Self { shared, ..Self::default() }
    }

    pub(super) fn find(&self, feed: &FeedName) -> Option<Arc<Feed>> {
        self.read().get(feed).cloned()
    }

    /// The feed that a job names.
    pub(super) fn known(&self, feed: &FeedName) -> Result<Arc<Feed>, Failure> {
        self.find(feed).ok_or_else(|| unknown_feed(feed.as_str()))
    }

    pub(super) fn all(&self) -> ByFeed<Arc<Feed>> {
        self.read().clone()
    }

    /// Opens, changes and closes feeds until they match `lines`; returns a description of each.
    pub(super) fn reconcile(&self, hub: &Arc<Hub>, lines: Vec<FeedLine>) -> Result<Value, Failure> {
        let wanted: BTreeMap<FeedName, FeedLine> =
            lines.into_iter().map(|line| (line.feed.clone(), line)).collect();
        let gone: Vec<Arc<Feed>> = self
            .all()
            .into_iter()
            .filter(|(name, _)| !wanted.contains_key(name))
            .map(|(_, feed)| feed)
            .collect();
        for feed in gone {
            self.open.write().unwrap_or_else(std::sync::PoisonError::into_inner).remove(&feed.name());
            hub.forget_plan(&feed.name());
            feed.close();
        }
        let mut described = Vec::new();
        for line in wanted.into_values() {
            let (feed, recovered) = match self.find(&line.feed) {
                Some(feed) => (feed, None),
                None => self.open(hub, &line)?,
            };
            match &feed.shared {
                Some(shared) => shared.set_options(options(&line)),
                None => feed.log.set_options(options(&line)),
            }
            *feed.line.write().unwrap_or_else(std::sync::PoisonError::into_inner) = line;
            described.push(json!({
                "feed": feed.name(), "epoch": feed.log.epoch().0.to_string(), "head": feed.log.head(),
                "first": feed.log.first(), "clean": recovered.is_none(), "recovered": recovered,
            }));
        }
        Ok(json!({"feeds": described}))
    }

    /// Ends all writers after their current appends, and marks the logs as closed.
    pub(super) fn close(&self) {
        for feed in self.all().values() {
            feed.close();
        }
    }

    fn open(&self, hub: &Arc<Hub>, line: &FeedLine) -> Result<(Arc<Feed>, Option<String>), Failure> {
        let (log, shared, sentence) = open_log(hub, line)?;
        let wake_ups = Arc::new(WakeUps::default());
        let notified = Arc::clone(&wake_ups);
        log.on_append(Box::new(move |_| notified.notify()));
        if hub.start.sender.is_some() {
            let told = Arc::downgrade(hub);
            log.on_heartbeat(move |info| {
                if let Some(hub) = told.upgrade() {
                    hub.put_heartbeat(info);
                }
            });
        }
        let feed = Feed {
            line: RwLock::new(line.clone()),
            log,
            shared,
            is_own: false,
            wake_ups,
            unicast_leg: AtomicU32::new(line.unicast_leg.0),
            writer: Mutex::default(),
            thread: Mutex::default(),
            read_cache: Mutex::new(ReadCache::new(Arc::clone(&self.stretch_bytes))),
            fetching: Arc::default(),
        };
        let feed = feed.begin(hub)?;
        self.open
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .insert(line.feed.clone(), Arc::clone(&feed));
        Ok((feed, sentence))
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, ByFeed<Arc<Feed>>> {
        self.open.read().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Feed {
    /// A feed for the hub's own products, visible to no site.
    pub(super) fn own(line: FeedLine, log: FeedLog) -> Self {
        Self {
            unicast_leg: AtomicU32::new(line.unicast_leg.0),
            line: RwLock::new(line),
            log: Arc::new(log),
            shared: None,
            is_own: true,
            wake_ups: Arc::default(),
            writer: Mutex::default(),
            thread: Mutex::default(),
            read_cache: Mutex::new(ReadCache::new(Arc::default())),
            fetching: Arc::default(),
        }
    }

    /// Starts the writer thread.
    pub(super) fn begin(self, hub: &Arc<Hub>) -> Result<Arc<Self>, Failure> {
        let (sender, receiver) = unbounded::<Write>();
        let feed = Arc::new(self);
        let (writer_feed, writer_hub) = (Arc::clone(&feed), Arc::downgrade(hub));
        let thread = std::thread::Builder::new()
            .name(format!("log-{}", feed.name()))
            .spawn(move || feed_writer::run(&writer_feed, &writer_hub, &receiver))
            .map_err(|error| {
                Failure::new("io", format!("no thread for the log of feed {}: {error}", feed.name()))
            })?;
        *lock(&feed.writer) = Some(sender);
        *lock(&feed.thread) = Some(thread);
        Ok(feed)
    }

    pub(super) fn name(&self) -> FeedName {
        self.log.feed().clone()
    }

    pub(super) fn line(&self) -> FeedLine {
        self.line.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    pub(super) fn class(&self) -> Class {
        self.line.read().unwrap_or_else(std::sync::PoisonError::into_inner).class
    }

    /// The rule by which two products of the feed are duplicates.
    pub(super) fn duplicate_rule(&self) -> Duplicates {
        self.line.read().unwrap_or_else(std::sync::PoisonError::into_inner).duplicate_rule.into()
    }

    /// The feed's deadline, in microseconds from the stored stamp; `None`: an ordinary feed.
    pub(super) fn deadline_us(&self) -> Option<u64> {
        self.line.read().unwrap_or_else(std::sync::PoisonError::into_inner).deadline_us()
    }

    /// The size limit of its products.
    pub(super) fn largest_bytes(&self) -> u64 {
        self.line.read().unwrap_or_else(std::sync::PoisonError::into_inner).max_product_bytes
    }

    pub(super) fn epoch(&self) -> Epoch {
        self.log.epoch()
    }

    pub(super) fn unicast_leg(&self) -> LegId {
        LegId(self.unicast_leg.load(Ordering::Relaxed))
    }

    pub(super) fn count_unicast_under(&self, leg: LegId) {
        self.unicast_leg.store(leg.0, Ordering::Relaxed);
    }

    /// Hands a spooled product to the feed's writer, which replies directly: no other thread is woken in between.
    pub(super) fn ingest(&self, line: IngestLine, default_origin: &str, reply: Reply) {
        let DescribedIngest { id, origin, digest, properties } = match line.described(default_origin) {
            Ok(described) => described,
            Err(failure) => return reply.refuse(failure),
        };
        let IngestLine { path, remove, created_us: created, .. } = line;
        let (bytes, done) = (Spooled::File { path, remove }, Done::Line(reply));
        self.write(Write { bytes, id, origin, created, digest, ldm: None, properties, done });
    }

    /// Hands a product to the feed's writer. A log that is being closed has no writer: the reply channel is
    /// dropped, which reports that.
    pub(super) fn write(&self, write: Write) {
        if let Some(writer) = lock(&self.writer).as_ref() {
            drop(writer.send(write));
        }
    }

    /// The log to which products are appended.
    pub(super) fn store(&self) -> &dyn ProductLog {
        match &self.shared {
            Some(shared) => shared.as_ref(),
            None => self.log.as_ref(),
        }
    }

    pub(super) fn close(&self) {
        drop(lock(&self.writer).take());
        // A writer that waits for the store would wait until the store is back.
        if let Some(shared) = &self.shared {
            shared.stop();
        }
        if let Some(thread) = lock(&self.thread).take() {
            let _ = thread.join();
        }
        if let Err(error) = self.log.close() {
            tracing::error!(%error, "a log could not be closed cleanly");
        }
    }
}

/// Opens a feed's log before anything is appended to it; returns a message for the operator if the log was repaired.
fn open_log(hub: &Arc<Hub>, line: &FeedLine) -> Result<OpenLog, Failure> {
    let directory = hub.start.data_dir.join("log").join(crate::file_names::encode(line.feed.as_str()));
    let random = random_u64().map_err(|error| Failure::new("io", error))?;
    if let Some(store) = &hub.feeds.shared {
        return open_shared(hub, line, store.as_ref(), directory, random);
    }
    let (log, recovery) = FeedLog::open(&directory, line.feed.clone(), options(line), random)
        .map_err(|error| failure(&error))?;
    sequence_checks::go_on_above_what_is_remembered(hub, line, &log).map_err(|error| failure(&error))?;
    Ok((Arc::new(log), None, tell_recovery(hub, line, &recovery)))
}

/// A log, the shared log of which it is a copy, and a message for the operator.
type OpenLog = (Arc<FeedLog>, Option<Arc<dyn SharedLog>>, Option<String>);

fn open_shared(
    hub: &Arc<Hub>,
    line: &FeedLine,
    store: &dyn SharedLogs,
    directory: PathBuf,
    random: u64,
) -> Result<OpenLog, Failure> {
    let (told, feed) = (Arc::downgrade(hub), line.feed.clone());
    let say = move |sentence: String| match told.upgrade() {
        Some(hub) => hub.fault(sentence, Some(&feed)),
        None => tracing::warn!("{sentence}"),
    };
    let wanted =
        Wanted { feed: line.feed.clone(), directory, options: options(line), random, say: Arc::new(say) };
    let Opened { log, recovery } = store.open(wanted).map_err(|error| failure(&error))?;
    Ok((Arc::clone(log.copy()), Some(log), tell_recovery(hub, line, &recovery)))
}

fn tell_recovery(hub: &Hub, line: &FeedLine, recovery: &Recovery) -> Option<String> {
    let sentence = crate::recovery::sentence(recovery);
    if let Some(sentence) = &sentence {
        let whole = crate::recovery::is_whole(recovery);
        hub.event(&Event::Recovered { feed: line.feed.clone(), sentence: sentence.clone(), whole });
    }
    sentence
}

/// The last sequence of a feed's log, for a session or leg that reads it.
pub(super) fn head(feed: &Feed) -> Sequence {
    feed.log.head()
}

pub(super) fn random_u64() -> Result<u64, String> {
    getrandom::u64().map_err(|error| format!("the system gives no random numbers: {error}"))
}

pub(super) fn options(line: &FeedLine) -> LogOptions {
    LogOptions {
        retention: Retention { hours: line.retention_hours, bytes: line.retention_bytes },
        durability: match line.durability {
            DurabilityWord::Process => Durability::Process,
            DurabilityWord::Power => Durability::Power,
        },
        duplicate_rule: match line.duplicate_rule {
            DuplicateWord::Content => DuplicateRule::Content,
            DuplicateWord::ContentWithoutWmoStart => DuplicateRule::ContentWithoutWmoStart,
            DuplicateWord::Id => DuplicateRule::Id,
            DuplicateWord::IdAndContent => DuplicateRule::IdAndContent,
            DuplicateWord::Signature => DuplicateRule::Signature,
            DuplicateWord::None => DuplicateRule::None,
        },
        max_product_bytes: line.max_product_bytes,
        ..LogOptions::default()
    }
}

/// The answer to a job that names an unknown feed.
pub(super) fn unknown_feed(feed: &str) -> Failure {
    Failure::unknown_feed(feed)
}

/// The error code that goes with a log's message.
pub(super) fn failure(error: &LogError) -> Failure {
    let code = match error {
        LogError::DigestMismatch { .. } => "digest-mismatch",
        LogError::DiskFull { .. } => "disk-full",
        LogError::NotWritable { .. } | LogError::ReadOnly { .. } | LogError::Locked { .. } => "not-writable",
        LogError::SizeMismatch { .. } => "truncated",
        LogError::TooLarge { .. } => "too-large",
        LogError::Fenced { .. } | LogError::OnlyCopied { .. } => "not-the-writer",
        LogError::Remote { .. } | LogError::Store { .. } | LogError::Unsettled { .. } => "brokers-away",
        _ => "io",
    };
    Failure::new(code, error.to_string())
}
