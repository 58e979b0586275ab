//! Following a feed's topic into its copy.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use bytes::Bytes;
use downburst_log::{FeedLog, Given, LogError, ProductLog as _};
use downburst_model::{Epoch, Sequence};

use crate::{
    cluster::Cluster,
    reader::{Content, Found, Product, Reader},
    record::Random,
    words::refused,
};

/// Copies the records of the topic that the copy lacks.
pub(crate) struct Follower {
    pub(crate) cluster: Cluster,
    pub(crate) topic: String,
    pub(crate) directory: PathBuf,
    pub(crate) copy: Arc<FeedLog>,
    pub(crate) say: Arc<dyn Fn(String) + Send + Sync>,
    pub(crate) stop: Arc<AtomicBool>,
}

/// The findings on the way to the end, in one reading or several.
#[derive(Default)]
pub(crate) struct Passed {
    /// The last writer that opened the log.
    pub(crate) writer: Option<Random>,
    batch: Option<Random>,
    /// The products of the wanted batch, by their position in it.
    pub(crate) of_batch: Vec<(u32, Sequence)>,
}

impl Passed {
    /// Searches for the products of a batch from here on.
    pub(crate) fn look_for(&mut self, batch: Option<Random>) {
        if self.batch != batch {
            (self.batch, self.of_batch) = (batch, Vec::new());
        }
    }

    fn see(&mut self, found: &Found) {
        match found {
            Found::Opening(opening) => self.writer = Some(opening.writer),
            Found::Product(product) if Some(product.manifest.batch) == self.batch => {
                self.of_batch.push((product.manifest.place, product.given.sequence));
            }
            _ => {}
        }
    }
}

impl Follower {
    /// Follows the topic until it is stopped. Reports a problem once, and its end.
    pub(crate) fn run(&self) {
        let mut trouble = None;
        while !self.is_stopped() {
            if let Err(error) = self.follow(&mut trouble) {
                self.trouble(&error, &mut trouble);
            }
            self.pause();
        }
    }

    /// Reads to the current end.
    pub(crate) fn catch_up(&self, passed: &mut Passed) -> Result<(), LogError> {
        let mut reader = self.reader()?;
        let mut group = Group::default();
        let mut deadline = Instant::now() + SILENCE;
        loop {
            let found = reader.next(POLL)?;
            passed.see(&found);
            let is_end = matches!(found, Found::End);
            if !matches!(found, Found::Nothing | Found::Away) {
                deadline = Instant::now() + SILENCE;
            }
            self.take(found, &mut group)?;
            if is_end {
                group.flush(&self.copy)?;
                return Ok(());
            }
            if self.is_stopped() || Instant::now() > deadline {
                group.flush(&self.copy)?;
                return Err(refused(
                    &self.topic,
                    "was not read to its end in time; check the brokers and the network",
                ));
            }
        }
    }

    fn follow(&self, trouble: &mut Option<String>) -> Result<(), LogError> {
        let mut reader = self.reader()?;
        let mut group = Group::default();
        while !self.is_stopped() {
            let patience = if group.is_empty() { POLL } else { Duration::ZERO };
            let found = reader.next(patience)?;
            match &found {
                Found::Nothing | Found::End => group.flush(&self.copy)?,
                Found::Away => self.trouble(&reader.why_away(), trouble),
                Found::Opening(_) | Found::Product(_) | Found::Part => {}
            }
            if !matches!(found, Found::Nothing | Found::Away) && trouble.take().is_some() {
                (self.say)(format!("feed {}: Kafka is read again", self.copy.feed()));
            }
            self.take(found, &mut group)?;
        }
        group.flush(&self.copy)
    }

    fn trouble(&self, error: &LogError, said: &mut Option<String>) {
        let sentence = error.to_string();
        if said.as_ref() != Some(&sentence) {
            let feed = self.copy.feed();
            (self.say)(format!(
                "feed {feed}: {sentence}; sites get the products stored here now, and the rest once that is over"
            ));
            *said = Some(sentence);
        }
    }

    fn take(&self, found: Found, group: &mut Group) -> Result<(), LogError> {
        match found {
            Found::Opening(opening) => self.check(opening.epoch),
            Found::Product(product) => {
                self.check(product.manifest.epoch)?;
                group.add(*product, &self.copy)
            }
            Found::Part | Found::End | Found::Nothing | Found::Away => Ok(()),
        }
    }

    fn check(&self, epoch: Epoch) -> Result<(), LogError> {
        if epoch == self.copy.epoch() {
            return Ok(());
        }
        Err(refused(&self.topic, "was recreated; restart this node, so that it reads it from the beginning"))
    }

    pub(crate) fn new_reader(&self) -> Result<Reader, LogError> {
        Reader::new(&self.cluster, &self.topic, &self.directory)
    }

    fn reader(&self) -> Result<Reader, LogError> {
        let mut reader = self.new_reader()?;
        reader.go_behind(self.copy.head())?;
        Ok(reader)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    fn pause(&self) {
        let until = Instant::now() + AGAIN_AFTER;
        while !self.is_stopped() && Instant::now() < until {
            thread::sleep(POLL);
        }
    }
}

/// The first epoch recorded in the topic; `None` if there is none.
pub(crate) fn epoch_of(cluster: &Cluster, topic: &str, directory: &Path) -> Result<Option<Epoch>, LogError> {
    let mut reader = Reader::new(cluster, topic, directory)?;
    reader.go_behind(Sequence(0))?;
    let deadline = Instant::now() + SILENCE;
    while Instant::now() < deadline {
        match reader.next(POLL)? {
            Found::Opening(opening) => return Ok(Some(opening.epoch)),
            Found::Product(product) => return Ok(Some(product.manifest.epoch)),
            Found::End => return Ok(None),
            Found::Part | Found::Nothing | Found::Away => {}
        }
    }
    Err(refused(topic, "returns neither records nor an end; check the brokers and the network"))
}

/// Products that are added to the copy together.
#[derive(Default)]
struct Group {
    products: Vec<(Given, Bytes)>,
    bytes: usize,
}

impl Group {
    fn is_empty(&self) -> bool {
        self.products.is_empty()
    }

    fn add(&mut self, product: Product, copy: &FeedLog) -> Result<(), LogError> {
        let Product { given, content, .. } = product;
        match content {
            Some(Content::AtHand(bytes)) => {
                self.bytes += bytes.len();
                self.products.push((given, bytes));
                if self.products.len() >= GROUP_PRODUCTS || self.bytes >= GROUP_BYTES {
                    self.flush(copy)
                } else {
                    Ok(())
                }
            }
            Some(Content::InFile(mut file)) => {
                self.flush(copy)?;
                copy.append_given_from(given, &mut file)
            }
            None => {
                let (id, sequence) = (&given.product.id, given.sequence.0);
                tracing::info!(feed = %copy.feed(), ?id, sequence, "Kafka no longer has all parts of a product");
                Ok(())
            }
        }
    }

    fn flush(&mut self, copy: &FeedLog) -> Result<(), LogError> {
        self.bytes = 0;
        let products = std::mem::take(&mut self.products);
        if products.is_empty() { Ok(()) } else { copy.append_given(products) }
    }
}

pub(crate) const POLL: Duration = Duration::from_millis(50);
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// Healthy brokers return a record, or report the end, within this time.
pub(crate) const SILENCE: Duration = Duration::from_secs(15);
const GROUP_PRODUCTS: usize = 256;
const GROUP_BYTES: usize = 4 << 20;
