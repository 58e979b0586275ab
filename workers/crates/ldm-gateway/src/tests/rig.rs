//! A hub for tests: feeds' logs in a temporary directory, and a record of the gateway's reports.
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

use bytes::Bytes;
use downburst_clock::Clock;
use downburst_hub::{SiteLine, SubscriptionLine};
use downburst_log::{Appended, DuplicateRule, FeedLog, LogError, LogOptions, NewProduct, ProductLog as _};
use downburst_model::{Class, FeedName, LegId, Origin, ProductId, WallMicros};
use tempfile::TempDir;

use crate::hub::{Event, Feed, Hub, LogListener, Product, ProductBytes, Sent, Writing, Written};
use crate::lock;

pub(crate) struct TestHub {
    clock: Clock,
    directory: TempDir,
    origin: String,
    feeds: Vec<Arc<TestFeed>>,
    pub(crate) sites: Mutex<Vec<SiteLine>>,
    pub(crate) events: Mutex<Vec<Event>>,
    pub(crate) faults: Mutex<Vec<String>>,
    pub(crate) sent: Mutex<Vec<Sent>>,
}

pub(crate) struct TestFeed {
    pub(crate) log: Arc<FeedLog>,
    types: String,
    pattern: Option<String>,
    listeners: Arc<Mutex<Vec<Weak<Waiter>>>>,
}

struct Waiter {
    grown: AtomicBool,
    wake: Box<dyn Fn() + Send + Sync>,
}

struct Listener(Arc<Waiter>);

impl TestHub {
    /// A hub with feeds of these names, types and patterns.
    pub(crate) fn new(origin: &str, feeds: &[(&str, &str, Option<&str>)]) -> Arc<Self> {
        let directory = tempfile::tempdir().unwrap();
        let feeds = feeds
            .iter()
            .map(|(name, types, pattern)| Arc::new(TestFeed::new(directory.path(), name, types, *pattern)))
            .collect();
        Arc::new(Self {
            clock: Clock::start(0),
            directory,
            origin: origin.to_owned(),
            feeds,
            sites: Mutex::default(),
            events: Mutex::default(),
            faults: Mutex::default(),
            sent: Mutex::default(),
        })
    }

    pub(crate) fn feed(&self, name: &str) -> &TestFeed {
        self.feeds.iter().find(|feed| feed.log.feed().as_str() == name).unwrap()
    }

    /// Stores a product from a source other than LDM.
    pub(crate) fn put(&self, feed: &str, id: &str, bytes: &'static [u8]) {
        let product = NewProduct {
            id: ProductId::parse(id).unwrap(),
            origin: Origin::parse(&self.origin).unwrap(),
            created: self.clock.wall(),
            class: Class::Observation,
            source: None,
            hops: None,
            ldm: None,
            properties: None,
            expected_size: None,
            expected_digest: None,
        };
        let bytes = Bytes::from_static(bytes);
        let stored = self.feed(feed).log.append_all(vec![(product, bytes)], &|| self.clock.wall());
        assert!(matches!(stored.as_slice(), [Ok(Appended::Stored { .. })]), "{stored:?}");
    }

    /// Subscribes a site with an LDM on any host to the products of a feed that match the pattern.
    pub(crate) fn subscribe(&self, site: &str, feed: &str, pattern: &str) {
        let line = serde_json::json!({
            "site": site, "credentials": [], "subscriptions": [], "active": true, "ldm_host": ".*",
        });
        let mut line: SiteLine = serde_json::from_value(line).unwrap();
        line.subscriptions.push(SubscriptionLine {
            feed: FeedName::parse(feed).unwrap(),
            pattern: pattern.to_owned(),
            not_pattern: None,
            hold_us: None,
            max_age_us: None,
            within: None,
        });
        lock(&self.sites).push(line);
    }
}

