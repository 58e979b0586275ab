use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use bytes::Bytes;
use downburst_model::{
    Class, Content, Digest, Epoch, FeedName, Hops, Lane, LdmStamp, Origin, ProductId, ProductInfo,
    ProductKey, Properties, Sequence, WallMicros,
};
use minicbor::{Decode, Encode};

use crate::{ContentHasher, LogError};

/// The log of one feed: one writer, any number of readers by cursor.
///
/// Every implementation passes [`contract::suite`](crate::contract::suite).
pub trait ProductLog: Send + Sync {
    /// The feed.
    fn feed(&self) -> &FeedName;

    /// This life of the log.
    fn epoch(&self) -> Epoch;

    /// The sequence stored last; 0 if there was none.
    fn head(&self) -> Sequence;

    /// The oldest sequence whose bytes are kept. Greater than the head if no bytes are kept.
    fn first(&self) -> Sequence;

    /// Copies `bytes` to its end into the log and gives it a sequence, unless it is a duplicate.
    ///
    /// `clock` is read once, when the product is complete and verified. Appends of a feed wait for each other, so
    /// `bytes` should come from a file or a buffer, not from a slow connection. After an error nothing is stored;
    /// only [`LogError::Unsettled`] leaves this open, and then no append succeeds until the log is reopened.
    fn append(
        &self,
        product: NewProduct,
        bytes: &mut dyn Read,
        clock: Clock<'_>,
    ) -> Result<Appended, LogError>;

    /// Appends products whose bytes are in memory, in order; returns one result per product. A failure of one does
    /// not affect the others.
    ///
    /// Costs one write to the disk (and one synchronisation, if the durability requires it) for many products,
    /// which then share one reading of `clock` and one call of the listeners. Nothing is acknowledged before all
    /// of it is safe.
    fn append_all(
        &self,
        products: Vec<(NewProduct, Bytes)>,
        clock: Clock<'_>,
    ) -> Vec<Result<Appended, LogError>> {
        let append = |(product, bytes): (NewProduct, Bytes)| self.append(product, &mut bytes.as_ref(), clock);
        products.into_iter().map(append).collect()
    }

    /// Appends a product whose bytes are in a complete file; reads it from its start.
    ///
    /// A large file that belongs to this process becomes the product's own bytes, without a copy: it must not change
    /// any more. The caller removes its name after success.
    fn append_file(
        &self,
        product: NewProduct,
        spool: SpoolFile<'_>,
        clock: Clock<'_>,
    ) -> Result<Appended, LogError> {
        let mut bytes = ReadFrom { file: spool.file, offset: 0 };
        self.append(product, &mut bytes, clock)
    }

    /// The size from which [`append_file`](Self::append_file) of a file of this process avoids a copy.
    fn adopts_from_bytes(&self) -> u64 {
        u64::MAX
    }

    /// Reads entries with `after < sequence <= to`, in order, until a limit is reached, but always at least one.
    ///
    /// Never waits for the writer. Bytes are shared with the log and stay valid after eviction.
    fn read(
        &self,
        after: Sequence,
        to: Sequence,
        limit_bytes: usize,
        limit_entries: usize,
    ) -> Result<ReadBatch, LogError>;

    /// One entry; `None` if the sequence was never assigned or is forgotten.
    fn entry(&self, sequence: Sequence) -> Result<Option<LogEntry>, LogError>;

    /// A cursor that precedes everything stored at or after the given time.
    fn find_time(&self, stored: WallMicros) -> Sequence;

    /// The remembered product that a product with this id and digest would repeat under the feed's rule.
    ///
    /// Under the rule that ignores the WMO starting line, `digest` is that of the bytes after the line.
    fn find_duplicate(
        &self,
        id: &ProductId,
        size: u64,
        digest: &Digest,
    ) -> Result<Option<Sequence>, LogError>;

    /// The remembered product that carries this upstream key.
    fn find_source(&self, key: &ProductKey) -> Result<Option<Sequence>, LogError>;

    /// Calls `listener` with the head after each append or group of appends, in order, on the appending
    /// thread. It must not append.
    fn on_append(&self, listener: Box<dyn Fn(Sequence) + Send + Sync>);

    /// Seals, evicts and forgets everything that is due at `now`. Call it every few seconds.
    fn retain(&self, now: WallMicros) -> Result<Retained, LogError>;

    /// Figures for operators and metrics.
    fn stat(&self) -> LogStat;
}

/// Reads the wall clock.
pub type Clock<'a> = &'a dyn Fn() -> WallMicros;

/// A file with the bytes of a product.
#[derive(Debug)]
pub struct SpoolFile<'a> {
    /// Its name.
    pub path: &'a Path,
    /// The open file.
    pub file: &'a File,
    /// True if only this process's own programs wrote it, and none has it open for writing: the file itself may then
    /// become the product's bytes. Otherwise it is cloned or copied.
    pub is_own: bool,
    /// The digests of its first bytes, if they were computed while it was written.
    pub hashed: ContentHasher,
}

/// Reads a file from an offset on, without moving its position.
pub(crate) struct ReadFrom<'a> {
    pub(crate) file: &'a File,
    pub(crate) offset: u64,
}

impl Read for ReadFrom<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}

