//! The one writer of a feed: manifests in transactions under the feed's transactional id, parts before them.

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use downburst_log::{Draft, LogError};
use downburst_model::{Epoch, FeedName, Sequence};
use rdkafka::{
    ClientContext, Message,
    error::{KafkaError, RDKafkaErrorCode},
    producer::{BaseProducer, BaseRecord, DeliveryResult, Producer, ProducerContext},
};

use crate::{
    cluster::{Cluster, PARTITION},
    reader::sequence_at,
    record::{Kind, Manifest, Opening, PART_BYTES, Random, Upload},
    words::Heard,
};

/// Writes to the topic of a feed.
pub(crate) struct Writer {
    cluster: Cluster,
    feed: FeedName,
    topic: String,
    epoch: Epoch,
    heard: Heard,
    manifests: BaseProducer<Deliveries>,
    /// Created for the first large product. It is in no transaction and never fenced: its records mean nothing by
    /// themselves.
    parts: Option<BaseProducer<Deliveries>>,
}

/// The reason why products got no sequence.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The brokers report another writer, as they also do after a transaction that took too long.
    Fenced,
    /// Nothing was stored, and the writer can continue.
    Refused(LogError),
    /// Nothing was stored, and the writer must be reopened.
    Lost(LogError),
    /// The transaction of this batch may have been stored.
    Unsettled(Random, String),
}

/// A product being sent, with its bytes or their place.
struct Leaving {
    description: Vec<u8>,
    content: Result<bytes::Bytes, Upload>,
}

/// The offset of a record, once it is stored.
type Delivery = Arc<OnceLock<Result<i64, KafkaError>>>;

/// Records the offsets of delivered records.
#[derive(Clone)]
struct Deliveries(Heard);

impl Writer {
    /// As [`open`](Self::open), with repeated attempts while the brokers are starting.
    pub(crate) fn open_patiently(
        cluster: &Cluster,
        feed: &FeedName,
        topic: &str,
        until: Instant,
    ) -> Result<Self, LogError> {
        loop {
            match Self::become_writer(cluster, feed, topic) {
                Ok(writer) => return Ok(writer),
                Err((true, _)) if Instant::now() < until => std::thread::sleep(AGAIN_AFTER),
                Err((_, error)) => return Err(error),
            }
        }
    }

    /// Opens a new writer in place of this one.
    pub(crate) fn anew(self, until: Instant) -> Result<Self, LogError> {
        Self::open_patiently(&self.cluster, &self.feed, &self.topic, until)
    }

    /// Fences the previous writer, and waits until its last transaction is committed or aborted.
    pub(crate) fn open(cluster: &Cluster, feed: &FeedName, topic: &str) -> Result<Self, LogError> {
        Self::become_writer(cluster, feed, topic).map_err(|(_, error)| error)
    }

    /// The flag of an error is true if the error is to be expected of brokers that are starting.
    fn become_writer(cluster: &Cluster, feed: &FeedName, topic: &str) -> Result<Self, (bool, LogError)> {
        let heard = Heard::default();
        let manifests = manifests(cluster, topic, &heard).map_err(|error| (false, error))?;
        let became = manifests.init_transactions(PATIENCE);
        manifests.poll(Duration::ZERO);
        became
            .map_err(|error| (is_of_starting(&error), cluster.explained("take a writer", &error, &heard)))?;
        let (cluster, feed, topic) = (cluster.clone(), feed.clone(), topic.to_owned());
        Ok(Self { cluster, feed, topic, epoch: Epoch(0), heard, manifests, parts: None })
    }

    /// Announces the writer that appends from here on.
    pub(crate) fn begin(&mut self, epoch: Epoch, writer: Random) -> Result<Sequence, Failure> {
        self.epoch = epoch;
        let opening = Opening { epoch, writer }.to_value();
        let sent =
            self.transact([0; 16], |me| Ok(vec![me.send(&me.manifests, Kind::Opening, &opening)?]))?;
        Ok(sent.first().copied().unwrap_or_default())
    }

