//! Patterns of a site's own files, with the semantics of LDM's pqact: the C library compiles and matches
//! them, so that groups agree.
//!
//! Of several possible matches, POSIX takes the leftmost longest, and the `regex` crate the one with the
//! first alternatives: for `(KW|KWBC)` the group differs. If only a match is needed, and no group, both agree
//! (`differences.rs`), and the linear time of [`Pattern`] is preferable. Patterns from the network are always
//! of that kind; here [`Pattern`] first decides whether there is a match. Only back-references are left to the
//! C library alone; their time is bounded only by the length of an id.
#[cfg(test)]
mod differences;
mod posix;

use std::sync::Arc;

use downburst_model::{Pattern, PatternError};
use posix::Compiled;
use thiserror::Error;

/// An extended regular expression of a site's own file.
#[derive(Clone, Debug)]
pub struct Ere(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    text: String,
    compiled: Compiled,
    /// Decides in linear time whether an id matches; `None` if its meaning may differ from the library's.
    quick: Option<Pattern>,
}

/// Why an expression can't be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum EreError {
    /// The expression is longer than LDM accepts.
    #[error("the pattern has {0} bytes, and the longest may have {LONGEST_BYTES}; shorten it")]
    Long(usize),
    /// It is refused for a reason that [`Pattern`] explains.
    #[error("{0}")]
    Refused(PatternError),
    /// The C library refuses it with its own message.
    #[error("the pattern can't be used: {0}; correct it")]
    Library(String),
}

impl Ere {
    /// Compiles `text`. The second part is a note for its author on a meaning that may be unexpected.
    pub fn compile(text: &str) -> Result<(Self, Option<String>), EreError> {
        if text.len() > LONGEST_BYTES {
            return Err(EreError::Long(text.len()));
        }
        // The C library would allocate memory without bound.
        let linear = Pattern::parse(text);
        let bounded = Pattern::parse(&without_back_references(text));
        if let Err(error) = bounded
            && error.is_size()
        {
            return Err(EreError::Refused(error));
        }
        let compiled = Compiled::new(text).map_err(|words| match &linear {
            Err(error) => EreError::Refused(error.clone()),
            Ok(_) => EreError::Library(words),
        })?;
        let note = linear.as_ref().err().and_then(|error| note(text, error));
        // The C library treats bytes as characters.
        let quick = linear.ok().filter(|_| text.is_ascii());
        Ok((Self(Arc::new(Inner { text: text.to_owned(), compiled, quick })), note))
    }

    /// The expression as written.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// True if it matches anywhere in `id`.
    pub fn matches(&self, id: &str) -> bool {
        self.quickly(id).unwrap_or_else(|| self.0.compiled.matches(id))
    }

    /// The matches of the whole pattern and of each of its groups in `id`, if it matches. A group that ends
    /// within a character includes all of that character.
    pub fn groups<'t>(&self, id: &'t str) -> Option<Vec<Option<&'t str>>> {
        if self.quickly(id) == Some(false) {
            return None;
        }
        let places = self.0.compiled.groups(id)?;
        Some(places.into_iter().map(|place| place.map(|(from, to)| whole_characters(id, from, to))).collect())
    }

    /// The number of its groups.
    pub fn group_count(&self) -> usize {
        self.0.compiled.group_count()
    }

    fn quickly(&self, id: &str) -> Option<bool> {
        self.0.quick.as_ref().filter(|_| id.is_ascii()).map(|pattern| pattern.matches(id))
    }
}

/// The note for the author of a pattern that only the C library accepts.
fn note(text: &str, error: &PatternError) -> Option<String> {
    let PatternError { reason, position } = error;
    let letter = text.chars().nth(*position).unwrap_or_default();
    if reason.contains("back-reference") {
        Some(format!(
            "the back-reference at character {position} of the pattern can take minutes for an id that is made for it; \
             write the pattern without it"
        ))
    } else if reason.contains("is not part of extended regular expressions") {
        Some(format!(
            "\\{letter} at character {position} of the pattern is the letter {letter}, as for LDM; a digit is [0-9]"
        ))
    } else {
        None
    }
}

