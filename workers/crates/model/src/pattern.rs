use serde::Deserialize;
use thiserror::Error;

use crate::ere;

/// A compiled subscription pattern: a POSIX extended regular expression, matched anywhere in a product id (as LDM does) in linear
/// time.
#[derive(Clone, Debug)]
pub struct Pattern(regex::Regex);

/// Why a pattern was refused, and where.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("the pattern can't be used: {reason} at character {position}; correct it there")]
pub struct PatternError {
    /// What is wrong, in a few words.
    pub reason: String,
    /// Where, counted in characters from 1.
    pub position: usize,
}

impl Pattern {
    /// Compiles `text`; the compiled size is bounded so that no pattern can exhaust memory.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        regex::RegexBuilder::new(&ere::translate(text)?)
            .size_limit(COMPILED_LIMIT_BYTES)
            .build()
            .map(Self)
            .map_err(|_| PatternError { reason: "it grows too large when compiled".to_owned(), position: 1 })
    }

    /// True if the pattern matches anywhere in `id`.
    pub fn matches(&self, id: &str) -> bool {
        self.0.is_match(id)
    }
}

/// Ids that match `pattern` and not `not_pattern`, as texts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct IdFilter {
    /// Ids that match.
    pub pattern: String,
    /// Unless they match this.
    pub not_pattern: Option<String>,
}

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
    fn errors_name_the_position() {
        let error = Pattern::parse("^SDUS(5[1-4]").unwrap_err();
        assert_eq!(error.position, 6, "{error}");
        assert!(error.to_string().contains("at character 6"), "{error}");
        assert!(Pattern::parse("((a{1000}){1000}){1000}").is_err());
    }
}
