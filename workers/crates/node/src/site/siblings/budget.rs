//! The uploads of the day on the disk, so that a restart does not renew the budget.
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use downburst_log::disk::{self, Checked};
use downburst_sibling::Spent;

/// The file `state/sibling-uploads`.
pub(super) struct Budget {
    path: PathBuf,
    kept: Mutex<Spent>,
}

impl Budget {
    /// Reads the file. A damaged one begins anew: it bounds a courtesy, not a right.
    pub(super) fn open(state: &Path) -> Self {
        let path = state.join("sibling-uploads");
        let kept = match disk::read_checked::<(i64, u64)>(&path, MAGIC) {
            Ok(Checked::Whole((day, bytes))) => Spent { day, bytes },
            Ok(Checked::Missing) => Spent::default(),
            Ok(Checked::Damaged | Checked::Newer(_)) | Err(_) => {
                tracing::warn!(path = %path.display(), "the count of uploads to siblings is damaged or of another \
                     release; the day's budget begins anew");
                Spent::default()
            }
        };
        Self { path, kept: Mutex::new(kept) }
    }

    pub(super) fn spent(&self) -> Spent {
        *self.kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Writes the file if a fair part was spent since. A failure is logged: the uploads go on.
    pub(super) fn keep(&self, spent: Spent, is_last: bool) {
        let mut kept = self.kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let more = if kept.day == spent.day { spent.bytes.saturating_sub(kept.bytes) } else { u64::MAX };
        if more == 0 || (more < KEEP_BYTES && !is_last) {
            return;
        }
        let written = disk::checked(MAGIC, &(spent.day, spent.bytes))
            .and_then(|contents| disk::replace_unsynced(&self.path, &disk::aside(&self.path), &contents));
        match written {
            Ok(()) => *kept = spent,
            Err(error) => tracing::warn!("{} can't be written: {error}", self.path.display()),
        }
    }
}

const MAGIC: &[u8; 8] = b"DBUPLOA\n";

/// The bytes between two writes of the file.
const KEEP_BYTES: u64 = 8 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_does_not_renew_the_budget() {
        let state = tempfile::tempdir().unwrap();
        let budget = Budget::open(state.path());
        assert_eq!(budget.spent(), Spent::default());
        budget.keep(Spent { day: 3, bytes: 10 }, false);
        assert_eq!(Budget::open(state.path()).spent(), Spent { day: 3, bytes: 10 }, "the day is another");
        budget.keep(Spent { day: 3, bytes: 11 }, false);
        assert_eq!(Budget::open(state.path()).spent().bytes, 10, "too little to write");
        budget.keep(Spent { day: 3, bytes: 12 }, true);
        assert_eq!(Budget::open(state.path()).spent().bytes, 12);
        std::fs::write(state.path().join("sibling-uploads"), b"rubbish").unwrap();
        assert_eq!(Budget::open(state.path()).spent(), Spent::default());
    }
}
