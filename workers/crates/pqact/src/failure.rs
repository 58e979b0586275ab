//! Failures of actions, and the reaction to each.
use std::io::{self, ErrorKind};
use std::path::Path;

use downburst_log::disk;

/// An attempt that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// The program's exit status, or minus the signal that ended it.
    pub(super) exit: Option<i32>,
    pub(super) sentence: String,
    pub(super) then: Then,
}

/// The reaction to a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// Another attempt.
    Again,
    /// No further attempt: it would fail as well.
    GiveUp,
    /// A wait: there is no room, which is no reason to give up a product.
    WaitForRoom,
    /// None: the site stops, and begins with this product at its next start.
    Stop,
}

impl Failure {
    pub(super) fn new(then: Then, sentence: impl Into<String>) -> Self {
        Self { exit: None, sentence: sentence.into(), then }
    }

    pub(super) fn stopped() -> Self {
        Self::new(Then::Stop, "the site stops")
    }

    /// The failure to write a file.
    pub(super) fn of_file(path: &Path, error: &io::Error) -> Self {
        let then = match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::ReadOnlyFilesystem => {
                Then::WaitForRoom
            }
            ErrorKind::PermissionDenied
            | ErrorKind::NotADirectory
            | ErrorKind::IsADirectory
            | ErrorKind::InvalidInput
            | ErrorKind::InvalidFilename => Then::GiveUp,
            _ => Then::Again,
        };
        Self::new(then, disk::unwritable(path, error))
    }
}