/// The same with a character for each back-reference, to check its size only.
fn without_back_references(text: &str) -> String {
    let mut plain = String::new();
    let mut chars = text.chars();
    while let Some(next) = chars.next() {
        match (next, next == '\\') {
            (_, true) => match chars.next() {
                Some(digit) if digit.is_ascii_digit() => plain.push_str("(.)"),
                Some(escaped) if escaped.is_alphanumeric() => plain.push(escaped),
                Some(escaped) => plain.extend(['\\', escaped]),
                None => plain.push('\\'),
            },
            _ => plain.push(next),
        }
    }
    plain
}

fn whole_characters(id: &str, from: usize, to: usize) -> &str {
    let from = (0..=from).rev().find(|at| id.is_char_boundary(*at)).unwrap_or_default();
    let to = (to..=id.len()).find(|at| id.is_char_boundary(*at)).unwrap_or(id.len());
    id.get(from..to).unwrap_or_default()
}

/// LDM reads at most 512 bytes of a line of pqact.conf.
const LONGEST_BYTES: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(pattern: &str, id: &str) -> Option<Vec<Option<String>>> {
        let (ere, _) = Ere::compile(pattern).unwrap();
        let found = ere.groups(id);
        assert_eq!(found.is_some(), ere.matches(id), "{pattern:?} on {id:?}");
        Some(found?.into_iter().map(|group| group.map(str::to_owned)).collect())
    }

    fn some(texts: &[&str]) -> Option<Vec<Option<String>>> {
        Some(texts.iter().map(|text| Some((*text).to_owned())).collect())
    }

    #[test]
    fn finding_26_the_longest_alternative_counts() {
        assert_eq!(groups("(KW|KWBC)", "SAUS70 KWBC 291200"), some(&["KWBC", "KWBC"]));
        assert_eq!(groups("x", "SAUS70"), None);
        assert_eq!(groups("(a)|(b)", "b"), Some(vec![Some("b".to_owned()), None, Some("b".to_owned())]));
    }

    #[test]
    fn what_only_the_c_library_takes_is_taken_with_a_word_of_warning() {
        let (ere, note) = Ere::compile(r"^(..)\1").unwrap();
        assert!(ere.matches("ABAB") && !ere.matches("ABBA"));
        assert!(note.unwrap().contains("back-reference at character 6"));
        let (ere, note) = Ere::compile(r"\d").unwrap();
        assert!(ere.matches("d") && !ere.matches("1"));
        assert!(note.unwrap().contains(r"\d at character 1 of the pattern is the letter d"));
        let (ere, note) = Ere::compile("[[=a=]]").unwrap();
        assert!(ere.matches("a") && note.is_none());
    }

    #[test]
    fn what_cannot_be_compiled_is_refused_with_its_place() {
        let refused = |pattern: &str| Ere::compile(pattern).unwrap_err().to_string();
        assert!(refused("^SDUS(5[1-4]").contains("a group is not closed at character 6"));
        assert!(refused(&"a".repeat(1_001)).contains("1001 bytes"));
        for huge in [
            "((a{1000}){1000}){1000}",
            r"((a{1000}){1000}){1000}(b)\1",
            r"(\w{1000}){1000}\d",
            r"(b)(\1{1000}){1000}",
        ] {
            assert!(refused(huge).contains("too large"), "{huge}: {}", refused(huge));
        }
        assert!(refused("a\0b").contains("zero byte"));
    }

    #[test]
    fn ids_that_are_not_ascii_are_bytes_and_their_groups_whole_characters() {
        assert_eq!(groups("^(.)(.)", "Ä1"), some(&["Ä", "Ä", "Ä"]));
        assert_eq!(groups("^(Ä)(.)", "Ä1"), some(&["Ä1", "Ä", "1"]));
        assert_eq!(groups("(1)$", "Ä1"), some(&["1", "1"]));
        assert_eq!(groups("^a.", "a\0b"), None, "an id ends at a zero byte, as in C");
    }

    #[test]
    fn one_pattern_serves_several_threads() {
        let (ere, _) = Ere::compile(r"^(S|SAUS)([0-9]*) (K..)\3?").unwrap();
        std::thread::scope(|scope| {
            for number in 0..4 {
                let ere = ere.clone();
                scope.spawn(move || {
                    for turn in 0..500 {
                        let id = format!("SAUS{number}{turn} KWBKWB");
                        let groups = ere.groups(&id).unwrap();
                        assert_eq!(groups[2], Some(&*format!("{number}{turn}")));
                    }
                });
            }
        });
    }
}
