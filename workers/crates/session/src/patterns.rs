use std::collections::BTreeMap;
use std::sync::Arc;

use downburst_model::{FeedName, Pattern};

use crate::Subscription;

/// A site's subscriptions, compiled.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patterns {
    feeds: BTreeMap<FeedName, Arc<Filter>>,
}

/// What a site wants of one feed, and whether it takes trains. Filters are equal when they want the same for the same reasons: what
/// was matched and encoded for one site serves every other with an equal filter.
#[derive(Debug)]
pub struct Filter {
    key: FilterKey,
    wishes: Vec<Wish>,
}

#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct FilterKey {
    trains: bool,
    /// Patterns and what they leave out, sorted.
    texts: Vec<(String, Option<String>)>,
}

/// A pattern and what it leaves out.
#[derive(Debug)]
pub(crate) struct Wish {
    pattern: Pattern,
    not_pattern: Option<Pattern>,
}

impl Patterns {
    /// Compiles the set. A pattern that does not compile matches nothing: the hub refuses those before they are stored.
    pub(crate) fn compile(subscriptions: &[Subscription], trains: impl Fn(&FeedName) -> bool) -> Self {
        let mut texts: BTreeMap<FeedName, Vec<(String, Option<String>)>> = BTreeMap::new();
        for Subscription { feed, pattern, not_pattern } in subscriptions {
            texts.entry(feed.clone()).or_default().push((pattern.clone(), not_pattern.clone()));
        }
        let feeds = texts.into_iter().map(|(feed, texts)| {
            let filter = Filter::compile(texts, trains(&feed));
            (feed, Arc::new(filter))
        });
        Self { feeds: feeds.collect() }
    }

    /// True if the site subscribes to anything of the feed.
    pub(crate) fn has(&self, feed: &FeedName) -> bool {
        self.feeds.contains_key(feed)
    }

    /// What the site wants of the feed.
    pub(crate) fn filter(&self, feed: &FeedName) -> Option<&Arc<Filter>> {
        self.feeds.get(feed)
    }

    /// True if a subscription wants the product with this id.
    pub(crate) fn want(&self, feed: &FeedName, id: &str) -> bool {
        self.feeds.get(feed).is_some_and(|filter| filter.wants(id))
    }
}

impl Filter {
    /// True if the product with this id is wanted.
    pub fn wants(&self, id: &str) -> bool {
        self.wishes.iter().any(|wish| wish.matches(id))
    }

    /// True if small products travel together.
    pub(crate) fn trains(&self) -> bool {
        self.key.trains
    }

    fn compile(mut texts: Vec<(String, Option<String>)>, trains: bool) -> Self {
        texts.sort_unstable();
        texts.dedup();
        let wishes = texts.iter().filter_map(|(pattern, not)| Wish::compile(pattern, not.as_deref()));
        Self { wishes: wishes.collect(), key: FilterKey { trains, texts } }
    }
}

impl PartialEq for Filter {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Filter {}

impl PartialOrd for Filter {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Filter {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

impl Wish {
    pub(crate) fn compile(pattern: &str, not_pattern: Option<&str>) -> Option<Self> {
        let pattern = Pattern::parse(pattern).ok()?;
        let not_pattern = not_pattern.map(Pattern::parse).transpose().ok()?;
        Some(Self { pattern, not_pattern })
    }

    pub(crate) fn matches(&self, id: &str) -> bool {
        self.pattern.matches(id) && !self.not_pattern.as_ref().is_some_and(|pattern| pattern.matches(id))
    }
}
