//! The commit point: a thread that verifies complete products and appends them to the site's log.
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use downburst_log::{
    Appended, DuplicateRule, FeedLog, LogError, LogOptions, NewProduct, ProductLog as _, Retention,
    SourceStamp,
};
use downburst_model::{FeedName, Lane, Origin, ProductInfo, Sequence, WallMicros};
use downburst_pqact::Notifier;
use downburst_session::{Duplicates, StoreResult, Train};
use downburst_site::{Brought, Contents, StoreItem, StoreRequest, Stored, StoredItem, StoredWhat};
use tokio::sync::mpsc;

use super::shelf::Shelf;
use super::spool::{Spool, Spooled};
use crate::clock::Clock;

/// The site's logs, one per feed, opened when first needed.
pub(crate) struct Logs {
    directory: PathBuf,
    retention: Retention,
    /// The rule while nothing else is known: none where one hub decides what is a duplicate.
    rule: DuplicateRule,
    /// Rings when something was appended.
    notifier: Arc<Notifier>,
    open: Mutex<BTreeMap<FeedName, Arc<FeedLog>>>,
}

/// A request, with the bytes of its products at hand.
pub(super) struct Batch {
    id: u64,
    items: Vec<Complete>,
}

#[expect(clippy::large_enum_variant, reason = "a batch holds few, and lives until it is stored")]
enum Complete {
    Product { info: ProductInfo, brought: Brought, body: Body },
    Train { train: Arc<Train>, last_byte: WallMicros },
}

/// All bytes of a product.
enum Body {
    Memory(Contents),
    Spooled(Spooled),
}

/// The thread, with the request that it works on and those that wait.
pub(super) struct StoreThread {
    batches: crossbeam_channel::Sender<Batch>,
    pub(super) results: mpsc::UnboundedReceiver<Stored>,
    thread: std::thread::JoinHandle<()>,
}

impl Batch {
    /// Takes the places that the request names out of the spool.
    pub(super) fn new(request: StoreRequest, spool: &mut Spool) -> Self {
        let StoreRequest { id, items } = request;
        let complete = |item| match item {
            StoreItem::Product { info, brought, contents: Contents::Place(place) } => {
                Complete::Product { info, brought, body: Body::Spooled(spool.take(place)) }
            }
            StoreItem::Product { info, brought, contents } => {
                Complete::Product { info, brought, body: Body::Memory(contents) }
            }
            StoreItem::Train { train, last_byte } => Complete::Train { train, last_byte },
        };
        Self { id, items: items.into_iter().map(complete).collect() }
    }
}

impl StoreThread {
    pub(super) fn store(&self, batch: Batch) {
        // The thread lives as long as the site.
        let _ = self.batches.send(batch);
    }

    /// Waits until the log has what is on its way there.
    pub(super) fn close(self) {
        drop(self.batches);
        let _ = self.thread.join();
    }
}

impl Logs {
    /// Logs below `directory`. A site of several hubs drops what one of them sends after another.
    pub(super) fn new(directory: &Path, retention: Retention, several_hubs: bool) -> Self {
        let rule = if several_hubs { DuplicateRule::IdAndContent } else { DuplicateRule::None };
        Self {
            directory: directory.to_owned(),
            retention,
            rule,
            notifier: Arc::default(),
            open: Mutex::default(),
        }
    }

    /// Each append rings this notifier.
    pub(super) fn notifying(self, notifier: Arc<Notifier>) -> Self {
        Self { notifier, ..self }
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

    fn options(&self) -> LogOptions {
        LogOptions {
            retention: self.retention,
            // For products of one hub only its own numbers count: it decided on duplicates, until its log
            // begins a second life.
            duplicate_rule: self.rule,
            ..LogOptions::default()
        }
    }

    pub(crate) fn all(&self) -> Vec<(FeedName, Arc<FeedLog>)> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.iter().map(|(feed, log)| (feed.clone(), Arc::clone(log))).collect()
    }
}

impl Shelf for Logs {
    fn log(&self, feed: &FeedName) -> Result<Option<Arc<FeedLog>>, String> {
        self.of(feed).map(Some).map_err(|error| error.to_string())
    }

