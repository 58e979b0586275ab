//! A log opened read-only through its files, for tools: takes no lock, changes nothing, and works beside a writer.
pub(crate) mod entries;
pub(crate) mod part;
pub(crate) mod search;
pub(crate) mod verify;

use std::path::{Path, PathBuf};

use downburst_model::{Epoch, FeedName, Sequence, WallMicros};

use crate::{
    LogError, files,
    files::identity::{Identity, Reservation},
    log_reader::entries::{Entries, StoredEntry},
    log_reader::part::{Figures, Part},
};

/// A log opened for reading only, in a process of its own.
///
/// Segments are read and never mapped, so that a node that starts in the meantime may cut an unfinished end.
#[derive(Clone, Debug)]
pub struct LogReader {
    pub(crate) dir: PathBuf,
    pub(crate) identity: Identity,
}

/// Figures about a log, from its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSummary {
    /// The oldest sequence whose bytes are kept. Greater than the head if no bytes are kept.
    pub first: Sequence,
    /// The sequence stored last; 0 if there was none.
    pub head: Sequence,
    /// Products with bytes.
    pub products: u64,
    /// Products without bytes that are remembered.
    pub remembered: u64,
    /// Disk in use by records.
    pub bytes: u64,
    /// Disk in use by indexes and memory.
    pub memory_bytes: u64,
    /// Files with bytes.
    pub segments: usize,
    /// The stamp of the oldest product with bytes.
    pub oldest_stored: Option<WallMicros>,
    /// The stamp of the newest product.
    pub newest_stored: Option<WallMicros>,
}

impl LogReader {
    /// True if the directory looks like the log of one feed.
    pub fn is_log(dir: &Path) -> bool {
        dir.join("identity").is_file() || files::look(dir).is_ok_and(|(listing, _)| !listing.is_empty())
    }

    /// Opens the log in `dir`, which must exist.
    pub fn open(dir: &Path) -> Result<Self, LogError> {
        match Identity::read(dir)? {
            Some(identity) => Ok(Self { dir: dir.to_owned(), identity }),
            None => Err(LogError::NoLog { dir: dir.to_owned() }),
        }
    }

    /// The feed.
    pub fn feed(&self) -> &FeedName {
        &self.identity.feed
    }

    /// This life of the log.
    pub fn epoch(&self) -> Epoch {
        self.identity.epoch
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Everything after a sequence, in order; ends at the head of this moment.
    pub fn entries(&self, after: Sequence) -> Entries {
        Entries::new(self.clone(), after, true)
    }

    /// The same, but may be polled again after each end for newly appended products.
    pub fn follow(&self, after: Sequence) -> Entries {
        Entries::new(self.clone(), after, false)
    }

    /// One product; `None` if the sequence was never assigned or is forgotten.
    pub fn entry(&self, sequence: Sequence) -> Result<Option<StoredEntry>, LogError> {
        let Some(after) = sequence.0.checked_sub(1) else { return Ok(None) };
        let found = self.entries(Sequence(after)).next().transpose()?;
        Ok(found.filter(|entry| entry.info.key.sequence == sequence))
    }

    /// The cursor before the last `count` products.
    pub fn start_of_last(&self, count: usize) -> Result<Sequence, LogError> {
        let mut missing = count;
        for base in self.bases()?.into_iter().rev() {
            let sequences = self.part(base)?.sequences()?;
            match sequences.len().checked_sub(missing) {
                Some(before) => {
                    let after = before.checked_sub(1).and_then(|at| sequences.get(at));
                    return Ok(Sequence(after.copied().unwrap_or(base.saturating_sub(1))));
                }
                None => missing -= sequences.len(),
            }
        }
        Ok(Sequence(0))
    }

    /// Reads the figures from the files.
    pub fn summary(&self) -> Result<LogSummary, LogError> {
        let (reservation, _) = Reservation::open(&self.dir, self.identity.epoch)?;
        let mut summary = LogSummary {
            first: Sequence(0),
            head: Sequence(reservation.forgotten_to()),
            products: 0,
            remembered: 0,
            bytes: 0,
            memory_bytes: 0,
            segments: 0,
            oldest_stored: None,
            newest_stored: None,
        };
        for base in self.bases()? {
            summary.add(&self.part(base)?.figures()?);
        }
        if summary.first == Sequence(0) {
            summary.first = Sequence(summary.head.0 + 1);
        }
        Ok(summary)
    }

    /// The first sequences of all parts, in order.
    pub(crate) fn bases(&self) -> Result<Vec<u64>, LogError> {
        Ok(files::look(&self.dir)?.0.bases())
    }

    /// The part that begins with `base`, in its current state; without index and segment if it was deleted since.
    pub(crate) fn part(&self, base: u64) -> Result<Part, LogError> {
        Part::open(&self.dir, &self.identity, base)
    }
}

impl LogSummary {
    fn add(&mut self, part: &Figures) {
        let rows = part.rows;
        self.memory_bytes += part.index_bytes;
        let Some((first, last)) = part.ends else { return };
        self.head = self.head.max(Sequence(last.0));
        self.newest_stored = Some(WallMicros(last.1));
        if !part.has_bytes {
            self.remembered += rows;
            return;
        }
        self.products += rows;
        self.bytes += part.data_bytes;
        self.segments += 1;
        if self.oldest_stored.is_none() {
            self.first = Sequence(first.0);
            self.oldest_stored = Some(WallMicros(first.1));
        }
    }
}
