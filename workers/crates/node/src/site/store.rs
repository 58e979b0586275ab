//! The commit point: a thread that verifies complete products and appends them to the site's log.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use downburst_log::{
    Appended, DuplicateRule, FeedLog, LogError, LogOptions, NewProduct, ProductLog as _, Retention,
    SourceStamp,
};
use downburst_model::{FeedName, ProductInfo, Sequence, WallMicros};
use downburst_session::{Duplicates, StoreResult};
use tokio::sync::mpsc;

use super::assembly::Assembly;
use super::shelf::Shelf;
use crate::clock::Clock;

/// The site's logs, one per feed, opened when first needed.
pub(super) struct Logs {
    directory: PathBuf,
    retention: Retention,
    /// The rule while nothing else is known: none where one hub decides what is a duplicate.
    rule: DuplicateRule,
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
    /// Logs below `directory`. A site of several hubs drops what one of them sends after another.
    pub(super) fn new(directory: &Path, retention: Retention, several_hubs: bool) -> Self {
        let rule = if several_hubs { DuplicateRule::IdAndContent } else { DuplicateRule::None };
        Self { directory: directory.to_owned(), retention, rule, open: Mutex::default() }
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

    fn options(&self) -> LogOptions {
        LogOptions {
            retention: self.retention,
            // Of one hub only its own numbers count: it decided what is a duplicate, until its log begins a second life.
            duplicate_rule: self.rule,
            ..LogOptions::default()
        }
    }

    pub(super) fn all(&self) -> Vec<(FeedName, Arc<FeedLog>)> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.iter().map(|(feed, log)| (feed.clone(), Arc::clone(log))).collect()
    }
}

impl Shelf for Logs {
    fn log(&self, feed: &FeedName) -> Result<Option<Arc<FeedLog>>, String> {
        self.of(feed).map(Some).map_err(|error| error.to_string())
    }

    fn guard(&self, feed: &FeedName) {
        if let Ok(log) = self.of(feed)
            && self.rule == DuplicateRule::None
        {
            log.set_options(LogOptions { duplicate_rule: DuplicateRule::IdAndContent, ..self.options() });
        }
    }

    /// A site of several hubs goes by their rule. Where it is none, their numbers differ and nothing else can tell a repeat: then
    /// id and content do.
    fn duplicates(&self, feed: &FeedName, rule: Duplicates) {
        if let Ok(log) = self.of(feed)
            && self.rule != DuplicateRule::None
        {
            let duplicate_rule = match rule {
                Duplicates::IdAndContent | Duplicates::None => DuplicateRule::IdAndContent,
                Duplicates::Content => DuplicateRule::Content,
                Duplicates::ContentWithoutWmoStart => DuplicateRule::ContentWithoutWmoStart,
                Duplicates::Id => DuplicateRule::Id,
            };
            log.set_options(LogOptions { duplicate_rule, ..self.options() });
        }
    }
}

/// Starts the thread; products in, results out, in order. They travel in the batches they came in: a wake-up per product would
/// cost more than its storage.
pub(super) fn start(
    shelf: Arc<dyn Shelf>,
    clock: Clock,
    results: mpsc::UnboundedSender<Vec<Stored>>,
) -> Result<(crossbeam_channel::Sender<Vec<Complete>>, std::thread::JoinHandle<()>), String> {
    let (sender, receiver) = crossbeam_channel::unbounded::<Vec<Complete>>();
    let thread = std::thread::Builder::new()
        .name("store".to_owned())
        .spawn(move || {
            for batch in receiver {
                let stored =
                    batch.into_iter().map(|complete| finish(shelf.as_ref(), clock, complete)).collect();
                if results.send(stored).is_err() {
                    return;
                }
            }
        })
        .map_err(|error| format!("no thread to store products: {error}"))?;
    Ok((sender, thread))
}

fn finish(shelf: &dyn Shelf, clock: Clock, mut complete: Complete) -> Stored {
    let (result, log_sequence) = store(shelf, clock, &complete);
    complete.assembly.discard();
    Stored { info: complete.info, result, at: clock.wall(), log_sequence }
}

fn store(shelf: &dyn Shelf, clock: Clock, complete: &Complete) -> (StoreResult, Option<Sequence>) {
    let info = &complete.info;
    let Some((class, hops)) = shelf.admit(info) else { return (StoreResult::Held, None) };
    let product = NewProduct {
        id: info.id.clone(),
        origin: info.origin.clone(),
        created: info.created,
        class,
        source: Some(SourceStamp::live(info.key.clone(), info.stored, Some(complete.last_byte))),
        hops,
        expected_size: Some(info.size),
        expected_digest: Some(info.digest),
    };
    let appended = complete.assembly.reader().map_err(StoreResult::Failed).and_then(|mut reader| {
        let log = shelf.log(&info.key.feed).map_err(StoreResult::Failed)?;
        let log = log.ok_or_else(|| StoreResult::Failed("the feed was removed".to_owned()))?;
        log.append(product, &mut reader, &|| clock.wall()).map_err(|error| match error {
            LogError::DigestMismatch { .. } | LogError::SizeMismatch { .. } => StoreResult::DigestMismatch,
            error => StoreResult::Failed(error.to_string()),
        })
    });
    match appended {
        Ok(Appended::Stored { sequence, info }) => {
            shelf.appended(&info);
            (StoreResult::Stored, Some(sequence))
        }
        Ok(Appended::Duplicate { .. }) => (StoreResult::Held, None),
        Err(result) => (result, None),
    }
}
