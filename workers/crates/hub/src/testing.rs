//! Products for unit tests.
use downburst_model::{
    Class, Digest, Epoch, FeedName, Origin, ProductId, ProductInfo, ProductKey, Sequence, WallMicros,
};

/// A product of 8 bytes of the feed `TEST`.
pub(crate) fn product(sequence: u64, id: &str, stored_us: i64) -> ProductInfo {
    ProductInfo {
        key: ProductKey { feed: feed("TEST"), epoch: Epoch(7), sequence: Sequence(sequence) },
        id: ProductId::parse(id).unwrap(),
        origin: Origin::parse("hub").unwrap(),
        created: WallMicros(stored_us - 1),
        stored: WallMicros(stored_us),
        size: 8,
        digest: Digest([0; 32]),
        class: Class::Grid,
        hops: None,
        ldm: None,
        properties: None,
    }
}

pub(crate) fn feed(name: &str) -> FeedName {
    FeedName::parse(name).unwrap()
}
