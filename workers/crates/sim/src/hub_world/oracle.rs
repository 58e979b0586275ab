use std::collections::{BTreeMap, BTreeSet};

use downburst_model::{FeedName, Pattern, ProductId, ProductInfo, ProductKey};
use downburst_session::Subscription;

/// The products that a site must have in the end, and those that it may have.
///
/// A product is due if the site subscribes to it from its publication to the end: then no timing excuses its
/// absence. It is legal if the site subscribed to it at any time, since a subscription may change before or
/// after the product was examined.
#[derive(Debug, Default)]
pub(super) struct Oracle {
    versions: Vec<BTreeMap<FeedName, Vec<Pattern>>>,
    products: BTreeMap<(FeedName, String), Product>,
    by_key: BTreeMap<ProductKey, (FeedName, String)>,
}

#[derive(Debug)]
struct Product {
    /// The number of versions of the subscriptions at its publication.
    version: usize,
    excused: bool,
}

impl Oracle {
    pub(super) fn subscribed(&mut self, subscriptions: &[Subscription]) {
        let mut version: BTreeMap<FeedName, Vec<Pattern>> = BTreeMap::new();
        for subscription in subscriptions {
            let pattern = Pattern::parse(&subscription.pattern).expect("a legal pattern");
            version.entry(subscription.feed.clone()).or_default().push(pattern);
        }
        self.versions.push(version);
    }

    /// Records a product. It is not due to a site that had not begun the feed at its publication: a new
    /// subscription starts at the head.
    pub(super) fn published(&mut self, info: &ProductInfo, begun: bool) {
        let identity = (info.key.feed.clone(), info.id.as_str().to_owned());
        self.by_key.insert(info.key.clone(), identity.clone());
        self.products.insert(identity, Product { version: self.versions.len(), excused: !begun });
    }

    /// Records the same product under another key.
    pub(super) fn renamed(&mut self, info: &ProductInfo) {
        let identity = (info.key.feed.clone(), info.id.as_str().to_owned());
        self.by_key.insert(info.key.clone(), identity);
    }

    pub(super) fn evicted(&mut self, feed: &FeedName, id: &ProductId) {
        self.excuse(&(feed.clone(), id.as_str().to_owned()));
    }

    pub(super) fn lost(&mut self, key: &ProductKey) {
        if let Some(identity) = self.by_key.get(key).cloned() {
            self.excuse(&identity);
        }
    }

    /// Excuses the products since the last change of the subscriptions, which the site did not receive before it
    /// died: it judged a leg's announcements in between by the former set, and its checkpoint does not show that.
    pub(super) fn died_unaware(&mut self) {
        let last = self.versions.len();
        for product in self.products.values_mut().filter(|product| product.version == last) {
            product.excused = true;
        }
    }

    pub(super) fn verdict(&self, stored: &BTreeSet<&(FeedName, String)>) -> Vec<String> {
        let mut wrong = Vec::new();
        for (identity, product) in &self.products {
            let has = stored.contains(identity);
            if !has && !product.excused && self.is_due(identity, product.version) {
                wrong.push(format!("lacks {identity:?}"));
            }
            if has && !self.versions.iter().any(|version| wants(version, identity)) {
                wrong.push(format!("has {identity:?}, which it never wanted"));
            }
        }
        wrong
    }

    fn is_due(&self, identity: &(FeedName, String), version: usize) -> bool {
        let since = version.saturating_sub(1);
        self.versions.iter().skip(since).all(|version| wants(version, identity))
    }

    fn excuse(&mut self, identity: &(FeedName, String)) {
        if let Some(product) = self.products.get_mut(identity) {
            product.excused = true;
        }
    }
}

fn wants(version: &BTreeMap<FeedName, Vec<Pattern>>, (feed, id): &(FeedName, String)) -> bool {
    version.get(feed).is_some_and(|patterns| patterns.iter().any(|pattern| pattern.matches(id)))
}
