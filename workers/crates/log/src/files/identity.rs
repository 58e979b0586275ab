//! A log's identity, and the sequences that it may assign.

use std::path::{Path, PathBuf};

use downburst_model::{Epoch, FeedName};
use minicbor::{Decode, Encode};

use crate::{LogError, files};

/// Written once, when the log is created.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub(crate) struct Identity {
    #[n(0)]
    pub(crate) feed: FeedName,
    #[n(1)]
    pub(crate) epoch: Epoch,
    /// Part of the checksum of every record, so that no product can carry bytes that look like a record of this
    /// log.
    #[n(2)]
    pub(crate) salt: u64,
}

impl Identity {
    pub(crate) fn read(dir: &Path) -> Result<Option<Self>, LogError> {
        files::read_checked(&dir.join("identity"), IDENTITY_MAGIC)
    }

    pub(crate) fn write(&self, dir: &Path) -> Result<(), LogError> {
        files::write_checked(&dir.join("identity"), IDENTITY_MAGIC, self)
    }
}

/// The reservation of sequences, kept on disk ahead of their use.
#[derive(Debug)]
pub(crate) struct Reservation {
    path: PathBuf,
    /// Present if the log was made from a backup and has assigned no sequence since.
    restored: Option<PathBuf>,
    state: Reserved,
}

#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
struct Reserved {
    #[n(0)]
    epoch: Epoch,
    /// No sequence above this one was ever assigned.
    #[n(1)]
    reserved_to: u64,
    /// The exact next sequence, after a clean stop.
    #[n(2)]
    clean_next: Option<u64>,
    /// Every sequence up to this one is forgotten.
    #[n(3)]
    forgotten_to: u64,
    /// No bytes above this sequence were evicted. Absent in files of releases that did not record it.
    #[n(4)]
    evicted_to: Option<u64>,
}

/// The point at which a reopened log continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resumption {
    pub(crate) next: u64,
    pub(crate) clean: bool,
}

impl Reservation {
    /// Reads the reservation of `epoch`; a missing or damaged one counts as none.
    pub(crate) fn open(dir: &Path, epoch: Epoch) -> Result<(Self, bool), LogError> {
        let path = dir.join("sequence");
        let found =
            files::read_checked::<Reserved>(&path, SEQUENCE_MAGIC)?.filter(|state| state.epoch == epoch);
        let known = found.is_some();
        let state = found.unwrap_or(Reserved {
            epoch,
            reserved_to: 0,
            clean_next: None,
            forgotten_to: 0,
            evicted_to: None,
        });
        let restored = Some(dir.join("restored")).filter(|mark| mark.exists());
        Ok((Self { path, restored, state }, known))
    }

    /// Decides on the next sequence, given the last one found in the files and whether this file was `known`.
    pub(crate) fn resume(&mut self, known: bool, last_found: u64) -> Resumption {
        let last = last_found.max(self.state.forgotten_to);
        let resumption = match (known, self.state.clean_next) {
            // Sequences that are unknown here were assigned between the backup and its restoration.
            _ if self.restored.is_some() => {
                Resumption { next: self.state.reserved_to.max(last) + LOST_RESERVATION_JUMP, clean: false }
            }
            (true, Some(next)) => Resumption { next: next.max(last + 1), clean: next > last },
            (true, None) => Resumption { next: self.state.reserved_to.max(last) + 1, clean: false },
            (false, _) if last == 0 => Resumption { next: 1, clean: true },
            (false, _) => Resumption { next: last + LOST_RESERVATION_JUMP, clean: false },
        };
        self.state.reserved_to = resumption.next - 1;
        resumption
    }

    /// True if the file matches the state in memory, or was not written yet.
    pub(crate) fn is_whole(&self) -> Result<bool, LogError> {
        let kept = files::read_checked::<Reserved>(&self.path, SEQUENCE_MAGIC)?;
        Ok(kept.is_some_and(|kept| kept.epoch == self.state.epoch) || self.state.reserved_to == 0)
    }

    /// Rewrites the file.
    pub(crate) fn write_again(&mut self) -> Result<(), LogError> {
        self.replace(self.state.clone())
    }

    /// No sequence above this one was ever assigned.
    pub(crate) fn reserved_to(&self) -> u64 {
        self.state.reserved_to
    }

    pub(crate) fn forgotten_to(&self) -> u64 {
        self.state.forgotten_to
    }

    /// Ensures that `count` sequences from `next` on are reserved on disk before they are used.
    pub(crate) fn cover(&mut self, next: u64, count: u64, block: u64) -> Result<(), LogError> {
        let last = next.saturating_add(count.max(1) - 1);
        if last <= self.state.reserved_to {
            return Ok(());
        }
        let reserved_to = last.max(next.saturating_add(block.max(1) - 1));
        self.replace(Reserved { reserved_to, clean_next: None, ..self.state.clone() })
    }

    /// Records that the memory up to `forgotten_to` is dropped.
    pub(crate) fn forget(&mut self, forgotten_to: u64) -> Result<(), LogError> {
        let forgotten_to = forgotten_to.max(self.state.forgotten_to);
        self.replace(Reserved { forgotten_to, ..self.state.clone() })
    }

