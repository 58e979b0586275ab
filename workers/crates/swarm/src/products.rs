//! Reassembles and checks products as they arrive.
use std::collections::BTreeMap;

use downburst_model::ProductInfo;
use downburst_session::StoreResult;
use downburst_site::PlaceId;

/// The products that one site is receiving; nothing is kept if digests are not checked.
#[derive(Debug, Default)]
pub(crate) struct Products {
    checks: bool,
    open: BTreeMap<PlaceId, Vec<u8>>,
}

impl Products {
    pub(crate) fn new(checks: bool) -> Self {
        Self { checks, ..Self::default() }
    }

    pub(crate) fn begin(&mut self, place: PlaceId) {
        if self.checks {
            self.open.insert(place, Vec::new());
        }
    }

    /// Adds bytes of a product; a gap is filled with zeros until its bytes arrive.
    pub(crate) fn block(&mut self, place: PlaceId, offset: u64, bytes: &[u8]) {
        let Some(content) = self.open.get_mut(&place) else { return };
        let Ok(offset) = usize::try_from(offset) else { return };
        let end = offset.saturating_add(bytes.len());
        if content.len() < end {
            content.resize(end, 0);
        }
        if let Some(place) = content.get_mut(offset..end) {
            place.copy_from_slice(bytes);
        }
    }

    pub(crate) fn abandon(&mut self, place: PlaceId) {
        self.open.remove(&place);
    }

    /// Ends a product that has all its bytes; returns the result that a storage would report.
    pub(crate) fn complete(&mut self, place: PlaceId, info: &ProductInfo) -> StoreResult {
        let content = self.open.remove(&place).unwrap_or_default();
        self.check(info, &content)
    }

    /// The result that a storage would report for a product with these bytes.
    pub(crate) fn check(&self, info: &ProductInfo, content: &[u8]) -> StoreResult {
        let is_good = !self.checks
            || content.len() as u64 == info.size && blake3::hash(content).as_bytes() == &info.digest.0;
        if is_good { StoreResult::Stored } else { StoreResult::DigestMismatch }
    }
}

#[cfg(test)]
mod tests {
    use downburst_model::{
        Class, Digest, Epoch, FeedName, Origin, ProductId, ProductKey, Sequence, WallMicros,
    };

    use super::*;

    const PLACE: PlaceId = PlaceId(7);

    fn info(content: &[u8]) -> ProductInfo {
        ProductInfo {
            key: ProductKey {
                feed: FeedName::parse("NGRID").unwrap(),
                epoch: Epoch(1),
                sequence: Sequence(1),
            },
            id: ProductId::parse("a").unwrap(),
            class: Class::Grid,
            size: content.len() as u64,
            digest: Digest(*blake3::hash(content).as_bytes()),
            origin: Origin::parse("here").unwrap(),
            created: WallMicros(1),
            stored: WallMicros(2),
            hops: None,
            ldm: None,
            properties: None,
        }
    }

    #[test]
    fn blocks_in_any_order_make_the_product() {
        let mut products = Products::new(true);
        let info = info(b"abcdef");
        products.begin(PLACE);
        products.block(PLACE, 3, b"def");
        products.block(PLACE, 0, b"abc");
        products.block(PLACE, 0, b"abc");
        assert_eq!(products.complete(PLACE, &info), StoreResult::Stored);
        assert!(products.open.is_empty());
    }

    #[test]
    fn wrong_and_missing_bytes_are_found_only_where_they_are_looked_at() {
        let info = info(b"abcdef");
        for content in [&b"abcdeX"[..], b"abc", b"abcdefg"] {
            let mut products = Products::new(true);
            products.begin(PLACE);
            products.block(PLACE, 0, content);
            assert_eq!(products.complete(PLACE, &info), StoreResult::DigestMismatch);
        }
        assert_eq!(Products::new(false).complete(PLACE, &info), StoreResult::Stored);
    }
}
