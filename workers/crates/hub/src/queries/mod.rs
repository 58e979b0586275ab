//! Queries about products: lists of them, and their whereabouts.
mod browsing;
mod deliveries;
mod described;
mod exporting;
mod whereabouts;

use downburst_model::Pattern;

use crate::jobs::Failure;

pub use browsing::{Browse, BrowseAnswer, BrowseLine, LookRange};
pub use deliveries::{DeliveriesLine, ProductsLine, Selection, SoughtProduct};
pub use described::{DescribedProduct, StatedProduct};
pub use exporting::{ExportAnswer, ExportLine, FollowAnswer, FollowLine};
pub use whereabouts::{
    DeliveriesAnswer, Receipt, SearchedLog, SearchedReceipts, SessionTrace, TracedProduct, Whereabouts,
};

/// Parses a pattern that a user typed.
///
/// # Errors
///
/// The failure of the job, with the position of the error in the pattern.
pub fn parsed_pattern(pattern: &str) -> Result<Pattern, Failure> {
    Pattern::parse(pattern).map_err(|error| {
        let mut failure = Failure::new("bad-pattern", error.to_string());
        failure.fields.insert("position", error.position as u64);
        failure
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_an_error_in_a_pattern_is_told() {
        assert!(parsed_pattern("^SA").is_ok());
        let failure = parsed_pattern("ab(").unwrap_err();
        assert_eq!(
            (failure.code, failure.fields.keys().copied().collect()),
            ("bad-pattern", vec!["position"])
        );
    }
}
