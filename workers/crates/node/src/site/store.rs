//! The commit point: a thread that verifies complete products and appends them to the site's log.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use downburst_log::{
    Appended, DuplicateRule, FeedLog, LogError, LogOptions, NewProduct, ProductLog as _, Retention,
    SourceStamp,
};
use downburst_model::{FeedName, ProductInfo, Sequence, WallMicros};
use downburst_session::StoreResult;
use tokio::sync::mpsc;

use super::assembly::Assembly;
use crate::clock::Clock;

/// The site's logs, one per feed, opened when first needed.
pub(super) struct Logs {
    directory: PathBuf,
    retention: Retention,
    open: Mutex<BTreeMap<FeedName, Arc<FeedLog>>>,
}

/// A product for the thread.
pub(super) struct Complete {
    pub(super) info: ProductInfo,
    pub(super) last_byte: WallMicros,
    pub(super) assembly: Assembly,
}

/// What became of it.
pub(super) struct Stored {
    pub(super) info: ProductInfo,
    pub(super) result: StoreResult,
    pub(super) at: WallMicros,
    /// Its place in the site's own log.
    pub(super) log_sequence: Option<Sequence>,
}

impl Logs {
    pub(super) fn new(directory: &Path, retention: Retention) -> Self {
        Self { directory: directory.to_owned(), retention, open: Mutex::default() }
    }

    /// The log of a feed.
    pub(super) fn of(&self, feed: &FeedName) -> Result<Arc<FeedLog>, LogError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(log) = open.get(feed) {
            return Ok(Arc::clone(log));
        }
        let options = self.options();
        let random = getrandom::u64().unwrap_or_else(|_| u64::from(std::process::id()));
        let directory = self.directory.join(crate::file_names::encode(feed.as_str()));
        let (log, recovery) = FeedLog::open(&directory, feed.clone(), options, random)?;
        if let Some(sentence) = crate::recovery::sentence(&recovery) {
            tracing::warn!(feed = feed.as_str(), "{sentence}");
        }
        let log = Arc::new(log);
        open.insert(feed.clone(), Arc::clone(&log));
        Ok(log)
    }

    /// Drops what the log holds by id and content from here on: the hub's log began anew and may send it again.
    pub(super) fn guard(&self, feed: &FeedName) {
        if let Ok(log) = self.of(feed) {
            log.set_options(LogOptions { duplicate_rule: DuplicateRule::IdAndContent, ..self.options() });
        }
    }

    fn options(&self) -> LogOptions {
        LogOptions {
            retention: self.retention,
            // The hub decided what is a duplicate; here only the hub's own numbers count, until its log begins a second life.
            duplicate_rule: DuplicateRule::None,
            ..LogOptions::default()
        }
    }

    pub(super) fn all(&self) -> Vec<(FeedName, Arc<FeedLog>)> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.iter().map(|(feed, log)| (feed.clone(), Arc::clone(log))).collect()
    }
}

/// Starts the thread; products in, results out, in order. They travel in the batches they came in: a wake-up per product would
/// cost more than its storage.
pub(super) fn start(
    logs: Arc<Logs>,
    clock: Clock,
    results: mpsc::UnboundedSender<Vec<Stored>>,
) -> Result<(crossbeam_channel::Sender<Vec<Complete>>, std::thread::JoinHandle<()>), String> {
    let (sender, receiver) = crossbeam_channel::unbounded::<Vec<Complete>>();
    let thread = std::thread::Builder::new()
        .name("store".to_owned())
        .spawn(move || {
            for batch in receiver {
                let stored = batch.into_iter().map(|complete| finish(&logs, clock, complete)).collect();
                if results.send(stored).is_err() {
                    return;
                }
            }
        })
        .map_err(|error| format!("no thread to store products: {error}"))?;
    Ok((sender, thread))
}

fn finish(logs: &Logs, clock: Clock, mut complete: Complete) -> Stored {
    let (result, log_sequence) = store(logs, clock, &complete);
    complete.assembly.discard();
    Stored { info: complete.info, result, at: clock.wall(), log_sequence }
}

fn store(logs: &Logs, clock: Clock, complete: &Complete) -> (StoreResult, Option<Sequence>) {
    let info = &complete.info;
    let product = NewProduct {
        id: info.id.clone(),
        origin: info.origin.clone(),
        created: info.created,
        class: info.class,
        source: Some(SourceStamp::live(info.key.clone(), info.stored, Some(complete.last_byte))),
        hops: info.hops.clone(),
        expected_size: Some(info.size),
        expected_digest: Some(info.digest),
    };
    let appended = complete.assembly.reader().map_err(StoreResult::Failed).and_then(|mut reader| {
        let log = logs.of(&info.key.feed).map_err(|error| StoreResult::Failed(error.to_string()))?;
        log.append(product, &mut reader, &|| clock.wall()).map_err(|error| match error {
            LogError::DigestMismatch { .. } | LogError::SizeMismatch { .. } => StoreResult::DigestMismatch,
            error => StoreResult::Failed(error.to_string()),
        })
    });
    match appended {
        Ok(Appended::Stored { sequence, .. }) => (StoreResult::Stored, Some(sequence)),
        Ok(Appended::Duplicate { .. }) => (StoreResult::Held, None),
        Err(result) => (result, None),
    }
}
