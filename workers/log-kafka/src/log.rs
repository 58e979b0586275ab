//! The log of one feed on Kafka.

use std::{
    io::Read,
    sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use bytes::Bytes;
use downburst_log::{
    Appended, Clock, Forgotten, LogEntry, LogError, LogStat, NewProduct, ProductLog, ReadBatch, Retained,
    Retention,
};
use downburst_model::{Digest, Epoch, FeedName, ProductId, ProductKey, Sequence, WallMicros};
use rdkafka::{admin::AdminClient, client::DefaultClientContext};

use crate::{
    cluster::{Cluster, Topics},
    fetch::{self, Fetchers},
    index::Index,
    record::Row,
    writer::Writer,
};

/// Is told the head after each append.
type Listener = Box<dyn Fn(Sequence) + Send + Sync>;

/// The log of one feed in two topics; see the crate's description.
pub struct KafkaLog {
    pub(crate) feed: FeedName,
    pub(crate) epoch: Epoch,
    pub(crate) options: KafkaOptions,
    pub(crate) topics: Topics,
    pub(crate) admin: AdminClient<DefaultClientContext>,
    /// Locked before the index, for the length of an append.
    writer: Mutex<Writer>,
    index: RwLock<Index>,
    fetchers: Fetchers,
    listeners: RwLock<Vec<Listener>>,
}

/// How a feed's log is kept.
#[derive(Clone, Debug)]
pub struct KafkaOptions {
    /// How long bytes are kept, and the ceiling of all of them; what their copies take besides is not counted.
    pub retention: Retention,
    /// How long descriptions are remembered, in hours.
    pub memory_hours: f64,
    /// Larger products are refused.
    pub max_product_bytes: u64,
}

impl Default for KafkaOptions {
    fn default() -> Self {
        let retention = Retention { hours: 24.0, bytes: 16 << 30 };
        Self { retention, memory_hours: 168.0, max_product_bytes: 16 << 30 }
    }
}

impl KafkaLog {
    /// Opens the log of a feed, with `fresh_epoch` if nothing was ever stored. Another writer is fenced by that.
    pub fn open(
        cluster: &Cluster,
        feed: FeedName,
        options: KafkaOptions,
        fresh_epoch: Epoch,
    ) -> Result<Self, LogError> {
        let (topics, admin) = (Topics::of(cluster, &feed), cluster.admin()?);
        cluster.create(&admin, &topics)?;
        // Only now can nobody else append to what is loaded.
        let writer = Writer::open(cluster, &feed, &topics)?;
        let index = fetch::load(cluster, &topics)?.unwrap_or_else(|| Index::new(fresh_epoch));
        Ok(Self {
            feed,
            epoch: index.epoch,
            options,
            fetchers: Fetchers::new(cluster.clone(), topics.products.clone()),
            topics,
            admin,
            writer: Mutex::new(writer),
            index: RwLock::new(index),
            listeners: RwLock::default(),
        })
    }

    pub(crate) fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn index(&self) -> RwLockReadGuard<'_, Index> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn index_mut(&self) -> RwLockWriteGuard<'_, Index> {
        self.index.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn tell(&self, head: u64) {
        let listeners = self.listeners.read().unwrap_or_else(PoisonError::into_inner);
        listeners.iter().for_each(|listener| listener(Sequence(head)));
    }

    fn entries(&self, rows: Vec<Row>) -> Result<Vec<LogEntry>, LogError> {
        let is_gone = |sequence| sequence < self.index().first;
        let kept: Vec<Row> = rows.iter().filter(|row| !is_gone(row.sequence())).cloned().collect();
        let mut bytes = self.fetchers.fetch(&kept, &is_gone)?;
        let entry =
            |row: Row| LogEntry { bytes: bytes.remove(&row.sequence()), info: row.info, source: row.source, ldm: None };
        Ok(rows.into_iter().map(entry).collect())
    }
}

impl ProductLog for KafkaLog {
    fn feed(&self) -> &FeedName {
        &self.feed
    }

    fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn head(&self) -> Sequence {
        Sequence(self.index().head)
    }

    fn first(&self) -> Sequence {
        Sequence(self.index().first)
    }

    fn append(
        &self,
        product: NewProduct,
        bytes: &mut dyn Read,
        clock: Clock<'_>,
    ) -> Result<Appended, LogError> {
        self.append_from(product, bytes, clock)
    }

    fn append_all(
        &self,
        products: Vec<(NewProduct, Bytes)>,
        clock: Clock<'_>,
    ) -> Vec<Result<Appended, LogError>> {
        self.append_group(&mut self.writer(), products, clock)
    }

    fn read(
        &self,
        after: Sequence,
        to: Sequence,
        limit_bytes: usize,
        limit_entries: usize,
    ) -> Result<ReadBatch, LogError> {
        let (rows, read_to, forgotten_to) = {
            let index = self.index();
            let end = to.0.min(index.head).max(after.0);
            let (rows, is_cut) = select(&index, after.0, end, limit_bytes as u64, limit_entries.max(1));
            let last = rows.last().map_or(end, Row::sequence);
            (rows, if is_cut { last } else { end }, index.forgotten_to)
        };
        let to = forgotten_to.min(read_to);
        let forgotten = (after.0 < to).then(|| Forgotten { from: Sequence(after.0 + 1), to: Sequence(to) });
        Ok(ReadBatch { entries: self.entries(rows)?, read_to: Sequence(read_to), forgotten })
    }

    fn entry(&self, sequence: Sequence) -> Result<Option<LogEntry>, LogError> {
        let row = self.index().rows.get(&sequence.0).map(|known| known.row.clone());
        Ok(self.entries(row.into_iter().collect())?.pop())
    }

    /// Goes through all that is remembered: Kafka's own search by time knows only its own clocks.
    fn find_time(&self, stored: WallMicros) -> Sequence {
        let index = self.index();
        let first = index.rows.values().find(|known| known.row.info.stored >= stored);
        Sequence(first.map_or(index.head, |known| known.row.sequence() - 1))
    }

    fn find_duplicate(
        &self,
        id: &ProductId,
        size: u64,
        digest: &Digest,
    ) -> Result<Option<Sequence>, LogError> {
        Ok(self.index().keys.content(id, size, digest).map(Sequence))
    }

    fn find_source(&self, key: &ProductKey) -> Result<Option<Sequence>, LogError> {
        Ok(self.index().keys.source(key, None).map(Sequence))
    }

    fn on_append(&self, listener: Listener) {
        self.listeners.write().unwrap_or_else(PoisonError::into_inner).push(listener);
    }

    fn retain(&self, now: WallMicros) -> Result<Retained, LogError> {
        self.retain_at(now)
    }

    /// Without files and their disk, which a client isn't told.
    fn stat(&self) -> LogStat {
        let index = self.index();
        let kept = || index.rows.range(index.first..).map(|(_, known)| &known.row.info);
        LogStat {
            products: kept().count() as u64,
            remembered: index.rows.range(..index.first).count() as u64,
            bytes: kept().map(|info| info.size).sum(),
            memory_bytes: 0,
            ceiling_bytes: self.options.retention.bytes,
            first: Sequence(index.first),
            head: Sequence(index.head),
            segments: 0,
            oldest_stored: kept().next().map(|info| info.stored),
            newest_stored: index.rows.values().next_back().map(|known| known.row.info.stored),
        }
    }
}

/// The products of a read and whether a limit ended it.
fn select(index: &Index, after: u64, end: u64, limit_bytes: u64, limit_entries: usize) -> (Vec<Row>, bool) {
    let (mut rows, mut bytes) = (Vec::new(), 0_u64);
    if after >= end {
        return (rows, false);
    }
    for (sequence, known) in index.rows.range(after + 1..=end) {
        let has_bytes = *sequence >= index.first;
        bytes = bytes.saturating_add(if has_bytes { known.row.info.size } else { 0 });
        if rows.len() >= limit_entries || (bytes > limit_bytes && !rows.is_empty()) {
            return (rows, true);
        }
        rows.push(known.row.clone());
    }
    (rows, false)
}
