//! The log of one feed on Kafka, with its copy on this node.

use std::{
    io::Read,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use bytes::Bytes;
use downburst_log::{
    Appended, Clock, Durability, FeedLog, Lacking, LogEntry, LogError, LogOptions, LogStat, NewProduct,
    ProductLog, ReadBatch, Recovery, Retained, SharedLog, Wanted,
};
use downburst_model::{Digest, Epoch, FeedName, ProductId, ProductKey, Sequence, WallMicros};

use crate::{
    Role, Settings,
    cluster::Cluster,
    follower::{Follower, Passed, epoch_of},
    ingest::Ingest,
    locks::lock,
    older::Older,
    reader::Reader,
    topic,
    words::refused,
    writer::Writer,
};

/// The log of one feed on Kafka: appended to there, read from the local copy.
pub struct KafkaLog {
    pub(crate) follower: Arc<Follower>,
    /// Present on the node that ingests.
    pub(crate) ingest: Option<Mutex<Ingest>>,
    following: Mutex<Option<JoinHandle<()>>>,
    options: Mutex<LogOptions>,
    older: Older,
}

impl KafkaLog {
    /// Opens the log of a feed. For ingest, fences the previous writer and waits until the copy is complete; a
    /// sender reads from then on.
    pub(crate) fn open(cluster: &Cluster, wanted: Wanted) -> Result<(Self, Recovery), LogError> {
        match cluster.settings.role {
            Role::Ingest => Self::open_to_ingest(cluster, wanted),
            Role::Sender => Self::open_to_send(cluster, wanted),
        }
    }

    fn open_to_ingest(cluster: &Cluster, wanted: Wanted) -> Result<(Self, Recovery), LogError> {
        let topic = cluster.topic(wanted.feed.as_str());
        topic::prepare(cluster, &topic, &wanted.options)?;
        let until = Instant::now() + OPENING;
        // Only now can no other writer append to the records that are read.
        let writer = Writer::open_patiently(cluster, &wanted.feed, &topic, until)?;
        let found = epoch_of(cluster, &topic, &std::env::temp_dir())?;
        let epoch = found.unwrap_or(Epoch(wanted.random));
        // Before the copy is built, which may take long: a fenced writer looks here for its successor.
        let ingest = Ingest::begin_patiently(writer, epoch, until)?;
        let options = wanted.options.clone();
        let (follower, recovery) = copy(cluster, topic, wanted, epoch)?;
        follower.catch_up(&mut Passed::default())?;
        let log = Self::new(follower, Some(ingest), options);
        log.keep_in_the_store();
        Ok((log, recovery))
    }

    fn open_to_send(cluster: &Cluster, wanted: Wanted) -> Result<(Self, Recovery), LogError> {
        let topic = cluster.topic(wanted.feed.as_str());
        let found = if topic::exists(cluster, &topic)? {
            epoch_of(cluster, &topic, &std::env::temp_dir())?
        } else {
            None
        };
        let Some(epoch) = found else {
            let what = "holds no log yet, so that there is nothing to send; start the hub that ingests the feed first";
            return Err(refused(&topic, what));
        };
        let options = wanted.options.clone();
        let (follower, recovery) = copy(cluster, topic, wanted, epoch)?;
        let log = Self::new(follower, None, options);
        log.follow()?;
        Ok((log, recovery))
    }

    /// Copies the products that others store from here on.
    pub(crate) fn follow(&self) -> Result<(), LogError> {
        let follower = Arc::clone(&self.follower);
        let thread =
            thread::Builder::new().name(format!("copy-{}", self.feed())).spawn(move || follower.run());
        let thread = thread.map_err(|error| LogError::Store {
            sentence: format!("no thread to copy feed {}: {error}", self.feed()),
        })?;
        *lock(&self.following) = Some(thread);
        Ok(())
    }

    fn new(follower: Follower, ingest: Option<Ingest>, options: LogOptions) -> Self {
        Self {
            follower: Arc::new(follower),
            ingest: ingest.map(Mutex::new),
            following: Mutex::default(),
            options: Mutex::new(options),
            older: Older::default(),
        }
    }

    /// Does not wait: the brokers may be unavailable, and keeping records too long does no harm.
    fn keep_in_the_store(&self) {
        let (follower, options) = (Arc::clone(&self.follower), lock(&self.options).clone());
        let name = format!("keep-{}", self.feed());
        let kept = thread::Builder::new().name(name).spawn(move || {
            if let Err(error) = topic::keep(&follower.cluster, &follower.topic, &options) {
                let feed = follower.copy.feed();
                (follower.say)(format!("how long Kafka keeps feed {feed} could not be set: {error}"));
            }
        });
        if let Err(error) = kept {
            tracing::warn!(%error, "no thread to set a topic's retention");
        }
    }

    pub(crate) fn say(&self, sentence: String) {
        (self.follower.say)(sentence);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.follower.stop.load(Ordering::Acquire)
    }
}

impl SharedLog for KafkaLog {
    fn copy(&self) -> &Arc<FeedLog> {
        &self.follower.copy
    }

    fn set_options(&self, options: LogOptions) {
        self.copy().set_options(of_a_copy(&self.follower.cluster, options.clone()));
        let before = std::mem::replace(&mut *lock(&self.options), options.clone());
        if self.ingest.is_some() && before.retention != options.retention {
            self.keep_in_the_store();
        }
    }

    fn fetch(&self, wanted: &[Lacking], limit_bytes: u64) -> Result<Vec<Option<Bytes>>, LogError> {
        self.older.fetch(&self.follower, wanted, limit_bytes)
    }

    fn tend(&self) {
        self.older.tend();
        self.open_again_if_broken();
    }

    fn stop(&self) {
        self.follower.stop.store(true, Ordering::Release);
        if let Some(thread) = lock(&self.following).take() {
            let _ = thread.join();
        }
    }
}

impl Drop for KafkaLog {
    fn drop(&mut self) {
        self.stop();
    }
}

impl ProductLog for KafkaLog {
    fn feed(&self) -> &FeedName {
        self.copy().feed()
    }

    fn epoch(&self) -> Epoch {
        self.copy().epoch()
    }

    fn head(&self) -> Sequence {
        self.copy().head()
    }

    fn first(&self) -> Sequence {
        self.copy().first()
    }

    fn append(
        &self,
        product: NewProduct,
        bytes: &mut dyn Read,
        clock: Clock<'_>,
    ) -> Result<Appended, LogError> {
        self.ingest_from(product, bytes, clock)
    }

    fn append_all(
        &self,
        products: Vec<(NewProduct, Bytes)>,
        clock: Clock<'_>,
    ) -> Vec<Result<Appended, LogError>> {
        self.ingest_all(&products, clock)
    }

    fn read(
        &self,
        after: Sequence,
        to: Sequence,
        limit_bytes: usize,
        limit_entries: usize,
    ) -> Result<ReadBatch, LogError> {
        self.copy().read(after, to, limit_bytes, limit_entries)
    }

    fn entry(&self, sequence: Sequence) -> Result<Option<LogEntry>, LogError> {
        self.copy().entry(sequence)
    }

    fn find_time(&self, stored: WallMicros) -> Sequence {
        self.copy().find_time(stored)
    }

    fn find_duplicate(
        &self,
        id: &ProductId,
        size: u64,
        digest: &Digest,
    ) -> Result<Option<Sequence>, LogError> {
        self.copy().find_duplicate(id, size, digest)
    }

    fn find_source(&self, key: &ProductKey) -> Result<Option<Sequence>, LogError> {
        self.copy().find_source(key)
    }

    fn on_append(&self, listener: Box<dyn Fn(Sequence) + Send + Sync>) {
        self.copy().on_append(listener);
    }

    /// Of the copy; Kafka has its own retention.
    fn retain(&self, now: WallMicros) -> Result<Retained, LogError> {
        self.copy().retain(now)
    }

    fn stat(&self) -> LogStat {
        self.copy().stat()
    }
}

/// Opens the copy of a topic that is in this epoch.
fn copy(
    cluster: &Cluster,
    topic: String,
    wanted: Wanted,
    epoch: Epoch,
) -> Result<(Follower, Recovery), LogError> {
    let Wanted { feed, directory, options, say, .. } = wanted;
    let oldest = Reader::new(cluster, &topic, &directory)?.extent()?.oldest;
    let forgotten = Sequence(u64::try_from(oldest).unwrap_or_default());
    let (log, recovery) =
        FeedLog::open_copy(&directory, feed, of_a_copy(cluster, options), epoch, forgotten)?;
    let (copy, stop) = (Arc::new(log), Arc::new(AtomicBool::new(false)));
    Ok((Follower { cluster: cluster.clone(), topic, directory, copy, say, stop }, recovery))
}

/// Records that a copy loses in a power cut are read again, so that it need not wait for its disk; and a sender's
/// copy may be shorter than the topic. The node that ingests has all of it, so that a hub without senders needs
/// its brokers for ingest alone.
fn of_a_copy(cluster: &Cluster, options: LogOptions) -> LogOptions {
    let Settings { role, copy_mb, .. } = cluster.settings;
    let is_short = role == Role::Sender && copy_mb > 0;
    let copy_bytes = is_short.then(|| copy_mb.saturating_mul(1_000_000));
    LogOptions { durability: Durability::Process, copy_bytes, ..options }
}

/// Brokers that have just started know only seconds later which of them coordinates a transactional id.
const OPENING: Duration = Duration::from_secs(20);
