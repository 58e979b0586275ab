//! The selection of products whose whereabouts are asked for.
use downburst_model::{Epoch, FeedName, ProductId, Sequence, SiteName};
use serde::Deserialize;

use crate::jobs::Failure;

/// Selects the products whose whereabouts are reported, site by site.
#[derive(Debug, Deserialize)]
pub struct DeliveriesLine {
    /// The feed.
    pub feed: FeedName,
    /// As decimal text; an epoch other than the log's finds nothing.
    epoch: Option<String>,
    sequence: Option<Sequence>,
    product_id: Option<ProductId>,
    /// The first hexadecimal digits of the digest.
    digest: Option<String>,
    /// Only products before this sequence: the next page.
    before: Option<Sequence>,
    #[serde(default = "default_limit")]
    limit: usize,
    /// Only this site.
    site: Option<SiteName>,
}

/// Selects products by their sequences.
#[derive(Debug, Deserialize)]
pub struct ProductsLine {
    /// The feed.
    pub feed: FeedName,
    epoch: Option<String>,
    sequences: Vec<Sequence>,
}

/// The way to find the selected products in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// No product of this log.
    Nothing,
    /// One product by its number.
    One(Sequence),
    /// The newest products with this property.
    Newest {
        /// The property.
        sought: SoughtProduct,
        /// Only products before this sequence.
        before: Sequence,
        /// The most products to find.
        products: usize,
        /// The most products to look at.
        rows: u64,
    },
}

/// A property of products.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SoughtProduct {
    /// The identifier.
    Id(ProductId),
    /// The first hexadecimal digits of the digest, in lower case.
    Digest(String),
}

impl DeliveriesLine {
    /// The way to find the products in the log of this epoch.
    ///
    /// # Errors
    ///
    /// No product is specified.
    pub fn selection(&self, epoch: Epoch) -> Result<Selection, Failure> {
        if !is_epoch(self.epoch.as_deref(), epoch) {
            return Ok(Selection::Nothing);
        }
        let sought = match (&self.sequence, &self.product_id, &self.digest) {
            (Some(sequence), _, _) => return Ok(Selection::One(*sequence)),
            (None, Some(id), _) => SoughtProduct::Id(id.clone()),
            (None, None, Some(digest)) => SoughtProduct::Digest(digest.to_lowercase()),
            (None, None, None) => {
                let sentence = "the product is not specified; give a sequence, a product_id or a digest";
                return Err(Failure::bad_request(sentence));
            }
        };
        Ok(Selection::Newest {
            sought,
            before: self.before.unwrap_or(Sequence(u64::MAX)),
            products: self.limit.clamp(1, LIMIT_MOST),
            rows: ROWS_SEARCHED,
        })
    }

    /// True if the way to this site is asked for.
    pub fn asks_for(&self, site: &SiteName) -> bool {
        self.site.as_ref().is_none_or(|only| only == site)
    }
}

impl ProductsLine {
    /// The numbers of the products in the log of this epoch.
    pub fn sequences(&self, epoch: Epoch) -> impl Iterator<Item = Sequence> {
        let is_ours = is_epoch(self.epoch.as_deref(), epoch);
        self.sequences.iter().copied().filter(move |_| is_ours).take(PRODUCTS_AT_ONCE)
    }
}

/// True if the text is absent or names the epoch.
fn is_epoch(text: Option<&str>, epoch: Epoch) -> bool {
    text.is_none_or(|text| text.parse() == Ok(epoch.0))
}

const fn default_limit() -> usize {
    5
}

/// A product sent a hundred times is not to be traced: its feed should be examined instead.
const LIMIT_MOST: usize = 100;
const PRODUCTS_AT_ONCE: usize = 1_000;

/// About two seconds of a cold disk; the answer says where the search ended, and the next page continues there.
const ROWS_SEARCHED: u64 = 20_000_000;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn line(fields: &[(&str, Value)]) -> DeliveriesLine {
        let mut line = json!({"feed": "NGRID"});
        for (name, value) in fields {
            line[*name] = value.clone();
        }
        serde_json::from_value(line).unwrap()
    }

    fn selected(fields: &[(&str, Value)]) -> Selection {
        line(fields).selection(Epoch(7)).unwrap()
    }

    #[test]
    fn a_number_finds_one_product_of_the_life_of_the_log_that_it_names() {
        let number = ("sequence", json!(5));
        assert_eq!(selected(std::slice::from_ref(&number)), Selection::One(Sequence(5)));
        assert_eq!(selected(&[number.clone(), ("epoch", json!("7"))]), Selection::One(Sequence(5)));
        for other in ["8", "", "-7", "seven"] {
            assert_eq!(selected(&[number.clone(), ("epoch", json!(other))]), Selection::Nothing, "{other}");
        }
    }

    #[test]
    fn names_and_digests_find_the_newest_within_bounds() {
        let Selection::Newest { sought, before, products, .. } = selected(&[("digest", json!("AB"))]) else {
            panic!("a search")
        };
        assert_eq!(sought, SoughtProduct::Digest("ab".to_owned()));
        assert_eq!((before, products), (Sequence(u64::MAX), 5));
        let bounded = |limit: u64| {
            selected(&[("product_id", json!("x")), ("limit", json!(limit)), ("before", json!(9))])
        };
        for (limit, most) in [(0, 1), (7, 7), (1_000_000, LIMIT_MOST)] {
            let Selection::Newest { before, products, .. } = bounded(limit) else { panic!("a search") };
            assert_eq!((before, products), (Sequence(9), most));
        }
    }

    #[test]
    fn a_question_without_a_product_is_refused() {
        assert!(line(&[]).selection(Epoch(7)).unwrap_err().error.contains("give a sequence"));
    }

    #[test]
    fn a_question_may_be_about_one_site() {
        let oslo = SiteName::parse("oslo").unwrap();
        assert!(line(&[]).asks_for(&oslo) && line(&[("site", json!("oslo"))]).asks_for(&oslo));
        assert!(!line(&[("site", json!("paris"))]).asks_for(&oslo));
    }

    #[test]
    fn products_by_number_are_bounded() {
        let all: Vec<u64> = (0..5_000).collect();
        let line: ProductsLine =
            serde_json::from_value(json!({"feed": "A", "epoch": "7", "sequences": all})).unwrap();
        assert_eq!(line.sequences(Epoch(7)).count(), PRODUCTS_AT_ONCE);
        assert_eq!(line.sequences(Epoch(8)).count(), 0);
    }
}
