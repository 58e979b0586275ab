//! Files that a power cut may have damaged: their detection, and their names when set aside.
use downburst_model::{Epoch, FeedName, ProductKey, Sequence, WallMicros};

/// The time since which changed files may be damaged, if everything was durable at `proven_at`.
pub fn unproven_since(proven_at: WallMicros) -> WallMicros {
    WallMicros(proven_at.0.saturating_sub(SLACK_US).max(0))
}

/// The product of a file, from `name`, the first part of its path below the feed's directory.
pub fn product_of_file(feed: &FeedName, name: &str) -> Option<ProductKey> {
    let (epoch, rest) = name.split_once('-')?;
    let (sequence, _) = rest.split_once('_')?;
    let epoch = Epoch(u64::from_str_radix(epoch, 16).ok()?);
    Some(ProductKey { feed: feed.clone(), epoch, sequence: Sequence(sequence.parse().ok()?) })
}

/// The name under which a product's file is set aside; `directory` is the name of its feed's directory.
pub fn set_aside_name(directory: &str, key: &ProductKey) -> String {
    format!("{directory}-{:016x}-{:010}", key.epoch.0, key.sequence.0)
}

/// Clocks of file systems are coarse, and a clock may have been set.
const SLACK_US: i64 = 60_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_tells_its_product_by_its_name_and_other_files_are_left_alone() {
        let feed = FeedName::parse("IDS|DDPLUS").unwrap();
        let key = product_of_file(&feed, "000000000000004d-0000000012_a.txt").unwrap();
        assert_eq!((key.epoch, key.sequence), (Epoch(77), Sequence(12)));
        assert_eq!(set_aside_name("IDS%7CDDPLUS", &key), "IDS%7CDDPLUS-000000000000004d-0000000012");
        for other in ["", "notes.txt", "4d-12", "zz-12_a", "4d-x_a"] {
            assert_eq!(product_of_file(&feed, other), None, "{other}");
        }
    }

    #[test]
    fn a_minute_before_the_last_proof_counts_too() {
        assert_eq!(unproven_since(WallMicros(100_000_000)), WallMicros(40_000_000));
        assert_eq!(unproven_since(WallMicros(5)), WallMicros(0));
    }
}