    /// A site of several hubs can't know which of them brought a feed: there the stamps of the others
    /// determine the position.
    fn held(&self) -> Vec<FeedName> {
        if self.rule != DuplicateRule::None {
            return Vec::new();
        }
        let entries = std::fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names.filter_map(|name| FeedName::parse(&crate::file_names::decode(&name)?).ok()).collect()
    }

    fn guard(&self, feed: &FeedName) {
        if let Ok(log) = self.of(feed)
            && self.rule == DuplicateRule::None
        {
            log.set_options(LogOptions { duplicate_rule: DuplicateRule::IdAndContent, ..self.options() });
        }
    }

    /// A site of several hubs follows their rule. Where they have none, their numbers differ and nothing else
    /// reveals a repeat: then id and content do.
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

/// Starts the thread; requests in, results out, in order. Products travel in their original batches: a wake-up
/// per product would cost more than its storage.
pub(super) fn start(place: Place) -> Result<StoreThread, String> {
    let (batches, receiver) = crossbeam_channel::unbounded::<Batch>();
    let (sender, results) = mpsc::unbounded_channel();
    let thread = std::thread::Builder::new()
        .name("store".to_owned())
        .spawn(move || {
            for Batch { id, items } in receiver {
                let mut storing = Storing { place: &place, stored: Vec::new(), group: Vec::new() };
                items.into_iter().for_each(|complete| storing.take(complete));
                storing.append_group();
                // Without a listener the log has it all the same.
                let _ = sender.send(Stored { id, items: storing.stored });
            }
        })
        .map_err(|error| format!("no thread to store products: {error}"))?;
    Ok(StoreThread { batches, results, thread })
}

/// Where a connection's products are kept.
pub(super) struct Place {
    pub(super) shelf: Arc<dyn Shelf>,
    pub(super) clock: Clock,
    /// The host that the hub was called by; kept with each product, because a site of several hubs has one log.
    pub(super) via: Option<Origin>,
}

/// A batch on its way into the logs.
struct Storing<'a> {
    place: &'a Place,
    stored: Vec<StoredItem>,
    /// Products of one feed that are appended together.
    group: Vec<(ProductInfo, Brought, Bytes)>,
}

impl Storing<'_> {
    fn take(&mut self, complete: Complete) {
        match complete {
            Complete::Product { info, brought, body: Body::Memory(contents) } => {
                self.take_bytes(info, brought, contents.at_hand().unwrap_or_default());
            }
            Complete::Product { info, brought, body: Body::Spooled(mut spooled) } => {
                self.append_group();
                let (result, log_sequence) = match spooled.contents() {
                    Ok(file) => store_file(self.place, &info, brought, file),
                    Err(sentence) => (StoreResult::Failed(sentence), None),
                };
                self.put(StoredWhat::Product(info, result), log_sequence);
                spooled.discard();
            }
            Complete::Train { train, last_byte } => {
                self.append_group();
                let (results, log_sequence) = store_train(self.place, &train, last_byte);
                self.put(StoredWhat::Train(train, results), log_sequence);
            }
        }
    }

    fn take_bytes(&mut self, info: ProductInfo, brought: Brought, bytes: Bytes) {
        if self.group.last().is_some_and(|(last, ..)| last.key.feed != info.key.feed) {
            self.append_group();
        }
        self.group.push((info, brought, bytes));
    }

    fn append_group(&mut self) {
        let group = std::mem::take(&mut self.group);
        let Some((first, ..)) = group.first() else { return };
        let feed = first.key.feed.clone();
        let (infos, products): (Vec<ProductInfo>, Vec<_>) = group
            .into_iter()
            .map(|(info, brought, bytes)| {
                let product = new_product(self.place, info.clone(), brought).map(|product| (product, bytes));
                (info, product)
            })
            .unzip();
        let results = append_admitted(self.place, &feed, products);
        for (info, (result, log_sequence)) in infos.into_iter().zip(results) {
            self.put(StoredWhat::Product(info, result), log_sequence);
        }
    }

    fn put(&mut self, what: StoredWhat, log_sequence: Option<Sequence>) {
        self.stored.push(StoredItem { what, at: self.place.clock.wall(), log_sequence });
    }
}

