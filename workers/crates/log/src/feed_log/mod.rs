//! The log of one feed in local files: opening, closing, and the state shared with the other modules.
pub(crate) mod active;
pub(crate) mod adopting;
pub(crate) mod commits;
pub(crate) mod copy;
pub(crate) mod draft;
pub(crate) mod examine;
pub(crate) mod group;
pub(crate) mod hashing;
pub(crate) mod keys;
pub(crate) mod maintenance;
pub(crate) mod numbered;
pub(crate) mod reads;
pub(crate) mod recovery;
pub(crate) mod room;
pub(crate) mod scrub;
pub(crate) mod sources;
pub(crate) mod spool;
pub(crate) mod writer;

use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use bytes::Bytes;
use downburst_model::{Digest, Epoch, FeedName, ProductId, ProductInfo, ProductKey, Sequence, WallMicros};

use crate::{
    Appended, Clock, Damage, Durability, LogEntry, LogError, LogOptions, LogStat, NewProduct, ProductLog,
    ReadBatch, Recovery, Retained, SpoolFile,
    disk::{self, File},
    feed_log::commits::Commits,
    feed_log::keys::Keys,
    feed_log::writer::Writer,
    files,
    files::identity::{Identity, LOST_RESERVATION_JUMP, Reservation},
    segment::Segment,
    system,
};

/// The log of one feed in local files.
///
/// Dropping it without [`close`](Self::close) is like a crash: nothing acknowledged is lost, but the next opening
/// checks the last segments and skips the rest of the reserved sequences.
pub struct FeedLog {
    pub(crate) dir: PathBuf,
    pub(crate) identity: Identity,
    /// Locked before all others. Held for the duration of an append.
    writer: Mutex<Writer>,
    /// Locked only briefly.
    pub(crate) commits: Commits,
    /// Held for sealing and evicting; locked after the writer.
    maintenance: Mutex<()>,
    /// Locked after maintenance.
    reservation: Mutex<Reservation>,
    keys: Mutex<Keys>,
    /// Held only briefly by readers and the writer.
    segments: RwLock<BTreeMap<u64, Arc<Segment>>>,
    options: RwLock<Arc<LogOptions>>,
    pub(crate) head: AtomicU64,
    pub(crate) forgotten_to: AtomicU64,
    listeners: RwLock<Vec<Listener>>,
    /// The listener for heartbeats that a copy takes over.
    pub(crate) told_of_heartbeats: RwLock<Option<HeartbeatListener>>,
    /// The previous end of the log is unknown: it should be checked soon.
    is_suspect: bool,
    _lock: File,
}

/// Called with the head after each append.
pub(crate) type Listener = Box<dyn Fn(Sequence) + Send + Sync>;

pub(crate) type HeartbeatListener = Box<dyn Fn(&ProductInfo) + Send + Sync>;

impl FeedLog {
    /// Opens the log in `dir`, creating it if necessary; `random` becomes the epoch of a log that is created.
    pub fn open(
        dir: &Path,
        feed: FeedName,
        options: LogOptions,
        random: u64,
    ) -> Result<(Self, Recovery), LogError> {
        let lock = lock_directory(dir)?;
        let listing = files::list(dir)?;
        let mut recovery = Recovery::default();
        let (identity, mut reservation, known) = identify(dir, feed, random, &listing, &mut recovery)?;
        let segments = recovery::load(dir, &identity, &listing, reservation.evicted_to(), &mut recovery)?;
        let evicted = segments.iter().rev().find(|segment| !segment.has_bytes());
        reservation
            .presume_evicted(evicted.and_then(|segment| segment.last_row()).map_or(0, |row| row.sequence));
        let last_found = segments.last().and_then(|segment| segment.last_row()).map_or(0, |row| row.sequence);
        let resumption = reservation.resume(known, last_found);
        recovery.clean = resumption.clean;
        recovery.sequence_lost = !known && !segments.is_empty();
        let forgotten_to = reservation.forgotten_to();
        let log = Self {
            dir: dir.to_owned(),
            identity,
            writer: Mutex::new(Writer::new(resumption.next)),
            commits: Commits::default(),
            maintenance: Mutex::new(()),
            reservation: Mutex::new(reservation),
            keys: Mutex::new(Keys::new(options.duplicate_rule)),
            segments: RwLock::new(segments.into_iter().map(|segment| (segment.base, segment)).collect()),
            options: RwLock::new(Arc::new(options)),
            head: AtomicU64::new(last_found.max(forgotten_to)),
            forgotten_to: AtomicU64::new(forgotten_to),
            listeners: RwLock::new(Vec::new()),
            told_of_heartbeats: RwLock::default(),
            is_suspect: recovery.sequence_lost || !recovery.damaged.is_empty() || !recovery.lost.is_empty(),
            _lock: lock,
        };
        log.rebuild_keys();
        log.report(&recovery);
        Ok((log, recovery))
    }

    /// True if opening found damage, or the file that records how the log ended was missing.
    pub fn is_suspect(&self) -> bool {
        self.is_suspect
    }

