//! The commit point: a thread that verifies complete products and appends them to the site's log.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use downburst_log::{
    Appended, DuplicateRule, FeedLog, LogError, LogOptions, NewProduct, ProductLog as _, Retention,
    SourceStamp,
};
use downburst_model::{FeedName, Lane, ProductInfo, Sequence, WallMicros};
use downburst_session::{Duplicates, StoreResult, Train};
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

/// Something for the thread.
pub(super) enum Complete {
    Product { info: ProductInfo, brought: Brought, assembly: Assembly },
    Train { train: Arc<Train>, last_byte: WallMicros },
}

/// How a product came in.
#[derive(Clone, Copy)]
pub(super) struct Brought {
    pub(super) last_byte: WallMicros,
    pub(super) lane: Lane,
    pub(super) resend: Option<u64>,
}

/// What became of it.
pub(super) struct Stored {
    pub(super) what: StoredWhat,
    pub(super) at: WallMicros,
    /// Its place in the site's own log; of several the last.
    pub(super) log_sequence: Option<Sequence>,
}

pub(super) enum StoredWhat {
    Product(ProductInfo, StoreResult),
    /// One result for each product of the train.
    Train(Arc<Train>, Vec<StoreResult>),
}

impl Complete {
    /// The memory it keeps until it is stored.
    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Product { assembly, .. } => assembly.memory_bytes(),
            Self::Train { train, .. } => train_bytes(train),
        }
    }
}

impl StoredWhat {
    /// The feed.
    pub(super) fn feed(&self) -> &FeedName {
        match self {
            Self::Product(info, _) => &info.key.feed,
            Self::Train(train, _) => &train.feed,
        }
    }
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

fn finish(shelf: &dyn Shelf, clock: Clock, complete: Complete) -> Stored {
    match complete {
        Complete::Product { info, brought, mut assembly } => {
            let (result, log_sequence) = store(shelf, clock, &info, brought, &assembly);
            assembly.discard();
            Stored { what: StoredWhat::Product(info, result), at: clock.wall(), log_sequence }
        }
        Complete::Train { train, last_byte } => {
            let (results, log_sequence) = store_train(shelf, clock, &train, last_byte);
            Stored { what: StoredWhat::Train(train, results), at: clock.wall(), log_sequence }
        }
    }
}

fn store(
    shelf: &dyn Shelf,
    clock: Clock,
    info: &ProductInfo,
    brought: Brought,
    assembly: &Assembly,
) -> (StoreResult, Option<Sequence>) {
    let Some(product) = new_product(shelf, info.clone(), brought) else { return (StoreResult::Held, None) };
    let appended = assembly.reader().map_err(StoreResult::Failed).and_then(|mut reader| {
        let log = log_of(shelf, &info.key.feed)?;
        log.append(product, &mut reader, &|| clock.wall()).map_err(failure)
    });
    result(shelf, appended)
}

/// Appends all products of a train at once.
fn store_train(
    shelf: &dyn Shelf,
    clock: Clock,
    train: &Train,
    last_byte: WallMicros,
) -> (Vec<StoreResult>, Option<Sequence>) {
    let brought = Brought { last_byte, lane: train.lane, resend: None };
    let admitted: Vec<Option<NewProduct>> =
        train.cars.iter().map(|car| new_product(shelf, train.info(car), brought)).collect();
    let log = match log_of(shelf, &train.feed) {
        Ok(log) => log,
        Err(result) => return (vec![result; train.cars.len()], None),
    };
    let is_admitted: Vec<bool> = admitted.iter().map(Option::is_some).collect();
    let products = admitted.into_iter().zip(&train.cars);
    let products = products.filter_map(|(product, car)| Some((product?, car.bytes.clone()))).collect();
    let mut appended = log.append_all(products, &|| clock.wall()).into_iter();
    let ended = is_admitted.into_iter().map(|admitted| match admitted.then(|| appended.next()).flatten() {
        Some(appended) => result(shelf, appended.map_err(failure)),
        None => (StoreResult::Held, None),
    });
    let (results, sequences): (Vec<StoreResult>, Vec<Option<Sequence>>) = ended.unzip();
    (results, sequences.into_iter().flatten().max())
}

fn log_of(shelf: &dyn Shelf, feed: &FeedName) -> Result<Arc<FeedLog>, StoreResult> {
    let log = shelf.log(feed).map_err(StoreResult::Failed)?;
    log.ok_or_else(|| StoreResult::Failed("the feed was removed".to_owned()))
}

/// The product as it goes into the log; `None` if it is passed over.
fn new_product(shelf: &dyn Shelf, info: ProductInfo, brought: Brought) -> Option<NewProduct> {
    let (class, hops) = shelf.admit(&info)?;
    let Brought { last_byte, lane, resend } = brought;
    // Absent stands for the lane of nearly all.
    let lane = Some(lane).filter(|lane| *lane != Lane::Live);
    let live = SourceStamp::live(info.key, info.stored, Some(last_byte));
    Some(NewProduct {
        id: info.id,
        origin: info.origin,
        created: info.created,
        class,
        source: Some(SourceStamp { lane, resend, ..live }),
        hops,
        expected_size: Some(info.size),
        expected_digest: Some(info.digest),
    })
}

fn result(shelf: &dyn Shelf, appended: Result<Appended, StoreResult>) -> (StoreResult, Option<Sequence>) {
    match appended {
        Ok(Appended::Stored { sequence, info }) => {
            shelf.appended(&info);
            (StoreResult::Stored, Some(sequence))
        }
        Ok(Appended::Duplicate { .. }) => (StoreResult::Held, None),
        Err(result) => (result, None),
    }
}

fn failure(error: LogError) -> StoreResult {
    match error {
        LogError::DigestMismatch { .. } | LogError::SizeMismatch { .. } => StoreResult::DigestMismatch,
        error => StoreResult::Failed(error.to_string()),
    }
}

fn train_bytes(train: &Train) -> usize {
    train.cars.iter().map(|car| car.bytes.len() + CAR_BYTES).sum()
}

/// What a product of a train takes besides its bytes.
const CAR_BYTES: usize = 256;
