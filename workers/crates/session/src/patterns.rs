use std::collections::BTreeMap;

use downburst_model::{FeedName, Pattern};

use crate::Subscription;

/// A site's subscriptions, compiled.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patterns {
    feeds: BTreeMap<FeedName, Vec<Wish>>,
}

#[derive(Clone, Debug)]
struct Wish {
    pattern: Pattern,
    not_pattern: Option<Pattern>,
}

impl Patterns {
    /// Compiles the set. A pattern that does not compile matches nothing: the hub refuses those before they are stored.
    pub(crate) fn compile(subscriptions: &[Subscription]) -> Self {
        let mut feeds: BTreeMap<FeedName, Vec<Wish>> = BTreeMap::new();
        for subscription in subscriptions {
            let wishes = feeds.entry(subscription.feed.clone()).or_default();
            wishes.extend(Wish::compile(subscription));
        }
        Self { feeds }
    }

    /// True if the site subscribes to anything of the feed.
    pub(crate) fn has(&self, feed: &FeedName) -> bool {
        self.feeds.contains_key(feed)
    }

    /// True if a subscription wants the product with this id.
    pub(crate) fn want(&self, feed: &FeedName, id: &str) -> bool {
        self.feeds.get(feed).is_some_and(|wishes| wishes.iter().any(|wish| wish.matches(id)))
    }
}

impl Wish {
    fn compile(subscription: &Subscription) -> Option<Self> {
        let pattern = Pattern::parse(&subscription.pattern).ok()?;
        let not_pattern = subscription.not_pattern.as_deref().map(Pattern::parse).transpose().ok()?;
        Some(Self { pattern, not_pattern })
    }

    fn matches(&self, id: &str) -> bool {
        self.pattern.matches(id) && !self.not_pattern.as_ref().is_some_and(|pattern| pattern.matches(id))
    }
}
