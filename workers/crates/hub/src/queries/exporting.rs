//! Products in the order of their log, and their bytes, for a publisher elsewhere.
use std::path::PathBuf;

use downburst_model::{Epoch, FeedName, ProductInfo, Sequence};
use serde::{Deserialize, Serialize};

use super::StatedProduct;
use crate::jobs::Failure;

/// Asks for the products behind a place in a log.
#[derive(Debug, Deserialize)]
pub struct FollowLine {
    /// The feed.
    pub feed: FeedName,
    /// The last sequence that is known.
    pub after: Sequence,
    limit: usize,
}

/// Products in their order.
#[derive(Debug, Serialize)]
pub struct FollowAnswer {
    epoch: String,
    /// The newest sequence of the log.
    head: Sequence,
    /// Every sequence up to this one is in `products`, was never assigned, is forgotten, or is one of the hub's own.
    read_to: Sequence,
    products: Vec<StatedProduct>,
}

/// Asks for the bytes of a product in a file.
#[derive(Debug, Deserialize)]
pub struct ExportLine {
    /// The feed.
    pub feed: FeedName,
    epoch: String,
    /// The product.
    pub sequence: Sequence,
    /// The file, which must not exist.
    pub path: PathBuf,
}

/// The answer once a file has the bytes of a product.
#[derive(Debug, Serialize)]
pub struct ExportAnswer {
    #[serde(flatten)]
    product: StatedProduct,
    /// SHA-512 in hexadecimal digits.
    sha512: String,
}

impl FollowLine {
    /// The most products of the answer.
    pub fn most(&self) -> usize {
        self.limit.clamp(1, FOLLOWED_MOST)
    }

    /// The answer from products in their order; `kept`: the log has its bytes.
    pub fn answer<'a>(
        epoch: Epoch,
        head: Sequence,
        read_to: Sequence,
        products: impl Iterator<Item = (&'a ProductInfo, bool)>,
    ) -> FollowAnswer {
        let products = products.filter(|(info, _)| !info.id.is_heartbeat());
        let products = products.map(|(info, kept)| StatedProduct::of(info, kept)).collect();
        FollowAnswer { epoch: epoch.0.to_string(), head, read_to, products }
    }
}

impl ExportLine {
    /// # Errors
    /// The log began a new life since the product was named.
    pub fn check(&self, epoch: Epoch) -> Result<(), Failure> {
        if self.epoch == epoch.0.to_string() { Ok(()) } else { Err(self.gone()) }
    }

    /// The failure for a product without bytes.
    pub fn gone(&self) -> Failure {
        let Self { feed, sequence, .. } = self;
        Failure::new(
            "not-kept",
            format!("the log of {feed} no longer has the bytes of product {}", sequence.0),
        )
    }
}

impl ExportAnswer {
    /// The answer about an exported product.
    pub fn of(info: &ProductInfo, sha512: &[u8]) -> Self {
        let sha512 = sha512.iter().map(|byte| format!("{byte:02x}")).collect();
        Self { product: StatedProduct::of(info, true), sha512 }
    }
}

/// With properties of 8 KiB each the answer has less than a megabyte.
const FOLLOWED_MOST: usize = 100;

#[cfg(test)]
mod tests {
    use downburst_model::{ProductId, Properties, WallMicros};

    use super::*;
    use crate::testing::product;

    #[test]
    fn products_are_followed_without_those_of_the_hub_itself() {
        let mut stated = product(4, "a", 0);
        stated.properties = Properties::new(b"{}");
        let mut heartbeat = product(5, "b", 0);
        heartbeat.id = ProductId::heartbeat(WallMicros(5)).unwrap();
        let products = [(&stated, true), (&heartbeat, true)];
        let answer = FollowLine::answer(Epoch(7), Sequence(9), Sequence(5), products.into_iter());
        let answer = serde_json::to_value(answer).unwrap();
        assert_eq!(
            (&answer["epoch"], &answer["head"], &answer["read_to"]),
            (&"7".into(), &9.into(), &5.into())
        );
        let listed = answer["products"].as_array().unwrap();
        assert_eq!(listed.len(), 1);
        assert_eq!((&listed[0]["product_id"], &listed[0]["properties"]), (&"a".into(), &"{}".into()));
    }

    #[test]
    fn a_product_of_an_earlier_log_is_gone() {
        let line: ExportLine =
            serde_json::from_str(r#"{"feed": "WIS2", "epoch": "7", "sequence": 3, "path": "/x"}"#).unwrap();
        assert!(line.check(Epoch(7)).is_ok());
        let failure = line.check(Epoch(8)).unwrap_err();
        assert_eq!(failure.code, "not-kept");
        assert!(failure.error.contains("product 3"), "{}", failure.error);
    }

    #[test]
    fn the_most_products_are_bounded() {
        for (limit, most) in [(0, 1), (7, 7), (1_000_000, 100)] {
            let line = FollowLine { feed: FeedName::parse("WIS2").unwrap(), after: Sequence(0), limit };
            assert_eq!(line.most(), most);
        }
    }
}
