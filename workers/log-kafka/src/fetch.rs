//! Reading committed records by offset.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use bytes::{Bytes, BytesMut};
use downburst_log::LogError;
use rdkafka::{
    Message,
    consumer::{BaseConsumer, Consumer},
    error::KafkaError,
};

use crate::{
    cluster::{Cluster, PARTITION, REQUEST, Topics, at, remote},
    index::Index,
    record::{Row, parse_part_key},
};

/// Consumers of a feed's product topic, one per reader at the same time.
pub(crate) struct Fetchers {
    cluster: Cluster,
    topic: String,
    idle: Mutex<Vec<Fetcher>>,
}

struct Fetcher {
    consumer: BaseConsumer,
    topic: String,
    /// The offset that comes next.
    next: Option<i64>,
}

impl Fetchers {
    pub(crate) fn new(cluster: Cluster, topic: String) -> Self {
        Self { cluster, topic, idle: Mutex::default() }
    }

    /// The bytes of products in ascending order, by sequence; those that `is_gone` tells to be evicted may be missing.
    pub(crate) fn fetch(
        &self,
        rows: &[Row],
        is_gone: &dyn Fn(u64) -> bool,
    ) -> Result<BTreeMap<u64, Bytes>, LogError> {
        let Some(first) = rows.first() else { return Ok(BTreeMap::new()) };
        let mut fetcher = self.take(first.offset)?;
        let fetched = fetcher.fetch(rows, is_gone)?;
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_CONSUMERS {
            idle.push(fetcher);
        }
        Ok(fetched)
    }

    /// The consumer that is there already, if there is one.
    fn take(&self, offset: i64) -> Result<Fetcher, LogError> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if !idle.is_empty() {
            let there = idle.iter().position(|fetcher| fetcher.is_before(offset));
            return Ok(idle.swap_remove(there.unwrap_or(0)));
        }
        drop(idle);
        Ok(Fetcher { consumer: self.cluster.consumer()?, topic: self.topic.clone(), next: None })
    }
}

impl Fetcher {
    /// True if the offset comes soon without a move.
    fn is_before(&self, offset: i64) -> bool {
        self.next.is_some_and(|next| (next..next.saturating_add(NEAR_OFFSETS)).contains(&offset))
    }

    fn fetch(
        &mut self,
        rows: &[Row],
        is_gone: &dyn Fn(u64) -> bool,
    ) -> Result<BTreeMap<u64, Bytes>, LogError> {
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Ok(BTreeMap::new()) };
        if !self.is_before(first.offset) {
            let place = at(&self.topic, first.offset).map_err(remote("read from", &self.topic))?;
            self.consumer.assign(&place).map_err(remote("read from", &self.topic))?;
            self.next = Some(first.offset);
        }
        let deadline = Instant::now() + REQUEST;
        let mut parts: BTreeMap<u64, BytesMut> = BTreeMap::new();
        while self.next.is_some_and(|next| next < last.end()) {
            let Some((offset, part)) = poll(&self.consumer, &self.topic)? else {
                if is_gone(last.sequence()) {
                    break;
                }
                if Instant::now() > deadline {
                    return Err(remote("read from", &self.topic)(KafkaError::NoMessageReceived));
                }
                continue;
            };
            self.next = Some(offset + 1);
            if let Some((sequence, _)) = parse_part_key(part.key()) {
                parts.entry(sequence).or_default().extend_from_slice(part.payload().unwrap_or_default());
            }
        }
        Ok(whole(rows, parts))
    }
}

/// Everything in a feed's index topic; `None` if nothing was ever stored.
pub(crate) fn load(cluster: &Cluster, topics: &Topics) -> Result<Option<Index>, LogError> {
    let consumer = cluster.consumer()?;
    let from = oldest_offset(&consumer, &topics.index)?;
    let kept_from = oldest_offset(&consumer, &topics.products)?;
    let refused = || remote("read from", &topics.index);
    consumer.assign(&at(&topics.index, from).map_err(refused())?).map_err(refused())?;
    let mut index = None;
    let deadline = Instant::now() + LOADING;
    while Instant::now() < deadline {
        match consumer.poll(POLL) {
            Some(Ok(message)) => take_row(&mut index, &message, kept_from).map_err(|reason| {
                LogError::Remote { action: "understand", place: topics.index.clone(), reason }
            })?,
            Some(Err(KafkaError::PartitionEOF(_))) => return Ok(index),
            Some(Err(error)) if !is_passing(&error) => return Err(refused()(error)),
            Some(Err(_)) | None => {}
        }
    }
    Err(refused()(KafkaError::NoMessageReceived))
}

/// A topic that was created a moment ago has no leader yet.
fn oldest_offset(consumer: &BaseConsumer, topic: &str) -> Result<i64, LogError> {
    let deadline = Instant::now() + REQUEST;
    loop {
        match consumer.fetch_watermarks(topic, PARTITION, REQUEST) {
            Ok((oldest, _)) => return Ok(oldest),
            Err(KafkaError::MetadataFetch(_)) if Instant::now() < deadline => thread::sleep(POLL),
            Err(error) => return Err(remote("read from", topic)(error)),
        }
    }
}

fn take_row(index: &mut Option<Index>, message: &impl Message, kept_from: i64) -> Result<(), String> {
    let row: Row =
        minicbor::decode(message.payload().unwrap_or_default()).map_err(|error| error.to_string())?;
    let index = index.get_or_insert_with(|| Index::new(row.info.key.epoch));
    let (sequence, is_evicted) = (row.sequence(), row.offset < kept_from);
    index.insert(row, message.offset());
    if is_evicted {
        index.evict_before(sequence + 1);
    }
    Ok(())
}

/// The next record with its offset; `None` if there is none yet.
fn poll<'a>(
    consumer: &'a BaseConsumer,
    topic: &str,
) -> Result<Option<(i64, impl Message + use<'a>)>, LogError> {
    match consumer.poll(POLL) {
        Some(Ok(message)) => Ok(Some((message.offset(), message))),
        Some(Err(error)) if !is_passing(&error) => Err(remote("read from", topic)(error)),
        Some(Err(_)) | None => Ok(None),
    }
}

/// The client goes on by itself after these; the deadline bounds them.
fn is_passing(error: &KafkaError) -> bool {
    matches!(error, KafkaError::PartitionEOF(_) | KafkaError::Global(_) | KafkaError::MessageConsumption(_))
}

fn whole(rows: &[Row], mut parts: BTreeMap<u64, BytesMut>) -> BTreeMap<u64, Bytes> {
    let whole = |row: &Row| {
        let bytes = parts.remove(&row.sequence())?.freeze();
        (bytes.len() as u64 == row.info.size).then_some((row.sequence(), bytes))
    };
    rows.iter().filter_map(whole).collect()
}

const POLL: Duration = Duration::from_millis(100);
/// A topic of many millions of records is read within that.
const LOADING: Duration = Duration::from_secs(600);
const IDLE_CONSUMERS: usize = 4;
/// Reading over so many records is cheaper than a move.
const NEAR_OFFSETS: i64 = 64;