    /// The sequence up to which bytes were evicted, if known.
    pub(crate) fn evicted_to(&self) -> Option<u64> {
        self.state.evicted_to
    }

    /// Adopts the finding of the opening if no file recorded how far bytes were evicted.
    pub(crate) fn presume_evicted(&mut self, to: u64) {
        self.state.evicted_to.get_or_insert(to);
    }

    /// Records that the bytes up to `evicted_to` are evicted. This is written before their deletion, so that
    /// evicted bytes can be distinguished from lost ones.
    pub(crate) fn evict(&mut self, evicted_to: u64) -> Result<(), LogError> {
        if self.state.evicted_to.is_some_and(|known| evicted_to <= known) {
            return Ok(());
        }
        self.replace(Reserved { evicted_to: Some(evicted_to), ..self.state.clone() })
    }

    /// Marks a clean stop.
    pub(crate) fn close(&mut self, next: u64) -> Result<(), LogError> {
        self.replace(Reserved { clean_next: Some(next), reserved_to: next - 1, ..self.state.clone() })
    }

    fn replace(&mut self, state: Reserved) -> Result<(), LogError> {
        files::write_checked(&self.path, SEQUENCE_MAGIC, &state)?;
        self.state = state;
        if let Some(mark) = self.restored.take() {
            files::remove(&mark)?;
        }
        Ok(())
    }
}

const IDENTITY_MAGIC: &[u8; 8] = b"DBLOGID\n";
const SEQUENCE_MAGIC: &[u8; 8] = b"DBLOGSQ\n";
/// Far beyond any number that can have been assigned to products whose records are lost with the reservation.
pub(crate) const LOST_RESERVATION_JUMP: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn reopen(dir: &Path, last_found: u64) -> (Reservation, Resumption) {
        let (mut reservation, known) = Reservation::open(dir, Epoch(5)).unwrap();
        let resumption = reservation.resume(known, last_found);
        (reservation, resumption)
    }

    #[test]
    fn a_clean_stop_continues_and_an_unclean_one_skips_the_block() {
        let dir = tempfile::tempdir().unwrap();
        let (mut reservation, start) = reopen(dir.path(), 0);
        assert_eq!(start, Resumption { next: 1, clean: true });
        reservation.cover(1, 1, 100).unwrap();
        reservation.cover(100, 1, 100).unwrap();
        let (mut reservation, crashed) = reopen(dir.path(), 30);
        assert_eq!(crashed, Resumption { next: 101, clean: false });
        reservation.cover(101, 1, 100).unwrap();
        reservation.close(110).unwrap();
        let (mut reservation, stopped) = reopen(dir.path(), 109);
        assert_eq!(stopped, Resumption { next: 110, clean: true });
        reservation.cover(110, 1, 100).unwrap();
        assert_eq!(reopen(dir.path(), 109).1, Resumption { next: 210, clean: false });
    }

    #[test]
    fn a_lost_reservation_jumps() {
        let dir = tempfile::tempdir().unwrap();
        reopen(dir.path(), 0).0.cover(1, 1, 100).unwrap();
        std::fs::write(dir.path().join("sequence"), b"rubbish").unwrap();
        let resumption = reopen(dir.path(), 40).1;
        assert_eq!(resumption, Resumption { next: 1_000_000_040, clean: false });
    }

    #[test]
    fn a_restored_log_jumps_once() {
        let dir = tempfile::tempdir().unwrap();
        let mut reservation = reopen(dir.path(), 0).0;
        reservation.cover(1, 1, 100).unwrap();
        reservation.close(50).unwrap();
        std::fs::write(dir.path().join("restored"), b"").unwrap();
        drop(reopen(dir.path(), 0));
        let (mut reservation, restored) = reopen(dir.path(), 0);
        assert_eq!(restored, Resumption { next: 1_000_000_049, clean: false });
        reservation.cover(restored.next, 1, 100).unwrap();
        assert!(!dir.path().join("restored").exists());
        let resumption = reopen(dir.path(), restored.next).1;
        assert_eq!(resumption, Resumption { next: restored.next + 100, clean: false });
    }

    #[test]
    fn what_was_forgotten_is_never_given_again() {
        let dir = tempfile::tempdir().unwrap();
        let mut reservation = reopen(dir.path(), 0).0;
        reservation.cover(1, 1, 10).unwrap();
        reservation.forget(8).unwrap();
        reservation.forget(3).unwrap();
        assert_eq!(reservation.forgotten_to(), 8);
        reservation.close(9).unwrap();
        assert_eq!(reopen(dir.path(), 0).1, Resumption { next: 9, clean: true });
    }

    #[test]
    fn opening_without_an_append_keeps_the_clean_mark() {
        let dir = tempfile::tempdir().unwrap();
        let mut reservation = reopen(dir.path(), 0).0;
        reservation.cover(1, 1, 10).unwrap();
        reservation.close(4).unwrap();
        drop(reopen(dir.path(), 3));
        assert_eq!(reopen(dir.path(), 3).1, Resumption { next: 4, clean: true });
    }
}
