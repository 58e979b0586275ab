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

/// What reading a file gave.
#[derive(Clone, Debug)]
pub struct Read<T> {
    /// What was read.
    pub found: T,
    /// Why the file can't be used.
    pub errors: Vec<Problem>,
    /// Rules that can't be understood. The others do not need them.
    pub set_aside: Vec<Problem>,
    /// What will not be as the file's author may expect.
    pub notes: Vec<Problem>,
}

impl<T: Default> Read<T> {
    /// Nothing yet.
    pub(crate) fn nothing() -> Self {
        Self { found: T::default(), errors: Vec::new(), set_aside: Vec::new(), notes: Vec::new() }
    }
}

impl<T> Read<T> {
    /// The same with a part of what was read.
    pub fn map<U>(self, part: impl FnOnce(T) -> U) -> Read<U> {
        let Self { found, errors, set_aside, notes } = self;
        Read { found: part(found), errors, set_aside, notes }
    }
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