impl TestFeed {
    fn new(directory: &Path, name: &str, types: &str, pattern: Option<&str>) -> Self {
        let options = LogOptions { duplicate_rule: DuplicateRule::Signature, ..LogOptions::default() };
        let feed = FeedName::parse(name).unwrap();
        let log = FeedLog::open(&directory.join(types), feed, options, 7).unwrap().0;
        let listeners: Arc<Mutex<Vec<Weak<Waiter>>>> = Arc::default();
        let told = Arc::clone(&listeners);
        log.on_append(Box::new(move |_| {
            for waiter in lock(&told).iter().filter_map(Weak::upgrade) {
                waiter.grown.store(true, Ordering::SeqCst);
                (waiter.wake)();
            }
        }));
        let (types, pattern) = (types.to_owned(), pattern.map(str::to_owned));
        Self { log: Arc::new(log), types, pattern, listeners }
    }

    /// The identifiers of its products, in order.
    pub(crate) fn ids(&self) -> Vec<String> {
        let read =
            self.log.read(downburst_model::Sequence(0), self.log.head(), usize::MAX, usize::MAX).unwrap();
        read.entries.into_iter().map(|entry| entry.info.id.as_str().to_owned()).collect()
    }
}

impl Hub for TestHub {
    fn clock(&self) -> Clock {
        self.clock
    }

    fn data_dir(&self) -> &Path {
        self.directory.path()
    }

    fn origin(&self) -> &str {
        &self.origin
    }

    fn feeds(&self) -> Vec<Arc<dyn Feed>> {
        self.feeds.iter().map(|feed| Arc::clone(feed) as Arc<dyn Feed>).collect()
    }

    fn sites(&self) -> Vec<SiteLine> {
        lock(&self.sites).clone()
    }

    fn tell(&self, event: Event) {
        lock(&self.events).push(event);
    }

    fn fault(&self, sentence: String) {
        lock(&self.faults).push(sentence);
    }

    fn unreadable(&self, feed: &FeedName, error: &LogError) {
        lock(&self.faults).push(format!("{feed}: {error}"));
    }

    fn count_wire(&self, _: usize) {}

    fn count_sent(&self, sent: &Sent) {
        lock(&self.sent).push(sent.clone());
    }
}

impl Feed for TestFeed {
    fn log(&self) -> &FeedLog {
        &self.log
    }

    fn class(&self) -> Class {
        Class::Observation
    }

    fn largest_bytes(&self) -> u64 {
        LARGEST_BYTES
    }

    fn unicast_leg(&self) -> LegId {
        LegId(1)
    }

    fn types(&self) -> Option<(String, Option<String>)> {
        Some((self.types.clone(), self.pattern.clone()))
    }

    fn listen(&self, wake: Box<dyn Fn() + Send + Sync>) -> Box<dyn LogListener> {
        let waiter = Arc::new(Waiter { grown: AtomicBool::new(true), wake });
        lock(&self.listeners).push(Arc::downgrade(&waiter));
        Box::new(Listener(waiter))
    }

    fn write(&self, product: Product) -> Writing {
        let Product { id, origin, created, stamp, bytes } = product;
        let bytes = match bytes {
            ProductBytes::AtHand(bytes) => bytes,
            ProductBytes::File(path) => std::fs::read(path).unwrap().into(),
        };
        let product = NewProduct {
            id,
            origin,
            created,
            class: self.class(),
            source: None,
            hops: None,
            ldm: Some(stamp),
            properties: None,
            expected_size: None,
            expected_digest: None,
        };
        let appended = self.log.append_all(vec![(product, bytes)], &|| WallMicros(created.0)).remove(0);
        let written = match appended.unwrap() {
            Appended::Stored { info, .. } => Written::Stored { bytes: info.size },
            Appended::Duplicate { .. } => Written::Duplicate,
        };
        Box::pin(std::future::ready(Some(Ok(written))))
    }
}

impl LogListener for Listener {
    fn take(&self) -> bool {
        self.0.grown.swap(false, Ordering::SeqCst)
    }
}

pub(crate) const LARGEST_BYTES: u64 = 1_000_000;