    /// Makes everything appended so far durable, whatever the durability of an append.
    pub fn sync(&self) -> Result<(), LogError> {
        for segment in self.unsealed() {
            segment.sync()?;
        }
        files::sync_directory(&self.dir)
    }

    /// Changes the options; they apply from the next append, read or retain on.
    pub fn set_options(&self, options: LogOptions) {
        let _writer = self.writer();
        let rule_changed = self.keys().rule() != options.duplicate_rule;
        *self.options.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(options);
        if rule_changed {
            self.rebuild_keys();
        }
    }

    /// The highest sequence ever assigned, as far as this log knows: a log restored from a backup may be wrong.
    pub fn given_to(&self) -> Sequence {
        Sequence(self.reservation().reserved_to())
    }

    /// Never assigns `last` or a lower sequence: they were assigned before this log was restored from a backup.
    pub fn skip_to(&self, last: Sequence) -> Result<(), LogError> {
        let mut writer = self.writer();
        writer.skip_to(last.0);
        let (next, block) = (writer.next(), self.options().sequence_block);
        self.reservation().cover(next, 1, block)
    }

    /// Continues far above `last`, which this log is known to have assigned, if the log no longer holds it.
    /// Returns the sequence above which it continues.
    ///
    /// The caller that remembers `last` may have missed later sequences, hence the distance. A repeated call
    /// changes nothing.
    pub fn go_on_above(&self, last: Sequence) -> Result<Option<Sequence>, LogError> {
        let far = Sequence(last.0.saturating_add(LOST_RESERVATION_JUMP));
        if last <= self.head() || far <= self.given_to() {
            return Ok(None);
        }
        self.skip_to(far)?;
        Ok(Some(far))
    }

    /// Seals everything and marks a clean stop. Reading stays possible, appending does not.
    pub fn close(&self) -> Result<(), LogError> {
        let mut writer = self.writer();
        let was_open = writer.close();
        self.retire(&mut writer)?;
        self.seal_all()?;
        if was_open { self.reservation().close(writer.next()) } else { Ok(()) }
    }

    pub(crate) fn append_stream(
        &self,
        product: NewProduct,
        bytes: &mut dyn Read,
        clock: Clock<'_>,
    ) -> Result<Appended, LogError> {
        match self.options().durability {
            Durability::Process => self.append_locked(&mut self.writer(), product, bytes, clock),
            Durability::Power => self.append_queued(product, bytes, clock),
        }
    }

    pub(crate) fn options(&self) -> Arc<LogOptions> {
        self.options.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn writer(&self) -> MutexGuard<'_, Writer> {
        lock(&self.writer)
    }

    pub(crate) fn maintenance(&self) -> MutexGuard<'_, ()> {
        lock(&self.maintenance)
    }

    pub(crate) fn reservation(&self) -> MutexGuard<'_, Reservation> {
        lock(&self.reservation)
    }

    pub(crate) fn keys(&self) -> MutexGuard<'_, Keys> {
        lock(&self.keys)
    }

    pub(crate) fn segments(&self) -> RwLockReadGuard<'_, BTreeMap<u64, Arc<Segment>>> {
        self.segments.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn segments_mut(&self) -> RwLockWriteGuard<'_, BTreeMap<u64, Arc<Segment>>> {
        self.segments.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn listeners(&self) -> RwLockReadGuard<'_, Vec<Listener>> {
        self.listeners.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn rebuild_keys(&self) {
        let mut keys = Keys::new(self.options().duplicate_rule);
        for segment in self.segments().values() {
            match segment.rows_with_prints(self.identity.salt) {
                // The source may deliver a damaged product again.
                Ok(rows) => rows
                    .iter()
                    .filter(|row| !segment.is_damaged(row.sequence))
                    .for_each(|row| keys.insert(row)),
                Err(error) => {
                    let feed = &self.identity.feed;
                    tracing::error!(%feed, %error, "duplicates of the products of a segment can't be known");
                }
            }
        }
        *self.keys() = keys;
    }

    fn report(&self, recovery: &Recovery) {
        let (feed, dir) = (&self.identity.feed, self.dir.display());
        for damage in &recovery.damaged {
            let Damage { segment, offset, bytes } = damage;
            tracing::error!(%feed, segment = %segment.display(), offset, bytes, "stepped over damage in the log");
        }
        for lost in &recovery.lost {
            let (segment, products) = (lost.segment.display(), lost.products);
            tracing::error!(%feed, %segment, products, "products of the log are lost");
        }
        for path in &recovery.quarantined {
            tracing::error!(%feed, path = %path.display(), "set an unreadable file of the log aside");
        }
        if !recovery.clean {
            let Recovery { cut_bytes, segments_scanned, .. } = recovery;
            tracing::warn!(%feed, %dir, cut_bytes, segments_scanned, "the log was not closed; checked its end");
        }
    }
}

impl ProductLog for FeedLog {
    fn feed(&self) -> &FeedName {
        &self.identity.feed
    }

    fn epoch(&self) -> Epoch {
        self.identity.epoch
    }

    fn head(&self) -> Sequence {
        Sequence(self.head.load(Ordering::Acquire))
    }