    /// Stores a group in one transaction.
    pub(crate) fn number(&self, drafts: &[Draft<'_>]) -> Result<Vec<Sequence>, Failure> {
        let mut leaving = Vec::with_capacity(drafts.len());
        for draft in drafts {
            let bytes = draft.bytes().cloned().unwrap_or_default();
            leaving.push(Leaving { description: draft.description(), content: Ok(bytes) });
        }
        self.store(leaving)
    }

    /// Stores a product whose parts are stored.
    pub(crate) fn number_uploaded(&self, draft: &Draft<'_>, upload: Upload) -> Result<Sequence, Failure> {
        let leaving = Leaving { description: draft.description(), content: Err(upload) };
        Ok(self.store(vec![leaving])?.first().copied().unwrap_or_default())
    }

    /// Begins a large product.
    pub(crate) fn upload(&mut self) -> Result<Upload, Failure> {
        if self.parts.is_none() {
            let made = self.cluster.client_with(
                &[
                    ("enable.idempotence", "true"),
                    ("message.timeout.ms", "15000"),
                    ("linger.ms", "0"),
                    ("message.max.bytes", "1000000"),
                    ("queue.buffering.max.kbytes", "16384"),
                ],
                Deliveries(self.heard.clone()),
                &self.heard,
            );
            self.parts = Some(made.map_err(Failure::Refused)?);
        }
        Ok(Upload { id: random().map_err(Failure::Refused)?, parts: 0 })
    }

    /// Sends the next part, and waits while too many are in flight.
    pub(crate) fn part(&self, upload: &mut Upload, bytes: &[u8]) -> Result<PartSent, Failure> {
        let Some(producer) = &self.parts else { return Err(self.refused(&KafkaError::Canceled)) };
        let kind = Kind::Part { upload: upload.id, part: upload.parts };
        upload.parts += 1;
        self.send(producer, kind, bytes).map(PartSent)
    }

    /// Waits until the brokers have all parts.
    pub(crate) fn finish(&self, parts: &[PartSent]) -> Result<(), Failure> {
        let Some(producer) = &self.parts else { return Ok(()) };
        self.flush(producer)?;
        parts.iter().try_for_each(|PartSent(delivery)| self.offset(delivery).map(|_| ()))
    }

    fn store(&self, leaving: Vec<Leaving>) -> Result<Vec<Sequence>, Failure> {
        let batch = random().map_err(Failure::Refused)?;
        self.transact(batch, |me| {
            let mut sent = Vec::with_capacity(leaving.len());
            for (place, Leaving { description, content }) in leaving.into_iter().enumerate() {
                let (bytes, upload) =
                    content.map_or_else(|upload| (Default::default(), Some(upload)), |it| (it, None));
                let manifest = Manifest { epoch: me.epoch, batch, place: place as u32, upload, description };
                sent.push(me.send(&me.manifests, Kind::Manifest, &manifest.to_value(&bytes))?);
            }
            Ok(sent)
        })
    }

    /// Commits everything that `work` sends, or nothing if it fails.
    fn transact(
        &self,
        batch: Random,
        work: impl FnOnce(&Self) -> Result<Vec<Delivery>, Failure>,
    ) -> Result<Vec<Sequence>, Failure> {
        self.manifests.begin_transaction().map_err(|error| self.lost(&error))?;
        let sent = work(self).and_then(|sent| {
            self.flush(&self.manifests)?;
            sent.iter().map(|delivery| self.offset(delivery)).collect::<Result<Vec<i64>, Failure>>()
        });
        match sent {
            Ok(offsets) => {
                self.commit(batch)?;
                Ok(offsets.into_iter().map(sequence_at).collect())
            }
            Err(failure) => Err(self.undone(failure)),
        }
    }

    /// A commit without an answer is requested again; if it is still open then, it may have been stored.
    fn commit(&self, batch: Random) -> Result<(), Failure> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.manifests.commit_transaction(PATIENCE) {
                Ok(()) => return Ok(()),
                Err(KafkaError::Transaction(error)) if error.is_retriable() && tries < COMMIT_TRIES => {}
                Err(KafkaError::Transaction(error)) if error.txn_requires_abort() => {
                    let failure = self.refused(&KafkaError::Transaction(error));
                    return Err(self.undone(failure));
                }
                Err(error) => return Err(Failure::Unsettled(batch, error.to_string())),
            }
        }
    }

    /// Aborts the transaction. If that fails, the next writer aborts it, or the brokers do when it times out.
    fn undone(&self, failure: Failure) -> Failure {
        // Nothing else polls for deliveries, and the client aborts nothing while some are outstanding.
        let _ = self.flush(&self.manifests);
        match (failure, self.manifests.abort_transaction(PATIENCE)) {
            (Failure::Fenced, _) => Failure::Fenced,
            (_, Err(_)) if self.is_fenced() => Failure::Fenced,
            (Failure::Refused(error), Err(_)) => Failure::Lost(error),
            (failure, _) => failure,
        }
    }

    fn send(
        &self,
        producer: &BaseProducer<Deliveries>,
        kind: Kind,
        value: &[u8],
    ) -> Result<Delivery, Failure> {
        let (delivery, key) = (Delivery::default(), kind.key());
        let opaque = Arc::clone(&delivery);
        let mut record =
            BaseRecord::with_opaque_to(&self.topic, opaque).partition(PARTITION).key(&key).payload(value);
        loop {
            match producer.send(record) {
                Ok(()) => return Ok(delivery),
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), again)) => {
                    look_soon(producer);
                    record = again;
                }
                Err((error, _)) => return Err(self.refused(&error)),
            }
        }
    }

    /// Waits until everything sent is stored by the brokers, or refused.
    fn flush(&self, producer: &BaseProducer<Deliveries>) -> Result<(), Failure> {
        let deadline = Instant::now() + 2 * PATIENCE;
        while producer.in_flight_count() > 0 {
            look_soon(producer);
            if Instant::now() > deadline {
                return Err(self.refused(&KafkaError::Flush(RDKafkaErrorCode::OperationTimedOut)));
            }
        }
        Ok(())
    }

    fn offset(&self, delivery: &Delivery) -> Result<i64, Failure> {
        match delivery.get() {
            Some(Ok(offset)) => Ok(*offset),
            Some(Err(error)) => Err(self.refused(error)),
            None => Err(self.refused(&KafkaError::Canceled)),
        }
    }

    pub(crate) fn is_fenced(&self) -> bool {
        let fatal = self.manifests.client().fatal_error();
        matches!(fatal, Some((RDKafkaErrorCode::Fenced | RDKafkaErrorCode::ProducerFenced, _)))
    }

    fn refused(&self, error: &KafkaError) -> Failure {
        if self.is_fenced() {
            return Failure::Fenced;
        }
        let explained =
            self.cluster.explained(&format!("store products of feed {}", self.feed), error, &self.heard);
        match self.manifests.client().fatal_error() {
            Some(_) => Failure::Lost(explained),
            None => Failure::Refused(explained),
        }
    }

    fn lost(&self, error: &KafkaError) -> Failure {
        match self.refused(error) {
            Failure::Refused(error) => Failure::Lost(error),
            failure => failure,
        }
    }
}

