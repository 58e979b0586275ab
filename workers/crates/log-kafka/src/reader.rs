//! Reading a feed's topic in order: products are assembled from their parts, and parts without a manifest are
//! ignored.

use std::{
    fs::File,
    io::{Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use bytes::Bytes;
use downburst_log::{Given, LogError};
use downburst_model::Sequence;
use rdkafka::{
    Message, Offset,
    consumer::{BaseConsumer, Consumer},
    error::{KafkaError, RDKafkaErrorCode},
    message::BorrowedMessage,
};

use crate::{
    cluster::{Cluster, at},
    record::{Kind, Manifest, Opening, Random, Upload},
    topic::{self, Extent},
    words::{Heard, refused},
};

/// Reads the topic from an offset on.
pub(crate) struct Reader {
    cluster: Cluster,
    consumer: BaseConsumer<Heard>,
    heard: Heard,
    topic: String,
    /// Parts are assembled in unnamed files of this directory.
    directory: PathBuf,
    /// The oldest first.
    uploads: Vec<Arriving>,
}

/// The next finding.
pub(crate) enum Found {
    Opening(Opening),
    Product(Box<Product>),
    /// A part of a product.
    Part,
    /// Nothing more for now.
    End,
    /// Nothing yet.
    Nothing,
    /// No broker answers; the client keeps trying.
    Away,
}

/// A committed product.
pub(crate) struct Product {
    pub(crate) manifest: Manifest,
    pub(crate) given: Given,
    /// `None`: Kafka no longer has all of its parts.
    pub(crate) content: Option<Content>,
}

pub(crate) enum Content {
    AtHand(Bytes),
    InFile(File),
}

/// Parts of a product whose manifest has not been read yet.
struct Arriving {
    id: Random,
    parts: u32,
    file: File,
}

impl Reader {
    pub(crate) fn new(cluster: &Cluster, topic: &str, directory: &Path) -> Result<Self, LogError> {
        let heard = Heard::default();
        let consumer = cluster.consumer(&heard)?;
        let (cluster, topic, directory) = (cluster.clone(), topic.to_owned(), directory.to_owned());
        Ok(Self { cluster, consumer, heard, topic, directory, uploads: Vec::new() })
    }

    /// The reason why no broker answers.
    pub(crate) fn why_away(&self) -> LogError {
        let error = KafkaError::Global(RDKafkaErrorCode::AllBrokersDown);
        self.cluster.explained("be read from", &error, &self.heard)
    }

    pub(crate) fn extent(&self) -> Result<Extent, LogError> {
        topic::extent(&self.cluster, &self.consumer, &self.topic, &self.heard)
    }

    /// Continues after a product, or from the beginning.
    pub(crate) fn go_behind(&mut self, sequence: Sequence) -> Result<(), LogError> {
        let extent = self.extent()?;
        // A sequence is its record's offset plus one, which is also the offset after the record.
        let place = i64::try_from(sequence.0).unwrap_or(i64::MAX);
        if place > extent.end {
            let what = format!(
                "ends at number {}, and this node has its products up to {place}: the brokers lost its end, and \
                 would give numbers twice; remove the topic, so that the feed's log starts anew",
                extent.end
            );
            return Err(refused(&self.topic, &what));
        }
        self.uploads.clear();
        self.assign(place.max(extent.oldest))
    }

    /// The next finding within a time limit.
    pub(crate) fn next(&mut self, patience: Duration) -> Result<Found, LogError> {
        // The borrow of a record ends before the reader is changed.
        let taken = match self.consumer.poll(patience) {
            None => return Ok(Found::Nothing),
            Some(Err(KafkaError::PartitionEOF(_))) => return Ok(Found::End),
            Some(Err(error)) if is_gone(&error) => return Err(self.lost_place()),
            Some(Err(error)) if error.rdkafka_error_code() == Some(RDKafkaErrorCode::AllBrokersDown) => {
                return Ok(Found::Away);
            }
            Some(Err(error)) if is_passing(&error) => return Ok(Found::Nothing),
            Some(Err(error)) => return Err(self.cluster.explained("be read from", &error, &self.heard)),
            Some(Ok(record)) => take(&record),
        };
        match taken {
            Taken::Opening(opening) => Ok(Found::Opening(opening)),
            Taken::Part { upload, part, bytes } => self.keep_part(upload, part, &bytes).map(|()| Found::Part),
            Taken::Manifest(manifest, bytes, sequence) => self.product(manifest, bytes, sequence),
            Taken::Foreign(offset) => Err(refused(
                &self.topic,
                &format!(
                    "holds a record at offset {offset} that no Downburst of this release wrote; give each hub a \
                     prefix of its own (kafka.prefix), or remove the topic"
                ),
            )),
        }
    }

    fn assign(&self, offset: i64) -> Result<(), LogError> {
        let placed = at(&self.topic, Offset::Offset(offset)).and_then(|place| self.consumer.assign(&place));
        placed.map_err(|error| self.cluster.explained("be read from", &error, &self.heard))
    }

    fn product(&mut self, manifest: Manifest, bytes: Bytes, sequence: Sequence) -> Result<Found, LogError> {
        let given = Given::read(sequence, &manifest.description).map_err(|reason| {
            refused(&self.topic, &format!("holds a product that can't be read: {reason}"))
        })?;
        // Earlier uploads of a fenced writer are never finished.
        let uploads = std::mem::take(&mut self.uploads);
        let content = match &manifest.upload {
            None => Some(Content::AtHand(bytes)),
            Some(upload) => whole(uploads, upload).map(Content::InFile),
        };
        Ok(Found::Product(Box::new(Product { manifest, given, content })))
    }

    fn keep_part(&mut self, id: Random, part: u32, bytes: &[u8]) -> Result<(), LogError> {
        let failed = |error: std::io::Error| LogError::Io {
            action: "keep parts of a product in",
            path: self.directory.clone(),
            source: error,
        };
        if part == 0 {
            let file = tempfile::tempfile_in(&self.directory).map_err(failed)?;
            self.uploads.retain(|known| known.id != id);
            if self.uploads.len() >= MOST_UPLOADS {
                self.uploads.remove(0);
            }
            self.uploads.push(Arriving { id, parts: 0, file });
        }
        // Parts without the first one no longer represent a product.
        let Some(arriving) = self.uploads.iter_mut().find(|known| known.id == id && known.parts == part)
        else {
            return Ok(());
        };
        arriving.file.write_all(bytes).map_err(failed)?;
        arriving.parts += 1;
        Ok(())
    }

    fn lost_place(&self) -> LogError {
        refused(
            &self.topic,
            "no longer has the next product for this node; restart the node, so that it reads the remaining ones",
        )
    }
}

/// A record, reduced to the needed parts.
enum Taken {
    Opening(Opening),
    Part { upload: Random, part: u32, bytes: Bytes },
    Manifest(Manifest, Bytes, Sequence),
    Foreign(i64),
}

fn take(record: &BorrowedMessage<'_>) -> Taken {
    let (offset, value) = (record.offset(), record.payload().unwrap_or_default());
    let known = match Kind::parse(record.key()) {
        Some(Kind::Opening) => Opening::parse(value).map(Taken::Opening),
        Some(Kind::Part { upload, part }) => {
            Some(Taken::Part { upload, part, bytes: Bytes::copy_from_slice(value) })
        }
        Some(Kind::Manifest) => Manifest::parse(value).map(|(manifest, bytes)| {
            Taken::Manifest(manifest, Bytes::copy_from_slice(bytes), sequence_at(offset))
        }),
        None => None,
    };
    known.unwrap_or(Taken::Foreign(offset))
}

/// The sequence of the product whose manifest is at an offset.
pub(crate) fn sequence_at(offset: i64) -> Sequence {
    Sequence(u64::try_from(offset).unwrap_or_default() + 1)
}

fn whole(uploads: Vec<Arriving>, upload: &Upload) -> Option<File> {
    let found = uploads.into_iter().find(|known| known.id == upload.id && known.parts == upload.parts);
    let mut file = found?.file;
    file.seek(SeekFrom::Start(0)).ok()?;
    Some(file)
}

fn is_gone(error: &KafkaError) -> bool {
    matches!(
        error.rdkafka_error_code(),
        Some(RDKafkaErrorCode::AutoOffsetReset | RDKafkaErrorCode::OffsetOutOfRange)
    )
}

/// The client recovers from these by itself: brokers are away, or elect a leader.
fn is_passing(error: &KafkaError) -> bool {
    let code = error.rdkafka_error_code();
    !matches!(
        code,
        Some(
            RDKafkaErrorCode::TopicAuthorizationFailed
                | RDKafkaErrorCode::GroupAuthorizationFailed
                | RDKafkaErrorCode::Authentication
                | RDKafkaErrorCode::Fatal
        )
    )
}

/// A writer has one, and a fenced writer may have left another.
const MOST_UPLOADS: usize = 4;
