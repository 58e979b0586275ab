//! Products whose actions failed permanently: their folder with its limits, and the reports to the hub.
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use downburst_model::WallMicros;

use super::dead_letters::{DeadLetter, DeadLetters, Keep};
use super::failure_reports::FailureReports;
use super::site::Site;

pub(super) struct FailedProducts {
    letters: DeadLetters,
    limits: Keep,
    /// Letters in the folder, as of the last look.
    count: AtomicUsize,
    pub(super) reports: FailureReports,
}

impl FailedProducts {
    /// Begins with the failures that a former run left in the folder of the site in directory `home`.
    pub(super) fn open(home: &Path, limits: Keep, site: Arc<dyn Site>) -> Self {
        let letters = DeadLetters::new(home);
        let reports = FailureReports::new(site, &letters);
        Self { count: AtomicUsize::new(letters.count()), letters, limits, reports }
    }

    /// Puts a letter into the folder, and returns its name, or an empty one if the folder is full.
    pub(super) fn keep(&self, letter: &DeadLetter, bytes: Option<&[u8]>) -> io::Result<String> {
        if self.count.fetch_add(1, Ordering::Relaxed) >= MOST_LETTERS {
            let count = self.letters.count();
            self.count.store(count, Ordering::Relaxed);
            if count >= MOST_LETTERS {
                tracing::error!(
                    "the folder of failed products already holds {MOST_LETTERS}, and this one is not kept there; \
                     see downburst-node actions failed"
                );
                return Ok(String::new());
            }
        }
        self.letters.put(letter, bytes)
    }

    /// Removes letters that are too old, or that exceed the folder's size.
    pub(super) fn let_go(&self, now: WallMicros) {
        match self.letters.let_go(now, self.limits) {
            Ok(0) => {}
            Ok(gone) => {
                self.count.store(self.letters.count(), Ordering::Relaxed);
                tracing::warn!(
                    gone,
                    "products were removed from the folder of failed products because of its limits (--failed-age, \
                     --failed-bytes)"
                );
            }
            Err(error) => tracing::error!(%error, "the folder of failed products can't be read"),
        }
    }

    /// Withdraws the reports of letters that an operator retried or dropped.
    pub(super) fn look(&self) {
        self.reports.look(&self.letters);
    }
}

/// More than an operator would inspect one by one.
const MOST_LETTERS: usize = 10_000;
