//! Proof that this node stores products and returns them: one of the hub's own products takes the same path as all
//! others, again and again.
//!
//! It has a private log beside those of the feeds: no site takes it, no figure counts it. Each product gets a
//! segment of its own, so that each proof creates a file, which a read-only or full disk would prevent.
use std::sync::Arc;

use downburst_hub::feeds::{Written, parsed_digest};
use downburst_hub::{KeptProduct, ProofFault, Proven, ProvenLog, read_back};
use downburst_log::{Copied, FeedLog, LogEntry, LogError, LogOptions, ProductLog as _};
use downburst_model::{Class, FeedName, LegId, Origin, ProductId, ProductInfo, Sequence};
use serde_json::{Value, json};
use tokio::sync::{Mutex, oneshot};

use crate::hub::Hub;
use crate::hub::feeds::feed_writer::{Done, Spooled, Write};
use crate::hub::feeds::{Feed, failure, options, random_u64};
use crate::lines::{DuplicateWord, DurabilityWord, Failure, FeedLine, ProveLine};

/// The log of the hub's own products, once opened.
#[derive(Default)]
pub(super) struct Proof(Mutex<Option<Arc<Feed>>>);

impl Proof {
    pub(super) async fn close(&self) {
        // A proof in progress waits for a disk that does not answer.
        let Ok(mut open) = self.0.try_lock() else { return };
        close(open.take()).await;
    }
}

impl Hub {
    /// Stores a product and reads it back, with those of the last minutes; a failure starts with its step's name.
    ///
    /// After a failure the log is reopened, as after a crash.
    pub(super) async fn prove(self: Arc<Self>, line: ProveLine) -> Result<Value, Failure> {
        let Ok(mut open) = self.proof.0.try_lock() else {
            return Err(Failure::new(
                "io",
                "append: the product before this one is not stored yet; the disk hangs",
            ));
        };
        let (feed, found) = match open.as_ref() {
            Some(feed) => (Arc::clone(feed), None),
            None => {
                let (feed, found) = begun(Arc::clone(&self)).await?;
                (Arc::clone(open.insert(feed)), found)
            }
        };
        let proven = self.proven(&feed, line).await;
        if let (Ok(_), Some(damage)) = (&proven, found) {
            return Err(at("read-back", Failure::new("digest-mismatch", damage)));
        }
        if proven.is_err() {
            drop(feed);
            close(open.take()).await;
        }
        proven
    }

    async fn proven(self: &Arc<Self>, feed: &Arc<Feed>, line: ProveLine) -> Result<Value, Failure> {
        let info = self.stored(feed, line).await.map_err(|error| at("append", error))?;
        let (hub, feed) = (Arc::clone(self), Arc::clone(feed));
        blocking(move || {
            let back = read_back(&*feed, info.key.sequence).map_err(not_read_back);
            // Also after a failure, so that damaged products leave the log in the end.
            let retained = feed.log.retain(hub.clock.wall());
            let Proven { digest, kept } = back.map_err(|error| at("read-back", error))?;
            retained.map_err(|error| at("append", failure(&error)))?;
            Ok(json!({"sequence": info.key.sequence, "size": info.size, "digest": digest, "kept": kept}))
        })
        .await
    }

    async fn stored(&self, feed: &Feed, line: ProveLine) -> Result<ProductInfo, Failure> {
        let now = self.clock.wall();
        let name = |error: downburst_model::NameError| Failure::new("bad-request", error.to_string());
        let (done, stored) = oneshot::channel();
        feed.write(Write {
            bytes: Spooled::File { path: line.path, remove: true },
            id: ProductId::parse(&format!("probe {}", now.0)).map_err(name)?,
            origin: Origin::parse(&self.start.origin).map_err(name)?,
            created: Some(now),
            digest: Some(parsed_digest(&line.digest)?),
            ldm: None,
            properties: None,
            done: Done::Told(done),
        });
        match stored.await {
            Ok(Ok(Written::Stored(info))) => Ok(*info),
            Ok(Ok(Written::Duplicate { .. })) => Err(Failure::new("io", "the log has a product that is new")),
            Ok(Err(failure)) => Err(failure),
            Err(_) => Err(Failure::new("io", "the log is being closed; try again")),
        }
    }
}

