//! The one writer of a feed: appends the queued products as a group, so that many small products share one write, one
//! synchronisation and one wake-up.
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Weak;
use std::time::Duration;

use bytes::Bytes;
use crossbeam_channel::{Receiver, RecvTimeoutError};
use downburst_hub::feeds::{AT_HAND_BYTES, GROUP_PRODUCTS, WriteGroup, Written};
use downburst_log::{Appended, ContentHasher, LogError, NewProduct, ProductLog as _, SpoolFile};
use downburst_model::{Digest, LdmStamp, Origin, ProductId, Properties, WallMicros};
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
    /// The statements of its source.
    pub(in crate::hub) properties: Option<Properties>,
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

/// Appends in the order of arrival until every sender is dropped.
pub(in crate::hub) fn run(feed: &Feed, hub: &Weak<Hub>, receiver: &Receiver<Write>) {
    while let Some(first) = next(feed, receiver) {
        let Some(hub) = hub.upgrade() else { return };
        let mut group = Group { feed, hub: &hub, products: WriteGroup::default() };
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
    products: WriteGroup<Write, (NewProduct, Bytes)>,
}

impl Group<'_> {
    fn take(&mut self, write: Write) {
        match self.open(&write) {
            Err(failure) => write.done.tell(Err(failure)),
            Ok((product, Source::AtHand(bytes))) => {
                let size = bytes.len();
                if self.products.add(write, (product, bytes), size) {
                    self.append();
                }
            }
            Ok((product, Source::Large(file))) => {
                self.append();
                let appended = self.append_file(&write, product, &file);
                self.settle(write, appended);
            }
        }
    }

    fn append(&mut self) {
        let Some((waiting, products)) = self.products.take() else { return };
        let appended = self.feed.store().append_all(products, &|| self.hub.clock.wall());
        for (write, appended) in waiting.into_iter().zip(appended) {
            self.settle(write, appended);
        }
    }

    fn append_file(&self, write: &Write, product: NewProduct, file: &File) -> Result<Appended, LogError> {
        let (path, is_own) = match &write.bytes {
            Spooled::File { path, remove } => (path.as_path(), *remove),
            Spooled::AtHand(_) => (Path::new(""), false),
        };
        let spool = SpoolFile { path, file, is_own, hashed: ContentHasher::default() };
        self.feed.store().append_file(product, spool, &|| self.hub.clock.wall())
    }

    fn open(&self, write: &Write) -> Result<(NewProduct, Source), Failure> {
        let (path, is_own, mut file) = match &write.bytes {
            Spooled::AtHand(bytes) => {
                let product = self.product(write, bytes.len() as u64);
                return Ok((product, Source::AtHand(bytes.clone())));
            }
            Spooled::File { path, remove } => {
                (path, *remove, File::open(path).map_err(|error| Failure::unreadable_spool(path, &error))?)
            }
        };
        let size = file.metadata().map_err(|error| Failure::unreadable_spool(path, &error))?.len();
        let product = self.product(write, size);
        if size > AT_HAND_BYTES || (is_own && size >= self.feed.store().adopts_from_bytes()) {
            return Ok((product, Source::Large(file)));
        }
        let mut bytes = Vec::with_capacity(size as usize + 1);
        // One byte more than announced is enough to detect that the file still grows.
        let read = file.by_ref().take(size + 1).read_to_end(&mut bytes);
        read.map_err(|error| Failure::unreadable_spool(path, &error))?;
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
            properties: write.properties.clone(),
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
                self.hub.arrived(&info);
                self.hub.sources.ldm.stored(write.ldm.as_ref(), &info);
                write.done.tell(Ok(Written::Stored(Box::new(info))));
            }
            Appended::Duplicate { of } => {
                let known = self.feed.log.entry(of).ok().flatten();
                write.done.tell(Ok(Written::duplicate(of, known.as_ref().map(|entry| &entry.info))));
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
            (Self::Line(reply), Ok(written)) => reply.say(&written),
            (Self::Line(reply), Err(failure)) => reply.refuse(failure),
        }
    }
}

enum Source {
    AtHand(Bytes),
    Large(File),
}

const TEND_AFTER: Duration = Duration::from_secs(1);
