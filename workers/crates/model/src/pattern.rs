use minicbor::{Decode, Encode};
use serde::Deserialize;
use thiserror::Error;

use crate::ere;

/// A compiled subscription pattern: a POSIX extended regular expression, matched anywhere in a product id (as
/// LDM does) in linear time.
#[derive(Clone, Debug)]
pub struct Pattern(regex::Regex);

/// The reason for refusing a pattern, with its position.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("the pattern can't be used: {reason} at character {position}; correct it there")]
pub struct PatternError {
    /// The error, in a few words.
    pub reason: String,
    /// The position of the error, counted in characters from 1.
    pub position: usize,
}

impl PatternError {
    /// True if the compiled size is too large.
    pub fn is_size(&self) -> bool {
        self.reason == TOO_LARGE
    }
}

impl Pattern {
    /// Compiles `text`; the compiled size is bounded so that no pattern can exhaust memory.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        Self::compile(text, false)
    }

    /// Compiles `text` so that [`groups`](Self::groups) returns the matches of its groups. Matching costs more.
    pub fn with_groups(text: &str) -> Result<Self, PatternError> {
        Self::compile(text, true)
    }

    fn compile(text: &str, groups: bool) -> Result<Self, PatternError> {
        regex::RegexBuilder::new(&ere::translate(text, groups)?)
            .size_limit(COMPILED_LIMIT_BYTES)
            .build()
            .map(Self)
            .map_err(|_| PatternError { reason: TOO_LARGE.to_owned(), position: 1 })
    }

    /// Describes the cases in which an accepted pattern ([`parse`](Self::parse)) matches other ids than in LDM,
    /// because the C library matches bytes.
    pub fn difference(text: &str) -> Option<&'static str> {
        (!text.is_ascii()).then_some(
            "LDM matches the bytes of a non-ASCII character one by one: a dot matches a part of it, and so does a \
             bracket",
        )
    }

    /// True if the pattern matches anywhere in `id`.
    pub fn matches(&self, id: &str) -> bool {
        self.0.is_match(id)
    }

    /// The matches of the whole pattern and of each of its groups in `id`, if it matches. Of several possible
    /// matches, the one with the first alternatives counts; `regexec` returns the longest, so these groups are not
    /// used for results visible to LDM's users.
    pub fn groups<'t>(&self, id: &'t str) -> Option<Vec<Option<&'t str>>> {
        let found = self.0.captures(id)?;
        Some(found.iter().map(|group| group.map(|group| group.as_str())).collect())
    }

    /// The number of capturing groups.
    pub fn group_count(&self) -> usize {
        self.0.captures_len().saturating_sub(1)
    }
}

/// Ids that match `pattern` and not `not_pattern`, as texts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Encode, Decode)]
pub struct IdFilter {
    /// The pattern of matching ids.
    #[n(0)]
    pub pattern: String,
    /// The pattern of ids that are excluded from these.
    #[n(1)]
    pub not_pattern: Option<String>,
}

const TOO_LARGE: &str = "it grows too large when compiled";
const COMPILED_LIMIT_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_anywhere_like_ldm() {
        let pattern = Pattern::parse("^SDUS5[1-4] K").unwrap();
        assert!(pattern.matches("SDUS54 KOUN 161540 /pN0RTLX"));
        assert!(!pattern.matches("x SDUS54 KOUN"));
    }

    #[test]
    fn groups_are_numbered_as_they_are_opened() {
        let pattern = Pattern::with_groups("^((S.)A)?(..)(x)?+$").unwrap();
        assert_eq!(pattern.group_count(), 4);
        let groups = pattern.groups("SXA12").unwrap();
        assert_eq!(groups, [Some("SXA12"), Some("SXA"), Some("SX"), Some("12"), None]);
        assert_eq!(pattern.groups("1"), None);
        assert_eq!(Pattern::parse("(a)").unwrap().group_count(), 0);
    }

    #[test]
    fn errors_name_the_position() {
        let error = Pattern::parse("^SDUS(5[1-4]").unwrap_err();
        assert_eq!(error.position, 6, "{error}");
        assert!(error.to_string().contains("at character 6"), "{error}");
        assert!(Pattern::parse("((a{1000}){1000}){1000}").is_err());
    }
}
