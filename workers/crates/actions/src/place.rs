use std::fmt;
use std::sync::Arc;

use thiserror::Error;

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file, as it was named.
    pub file: Arc<str>,
    /// Counted from 1.
    pub line: usize,
}

/// Something in a file that can't be used, or not as it stands there.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place}: {sentence}")]
pub struct Problem {
    /// Where.
    pub place: Place,
    /// What is wrong, and what to do.
    pub sentence: String,
}

/// What reading a file gave: only without errors it is of use.
#[derive(Clone, Debug)]
pub struct Read<T> {
    /// What was read.
    pub found: T,
    /// Why it can't be used.
    pub errors: Vec<Problem>,
    /// What will not be as the file's author may expect.
    pub notes: Vec<Problem>,
}

impl Place {
    /// A line of a file.
    pub fn new(file: &str, line: usize) -> Self {
        Self { file: file.into(), line }
    }

    /// Something is wrong here.
    pub(crate) fn wrong(&self, sentence: impl Into<String>) -> Problem {
        Problem { place: self.clone(), sentence: sentence.into() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}
