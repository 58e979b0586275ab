//! How an action fails, and what is of use then.
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

/// What is of use after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// Another attempt.
    Again,
    /// No other attempt would end otherwise.
    GiveUp,
    /// To wait: there is no room, and nothing is given up for that.
    WaitForRoom,
    /// Nothing: the site stops, and begins with this product when it starts.
    Stop,
}

impl Failure {
    pub(super) fn new(then: Then, sentence: impl Into<String>) -> Self {
        Self { exit: None, sentence: sentence.into(), then }
    }

    pub(super) fn stopped() -> Self {
        Self::new(Then::Stop, "the site stops")
    }

    /// A file can't be written.
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
