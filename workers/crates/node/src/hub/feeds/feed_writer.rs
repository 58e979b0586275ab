//! The one writer of a feed: appends the queued products as a group, so that many small products share one write, one
//! synchronisation and one wake-up.
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Weak;
use std::time::Duration;

use bytes::Bytes;
use crossbeam_channel::{Receiver, RecvTimeoutError};
use downburst_log::{Appended, LogError, NewProduct, ProductLog as _};
use downburst_model::{Digest, LdmStamp, Origin, ProductId, ProductInfo, Sequence, WallMicros};
use serde::Serialize;
use tokio::sync::oneshot;

use crate::hub::Hub;
use crate::hub::feeds::{Feed, failure};
use crate::lines::{Failure, Reply};

/// A spooled product on its way into the log.
pub(in crate::hub) struct Write {
    pub(in crate::hub) bytes: Spooled,
    pub(in crate::hub) id: ProductId,
    pub(in crate::hub) origin: Origin,
    pub(in crate::hub) created: Option<WallMicros>,
    pub(in crate::hub) digest: Option<Digest>,
    /// The description from the LDM that sent it.
    pub(in crate::hub) ldm: Option<LdmStamp>,
    pub(in crate::hub) done: Done,
}

/// A product's bytes.
pub(in crate::hub) enum Spooled {
    /// In a file, which is unlinked after a successful append if `remove` is set.
    File { path: PathBuf, remove: bool },
    /// A small product, in memory.
    AtHand(Bytes),
}

/// The recipient of the result.
pub(in crate::hub) enum Done {
    /// The agent.
    Line(Reply),
    /// A task of the node. A sender dropped without a result means that the log is being closed.
    Told(oneshot::Sender<Result<Written, Failure>>),
    /// No recipient: a heartbeat that can't be stored is missed by its waiters.
    Nobody,
}

/// The result of an append.
#[derive(Debug)]
pub(in crate::hub) enum Written {
    Stored(Box<ProductInfo>),
    Duplicate { of: Sequence, size: Option<u64>, digest: Option<String> },
}

/// Appends in the order of arrival until every sender is dropped.
pub(in crate::hub) fn run(feed: &Feed, hub: &Weak<Hub>, receiver: &Receiver<Write>) {
    while let Some(first) = next(feed, receiver) {
        let Some(hub) = hub.upgrade() else { return };
        let mut group = Group { feed, hub: &hub, waiting: Vec::new(), products: Vec::new(), bytes: 0 };
        group.take(first);
        receiver.try_iter().take(GROUP_PRODUCTS - 1).for_each(|write| group.take(write));
        group.append();
    }
}

