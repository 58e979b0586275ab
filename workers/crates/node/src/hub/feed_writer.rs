//! The one writer of a feed: takes what waits for it as a group, so that many small products share one write, one
//! synchronisation and one wake-up.
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Weak;

use bytes::Bytes;
use crossbeam_channel::Receiver;
use downburst_log::{Appended, LogError, NewProduct, ProductLog as _};
use downburst_model::{Digest, Origin, ProductId, ProductInfo, Sequence, WallMicros};
use serde::Serialize;

use super::Hub;
use super::feeds::{Feed, failure};
use crate::lines::{Failure, Reply};

/// A spooled product on its way into the log.
pub(super) struct Write {
    pub(super) path: PathBuf,
    pub(super) remove: bool,
    pub(super) id: ProductId,
    pub(super) origin: Origin,
    pub(super) created: Option<WallMicros>,
    pub(super) digest: Option<Digest>,
    pub(super) reply: Reply,
}

/// Appends in the order of arrival until nobody can send any more.
pub(super) fn run(feed: &Feed, hub: &Weak<Hub>, receiver: &Receiver<Write>) {
    while let Ok(first) = receiver.recv() {
        let Some(hub) = hub.upgrade() else { return };
        let mut group = Group { feed, hub: &hub, waiting: Vec::new(), products: Vec::new(), bytes: 0 };
        group.take(first);
        receiver.try_iter().take(GROUP_PRODUCTS - 1).for_each(|write| group.take(write));
        group.append();
    }
}

/// Products whose bytes are at hand, not yet appended.
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
            Err(failure) => write.reply.refuse(failure),
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
                let appended = self.feed.log.append(product, &mut file, &|| self.hub.clock.wall());
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
        let appended = self.feed.log.append_all(products, &|| self.hub.clock.wall());
        for (write, appended) in std::mem::take(&mut self.waiting).into_iter().zip(appended) {
            self.settle(write, appended);
        }
    }

    fn open(&self, write: &Write) -> Result<(NewProduct, Source), Failure> {
        let mut file = File::open(&write.path).map_err(|error| unreadable(&write.path, &error))?;
        let size = file.metadata().map_err(|error| unreadable(&write.path, &error))?.len();
        let product = NewProduct {
            id: write.id.clone(),
            origin: write.origin.clone(),
            created: write.created.unwrap_or_else(|| self.hub.clock.wall()),
            class: self.feed.class(),
            source: None,
            hops: None,
            expected_size: Some(size),
            expected_digest: write.digest,
        };
        if size > AT_HAND_BYTES {
            return Ok((product, Source::Large(file)));
        }
        let mut bytes = Vec::with_capacity(size as usize + 1);
        // One byte more than announced is enough to see that the file still grows.
        let read = file.by_ref().take(size + 1).read_to_end(&mut bytes);
        read.map_err(|error| unreadable(&write.path, &error))?;
        Ok((product, Source::AtHand(Bytes::from(bytes))))
    }

    fn settle(&self, write: Write, appended: Result<Appended, LogError>) {
        let appended = match appended {
            Ok(appended) => appended,
            Err(error) => return write.reply.refuse(failure(&error)),
        };
        if write.remove
            && let Err(error) = fs::remove_file(&write.path)
        {
            tracing::warn!(path = %write.path.display(), %error, "a spool file stays behind");
        }
        match appended {
            Appended::Stored { info, .. } => {
                self.hub.counters.arrived(&info.key.feed, info.size);
                write.reply.say(&Stored::of(&info));
            }
            Appended::Duplicate { of } => {
                let known = self.feed.log.entry(of).ok().flatten();
                let (size, digest) =
                    known.map(|entry| (entry.info.size, entry.info.digest.to_string())).unzip();
                write.reply.say(&Duplicate { duplicate_of: of, size, digest });
            }
        }
    }
}

/// The acknowledgement.
#[derive(Serialize)]
struct Stored {
    sequence: Sequence,
    epoch: String,
    size: u64,
    digest: String,
    stored_us: WallMicros,
    created_us: WallMicros,
}

/// The acknowledgement of what the log has already.
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

/// More would make the first of a burst wait for the last.
const GROUP_PRODUCTS: usize = 256;
const GROUP_BYTES: usize = 4 << 20;
/// Larger products are copied from their files without standing in memory.
const AT_HAND_BYTES: u64 = 256 << 10;
