//! Products that are coming in, put together and checked.
use std::collections::BTreeMap;

use downburst_model::{ProductInfo, ProductKey};
use downburst_session::StoreResult;

/// What one site is receiving; nothing is kept where digests are not checked.
#[derive(Debug, Default)]
pub(crate) struct Products {
    checks: bool,
    open: BTreeMap<ProductKey, Vec<u8>>,
}

impl Products {
    pub(crate) fn new(checks: bool) -> Self {
        Self { checks, ..Self::default() }
    }

    pub(crate) fn begin(&mut self, info: &ProductInfo) {
        if self.checks {
            self.open.insert(info.key.clone(), Vec::new());
        }
    }

    /// Bytes of a product; what leaves a gap is filled with zeros until it comes.
    pub(crate) fn block(&mut self, key: &ProductKey, offset: u64, bytes: &[u8]) {
        let Some(content) = self.open.get_mut(key) else { return };
        let Ok(offset) = usize::try_from(offset) else { return };
        let end = offset.saturating_add(bytes.len());
        if content.len() < end {
            content.resize(end, 0);
        }
        if let Some(place) = content.get_mut(offset..end) {
            place.copy_from_slice(bytes);
        }
    }

    pub(crate) fn abandon(&mut self, key: &ProductKey) {
        self.open.remove(key);
    }

    /// A product has all its bytes: what its storage would have said.
    pub(crate) fn complete(&mut self, info: &ProductInfo) -> StoreResult {
        if !self.checks {
            return StoreResult::Stored;
        }
        let content = self.open.remove(&info.key).unwrap_or_default();
        let is_good =
            content.len() as u64 == info.size && blake3::hash(&content).as_bytes() == &info.digest.0;
        if is_good { StoreResult::Stored } else { StoreResult::DigestMismatch }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.open.clear();
    }
}

#[cfg(test)]
mod tests {
    use downburst_model::{Class, Digest, Epoch, FeedName, Origin, ProductId, Sequence, WallMicros};

    use super::*;

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
        }
    }

    #[test]
    fn blocks_in_any_order_make_the_product() {
        let mut products = Products::new(true);
        let info = info(b"abcdef");
        products.begin(&info);
        products.block(&info.key, 3, b"def");
        products.block(&info.key, 0, b"abc");
        products.block(&info.key, 0, b"abc");
        assert_eq!(products.complete(&info), StoreResult::Stored);
        assert!(products.open.is_empty());
    }

    #[test]
    fn wrong_and_missing_bytes_are_found_only_where_they_are_looked_at() {
        let info = info(b"abcdef");
        for content in [&b"abcdeX"[..], b"abc", b"abcdefg"] {
            let mut products = Products::new(true);
            products.begin(&info);
            products.block(&info.key, 0, content);
            assert_eq!(products.complete(&info), StoreResult::DigestMismatch);
        }
        assert_eq!(Products::new(false).complete(&info), StoreResult::Stored);
    }
}
