use std::fmt;
use std::sync::Arc;

use thiserror::Error;

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file's name, as given.
    pub file: Arc<str>,
    /// The line number, from 1.
    pub line: usize,
}

/// A part of a file that can't be used, or not as written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place}: {sentence}")]
pub struct Problem {
    /// The line.
    pub place: Place,
    /// The problem and its remedy.
    pub sentence: String,
}

/// The result of reading a file.
#[derive(Clone, Debug)]
pub struct Read<T> {
    /// The content.
    pub found: T,
    /// Reasons that the file can't be used.
    pub errors: Vec<Problem>,
    /// Rules that can't be parsed. The other rules do not depend on them.
    pub set_aside: Vec<Problem>,
    /// Effects that the file's author may not expect.
    pub notes: Vec<Problem>,
}

impl<T: Default> Read<T> {
    /// An empty result.
    pub(crate) fn nothing() -> Self {
        Self { found: T::default(), errors: Vec::new(), set_aside: Vec::new(), notes: Vec::new() }
    }
}

impl<T> Read<T> {
    /// The same result with a part of the content.
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

    /// A problem in this line.
    pub(crate) fn wrong(&self, sentence: impl Into<String>) -> Problem {
        Problem { place: self.clone(), sentence: sentence.into() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}
