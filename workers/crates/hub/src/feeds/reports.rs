//! Messages to the operator about a feed's log.
use std::fmt::Display;
use std::path::Path;

use downburst_model::{FeedName, ProductKey};

/// The message that sites wait for a feed whose log can't be read, with advice. `only_at_brokers`: the products are
/// in the shared store alone.
pub fn unreadable_log(feed: &FeedName, error: &dyn Display, only_at_brokers: bool) -> String {
    let advice = if only_at_brokers {
        "sites wait for products that only the brokers have; check the brokers"
    } else {
        "sites wait for it; check the disk; `downburst log verify` lists the damage"
    };
    format!("the log of feed {feed} can't be read: {error}; {advice}")
}

/// The place of damage in a log.
#[derive(Clone, Copy, Debug)]
pub struct DamagePlace<'a> {
    /// The file.
    pub segment: &'a Path,
    /// The place in it.
    pub offset: u64,
    /// The damaged bytes.
    pub bytes: u64,
}

/// The message that a product is damaged, which a site rejected.
pub fn damaged_product(key: &ProductKey, DamagePlace { segment, offset, bytes }: DamagePlace<'_>) -> String {
    format!(
        "product {} of feed {} was damaged on the hub's disk: {bytes} bytes at {offset} of {} don't match its \
         digest; it is not delivered any more: have its source send it again, check the disk, and run `downburst \
         log verify` to find further damage",
        key.sequence.0,
        key.feed,
        segment.display()
    )
}

/// The message that a product can't be checked, which a site rejected.
pub fn rejected_unreadable(key: &ProductKey, error: &dyn Display) -> String {
    format!("a site rejected product {} of feed {}: {error}", key.sequence.0, key.feed)
}

/// The message that products left a log early.
pub fn cut_by_ceiling(feed: &FeedName, products: u64) -> String {
    format!(
        "feed {feed}: {products} products left the log before their retention hours ended, because of its disk \
         ceiling; raise retention_bytes or lower retention_hours"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{feed, product};

    #[test]
    fn messages_name_the_place_and_the_remedy() {
        let on_disk = unreadable_log(&feed("NGRID"), &"torn", false);
        assert!(
            on_disk.starts_with("the log of feed NGRID can't be read: torn;") && on_disk.contains("verify")
        );
        assert!(unreadable_log(&feed("NGRID"), &"away", true).ends_with("check the brokers"));
        assert!(cut_by_ceiling(&feed("NGRID"), 7).starts_with("feed NGRID: 7 products left the log"));
    }

    #[test]
    fn a_rejected_product_is_named_with_its_damage() {
        let key = product(5, "x", 0).key;
        let place = DamagePlace { segment: Path::new("/log/1.segment"), offset: 70, bytes: 8 };
        let sentence = damaged_product(&key, place);
        assert!(sentence.starts_with("product 5 of feed TEST was damaged"), "{sentence}");
        assert!(sentence.contains("8 bytes at 70 of /log/1.segment don't match"), "{sentence}");
        assert_eq!(rejected_unreadable(&key, &"gone"), "a site rejected product 5 of feed TEST: gone");
    }
}
