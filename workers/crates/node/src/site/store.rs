//! The commit point: a thread that verifies complete products and appends them to the site's log.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use downburst_log::{
    Appended, DuplicateRule, FeedLog, LogError, LogOptions, NewProduct, ProductLog as _, Retention,
    SourceStamp,
};
use downburst_model::{FeedName, Lane, Origin, Pieces, ProductInfo, WallMicros};
use downburst_pqact::Notifier;
use downburst_session::{Duplicates, StoreResult};
use downburst_site::{Brought, OwnDuplicates, ProductEnd, ProductStore, StoreBatch, Stored, full_disk};
use tokio::sync::mpsc;

use super::destination::Destination;
use super::spool::Spooled;
use crate::clock::Clock;

/// The site's logs, one per feed, opened at first use.
pub(crate) struct Logs {
    directory: PathBuf,
    retention: Retention,
    duplicates: OwnDuplicates,
    /// Notified after each append.
    notifier: Arc<Notifier>,
    /// Products of at least this size have bodies; `None`: as the log decides.
    body_bytes: Option<u64>,
    open: Mutex<BTreeMap<FeedName, Arc<FeedLog>>>,
}

/// The thread, with the channels of its requests and results.
pub(super) struct StoreThread {
    batches: crossbeam_channel::Sender<StoreBatch<Spooled>>,
    pub(super) results: mpsc::UnboundedReceiver<Stored>,
    thread: std::thread::JoinHandle<()>,
}

impl StoreThread {
    pub(super) fn store(&self, batch: StoreBatch<Spooled>) {
        // The thread runs as long as the site.
        let _ = self.batches.send(batch);
    }

    /// Waits until the queued products are in the log.
    pub(super) fn close(self) {
        drop(self.batches);
        let _ = self.thread.join();
    }
}

impl Logs {
    /// Logs below `directory`.
    pub(super) fn new(directory: &Path, retention: Retention, several_hubs: bool) -> Self {
        let duplicates = if several_hubs { OwnDuplicates::OfSeveralHubs } else { OwnDuplicates::OfOneHub };
        Self {
            directory: directory.to_owned(),
            retention,
            duplicates,
            notifier: Arc::default(),
            body_bytes: None,
            open: Mutex::default(),
        }
    }

    /// Has each append notify this notifier.
    pub(super) fn notifying(self, notifier: Arc<Notifier>) -> Self {
        Self { notifier, ..self }
    }

    /// Gives products of at least this size bodies.
    pub(super) fn with_bodies_from(self, bytes: u64) -> Self {
        Self { body_bytes: Some(bytes), ..self }
    }

    /// The log of a feed.
    pub(super) fn of(&self, feed: &FeedName) -> Result<Arc<FeedLog>, LogError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(log) = open.get(feed) {
            return Ok(Arc::clone(log));
        }
        let options = self.options(self.duplicates.at_first());
        let random = getrandom::u64().unwrap_or_else(|_| u64::from(std::process::id()));
        let directory = self.directory.join(crate::file_names::encode(feed.as_str()));
        let (log, recovery) = FeedLog::open(&directory, feed.clone(), options, random)?;
        if let Some(sentence) = crate::recovery::sentence(&recovery) {
            if crate::recovery::is_whole(&recovery) {
                tracing::info!(feed = feed.as_str(), "{sentence}");
            } else {
                tracing::warn!(feed = feed.as_str(), "{sentence}");
            }
        }
        let notifier = Arc::clone(&self.notifier);
        log.on_append(Box::new(move |_| notifier.notify()));
        let log = Arc::new(log);
        open.insert(feed.clone(), Arc::clone(&log));
        Ok(log)
    }

    fn options(&self, rule: Duplicates) -> LogOptions {
        let duplicate_rule = match rule {
            Duplicates::IdAndContent => DuplicateRule::IdAndContent,
            Duplicates::Content => DuplicateRule::Content,
            Duplicates::ContentWithoutWmoStart => DuplicateRule::ContentWithoutWmoStart,
            Duplicates::Id => DuplicateRule::Id,
            Duplicates::None => DuplicateRule::None,
        };
        let usual = LogOptions::default();
        let body_bytes = self.body_bytes.unwrap_or(usual.body_bytes);
        LogOptions { retention: self.retention, duplicate_rule, body_bytes, ..usual }
    }

    fn set_rule(&self, feed: &FeedName, rule: Option<Duplicates>) {
        if let (Ok(log), Some(rule)) = (self.of(feed), rule) {
            log.set_options(self.options(rule));
        }
    }

    pub(crate) fn all(&self) -> Vec<(FeedName, Arc<FeedLog>)> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.iter().map(|(feed, log)| (feed.clone(), Arc::clone(log))).collect()
    }
}

