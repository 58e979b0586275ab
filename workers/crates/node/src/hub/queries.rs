//! Queries about products: lists of them, and their whereabouts.
pub(super) mod browsing;
pub(super) mod deliveries;

use downburst_model::Pattern;

use crate::lines::Failure;

/// Parses a pattern that a user typed.
pub(super) fn parsed(pattern: &str) -> Result<Pattern, Failure> {
    Pattern::parse(pattern).map_err(|error| {
        let mut failure = Failure::new("bad-pattern", error.to_string());
        failure.fields.insert("position", error.position as u64);
        failure
    })
}