/// Returns the next queued product, or waits for one. Tends a lost connection to the store during the wait.
fn next(feed: &Feed, receiver: &Receiver<Write>) -> Option<Write> {
    let Some(shared) = &feed.shared else { return receiver.recv().ok() };
    loop {
        match receiver.recv_timeout(TEND_AFTER) {
            Ok(write) => return Some(write),
            Err(RecvTimeoutError::Timeout) => shared.tend(),
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
}

/// Products whose bytes are in memory, not yet appended.
struct Group<'a> {
    feed: &'a Feed,
    hub: &'a Hub,
    waiting: Vec<Write>,
    products: Vec<(NewProduct, Bytes)>,
    bytes: usize,
}

impl Group<'_> {
    fn take(&mut self, write: Write) {
        match self.open(&write) {
            Err(failure) => write.done.tell(Err(failure)),
            Ok((product, Source::AtHand(bytes))) => {
                self.bytes += bytes.len();
                self.waiting.push(write);
                self.products.push((product, bytes));
                if self.bytes >= GROUP_BYTES {
                    self.append();
                }
            }
            Ok((product, Source::Large(mut file))) => {
                self.append();
                let appended = self.feed.store().append(product, &mut file, &|| self.hub.clock.wall());
                self.settle(write, appended);
            }
        }
    }

    fn append(&mut self) {
        self.bytes = 0;
        let products = std::mem::take(&mut self.products);
        if products.is_empty() {
            return;
        }
        let appended = self.feed.store().append_all(products, &|| self.hub.clock.wall());
        for (write, appended) in std::mem::take(&mut self.waiting).into_iter().zip(appended) {
            self.settle(write, appended);
        }
    }

    fn open(&self, write: &Write) -> Result<(NewProduct, Source), Failure> {
        let (path, mut file) = match &write.bytes {
            Spooled::AtHand(bytes) => {
                let product = self.product(write, bytes.len() as u64);
                return Ok((product, Source::AtHand(bytes.clone())));
            }
            Spooled::File { path, .. } => (path, File::open(path).map_err(|error| unreadable(path, &error))?),
        };
        let size = file.metadata().map_err(|error| unreadable(path, &error))?.len();
        let product = self.product(write, size);
        if size > AT_HAND_BYTES {
            return Ok((product, Source::Large(file)));
        }
        let mut bytes = Vec::with_capacity(size as usize + 1);
        // One byte more than announced is enough to detect that the file still grows.
        let read = file.by_ref().take(size + 1).read_to_end(&mut bytes);
        read.map_err(|error| unreadable(path, &error))?;
        Ok((product, Source::AtHand(Bytes::from(bytes))))
    }

    fn product(&self, write: &Write, size: u64) -> NewProduct {
        NewProduct {
            id: write.id.clone(),
            origin: write.origin.clone(),
            created: write.created.unwrap_or_else(|| self.hub.clock.wall()),
            class: self.feed.class(),
            source: None,
            hops: None,
            ldm: write.ldm.clone(),
            expected_size: Some(size),
            expected_digest: write.digest,
        }
    }

    fn settle(&self, write: Write, appended: Result<Appended, LogError>) {
        let appended = match appended {
            Ok(appended) => appended,
            Err(error) => return write.done.tell(Err(failure(&error))),
        };
        if let Spooled::File { path, remove: true } = &write.bytes
            && let Err(error) = fs::remove_file(path)
        {
            tracing::warn!(path = %path.display(), %error, "a spool file stays behind");
        }
        match appended {
            Appended::Stored { info, .. } if info.id.is_heartbeat() => self.hub.put_heartbeat(&info),
            Appended::Stored { info, .. } if self.feed.is_own => {
                write.done.tell(Ok(Written::Stored(Box::new(info))));
            }
            Appended::Stored { info, .. } => {
                self.hub.counters.arrived(&info.key.feed, info.size);
                self.hub.ldm.stored(write.ldm.as_ref(), &info);
                write.done.tell(Ok(Written::Stored(Box::new(info))));
            }
            Appended::Duplicate { of } => {
                let known = self.feed.log.entry(of).ok().flatten();
                let (size, digest) =
                    known.map(|entry| (entry.info.size, entry.info.digest.to_string())).unzip();
                write.done.tell(Ok(Written::Duplicate { of, size, digest }));
            }
        }
    }
}

impl Done {
    fn tell(self, outcome: Result<Written, Failure>) {
        match (self, outcome) {
            // A task that no longer waits needs no answer.
            (Self::Told(done), outcome) => drop(done.send(outcome)),
            (Self::Nobody, Ok(_)) => {}
            (Self::Nobody, Err(failure)) => tracing::warn!("a heartbeat was not stored: {}", failure.error),
            (Self::Line(reply), Ok(Written::Stored(info))) => reply.say(&Stored::of(&info)),
            (Self::Line(reply), Ok(Written::Duplicate { of, size, digest })) => {
                reply.say(&Duplicate { duplicate_of: of, size, digest });
            }
            (Self::Line(reply), Err(failure)) => reply.refuse(failure),
        }
    }
}

/// The acknowledgement of a stored product.
#[derive(Serialize)]
struct Stored {
    sequence: Sequence,
    epoch: String,
    size: u64,
    digest: String,
    stored_us: WallMicros,
    created_us: WallMicros,
}

/// The acknowledgement of a product that the log already has.
#[derive(Serialize)]
struct Duplicate {
    duplicate_of: Sequence,
    size: Option<u64>,
    digest: Option<String>,
}

impl Stored {
    fn of(info: &ProductInfo) -> Self {
        Self {
            sequence: info.key.sequence,
            epoch: info.key.epoch.0.to_string(),
            size: info.size,
            digest: info.digest.to_string(),
            stored_us: info.stored,
            created_us: info.created,
        }
    }
}

enum Source {
    AtHand(Bytes),
    Large(File),
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(
        "io",
        format!("the spool file {} can't be read: {error}; send the product again", path.display()),
    )
}

const TEND_AFTER: Duration = Duration::from_secs(1);
/// A larger group would make the first product of a burst wait for the last.
const GROUP_PRODUCTS: usize = 256;
const GROUP_BYTES: usize = 4 << 20;
/// Larger products are copied from their files without being read into memory.
const AT_HAND_BYTES: u64 = 256 << 10;