    fn first(&self) -> Sequence {
        self.first_with_bytes()
    }

    fn append(
        &self,
        product: NewProduct,
        bytes: &mut dyn Read,
        clock: Clock<'_>,
    ) -> Result<Appended, LogError> {
        self.append_stream(product, bytes, clock)
    }

    fn append_file(
        &self,
        product: NewProduct,
        spool: SpoolFile<'_>,
        clock: Clock<'_>,
    ) -> Result<Appended, LogError> {
        self.append_spool(product, spool, clock)
    }

    /// With every product waiting for the disk, a group that shares the wait is cheaper than a file that is not copied.
    fn adopts_from_bytes(&self) -> u64 {
        let options = self.options();
        match options.durability {
            Durability::Process => options.adopted_bytes(),
            Durability::Power => u64::MAX,
        }
    }

    fn append_all(
        &self,
        products: Vec<(NewProduct, Bytes)>,
        clock: Clock<'_>,
    ) -> Vec<Result<Appended, LogError>> {
        let whole = |(product, bytes): (NewProduct, Bytes)| (product, bytes.into());
        self.append_pieces(products.into_iter().map(whole).collect(), clock)
    }

    fn read(
        &self,
        after: Sequence,
        to: Sequence,
        limit_bytes: usize,
        limit_entries: usize,
    ) -> Result<ReadBatch, LogError> {
        self.read_range(after, to, limit_bytes, limit_entries)
    }

    fn entry(&self, sequence: Sequence) -> Result<Option<LogEntry>, LogError> {
        self.read_entry(sequence)
    }

    fn find_time(&self, stored: WallMicros) -> Sequence {
        self.cursor_before(stored)
    }

    fn find_duplicate(
        &self,
        id: &ProductId,
        size: u64,
        digest: &Digest,
    ) -> Result<Option<Sequence>, LogError> {
        let likeness = crate::feed_log::keys::Likeness { id, digest, body: (digest, size), signature: None };
        Ok(self.same_product(&likeness)?.map(Sequence))
    }

    fn find_source(&self, key: &ProductKey) -> Result<Option<Sequence>, LogError> {
        Ok(self.same_source(key, None)?.map(Sequence))
    }

    fn on_append(&self, listener: Listener) {
        self.listeners.write().unwrap_or_else(PoisonError::into_inner).push(listener);
    }

    fn retain(&self, now: WallMicros) -> Result<Retained, LogError> {
        self.retain_at(now)
    }

    fn stat(&self) -> LogStat {
        self.figures()
    }
}

/// Determines the log's identity from its identity file, else from its segments, else creates it.
fn identify(
    dir: &Path,
    feed: FeedName,
    random: u64,
    listing: &files::Listing,
    recovery: &mut Recovery,
) -> Result<(Identity, Reservation, bool), LogError> {
    if let Some(identity) = Identity::read(dir)? {
        if identity.feed != feed {
            return Err(LogError::WrongFeed { dir: dir.to_owned(), found: identity.feed, asked: feed });
        }
        let (reservation, known) = Reservation::open(dir, identity.epoch)?;
        if known || !listing.is_empty() {
            return Ok((identity, reservation, known));
        }
    }
    let (epoch, salt) = match recovery::identity_from_segments(dir, listing)? {
        Some(found) => found,
        None => (Epoch(random), fresh_salt(dir)?),
    };
    let identity = Identity { feed, epoch, salt };
    recovery.created = listing.is_empty();
    let (reservation, known) = Reservation::open(dir, epoch)?;
    identity.write(dir)?;
    Ok((identity, reservation, known))
}

fn fresh_salt(dir: &Path) -> Result<u64, LogError> {
    getrandom::u64()
        .map_err(|error| LogError::io("find randomness for", dir, std::io::Error::other(error.to_string())))
}

fn lock_directory(dir: &Path) -> Result<File, LogError> {
    let path = dir.join("lock");
    let not_writable = |source| LogError::not_writable(dir, source);
    disk::make_directory(dir).map_err(not_writable)?;
    let mut file = File::open_or_create(&path).map_err(not_writable)?;
    if !lock_soon(&file).map_err(|error| LogError::io("lock", &path, error))? {
        return Err(LogError::Locked { dir: dir.to_owned(), holder: holder(file.as_file()) });
    }
    // The name is only informative; a full disk must not prevent the log from making room.
    let _ = file.set_len(0).and_then(|()| write!(file, "process {}", std::process::id()));
    Ok(file)
}

/// Gives a predecessor that is ending, and children that it was starting, a moment to release the lock.
fn lock_soon(file: &File) -> io::Result<bool> {
    for _ in 0..LOCK_LOOKS {
        if system::try_lock(file.as_file())? {
            return Ok(true);
        }
        thread::sleep(LOCK_INTERVAL);
    }
    system::try_lock(file.as_file())
}

fn holder(file: &std::fs::File) -> String {
    let mut name = String::new();
    match file.take(64).read_to_string(&mut name) {
        Ok(1..) => name,
        _ => "another process".to_owned(),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const LOCK_LOOKS: usize = 10;
const LOCK_INTERVAL: Duration = Duration::from_millis(30);
