//! A log as a copy of a store that assigns sequences and stamps: opening it, and copying products into it.

use std::{
    collections::VecDeque,
    fs::{self, File},
    io::{self, Read},
    path::Path,
    process,
    sync::{
        PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use downburst_model::{Epoch, FeedName, ProductInfo, Sequence, WallMicros};
use minicbor::{Decode, Encode};

use crate::{
    FeedLog, LogError, LogOptions, NewProduct, ProductLog, Recovery, disk,
    feed_log::draft::Source,
    feed_log::group::{Checked, Group, Results},
    feed_log::writer::Numbers,
    files,
    files::identity::Identity,
    segment::record::{Header, Metadata},
    system,
};

/// A product whose sequence was assigned elsewhere.
#[derive(Clone, Debug)]
pub struct Given {
    /// The sequence assigned there.
    pub sequence: Sequence,
    /// When it was stored there.
    pub stored: WallMicros,
    /// The rest, with announced size and digest.
    pub product: NewProduct,
}

impl Given {
    /// Decodes a [`Draft::description`](crate::Draft::description).
    pub fn read(sequence: Sequence, description: &[u8]) -> Result<Self, String> {
        let Description { size, metadata } =
            minicbor::decode(description).map_err(|error| error.to_string())?;
        let product = NewProduct {
            id: metadata.id,
            origin: metadata.origin,
            created: metadata.created,
            class: metadata.class,
            source: metadata.source,
            hops: metadata.hops,
            ldm: metadata.ldm,
            properties: metadata.properties,
            expected_size: Some(size),
            expected_digest: Some(metadata.digest),
        };
        Ok(Self { sequence, stored: metadata.stored, product })
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.product.expected_size.unwrap_or_default()
    }
}

/// The description that accompanies a product's bytes.
#[derive(Encode, Decode)]
#[cbor(map)]
pub(crate) struct Description {
    #[n(0)]
    size: u64,
    #[n(1)]
    metadata: Metadata,
}

impl Description {
    pub(crate) fn of(header: &Header) -> Self {
        Self { size: header.size, metadata: header.metadata.clone() }
    }

    /// Encoding into memory can't fail.
    pub(crate) fn to_cbor(&self) -> Vec<u8> {
        minicbor::to_vec(self).unwrap_or_default()
    }
}

impl FeedLog {
    /// Opens the copy in `dir` of a store that is in this epoch and keeps nothing up to `forgotten`. Creates
    /// the copy if necessary.
    ///
    /// A copy of another epoch, or one that ends before the oldest product of the store, is rebuilt: losing it
    /// costs a re-read. A log that is not a copy is refused, since its products exist nowhere else.
    pub fn open_copy(
        dir: &Path,
        feed: FeedName,
        options: LogOptions,
        epoch: Epoch,
        forgotten: Sequence,
    ) -> Result<(Self, Recovery), LogError> {
        let (mark, had_identity) = (dir.join(COPY_MARK), Identity::read(dir)?.is_some());
        if had_identity && !mark.exists() {
            return Err(LogError::NoCopy { dir: dir.to_owned() });
        }
        disk::make_directory(dir).map_err(|error| LogError::not_writable(dir, error))?;
        if !mark.exists() {
            disk::File::create(&mark).map_err(|error| LogError::not_writable(&mark, error))?;
            files::sync_directory(dir)?;
        }
        let (log, recovery) = Self::open(dir, feed.clone(), options.clone(), epoch.0)?;
        let is_whole = log.epoch() == epoch && (log.head() >= forgotten || !had_identity);
        let (log, recovery) = if is_whole {
            (log, recovery)
        } else {
            drop(log);
            remove_all(dir)?;
            Self::open(dir, feed, options, epoch.0)?
        };
        if log.head() < forgotten {
            log.reservation().forget(forgotten.0)?;
            log.forgotten_to.fetch_max(forgotten.0, Ordering::AcqRel);
            log.head.fetch_max(forgotten.0, Ordering::AcqRel);
        }
        // The store assigns the sequences, so an unclean end skips none.
        log.writer().go_on_after(log.head().0);
        Ok((log, recovery))
    }

    /// Copies products whose bytes are in memory, in order; products already in the log are skipped.
    pub fn append_given(&self, products: Vec<(Given, Bytes)>) -> Result<(), LogError> {
        let options = self.options();
        let mut waiting = VecDeque::with_capacity(products.len());
        for (given, bytes) in products.into_iter().filter(|(given, _)| given.sequence > self.head()) {
            let options = LogOptions { max_product_bytes: u64::MAX, ..(*options).clone() };
            waiting.push_back((
                given.sequence.0,
                given.stored,
                Checked::new(0, given.product, bytes, &options)?.in_segment(),
            ));
        }
        let heartbeats: Vec<Sequence> = waiting
            .iter()
            .filter(|(_, _, next)| next.is_heartbeat())
            .map(|(it, _, _)| Sequence(*it))
            .collect();
        let mut writer = self.writer();
        let mut results: Results = Vec::new();
        while let Some((sequence, _, first)) = waiting.front() {
            writer.skip_to(sequence - 1);
            let limits = self.begin(&mut writer, first.room(), waiting.len(), &options)?;
            let mut group = Group::at(writer.active().map_or(0, |active| active.tail));
            let mut keys = self.keys();
            while waiting.front().is_some_and(|(_, _, next)| !group.is_full(limits, next.room())) {
                let Some((sequence, stored, checked)) = waiting.pop_front() else { break };
                // Its metadata were encoded once already.
                if let Some(row) = group.add(checked, sequence, stored, self.identity.salt) {
                    keys.insert(&row);
                }
            }
            drop(keys);
            self.commit_copy(&mut writer, group, &mut results)?;
        }
        drop(writer);
        heartbeats.into_iter().try_for_each(|sequence| self.tell_of_heartbeat(sequence))
    }

    /// Calls `listener` on the appending thread for each heartbeat copied from now on.
    pub fn on_heartbeat(&self, listener: impl Fn(&ProductInfo) + Send + Sync + 'static) {
        let mut told = self.told_of_heartbeats.write().unwrap_or_else(PoisonError::into_inner);
        *told = Some(Box::new(listener));
    }

    fn tell_of_heartbeat(&self, sequence: Sequence) -> Result<(), LogError> {
        let told = self.told_of_heartbeats.read().unwrap_or_else(PoisonError::into_inner);
        if let (Some(listener), Some(entry)) = (told.as_ref(), self.entry(sequence)?) {
            listener(&entry.info);
        }
        Ok(())
    }

    /// Holds foreign bytes in an unnamed file of the directory, without using memory of this process.
    pub fn set_aside(&self, bytes: &mut dyn Read) -> Result<Bytes, LogError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!("aside-{}-{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = self.dir.join(name);
        let mut aside = || {
            let mut file = File::options().read(true).write(true).create_new(true).open(&path)?;
            // From here on no other process can find it.
            fs::remove_file(&path)?;
            let length = io::copy(bytes, &mut file)?;
            system::map(&file, length)
        };
        aside().map_err(|error: io::Error| LogError::io("set bytes aside in", &path, error))
    }

    /// Copies one product of any size.
    pub fn append_given_from(&self, given: Given, bytes: &mut dyn Read) -> Result<(), LogError> {
        let mut writer = self.writer();
        if given.sequence <= self.head() {
            return Ok(());
        }
        writer.skip_to(given.sequence.0 - 1);
        let (stored, number) = (given.stored, Numbers::Given(given.sequence.0));
        self.append_as(&mut writer, given.product, Source::Reader(bytes), &|| stored, number).map(|_| ())
    }
}

/// Removes everything but the lock and the mark.
fn remove_all(dir: &Path) -> Result<(), LogError> {
    let failed = |error| LogError::io("empty", dir, error);
    for entry in fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_name() != "lock" && entry.file_name() != COPY_MARK {
            let path = entry.path();
            if path.is_dir() { disk::remove_directory(&path).map_err(failed)? } else { files::remove(&path)? }
        }
    }
    Ok(())
}

/// Marks the directory of a copy.
const COPY_MARK: &str = "copy";