/// A product on its way into the log.
#[derive(Clone, Debug)]
pub struct NewProduct {
    /// The identifier.
    pub id: ProductId,
    /// The host that first ingested it.
    pub origin: Origin,
    /// Set by the first ingester.
    pub created: WallMicros,
    /// Its priority.
    pub class: Class,
    /// At a site: its upstream source. A second product with the same upstream key is a duplicate under every
    /// rule, unless a resend delivers it; a second copy from the same resend is a duplicate again.
    pub source: Option<SourceStamp>,
    /// The hubs that it passed through.
    pub hops: Option<Hops>,
    /// The LDM's description of it. Under [`DuplicateRule::Signature`](crate::DuplicateRule::Signature) a product
    /// without one is given one.
    pub ldm: Option<LdmStamp>,
    /// The statements of its source about it.
    pub properties: Option<Properties>,
    /// The announced size; a product of another size is refused. Also avoids a move to a larger segment half-way.
    pub expected_size: Option<u64>,
    /// The announced digest; a product with another digest is refused.
    pub expected_digest: Option<Digest>,
}

/// The upstream hub's statement about a product, kept in the record.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SourceStamp {
    /// Names the product at the hub.
    #[n(0)]
    pub key: ProductKey,
    /// When the hub stored it, on the hub's clock.
    #[n(1)]
    pub hub_stored: WallMicros,
    /// When its last byte arrived, on this host's clock.
    #[n(2)]
    pub received: Option<WallMicros>,
    /// The reason for the delivery; absent for a live product.
    #[n(3)]
    pub lane: Option<Lane>,
    /// The number of the resend that delivered it. A resent product is stored again even if the log already has
    /// it.
    #[n(4)]
    pub resend: Option<u64>,
    /// The host name under which the hub was contacted, as LDM appends it to a product's origin, if known.
    #[n(5)]
    pub via: Option<Origin>,
}

impl SourceStamp {
    /// The stamp of a live product.
    pub fn live(key: ProductKey, hub_stored: WallMicros, received: Option<WallMicros>) -> Self {
        Self { key, hub_stored, received, lane: None, resend: None, via: None }
    }

    /// True if both stamps have the same key and come from the same resend, or from none.
    pub(crate) fn is_same_delivery(&self, other: &Self) -> bool {
        self.key == other.key && self.resend == other.resend
    }
}

/// The outcome of an append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Appended {
    /// The log already holds the product.
    Duplicate {
        /// The sequence of the stored product.
        of: Sequence,
    },
    /// The product is stored and acknowledged.
    Stored {
        /// Its sequence.
        sequence: Sequence,
        /// Its description.
        info: ProductInfo,
    },
}

/// One product of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct LogEntry {
    /// Its description; the key is this log's.
    pub info: ProductInfo,
    /// Its bytes, or `None` once they are evicted or found damaged.
    pub bytes: Option<Content>,
    /// At a site: its upstream source.
    pub source: Option<SourceStamp>,
    /// The LDM's statement about it, as in its description, or the signature computed for it.
    pub ldm: Option<LdmStamp>,
}

impl LogEntry {
    /// All its bytes in memory; `None` if the log no longer has them.
    pub fn whole(&self) -> Option<Bytes> {
        self.bytes.as_ref()?.whole()
    }
}

/// The answer to a read.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadBatch {
    /// In order of sequence.
    pub entries: Vec<LogEntry>,
    /// Every sequence up to this one is in `entries`, was never assigned, or is forgotten. The next read continues
    /// after it.
    pub read_to: Sequence,
    /// The part of the requested range for which the log can no longer list the products.
    pub forgotten: Option<Forgotten>,
}

/// A range of sequences whose memory has expired, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forgotten {
    /// The first sequence.
    pub from: Sequence,
    /// The last sequence.
    pub to: Sequence,
}

/// The result of [`ProductLog::retain`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retained {
    /// First and last sequence of every run of products whose bytes were deleted.
    pub evicted: Vec<(Sequence, Sequence)>,
    /// The number of these products.
    pub products: u64,
    /// The number of disk bytes freed.
    pub bytes: u64,
    /// The bytes of evicted products that stay on the disk, because their files have a further name outside the log.
    pub linked_bytes: u64,
    /// The number of these products deleted before their retention time, because of the disk ceiling.
    pub products_cut_by_ceiling: u64,
    /// Every sequence up to this one is now forgotten, too.
    pub forgotten_to: Option<Sequence>,
}

/// Figures about a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogStat {
    /// Products with bytes.
    pub products: u64,
    /// Products without bytes that are remembered.
    pub remembered: u64,
    /// Disk in use by segments.
    pub bytes: u64,
    /// Disk in use by indexes and memory; counted in the ceiling.
    pub memory_bytes: u64,
    /// The disk ceiling.
    pub ceiling_bytes: u64,
    /// See [`ProductLog::first`].
    pub first: Sequence,
    /// See [`ProductLog::head`].
    pub head: Sequence,
    /// Files with bytes.
    pub segments: usize,
    /// The stamp of the oldest product with bytes.
    pub oldest_stored: Option<WallMicros>,
    /// The stamp of the newest product.
    pub newest_stored: Option<WallMicros>,
}