impl Destination for Logs {
    fn log(&self, feed: &FeedName) -> Result<Option<Arc<FeedLog>>, String> {
        self.of(feed).map(Some).map_err(|error| error.to_string())
    }

    /// A site of several hubs can't know which of them sent a feed: there the stamps of the others
    /// determine the position.
    fn held(&self) -> Vec<FeedName> {
        if self.duplicates == OwnDuplicates::OfSeveralHubs {
            return Vec::new();
        }
        let entries = std::fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names.filter_map(|name| FeedName::parse(&crate::file_names::decode(&name)?).ok()).collect()
    }

    fn guard(&self, feed: &FeedName) {
        self.set_rule(feed, self.duplicates.guarded());
    }

    fn duplicates(&self, feed: &FeedName, rule: Duplicates) {
        self.set_rule(feed, self.duplicates.following(rule));
    }
}

/// Starts the thread; requests in, results out, in order. Products stay in their original batches: a wake-up
/// per product would cost more than its storage.
pub(super) fn start(place: Place) -> Result<StoreThread, String> {
    let (batches, receiver) = crossbeam_channel::unbounded::<StoreBatch<Spooled>>();
    let (sender, results) = mpsc::unbounded_channel();
    let thread = std::thread::Builder::new()
        .name("store".to_owned())
        .spawn(move || {
            for batch in receiver {
                // Without a receiver of the results, the products are in the log nevertheless.
                let _ = sender.send(batch.store(&place));
            }
        })
        .map_err(|error| format!("no thread to store products: {error}"))?;
    Ok(StoreThread { batches, results, thread })
}

/// The store of a connection's products.
pub(super) struct Place {
    pub(super) destination: Arc<dyn Destination>,
    pub(super) clock: Clock,
    /// The host name under which the hub was called; stored with each product: a site of several hubs has one log.
    pub(super) via: Option<Origin>,
}

impl Place {
    fn log(&self, feed: &FeedName) -> Result<Arc<FeedLog>, StoreResult> {
        let log = self.destination.log(feed).map_err(StoreResult::Failed)?;
        log.ok_or_else(|| StoreResult::Failed("the feed was removed".to_owned()))
    }

    fn end(&self, appended: Result<Appended, LogError>) -> ProductEnd {
        match appended {
            Ok(Appended::Stored { sequence, info }) => {
                self.destination.appended(&info);
                (StoreResult::Stored, Some(sequence))
            }
            Ok(Appended::Duplicate { .. }) => (StoreResult::Held, None),
            Err(error) => (failure(error), None),
        }
    }
}

impl ProductStore for Place {
    type Admitted = NewProduct;
    type Place = Spooled;

    fn admit(&self, info: ProductInfo, brought: Brought) -> Option<NewProduct> {
        let (class, hops) = self.destination.admit(&info)?;
        let Brought { last_byte, lane, resend } = brought;
        // Absent means the lane of nearly all products.
        let lane = Some(lane).filter(|lane| *lane != Lane::Live);
        let live = SourceStamp::live(info.key, info.stored, Some(last_byte));
        Some(NewProduct {
            id: info.id,
            origin: info.origin,
            created: info.created,
            class,
            source: Some(SourceStamp { lane, resend, via: self.via.clone(), ..live }),
            hops,
            ldm: info.ldm,
            properties: info.properties,
            expected_size: Some(info.size),
            expected_digest: Some(info.digest),
        })
    }

    fn append(
        &self,
        feed: &FeedName,
        products: Vec<(NewProduct, Pieces)>,
    ) -> Result<Vec<ProductEnd>, StoreResult> {
        let appended = self.log(feed)?.append_pieces(products, &|| self.clock.wall());
        Ok(appended.into_iter().map(|appended| self.end(appended)).collect())
    }

    fn append_from(&self, info: &ProductInfo, brought: Brought, place: &mut Spooled) -> ProductEnd {
        let file = match place.contents() {
            Ok(file) => file,
            Err(sentence) => return (StoreResult::Failed(sentence), None),
        };
        let Some(product) = self.admit(info.clone(), brought) else { return (StoreResult::Held, None) };
        match self.log(&info.key.feed) {
            Ok(log) => self.end(log.append_file(product, file, &|| self.clock.wall())),
            Err(result) => (result, None),
        }
    }

    fn discard(&self, mut place: Spooled) {
        place.discard();
    }

    fn wall(&self) -> WallMicros {
        self.clock.wall()
    }
}

fn failure(error: LogError) -> StoreResult {
    match error {
        LogError::DigestMismatch { .. } | LogError::SizeMismatch { .. } => StoreResult::DigestMismatch,
        LogError::DiskFull { path } => full_disk(path.display()),
        error => StoreResult::Failed(error.to_string()),
    }
}