/// Opens the log; returns a message if it was damaged. That is reported once, because opening moves the damage aside.
async fn begun(hub: Arc<Hub>) -> Result<(Arc<Feed>, Option<String>), Failure> {
    let directory = hub.start.data_dir.join("log").join(DIRECTORY);
    blocking(move || {
        let line = line()?;
        let options = LogOptions {
            segment_bytes: 0,
            memory_hours: line.retention_hours,
            sequence_block: SEQUENCE_BLOCK,
            ..options(&line)
        };
        let random = random_u64().map_err(|error| Failure::new("io", error))?;
        let (log, recovery) = FeedLog::open(&directory, line.feed.clone(), options, random)
            .map_err(|error| beyond_repair(&directory, failure(&error)))?;
        let is_damaged = !recovery.damaged.is_empty() || !recovery.quarantined.is_empty();
        let found = is_damaged.then(|| {
            format!(
                "the log in {} is not as it was written; look for failures of the disk (dmesg, smartctl)",
                directory.display()
            )
        });
        // These products are of no value to the operator, and a failing disk would produce more and more of them.
        for aside in &recovery.quarantined {
            let _ = std::fs::remove_file(aside);
        }
        Ok((Feed::own(line, log).begin(&hub)?, found))
    })
    .await
    .map_err(|error| at("append", error))
}

impl ProvenLog for Feed {
    type Error = LogError;

    fn first(&self) -> Sequence {
        self.log.first()
    }

    fn read(&self, after: Sequence, to: Sequence) -> Result<Vec<KeptProduct>, LogError> {
        let entries = self.log.read(after, to, usize::MAX, usize::MAX)?.entries.into_iter();
        let product = |entry: LogEntry| KeptProduct {
            sequence: entry.info.key.sequence,
            stored: entry.info.stored,
            bytes: entry.bytes,
        };
        Ok(entries.map(product).collect())
    }

    fn is_intact(&self, sequence: Sequence) -> Result<bool, LogError> {
        Ok(self.log.examine(sequence)? == Copied::Intact)
    }
}

fn not_read_back(fault: ProofFault<LogError>) -> Failure {
    match fault {
        ProofFault::Log(error) => failure(&error),
        ProofFault::Missing(sentence) => Failure::new("io", sentence),
        ProofFault::Damaged(sentence) => Failure::new("digest-mismatch", sentence),
    }
}

/// The log has no value to anybody, so the message advises its removal.
fn beyond_repair(directory: &std::path::Path, mut failure: Failure) -> Failure {
    if failure.code == "io" {
        failure.error = format!(
            "{}; look for failures of the disk (dmesg, smartctl), then remove {}",
            failure.error,
            directory.display()
        );
    }
    failure
}

fn at(step: &str, mut failure: Failure) -> Failure {
    failure.error = format!("{step}: {}", failure.error);
    failure
}

async fn close(feed: Option<Arc<Feed>>) {
    if let Some(feed) = feed {
        let _ = tokio::task::spawn_blocking(move || feed.close()).await;
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(Failure::new("io", format!("the node failed at it: {error}"))))
}

fn line() -> Result<FeedLine, Failure> {
    Ok(FeedLine {
        feed: FeedName::parse("hub-probe").map_err(|error| Failure::new("io", error.to_string()))?,
        class: Class::Grid,
        retention_hours: KEPT_SECONDS / 3_600.0,
        retention_bytes: MOST_BYTES,
        durability: DurabilityWord::Power,
        duplicate_rule: DuplicateWord::None,
        max_product_bytes: MOST_BYTES,
        unicast_leg: LegId(0),
        at_least: Vec::new(),
        ldm_feed_type: None,
        ldm_pattern: None,
        deadline_ms: None,
    })
}

/// No feed's name begins with a dot, and the log tools skip hidden directories.
const DIRECTORY: &str = ".probe";
/// Some twenty products, at one proof every five seconds.
const KEPT_SECONDS: f64 = 120.0;
const MOST_BYTES: u64 = 1 << 20;
const SEQUENCE_BLOCK: u64 = 1_000;
