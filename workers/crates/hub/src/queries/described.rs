//! The description of a product for programs.
use downburst_model::{Class, FeedName, ProductInfo, Sequence, WallMicros};
use serde::Serialize;

/// A product of a log, as answers describe it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DescribedProduct {
    feed: FeedName,
    /// As decimal text: programs that read numbers as floating-point would round it.
    epoch: String,
    sequence: Sequence,
    product_id: String,
    origin: String,
    created_us: WallMicros,
    stored_us: WallMicros,
    size: u64,
    digest: String,
    class: Class,
    /// True if the log has its bytes.
    kept: bool,
}

impl DescribedProduct {
    /// Describes a product; `kept`: the log has its bytes.
    pub fn of(info: &ProductInfo, kept: bool) -> Self {
        Self {
            feed: info.key.feed.clone(),
            epoch: info.key.epoch.0.to_string(),
            sequence: info.key.sequence,
            product_id: info.id.as_str().to_owned(),
            origin: info.origin.as_str().to_owned(),
            created_us: info.created,
            stored_us: info.stored,
            size: info.size,
            digest: info.digest.to_string(),
            class: info.class,
            kept,
        }
    }
}
