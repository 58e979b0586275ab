//! The one writer of a feed: transactions under the feed's transactional id.

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use downburst_log::LogError;
use downburst_model::FeedName;
use rdkafka::{
    ClientContext, Message,
    error::{KafkaError, RDKafkaErrorCode},
    producer::{BaseProducer, BaseRecord, DeliveryResult, Producer, ProducerContext},
};

use crate::{
    cluster::{Cluster, PARTITION, REQUEST, Topics, remote},
    record::{PART_BYTES, Row, part_key},
};

/// Writes to the topics of a feed.
pub(crate) struct Writer {
    producer: BaseProducer<Deliveries>,
    feed: FeedName,
    topics: Topics,
    /// Why nothing can be appended any more.
    ended: Option<Failure>,
}

/// Why a transaction did not come about.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    Fenced(FeedName),
    Refused { action: &'static str, place: String, reason: String },
    Unsettled { feed: FeedName, reason: String },
}

/// Where a record went, once it is there.
pub(crate) type Delivery = Arc<OnceLock<Result<i64, KafkaError>>>;

/// Notes where records went.
pub(crate) struct Deliveries;

impl Writer {
    /// Fences the writer before, and waits until its last transaction is through or undone.
    pub(crate) fn open(cluster: &Cluster, feed: &FeedName, topics: &Topics) -> Result<Self, LogError> {
        let mut config = cluster.config();
        config
            .set("transactional.id", &topics.transactional_id)
            .set("transaction.timeout.ms", "60000")
            // Who appends waits for the record, so that nothing is won by waiting for others.
            .set("linger.ms", "0")
            .set("queue.buffering.max.kbytes", "65536");
        let place = &topics.transactional_id;
        let producer: BaseProducer<Deliveries> =
            config.create_with_context(Deliveries).map_err(remote("open", place))?;
        producer.init_transactions(REQUEST).map_err(remote("become the writer", place))?;
        Ok(Self { producer, feed: feed.clone(), topics: topics.clone(), ended: None })
    }

    /// Does `work` in a transaction: all that it sends is stored when this returns, or nothing if it fails.
    pub(crate) fn transact<T, E: From<Failure>>(
        &mut self,
        work: impl FnOnce(&Self) -> Result<T, E>,
    ) -> Result<T, E> {
        if let Some(ended) = &self.ended {
            return Err(ended.clone().into());
        }
        self.producer.begin_transaction().map_err(|error| self.failure("begin a transaction in", &error))?;
        match work(self) {
            Ok(done) => {
                self.commit()?;
                Ok(done)
            }
            Err(stop) => {
                self.abort();
                Err(stop)
            }
        }
    }

    /// Sends a product's bytes as parts; gives the delivery of the first and their number.
    pub(crate) fn product(&self, sequence: u64, bytes: &[u8]) -> Result<(Delivery, u32), Failure> {
        let first = self.part(sequence, 0, bytes.get(..PART_BYTES).unwrap_or(bytes))?;
        let mut parts = 1;
        for bytes in bytes.chunks(PART_BYTES).skip(1) {
            self.part(sequence, parts, bytes)?;
            parts += 1;
        }
        Ok((first, parts))
    }

    /// Sends one part.
    pub(crate) fn part(&self, sequence: u64, part: u32, bytes: &[u8]) -> Result<Delivery, Failure> {
        self.send(&self.topics.products, &part_key(sequence, part), bytes)
    }

    /// Sends a product's description.
    pub(crate) fn note(&self, row: &Row) -> Result<Delivery, Failure> {
        self.send(&self.topics.index, &[], &row.to_cbor())
    }

    /// Waits until everything sent is at the brokers, or refused. Nothing may be sent between this and a commit.
    pub(crate) fn flush(&self) -> Result<(), Failure> {
        let deadline = Instant::now() + REQUEST;
        while self.producer.in_flight_count() > 0 {
            // The client's own `flush` looks every 100 ms, and its `poll` never ends before its time.
            self.producer.poll(POLL);
            if Instant::now() > deadline {
                return Err(self.failure("write to", &KafkaError::Flush(RDKafkaErrorCode::OperationTimedOut)));
            }
        }
        Ok(())
    }

    /// Where a record is, after a flush.
    pub(crate) fn offset(&self, delivery: &Delivery) -> Result<i64, Failure> {
        match delivery.get() {
            Some(Ok(offset)) => Ok(*offset),
            Some(Err(error)) => Err(self.failure("write to", error)),
            None => Err(self.failure("write to", &KafkaError::Canceled)),
        }
    }

    fn send(&self, topic: &str, key: &[u8], bytes: &[u8]) -> Result<Delivery, Failure> {
        let delivery = Delivery::default();
        let opaque = Arc::clone(&delivery);
        let mut record =
            BaseRecord::with_opaque_to(topic, opaque).partition(PARTITION).key(key).payload(bytes);
        loop {
            match self.producer.send(record) {
                Ok(()) => return Ok(delivery),
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), again)) => {
                    self.producer.poll(POLL);
                    record = again;
                }
                Err((error, _)) => return Err(self.failure("write to", &error)),
            }
        }
    }

    /// A commit without an answer is asked for again; what is still open then was perhaps stored.
    fn commit(&mut self) -> Result<(), Failure> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.producer.commit_transaction(REQUEST) {
                Ok(()) => return Ok(()),
                Err(KafkaError::Transaction(error)) if error.is_retriable() && tries < COMMIT_TRIES => {}
                Err(KafkaError::Transaction(error)) if error.txn_requires_abort() => {
                    let failure = self.failure("commit to", &KafkaError::Transaction(error));
                    self.abort();
                    return Err(failure);
                }
                Err(error) => {
                    let failure = Failure::Unsettled { feed: self.feed.clone(), reason: error.to_string() };
                    self.ended = Some(failure.clone());
                    return Err(failure);
                }
            }
        }
    }

    /// A transaction that can't be undone here is undone by the next writer, or by the brokers when its time is over.
    fn abort(&mut self) {
        // Deliveries are noted by nobody else, and the client undoes nothing while some are not.
        let _ = self.flush();
        if let Err(error) = self.producer.abort_transaction(REQUEST) {
            self.ended = Some(self.failure("undo a transaction in", &error));
        }
    }

    fn failure(&self, action: &'static str, error: &KafkaError) -> Failure {
        let fatal = self.producer.client().fatal_error();
        match fatal {
            Some((RDKafkaErrorCode::Fenced | RDKafkaErrorCode::ProducerFenced, _)) => {
                Failure::Fenced(self.feed.clone())
            }
            Some((_, reason)) => self.refused(action, reason),
            None => self.refused(action, error.to_string()),
        }
    }

    fn refused(&self, action: &'static str, reason: String) -> Failure {
        Failure::Refused { action, place: self.topics.products.clone(), reason }
    }
}

impl From<Failure> for LogError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Fenced(feed) => Self::Fenced { feed },
            Failure::Refused { action, place, reason } => Self::Remote { action, place, reason },
            Failure::Unsettled { feed, reason } => Self::Unsettled { feed, reason },
        }
    }
}

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = Delivery;

    fn delivery(&self, result: &DeliveryResult<'_>, delivery: Delivery) {
        let offset = result.as_ref().map(Message::offset).map_err(|(error, _)| error.clone());
        // It is told once.
        let _ = delivery.set(offset);
    }
}

const POLL: Duration = Duration::from_millis(1);
const COMMIT_TRIES: u32 = 3;