/// Polls for deliveries after a moment. The client's own `flush` polls every 100 ms, and its `poll` spends the
/// last millisecond of its time in a busy loop.
fn look_soon(producer: &BaseProducer<Deliveries>) {
    std::thread::sleep(LOOK_AFTER);
    producer.poll(Duration::ZERO);
}

fn manifests(cluster: &Cluster, topic: &str, heard: &Heard) -> Result<BaseProducer<Deliveries>, LogError> {
    cluster.client_with(
        &[
            ("transactional.id", topic),
            // Longer than any transaction takes. A writer that dies during one delays readers for this long at
            // most.
            ("transaction.timeout.ms", "15000"),
            // The caller waits for the record, so nothing is gained by waiting for others.
            ("linger.ms", "0"),
            ("message.max.bytes", "1000000"),
            ("queue.buffering.max.kbytes", "65536"),
        ],
        Deliveries(heard.clone()),
        heard,
    )
}

/// Brokers elect the coordinator of transactions only after they have begun to answer.
fn is_of_starting(error: &KafkaError) -> bool {
    matches!(error, KafkaError::Transaction(error) if error.is_retriable())
        || error.rdkafka_error_code().is_some_and(|code| OF_STARTING.contains(&code))
}

/// A part in flight.
pub(crate) struct PartSent(Delivery);

impl ClientContext for Deliveries {
    fn error(&self, _: KafkaError, reason: &str) {
        self.0.hear(reason);
    }
}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = Delivery;

    fn delivery(&self, result: &DeliveryResult<'_>, delivery: Delivery) {
        let offset = result.as_ref().map(Message::offset).map_err(|(error, _)| error.clone());
        // It is reported once.
        let _ = delivery.set(offset);
    }
}

/// Products of this size or more are cut into parts of it.
pub(crate) const LARGE_BYTES: usize = PART_BYTES;

pub(crate) fn random() -> Result<Random, LogError> {
    let mut bytes = Random::default();
    getrandom::fill(&mut bytes).map_err(|error| LogError::Store {
        sentence: format!("the system gives no random numbers: {error}"),
    })?;
    Ok(bytes)
}

/// Brokers on the same machine take a millisecond.
const LOOK_AFTER: Duration = Duration::from_micros(250);
/// Healthy brokers take milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);
const COMMIT_TRIES: u32 = 2;
const AGAIN_AFTER: Duration = Duration::from_millis(200);
const OF_STARTING: [RDKafkaErrorCode; 5] = [
    RDKafkaErrorCode::NotCoordinator,
    RDKafkaErrorCode::CoordinatorNotAvailable,
    RDKafkaErrorCode::CoordinatorLoadInProgress,
    RDKafkaErrorCode::ConcurrentTransactions,
    RDKafkaErrorCode::NotLeaderForPartition,
];
