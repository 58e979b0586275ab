//! The description of a product for programs.
use downburst_model::{Class, FeedName, ProductInfo, Sequence, WallMicros};
use serde::Serialize;

/// A product of a log, as answers describe it, with the statements of its source.
#[derive(Debug, Serialize)]
pub struct StatedProduct {
    #[serde(flatten)]
    product: DescribedProduct,
    #[serde(skip_serializing_if = "Option::is_none")]
    properties: Option<String>,
}

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

impl StatedProduct {
    /// Describes a product; `kept`: the log has its bytes.
    pub fn of(info: &ProductInfo, kept: bool) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self {
            product: DescribedProduct::of(info, kept),
            properties: info.properties.as_ref().map(|it| text(it.as_bytes())),
        }
    }
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