fn store_file(
    place: &Place,
    info: &ProductInfo,
    brought: Brought,
    file: &mut File,
) -> (StoreResult, Option<Sequence>) {
    let Some(product) = new_product(place, info.clone(), brought) else { return (StoreResult::Held, None) };
    let appended = log_of(place, &info.key.feed)
        .and_then(|log| log.append(product, file, &|| place.clock.wall()).map_err(failure));
    result(place, appended)
}

/// Appends all products of a train at once.
fn store_train(place: &Place, train: &Train, last_byte: WallMicros) -> (Vec<StoreResult>, Option<Sequence>) {
    let brought = Brought { last_byte, lane: train.lane, resend: None };
    let products = train.cars.iter().map(|car| {
        let product = new_product(place, train.info(car), brought)?;
        Some((product, car.bytes.clone()))
    });
    let ended = append_admitted(place, &train.feed, products.collect());
    let (results, sequences): (Vec<StoreResult>, Vec<Option<Sequence>>) = ended.into_iter().unzip();
    (results, sequences.into_iter().flatten().max())
}

/// Appends the products that are not passed over at once; what became of each.
fn append_admitted(
    place: &Place,
    feed: &FeedName,
    products: Vec<Option<(NewProduct, Bytes)>>,
) -> Vec<(StoreResult, Option<Sequence>)> {
    let log = match log_of(place, feed) {
        Ok(log) => log,
        Err(result) => return vec![(result, None); products.len()],
    };
    let admitted: Vec<bool> = products.iter().map(Option::is_some).collect();
    let mut appended =
        log.append_all(products.into_iter().flatten().collect(), &|| place.clock.wall()).into_iter();
    let ended = admitted.into_iter().map(|admitted| match admitted.then(|| appended.next()).flatten() {
        Some(appended) => result(place, appended.map_err(failure)),
        None => (StoreResult::Held, None),
    });
    ended.collect()
}

fn log_of(place: &Place, feed: &FeedName) -> Result<Arc<FeedLog>, StoreResult> {
    let log = place.shelf.log(feed).map_err(StoreResult::Failed)?;
    log.ok_or_else(|| StoreResult::Failed("the feed was removed".to_owned()))
}

/// The product as it goes into the log; `None` if it is passed over.
fn new_product(place: &Place, info: ProductInfo, brought: Brought) -> Option<NewProduct> {
    let (class, hops) = place.shelf.admit(&info)?;
    let Brought { last_byte, lane, resend } = brought;
    // Absent stands for the lane of nearly all.
    let lane = Some(lane).filter(|lane| *lane != Lane::Live);
    let live = SourceStamp::live(info.key, info.stored, Some(last_byte));
    Some(NewProduct {
        id: info.id,
        origin: info.origin,
        created: info.created,
        class,
        source: Some(SourceStamp { lane, resend, via: place.via.clone(), ..live }),
        hops,
        ldm: info.ldm,
        expected_size: Some(info.size),
        expected_digest: Some(info.digest),
    })
}

fn result(place: &Place, appended: Result<Appended, StoreResult>) -> (StoreResult, Option<Sequence>) {
    match appended {
        Ok(Appended::Stored { sequence, info }) => {
            place.shelf.appended(&info);
            (StoreResult::Stored, Some(sequence))
        }
        Ok(Appended::Duplicate { .. }) => (StoreResult::Held, None),
        Err(result) => (result, None),
    }
}

fn failure(error: LogError) -> StoreResult {
    match error {
        LogError::DigestMismatch { .. } | LogError::SizeMismatch { .. } => StoreResult::DigestMismatch,
        // The log's own words are for those who bring products: here they come again by themselves.
        LogError::DiskFull { path } => StoreResult::Failed(format!(
            "the disk of {} is full; free space there, or keep fewer products (--retention-hours, --retention-bytes)",
            path.display()
        )),
        error => StoreResult::Failed(error.to_string()),
    }
}
